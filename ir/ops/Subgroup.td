//===- Subgroup.td - operations among the lanes of a subgroup --------------===//
//
// The scope of an op is the whole subgroup or, with `tile(n)`, each aligned tile of n lanes by itself; a lane is
// numbered from the start of its scope.
//
// **Tiles.** n is a power of two, and the block a multiple of it. Up to the subgroup's size a tile costs nothing
// further. A wider one, up to the block, is carried out through shared memory; all threads of the block must then
// reach the op together. Masks with a bit a lane (`ballot`, `match_any`, `match_all`, `lanemask_*`) have tiles of at
// most as many lanes as bits.
//
// **Control flow.** A collective op must be reached by all lanes of its scope together. A condition that depends on
// the thread is an error, unless it is proven that the lanes decide alike; one that comes from memory is a warning,
// which `assume_uniform` answers.
//
// **Members.** `members(mask)` on `ballot`, `match_any`, `match_all` and `shuffle` is for divergent control flow, with
// a mask such as `active_mask` gives. Bits are lanes of the subgroup. All members reach the op together and with the
// same mask; each lane that reaches it is a member of its own mask. A lane that is no member contributes nothing.
//
// **Partial subgroups.** Where the block is no multiple of the subgroup's size, lanes that the last subgroup lacks
// contribute nothing to any op, and reading one is poison.
//
// **Operations.** A reduction, scan or segmented form combines by a kind, or by a `combine` region over one or several
// operands: the region's first arguments are the lower lane's values, then come the higher lane's, and it yields one
// value an operand. It is associative, need not commute, touches no memory, and may use values from around it that are
// uniform in the op's scope.
//
// **Order of sorts.** Integers are signed, or `unsigned`. Floats are in total order: -inf, negative numbers, -0, +0,
// positive numbers, +inf, NaNs. Pairs are ordered by the key, then by the value.
//
//===----------------------------------------------------------------------===//

#ifndef QD_OPS_SUBGROUP_TD
#define QD_OPS_SUBGROUP_TD

include "ir/Dialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// An optional `tile(n)` clause: n lanes, a power of two.
defvar QD_TileAttr = OptionalAttr<I32Attr>;

class QD_SubgroupOp<string mnemonic, list<Trait> traits = []> : QD_Op<"subgroup." # mnemonic, traits>;

/// An op that lanes carry out together. It touches no memory, but must not move into other control flow.
class QD_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : QD_SubgroupOp<mnemonic, [QD_Convergent, NoMemoryEffect] # traits>;

//===----------------------------------------------------------------------===//
// Identification
//===----------------------------------------------------------------------===//

