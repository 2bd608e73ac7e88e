//===- AMDGCNMaskCopies.cpp - masks of active lanes as values --------------------------------------===//
//
// Purpose: which lanes are active is a copy of EXEC. Where a loop carries it, LLVM 22's register coalescer gives the
// carried value EXEC itself as its register, so that what the value holds before the first round is written to EXEC and
// lanes are lost. A move is no copy to the coalescer:
//
//   %mask:sreg_32 = COPY $exec_lo    ->    %mask:sreg_32 = S_MOV_B32 $exec_lo
//
// Input: machine code in SSA form. Output: the same values.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNPasses.h"

#include "codegen/AMDGCNMachine.h"
#include "codegen/MachinePass.h"

#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace qd {

namespace {
class MoveMasks : public MachinePass {
public:
  static char ID;
  MoveMasks() : MachinePass(ID) {}

  StringRef getPassName() const override { return "masks of active lanes as values"; }
  bool runOnMachineFunction(MachineFunction &function) override;
};
char MoveMasks::ID = 0;
} // namespace

bool MoveMasks::runOnMachineFunction(MachineFunction &function) {
  if (!function.getProperties().hasIsSSA())
    return false;
  const TargetInstrInfo &instructions = *function.getSubtarget().getInstrInfo();
  const TargetRegisterInfo &physical = *function.getSubtarget().getRegisterInfo();
  const MachineRegisterInfo &registers = function.getRegInfo();
  bool hasChanged = false;
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : block) {
      if (!instruction.isCopy() || !instruction.getOperand(1).getReg().isPhysical())
        continue;
      const MachineOperand &mask = instruction.getOperand(0);
      StringRef name = physical.getName(instruction.getOperand(1).getReg());
      bool isWide = name == "EXEC";
      if ((!isWide && name != "EXEC_LO") || !mask.getReg().isVirtual() || mask.getSubReg())
        continue;
      // Vector registers never become EXEC.
      if (!StringRef(physical.getRegClassName(registers.getRegClass(mask.getReg()))).starts_with("S"))
        continue;
      instruction.setDesc(instructions.get(machine::findOpcode(instructions, isWide ? "S_MOV_B64" : "S_MOV_B32")));
      hasChanged = true;
    }
  return hasChanged;
}

char &registerMoveMasks() {
  registerMachinePass<MoveMasks>("masks of active lanes as values", "qd-move-masks");
  return MoveMasks::ID;
}

} // namespace qd
