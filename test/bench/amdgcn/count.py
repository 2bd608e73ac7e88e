#!/usr/bin/env python3
"""Counts the instructions that collective ops become on AMD chips, and llvm-mca's cycles where it is found.

usage: count.py QDC [--yardstick FILE] [--rows OP,...] [--chips CHIP@LANES,...] [--types TYPE,...] [--tiles]
                    [--keep DIR]
       count.py QDC --markdown

Each kernel loads one value (or a pair) a thread, does the op and stores the result; what a kernel costs that only
loads and stores is taken off. A cell is `instructions+nops/cycles`: nops are what only waits for or hints at the
hardware (s_nop, s_delay_alu, s_clause ...), cycles are those of the code between the loads and the last store, without
barriers. A loop counts as often as it goes round. A yardstick is a table of other code's cells (net instructions +
nops / cycles, `A | B | best | bound`): behind each of our cells then stand its best and its bound, and rows above the
best are marked `>`.

With --tiles, tiles of fewer lanes are compared with the whole wave's best cell, or ours without a yardstick: at most
k / log2(wave) of it, and two more.

With --markdown, the table of docs/amdgpu.md: what each op is made of on every chip.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

CHIPS = ["gfx90a@64", "gfx942@64", "gfx1100@32", "gfx1100@64", "gfx1200@32"]
TYPES = ["f32", "i32", "f64", "i64"]
ALL_CHIPS = ["gfx906@64", "gfx908@64", "gfx90a@64", "gfx942@64", "gfx950@64", "gfx1030@32", "gfx1100@32", "gfx1151@32",
             "gfx1200@32", "gfx1201@32", "gfx1030@64", "gfx1100@64", "gfx1151@64", "gfx1200@64", "gfx1201@64"]

KERNEL = """qd.kernel @{name}({params}, %y: !qd.buffer<{out}>) block(256) {{
  %t = qd.thread_index : i32
{loads}{op}{stores}  qd.return
}}
"""


def op_text(op, ty, tile):
    """The op on %a (and the value %b), as QIR that defines %r (and %s)."""
    clause = f" tile({tile})" if tile else ""
    return {
        "copy": "",
        "copykv": "",
        "copyrank": "",
        "reduce": f"  %r = qd.subgroup.reduce add %a{clause} : {ty}\n",
        "allreduce": f"  %r = qd.subgroup.reduce_all add %a{clause} : {ty}\n",
        "scan": f"  %r = qd.subgroup.inclusive_scan add %a{clause} : {ty}\n",
        "exscan": f"  %r = qd.subgroup.exclusive_scan add %a{clause} : {ty}\n",
        "sortkv": f"  %r, %s = qd.subgroup.bitonic_sort_kv %a, %b{clause} : {ty}, i32\n",
        "blockreduce": f"  %r = qd.block.reduce add %a : {ty}\n",
        "blockscan": f"  %r = qd.block.inclusive_scan add %a : {ty}\n",
        "shuffle": f"  %r = qd.subgroup.shuffle %a, %l : {ty}\n",
        "uniform": f"  %r = qd.subgroup.shuffle %a, %n : {ty}\n",
        "xor1": f"  %r = qd.subgroup.shuffle_xor %a, 1 : {ty}\n",
        "xor4": f"  %r = qd.subgroup.shuffle_xor %a, 4 : {ty}\n",
        "xor16": f"  %r = qd.subgroup.shuffle_xor %a, 16 : {ty}\n",
        "xor32": f"  %r = qd.subgroup.shuffle_xor %a, 32 : {ty}\n",
        "up1": f"  %r = qd.subgroup.shuffle_up %a, 1 : {ty}\n",
        "down1": f"  %r = qd.subgroup.shuffle_down %a, 1 : {ty}\n",
        "down4": f"  %r = qd.subgroup.shuffle_down %a, 4 tile(16) : {ty}\n",
        "broadcast": f"  %r = qd.subgroup.broadcast %a, 5{clause} : {ty}\n",
        "radixrank": f"  %r = qd.block.radix_rank (%a) radix_bits(4) : {ty}\n",
        "radixsort": f"  %r = qd.block.radix_sort (%a) : {ty}\n",
    }[op]


OPS = ["reduce", "allreduce", "scan", "sortkv", "blockreduce", "blockscan", "radixrank", "radixsort"]


def kernel(op, ty, tile=None):
    pair = op in ("sortkv", "copykv")
    rank = op in ("radixrank", "copyrank")
    copies = op.startswith("copy")
    params = f"%x: !qd.buffer<{ty}> readonly"
    loads = f"  %a = qd.load %x[%t] : !qd.buffer<{ty}>\n"
    out = "i32" if rank else ty
    result = "%a" if copies else "%r"
    text = op_text(op, ty, tile)
    if op == "copyrank" and ty == "i64":
        text = "  %r = arith.trunci %a : i64 to i32\n"
        result = "%r"
    stores = f"  qd.store {result}, %y[%t] : !qd.buffer<{out}>\n"
    if op == "shuffle":
        params += ", %lanes: !qd.buffer<i32> readonly"
        loads += "  %l = qd.load %lanes[%t] : !qd.buffer<i32>\n"
    if op == "uniform":
        params += ", %n: i32"
    if pair:
        params += ", %v: !qd.buffer<i32> readonly, %z: !qd.buffer<i32>"
        loads += "  %b = qd.load %v[%t] : !qd.buffer<i32>\n"
        stores += f"  qd.store {'%b' if copies else '%s'}, %z[%t] : !qd.buffer<i32>\n"
    name = f"{op}_{ty}" + (f"_{tile}" if tile else "")
    return name, KERNEL.format(name=name, params=params, out=out, loads=loads, op=text, stores=stores)


def trips(op, ty):
    """How often the loop of a kernel goes round: sorts of 256 keys go by digits of 8 bits."""
    return int(ty[1:]) // 8 if op == "radixsort" else 1


def find_tool(name):
    folder = os.environ.get("LLVM")
    if folder:
        return os.path.join(folder, name)
    return shutil.which(name + "-22") or shutil.which(name)


# --------------------------------------------------------------------------------------------------------------------
# Reading assembly
# --------------------------------------------------------------------------------------------------------------------

class Code:
    """The instructions of one kernel, how often each runs, and what the kernel takes."""

    def __init__(self, text, name, loop_trips):
        body = text.split(f"\n{name}:", 1)[1].split(".Lfunc_end", 1)[0]
        self.ins, labels, branches = [], {}, []
        for line in body.splitlines():
            line = line.split(";")[0].strip()
            label = re.match(r"([.\w$]+):$", line)
            if label:
                labels[label.group(1)] = len(self.ins)
            elif re.match(r"[a-z]+_", line):
                if line.startswith(("s_cbranch", "s_branch")):
                    branches.append((len(self.ins), line.split()[1]))
                self.ins.append(line)
        self.loops = [(labels[to], at) for at, to in branches if labels.get(to, at + 1) <= at]
        self.weight = [loop_trips if any(a <= i <= b for a, b in self.loops) else 1 for i in range(len(self.ins))]
        entry = next(e for e in re.split(r"\n  - ", text.split("amdhsa.kernels:")[-1])
                     if re.search(r"\.name:\s+%s\s" % name, e + "\n"))
        number = lambda key: int(re.search(r"\.%s:\s+(\d+)" % key, entry).group(1))
        self.scratch = number("private_segment_fixed_size")
        self.spills = number("vgpr_spill_count") + number("sgpr_spill_count")
        self.trips = loop_trips

    def count(self):
        nops = sum(w for i, w in zip(self.ins, self.weight) if is_nop(i))
        everything = sum(w for i, w in zip(self.ins, self.weight) if not i.startswith("s_endpgm"))
        return everything - nops, nops

    def body(self):
        """[index] of what stands between the first wait for an input and the last store, without the loads, the stores
        and waits for loads alone."""
        memory = re.compile(r"(global|flat|buffer)_(load|store)")
        stores = [i for i, s in enumerate(self.ins) if re.match(r"(global|flat|buffer)_store", s)]
        end = max(stores, default=len(self.ins))
        first = next((i for i in range(end) if re.match(r"(global|flat|buffer)_load", self.ins[i])), -1)
        begin = next((i + 1 for i in range(first + 1, end)
                      if re.match(r"s_waitcnt.*vmcnt|s_wait_loadcnt", self.ins[i])), first + 1)
        return [i for i in range(begin, end) if not memory.match(self.ins[i])
                and not re.match(r"s_waitcnt vmcnt\(\d+\)$|s_wait_loadcnt ", self.ins[i])]

    def cycles(self, chip):
        parts = collections.defaultdict(list)
        for i in self.body():
            parts[self.weight[i], len([b for _, b in self.loops if b < i])].append(self.ins[i])
        return sum(weight * run_mca(tuple(part), chip) for (weight, _), part in parts.items())


def is_nop(instruction):
    return instruction.split()[0] in ("s_nop", "s_delay_alu", "v_nop", "s_clause", "s_sleep", "s_wait_alu",
                                      "s_waitcnt_depctr")


def run_mca(ins, chip):
    tool = find_tool("llvm-mca")
    ins = [re.sub(r"^(s_c?branch\w*)\s+\S+", r"\1 0", s) for s in ins if not s.startswith("s_barrier")]
    if not tool or not ins:
        return 0
    name, lanes = chip.split("@")
    command = [tool, "-mtriple=amdgcn-amd-amdhsa", "-mcpu=" + name, "-iterations=1", "-instruction-info=false",
               "-resource-pressure=false"]
    if not name.startswith("gfx9"):
        command.append("-mattr=+wavefrontsize" + lanes)
    done = subprocess.run(command, input="\n".join(ins) + "\n", capture_output=True, text=True)
    found = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    if not found:
        sys.exit(f"llvm-mca, {chip}: {done.stderr[:600]}")
    return int(found.group(1))


# --------------------------------------------------------------------------------------------------------------------
# Tables
# --------------------------------------------------------------------------------------------------------------------

def read_yardstick(path):
    """{(op, type, chip@lanes): (best, bound)}, in instructions and cycles; of rows without a best, the first column."""
    cells, op, chips = {}, None, []
    for line in open(path):
        heads = re.findall(r"(gfx\w+) w(\d+)", line)
        if heads:
            op, chips = line.split()[0], ["@".join(h) for h in heads]
        elif not line.strip():
            op = None
        elif op:
            ty = line.split()[0]
            columns = re.findall(r"(\S+) \| (\S+) \| (\S+) \| (\d+)", line)
            for chip, column in zip(chips, columns):
                best = column[2] if column[2] != "-" else column[0]
                net, _, cycles = re.match(r"(\d+)\+(\d+)/(\d+)", best).groups()
                cells[op, ty, chip] = (int(net), int(cycles), int(column[3]))
    return cells


class Compiler:
    def __init__(self, qdc, keep):
        self.qdc, self.keep, self.cache = qdc, keep, {}

    def compile_all(self, kernels, chip):
        """Assembly of all kernels, as one module each chip."""
        with tempfile.TemporaryDirectory() as folder:
            folder = self.keep or folder
            source = os.path.join(folder, f"{chip}.qir")
            with open(source, "w") as file:
                file.write("\n".join(text for _, text in kernels))
            done = subprocess.run([self.qdc, source, "-target=amdgcn:" + chip, "--emit=asm", "-O3", "-o", "-"],
                                  capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)
            if self.keep:
                with open(os.path.join(folder, f"{chip}.s"), "w") as file:
                    file.write(done.stdout)
            return done.stdout


def base_of(op):
    return {"sortkv": "copykv", "radixrank": "copyrank"}.get(op, "copy")


def measure(text, op, ty, chip, tile=None):
    name = f"{op}_{ty}" + (f"_{tile}" if tile else "")
    code, base = Code(text, name, trips(op, ty)), Code(text, f"{base_of(op)}_{ty}", 1)
    net, nops = code.count()
    base_net, base_nops = base.count()
    return net - base_net, nops - base_nops, code.cycles(chip), code


def legal(op, ty):
    return not (op == "radixrank" and ty.startswith("f"))


def print_counts(args, yardstick):
    below = equal = above = bound = 0
    for op in args.rows:
        print(f"\n{op:12}" + "".join(f"{c:>30}" for c in args.chips))
        for ty in [t for t in args.types if legal(op, t)]:
            cells = []
            for chip in args.chips:
                net, nops, cycles, code = measure(args.text[chip], op, ty, chip)
                cell = f"{net}+{nops}/{cycles}" + ("S" if code.scratch or code.spills else "")
                if (op, ty, chip) in yardstick:
                    best, best_cycles, least = yardstick[op, ty, chip]
                    mark = ">" if net > best else "=" if net == best else "<"
                    above += mark == ">"
                    equal += mark == "="
                    below += mark == "<"
                    bound += net <= least
                    slower = "~" if cycles > best_cycles else ""
                    cell += f" {mark}{slower} {best}/{best_cycles} ({least})"
                cells.append(cell)
            print(f"  {ty:10}" + "".join(f"{c:>30}" for c in cells))
    if yardstick:
        print(f"\nbelow the best {below}, equal {equal}, above {above}; at the bound or below {bound}")


def print_tiles(args, yardstick):
    """Tiles of 2^k lanes cost at most k / log2(wave) of the wave's best instructions, and two more."""
    failed = 0
    for op in ["reduce", "allreduce", "scan", "sortkv"]:
        if op not in args.rows:
            continue
        for ty in args.types:
            for chip in args.chips:
                lanes = int(chip.split("@")[1])
                best = yardstick.get((op, ty, chip))
                whole = best[0] if best else measure(args.text[chip], op, ty, chip)[0]
                levels = lanes.bit_length() - 1
                for k in range(1, levels):
                    net = measure(args.text[chip], op, ty, chip, 1 << k)[0]
                    allowed = whole * k / levels + 2
                    failed += net > allowed
                    mark = " >" if net > allowed else ""
                    print(f"{op} {ty} {chip} tile {1 << k}: {net}, allowed {allowed:.1f}{mark}")
    print(f"{failed} above")


