//===- AMDGCNLegalMoves.cpp - DPP moves that no chip encodes as part of an operation ----------===//
//
// Purpose: LLVM 22 makes DPP moves part of operations that the chip has no encoding for, and the backend writes an
// object all the same. Of gfx11 the first chips take nothing but a vector register beside the moved operand, and
// additions with carry take no scalar one on any:
//
//   %r = V_BFE_U32_e64_dpp %v, 3, 5, quad_perm:[1,0,3,2]
//     ->
//   %c = V_MOV_B32 3    %r = V_BFE_U32_e64_dpp %v, %c, 5, quad_perm:[1,0,3,2]
//
// An operation that gives 64 bits takes no move on most chips:
//
//   %r = V_CVT_F64_F32_dpp %v, quad_perm:[1,0,3,2]
//     ->
//   %x = V_MOV_B32_dpp %v, quad_perm:[1,0,3,2]    %r = V_CVT_F64_F32 %x
//
// Input: machine code in SSA form behind the last pass that folds copies and constants away. Output: the same values.
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
class LegalizeMoves : public MachinePass {
public:
  static char ID;
  LegalizeMoves() : MachinePass(ID) {}

  StringRef getPassName() const override { return "DPP moves that no chip encodes as part of an operation"; }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  StringRef getTypeName(const TargetRegisterClass *type) const {
    return registers->getTargetRegisterInfo()->getRegClassName(type);
  }
  bool copyOperand(MachineInstr &instruction, MachineOperand &operand);
  bool split(MachineInstr &instruction);

  MachineRegisterInfo *registers = nullptr;
  const TargetInstrInfo *instructions = nullptr;
  const TargetRegisterClass *vector = nullptr;
  SmallDenseMap<int64_t, Register> constants; ///< of the block that is looked at, in vector registers
};
char LegalizeMoves::ID = 0;
} // namespace

/// The operands that the operation is carried out on, of which the first is moved, by their numbers.
static SmallVector<unsigned, 3> getSources(const MachineInstr &instruction) {
  const MCInstrDesc &description = instruction.getDesc();
  SmallVector<unsigned, 3> sources;
  for (unsigned at = description.getNumDefs(); at < instruction.getNumExplicitOperands(); ++at)
    if (description.operands()[at].RegClass >= 0 && description.getOperandConstraint(at, MCOI::TIED_TO) < 0)
      sources.push_back(at);
  return sources;
}

/// A constant or scalar to a vector register.
bool LegalizeMoves::copyOperand(MachineInstr &instruction, MachineOperand &operand) {
  if (operand.isReg() &&
      (!operand.getReg().isVirtual() || !getTypeName(registers->getRegClass(operand.getReg())).starts_with("S")))
    return false;
  MachineBasicBlock &block = *instruction.getParent();
  Register fresh, &copy = operand.isImm() ? constants[operand.getImm()] : fresh;
  if (!copy) {
    copy = registers->createVirtualRegister(vector);
    unsigned opcode = operand.isImm() ? machine::findOpcode(*instructions, "V_MOV_B32_e32") : TargetOpcode::COPY;
    auto move = BuildMI(block, instruction, instruction.getDebugLoc(), instructions->get(opcode), copy);
    if (operand.isImm())
      move.addImm(operand.getImm());
    else
      move.addReg(operand.getReg(), /*flags=*/0, operand.getSubReg());
  }
  operand.ChangeToRegister(copy, /*isDef=*/false);
  return true;
}

