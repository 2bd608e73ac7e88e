//===- TargetMachine.h - LLVM's side of a chip ---------------------------------------===//
//
// Purpose: makes the LLVM target machine of an NVPTX or AMDGCN target, and runs the code generator of any
// machine.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_TARGETMACHINE_H
#define QD_CODEGEN_TARGETMACHINE_H

#include "ir/Targets.h"

#include "llvm/IR/Module.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>
#include <string>

namespace qd {

/// The machine that optimisation and emission describe themselves to.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const Target &target, unsigned optLevel);

/// The same, kept for the calling thread's next compiles: LLVM takes milliseconds to set up what it knows of a chip.
llvm::Expected<std::shared_ptr<llvm::TargetMachine>> getTargetMachine(const Target &target, unsigned optLevel);

/// Runs instruction selection and emission; the error is what LLVM diagnosed. Changes the module.
llvm::Expected<std::string> runCodeGenerator(llvm::Module &module, llvm::TargetMachine &machine,
                                             llvm::CodeGenFileType fileType);

} // namespace qd

#endif
