"""The ops of QIR as one table: what each takes, how it is written, and what it gives.

A row is `signature  ->  results  |  form  |  summary`. The builder's functions, the example frontend's, and their
documentation are all made from it, so that an op added here is there in both.

Signature: parameters as `name: kind`, with `= none` where they may be left out.
  T, U       a scalar of any type (the letter stands for that type in the form and the results)
  F, I       one of a float or an integer type, or a vector of them
  i1, i32, i64   a value of that type
  i32|n      a value, or an integer that is written as it is
  n          an integer; `word` one of a few words; flag: True writes the parameter's name; text
  T*         several values of one type
  type       a result's type, by name
Form: a parameter's name stands for what is passed; `[...]` is left out where its parameter is; other words are written
as they stand. Types follow the colon. Ops with regions, arrays or subscripts have functions of their own in the
builder; their rows say `custom`, and are there for the names.
"""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple


class Parameter(NamedTuple):
    name: str
    kind: str
    optional: bool


class Op(NamedTuple):
    """A row of the table."""
    name: str
    parameters: Tuple[Parameter, ...]
    results: Tuple[str, ...]
    form: str
    summary: str

    @property
    def is_custom(self) -> bool:
        return self.form == "custom"

    def describe(self) -> str:
        """One line for documentation."""
        rows = ["%s=None" % p.name if p.optional else p.name for p in self.parameters]
        return "%s(%s): %s" % (self.name, ", ".join(rows), self.summary)


