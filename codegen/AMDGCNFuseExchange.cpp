//===- AMDGCNFuseExchange.cpp - DPP moves as part of compare and exchange ---------------------===//
//
// Purpose: the steps of a sort, which move words, compare all of them by subtraction with borrow, and keep the own
// words or take the moved ones. LLVM 22 makes no moves part of selects, and so of nothing whose moves are also
// selected:
//
//   %m = V_MOV_B32_dpp %v, quad_perm    _, %c = V_SUB_CO_U32 %m, %v    ...    %r = V_CNDMASK_B32 %m, %v, %k
//     ->
//   _, %c = V_SUB_CO_U32_dpp %v, %v, quad_perm    ...    %r = V_CNDMASK_B32_dpp %v, %v, quad_perm, %k
//
// Of signed numbers whose signs are turned around for that, gfx11 and later compare the lowest word as it is, and turn
// it around where it is chosen.
//
// gfx11 and later have each with any mask, and there the masks of steps in a row get registers of their own; gfx9 with
// VCC alone, so that there a whole step stands in one place. gfx10 has no such subtraction.
//
// Input: machine code in SSA form behind LLVM's own pass of this kind. Output: the same values in the same lanes.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNPasses.h"

#include "codegen/AMDGCNMachine.h"
#include "codegen/MachinePass.h"

#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace qd {

using machine::Move;

namespace {
/// Places of operands, by LLVM's definitions.
struct Subtract {
  enum { result, borrow, source0, source1, borrowed };
};
struct Select {
  enum { result, modifiers0, source0, modifiers1, source1, mask };
};
constexpr int64_t negated = 1; ///< a source's modifier

/// One word of a step: compared, chosen or both. What is only compared LLVM has fused.
struct Word {
  MachineInstr *move, *subtract;
  SmallVector<MachineInstr *, 1> selects;
};

/// Machine code of one step, in one block.
struct Exchange {
  SmallVector<Word, 4> words;
  MachineInstr *flip; ///< the exclusive or of the last borrow and the lanes' mask
};

class FuseExchange : public MachinePass {
public:
  static char ID;
  FuseExchange() : MachinePass(ID) {}

  StringRef getPassName() const override { return "DPP moves as part of compare and exchange"; }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  unsigned find(StringRef name) const { return machine::findOpcode(*instructions, name); }
  MachineInstr *getOnlyUser(Register reg) const;
  bool isVector(const MachineOperand &operand) const { return machine::isVector(operand, *registers); }
  bool keepsExec(const MachineInstr &from, const MachineInstr &to) const {
    return machine::hasSameLanes(from, to, *physical);
  }
  std::optional<Exchange> match(MachineInstr &first) const;
  bool isNext(const MachineInstr &subtract) const;
  Register getBorrowed(const MachineInstr &subtract) const;
  bool matchWord(Word &word, const MachineOperand &moved, const MachineInstr &flip) const;
  const MachineOperand *getSigned(const Word &word) const;
  MachineInstrBuilder build(MachineInstr &at, const MachineInstr &from, StringRef name);
  void addMove(MachineInstrBuilder &fused, const MachineInstr &move);
  void fuseEach(const Exchange &exchange);
  void waitForAll(MachineInstrBuilder &first, const Exchange &exchange);
  bool fuseWhole(const Exchange &exchange);
  void erase(const Exchange &exchange);
  void spread(Register mask);
  void spreadEach(const MachineInstr &flip);
  bool separate(const MachineInstr &flip);

  MachineRegisterInfo *registers = nullptr;
  const TargetInstrInfo *instructions = nullptr;
  const TargetRegisterInfo *physical = nullptr;
  unsigned moveOpcode = 0, firstOpcode = 0, nextOpcode = 0, fusedOpcode = 0, selectOpcode = 0, flipOpcodes[2] = {},
           turnOpcode = 0, numSpread = 0;
};
char FuseExchange::ID = 0;
} // namespace

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

MachineInstr *FuseExchange::getOnlyUser(Register reg) const {
  return reg.isVirtual() && registers->hasOneNonDBGUse(reg) ? &*registers->use_instr_nodbg_begin(reg) : nullptr;
}

/// Whether the borrow of another word is subtracted, too.
bool FuseExchange::isNext(const MachineInstr &subtract) const {
  return subtract.getOpcode() == nextOpcode || (fusedOpcode && subtract.getOpcode() == fusedOpcode);
}

