//===- AMDGCNFuseMoves.h - DPP moves as part of float operations -----------------------------===//

#ifndef QD_CODEGEN_AMDGCNFUSEMOVES_H
#define QD_CODEGEN_AMDGCNFUSEMOVES_H

namespace llvm {
class TargetPassConfig;
}

namespace qd {

/// Adds the passes to the code generation that `config`, of an AMDGCN machine, is about to set up.
void addAMDGCNMachinePasses(llvm::TargetPassConfig &config);

} // namespace qd

#endif