def QD_LaneIdOp : QD_SubgroupOp<"lane_id", [Pure]> {
  let summary = "the thread's lane in its subgroup";
  let description = [{ From 0 to `size` - 1: the thread index modulo the subgroup's size. }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def QD_SubgroupSizeOp : QD_SubgroupOp<"size", [Pure]> {
  let summary = "the number of lanes of a subgroup";
  let description = [{ A constant once the target is known; also for a block's partial last subgroup. }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def QD_Log2SizeOp : QD_SubgroupOp<"log2_size", [Pure]> {
  let summary = "the binary logarithm of the number of lanes of a subgroup";
  let description = [{ A constant once the target is known: 2 for 4 lanes to 6 for 64. }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def QD_SubgroupIdOp : QD_SubgroupOp<"subgroup_id", [Pure]> {
  let summary = "the number of the thread's subgroup in its block";
  let description = [{ The thread index divided by the subgroup's size. }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def QD_NumSubgroupsOp : QD_SubgroupOp<"num_subgroups", [Pure]> {
  let summary = "the number of subgroups of a block";
  let description = [{ A constant once the target is known; counts a partial last subgroup. }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def QD_ElectOp : QD_SubgroupOp<"elect", [Pure]> {
  let summary = "true on lane 0 of the subgroup or tile";
  let description = [{ False on all other lanes. }];
  let arguments = (ins QD_TileAttr:$tile);
  let results = (outs I1:$result);
  let assemblyFormat = "(`tile` `(` $tile^ `)`)? attr-dict";
  let hasVerifier = 1;
}

def QD_ActiveMaskOp : QD_CollectiveOp<"active_mask", [QD_Members]> {
  let summary = "one bit a lane: whether it is here";
  let description = [{
    Bit i is set where lane i takes part in the op. Legal in divergent control flow; in uniform control flow it
    is the mask of the lanes that exist.
  }];
  let results = (outs I64:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

/// Bit i compares i with a lane, the own one where none is given.
class QD_LaneMaskOp<string mnemonic> : QD_SubgroupOp<mnemonic, [Pure]> {
  let arguments = (ins Optional<I32>:$lane, QD_TileAttr:$tile);
  let results = (outs QD_Int:$result);
  let assemblyFormat = "($lane^)? (`tile` `(` $tile^ `)`)? attr-dict `:` type($result)";
  let hasVerifier = 1;
  let description = [{
    An i32 holds bits for lanes 0 to 31, an i64 for lanes 0 to 63, whatever the subgroup's size. A `lane` is an
    operand from 0 to the result's width - 1; without one the own lane counts, by its number in the tile or
    subgroup: it must fit the result.
  }];
}

def QD_LaneMaskLtOp : QD_LaneMaskOp<"lanemask_lt"> { let summary = "bits of the lanes below a lane"; }
def QD_LaneMaskLeOp : QD_LaneMaskOp<"lanemask_le"> { let summary = "bits of a lane and those below it"; }
def QD_LaneMaskEqOp : QD_LaneMaskOp<"lanemask_eq"> { let summary = "the bit of a lane"; }
def QD_LaneMaskGeOp : QD_LaneMaskOp<"lanemask_ge"> { let summary = "bits of a lane and those above it"; }
def QD_LaneMaskGtOp : QD_LaneMaskOp<"lanemask_gt"> { let summary = "bits of the lanes above a lane"; }

def QD_AssumeUniformOp : QD_Op<"assume_uniform", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "promises that all threads of a subgroup or block hold the same value";
  let description = [{
    The result is the value; analyses take it for uniform. Where the promise is broken the result is undefined;
    the interpreter reports it.

    ```mlir
    %n = qd.assume_uniform %loaded, block : i32
    ```
  }];
  let arguments = (ins QD_Scalar:$value, QD_ScopeAttr:$scope);
  let results = (outs QD_Scalar:$result);
  let assemblyFormat = "$value `,` custom<Enum>($scope) attr-dict `:` type($value)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

def QD_SubgroupSyncOp : QD_SubgroupOp<"sync", [QD_Convergent]> {
  let summary = "waits for all lanes of the subgroup";
  let description = [{
    Also orders memory: what a lane wrote to shared or global memory before it, the subgroup's other lanes see
    after it.
  }];
  let assemblyFormat = "attr-dict";
}

def QD_SubgroupMemFenceOp : QD_SubgroupOp<"mem_fence"> {
  let summary = "orders the thread's memory accesses for its subgroup";
  let description = [{
    Accesses to shared and global memory before it come before those after it, as the subgroup's lanes see them.
    Waits for nobody; legal in divergent control flow.
  }];
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

/// Moves `value` between lanes by a lane number, offset or mask that is an i32 value or a literal.
class QD_ShuffleLikeOp<string mnemonic, list<Trait> traits = []>
    : QD_CollectiveOp<mnemonic, [AllTypesMatch<["value", "result"]>] # traits> {
  let arguments = (ins QD_Scalar:$value, Optional<I32>:$lane, OptionalAttr<I32Attr>:$static_lane,
                       QD_TileAttr:$tile);
  let results = (outs QD_Scalar:$result);
  let assemblyFormat = [{
    $value `,` custom<LaneOperand>($lane, $static_lane) (`tile` `(` $tile^ `)`)? attr-dict `:` type($value)
  }];
  let hasVerifier = 1;
  let builders = [
    OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$lane, "std::optional<int32_t>":$tile)>,
    OpBuilder<(ins "::mlir::Value":$value, "int32_t":$lane, "std::optional<int32_t>":$tile)>];
  let extraClassDeclaration = [{
    /// The lane operand where it is a literal or a constant.
    std::optional<int32_t> getConstantLane();
  }];
}

/// As above, with edges: `poison_edge` drops the guarantee for lanes whose source lies past the edge.
class QD_ShuffleEdgeOp<string mnemonic> : QD_ShuffleLikeOp<mnemonic> {
  let arguments = (ins QD_Scalar:$value, Optional<I32>:$lane, OptionalAttr<I32Attr>:$static_lane,
                       QD_TileAttr:$tile, UnitAttr:$poison_edge);
  let assemblyFormat = [{
    $value `,` custom<LaneOperand>($lane, $static_lane) (`tile` `(` $tile^ `)`)?
    (`poison_edge` $poison_edge^)? attr-dict `:` type($value)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$lane, "std::optional<int32_t>":$tile,
                   CArg<"bool", "false">:$poisonEdge)>,
    OpBuilder<(ins "::mlir::Value":$value, "int32_t":$lane, "std::optional<int32_t>":$tile,
                   CArg<"bool", "false">:$poisonEdge)>];
}

def QD_ShuffleOp : QD_ShuffleLikeOp<"shuffle", [QD_Members, AttrSizedOperandSegments]> {
  let summary = "each lane reads the value of the lane that it names";
  let description = [{
    The lane number is taken modulo the tile's or subgroup's size, so it never leaves the tile. Reading a lane
    that a partial last subgroup lacks is poison. With `members(mask)` it is legal in divergent control flow: see
    `ballot`; reading a lane that is no member is poison.
  }];
  let arguments = (ins QD_Scalar:$value, Optional<I32>:$lane, Optional<I64>:$members,
                       OptionalAttr<I32Attr>:$static_lane, QD_TileAttr:$tile);
  let assemblyFormat = [{
    $value `,` custom<LaneOperand>($lane, $static_lane) (`members` `(` $members^ `)`)?
    (`tile` `(` $tile^ `)`)? attr-dict `:` type($value)
  }];
}

def QD_RotateOp : QD_ShuffleLikeOp<"rotate"> {
  let summary = "each lane reads the value of the lane n above it, around the end";
  let description = [{
    Lane i reads lane (i + n) modulo the tile's or subgroup's size; n may be negative or larger than that size.
    Reading a lane that a partial last subgroup lacks is poison.
  }];
}

def QD_ShuffleUpOp : QD_ShuffleEdgeOp<"shuffle_up"> {
  let summary = "each lane reads the value of the lane n below it";
  let description = [{
    Lanes below n keep their own value (with `poison_edge`: hold poison). n is not negative.
  }];
}

def QD_ShuffleDownOp : QD_ShuffleEdgeOp<"shuffle_down"> {
  let summary = "each lane reads the value of the lane n above it";
  let description = [{
    Lanes whose source would lie past the end of the tile keep their own value (with `poison_edge`: hold
    poison). n is not negative.
  }];
}

def QD_ShuffleXorOp : QD_ShuffleLikeOp<"shuffle_xor"> {
  let summary = "each lane reads the value of the lane whose number differs by an exclusive or";
  let description = [{
    The mask is below the tile's or subgroup's size: a constant one that is not is an error, a varying one is
    taken modulo that size.
  }];
}

def QD_BroadcastOp : QD_ShuffleLikeOp<"broadcast"> {
  let summary = "all lanes read the value of one lane";
  let description = [{
    The lane is taken modulo the tile's or subgroup's size. It may vary between lanes: then each lane reads
    the lane that it names, as in `shuffle`.
  }];
}

def QD_BroadcastFirstOp : QD_CollectiveOp<"broadcast_first", [AllTypesMatch<["value", "result"]>]> {
  let summary = "all lanes read the value of lane 0 of the subgroup or tile";
  let description = [{ The same as `broadcast %v, 0`. }];
  let arguments = (ins QD_Scalar:$value, QD_TileAttr:$tile);
  let results = (outs QD_Scalar:$result);
  let assemblyFormat = "$value (`tile` `(` $tile^ `)`)? attr-dict `:` type($value)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Votes
//===----------------------------------------------------------------------===//

def QD_BallotOp : QD_CollectiveOp<"ballot", [QD_Members]> {
  let summary = "one bit a lane: whether its predicate holds";
  let description = [{
    Bit i of the result is the predicate of lane i of the subgroup or tile, of at most 64 lanes; bits of lanes that
    do not exist are zero.

    With `members(mask)` it is legal in divergent control flow, among the lanes whose bits are set: bits of other
    lanes are zero. All members must reach the op together and with the same mask, and each lane that reaches it
    must be a member of its own mask; lanes with different masks do not meet. Bits count lanes of the subgroup.
  }];
  let arguments = (ins I1:$predicate, Optional<I64>:$members, QD_TileAttr:$tile);
  let results = (outs I64:$result);
  let assemblyFormat = [{
    $predicate (`members` `(` $members^ `)`)? (`tile` `(` $tile^ `)`)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$predicate, CArg<"std::optional<int32_t>", "std::nullopt">:$tile)>];
}

def QD_BallotFirstNOp : QD_CollectiveOp<"ballot_first_n"> {
  let summary = "one bit a lane of the first n: whether its predicate holds";
  let description = [{
    Bit i of the result is lane i's predicate where i is below n, which is from 1 to 32; other bits, and those of
    lanes that do not exist, are zero.
  }];
  let arguments = (ins I1:$predicate, I32Attr:$n);
  let results = (outs I32:$result);
  let assemblyFormat = "$predicate `,` $n attr-dict `:` type($result)";
  let hasVerifier = 1;
}

class QD_VoteOp<string mnemonic> : QD_CollectiveOp<mnemonic> {
  let arguments = (ins I1:$predicate, QD_TileAttr:$tile);
  let results = (outs I1:$result);
  let assemblyFormat = "$predicate (`tile` `(` $tile^ `)`)? attr-dict";
  let hasVerifier = 1;
}

def QD_AllOp : QD_VoteOp<"all"> {
  let summary = "whether the predicate holds on every lane";
  let description = [{ Given to every lane of the tile. Lanes that do not exist count as true. }];
}

def QD_AnyOp : QD_VoteOp<"any"> {
  let summary = "whether the predicate holds on some lane";
  let description = [{ Given to every lane of the tile. Lanes that do not exist count as false. }];
}

def QD_AllEqualOp : QD_CollectiveOp<"all_equal"> {
  let summary = "whether all lanes hold equal values";
  let description = [{
    Given to every lane of the tile. Floats compare by value: a NaN gives false, and +0 equals -0. Lanes that do
    not exist do not count.
  }];
  let arguments = (ins QD_Scalar:$value, QD_TileAttr:$tile);
  let results = (outs I1:$result);
  let assemblyFormat = "$value (`tile` `(` $tile^ `)`)? attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def QD_MatchAnyOp : QD_CollectiveOp<"match_any", [QD_Members]> {
  let summary = "one bit a lane: whether it holds the same value as the own lane";
  let description = [{
    Values are compared bit by bit, floats as well. Bits of lanes that do not exist are zero; the tile or subgroup
    has at most 64 lanes. For `members(mask)` see `ballot`.
  }];
  let arguments = (ins QD_Scalar:$value, Optional<I64>:$members, QD_TileAttr:$tile);
  let results = (outs I64:$result);
  let assemblyFormat = [{
    $value (`members` `(` $members^ `)`)? (`tile` `(` $tile^ `)`)? attr-dict `:` type($value)
  }];
  let hasVerifier = 1;
}

def QD_MatchAllOp : QD_CollectiveOp<"match_all", [QD_Members]> {
  let summary = "whether all lanes hold the same value, and the mask of the lanes if so";
  let description = [{
    Where all values are the same, bit by bit, the mask has the bit of every lane that exists (with `members(mask)`,
    see `ballot`: of every member) and the predicate is true; else the mask is zero and the predicate false. The
    tile or subgroup has at most 64 lanes.

    ```mlir
    %mask, %same = qd.subgroup.match_all %v : f32
    ```
  }];
  let arguments = (ins QD_Scalar:$value, Optional<I64>:$members, QD_TileAttr:$tile);
  let results = (outs I64:$mask, I1:$same);
  let assemblyFormat = [{
    $value (`members` `(` $members^ `)`)? (`tile` `(` $tile^ `)`)? attr-dict `:` type($value)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Reductions and scans
//===----------------------------------------------------------------------===//

/// Combines values in lane order: one value by a `kind`, or one or several by a `combine` region.
/// Form: %results = qd.subgroup.NAME (KIND %value | (%values)) [tile(n)] [identity(%identity)] : T, ...
///     [combine (%lower), (%higher) { ... }]
class QD_CombineOp<string mnemonic, list<Trait> traits = [], dag further = (ins)>
    : QD_CollectiveOp<mnemonic, [AttrSizedOperandSegments] # traits> {
  let arguments = !con((ins OptionalAttr<QD_KindAttr>:$kind, Variadic<QD_Scalar>:$values,
                            Variadic<QD_Scalar>:$identity),
                       further, (ins QD_TileAttr:$tile));
  let results = (outs Variadic<QD_Scalar>:$results);
  let regions = (region MaxSizedRegion<1>:$combiner);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

/// As above, over values alone.
class QD_FoldOp<string mnemonic> : QD_CombineOp<mnemonic> {
  let builders = [OpBuilder<(ins "::qd::Kind":$kind, "::mlir::Value":$value,
                                 CArg<"std::optional<int32_t>", "std::nullopt">:$tile)>];
}

def QD_ReduceOp : QD_FoldOp<"reduce"> {
  let summary = "combines the values of all lanes; lane 0 of the tile holds the result";
  let description = [{
    The other lanes hold poison. Lanes that do not exist contribute nothing.

    The operation is a kind, or a region over one or several operands: its first arguments are the lower lane's
    values, its second the higher lane's. The region must be associative and free of memory; it may use values from
    around it, which must be the same on all lanes. The lanes' order is kept; how they are grouped is not said.

    ```mlir
    %sum = qd.subgroup.reduce add %v tile(8) : f32
    %best, %at = qd.subgroup.reduce (%v, %i) : f32, i32 combine (%va, %ia), (%vb, %ib) {
      %isLess = arith.cmpf olt, %vb, %va : f32
      %w = arith.select %isLess, %vb, %va : f32
      %j = arith.select %isLess, %ib, %ia : i32
      qd.yield %w, %j : f32, i32
    }
    ```
  }];
}

def QD_ReduceAllOp : QD_FoldOp<"reduce_all"> {
  let summary = "combines the values of all lanes; every lane holds the result";
  let description = [{ Lanes that do not exist contribute nothing. For the operation see `reduce`. }];
}

def QD_InclusiveScanOp : QD_FoldOp<"inclusive_scan"> {
  let summary = "each lane combines the values of all lanes up to itself";
  let description = [{ For the operation see `reduce`. }];
}

def QD_ExclusiveScanOp : QD_FoldOp<"exclusive_scan"> {
  let summary = "each lane combines the values of all lanes below itself";
  let description = [{
    Lane 0 of the tile holds the identity: a constant of the kind, or with a region the values that `identity` gives.
    For the operation see `reduce`.

    ```mlir
    %a, %b = qd.subgroup.exclusive_scan (%x, %y) identity(%one, %zero) : f32, f32
        combine (%xa, %ya), (%xb, %yb) { ... }
    ```
  }];
}

/// Form: %results = qd.subgroup.NAME [exclusive] (KIND %value | (%values)) head %head [tile(n)] [identity(%identity)]
///     : T, ..., T [combine (%lower), (%higher) { ... }]
def QD_SegmentedScanOp : QD_CombineOp<"segmented_scan", [], (ins AnySignlessInteger:$head, UnitAttr:$exclusive)> {
  let summary = "a scan that restarts at each lane whose head is not zero";
  let description = [{
    Lane 0 of the tile is a head whatever it holds. Inclusive, or after the word `exclusive` without the own value:
    then heads hold the identity. For the operation see `reduce`, for identities `exclusive_scan`.

    ```mlir
    %r = qd.subgroup.segmented_scan add %v head %h : f32, i1
    %q = qd.subgroup.segmented_scan exclusive add %v head %h tile(16) : f32, i1
    ```
  }];
}

/// Form: %results = qd.subgroup.NAME (KIND %value | (%values)) head %head [tile(n)] [identity(%identity)] : T, ..., T
///     [combine (%lower), (%higher) { ... }]
def QD_SegmentedReduceAllOp : QD_CombineOp<"segmented_reduce_all", [], (ins AnySignlessInteger:$head)> {
  let summary = "combines the values of each segment; every lane of the segment holds the result";
  let description = [{
    A segment starts at each lane whose head is not zero, and at lane 0 of the tile. For the operation see `reduce`.
  }];
}

def QD_YieldOp : QD_Op<"yield", [Pure, Terminator,
    ParentOneOf<["ReduceOp", "ReduceAllOp", "InclusiveScanOp", "ExclusiveScanOp", "SegmentedScanOp",
                 "SegmentedReduceAllOp", "BlockReduceOp", "BlockReduceAllOp", "BlockInclusiveScanOp",
                 "BlockExclusiveScanOp", "BlockSegmentedScanOp"]>]> {
  let summary = "ends a `combine` region with the combined values";
  let description = [{ One value of each operand's type. }];
  let arguments = (ins Variadic<QD_Scalar>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

//===----------------------------------------------------------------------===//
// Sorts
//===----------------------------------------------------------------------===//

def QD_BitonicSortOp : QD_CollectiveOp<"bitonic_sort", [AllTypesMatch<["key", "sorted"]>]> {
  let summary = "sorts the keys of the lanes";
  let description = [{
    Lane i of the subgroup or tile holds the i-th smallest key, after the word `descending` the i-th largest.
    Integers compare signed, after `unsigned` unsigned; floats by IEEE 754's totalOrder, but for negative NaNs, which
    come behind positive ones: -0 is below +0, and NaNs are the largest. Lanes that do not exist take no part.

    ```mlir
    %s = qd.subgroup.bitonic_sort descending unsigned %k tile(16) : i32
    ```
  }];
  let arguments = (ins QD_Scalar:$key, UnitAttr:$descending, UnitAttr:$unsigned_keys, QD_TileAttr:$tile);
  let results = (outs QD_Scalar:$sorted);
  let assemblyFormat = [{
    (`descending` $descending^)? (`unsigned` $unsigned_keys^)? $key (`tile` `(` $tile^ `)`)? attr-dict
    `:` type($key)
  }];
  let hasVerifier = 1;
}

def QD_BitonicSortKVOp : QD_CollectiveOp<"bitonic_sort_kv", [AllTypesMatch<["key", "sorted_key"]>,
                                                             AllTypesMatch<["value", "sorted_value"]>]> {
  let summary = "sorts pairs of a key and a value by the key, then by the value";
  let description = [{
    As `bitonic_sort`; pairs of equal keys stand in the order of their values, which an `unsigned` of their own makes
    unsigned. The types of key and value are independent. `descending` turns the order of pairs around.

    ```mlir
    %k2, %v2 = qd.subgroup.bitonic_sort_kv unsigned %k, unsigned %v : i32, i64
    ```
  }];
  let arguments = (ins QD_Scalar:$key, QD_Scalar:$value, UnitAttr:$descending, UnitAttr:$unsigned_keys,
                       UnitAttr:$unsigned_values, QD_TileAttr:$tile);
  let results = (outs QD_Scalar:$sorted_key, QD_Scalar:$sorted_value);
  let assemblyFormat = [{
    (`descending` $descending^)? (`unsigned` $unsigned_keys^)? $key `,` (`unsigned` $unsigned_values^)? $value
    (`tile` `(` $tile^ `)`)? attr-dict `:` type($key) `,` type($value)
  }];
  let hasVerifier = 1;
}

#endif
