//===- Block.td - operations of a whole block ------------------------------===//

#ifndef QD_OPS_BLOCK_TD
#define QD_OPS_BLOCK_TD

include "ir/Dialect.td"

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

#endif
