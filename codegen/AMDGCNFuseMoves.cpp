//===- AMDGCNFuseMoves.cpp - DPP moves as part of float operations ---------------------------===//
//
// Purpose: LLVM 22 makes a DPP move part of an operation on integers where lanes without a source get the operation's
// identity; those then keep the other operand. It does not know the identities of float operations:
//
//   %x = V_MOV_B32_dpp -0.0, %v, row_shr:1     %r = V_ADD_F32_e64 %x, %o
//     ->
//   %r = V_ADD_F32_dpp old(%o), %v, %o, row_shr:1
//
// And where the other operand of an addition with carry is scalar, LLVM's pass makes an instruction that no chip
// encodes, and the backend writes an object all the same: such an operand is copied to a vector register.
//
// Input: machine code in SSA form behind LLVM's own pass of this kind. Output: the same values in the same lanes, but
// that a NaN which is added to nothing keeps its payload.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNFuseMoves.h"

#include "codegen/AMDGCNFuseExchange.h"
#include "codegen/AMDGCNFuseSums.h"
#include "codegen/AMDGCNMachine.h"
#include "codegen/MachinePass.h"

#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/InitializePasses.h"
#include <mutex>

using namespace llvm;

namespace qd {

using machine::Move;

namespace {
/// An operation, its form with a move, and the bits of x in `x op y = y`.
struct Fusion {
  StringLiteral operation, fused;
  uint32_t identity;
};
constexpr Fusion fusions[] = {
    {"V_ADD_F32_e64", "V_ADD_F32_dpp", 0x80000000},
    {"V_MUL_F32_e64", "V_MUL_F32_dpp", 0x3f800000},
};

/// Operands of an operation, by LLVM's definitions.
struct Operation {
  enum { result, modifiers0, source0, modifiers1, source1, clamp, scale };
};

/// Behind the last pass that folds copies away.
class CopyScalars : public MachinePass {
public:
  static char ID;
  CopyScalars() : MachinePass(ID) {}

  StringRef getPassName() const override { return "vector operands of DPP additions with carry"; }
  bool runOnMachineFunction(MachineFunction &function) override;
};
char CopyScalars::ID = 0;

class FuseMoves : public MachinePass {
public:
  static char ID;
  FuseMoves() : MachinePass(ID) {}

  StringRef getPassName() const override { return "DPP moves as part of float operations"; }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  bool fuse(MachineInstr &operation, const Fusion &fusion, unsigned fusedOpcode);
  bool isConstant(Register reg, uint32_t bits) const;

  MachineRegisterInfo *registers = nullptr;
  const TargetInstrInfo *instructions = nullptr;
  const TargetRegisterInfo *physical = nullptr;
};
char FuseMoves::ID = 0;
} // namespace

/// A register that a move of a constant writes.
bool FuseMoves::isConstant(Register reg, uint32_t bits) const {
  const MachineInstr *definition = reg.isVirtual() ? registers->getUniqueVRegDef(reg) : nullptr;
  return definition && definition->isMoveImmediate() && definition->getOperand(1).isImm() &&
         uint32_t(definition->getOperand(1).getImm()) == bits;
}

bool FuseMoves::fuse(MachineInstr &operation, const Fusion &fusion, unsigned fusedOpcode) {
  for (unsigned at : {Operation::modifiers0, Operation::modifiers1, Operation::clamp, Operation::scale})
    if (!operation.getOperand(at).isImm() || operation.getOperand(at).getImm() != 0)
      return false;
  for (bool isSwapped : {false, true}) {
    const MachineOperand &moved = operation.getOperand(isSwapped ? Operation::source1 : Operation::source0);
    const MachineOperand &other = operation.getOperand(isSwapped ? Operation::source0 : Operation::source1);
    if (!moved.isReg() || !other.isReg() || moved.getReg() == other.getReg() || !moved.getReg().isVirtual() ||
        !other.getReg().isVirtual() || moved.getSubReg() || other.getSubReg() ||
        !registers->hasOneNonDBGUse(moved.getReg()))
      continue;
    MachineInstr *move = registers->getUniqueVRegDef(moved.getReg());
    if (!move || move->getOpcode() != machine::findOpcode(*instructions, "V_MOV_B32_dpp") ||
        move->getOperand(Move::bound).getImm() != 0 || !move->getOperand(Move::old).isReg() ||
        !isConstant(move->getOperand(Move::old).getReg(), fusion.identity) ||
        registers->getRegClass(other.getReg()) != registers->getRegClass(moved.getReg()) ||
        !machine::hasSameLanes(*move, operation, *physical))
      continue;
    auto fused = BuildMI(*operation.getParent(), operation, operation.getDebugLoc(), instructions->get(fusedOpcode),
                         operation.getOperand(Operation::result).getReg())
                     .addReg(other.getReg())
                     .addImm(0)
                     .addReg(move->getOperand(Move::source).getReg(), /*flags=*/0,
                             move->getOperand(Move::source).getSubReg())
                     .addImm(0)
                     .addReg(other.getReg());
    for (unsigned at : {Move::control, Move::rows, Move::banks, Move::bound})
      fused.addImm(move->getOperand(at).getImm());
    fused->setFlags(operation.getFlags());
    registers->clearKillFlags(other.getReg());
    registers->clearKillFlags(move->getOperand(Move::source).getReg());
    operation.eraseFromParent();
    move->eraseFromParent();
    return true;
  }
  return false;
}

bool FuseMoves::runOnMachineFunction(MachineFunction &function) {
  registers = &function.getRegInfo();
  instructions = function.getSubtarget().getInstrInfo();
  physical = function.getSubtarget().getRegisterInfo();
  unsigned move = machine::findOpcode(*instructions, "V_MOV_B32_dpp");
  bool hasMoves = false;
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : block)
      hasMoves |= instruction.getOpcode() == move;
  if (!hasMoves)
    return false;

