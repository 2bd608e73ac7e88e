//===- AMDGCNLoopValues.h - scalars of loops that lanes leave one by one -----------------------------===//

#ifndef QD_CODEGEN_AMDGCNLOOPVALUES_H
#define QD_CODEGEN_AMDGCNLOOPVALUES_H

namespace qd {

/// The id of the pass, which it makes known to LLVM.
char &registerKeepLoopValues();

} // namespace qd

#endif
