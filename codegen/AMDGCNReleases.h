//===- AMDGCNReleases.h - what is released to a block may be released to the device --------------===//

#ifndef QD_CODEGEN_AMDGCNRELEASES_H
#define QD_CODEGEN_AMDGCNRELEASES_H

#include "llvm/IR/Function.h"

namespace qd {

/// Lets what the kernel, for a chip of gfx9, releases to a block wait for its accesses, where others of the block may
/// release to the device what they got to see.
void waitForBlockReleases(llvm::Function &kernel);

} // namespace qd

#endif
