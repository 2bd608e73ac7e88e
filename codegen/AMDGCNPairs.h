//===- AMDGCNPairs.h - f64's neutral value as one instruction --------------------------------===//

#ifndef QD_CODEGEN_AMDGCNPAIRS_H
#define QD_CODEGEN_AMDGCNPAIRS_H

namespace qd {

/// The id of the pass, which it makes known to LLVM.
char &registerMakePairs();

} // namespace qd

#endif
