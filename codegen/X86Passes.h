//===- X86Passes.h - our passes over x86 machine code -----------------------------------------------------===//

#ifndef QD_CODEGEN_X86PASSES_H
#define QD_CODEGEN_X86PASSES_H

namespace llvm {
class TargetPassConfig;
}

namespace qd {

/// Adds the passes to the code generation that `config`, of an x86 machine, is about to set up.
void addX86MachinePasses(llvm::TargetPassConfig &config);

// Each makes its pass known to LLVM, once a process, and gives its id.
char &registerOrderAccesses();
char &registerKeepMasks();

} // namespace qd

#endif
