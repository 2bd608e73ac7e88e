//===- ReadAhead.cpp - what the next block will read -----------------------------------------------------------===//
//
// A block with barriers reads what it works on at once. Where it then works for long, the processor does not read ahead
// of such bursts as it does of a steady stream, and waits at the next block's first loads. Where those are at a known
// distance from this block's, a prefetch stands with each load.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/KernelEmitter.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace qd {

/// By how much the value rises from a block to the next one along x; nothing where that is not known.
static std::optional<int64_t> getBlockStride(Value value, KernelOp kernel, unsigned depth = 0) {
  constexpr unsigned maxDepth = 8;
  Operation *op = value.getDefiningOp();
  if (!op)
    return isa<KernelOp>(value.getParentBlock()->getParentOp()) ? std::optional<int64_t>(0) : std::nullopt;
  if (depth == maxDepth)
    return std::nullopt;
  if (auto id = dyn_cast<GlobalThreadIdOp>(op))
    return id.getDim() == Dim::x ? kernel.getBlockDim(0) : 0;
  if (auto id = dyn_cast<BlockIdOp>(op))
    return id.getDim() == Dim::x ? 1 : 0;
  if (isa<ThreadIdOp, ThreadIndexOp, LaneIdOp, arith::ConstantOp>(op))
    return 0;
  auto strideOf = [&](unsigned operand) { return getBlockStride(op->getOperand(operand), kernel, depth + 1); };
  if (isa<arith::ExtSIOp, arith::ExtUIOp>(op))
    return strideOf(0);
  if (!isa<arith::AddIOp, arith::MulIOp, arith::ShLIOp>(op))
    return std::nullopt;
  std::optional<int64_t> left = strideOf(0), right = strideOf(1);
  constexpr int64_t limit = int64_t(1) << 31;
  if (!left || !right || *left > limit || *right > limit)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return *left + *right;
  APInt factor;
  if (*right || !matchPattern(op->getOperand(1), m_ConstantInt(&factor)) || factor.getActiveBits() > 16)
    return *left || *right ? std::nullopt : std::optional<int64_t>(0);
  return isa<arith::ShLIOp>(op) ? *left << factor.getZExtValue() % 32 : *left * int64_t(factor.getZExtValue());
}

/// Behind a load of consecutive elements from there on.
void KernelEmitter::readAhead(LoadOp op, llvm::Value *pointer) {
  constexpr int64_t line = 64, maxDistance = 16 * 1024;
  if (!readsAhead || !isa<BufferType>(op.getArray().getType()) || op.getIndices().size() != 1)
    return;
  std::optional<int64_t> stride = getBlockStride(op.getIndices().front(), kernel);
  int64_t bytes = getStorageBytes(op.getType()), distance = stride.value_or(0) * bytes;
  if (distance < line || distance > maxDistance)
    return;
  for (int64_t at = 0; at < bytes * int64_t(lanes); at += line) {
    llvm::Value *ahead = b.CreateConstGEP1_64(b.getInt8Ty(), pointer, distance + at);
    llvm::Value *isWrite = b.getInt32(0), *allCaches = b.getInt32(3), *isData = b.getInt32(1);
    b.CreateIntrinsic(llvm::Intrinsic::prefetch, {b.getPtrTy()}, {ahead, isWrite, allCaches, isData});
  }
}

} // namespace qd
