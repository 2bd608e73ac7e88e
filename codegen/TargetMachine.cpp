//===- TargetMachine.cpp - target machines and code generation --------------------------===//

#include "codegen/TargetMachine.h"

#include "codegen/AMDGCN.h"
#include "codegen/AMDGCNLiterals.h"
#include "codegen/AMDGCNPasses.h"
#include "codegen/LargeFunctions.h"
#include "codegen/X86Passes.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/CodeGen/CodeGenTargetMachineImpl.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include <list>
#include <mutex>

extern "C" {
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

using namespace llvm;

namespace qd {

/// LLVM writes the least PTX version that has the chip. Before sm_75 (PTX 6.3) that lacks activemask (6.2).
static StringRef getNVPTXFeatures(const Target &target) {
  unsigned version = 0;
  target.chip->name.substr(StringRef("sm_").size()).getAsInteger(10, version);
  return version < 75 ? "+ptx63" : "";
}

static Expected<std::unique_ptr<TargetMachine>> createNVPTXMachine(const Target &target, unsigned optLevel) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *registered = TargetRegistry::lookupTarget(triple, error);
  if (!registered)
    return createStringError(error);
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict;
  return std::unique_ptr<TargetMachine>(
      registered->createTargetMachine(triple, target.chip->name, getNVPTXFeatures(target), options, Reloc::PIC_,
                                      std::nullopt, CodeGenOpt::getLevel(optLevel).value_or(CodeGenOptLevel::Default)));
}

Expected<std::unique_ptr<TargetMachine>> createTargetMachine(const Target &target, unsigned optLevel) {
  return target.getBackend() == Backend::NVPTX ? createNVPTXMachine(target, optLevel)
                                               : createAMDGCNMachine(target, optLevel);
}

Expected<std::shared_ptr<TargetMachine>> getTargetMachine(const Target &target, unsigned optLevel) {
  struct Entry {
    const Chip *chip;
    unsigned subgroupSize, optLevel;
    std::shared_ptr<TargetMachine> machine;
  };
  // Few, as each takes megabytes; the last used in front.
  constexpr size_t most = 4;
  static thread_local std::list<Entry> entries;
  auto found = find_if(entries, [&](const Entry &entry) {
    return entry.chip == target.chip && entry.subgroupSize == target.subgroupSize && entry.optLevel == optLevel;
  });
  if (found != entries.end()) {
    entries.splice(entries.begin(), entries, found);
    return entries.front().machine;
  }
  Expected<std::unique_ptr<TargetMachine>> machine = createTargetMachine(target, optLevel);
  if (!machine)
    return machine.takeError();
  entries.push_front({target.chip, target.subgroupSize, optLevel, std::move(*machine)});
  if (entries.size() > most)
    entries.pop_back();
  return entries.front().machine;
}

/// As LLVM's addPassesToEmitFile, but with passes of ours for AMDGCN and x86.
static bool addCodeGenPasses(TargetMachine &machine, legacy::PassManagerBase &passes, raw_pwrite_stream &stream,
                             CodeGenFileType fileType) {
  auto &codeGen = static_cast<CodeGenTargetMachineImpl &>(machine);
  TargetPassConfig *config = codeGen.createPassConfig(passes);
  auto *moduleInfo = new MachineModuleInfoWrapperPass(&machine);
  config->setDisableVerify(true);
  passes.add(config);
  passes.add(moduleInfo);
  if (machine.getTargetTriple().isAMDGCN())
    addAMDGCNMachinePasses(*config);
  if (machine.getTargetTriple().isX86())
    addX86MachinePasses(*config);
  cutLargeBlocks(*config);
  if (machine.getTargetTriple().isX86() || machine.getTargetTriple().isAArch64())
    splitLargeBlocks(*config);
  // On AMD's chips scheduling hides what memory takes, and keeps values in registers.
  if (machine.getOptLevel() == CodeGenOptLevel::Less && !machine.getTargetTriple().isAMDGCN())
    config->disablePass(&MachineSchedulerID);
  if (config->addISelPasses())
    return false;
  config->addMachinePasses();
  if (machine.getTargetTriple().isAMDGCN())
    passes.add(createTrimLiteralsPass());
  config->setInitialized();
  if (codeGen.addAsmPrinter(passes, stream, nullptr, fileType, moduleInfo->getMMI().getContext()))
    return false;
  passes.add(createFreeMachineFunctionPass());
  return true;
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
  LargeFunctions large(module);
  legacy::PassManager passes;
  passes.add(createBoundedEviction(context));
  bool unsupported = !addCodeGenPasses(machine, passes, stream, fileType);
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
