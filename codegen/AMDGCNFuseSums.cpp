//===- AMDGCNFuseSums.cpp - DPP moves as part of sums of two words -----------------------------===//
//
// Purpose: additions of 64 bits whose one operand was moved by DPP. LLVM 22 makes at most the lower word's move part of
// its addition, and none of one that takes a single instruction:
//
//   %m0 = V_MOV_B32_dpp %v.lower, row_shr:1    %m1 = V_MOV_B32_dpp %v.upper, row_shr:1
//   %s0, %c = V_ADD_CO_U32 %m0, %o.lower       %s1 = V_ADDC_U32 %m1, %o.upper, %c
//     ->
//   %s0, %c = V_ADD_CO_U32_dpp old(%o.lower), %v.lower, %o.lower, row_shr:1
//   %s1 = V_ADDC_U32_dpp old(%o.upper), %v.upper, %o.upper, %c, row_shr:1
//
// A lane that the move gives nothing has 0 there, or anything; both instructions leave it what it has. What the carry
// holds on such a lane nobody reads, as neither of them writes it: this is why both words must move alike.
//
// An f64 that chips of gfx9 with `row_newbcast` tell to others by one move is added by a multiplication by 1.0 and an
// addition, rounded once, which takes such a move and leaves lanes as they are:
//
//   %m = V_MOV_B64_DPP_PSEUDO -0.0, %v, row_newbcast:3    %s = V_ADD_F64 %m, %o
//     ->
//   %s = V_FMAC_F64_dpp %v, 1.0, old(%o), row_newbcast:3
//
// Moves that LLVM's pass behind this one would make part of an operation and should not are kept out of its sight.
// Among them are those of what is taken off something: LLVM turns the operands around for that, as DPP moves the first
// one, and the chips carry out a subtraction of reversed operands as one whose operands they exchange before they move
// the first. Shifts by what was moved have reversed operands from the start; before gfx11 chips do the same with these.
//
//   %m = V_MOV_B32_dpp %v, row_shr:1    %d = V_SUB_U32 %x, %m
//     -> not
//   %d = V_SUBREV_U32_dpp %v, %x, row_shr:1
//
// But where lanes that a mask leaves out have 0 taken off, the subtraction leaves these out instead, and the move is
// one of all lanes, which needs no 0 before:
//
//   %m0 = V_MOV_B32_dpp 0, %v.lower, row_share:7, banks    %s0, %c = V_SUB_CO_U32 %x.lower, %m0    (upper words alike)
//     ->
//   %m0 = V_MOV_B32_dpp %v.lower, row_share:7
//   %s0, %c = V_SUB_CO_U32_dpp old(%x.lower), %x.lower, %m0, in place, banks
//
// And a subtraction from what was moved takes the banks that a move in place takes of its result:
//
//   %m = V_MOV_B32_dpp %v, row_shr:8    %d = V_SUB_U32 %m, %x    %r = V_MOV_B32_dpp old(%w), %d, in place, banks
//     ->
//   %r = V_SUB_U32_dpp old(%w), %v, %x, row_shr:8, banks
//
// Input: machine code in SSA form in front of LLVM's own pass of this kind. Output: the same values in the same lanes.
// gfx9 has such additions with VCC alone, gfx11 and later with any mask; gfx10 has none.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNPasses.h"

#include "codegen/AMDGCNMachine.h"
#include "codegen/MachinePass.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace qd {

using machine::Move;

