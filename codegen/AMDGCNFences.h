//===- AMDGCNFences.h - loads stay in front of fences and barriers ---------------------------===//

#ifndef QD_CODEGEN_AMDGCNFENCES_H
#define QD_CODEGEN_AMDGCNFENCES_H

namespace llvm {
class TargetPassConfig;
} // namespace llvm

namespace qd {

/// Adds the passes. Once a process, before that, `registerFencePasses`.
void addFencePasses(llvm::TargetPassConfig &config);
void registerFencePasses();

} // namespace qd

#endif
