//===- Assembler.cpp - machine code out of text and objects -----------------------===//

#include "Assembler.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/MC/MCAsmBackend.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCCodeEmitter.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCObjectFileInfo.h"
#include "llvm/MC/MCObjectWriter.h"
#include "llvm/MC/MCParser/MCAsmParser.h"
#include "llvm/MC/MCParser/MCTargetAsmParser.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCStreamer.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUAsmParser();
}

using namespace llvm;

namespace qd::test {

std::string getText(StringRef elf) {
  auto file = cantFail(object::ELFFile<object::ELF64LE>::create(elf));
  for (const auto &section : cantFail(file.sections()))
    if (cantFail(file.getSectionName(section)) == ".text")
      return toStringRef(cantFail(file.getSectionContents(section))).str();
  return "";
}

std::string assemble(StringRef assembly, const qd::Target &target) {
  LLVMInitializeAMDGPUTargetInfo();
  LLVMInitializeAMDGPUTargetMC();
  LLVMInitializeAMDGPUAsmParser();
  Triple triple("amdgcn-amd-amdhsa");
  std::string error, messages;
  const llvm::Target *registered = TargetRegistry::lookupTarget(triple, error);
  if (!registered)
    return "error: " + error;
  std::string features =
      target.chip->subgroupSizes == target.subgroupSize ? "" : "+wavefrontsize" + std::to_string(target.subgroupSize);

  SourceMgr sources;
  sources.AddNewSourceBuffer(MemoryBuffer::getMemBufferCopy(assembly, "text"), SMLoc());
  sources.setDiagHandler(
      [](const SMDiagnostic &diagnostic, void *into) {
        auto &text = *static_cast<std::string *>(into);
        text += diagnostic.getMessage().str() + " in '" + diagnostic.getLineContents().trim().str() + "'; ";
      },
      &messages);
  MCTargetOptions options;
  std::unique_ptr<MCRegisterInfo> registers(registered->createMCRegInfo(triple));
  std::unique_ptr<MCAsmInfo> asmInfo(registered->createMCAsmInfo(*registers, triple, options));
  std::unique_ptr<MCSubtargetInfo> subtarget(registered->createMCSubtargetInfo(triple, target.chip->name, features));
  std::unique_ptr<MCInstrInfo> instructions(registered->createMCInstrInfo());
  MCContext context(triple, asmInfo.get(), registers.get(), subtarget.get(), &sources, &options);
  std::unique_ptr<MCObjectFileInfo> objectInfo(registered->createMCObjectFileInfo(context, /*PIC=*/true));
  context.setObjectFileInfo(objectInfo.get());

  SmallString<0> bytes;
  raw_svector_ostream stream(bytes);
  std::unique_ptr<MCAsmBackend> backend(registered->createMCAsmBackend(*subtarget, *registers, options));
  std::unique_ptr<MCObjectWriter> writer = backend->createObjectWriter(stream);
  std::unique_ptr<MCStreamer> streamer(registered->createMCObjectStreamer(
      triple, context, std::move(backend), std::move(writer),
      std::unique_ptr<MCCodeEmitter>(registered->createMCCodeEmitter(*instructions, context)), *subtarget));
  std::unique_ptr<MCAsmParser> parser(createMCAsmParser(sources, context, *streamer, *asmInfo));
  std::unique_ptr<MCTargetAsmParser> targetParser(
      registered->createMCAsmParser(*subtarget, *parser, *instructions, options));
  parser->setTargetParser(*targetParser);
  if (parser->Run(/*NoInitialTextSection=*/false) || !messages.empty())
    return "error: " + messages;
  return bytes.str().str();
}

} // namespace qd::test