namespace {
/// Operands of additions and subtractions of one word, by LLVM's definitions.
struct Word {
  enum { result, carry, source0, source1, carried };
};
/// Operands of V_LSHL_ADD_U64.
struct Wide {
  enum { result, source0, shift, source1 };
};

/// Operands of V_ADD_F64.
struct Double {
  enum { result, modifiers0, source0, modifiers1, source1, clamp, scale };
};

/// A sum's words: what of the other operand stays, the move, and the registers to write.
struct Sum {
  MachineOperand *own[2];
  MachineInstr *move[2];
  Register result[2], carry[2]; ///< no carry's register where VCC takes its place
  bool isSubtraction;
};

/// An operation that LLVM may give a move, of which chips move the other operand: that one of the two sources.
struct Reversal {
  StringLiteral operation;
  unsigned source;
  bool isShift;
};
constexpr Reversal reversals[] = {
    {"V_SUB_U32", 1, false},     {"V_SUBREV_U32", 0, false},    {"V_SUB_CO_U32", 1, false},
    {"V_SUBREV_CO_U32", 0, false}, {"V_SUBB_U32", 1, false},    {"V_SUBBREV_U32", 0, false},
    {"V_SUB_U16", 1, false},     {"V_SUBREV_U16", 0, false},    {"V_LSHLREV_B32", 0, true},
    {"V_LSHRREV_B32", 0, true},  {"V_ASHRREV_I32", 0, true},    {"V_LSHLREV_B16", 0, true},
    {"V_LSHRREV_B16", 0, true},  {"V_ASHRREV_I16", 0, true},
};

class FuseSums : public MachinePass {
public:
  static char ID;
  FuseSums() : MachinePass(ID) {}

  StringRef getPassName() const override { return "DPP moves as part of sums of two words"; }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  unsigned find(StringRef name) const { return machine::findOpcode(*instructions, name); }
  MachineInstr *getMove(const MachineOperand &operand) const;
  MachineInstr *getDefinition(const MachineOperand &operand) const;
  bool isNothing(const MachineOperand &old) const;
  bool canFuse(const Sum &sum, const MachineInstr &at) const;
  bool matchWord(MachineInstr &word, Sum &sum, unsigned i) const;
  Register buildMove(const MachineInstr &move, MachineInstr &at);
  void build(const Sum &sum, unsigned i, MachineInstr &at);
  bool fuseWords(MachineInstr &lower);
  bool fuseWide(MachineInstr &wide);
  bool fuseDouble(MachineInstr &sum);
  bool fuseInBanks(MachineInstr &merge);
  bool isScalar(const MachineOperand &operand) const;
  bool mayTurn(const MachineInstr &move) const;
  bool isReversed(const MachineOperand &use) const;
  bool reverses(const MachineInstr &move) const;
  void hide(MachineInstr &move);
  bool hideMoves(MachineBasicBlock &block);

  MachineRegisterInfo *registers = nullptr;
  const TargetInstrInfo *instructions = nullptr;
  const TargetRegisterInfo *physical = nullptr;
  bool hasCarries = false, usesVCC = false;
  unsigned moveOpcode = 0, addLower = 0, addUpper = 0, subtractLower = 0, subtractUpper = 0, subtract = 0, addWide = 0,
           addDouble = 0, moveDouble = 0;
  DenseMap<unsigned, unsigned> reversed; ///< the source by the operation's number
};
char FuseSums::ID = 0;
} // namespace

//===----------------------------------------------------------------------===//
// What may be fused
//===----------------------------------------------------------------------===//

/// The move that defines the operand, and nothing else.
MachineInstr *FuseSums::getMove(const MachineOperand &operand) const {
  if (!operand.isReg() || !operand.getReg().isVirtual() || operand.getSubReg() ||
      !registers->hasOneNonDBGUse(operand.getReg()))
    return nullptr;
  MachineInstr *move = registers->getUniqueVRegDef(operand.getReg());
  return move && move->getOpcode() == moveOpcode ? move : nullptr;
}

/// What defines the operand, behind copies.
MachineInstr *FuseSums::getDefinition(const MachineOperand &operand) const {
  const MachineOperand *at = &operand;
  while (at->isReg() && at->getReg().isVirtual() && !at->getSubReg()) {
    MachineInstr *definition = registers->getUniqueVRegDef(at->getReg());
    if (!definition || !definition->isCopy())
      return definition;
    at = &definition->getOperand(1);
  }
  return nullptr;
}

/// Whether the instruction moves a constant.
static bool isConstant(const MachineInstr &definition, uint32_t bits) {
  return definition.isMoveImmediate() && definition.getOperand(1).isImm() &&
         uint32_t(definition.getOperand(1).getImm()) == bits;
}

/// Whether a move leaves 0, or nothing that is of interest, where it has no source.
bool FuseSums::isNothing(const MachineOperand &old) const {
  const MachineInstr *definition = getDefinition(old);
  return definition && (definition->isImplicitDef() || isConstant(*definition, 0));
}