/// Of a move that leaves no lane out, or those of no interest.
bool LegalizeMoves::split(MachineInstr &instruction) {
  StringRef name = instructions->getName(instruction.getOpcode());
  SmallVector<unsigned, 3> sources = getSources(instruction);
  constexpr unsigned numControls = Move::bound - Move::control + 1;
  unsigned numOperands = instruction.getNumExplicitOperands(), control = numOperands - numControls;
  auto getImm = [&](unsigned at) { return instruction.getOperand(at).getImm(); };
  bool hasModifiers = any_of(seq(instruction.getNumExplicitDefs(), control), [&](unsigned at) {
    return !is_contained(sources, at) && instruction.getOperand(at).isImm() && getImm(at) != 0;
  });
  const MachineOperand &moved = instruction.getOperand(sources.front());
  bool isLong = name.consume_back("_e64_dpp") || (name.consume_back("_dpp") && hasModifiers);
  unsigned opcode = machine::findOpcode(*instructions, (name + (isLong ? "_e64" : "_e32")).str());
  if (!opcode || !machine::isVector(moved, *registers))
    return false;

  registers->clearKillFlags(moved.getReg());
  MachineBasicBlock &block = *instruction.getParent();
  const DebugLoc &location = instruction.getDebugLoc();
  Register old = registers->createVirtualRegister(vector), word = registers->createVirtualRegister(vector);
  unsigned moveOpcode = machine::findOpcode(*instructions, "V_MOV_B32_dpp");
  auto move = BuildMI(block, instruction, location, instructions->get(moveOpcode), word)
                  .addReg(old, RegState::Undef)
                  .add(moved);
  for (unsigned at = control; at < numOperands; ++at)
    move.addImm(getImm(at));

  auto operation = BuildMI(block, instruction, location, instructions->get(opcode));
  for (const MachineOperand &result : instruction.defs())
    operation.add(result);
  for (unsigned at = instruction.getNumExplicitDefs(); at < control; ++at) {
    if (at == sources.front())
      operation.addReg(word);
    else if (is_contained(sources, at) || (isLong && instruction.getOperand(at).isImm()))
      operation.add(instruction.getOperand(at));
  }
  // Clamp and scale.
  const MCInstrDesc &description = operation->getDesc();
  unsigned numImplicit = description.implicit_defs().size() + description.implicit_uses().size();
  while (operation->getNumOperands() < description.getNumOperands() + numImplicit)
    operation.addImm(0);
  operation->setFlags(instruction.getFlags());
  instruction.eraseFromParent();
  return true;
}

bool LegalizeMoves::runOnMachineFunction(MachineFunction &function) {
  if (!function.getProperties().hasIsSSA())
    return false;
  const TargetSubtargetInfo &chip = function.getSubtarget();
  registers = &function.getRegInfo();
  instructions = chip.getInstrInfo();
  auto isWord = [&](const TargetRegisterClass *type) { return getTypeName(type) == "VGPR_32"; };
  vector = *find_if(chip.getRegisterInfo()->regclasses(), isWord);
  unsigned carries[] = {machine::findOpcode(*instructions, "V_ADD_CO_U32_e64_dpp"),
                        machine::findOpcode(*instructions, "V_SUB_CO_U32_e64_dpp"),
                        machine::findOpcode(*instructions, "V_SUBREV_CO_U32_e64_dpp"),
                        machine::findOpcode(*instructions, "V_ADDC_U32_e64_dpp"),
                        machine::findOpcode(*instructions, "V_SUBB_U32_e64_dpp"),
                        machine::findOpcode(*instructions, "V_SUBBREV_U32_e64_dpp")};
  bool takesAll = chip.checkFeatures("+dpp-src1-sgpr"), givesPairs = chip.checkFeatures("+dpp-64bit");
  bool hasChanged = false;
  for (MachineBasicBlock &block : function) {
    constants.clear();
    for (MachineInstr &instruction : make_early_inc_range(block)) {
      unsigned opcode = instruction.getOpcode();
      if (!instructions->getName(opcode).contains("_dpp"))
        continue;
      Register result = instruction.getNumExplicitDefs() ? instruction.getOperand(0).getReg() : Register();
      if (!givesPairs && result.isVirtual() && getTypeName(registers->getRegClass(result)).starts_with("VReg_64")) {
        hasChanged |= split(instruction);
        continue;
      }
      SmallVector<unsigned, 3> sources = getSources(instruction);
      for (unsigned at : ArrayRef(sources).take_front(2)) {
        MachineOperand &operand = instruction.getOperand(at);
        if (sources.size() > 1 && (!takesAll || (operand.isReg() && is_contained(carries, opcode))))
          hasChanged |= copyOperand(instruction, operand);
      }
    }
  }
  return hasChanged;
}

char &registerLegalizeMoves() {
  registerMachinePass<LegalizeMoves>("DPP moves that no chip encodes as part of an operation", "qd-legalize-moves");
  return LegalizeMoves::ID;
}

} // namespace qd