TABLE = [
    ("shuffle_xor 1", "xor1", "i32", None), ("shuffle_xor 4", "xor4", "i32", None),
    ("shuffle_xor 16", "xor16", "i32", None), ("shuffle_xor 32", "xor32", "i32", None),
    ("shuffle_up 1", "up1", "i32", None), ("shuffle_down 1", "down1", "i32", None),
    ("shuffle_down 4 tile(16)", "down4", "i32", None), ("broadcast 5", "broadcast", "i32", None),
    ("broadcast 5 tile(16)", "broadcast", "i32", 16), ("shuffle, uniform lane", "uniform", "i32", None),
    ("shuffle, any lane", "shuffle", "i32", None),
    ("reduce_all add tile(8) f32", "allreduce", "f32", 8), ("reduce_all add tile(32) f32", "allreduce", "f32", 32),
    ("reduce_all add f32", "allreduce", "f32", None), ("reduce_all add i64", "allreduce", "i64", None),
    ("reduce_all add f64", "allreduce", "f64", None), ("inclusive_scan add f32", "scan", "f32", None),
    ("inclusive_scan add i32", "scan", "i32", None), ("inclusive_scan add f64", "scan", "f64", None),
    ("exclusive_scan add f32", "exscan", "f32", None),
    ("block.reduce add f32, 256 threads", "blockreduce", "f32", None),
    ("block.inclusive_scan add f32, 256 threads", "blockscan", "f32", None),
]


def mnemonics(code):
    """Instructions but for those that only wait, as the ISA manuals call them."""
    names = [re.sub(r"_e(32|64)(?=_dpp|$)", "", word) for i in code.ins for word in [i.split()[0]]
             if not is_nop(i) and not word.startswith(("s_waitcnt", "s_wait_", "s_endpgm"))]
    return [re.sub(r"(dpp8)?_dpp$", "_dpp", name) for name in names]


def label(chips):
    """Chips by name: families whole where they are."""
    left, words = list(chips), []
    for word, family in (("gfx9", [c for c in ALL_CHIPS if c.startswith("gfx9")]),
                         ("gfx10 to 12 (32)", [c for c in ALL_CHIPS if c.endswith("@32")]),
                         ("gfx10 to 12 (64)", [c for c in ALL_CHIPS if c.startswith("gfx1") and c.endswith("@64")])):
        if all(c in left for c in family):
            words.append(word)
            left = [c for c in left if c not in family]
    words += [c.split("@")[0] if c.startswith("gfx9") else "{} ({})".format(*c.split("@")) for c in left]
    return ", ".join(words)


def print_markdown(args):
    print("| op | chips | instructions | made of |\n| --- | --- | --- | --- |")
    for title, op, ty, tile in TABLE:
        groups = {}
        for chip in args.chips:
            if op == "xor32" and chip.endswith("@32"):
                continue
            extra = {"shuffle": 1}.get(op, 0)
            net, _, _, code = measure(args.text[chip], op, ty, chip, tile)
            base = Code(args.text[chip], f"{base_of(op)}_{ty}", 1)
            left = collections.Counter(mnemonics(code)) - collections.Counter(mnemonics(base))
            left = {n: k for n, k in left.items() if not n.startswith(("global_load", "s_load", "global_store"))}
            text = ", ".join(f"{k} {n}" if k > 1 else n for n, k in left.items())
            groups.setdefault((net - 2 * extra, text), []).append(chip)
        for (net, text), chips in groups.items():
            print(f"| {title} | {label(chips)} | {net} | {text} |")
            title = ""


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("qdc")
    parser.add_argument("--yardstick")
    parser.add_argument("--rows", default=",".join(OPS))
    parser.add_argument("--chips", default="")
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--tiles", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--keep")
    args = parser.parse_args()
    args.rows, args.types = args.rows.split(","), args.types.split(",")
    args.chips = args.chips.split(",") if args.chips else ALL_CHIPS if args.markdown else CHIPS
    compiler = Compiler(args.qdc, args.keep)
    yardstick = read_yardstick(args.yardstick) if args.yardstick else {}
    args.text = {}
    for chip in args.chips:
        lanes = int(chip.split("@")[1])
        kernels = [kernel(op, ty) for op in ["copy", "copykv", "copyrank"] + args.rows for ty in args.types
                   if legal(op, ty) and not (op == "copyrank" and ty.startswith("f"))]
        if args.markdown:
            kernels = [kernel("copy", ty) for ty in args.types]
            kernels += [kernel(op, ty, tile) for _, op, ty, tile in TABLE if op != "xor32" or lanes == 64]
        if args.tiles:
            kernels += [kernel(op, ty, 1 << k) for op in ["reduce", "allreduce", "scan", "sortkv"] if op in args.rows
                        for ty in args.types for k in range(1, lanes.bit_length() - 1)]
        args.text[chip] = compiler.compile_all(kernels, chip)
    if args.markdown:
        return print_markdown(args)
    print_tiles(args, yardstick) if args.tiles else print_counts(args, yardstick)


main()
