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

def QD_GridSyncOp : QD_Op<"grid.sync", [QD_Convergent]> {
  let summary = "waits for all threads of the grid";
  let description = [{
    Also orders memory: what any thread wrote to global memory before it, every thread of the grid sees after it. All
    threads of all blocks must reach it. It exists where a launch can have all blocks run at once: on CUDA and HIP
    (a cooperative launch, which refuses a grid that is too large for the device), cpu, interp and sim. Vulkan, Metal
    and OpenCL have no such launch, so that the op is an error there.

    ```mlir
    qd.store %sum, %partials[%b] : !qd.buffer<f32>
    qd.grid.sync
    %v = qd.load %partials[%t] : !qd.buffer<f32>
    ```
  }];
  let assemblyFormat = "attr-dict";
}

#endif
