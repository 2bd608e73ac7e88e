//===- AMDGCNMaskCopies.h - masks of active lanes as values ------------------------------------===//

#ifndef QD_CODEGEN_AMDGCNMASKCOPIES_H
#define QD_CODEGEN_AMDGCNMASKCOPIES_H

namespace qd {

/// The id of the pass, which it makes known to LLVM.
char &registerMoveMasks();

} // namespace qd

#endif