Register FuseExchange::getBorrowed(const MachineInstr &subtract) const {
  // A fused one has what keeps lanes' results in front of its sources.
  return subtract.getOperand(Subtract::borrowed + (subtract.getOpcode() != nextOpcode)).getReg();
}

/// A word's move serves the subtraction and selects by `flip`, as their first operand, and nothing else.
bool FuseExchange::matchWord(Word &word, const MachineOperand &moved, const MachineInstr &flip) const {
  if (!isVector(moved) || moved.getSubReg() ||
      (word.subtract && !isVector(word.subtract->getOperand(Subtract::source1))))
    return false;
  word.move = registers->getUniqueVRegDef(moved.getReg());
  auto isAll = [&](unsigned at) {
    return word.move->getOperand(at).isImm() && word.move->getOperand(at).getImm() == 15;
  };
  if (!word.move || word.move->getOpcode() != moveOpcode || !isVector(word.move->getOperand(Move::source)) ||
      !isAll(Move::rows) || !isAll(Move::banks) || word.move->getOperand(Move::bound).getImm() == 0)
    return false;
  for (MachineInstr &user : registers->use_nodbg_instructions(moved.getReg())) {
    if (&user == word.subtract)
      continue;
    if (user.getOpcode() != selectOpcode || !user.getOperand(Select::source0).isReg() ||
        user.getOperand(Select::source0).getReg() != moved.getReg() || !isVector(user.getOperand(Select::source1)) ||
        user.getOperand(Select::source1).getReg() == moved.getReg() || !user.getOperand(Select::mask).isReg() ||
        user.getOperand(Select::mask).getReg() != flip.getOperand(0).getReg() || !keepsExec(*word.move, user))
      return false;
    word.selects.push_back(&user);
  }
  return !word.selects.empty() && (!word.subtract || keepsExec(*word.move, *word.subtract));
}

