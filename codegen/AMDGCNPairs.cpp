//===- AMDGCNPairs.cpp - f64's neutral value as one instruction ------------------------------===//
//
// Purpose: -0.0 as what two DPP moves leave on lanes without a source. LLVM 22 makes each word by itself, and both anew
// for each step across rows:
//
//   %x0 = V_MOV_B32_dpp 0, %v0, row_bcast:15    %x1 = V_MOV_B32_dpp 0x80000000, %v1, row_bcast:15    %x = %x0, %x1
//     ->
//   %n = V_LSHLREV_B64 63, 1    %x0 = V_MOV_B32_dpp %n.lower, ...    %x1 = V_MOV_B32_dpp %n.upper, ...
//
// The last step's words stay two instructions, which fill what gfx9 waits between a load and a move of what it loaded.
//
// Input: machine code of gfx9 in SSA form behind LLVM's last pass that finds equal instructions. Output: the same
// values.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNPasses.h"

#include "codegen/AMDGCNMachine.h"
#include "codegen/MachinePass.h"

#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace qd {

using machine::Move;

namespace {
class MakePairs : public MachinePass {
public:
  static char ID;
  MakePairs() : MachinePass(ID) {}

  StringRef getPassName() const override { return "f64's neutral value as one instruction"; }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  const MachineInstr *getConstant(const MachineInstr &move, uint32_t bits) const;
  bool canPair(const MachineInstr &sequence) const;
  void makePair(MachineInstr &sequence);

  MachineRegisterInfo *registers = nullptr;
  const TargetInstrInfo *instructions = nullptr;
  const TargetRegisterInfo *physical = nullptr;
};
char MakePairs::ID = 0;
} // namespace

/// What gives a move's lanes without a source these bits.
const MachineInstr *MakePairs::getConstant(const MachineInstr &move, uint32_t bits) const {
  if (move.getOpcode() != machine::findOpcode(*instructions, "V_MOV_B32_dpp") ||
      move.getOperand(Move::bound).getImm() != 0)
    return nullptr;
  const MachineOperand &old = move.getOperand(Move::old);
  const MachineInstr *constant =
      old.isReg() && old.getReg().isVirtual() && !old.getSubReg() ? registers->getUniqueVRegDef(old.getReg()) : nullptr;
  if (!constant || !constant->getOperand(1).isImm())
    return nullptr;
  uint32_t value = constant->getOperand(1).getImm();
  if (constant->getOpcode() == machine::findOpcode(*instructions, "V_BFREV_B32_e32"))
    value = reverseBits(value);
  else if (!constant->isMoveImmediate())
    return nullptr;
  return value == bits ? constant : nullptr;
}

/// Whether both words of a pair are moved over -0.0 in its block.
bool MakePairs::canPair(const MachineInstr &sequence) const {
  constexpr unsigned numOperands = 5;
  constexpr uint32_t signBit = 0x80000000;
  if (!sequence.isRegSequence() || sequence.getNumOperands() != numOperands ||
      sequence.getOperand(1).getReg() == sequence.getOperand(3).getReg())
    return false;
  for (unsigned at : {1, 3}) {
    const MachineOperand &word = sequence.getOperand(at);
    const MachineInstr *move =
        word.getReg().isVirtual() && !word.getSubReg() ? registers->getUniqueVRegDef(word.getReg()) : nullptr;
    bool isUpper = physical->getSubRegIdxOffset(sequence.getOperand(at + 1).getImm()) != 0;
    if (!move || move->getParent() != sequence.getParent() || !getConstant(*move, isUpper ? signBit : 0))
      return false;
  }
  return true;
}

void MakePairs::makePair(MachineInstr &sequence) {
  MachineInstr *lower = registers->getUniqueVRegDef(sequence.getOperand(1).getReg()),
               *upper = registers->getUniqueVRegDef(sequence.getOperand(3).getReg());
  MachineInstr &at = machine::isBefore(*lower, *upper) ? *lower : *upper;
  constexpr int64_t bit = 63;
  Register pair = registers->createVirtualRegister(registers->getRegClass(sequence.getOperand(0).getReg()));
  unsigned shift = machine::findOpcode(*instructions, "V_LSHLREV_B64_e64");
  BuildMI(*at.getParent(), at, at.getDebugLoc(), instructions->get(shift), pair)
      .addImm(bit)
      .addImm(1);
  for (unsigned word : {1, 3}) {
    MachineOperand &old = registers->getUniqueVRegDef(sequence.getOperand(word).getReg())->getOperand(Move::old);
    Register constant = old.getReg();
    old.setReg(pair);
    old.setSubReg(sequence.getOperand(word + 1).getImm());
    old.setIsKill(false);
    registers->clearKillFlags(constant);
    if (registers->use_nodbg_empty(constant))
      registers->getUniqueVRegDef(constant)->eraseFromParent();
  }
}

bool MakePairs::runOnMachineFunction(MachineFunction &function) {
  if (!function.getSubtarget().getCPU().starts_with("gfx9") || !function.getProperties().hasIsSSA())
    return false;
  registers = &function.getRegInfo();
  instructions = function.getSubtarget().getInstrInfo();
  physical = function.getSubtarget().getRegisterInfo();
  bool hasChanged = false;
  for (MachineBasicBlock &block : function) {
    SmallVector<MachineInstr *> sequences;
    for (MachineInstr &instruction : block)
      if (canPair(instruction))
        sequences.push_back(&instruction);
    for (MachineInstr *sequence : drop_end(sequences, sequences.empty() ? 0 : 1))
      makePair(*sequence);
    hasChanged |= sequences.size() > 1;
  }
  return hasChanged;
}

char &registerMakePairs() {
  registerMachinePass<MakePairs>("f64's neutral value as one instruction", "qd-make-pairs");
  return MakePairs::ID;
}

} // namespace qd
