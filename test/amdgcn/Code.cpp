// From bytes to instructions.
#include "Code.h"

#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"

extern "C" void LLVMInitializeAMDGPUTargetInfo();
extern "C" void LLVMInitializeAMDGPUTargetMC();
extern "C" void LLVMInitializeAMDGPUDisassembler();

namespace amdgcn {

struct Code::Reader {
  llvm::Triple triple{"amdgcn-amd-amdhsa"};
  llvm::MCTargetOptions options;
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> assembly;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<llvm::MCDisassembler> disassembler;
  std::unique_ptr<llvm::MCInstPrinter> printer;
};

Code::Code(const std::string &chip, unsigned lanes) : reader(std::make_unique<Reader>()) {
  static const bool isReady = [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
    return true;
  }();
  (void)isReady;
  std::string problem;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(reader->triple, problem);
  reader->registers.reset(target->createMCRegInfo(reader->triple));
  reader->assembly.reset(target->createMCAsmInfo(*reader->registers, reader->triple, reader->options));
  std::string features = lanes == 64 ? "+wavefrontsize64,-wavefrontsize32" : "+wavefrontsize32,-wavefrontsize64";
  reader->subtarget.reset(target->createMCSubtargetInfo(reader->triple, chip, chip.size() == 6 ? "" : features));
  reader->instructions.reset(target->createMCInstrInfo());
  reader->context = std::make_unique<llvm::MCContext>(reader->triple, reader->assembly.get(), reader->registers.get(),
                                                      reader->subtarget.get());
  reader->disassembler.reset(target->createMCDisassembler(*reader->subtarget, *reader->context));
  reader->printer.reset(target->createMCInstPrinter(reader->triple, 0, *reader->assembly, *reader->instructions,
                                                    *reader->registers));
}
Code::~Code() = default;

const Issue *Code::at(llvm::ArrayRef<uint8_t> bytes, uint64_t base, uint64_t address, std::string &problem) {
  auto known = issues.find(address);
  if (known != issues.end())
    return &known->second;
  uint64_t offset = address - base, size = 0;
  if (address < base || offset >= bytes.size() || offset % 4) {
    problem = "the program goes on where no code is";
    return nullptr;
  }
  llvm::MCInst instruction;
  auto status =
      reader->disassembler->getInstruction(instruction, size, bytes.drop_front(offset), address, llvm::nulls());
  if (status != llvm::MCDisassembler::Success) {
    problem = "no instruction of the chip stands there";
    return nullptr;
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  reader->printer->printInst(&instruction, address, "", *reader->subtarget, stream);
  for (char &c : text)
    if (c == '\t')
      c = ' ';
  Issue made;
  if (!parse(text.substr(text.find_first_not_of(' ')), made, problem))
    return nullptr;
  for (Instruction &each : made)
    each.next = address + size;
  return &(issues[address] = std::move(made));
}

} // namespace amdgcn