std::optional<Exchange> FuseExchange::match(MachineInstr &first) const {
  Exchange exchange;
  MachineInstr *at = &first;
  while (at->getOpcode() == firstOpcode || isNext(*at)) {
    exchange.words.push_back({nullptr, at, {}});
    Register borrow = at->getOperand(Subtract::borrow).getReg();
    MachineInstr *user = getOnlyUser(borrow);
    if (!user || user->getParent() != first.getParent() || user->getOpcode() == firstOpcode ||
        (isNext(*user) && getBorrowed(*user) != borrow))
      return std::nullopt;
    at = user;
  }
  if (!is_contained(flipOpcodes, at->getOpcode()) || !at->getOperand(0).getReg().isVirtual())
    return std::nullopt;
  exchange.flip = at;
  size_t numSelects = 0;
  for (Word &word : exchange.words) {
    if (!registers->use_nodbg_empty(word.subtract->getOperand(Subtract::result).getReg()))
      return std::nullopt;
    if (word.subtract->getOpcode() == fusedOpcode)
      continue;
    if (!matchWord(word, word.subtract->getOperand(Subtract::source0), *at))
      return std::nullopt;
    numSelects += word.selects.size();
  }
  auto users = registers->use_nodbg_instructions(at->getOperand(0).getReg());
  auto isKnown = [&](MachineInstr &user) {
    return any_of(exchange.words, [&](const Word &word) { return is_contained(word.selects, &user); });
  };
  for (MachineInstr &user : users) {
    if (!fusedOpcode || user.getOpcode() != selectOpcode || isKnown(user))
      continue;
    Word chosen{nullptr, nullptr, {}};
    if (!matchWord(chosen, user.getOperand(Select::source0), *at))
      return std::nullopt;
    numSelects += chosen.selects.size();
    exchange.words.push_back(chosen);
  }
  bool isWhole = size_t(std::distance(users.begin(), users.end())) == numSelects;
  return isWhole ? std::optional(exchange) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Fused instructions
//===----------------------------------------------------------------------===//

MachineInstrBuilder FuseExchange::build(MachineInstr &at, const MachineInstr &from, StringRef name) {
  return BuildMI(*at.getParent(), at, from.getDebugLoc(), instructions->get(find(name)), from.getOperand(0).getReg());
}

static void addSource(MachineInstrBuilder &fused, const MachineOperand &source) {
  fused.addReg(source.getReg(), /*flags=*/0, source.getSubReg());
}

void FuseExchange::addMove(MachineInstrBuilder &fused, const MachineInstr &move) {
  for (unsigned at : {Move::control, Move::rows, Move::banks, Move::bound})
    fused.addImm(move.getOperand(at).getImm());
}

/// What both operands of a subtraction are with its sign turned around: as signed numbers they compare by themselves.
const MachineOperand *FuseExchange::getSigned(const Word &word) const {
  constexpr uint32_t signBit = 0x80000000;
  const MachineOperand &moved = word.move->getOperand(Move::source);
  const MachineOperand &own = word.subtract->getOperand(Subtract::source1);
  if (!moved.getReg().isVirtual() || moved.getReg() != own.getReg() || moved.getSubReg() || own.getSubReg())
    return nullptr;
  const MachineInstr *turned = registers->getUniqueVRegDef(moved.getReg());
  if (!turned || turned->getOpcode() != turnOpcode)
    return nullptr;
  for (unsigned at : {1, 2}) {
    const MachineOperand &bits = turned->getOperand(at), &number = turned->getOperand(3 - at);
    if (bits.isImm() && uint32_t(bits.getImm()) == signBit && isVector(number))
      return &number;
  }
  return nullptr;
}

/// Asks for scalar registers that no vector instruction has read lately: what writes others is waited for, and gfx12
/// counts in pairs of them. The first ones are left to what the kernel keeps.
void FuseExchange::spread(Register mask) {
  constexpr unsigned numKept = 24;
  if (!mask.isVirtual())
    return;
  SmallVector<MCPhysReg, 64> choices;
  for (MCPhysReg choice : *registers->getRegClass(mask))
    if (unsigned number = physical->getEncodingValue(choice);
        StringRef(physical->getName(choice)).starts_with("SGPR") && number >= numKept && number % 2 == 0 &&
        !registers->isReserved(choice))
      choices.push_back(choice);
  if (!choices.empty())
    registers->setSimpleHint(mask, choices[numSpread++ % choices.size()]);
}

/// The same for a step of waves of 64 whose moves are no part of it.
void FuseExchange::spreadEach(const MachineInstr &flip) {
  auto getSubtract = [&](const MachineOperand &borrow) -> const MachineInstr * {
    const MachineInstr *subtract =
        borrow.isReg() && borrow.getReg().isVirtual() ? registers->getUniqueVRegDef(borrow.getReg()) : nullptr;
    bool isSubtract = subtract && (subtract->getOpcode() == firstOpcode || subtract->getOpcode() == nextOpcode);
    return isSubtract ? subtract : nullptr;
  };
  for (unsigned at : {1, 2}) {
    const MachineInstr *subtract = getSubtract(flip.getOperand(at));
    if (!subtract)
      continue;
    spread(flip.getOperand(0).getReg());
    while (subtract) {
      spread(subtract->getOperand(Subtract::borrow).getReg());
      bool isNextWord = subtract->getOpcode() == nextOpcode;
      subtract = isNextWord ? getSubtract(subtract->getOperand(Subtract::borrowed)) : nullptr;
    }
  }
}

/// gfx942 and later of gfx9: a flipped mask in the register of the comparison, LLVM takes for one that a vector
/// instruction wrote, and has selects wait. VCC is the one that it prefers for both.
bool FuseExchange::separate(const MachineInstr &flip) {
  Register mask = flip.getOperand(0).getReg();
  auto isWritten = [&](unsigned at) {
    const MachineOperand &operand = flip.getOperand(at);
    const MachineInstr *definition =
        operand.isReg() && operand.getReg().isVirtual() ? registers->getUniqueVRegDef(operand.getReg()) : nullptr;
    return definition && instructions->getName(definition->getOpcode()).starts_with("V_");
  };
  auto selects = [&](const MachineInstr &user) { return user.getOpcode() == selectOpcode; };
  if (!mask.isVirtual() || !(isWritten(1) || isWritten(2)) ||
      !all_of(registers->use_nodbg_instructions(mask), selects))
    return false;
  for (const TargetRegisterClass *type : physical->regclasses())
    if (StringRef(physical->getRegClassName(type)) == "SGPR_64")
      return registers->constrainRegClass(mask, type);
  return false;
}

/// gfx11 and later: each instruction where it stands.
void FuseExchange::fuseEach(const Exchange &exchange) {
  auto isLast = [&](Register borrow) { return exchange.flip->readsVirtualRegister(borrow); };
  for (const Word &word : exchange.words)
    if (Register borrow = word.subtract ? word.subtract->getOperand(Subtract::borrow).getReg() : Register();
        borrow && !isLast(borrow))
      spread(borrow);
  spread(exchange.flip->getOperand(0).getReg());
  for (const Word &word : exchange.words) {
    bool isFirst = word.subtract && word.subtract->getOpcode() == firstOpcode;
    const MachineOperand *number = isFirst ? getSigned(word) : nullptr;
    if (number) {
      MachineInstr &subtract = *word.subtract;
      auto compare = BuildMI(*subtract.getParent(), subtract, subtract.getDebugLoc(),
                             instructions->get(find("V_CMP_LT_I32_e64_dpp")),
                             subtract.getOperand(Subtract::borrow).getReg());
      addSource(compare, *number);
      addSource(compare, *number);
      addMove(compare, *word.move);
      registers->clearKillFlags(number->getReg());
    }
    for (MachineInstr *select : word.selects) {
      auto chosen = build(*select, *select, "V_CNDMASK_B32_e64_dpp")
                        .addReg(word.move->getOperand(Move::old).getReg(), RegState::Undef)
                        .addImm(select->getOperand(Select::modifiers0).getImm() ^ (number ? negated : 0));
      addSource(chosen, number ? *number : word.move->getOperand(Move::source));
      chosen.addImm(select->getOperand(Select::modifiers1).getImm());
      addSource(chosen, select->getOperand(Select::source1));
      addSource(chosen, select->getOperand(Select::mask));
      addMove(chosen, *word.move);
    }
    if (number || !word.subtract)
      continue;
    // Nobody wants the differences, but one that takes the other's register waits for it.
    MachineInstr &subtract = *word.subtract;
    Register difference = subtract.getOperand(Subtract::result).getReg();
    exchange.flip->addOperand(MachineOperand::CreateReg(difference, /*isDef=*/false, /*isImp=*/true));
    if (!word.move)
      continue;
    auto fused = build(subtract, subtract, isFirst ? "V_SUB_CO_U32_e64_dpp" : "V_SUBB_U32_e64_dpp")
                     .addReg(subtract.getOperand(Subtract::borrow).getReg(), RegState::Define)
                     .addReg(word.move->getOperand(Move::old).getReg(), RegState::Undef);
    addSource(fused, word.move->getOperand(Move::source));
    addSource(fused, subtract.getOperand(Subtract::source1));
    if (!isFirst)
      addSource(fused, subtract.getOperand(Subtract::borrowed));
    fused.addImm(0); // clamp
    addMove(fused, *word.move);
    if (isFirst)
      waitForAll(fused, exchange);
  }
}

/// Where words come from the other half of a wave, has all of them on their way before the first comparison, which
/// would keep the others waiting.
void FuseExchange::waitForAll(MachineInstrBuilder &first, const Exchange &exchange) {
  for (const Word &word : drop_begin(exchange.words)) {
    if (!word.move || !word.subtract)
      continue;
    const MachineOperand &moved = word.move->getOperand(Move::source);
    const MachineOperand &own = word.subtract->getOperand(Subtract::source1);
    const MachineInstr *source = moved.getReg().isVirtual() ? registers->getUniqueVRegDef(moved.getReg()) : nullptr;
    if (source && moved.getReg() != own.getReg() && machine::isBefore(*source, *first))
      first.addReg(moved.getReg(), RegState::Implicit);
  }
}

/// gfx9: all of the step in front of its first select, by way of VCC.
bool FuseExchange::fuseWhole(const Exchange &exchange) {
  MachineBasicBlock &block = *exchange.flip->getParent();
  auto isSelect = [&](MachineInstr &instruction) {
    return any_of(exchange.words, [&](const Word &word) { return is_contained(word.selects, &instruction); });
  };
  auto found = find_if(block, isSelect);
  Register vcc = instructions->get(find("V_SUB_CO_U32_dpp")).implicit_defs().front();
  if (found == block.end() || !machine::isFree(vcc, found, *physical))
    return false;
  MachineInstr &at = *found;
  // What the other selects read stands before the step.
  for (const Word &word : exchange.words)
    for (MachineInstr *select : word.selects) {
      MachineInstr *own = registers->getUniqueVRegDef(select->getOperand(Select::source1).getReg());
      if (!own || (own->getParent() == &block && !machine::isBefore(*own, at)))
        return false;
    }
  for (const Word &word : exchange.words) {
    MachineInstr &subtract = *word.subtract;
    auto fused = build(at, subtract, subtract.getOpcode() == firstOpcode ? "V_SUB_CO_U32_dpp" : "V_SUBB_U32_dpp")
                     .addReg(word.move->getOperand(Move::old).getReg(), RegState::Undef);
    addSource(fused, word.move->getOperand(Move::source));
    addSource(fused, subtract.getOperand(Subtract::source1));
    addMove(fused, *word.move);
  }
  Register borrow = exchange.words.back().subtract->getOperand(Subtract::borrow).getReg();
  const MachineOperand &first = exchange.flip->getOperand(1);
  bool isSwapped = first.isReg() && first.getReg() == borrow;
  auto flip = BuildMI(block, at, exchange.flip->getDebugLoc(), exchange.flip->getDesc(), vcc)
                  .addReg(vcc)
                  .add(exchange.flip->getOperand(isSwapped ? 2 : 1));
  // A DPP instruction waits for what wrote its result's register: the differences, which nobody wants, take several.
  for (const Word &word : drop_end(exchange.words))
    flip.addReg(word.subtract->getOperand(Subtract::result).getReg(), RegState::Implicit);
  for (const Word &word : exchange.words)
    for (MachineInstr *select : word.selects) {
      auto chosen = build(at, *select, "V_CNDMASK_B32_dpp")
                        .addReg(word.move->getOperand(Move::old).getReg(), RegState::Undef)
                        .addImm(select->getOperand(Select::modifiers0).getImm());
      addSource(chosen, word.move->getOperand(Move::source));
      chosen.addImm(select->getOperand(Select::modifiers1).getImm());
      addSource(chosen, select->getOperand(Select::source1));
      addMove(chosen, *word.move);
    }
  return true;
}

/// Removes what the fused instructions replace.
void FuseExchange::erase(const Exchange &exchange) {
  for (const Word &word : exchange.words) {
    if (!word.move)
      continue;
    registers->clearKillFlags(word.move->getOperand(Move::source).getReg());
    if (word.subtract)
      registers->clearKillFlags(word.subtract->getOperand(Subtract::source1).getReg());
    for (MachineInstr *select : word.selects) {
      registers->clearKillFlags(select->getOperand(Select::source1).getReg());
      select->eraseFromParent();
    }
    if (word.subtract)
      word.subtract->eraseFromParent();
    word.move->eraseFromParent();
  }
}

bool FuseExchange::runOnMachineFunction(MachineFunction &function) {
  registers = &function.getRegInfo();
  instructions = function.getSubtarget().getInstrInfo();
  physical = function.getSubtarget().getRegisterInfo();
  moveOpcode = find("V_MOV_B32_dpp");
  firstOpcode = find("V_SUB_CO_U32_e64");
  nextOpcode = find("V_SUBB_U32_e64");
  selectOpcode = find("V_CNDMASK_B32_e64");
  flipOpcodes[0] = find("S_XOR_B32");
  flipOpcodes[1] = find("S_XOR_B64");
  turnOpcode = find("V_XOR_B32_e64");
  StringRef chip = function.getSubtarget().getCPU();
  numSpread = 0;
  bool isWhole = chip.starts_with("gfx9"), isEach = chip.starts_with("gfx11") || chip.starts_with("gfx12");
  fusedOpcode = isEach ? find("V_SUBB_U32_e64_dpp") : 0;
  bool hasChanged = false;
  for (MachineBasicBlock &block : function) {
    SmallVector<MachineInstr *> firsts, flips;
    for (MachineInstr &instruction : block)
      if (instruction.getOpcode() == firstOpcode)
        firsts.push_back(&instruction);
      else if (instruction.getOpcode() == flipOpcodes[1])
        flips.push_back(&instruction);
    for (MachineInstr *first : firsts) {
      std::optional<Exchange> exchange;
      if (isWhole || isEach)
        exchange = match(*first);
      if (!exchange || (isWhole && !fuseWhole(*exchange)))
        continue;
      if (isEach)
        fuseEach(*exchange);
      erase(*exchange);
      llvm::erase(flips, exchange->flip);
      if (isWhole)
        exchange->flip->eraseFromParent();
      hasChanged = true;
    }
    if (machine::waitsForMasks(chip))
      for (MachineInstr *flip : flips)
        hasChanged |= separate(*flip);
    if (isEach)
      for (MachineInstr *flip : flips)
        spreadEach(*flip);
  }
  return hasChanged;
}

char &registerFuseExchange() {
  registerMachinePass<FuseExchange>("DPP moves as part of compare and exchange", "qd-fuse-exchange");
  return FuseExchange::ID;
}

} // namespace qd
