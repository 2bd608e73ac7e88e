//===- AMDGCNFuseMoves.cpp - DPP moves as part of float operations ---------------------------===//
//
// Purpose: LLVM 22 makes a DPP move part of an operation on integers where lanes without a source get the operation's
// identity; those then keep the other operand. It does not know the identities of float operations:
//
//   %x = V_MOV_B32_dpp -0.0, %v, row_shr:1     %r = V_ADD_F32_e64 %x, %o
//     ->
//   %r = V_ADD_F32_dpp old(%o), %v, %o, row_shr:1
//
// Nor does it look at products that are added to something (the weighted sums of tiles below a row), at the second and
// third operand of an operation on three, and at moves among 8 lanes:
//
//   %x = V_MOV_B32_dpp8 %v, [0,0,1,2,3,4,5,6]    (an empty asm statement)    %r = V_FMAC_F32_e64 %x, %w, %o
//     ->
//   %r = V_FMAC_F32_dpp8 %v, %w, old(%o), [0,0,1,2,3,4,5,6]
//
// Input: machine code in SSA form behind LLVM's own pass of this kind. Output: the same values in the same lanes, but
// that a NaN which is added to nothing keeps its payload.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNPasses.h"

#include "codegen/AMDGCNMachine.h"
#include "codegen/MachinePass.h"

#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/InlineAsm.h"

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

/// Operands of a product that is added to something.
struct Product {
  enum { result, modifiers0, source0, modifiers1, source1, modifiers2, sum, clamp, scale };
};

class FuseMoves : public MachinePass {
public:
  static char ID;
  FuseMoves() : MachinePass(ID) {}

  StringRef getPassName() const override { return "DPP moves as part of float operations"; }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  bool fuse(MachineInstr &operation, const Fusion &fusion, unsigned fusedOpcode);
  bool fuseProduct(MachineInstr &product);
  bool fuseDifference(MachineInstr &difference);
  bool fuseThree(MachineInstr &operation, unsigned fusedOpcode);
  MachineInstr *getMove(const MachineOperand &operand, MachineInstr *&pin) const;
  bool isConstant(Register reg, uint32_t bits) const;

