//===- MachinePass.h - what our passes over machine code have in common ---------------------------------===//

#ifndef QD_CODEGEN_MACHINEPASS_H
#define QD_CODEGEN_MACHINEPASS_H

#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/PassRegistry.h"

namespace qd {

/// Changes instructions, but no blocks.
class MachinePass : public llvm::MachineFunctionPass {
public:
  using MachineFunctionPass::MachineFunctionPass;

  void getAnalysisUsage(llvm::AnalysisUsage &usage) const override {
    usage.setPreservesCFG();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
};

/// Once a process, before the pass is inserted: LLVM makes inserted passes by their registered constructors.
template <typename Pass> void registerMachinePass(llvm::StringRef name, llvm::StringRef argument) {
  llvm::PassRegistry::getPassRegistry()->registerPass(
      *new llvm::PassInfo(name, argument, &Pass::ID, llvm::callDefaultCtor<Pass>, /*CFGOnly=*/false,
                          /*isAnalysis=*/false),
      /*ShouldFree=*/true);
}

} // namespace qd

#endif
