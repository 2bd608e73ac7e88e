//===- NVPTX.cpp - from optimised LLVM IR to PTX and cubin ----------------------------------===//
//
// Input: what lowerToLLVM made for an NVPTX target. Output: PTX text; a cubin where ptxas is at hand.
//
//===----------------------------------------------------------------------===//

#include "codegen/Codegen.h"
#include "codegen/FloatSelects.h"
#include "codegen/NVPTXAtomics.h"
#include "codegen/NVPTXBits.h"
#include "codegen/TargetMachine.h"

#include "llvm/IR/Module.h"

using namespace mlir;

namespace qd {

FailureOr<std::string> emitPTX(ModuleOp module, llvm::Module &lowered, const Target &target,
                               const CodegenOptions &options) {
  llvm::Expected<std::shared_ptr<llvm::TargetMachine>> machine = getTargetMachine(target, options.optLevel);
  if (!machine)
    return module.emitError() << llvm::toString(machine.takeError());
  writeAtomicsAsPTX(lowered);
  writeBitsAsPTX(lowered);
  for (llvm::Function &function : lowered)
    keepSelects(function);
  llvm::Expected<std::string> ptx = runCodeGenerator(lowered, **machine, llvm::CodeGenFileType::AssemblyFile);
  if (!ptx)
    return module.emitError() << target.str() << ": " << llvm::toString(ptx.takeError());
  return std::move(*ptx);
}

} // namespace qd
