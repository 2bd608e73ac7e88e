//===- AMDGCNFuseMoves.h - DPP moves as part of float operations -----------------------------===//

#ifndef QD_CODEGEN_AMDGCNFUSEMOVES_H
#define QD_CODEGEN_AMDGCNFUSEMOVES_H

namespace qd {

/// Adds the pass to the code generation of every AMDGCN machine from now on.
void registerAMDGCNFuseMoves();

} // namespace qd

#endif