  MachineRegisterInfo *registers = nullptr;
  const TargetInstrInfo *instructions = nullptr;
  const TargetRegisterInfo *physical = nullptr;
  unsigned moveOpcode = 0, moveEightOpcode = 0, productEightOpcode = 0, differenceEightOpcode = 0;
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

/// The move of all lanes that defines the operand and nothing else, and the empty asm statement that keeps it in place.
MachineInstr *FuseMoves::getMove(const MachineOperand &operand, MachineInstr *&pin) const {
  pin = nullptr;
  if (!operand.isReg() || !operand.getReg().isVirtual() || operand.getSubReg() ||
      !registers->hasOneNonDBGUse(operand.getReg()))
    return nullptr;
  MachineInstr *move = registers->getUniqueVRegDef(operand.getReg());
  if (move && move->getOpcode() == moveOpcode) {
    bool isAll = move->getOperand(Move::rows).getImm() == 15 && move->getOperand(Move::banks).getImm() == 15 &&
                 move->getOperand(Move::bound).getImm() != 0;
    return isAll ? move : nullptr;
  }
  if (!move || !move->isInlineAsm() || move->getOperand(InlineAsm::MIOp_AsmString).getSymbolName()[0] != 0)
    return nullptr;
  pin = move;
  move = nullptr;
  for (const MachineOperand &use : pin->all_uses())
    if (use.getReg().isVirtual() && !use.getSubReg() && registers->hasOneNonDBGUse(use.getReg()))
      move = registers->getUniqueVRegDef(use.getReg());
  return move && moveEightOpcode != 0 && move->getOpcode() == moveEightOpcode ? move : nullptr;
}

/// A product of a moved factor, added to what its result replaces.
bool FuseMoves::fuseProduct(MachineInstr &product) {
  for (unsigned at : {Product::modifiers0, Product::modifiers1, Product::modifiers2, Product::clamp, Product::scale})
    if (!product.getOperand(at).isImm() || product.getOperand(at).getImm() != 0)
      return false;
  const MachineOperand &sum = product.getOperand(Product::sum);
  for (bool isSwapped : {false, true}) {
    const MachineOperand &factor = product.getOperand(isSwapped ? Product::source0 : Product::source1);
    MachineInstr *pin, *move = getMove(product.getOperand(isSwapped ? Product::source1 : Product::source0), pin);
    if (!move || !machine::isVector(factor, *registers) || !machine::isVector(sum, *registers) || sum.getSubReg() ||
        !machine::isVector(move->getOperand(Move::source), *registers) ||
        !machine::hasSameLanes(*move, product, *physical))
      continue;
    unsigned opcode = pin ? productEightOpcode : machine::findOpcode(*instructions, "V_FMAC_F32_dpp");
    const MachineOperand &source = move->getOperand(Move::source);
    auto fused = BuildMI(*product.getParent(), product, product.getDebugLoc(), instructions->get(opcode),
                         product.getOperand(Product::result).getReg())
                     .addImm(0)
                     .addReg(source.getReg(), /*flags=*/0, source.getSubReg())
                     .addImm(0)
                     .addReg(factor.getReg(), /*flags=*/0, factor.getSubReg())
                     .addReg(sum.getReg());
    for (unsigned at = Move::control; at < move->getNumExplicitOperands(); ++at)
      fused.addImm(move->getOperand(at).getImm());
    fused->setFlags(product.getFlags());
    for (Register reg : {source.getReg(), factor.getReg(), sum.getReg()})
      registers->clearKillFlags(reg);
    for (MachineInstr *gone : {&product, pin, move})
      if (gone)
        gone->eraseFromParent();
    return true;
  }
  return false;
}

/// What a move among 8 lanes gives, less something.
bool FuseMoves::fuseDifference(MachineInstr &difference) {
  enum { result, source0, source1, clamp };
  MachineInstr *pin, *move = getMove(difference.getOperand(source0), pin);
  const MachineOperand &other = difference.getOperand(source1);
  if (!move || !pin || difference.getOperand(clamp).getImm() != 0 || !machine::isVector(other, *registers) ||
      !machine::isVector(move->getOperand(Move::source), *registers) ||
      !machine::hasSameLanes(*move, difference, *physical))
    return false;
  const MachineOperand &source = move->getOperand(Move::source);
  Register old = registers->createVirtualRegister(registers->getRegClass(difference.getOperand(result).getReg()));
  auto fused = BuildMI(*difference.getParent(), difference, difference.getDebugLoc(),
                       instructions->get(differenceEightOpcode), difference.getOperand(result).getReg())
                   .addReg(old, RegState::Undef)
                   .addReg(source.getReg(), /*flags=*/0, source.getSubReg())
                   .addReg(other.getReg(), /*flags=*/0, other.getSubReg());
  for (unsigned at = Move::control; at < move->getNumExplicitOperands(); ++at)
    fused.addImm(move->getOperand(at).getImm());
  for (Register reg : {source.getReg(), other.getReg()})
    registers->clearKillFlags(reg);
  for (MachineInstr *gone : {&difference, pin, move})
    gone->eraseFromParent();
  return true;
}

/// gfx11 and later: an operation on three integers in any order, of which LLVM's pass looks at the first alone.
bool FuseMoves::fuseThree(MachineInstr &operation, unsigned fusedOpcode) {
  constexpr unsigned sources[] = {1, 2, 3};
  for (unsigned at : sources)
    if (!machine::isVector(operation.getOperand(at), *registers))
      return false;
  for (unsigned moved : sources) {
    MachineInstr *pin, *move = getMove(operation.getOperand(moved), pin);
    if (!move || pin || !machine::isVector(move->getOperand(Move::source), *registers) ||
        !machine::hasSameLanes(*move, operation, *physical))
      continue;
    auto add = [&](MachineInstrBuilder &fused, const MachineOperand &source) {
      fused.addReg(source.getReg(), /*flags=*/0, source.getSubReg());
      registers->clearKillFlags(source.getReg());
    };
    auto fused = BuildMI(*operation.getParent(), operation, operation.getDebugLoc(),
                         instructions->get(fusedOpcode), operation.getOperand(0).getReg())
                     .addReg(move->getOperand(Move::old).getReg(), RegState::Undef);
    add(fused, move->getOperand(Move::source));
    for (unsigned at : sources)
      if (at != moved)
        add(fused, operation.getOperand(at));
    for (unsigned at : {Move::control, Move::rows, Move::banks, Move::bound})
      fused.addImm(move->getOperand(at).getImm());
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
  auto find = [&](StringRef name) { return machine::findOpcode(*instructions, name); };
  StringRef chip = function.getSubtarget().getCPU();
  StringRef family = chip.starts_with("gfx10") ? "gfx10" : chip.starts_with("gfx11") ? "gfx11" : "gfx12";
  bool hasEights = !chip.starts_with("gfx9"), hasThrees = hasEights && family != "gfx10";
  auto findEight = [&](StringRef name) { return hasEights ? find((name + "_dpp8_" + family).str()) : 0; };
  moveOpcode = find("V_MOV_B32_dpp");
  moveEightOpcode = findEight("V_MOV_B32");
  productEightOpcode = findEight("V_FMAC_F32");
  differenceEightOpcode = findEight("V_SUB_NC_U32");
  unsigned productOpcode = find("V_FMAC_F32_e64"), differenceOpcode = find("V_SUB_U32_e64");
  std::pair<unsigned, unsigned> threeOpcodes[] = {{find("V_ADD3_U32_e64"), find("V_ADD3_U32_e64_dpp")},
                                                  {find("V_XOR3_B32_e64"), find("V_XOR3_B32_e64_dpp")},
                                                  {find("V_OR3_B32_e64"), find("V_OR3_B32_e64_dpp")}};
  bool hasMoves = false;
  SmallVector<MachineInstr *> products, differences, eights;
  SmallVector<std::pair<MachineInstr *, unsigned>> threes;
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : block) {
      unsigned opcode = instruction.getOpcode();
      hasMoves |= opcode == moveOpcode;
      if (opcode == productOpcode)
        products.push_back(&instruction);
      else if (opcode == differenceOpcode)
        differences.push_back(&instruction);
      else if (hasEights && opcode == moveEightOpcode)
        eights.push_back(&instruction);
      for (auto [operation, fused] : threeOpcodes)
        if (hasThrees && opcode == operation)
          threes.emplace_back(&instruction, fused);
    }
  if (!hasMoves && eights.empty())
    return false;

  // A move among 8 lanes leaves none of them out: what its result's register held is of no interest.
  for (MachineInstr *move : eights) {
    MachineOperand &old = move->getOperand(Move::old);
    old.setReg(registers->createVirtualRegister(registers->getRegClass(move->getOperand(Move::result).getReg())));
    old.setIsUndef();
  }
  bool hasChanged = !eights.empty();
  for (const Fusion &fusion : fusions) {
    unsigned opcode = machine::findOpcode(*instructions, fusion.operation),
             fused = machine::findOpcode(*instructions, fusion.fused);
    for (MachineBasicBlock &block : function)
      for (MachineInstr &instruction : make_early_inc_range(block))
        if (instruction.getOpcode() == opcode)
          hasChanged |= fuse(instruction, fusion, fused);
  }
  for (MachineInstr *product : products)
    hasChanged |= fuseProduct(*product);
  for (MachineInstr *difference : differences)
    hasChanged |= fuseDifference(*difference);
  for (auto [operation, fused] : threes)
    hasChanged |= fuseThree(*operation, fused);
  return hasChanged;
}

char &registerFuseMoves() {
  registerMachinePass<FuseMoves>("DPP moves as part of float operations", "qd-fuse-moves");
  return FuseMoves::ID;
}

} // namespace qd
