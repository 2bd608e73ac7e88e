//===- Subgroup.h - pieces that subgroup lowerings share -------------------------------------===//

#ifndef QD_CODEGEN_LOWER_SUBGROUP_H
#define QD_CODEGEN_LOWER_SUBGROUP_H

#include "codegen/lower/GPUEmitter.h"

namespace qd {

/// NVPTX: the lanes of this subgroup that exist, as the member mask of .sync instructions (i32).
llvm::Value *getMemberMask(GPUEmitter &e);

/// Applies `move`, which moves an i32 between lanes, to a value of any scalar type: narrower ones are widened,
/// 64-bit ones go as two halves.
llvm::Value *moveAsWords(GPUEmitter &e, llvm::Value *value,
                         llvm::function_ref<llvm::Value *(llvm::Value *word)> move);

/// The AMDGCN column.
namespace amdgcn {
void lowerShuffle(GPUEmitter &e, mlir::Operation *op);
void lowerBroadcast(GPUEmitter &e, mlir::Operation *op);
void lowerBroadcastFirst(GPUEmitter &e, mlir::Operation *op);
void lowerShuffleXor(GPUEmitter &e, mlir::Operation *op);
void lowerShuffleUp(GPUEmitter &e, mlir::Operation *op);
void lowerShuffleDown(GPUEmitter &e, mlir::Operation *op);
void lowerBallot(GPUEmitter &e, mlir::Operation *op);
void lowerAll(GPUEmitter &e, mlir::Operation *op);
void lowerAny(GPUEmitter &e, mlir::Operation *op);
} // namespace amdgcn

} // namespace qd

#endif
