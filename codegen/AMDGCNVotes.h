//===- AMDGCNVotes.h - votes on comparisons of floats -----------------------------------------===//

#ifndef QD_CODEGEN_AMDGCNVOTES_H
#define QD_CODEGEN_AMDGCNVOTES_H

#include "llvm/IR/Function.h"

namespace qd {

/// Votes on whether numbers are ordered and unequal, in waves of `waveSize` lanes, become votes on the opposite.
void voteOnUnequal(llvm::Function &kernel, unsigned waveSize);

} // namespace qd

#endif
