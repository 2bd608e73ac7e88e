//===- AMDGCNSigns.h - copied signs between float formats -------------------------------------===//

#ifndef QD_CODEGEN_AMDGCNSIGNS_H
#define QD_CODEGEN_AMDGCNSIGNS_H

#include "llvm/IR/Function.h"

namespace qd {

/// Copies of a sign from one float format into another, 16-bit one become operations on the bits.
void copySignsByBits(llvm::Function &kernel);

} // namespace qd

#endif
