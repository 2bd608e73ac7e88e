//===- Index.td - where a thread stands in its block and grid --------------===//

#ifndef QD_OPS_INDEX_TD
#define QD_OPS_INDEX_TD

include "ir/Dialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class QD_DimOp<string mnemonic> : QD_Op<mnemonic, [Pure]> {
  let arguments = (ins QD_DimAttr:$dim);
  let results = (outs QD_Int:$result);
  let assemblyFormat = "custom<Enum>($dim) attr-dict `:` type($result)";
}

def QD_ThreadIdOp : QD_DimOp<"thread_id"> {
  let summary = "the thread's position in its block along a dimension";
  let description = [{ From 0 to `block_dim` - 1. }];
}

def QD_BlockIdOp : QD_DimOp<"block_id"> {
  let summary = "the block's position in the grid along a dimension";
  let description = [{ From 0 to `grid_dim` - 1. }];
}

def QD_BlockDimOp : QD_DimOp<"block_dim"> {
  let summary = "threads of a block along a dimension";
  let description = [{ A constant of the kernel: its `block(...)`. }];
}

def QD_GridDimOp : QD_DimOp<"grid_dim"> {
  let summary = "blocks of the grid along a dimension";
  let description = [{ Chosen by the launch. }];
}

def QD_GlobalThreadIdOp : QD_DimOp<"global_thread_id"> {
  let summary = "the thread's position in the whole grid along a dimension";
  let description = [{ `block_id * block_dim + thread_id`, computed in the result's type. }];
}

def QD_ThreadIndexOp : QD_Op<"thread_index", [Pure]> {
  let summary = "the thread's number in its block, counting x fastest";
  let description = [{
    `(z * block_dim y + y) * block_dim x + x`. A thread's lane is this number modulo the subgroup's size,
    on every target.
  }];
  let results = (outs QD_Int:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

#endif
