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

#endif