_QD = """
kernel(custom) -> | custom | a function that a grid of blocks runs
return() -> | custom | ends a kernel
yield(custom) -> | custom | ends a combine region
thread_id(dim: dim = none, type: type = none) -> type | dim : type | the thread's position in its block along "x", "y" or "z"
block_id(dim: dim = none, type: type = none) -> type | dim : type | the block's position in the grid
block_dim(dim: dim = none, type: type = none) -> type | dim : type | threads of a block along a dimension
grid_dim(dim: dim = none, type: type = none) -> type | dim : type | blocks of the grid along a dimension
global_thread_id(dim: dim = none, type: type = none) -> type | dim : type | the thread's position in the whole grid
thread_index(type: type = none) -> type | : type | the thread's number in its block, counting x fastest
size(custom) -> | custom | the number of elements of a buffer, or its extent along a dimension
shared.alloc(custom) -> | custom | an array in the block's shared memory
private.alloc(custom) -> | custom | an array of the thread's own
constant(custom) -> | custom | a table of constants
constant.get(custom) -> | custom | a table as an array to load from
load(custom) -> | custom | reads an element or a vector
store(custom) -> | custom | writes an element or a vector
atomic_rmw(custom) -> | custom | changes an element in one step, and gives its old value
atomic_cas(custom) -> | custom | replaces an element where it holds what is expected
atomic_load(custom) -> | custom | reads an element that other threads change
atomic_store(custom) -> | custom | writes an element that other threads read
view(custom) -> | custom | a part of a buffer, as a buffer
reinterpret(custom) -> | custom | a buffer's bytes as elements of another type
async_copy(custom) -> | custom | starts a copy from a buffer to a shared array
async_commit() -> | | makes a group of the thread's copies since the last commit
async_wait(n: n) -> | n | waits until at most n of the thread's latest groups are under way
assume_uniform(value: T, scope: word) -> T | value, scope : T | promises that all threads of a "subgroup" or "block" hold the same value
pack_bits(custom) -> | custom | a word whose bits are the thread's predicates
unpack_bits(custom) -> | custom | the lowest bits of a word as predicates
print(custom) -> | custom | each thread prints a line
assert(custom) -> | custom | ends the launch with an error where the condition is false
sleep(duration: i32|n) -> | duration | lets other threads run for about that many nanoseconds
subgroup.lane_id() -> i32 | : i32 | the thread's lane in its subgroup
subgroup.size() -> i32 | : i32 | the number of lanes of a subgroup
subgroup.log2_size() -> i32 | : i32 | the binary logarithm of the number of lanes
subgroup.subgroup_id() -> i32 | : i32 | the number of the thread's subgroup in its block
subgroup.num_subgroups() -> i32 | : i32 | the number of subgroups of a block
subgroup.elect(tile: n = none) -> i1 | [tile(tile)] | true on lane 0 of the subgroup or tile
subgroup.active_mask() -> i64 | : i64 | one bit a lane: whether it is here
subgroup.lanemask_lt(lane: i32 = none, tile: n = none, type: type = none) -> type | [lane] [tile(tile)] : type | bits of the lanes below a lane
subgroup.lanemask_le(lane: i32 = none, tile: n = none, type: type = none) -> type | [lane] [tile(tile)] : type | bits of a lane and those below it
subgroup.lanemask_eq(lane: i32 = none, tile: n = none, type: type = none) -> type | [lane] [tile(tile)] : type | the bit of a lane
subgroup.lanemask_ge(lane: i32 = none, tile: n = none, type: type = none) -> type | [lane] [tile(tile)] : type | bits of a lane and those above it
subgroup.lanemask_gt(lane: i32 = none, tile: n = none, type: type = none) -> type | [lane] [tile(tile)] : type | bits of the lanes above a lane
subgroup.sync() -> | | waits for all lanes of the subgroup
subgroup.mem_fence() -> | | orders the thread's memory accesses for its subgroup
subgroup.shuffle(value: T, lane: i32|n, members: i64 = none, tile: n = none) -> T | value, lane [members(members)] [tile(tile)] : T | the value of the lane that is named
subgroup.rotate(value: T, lane: i32|n, tile: n = none) -> T | value, lane [tile(tile)] : T | the value of the lane so far above, around the end
subgroup.shuffle_up(value: T, lane: i32|n, tile: n = none, poison_edge: flag = none) -> T | value, lane [tile(tile)] [poison_edge] : T | the value of the lane so far below
subgroup.shuffle_down(value: T, lane: i32|n, tile: n = none, poison_edge: flag = none) -> T | value, lane [tile(tile)] [poison_edge] : T | the value of the lane so far above
subgroup.shuffle_xor(value: T, lane: i32|n, tile: n = none) -> T | value, lane [tile(tile)] : T | the value of the lane whose number differs by an exclusive or
subgroup.broadcast(value: T, lane: i32|n, tile: n = none) -> T | value, lane [tile(tile)] : T | all lanes read the value of one lane
subgroup.broadcast_first(value: T, tile: n = none) -> T | value [tile(tile)] : T | all lanes read the value of lane 0
subgroup.ballot(predicate: i1, members: i64 = none, tile: n = none) -> i64 | predicate [members(members)] [tile(tile)] : i64 | one bit a lane: whether its predicate holds
subgroup.ballot_first_n(predicate: i1, n: n) -> i32 | predicate, n : i32 | one bit a lane of the first n
subgroup.all(predicate: i1, tile: n = none) -> i1 | predicate [tile(tile)] | whether the predicate holds on every lane
subgroup.any(predicate: i1, tile: n = none) -> i1 | predicate [tile(tile)] | whether the predicate holds on some lane
subgroup.all_equal(value: T, tile: n = none) -> i1 | value [tile(tile)] : T | whether all lanes hold equal values
subgroup.match_any(value: T, members: i64 = none, tile: n = none) -> i64 | value [members(members)] [tile(tile)] : T | one bit a lane: whether it holds the same value
subgroup.match_all(value: T, members: i64 = none, tile: n = none) -> i64, i1 | value [members(members)] [tile(tile)] : T | whether all lanes hold the same value, and their mask if so
subgroup.reduce(combine) -> | custom | combines the values of all lanes; lane 0 holds the result
subgroup.reduce_all(combine) -> | custom | combines the values of all lanes; every lane holds the result
subgroup.inclusive_scan(combine) -> | custom | combines the values of all lanes up to the own
subgroup.exclusive_scan(combine) -> | custom | combines the values of all lanes below the own
subgroup.segmented_scan(combine) -> | custom | a scan that restarts at each lane whose head is not zero
subgroup.segmented_reduce_all(combine) -> | custom | combines the values of each segment
subgroup.bitonic_sort(key: T, descending: flag = none, unsigned: flag = none, tile: n = none) -> T | [descending] [unsigned] key [tile(tile)] : T | sorts the keys of the lanes
subgroup.bitonic_sort_kv(key: T, value: U, descending: flag = none, unsigned: flag = none, unsigned_values: flag = none, tile: n = none) -> T, U | [descending] [unsigned] key, [unsigned_values] value [tile(tile)] : T, U | sorts pairs of a key and a value
block.sync() -> | | waits for all threads of the block
block.mem_fence() -> | | orders the thread's memory accesses for its block
block.sync_shared() -> | | waits for all threads of the block, and orders shared memory alone
block.elect() -> i1 | | true on the block's thread 0
block.sync_all(predicate: i1) -> i1 | predicate | a barrier that tells whether the predicate holds on every thread
block.sync_any(predicate: i1) -> i1 | predicate | a barrier that tells whether the predicate holds on some thread
block.sync_count(predicate: i1) -> i32 | predicate | a barrier that counts the threads on which the predicate holds
block.broadcast(value: T, lane: i32|n) -> T | value, lane : T | all threads read the value of one thread
block.reduce(combine) -> | custom | combines the values of all threads of the block; thread 0 holds the result
block.reduce_all(combine) -> | custom | combines the values of all threads; every thread holds the result
block.inclusive_scan(combine) -> | custom | combines the values of the threads up to the own
block.exclusive_scan(combine) -> | custom | combines the values of the threads below the own
block.segmented_scan(combine) -> | custom | a scan that restarts at each thread whose head is not zero
block.bitonic_sort(key: T, descending: flag = none, unsigned: flag = none) -> T | [descending] [unsigned] key : T | sorts the keys of the block's threads
block.bitonic_sort_kv(key: T, value: U, descending: flag = none, unsigned: flag = none, unsigned_values: flag = none) -> T, U | [descending] [unsigned] key, [unsigned_values] value : T, U | sorts the block's pairs of a key and a value
block.radix_rank(custom) -> | custom | the places of the block's keys when sorted by one digit, stably
block.radix_sort(custom) -> | custom | sorts the block's keys, and values with them, stably
grid.mem_fence() -> | | orders the thread's memory accesses for the whole device
grid.sync() -> | | waits for all threads of the grid
"""

