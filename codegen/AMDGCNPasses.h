//===- AMDGCNPasses.h - our passes over AMDGCN machine code ---------------------------------------===//

#ifndef QD_CODEGEN_AMDGCNPASSES_H
#define QD_CODEGEN_AMDGCNPASSES_H

namespace llvm {
class TargetPassConfig;
} // namespace llvm

namespace qd {

/// Adds the passes to the code generation that `config`, of an AMDGCN machine, is about to set up.
void addAMDGCNMachinePasses(llvm::TargetPassConfig &config);

// Each makes its pass known to LLVM, once a process, and gives its id.
char &registerMarkFences();
char &registerUnmarkFences();
char &registerHoldBallots();
char &registerPartBallots();
char &registerFuseSums();
char &registerKeepLoopValues();
char &registerFuseMoves();
char &registerFuseExchange();
char &registerShortenMasks();
char &registerFillSteps();
char &registerChooseByMedian();
char &registerLegalizeMoves();
char &registerMakePairs();
char &registerMoveMasks();
char &registerWaitForWritebacks();
char &registerMoveHints();

} // namespace qd

#endif
