//===- TargetMachine.cpp - target machines and code generation --------------------------===//

#include "codegen/TargetMachine.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include <mutex>

extern "C" {
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
void LLVMInitializeAMDGPUTarget();
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUAsmPrinter();
}

using namespace llvm;

namespace qd {

static void initializeNVPTX() {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
}

static void initializeAMDGPU() {
  LLVMInitializeAMDGPUTargetInfo();
  LLVMInitializeAMDGPUTarget();
  LLVMInitializeAMDGPUTargetMC();
  LLVMInitializeAMDGPUAsmPrinter();
}

std::unique_ptr<TargetMachine> createTargetMachine(const Target &target, unsigned optLevel) {
  static std::once_flag nvptxOnce, amdgpuOnce;
  bool isNVPTX = target.getBackend() == Backend::NVPTX;
  if (isNVPTX)
    std::call_once(nvptxOnce, initializeNVPTX);
  else
    std::call_once(amdgpuOnce, initializeAMDGPU);

  Triple triple(isNVPTX ? "nvptx64-nvidia-cuda" : "amdgcn-amd-amdhsa");
  std::string error;
  const llvm::Target *registered = TargetRegistry::lookupTarget(triple, error);
  if (!registered)
    return nullptr;
  std::string features;
  if (!isNVPTX && target.chip->subgroupSizes == (32 | 64))
    features = target.subgroupSize == 64 ? "+wavefrontsize64,-wavefrontsize32" : "+wavefrontsize32,-wavefrontsize64";
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict;
  auto level = CodeGenOpt::getLevel(optLevel).value_or(CodeGenOptLevel::Default);
  return std::unique_ptr<TargetMachine>(
      registered->createTargetMachine(triple, target.chip->name, features, options, Reloc::PIC_, std::nullopt, level));
}

Expected<std::string> runCodeGenerator(Module &module, TargetMachine &machine, CodeGenFileType fileType) {
  // Without a handler of ours LLVM prints an error and ends the process.
  std::string errors;
  LLVMContext &context = module.getContext();
  auto collect = [](const DiagnosticInfo *info, void *into) {
    if (info->getSeverity() != DS_Error)
      return;
    raw_string_ostream stream(*static_cast<std::string *>(into));
    DiagnosticPrinterRawOStream printer(stream);
    info->print(printer);
    stream << "\n";
  };
  auto *previousHandler = context.getDiagnosticHandlerCallBack();
  void *previousContext = context.getDiagnosticContext();
  context.setDiagnosticHandlerCallBack(collect, &errors);

  SmallString<0> output;
  raw_svector_ostream stream(output);
  legacy::PassManager passes;
  bool unsupported = machine.addPassesToEmitFile(passes, stream, nullptr, fileType, /*DisableVerify=*/true);
  if (!unsupported)
    passes.run(module);
  context.setDiagnosticHandlerCallBack(previousHandler, previousContext);
  if (unsupported)
    return createStringError("this target cannot emit such a file");
  if (!errors.empty())
    return createStringError(StringRef(errors).rtrim());
  return output.str().str();
}

} // namespace qd