# Arithmetic by the form of its row: names, and what they take and give.
_BY_FORM = (
    ("a: I, b: I", "I", "a, b : I", """
        addi subi muli divsi divui remsi remui floordivsi ceildivsi ceildivui andi ori xori shli shrsi shrui minsi minui
        maxsi maxui"""),
    ("a: I, b: I", "I, I", "a, b : I", "mulsi_extended mului_extended"),
    ("a: I, b: I", "I, i1", "a, b : I, i1", "addui_extended"),
    ("a: F, b: F, fastmath: word = none", "F", "a, b [fastmath<fastmath>] : F", """
        addf subf mulf divf remf minnumf maxnumf minimumf maximumf"""),
    ("a: F, fastmath: word = none", "F", "a [fastmath<fastmath>] : F", "negf"),
)
_MATH_BY_FORM = (
    ("a: F, fastmath: word = none", "F", "a [fastmath<fastmath>] : F", """
        absf acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor log log10 log1p log2 round roundeven rsqrt sin
        sinh sqrt tan tanh trunc"""),
    ("a: F, b: F, fastmath: word = none", "F", "a, b [fastmath<fastmath>] : F", "atan2 copysign powf"),
    ("a: F, b: F, c: F, fastmath: word = none", "F", "a, b, c [fastmath<fastmath>] : F", "fma"),
    ("a: F", "i1", "a : F", "isfinite isinf isnan isnormal"),
    ("a: I", "I", "a : I", "absi ctlz ctpop cttz"),
    ("a: I, b: I", "I", "a, b : I", "ipowi"),
    ("a: F, b: I", "F", "a, b : F, I", "fpowi"),
)


def _parse(signature: str, results: str, form: str, summary: str) -> Op:
    name, _, rest = signature.strip().rstrip(")").partition("(")
    parameters = []
    for row in filter(None, (part.strip() for part in rest.split(","))):
        parameter, _, kind = row.partition(":")
        kind, _, default = kind.partition("=")
        if kind:
            parameters.append(Parameter(parameter.strip(), kind.strip(), default.strip() == "none"))
    form = "combine" if rest == "combine" else form.strip()
    return Op(name, tuple(parameters), tuple(r.strip() for r in results.split(",") if r.strip()), form, summary.strip())


def _read() -> Dict[str, Op]:
    ops = {}
    for line in filter(None, _QD.splitlines()):
        signature, _, rest = line.partition(" ->")
        results, form, summary = rest.split(" |", 2) if rest.count(" |") >= 2 else ("", "", rest)
        op = _parse(signature, results, form, summary.lstrip("|"))
        ops["qd." + op.name] = op._replace(name="qd." + op.name)
    for name, summary in (("sincos", "sine and cosine"), ("clampf", "a float kept between two bounds")):
        ops["math." + name] = Op("math." + name, (), (), "custom", summary)
    for prefix, rows in (("arith.", _BY_FORM), ("math.", _MATH_BY_FORM)):
        for signature, results, form, names in rows:
            for name in names.split():
                summary = "see MLIR's dialect '%s'" % prefix[:-1]
                ops[prefix + name] = _parse("%s%s(%s)" % (prefix, name, signature), results, form, summary)
    return ops


OPS: Dict[str, Op] = _read()

KINDS = ("add", "mul", "minsi", "minui", "maxsi", "maxui", "minnumf", "maxnumf", "minimumf", "maximumf", "andi", "ori",
         "xori")
ATOMIC_KINDS = KINDS + ("sub", "exchange")
ORDERS = ("relaxed", "acquire", "release", "acq_rel")
SCOPES = ("subgroup", "block", "device")


def find(name: str) -> Optional[Op]:
    """The row of that name: "qd.subgroup.shuffle", "math.exp"."""
    return OPS.get(name)


def names(prefix: str) -> List[str]:
    """What stands directly below a prefix: "subgroup." has "shuffle" and so on."""
    start = len(prefix)
    return sorted({name[start:].split(".")[0] for name in OPS if name.startswith(prefix)})
