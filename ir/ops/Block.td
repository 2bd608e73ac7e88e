//===- Block.td - operations of a whole block ------------------------------===//

#ifndef QD_OPS_BLOCK_TD
#define QD_OPS_BLOCK_TD

include "ir/ops/Subgroup.td"

def QD_BlockSyncOp : QD_Op<"block.sync", [QD_Convergent]> {
  let summary = "waits for all threads of the block";
  let description = [{
    Also orders memory: what any thread of the block wrote to shared or global memory before it, every
    thread of the block sees after it. All threads of the block must reach it.
  }];
  let assemblyFormat = "attr-dict";
}

def QD_BlockMemFenceOp : QD_Op<"block.mem_fence"> {
  let summary = "orders the thread's memory accesses for its block";
  let description = [{
    Accesses to shared and global memory before it come before those after it, as the block's threads see them: a
    fence that acquires and releases. With a relaxed atomic access behind it in one thread, which another thread's
    relaxed atomic access reads before a fence of its own, it synchronises the two as in C++. Waits for nobody; legal
    in divergent control flow.
  }];
  let assemblyFormat = "attr-dict";
}

/// An op that all threads of the block carry out together. What it stages in shared memory is its own.
class QD_BlockOp<string mnemonic, list<Trait> traits = []>
    : QD_Op<"block." # mnemonic, [QD_Convergent, NoMemoryEffect] # traits>;

def QD_BlockSyncSharedOp : QD_Op<"block.sync_shared", [QD_Convergent]> {
  let summary = "waits for all threads of the block, and orders shared memory alone";
  let description = [{
    As `block.sync`, but what threads wrote to global memory before it need not be seen after it.
  }];
  let assemblyFormat = "attr-dict";
}

def QD_BlockElectOp : QD_Op<"block.elect", [Pure]> {
  let summary = "true on the block's thread 0";
  let description = [{ False on all other threads. }];
  let results = (outs I1:$result);
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Barriers with a predicate
//===----------------------------------------------------------------------===//

/// A barrier as `block.sync` that also counts.
class QD_BlockVoteOp<string mnemonic, Type type> : QD_Op<"block." # mnemonic, [QD_Convergent]> {
  let arguments = (ins I1:$predicate);
  let results = (outs type:$result);
  let assemblyFormat = "$predicate attr-dict";
}

def QD_BlockSyncAllOp : QD_BlockVoteOp<"sync_all", I1> {
  let summary = "a barrier that tells whether the predicate holds on every thread of the block";
  let description = [{ Waits and orders memory as `block.sync`; every thread gets the result. }];
}

def QD_BlockSyncAnyOp : QD_BlockVoteOp<"sync_any", I1> {
  let summary = "a barrier that tells whether the predicate holds on some thread of the block";
  let description = [{ Waits and orders memory as `block.sync`; every thread gets the result. }];
}

def QD_BlockSyncCountOp : QD_BlockVoteOp<"sync_count", I32> {
  let summary = "a barrier that counts the block's threads on which the predicate holds";
  let description = [{ Waits and orders memory as `block.sync`; every thread gets the result. }];
}

//===----------------------------------------------------------------------===//
// Data movement, reductions and scans
//===----------------------------------------------------------------------===//

def QD_BlockBroadcastOp : QD_BlockOp<"broadcast", [AllTypesMatch<["value", "result"]>]> {
  let summary = "all threads of the block read the value of one thread";
  let description = [{
    The thread is named by its index, an operand or a literal, below the number of threads and the same on all of
    them.

    ```mlir
    %w = qd.block.broadcast %v, 0 : f32
    ```
  }];
  let arguments = (ins QD_Scalar:$value, Optional<I32>:$lane, OptionalAttr<I32Attr>:$static_lane);
  let results = (outs QD_Scalar:$result);
  let assemblyFormat = "$value `,` custom<LaneOperand>($lane, $static_lane) attr-dict `:` type($value)";
  let hasVerifier = 1;
}