  bool hasChanged = false;
  for (const Fusion &fusion : fusions) {
    unsigned opcode = machine::findOpcode(*instructions, fusion.operation),
             fused = machine::findOpcode(*instructions, fusion.fused);
    for (MachineBasicBlock &block : function)
      for (MachineInstr &instruction : make_early_inc_range(block))
        if (instruction.getOpcode() == opcode)
          hasChanged |= fuse(instruction, fusion, fused);
  }
  return hasChanged;
}

bool CopyScalars::runOnMachineFunction(MachineFunction &function) {
  if (!function.getProperties().hasIsSSA())
    return false;
  MachineRegisterInfo &registers = function.getRegInfo();
  const TargetInstrInfo &instructions = *function.getSubtarget().getInstrInfo();
  unsigned opcodes[] = {machine::findOpcode(instructions, "V_ADD_CO_U32_e64_dpp"),
                        machine::findOpcode(instructions, "V_SUB_CO_U32_e64_dpp"),
                        machine::findOpcode(instructions, "V_SUBREV_CO_U32_e64_dpp"),
                        machine::findOpcode(instructions, "V_ADDC_U32_e64_dpp"),
                        machine::findOpcode(instructions, "V_SUBB_U32_e64_dpp"),
                        machine::findOpcode(instructions, "V_SUBBREV_U32_e64_dpp")};
  bool hasChanged = false;
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : block) {
      if (!is_contained(opcodes, instruction.getOpcode()))
        continue;
      constexpr unsigned result = 0, source0 = 3, source1 = 4;
      const TargetRegisterClass *vector = registers.getRegClass(instruction.getOperand(result).getReg());
      for (unsigned at : {source0, source1}) {
        MachineOperand &operand = instruction.getOperand(at);
        if (!operand.isReg() || machine::isVector(operand, registers))
          continue;
        Register copy = registers.createVirtualRegister(vector);
        BuildMI(block, instruction, instruction.getDebugLoc(), instructions.get(TargetOpcode::COPY), copy)
            .addReg(operand.getReg(), /*flags=*/0, operand.getSubReg());
        operand.setReg(copy);
        operand.setSubReg(0);
        operand.setIsKill(false);
        hasChanged = true;
      }
    }
  return hasChanged;
}

void addAMDGCNMachinePasses(TargetPassConfig &config) {
  static std::once_flag once;
  static char *fuseExchange, *fuseSums;
  std::call_once(once, [] {
    registerMachinePass<FuseMoves>("DPP moves as part of float operations", "qd-fuse-moves");
    registerMachinePass<CopyScalars>("vector operands of DPP additions with carry", "qd-copy-scalars");
    fuseExchange = &registerFuseExchange();
    fuseSums = &registerFuseSums();
  });
  auto insertBehind = [&](StringRef name, char &id) {
    if (const PassInfo *info = PassRegistry::getPassRegistry()->getPassInfo(name))
      config.insertPass(info->getTypeInfo(), &id);
  };
  insertBehind("si-fold-operands", *fuseSums); // in front of LLVM's own, which takes the lower word alone
  insertBehind("gcn-dpp-combine", FuseMoves::ID);
  insertBehind("gcn-dpp-combine", *fuseExchange);
  insertBehind("si-shrink-instructions", CopyScalars::ID);
}

} // namespace qd
