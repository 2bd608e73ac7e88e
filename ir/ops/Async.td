//===- Async.td - copies that run beside the thread ---------------------------===//
//
// An asynchronous copy brings elements of a buffer to a shared array without passing through registers, while its
// thread goes on. A thread puts the copies it has started into groups (`async_commit`) and waits for its oldest groups
// (`async_wait`). Chips without such copies copy at once; what is correct there need not be correct elsewhere, and the
// interpreter reports it.
//
//===----------------------------------------------------------------------===//

#ifndef QD_OPS_ASYNC_TD
#define QD_OPS_ASYNC_TD

include "ir/Dialect.td"

/// Form: qd.async_copy %source[SUBSCRIPTS], %target[SUBSCRIPTS] [elements(n)] [if %p] : buffer type to shared type
def QD_AsyncCopyOp : QD_Op<"async_copy", [AttrSizedOperandSegments]> {
  let summary = "starts a copy from a buffer to a shared array";
  let description = [{
    Copies `elements` neighbouring scalars (one where it is not given), 4, 8 or 16 bytes in all, to neighbouring places
    of the shared array, counted row by row. Both ends must be aligned to the bytes copied: the first element's number
    is a multiple of `elements`. With `if %p` no global memory is touched where %p is false, and zeros arrive.

    The elements are there for the thread after its `async_wait`, and for the block's other threads after a barrier
    behind that. Until then nobody may read or write them, or change the source. Legal in divergent control flow.

    ```mlir
    qd.async_copy %x[%i], %tile[%row, %col] elements(4) if %in : !qd.buffer<f32> to !qd.shared<16x64xf32>
    qd.async_commit
    qd.async_wait 0
    qd.block.sync_shared
    ```
  }];
  let arguments = (ins QD_BufferType:$source, Variadic<QD_Int>:$source_indices, QD_SharedType:$target,
                       Variadic<QD_Int>:$target_indices, Optional<I1>:$predicate, DenseI64ArrayAttr:$static_source,
                       DenseI64ArrayAttr:$static_target, DefaultValuedAttr<I32Attr, "1">:$elements);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// 4, 8 or 16.
    unsigned getNumBytes();
  }];
}

def QD_AsyncCommitOp : QD_Op<"async_commit"> {
  let summary = "makes a group of the thread's copies since the last commit";
  let description = [{ A group may be empty. Legal in divergent control flow. }];
  let assemblyFormat = "attr-dict";
}

/// Form: qd.async_wait n
def QD_AsyncWaitOp : QD_Op<"async_wait"> {
  let summary = "waits until at most some of the thread's latest groups are under way";
  let description = [{
    `async_wait 0` waits for all that the thread has committed, `async_wait 1` for all but the latest group. Copies that
    are in no group yet are not waited for. The wait is the thread's own: a barrier behind it makes the copies seen by
    the block's other threads. Legal in divergent control flow.
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative]>:$groups);
  let hasCustomAssemblyFormat = 1;
}

#endif