/// Whether the move leaves out rows or banks.
static bool isMasked(const MachineInstr &move) {
  return move.getOperand(Move::rows).getImm() != 15 || move.getOperand(Move::banks).getImm() != 15;
}

bool FuseSums::canFuse(const Sum &sum, const MachineInstr &at) const {
  for (unsigned i : {0, 1}) {
    const MachineInstr &move = *sum.move[i];
    if (!machine::isVector(*sum.own[i], *registers) || !machine::isVector(move.getOperand(Move::source), *registers) ||
        !isNothing(move.getOperand(Move::old)) || !machine::hasSameLanes(move, at, *physical) || mayTurn(move))
      return false;
  }
  for (unsigned at : {Move::control, Move::rows, Move::banks, Move::bound})
    if (sum.move[0]->getOperand(at).getImm() != sum.move[1]->getOperand(at).getImm())
      return false;
  if (!usesVCC)
    return true;
  Register vcc = instructions->get(find("V_ADD_CO_U32_dpp")).implicit_defs().front();
  return machine::isFree(vcc, at.getIterator(), *physical);
}

/// Of a subtraction the second operand is moved, and the move leaves lanes out.
bool FuseSums::matchWord(MachineInstr &word, Sum &sum, unsigned i) const {
  for (unsigned moved : {Word::source1, Word::source0}) {
    if (sum.isSubtraction && moved == Word::source0)
      return false;
    sum.move[i] = getMove(word.getOperand(moved));
    sum.own[i] = &word.getOperand(moved == Word::source0 ? Word::source1 : Word::source0);
    if (sum.move[i] && !(sum.isSubtraction && !isMasked(*sum.move[i]))) {
      sum.result[i] = word.getOperand(Word::result).getReg();
      sum.carry[i] = usesVCC ? Register() : word.getOperand(Word::carry).getReg();
      return true;
    }
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Fused instructions
//===----------------------------------------------------------------------===//

constexpr int64_t inPlace = 0xe4; ///< quad_perm:[0,1,2,3]

/// The same move, in front of `at`, of all lanes, those without a source getting 0.
Register FuseSums::buildMove(const MachineInstr &move, MachineInstr &at) {
  const TargetRegisterClass *type = registers->getRegClass(move.getOperand(Move::result).getReg());
  Register moved = registers->createVirtualRegister(type), nothing = registers->createVirtualRegister(type);
  const MachineOperand &source = move.getOperand(Move::source);
  BuildMI(*at.getParent(), at, move.getDebugLoc(), instructions->get(moveOpcode), moved)
      .addReg(nothing, RegState::Undef)
      .addReg(source.getReg(), /*flags=*/0, source.getSubReg())
      .addImm(move.getOperand(Move::control).getImm())
      .addImm(15)
      .addImm(15)
      .addImm(1);
  registers->clearKillFlags(source.getReg());
  return moved;
}

void FuseSums::build(const Sum &sum, unsigned i, MachineInstr &at) {
  const MachineInstr &move = *sum.move[i];
  const MachineOperand &own = *sum.own[i], &source = move.getOperand(Move::source);
  Register moved = sum.isSubtraction ? buildMove(move, at) : Register();
  StringRef name = i == 0 ? sum.isSubtraction ? "V_SUB_CO_U32" : "V_ADD_CO_U32"
                          : sum.isSubtraction ? "V_SUBB_U32" : "V_ADDC_U32";
  auto fused = BuildMI(*at.getParent(), at, at.getDebugLoc(),
                       instructions->get(find((name + (usesVCC ? "_dpp" : "_e64_dpp")).str())), sum.result[i]);
  if (!usesVCC)
    fused.addReg(sum.carry[i], RegState::Define);
  const MachineOperand &first = sum.isSubtraction ? own : source;
  fused.addReg(own.getReg(), /*flags=*/0, own.getSubReg()).addReg(first.getReg(), /*flags=*/0, first.getSubReg());
  if (sum.isSubtraction)
    fused.addReg(moved);
  else
    fused.addReg(own.getReg(), /*flags=*/0, own.getSubReg());
  if (!usesVCC) {
    if (i == 1)
      fused.addReg(sum.carry[0]);
    fused.addImm(0); // clamp
  }
  fused.addImm(sum.isSubtraction ? inPlace : move.getOperand(Move::control).getImm());
  for (unsigned from : {Move::rows, Move::banks, Move::bound})
    fused.addImm(move.getOperand(from).getImm());
  registers->clearKillFlags(own.getReg());
  registers->clearKillFlags(source.getReg());
}

/// An addition or subtraction of the lower words whose carry that of the upper ones takes.
bool FuseSums::fuseWords(MachineInstr &lower) {
  Sum sum;
  sum.isSubtraction = lower.getOpcode() == subtractLower;
  Register carry = lower.getOperand(Word::carry).getReg();
  if (!carry.isVirtual() || !registers->hasOneNonDBGUse(carry) || !matchWord(lower, sum, 0))
    return false;
  MachineInstr &upper = *registers->use_instr_nodbg_begin(carry);
  if (upper.getOpcode() != (sum.isSubtraction ? subtractUpper : addUpper) ||
      upper.getOperand(Word::carried).getReg() != carry || upper.getParent() != lower.getParent() ||
      !matchWord(upper, sum, 1) || !canFuse(sum, upper))
    return false;
  // VCC is written and read in one place, that of the upper words: there the lower ones' sum is not wanted yet.
  if (usesVCC) {
    if (!registers->use_nodbg_empty(upper.getOperand(Word::carry).getReg()))
      return false;
    for (const MachineInstr &user : registers->use_nodbg_instructions(sum.result[0]))
      if (user.getParent() == lower.getParent() && !machine::isBefore(upper, user) && !user.isPHI())
        return false;
  }
  build(sum, 0, usesVCC ? upper : lower);
  build(sum, 1, upper);
  for (MachineInstr *gone : {&lower, &upper, sum.move[0], sum.move[1]})
    gone->eraseFromParent();
  return true;
}

/// gfx942 and later of gfx9: an addition of both words at once. There a carry is waited for as long as two moves take,
/// so that only what lanes of other banks have by themselves is worth it.
bool FuseSums::fuseWide(MachineInstr &wide) {
  const MachineOperand &shift = wide.getOperand(Wide::shift);
  if (!shift.isImm() || shift.getImm() != 0)
    return false;
  for (unsigned moved : {Wide::source1, Wide::source0}) {
    const MachineOperand &pair = wide.getOperand(moved),
                         &own = wide.getOperand(moved == Wide::source0 ? Wide::source1 : Wide::source0);
    if (!pair.isReg() || !pair.getReg().isVirtual() || pair.getSubReg() || !own.isReg() || !own.getReg().isVirtual() ||
        own.getSubReg() || !registers->hasOneNonDBGUse(pair.getReg()))
      continue;
    constexpr unsigned numOperands = 5;
    MachineInstr *sequence = registers->getUniqueVRegDef(pair.getReg());
    if (!sequence || !sequence->isRegSequence() || sequence->getNumOperands() != numOperands)
      continue;
    Sum sum;
    sum.isSubtraction = false;
    unsigned parts[2];
    MachineOperand words[2] = {own, own};
    for (unsigned at : {1, 3}) {
      unsigned part = sequence->getOperand(at + 1).getImm(), i = physical->getSubRegIdxOffset(part) != 0;
      parts[i] = part;
      words[i].setSubReg(part);
      sum.own[i] = &words[i];
      sum.move[i] = getMove(sequence->getOperand(at));
    }
    if (!sum.move[0] || !sum.move[1] || sum.move[0] == sum.move[1] ||
        sum.move[0]->getOperand(Move::banks).getImm() == 15 || !canFuse(sum, wide))
      continue;
    for (unsigned i : {0, 1}) {
      sum.result[i] = registers->createVirtualRegister(registers->getRegClass(sum.move[i]->getOperand(0).getReg()));
      build(sum, i, wide);
    }
    BuildMI(*wide.getParent(), wide, wide.getDebugLoc(), instructions->get(TargetOpcode::REG_SEQUENCE),
            wide.getOperand(Wide::result).getReg())
        .addReg(sum.result[0])
        .addImm(parts[0])
        .addReg(sum.result[1])
        .addImm(parts[1]);
    for (MachineInstr *gone : {&wide, sequence, sum.move[0], sum.move[1]})
      gone->eraseFromParent();
    return true;
  }
  return false;
}

/// A move that one lane of each row makes, of a value that is added to one of the same register class.
bool FuseSums::fuseDouble(MachineInstr &sum) {
  for (unsigned at : {Double::modifiers0, Double::modifiers1, Double::clamp, Double::scale})
    if (!sum.getOperand(at).isImm() || sum.getOperand(at).getImm() != 0)
      return false;
  constexpr unsigned numOperands = 5, rowBroadcasts = 0x150, lanes = 16;
  constexpr uint32_t signBit = 0x80000000;
  for (bool isSwapped : {false, true}) {
    const MachineOperand &moved = sum.getOperand(isSwapped ? Double::source1 : Double::source0),
                         &own = sum.getOperand(isSwapped ? Double::source0 : Double::source1);
    if (!moved.isReg() || !moved.getReg().isVirtual() || moved.getSubReg() || !own.isReg() ||
        !own.getReg().isVirtual() || own.getSubReg() || !registers->hasOneNonDBGUse(moved.getReg()) ||
        registers->getRegClass(own.getReg()) != registers->getRegClass(moved.getReg()))
      continue;
    MachineInstr *move = registers->getUniqueVRegDef(moved.getReg());
    if (!move || move->getOpcode() != moveDouble || move->getOperand(Move::bound).getImm() != 0 ||
        unsigned(move->getOperand(Move::control).getImm()) - rowBroadcasts >= lanes ||
        !machine::hasSameLanes(*move, sum, *physical))
      continue;
    const MachineOperand &old = move->getOperand(Move::old), &source = move->getOperand(Move::source);
    MachineInstr *neutral = getDefinition(old);
    if (!neutral || !neutral->isRegSequence() || neutral->getNumOperands() != numOperands || !source.isReg() ||
        source.getSubReg() || registers->getRegClass(source.getReg()) != registers->getRegClass(own.getReg()))
      continue;
    bool isNeutral = true;
    for (unsigned at : {1, 3}) {
      bool isUpper = physical->getSubRegIdxOffset(neutral->getOperand(at + 1).getImm()) != 0;
      const MachineInstr *word = getDefinition(neutral->getOperand(at));
      isNeutral &= word && isConstant(*word, isUpper ? signBit : 0);
    }
    if (!isNeutral)
      continue;
    Register one = registers->createVirtualRegister(registers->getRegClass(own.getReg()));
    BuildMI(*sum.getParent(), sum, sum.getDebugLoc(), instructions->get(find("V_LSHRREV_B64_e64")), one)
        .addImm(0)
        .addImm(llvm::bit_cast<int64_t>(1.0)); // gfx90a would move each word
    auto fused = BuildMI(*sum.getParent(), sum, sum.getDebugLoc(), instructions->get(find("V_FMAC_F64_dpp")),
                         sum.getOperand(Double::result).getReg())
                     .addImm(0)
                     .addReg(source.getReg())
                     .addImm(0)
                     .addReg(one)
                     .addReg(own.getReg());
    for (unsigned from : {Move::control, Move::rows, Move::banks, Move::bound})
      fused.addImm(move->getOperand(from).getImm());
    fused->setFlags(sum.getFlags());
    registers->clearKillFlags(own.getReg());
    registers->clearKillFlags(source.getReg());
    sum.eraseFromParent();
    move->eraseFromParent();
    return true;
  }
  return false;
}

/// A move in place of some banks' lanes, of what a subtraction from something moved gives; the others keep what stands
/// in for it.
bool FuseSums::fuseInBanks(MachineInstr &merge) {
  enum { result, source0, source1, clamp };
  const MachineOperand &old = merge.getOperand(Move::old), &merged = merge.getOperand(Move::source);
  if (merge.getOperand(Move::control).getImm() != inPlace || !isMasked(merge) || !machine::isVector(old, *registers) ||
      !merged.isReg() || !merged.getReg().isVirtual() || merged.getSubReg() ||
      !registers->hasOneNonDBGUse(merged.getReg()))
    return false;
  MachineInstr *difference = registers->getUniqueVRegDef(merged.getReg());
  if (!difference || difference->getOpcode() != subtract || difference->getOperand(clamp).getImm() != 0)
    return false;
  const MachineOperand &own = difference->getOperand(source1);
  MachineInstr *move = getMove(difference->getOperand(source0));
  if (!move || isMasked(*move) || move->getOperand(Move::bound).getImm() == 0 || mayTurn(*move) ||
      !machine::isVector(move->getOperand(Move::source), *registers) || !machine::isVector(own, *registers) ||
      !machine::hasSameLanes(*move, merge, *physical))
    return false;
  const MachineOperand &source = move->getOperand(Move::source);
  auto fused = BuildMI(*merge.getParent(), merge, difference->getDebugLoc(), instructions->get(find("V_SUB_U32_dpp")),
                       merge.getOperand(Move::result).getReg());
  for (const MachineOperand *operand : {&old, &source, &own}) {
    fused.addReg(operand->getReg(), /*flags=*/0, operand->getSubReg());
    registers->clearKillFlags(operand->getReg());
  }
  fused.addImm(move->getOperand(Move::control).getImm());
  for (unsigned from : {Move::rows, Move::banks})
    fused.addImm(merge.getOperand(from).getImm());
  fused.addImm(move->getOperand(Move::bound).getImm());
  for (MachineInstr *gone : {&merge, difference, move})
    gone->eraseFromParent();
  return true;
}

//===----------------------------------------------------------------------===//
// What may not
//===----------------------------------------------------------------------===//

/// Whether the operand is a scalar register's copy, or a constant.
bool FuseSums::isScalar(const MachineOperand &operand) const {
  Register reg = operand.getReg();
  unsigned part = operand.getSubReg();
  while (true) {
    if (!reg.isVirtual())
      return StringRef(physical->getRegClassName(physical->getMinimalPhysRegClass(reg))).starts_with("S");
    if (StringRef(physical->getRegClassName(registers->getRegClass(reg))).starts_with("S"))
      return true;
    const MachineInstr *definition = registers->getUniqueVRegDef(reg);
    if (!definition || definition->isMoveImmediate())
      return definition != nullptr;
    const MachineOperand *from = nullptr;
    if (definition->isCopy() && (part == 0 || definition->getOperand(1).getSubReg() == 0))
      from = &definition->getOperand(1);
    if (definition->isRegSequence() && part != 0)
      for (unsigned at = 1; at + 1 < definition->getNumOperands(); at += 2)
        if (definition->getOperand(at + 1).getImm() == part)
          from = &definition->getOperand(at);
    if (!from)
      return false;
    if (definition->isRegSequence())
      part = from->getSubReg();
    else if (from->getSubReg() != 0)
      part = from->getSubReg();
    reg = from->getReg();
  }
}

/// Whether LLVM might exchange the operands of an instruction that the move has become part of, so that the other one
/// is moved: on gfx11 and later it folds a scalar into any operation, and exchanges operands for that.
bool FuseSums::mayTurn(const MachineInstr &move) const {
  return !usesVCC && move.getOperand(Move::control).getImm() != inPlace && isScalar(move.getOperand(Move::source));
}

/// Whether LLVM's pass would turn the operands around to give the moved one, `use`, its move, or they are already.
bool FuseSums::isReversed(const MachineOperand &use) const {
  const MachineInstr &user = *use.getParent();
  auto found = reversed.find(user.getOpcode());
  return found != reversed.end() && use.getOperandNo() == user.getNumExplicitDefs() + found->second;
}

/// Whether anything takes the moved value, or a number of several words that it is part of, in such a way.
bool FuseSums::reverses(const MachineInstr &move) const {
  for (const MachineOperand &use : registers->use_nodbg_operands(move.getOperand(Move::result).getReg()))
    if (isReversed(use) ||
        (use.getParent()->isRegSequence() &&
         any_of(registers->use_nodbg_operands(use.getParent()->getOperand(0).getReg()),
                [&](const MachineOperand &part) { return isReversed(part); })))
      return true;
  return false;
}

/// Gives what the move's users read another name, which LLVM's pass does not look behind.
void FuseSums::hide(MachineInstr &move) {
  Register moved = move.getOperand(Move::result).getReg();
  Register copy = registers->createVirtualRegister(registers->getRegClass(moved));
  registers->replaceRegWith(moved, copy);
  move.getOperand(Move::result).setReg(moved);
  registers->clearKillFlags(copy);
  BuildMI(*move.getParent(), std::next(move.getIterator()), move.getDebugLoc(), instructions->get(TargetOpcode::COPY),
          copy)
      .addReg(moved);
}

/// Those that would become part of an operation of reversed operands; on gfx11 and later also the lower words' move, of
/// lanes that it leaves out, which would become part of an addition that gives a carry.
bool FuseSums::hideMoves(MachineBasicBlock &block) {
  SmallVector<MachineInstr *> hidden;
  for (MachineInstr &instruction : block) {
    bool isMove = instruction.getOpcode() == moveOpcode;
    if (!isMove && instruction.getOpcode() != moveDouble)
      continue;
    if (reverses(instruction)) {
      hidden.push_back(&instruction);
      continue;
    }
    if (!isMove || !hasCarries || usesVCC)
      continue;
    auto isAll = [&](unsigned at) { return instruction.getOperand(at).getImm() == 15; };
    bool leavesOut = !isAll(Move::rows) || !isAll(Move::banks) || instruction.getOperand(Move::bound).getImm() == 0;
    auto takesCarry = [&](const MachineInstr &user) {
      return user.getOpcode() == addLower || user.getOpcode() == subtractLower;
    };
    bool isTaken = leavesOut &&
                   any_of(registers->use_nodbg_instructions(instruction.getOperand(Move::result).getReg()), takesCarry);
    if (isTaken || mayTurn(instruction))
      hidden.push_back(&instruction);
  }
  for (MachineInstr *move : hidden)
    hide(*move);
  return !hidden.empty();
}

bool FuseSums::runOnMachineFunction(MachineFunction &function) {
  StringRef chip = function.getSubtarget().getCPU();
  usesVCC = chip.starts_with("gfx9");
  if (!function.getProperties().hasIsSSA())
    return false;
  bool isLater = chip.starts_with("gfx11") || chip.starts_with("gfx12");
  hasCarries = usesVCC || isLater;
  registers = &function.getRegInfo();
  instructions = function.getSubtarget().getInstrInfo();
  physical = function.getSubtarget().getRegisterInfo();
  moveOpcode = find("V_MOV_B32_dpp");
  addLower = find("V_ADD_CO_U32_e64");
  addUpper = find("V_ADDC_U32_e64");
  subtractLower = find("V_SUB_CO_U32_e64");
  subtractUpper = find("V_SUBB_U32_e64");
  subtract = find("V_SUB_U32_e64");
  addWide = find("V_LSHL_ADD_U64_e64");
  addDouble = find("V_ADD_F64_e64");
  moveDouble = find("V_MOV_B64_DPP_PSEUDO");
  reversed.clear();
  for (const Reversal &row : reversals)
    for (const char *encoding : {"_e32", "_e64"})
      if (unsigned opcode = find((row.operation + encoding).str()); opcode != 0 && !(row.isShift && isLater))
        reversed[opcode] = row.source;
  bool hasChanged = false;
  for (MachineBasicBlock &block : function) {
    SmallVector<MachineInstr *> lowers, wides, doubles, merges;
    for (MachineInstr &instruction : block)
      if (instruction.getOpcode() == moveOpcode && instruction.getOperand(Move::control).getImm() == inPlace)
        merges.push_back(&instruction);
      else if (!hasCarries)
        continue;
      else if (instruction.getOpcode() == addLower || instruction.getOpcode() == subtractLower)
        lowers.push_back(&instruction);
      else if (instruction.getOpcode() == addWide)
        wides.push_back(&instruction);
      else if (instruction.getOpcode() == addDouble)
        doubles.push_back(&instruction);
    for (MachineInstr *merge : merges)
      hasChanged |= fuseInBanks(*merge);
    for (MachineInstr *lower : lowers)
      hasChanged |= fuseWords(*lower);
    for (MachineInstr *wide : wides)
      hasChanged |= fuseWide(*wide);
    for (MachineInstr *sum : doubles)
      hasChanged |= usesVCC && fuseDouble(*sum);
    hasChanged |= hideMoves(block);
  }
  return hasChanged;
}

char &registerFuseSums() {
  registerMachinePass<FuseSums>("DPP moves as part of sums of two words", "qd-fuse-sums");
  return FuseSums::ID;
}

} // namespace qd