/// Combines values in thread order; see `subgroup.reduce` for kinds and `combine` regions.
class QD_BlockCombineOp<string mnemonic, dag further = (ins)>
    : QD_BlockOp<mnemonic, [AttrSizedOperandSegments]> {
  let arguments = !con((ins OptionalAttr<QD_KindAttr>:$kind, Variadic<QD_Scalar>:$values,
                            Variadic<QD_Scalar>:$identity), further);
  let results = (outs Variadic<QD_Scalar>:$results);
  let regions = (region MaxSizedRegion<1>:$combiner);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def QD_BlockReduceOp : QD_BlockCombineOp<"reduce"> {
  let summary = "combines the values of all threads of the block; thread 0 holds the result";
  let description = [{
    The other threads hold poison. Threads count x fastest; blocks of any size and shape will do. The operation is a
    kind or a region, as for `subgroup.reduce`; threads are combined in their order.

    ```mlir
    %sum = qd.block.reduce add %v : f32
    %best, %at = qd.block.reduce (%v, %i) : f32, i32 combine (%va, %ia), (%vb, %ib) { ... }
    ```
  }];
}

def QD_BlockReduceAllOp : QD_BlockCombineOp<"reduce_all"> {
  let summary = "combines the values of all threads of the block; every thread holds the result";
  let description = [{ For the operation see `subgroup.reduce`. }];
}

def QD_BlockInclusiveScanOp : QD_BlockCombineOp<"inclusive_scan"> {
  let summary = "each thread combines the values of the block's threads up to itself";
  let description = [{ For the operation see `subgroup.reduce`. }];
}

def QD_BlockExclusiveScanOp : QD_BlockCombineOp<"exclusive_scan"> {
  let summary = "each thread combines the values of the block's threads below itself";
  let description = [{ Thread 0 holds the identity. For the operation see `subgroup.exclusive_scan`. }];
}

def QD_BlockSegmentedScanOp : QD_BlockCombineOp<"segmented_scan", (ins AnySignlessInteger:$head, UnitAttr:$exclusive)> {
  let summary = "a scan of the block that restarts at each thread whose head is not zero";
  let description = [{ Thread 0 is a head whatever it holds. See `subgroup.segmented_scan`. }];
}

//===----------------------------------------------------------------------===//
// Sorts
//===----------------------------------------------------------------------===//

def QD_BlockBitonicSortOp : QD_BlockOp<"bitonic_sort", [AllTypesMatch<["key", "sorted"]>]> {
  let summary = "sorts the keys of the block's threads";
  let description = [{
    Thread i holds the i-th smallest key, after the word `descending` the i-th largest. For the order see
    `subgroup.bitonic_sort`. Blocks of any size will do.
  }];
  let arguments = (ins QD_Scalar:$key, UnitAttr:$descending, UnitAttr:$unsigned_keys);
  let results = (outs QD_Scalar:$sorted);
  let assemblyFormat = [{
    (`descending` $descending^)? (`unsigned` $unsigned_keys^)? $key attr-dict `:` type($key)
  }];
  let hasVerifier = 1;
}

def QD_BlockBitonicSortKVOp : QD_BlockOp<"bitonic_sort_kv", [AllTypesMatch<["key", "sorted_key"]>,
                                                             AllTypesMatch<["value", "sorted_value"]>]> {
  let summary = "sorts the block's pairs of a key and a value by the key, then by the value";
  let description = [{ As `block.bitonic_sort`; for equal keys see `subgroup.bitonic_sort_kv`. }];
  let arguments = (ins QD_Scalar:$key, QD_Scalar:$value, UnitAttr:$descending, UnitAttr:$unsigned_keys,
                       UnitAttr:$unsigned_values);
  let results = (outs QD_Scalar:$sorted_key, QD_Scalar:$sorted_value);
  let assemblyFormat = [{
    (`descending` $descending^)? (`unsigned` $unsigned_keys^)? $key `,` (`unsigned` $unsigned_values^)? $value
    attr-dict `:` type($key) `,` type($value)
  }];
  let hasVerifier = 1;
}

def QD_BlockRadixRankOp : QD_Op<"block.radix_rank", [QD_Convergent, AttrSizedOperandSegments]> {
  let summary = "the places of the block's keys when sorted by one digit, stably";
  let description = [{
    Each thread gives one or several keys, i32 or i64. A key's digit is `(key >> begin) & (2^num_bits - 1)`, the
    shift unsigned; its rank is the number of keys with a smaller digit, and of those with the same digit that come
    before it in the order thread, then operand. `radix_bits`, 1 to 10, sizes the arrays; `num_bits`, at most as
    many (and as many where it is not given), masks the digit. `begin` is an operand, the same on all threads, or a
    literal, and 0 where it is not given.

    Shared arrays of 2^radix_bits i32 may be given: into `bins` goes how many keys have each digit, into `prefix`
    how many have a smaller one. All threads see them after the op.

    ```mlir
    %r0, %r1 = qd.block.radix_rank (%k0, %k1) radix_bits(8) num_bits(4) begin(%b) bins(%bins) prefix(%prefix) : i32
    ```
  }];
  let arguments = (ins Variadic<QD_Int>:$keys, Optional<I32>:$begin, Optional<QD_SharedType>:$bins,
                       Optional<QD_SharedType>:$prefix, OptionalAttr<I32Attr>:$static_begin, I32Attr:$radix_bits,
                       OptionalAttr<I32Attr>:$num_bits);
  let results = (outs Variadic<I32>:$ranks);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def QD_BlockRadixSortOp : QD_BlockOp<"radix_sort", [AttrSizedOperandSegments]> {
  let summary = "sorts the block's keys, and values with them, stably";
  let description = [{
    Each thread gives one or several keys and as many values or none; keys are of one type, values of another.
    Afterwards thread 0 holds the first keys of the sorted order, thread 1 the next, and so on. The sort looks at
    bits from `begin` to `end` of the key (all where they are not given) and keeps the order thread, then operand
    among equal keys. For `descending`, `unsigned` and the order of floats see `subgroup.bitonic_sort`. Bits are those
    of the key's place in the ascending order, counted from 0: of an unsigned key its own, of a signed one with the
    highest flipped. With m as the bits of a float's magnitude and inf as those of infinity, the place is m + inf + 1
    for positive floats and inf - m for negative ones.

    ```mlir
    %a, %b = qd.block.radix_sort unsigned (%k0, %k1) : i32
    %c, %v = qd.block.radix_sort descending (%k) values(%x) begin(0) end(16) : i32, f32
    ```
  }];
  let arguments = (ins Variadic<QD_Scalar>:$keys, Variadic<QD_Scalar>:$values, UnitAttr:$descending,
                       UnitAttr:$unsigned_keys, OptionalAttr<I32Attr>:$begin, OptionalAttr<I32Attr>:$end);
  let results = (outs Variadic<QD_Scalar>:$sorted);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif
