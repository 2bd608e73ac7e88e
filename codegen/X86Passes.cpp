//===- X86Passes.cpp - our passes over x86 machine code, in order -----------------------------------------===//

#include "codegen/X86Passes.h"

#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"

using namespace llvm;

namespace qd {

void addX86MachinePasses(TargetPassConfig &config) {
  static char &keepMasks = registerKeepMasks(), &orderAccesses = registerOrderAccesses();
  config.insertPass(&PatchableFunctionID, &keepMasks);
  if (config.getOptLevel() == CodeGenOptLevel::None)
    return;
  // Behind what makes loads part of other instructions. LLVM's scheduler behind register allocation, which it runs for
  // some processors, would mix accesses up again; these processors start instructions out of order anyway.
  config.insertPass(&PeepholeOptimizerLegacyID, &orderAccesses);
  config.disablePass(&PostRASchedulerID);
}

} // namespace qd
