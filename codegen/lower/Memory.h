//===- Memory.h - where elements of arrays are, on NVPTX and AMDGCN -------------------------===//

#ifndef QD_CODEGEN_LOWER_MEMORY_H
#define QD_CODEGEN_LOWER_MEMORY_H

#include "codegen/lower/GPUEmitter.h"

namespace qd {

/// The type that an element has in memory: a byte for i1.
llvm::Type *getStorageType(GPUEmitter &e, mlir::Type element);

llvm::Value *emitAddress(GPUEmitter &e, mlir::Value array, mlir::OperandRange indices, llvm::ArrayRef<int64_t> literals,
                         mlir::Type element);

/// The address of the element that an access names.
template <typename Op> llvm::Value *getAddress(GPUEmitter &e, Op op, mlir::Type element) {
  return emitAddress(e, op.getArray(), op.getIndices(), op.getStaticIndices(), element);
}

} // namespace qd

#endif
