//===- AMDGCNMachine.cpp - what our passes over AMDGCN machine code ask ----------------------===//
//
// Purpose: questions about machine code in SSA form that the passes which make DPP moves part of operations share.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNMachine.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include <mutex>

using namespace llvm;

namespace qd {

unsigned machine::findOpcode(const TargetInstrInfo &instructions, StringRef name) {
  static StringMap<unsigned> opcodes;
  static std::once_flag once;
  std::call_once(once, [&] {
    for (unsigned opcode = 1, end = instructions.getNumOpcodes(); opcode != end; ++opcode)
      if (StringRef known = instructions.getName(opcode);
          known.starts_with("V_") || known.starts_with("S") || known == "BUFFER_WBL2")
        opcodes[known] = opcode;
  });
  return opcodes.lookup(name);
}

bool machine::waitsForMasks(StringRef chip) { return chip.starts_with("gfx94") || chip.starts_with("gfx95"); }

bool machine::isVector(const MachineOperand &operand, const MachineRegisterInfo &registers) {
  if (!operand.isReg() || !operand.getReg().isVirtual())
    return false;
  const TargetRegisterInfo &physical = *registers.getTargetRegisterInfo();
  const TargetRegisterClass *type = registers.getRegClass(operand.getReg());
  if (operand.getSubReg())
    type = physical.getSubRegisterClass(type, operand.getSubReg());
  return type && StringRef(physical.getRegClassName(type)) == "VGPR_32";
}

bool machine::hasSameLanes(const MachineInstr &from, const MachineInstr &to, const TargetRegisterInfo &physical) {
  if (from.getParent() != to.getParent())
    return false;
  // EXEC is the one implicit operand of a move.
  Register exec = from.implicit_operands().begin()->getReg();
  for (auto at = std::next(from.getIterator()); at != from.getParent()->end(); ++at) {
    if (&*at == &to)
      return true;
    if (at->modifiesRegister(exec, &physical))
      return false;
  }
  return false;
}

bool machine::isFree(Register vcc, MachineBasicBlock::const_iterator at, const TargetRegisterInfo &physical) {
  for (auto end = at->getParent()->end(); at != end; ++at) {
    if (at->readsRegister(vcc, &physical))
      return false;
    if (at->modifiesRegister(vcc, &physical))
      return true;
  }
  return true;
}

bool machine::isBefore(const MachineInstr &from, const MachineInstr &to) {
  for (auto at = from.getIterator(); at != from.getParent()->end(); ++at)
    if (&*at == &to)
      return &from != &to;
  return false;
}

} // namespace qd
