//===- Grid.td - operations of the whole grid -------------------------------===//

#ifndef QD_OPS_GRID_TD
#define QD_OPS_GRID_TD

include "ir/Dialect.td"

def QD_GridMemFenceOp : QD_Op<"grid.mem_fence"> {
  let summary = "orders the thread's memory accesses for the whole device";
  let description = [{
    As `block.mem_fence`, for all threads of the grid: what a block writes before it, another block sees that has read
    a flag written behind it, with a fence of its own. Flags are read and written by atomic accesses. Waits for
    nobody; legal in divergent control flow.

    ```mlir
    qd.store %sum, %partials[%b] : !qd.buffer<f32>
    qd.grid.mem_fence
    qd.atomic_store %ready, %flags[%b] : !qd.buffer<i32>
    ```
  }];
  let assemblyFormat = "attr-dict";
}

#endif
