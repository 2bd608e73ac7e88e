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

} // namespace qd

#endif
