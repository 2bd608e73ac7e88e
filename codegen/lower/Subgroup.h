//===- Subgroup.h - pieces that subgroup lowerings share -------------------------------------===//

#ifndef QD_CODEGEN_LOWER_SUBGROUP_H
#define QD_CODEGEN_LOWER_SUBGROUP_H

#include "codegen/lower/GPUEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace qd {

/// Applies `move`, which moves an i32 between lanes, to a value of any scalar type: narrower ones are widened,
/// 64-bit ones go as two halves.
llvm::Value *moveAsWords(GPUEmitter &e, llvm::Value *value,
                         llvm::function_ref<llvm::Value *(llvm::Value *word)> move);

template <typename Op> unsigned getTile(GPUEmitter &e, Op op) {
  return op.getTile().value_or(e.target.subgroupSize);
}

/// The lane, offset or mask of a shuffle as an i32.
template <typename Op> llvm::Value *getLaneOperand(GPUEmitter &e, Op op) {
  return op.getLane() ? e.get(op.getLane()) : e.b.getInt32(*op.getStaticLane());
}

/// The NVPTX column.
namespace nvptx {
/// The lanes of this subgroup that exist, as the member mask of .sync instructions (i32).
llvm::Value *getMemberMask(GPUEmitter &e);

void lowerShuffle(GPUEmitter &e, mlir::Operation *op);
void lowerBroadcast(GPUEmitter &e, mlir::Operation *op);
void lowerBroadcastFirst(GPUEmitter &e, mlir::Operation *op);
void lowerShuffleXor(GPUEmitter &e, mlir::Operation *op);
void lowerShuffleUp(GPUEmitter &e, mlir::Operation *op);
void lowerShuffleDown(GPUEmitter &e, mlir::Operation *op);
void lowerBallot(GPUEmitter &e, mlir::Operation *op);
void lowerAll(GPUEmitter &e, mlir::Operation *op);
void lowerAny(GPUEmitter &e, mlir::Operation *op);
void lowerAllEqual(GPUEmitter &e, mlir::Operation *op);
void lowerActiveMask(GPUEmitter &e, mlir::Operation *op);
void lowerMatchAny(GPUEmitter &e, mlir::Operation *op);
void lowerMatchAll(GPUEmitter &e, mlir::Operation *op);
void lowerReduceAll(GPUEmitter &e, mlir::Operation *op);
void lowerLaneMask(GPUEmitter &e, mlir::Operation *op);
void lowerAssumeUniform(GPUEmitter &e, mlir::Operation *op);
void lowerSync(GPUEmitter &e, mlir::Operation *op);
void lowerMemFence(GPUEmitter &e, mlir::Operation *op);
} // namespace nvptx

/// The AMDGCN column.
namespace amdgcn {
/// The result of a move as it is where it is made: LLVM 22 takes permlane64 and dpp8 for arithmetic, which it carries
/// out where the result is used, and there lanes that are read may be inactive.
llvm::Value *emitPinned(GPUEmitter &e, llvm::Value *moved);

/// The result of a comparison of bits of the lane's number with a constant, where it costs less as a constant mask of
/// the wave; else null.
llvm::Value *emitLaneBit(GPUEmitter &e, mlir::arith::CmpIOp compare);

/// Two such masks that differ, as one; else null.
llvm::Value *emitLaneDifference(GPUEmitter &e, mlir::arith::XOrIOp difference);

void lowerShuffle(GPUEmitter &e, mlir::Operation *op);
void lowerBroadcast(GPUEmitter &e, mlir::Operation *op);
void lowerBroadcastFirst(GPUEmitter &e, mlir::Operation *op);
void lowerShuffleXor(GPUEmitter &e, mlir::Operation *op);
void lowerShuffleUp(GPUEmitter &e, mlir::Operation *op);
void lowerShuffleDown(GPUEmitter &e, mlir::Operation *op);
void lowerBallot(GPUEmitter &e, mlir::Operation *op);
void lowerAll(GPUEmitter &e, mlir::Operation *op);
void lowerAny(GPUEmitter &e, mlir::Operation *op);
void lowerActiveMask(GPUEmitter &e, mlir::Operation *op);
void lowerReduce(GPUEmitter &e, mlir::Operation *op);
void lowerReduceAll(GPUEmitter &e, mlir::Operation *op);
void lowerInclusiveScan(GPUEmitter &e, mlir::Operation *op);
void lowerAssumeUniform(GPUEmitter &e, mlir::Operation *op);
void lowerSync(GPUEmitter &e, mlir::Operation *op);
void lowerMemFence(GPUEmitter &e, mlir::Operation *op);
} // namespace amdgcn

} // namespace qd

#endif
