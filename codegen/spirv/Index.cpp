//===- Index.cpp - ids of threads, blocks and the grid, on SPIR-V ---------------------===//

#include "codegen/spirv/KernelLowering.h"

using namespace mlir;
using namespace spv;

namespace qd::spirv {

/// Sets the result, which is i32 or i64, to a 32-bit `id`.
static LogicalResult setIndex(KernelLowering &l, Operation *op, Id id) {
  return l.setResult(op, l.resize(id, 32, op->getResult(0).getType().getIntOrFloatBitWidth()));
}

static LogicalResult lowerThreadId(KernelLowering &l, Operation *op, const OpRow &) {
  return setIndex(l, op, l.getThreadId(unsigned(cast<ThreadIdOp>(op).getDim())));
}

static LogicalResult lowerThreadIndex(KernelLowering &l, Operation *op, const OpRow &) {
  return setIndex(l, op, l.getThreadIndex());
}

static LogicalResult lowerBlockId(KernelLowering &l, Operation *op, const OpRow &) {
  return setIndex(l, op, l.getBlockId(unsigned(cast<BlockIdOp>(op).getDim())));
}

static LogicalResult lowerBlockDim(KernelLowering &l, Operation *op, const OpRow &) {
  return setIndex(l, op, l.getU32(l.kernel.getBlockDim(unsigned(cast<BlockDimOp>(op).getDim()))));
}

static LogicalResult lowerGridDim(KernelLowering &l, Operation *op, const OpRow &) {
  return setIndex(l, op, l.getGridDim(unsigned(cast<GridDimOp>(op).getDim())));
}

static LogicalResult lowerGlobalThreadId(KernelLowering &l, Operation *op, const OpRow &) {
  unsigned dim = unsigned(cast<GlobalThreadIdOp>(op).getDim());
  unsigned width = op->getResult(0).getType().getIntOrFloatBitWidth();
  Id type = l.getType(op->getResult(0).getType());
  Id extent = l.b.getInt(width, l.kernel.getBlockDim(dim));
  Id first = l.emit(Op::OpIMul, type, {l.resize(l.getBlockId(dim), 32, width), extent});
  return l.setResult(op, l.emit(Op::OpIAdd, type, {first, l.resize(l.getThreadId(dim), 32, width)}));
}

ArrayRef<OpRow> getIndexRows() {
  static const OpRow rows[] = {
      makeRow<ThreadIdOp>(lowerThreadId),
      makeRow<ThreadIndexOp>(lowerThreadIndex),
      makeRow<BlockIdOp>(lowerBlockId),
      makeRow<BlockDimOp>(lowerBlockDim),
      makeRow<GridDimOp>(lowerGridDim),
      makeRow<GlobalThreadIdOp>(lowerGlobalThreadId),
  };
  return rows;
}

} // namespace qd::spirv
