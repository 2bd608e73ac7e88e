//===- X86MaskReads.cpp - mask registers that are read more than once -----------------------------------===//
//
// Purpose: LLVM 22's x86-compress-evex makes one instruction of two,
//
//   $k1 = VPMOVD2M $xmm4    $eax = KMOVD $k1    ->    $eax = VMOVMSKPS $xmm4
//
// and the mask is gone, also where other instructions read it (LLVM issue 174871). An instruction that reads the mask
// in between makes the pass leave the two as they are. KILL does, and is no machine code:
//
//   $k1 = VPMOVD2M $xmm4    $k1 = KILL $k1    $eax = KMOVD $k1
//
// Input: machine code behind register allocation. Output: the same, with KILLs.
//
//===----------------------------------------------------------------------===//

#include "codegen/X86Passes.h"

#include "codegen/MachinePass.h"

#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace qd {

namespace {
class KeepMasks : public MachinePass {
public:
  static char ID;
  KeepMasks() : MachinePass(ID) {}

  StringRef getPassName() const override { return "AVX-512 masks that are read again"; }
  bool runOnMachineFunction(MachineFunction &function) override;
};
char KeepMasks::ID = 0;

/// Whether the mask that `definition` makes is read by more than one instruction, as far as can be seen.
bool isReadAgain(const MachineInstr &definition, Register mask, const TargetRegisterInfo &registers) {
  const MachineBasicBlock &block = *definition.getParent();
  unsigned reads = 0;
  for (const MachineInstr &instruction : make_range(std::next(definition.getIterator()), block.instr_end())) {
    if (instruction.readsRegister(mask, &registers) && ++reads > 1)
      return true;
    if (instruction.modifiesRegister(mask, &registers))
      return false;
  }
  return any_of(block.successors(), [&](const MachineBasicBlock *next) { return next->isLiveIn(mask.asMCReg()); });
}

bool KeepMasks::runOnMachineFunction(MachineFunction &function) {
  const TargetInstrInfo &instructions = *function.getSubtarget().getInstrInfo();
  const TargetRegisterInfo &registers = *function.getSubtarget().getRegisterInfo();
  bool changed = false;
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : make_early_inc_range(block)) {
      // VPMOVB2M, VPMOVW2M, VPMOVD2M and VPMOVQ2M of all widths.
      StringRef name = instructions.getName(instruction.getOpcode());
      if (!name.starts_with("VPMOV") || !name.drop_front(StringRef("VPMOVx").size()).starts_with("2M"))
        continue;
      Register mask = instruction.getOperand(0).getReg();
      if (!isReadAgain(instruction, mask, registers))
        continue;
      BuildMI(block, std::next(instruction.getIterator()), instruction.getDebugLoc(),
              instructions.get(TargetOpcode::KILL), mask)
          .addReg(mask);
      changed = true;
    }
  return changed;
}
} // namespace

char &registerKeepMasks() {
  registerMachinePass<KeepMasks>("AVX-512 masks that are read again", "qd-keep-masks");
  return KeepMasks::ID;
}

} // namespace qd
