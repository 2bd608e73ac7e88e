//===- AMDGCNFillSteps.cpp - work beside a sort's steps, where they wait ----------------------===//
//
// Purpose: a sort by floats turns keys back while its last steps run, and chooses what that gives by the same masks
// (passes/Sort.cpp). Each step waits behind its mask and behind its choices; what stands elsewhere delays it:
//
//   v_sub_co_u32 c    v_subb_u32 c    v_xad_u32 t    s_xor k    (wait)    v_cndmask k    v_cndmask k
//     ->
//   v_sub_co_u32 c    v_subb_u32 c    s_xor k    v_xad_u32 t    v_cndmask k    v_cndmask k
//
// LLVM's scheduler keeps the order, by operands that no instruction reads.
//
// Input: machine code of gfx11 and later in SSA form behind AMDGCNFuseExchange.cpp. Output: the same in another order.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNPasses.h"

#include "codegen/AMDGCNMachine.h"
#include "codegen/MachinePass.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace qd {

namespace {
/// One comparison and exchange.
struct Step {
  MachineInstr *flip;                      ///< makes the mask
  SmallVector<MachineInstr *, 4> selects;  ///< of what is compared later, in order
  SmallVector<MachineInstr *, 4> compares; ///< the last word's first
  SmallVector<MachineInstr *, 4> moves;    ///< that are no part of comparisons

  MachineInstr *getFirst() const { return moves.empty() ? compares.back() : moves.front(); }
};

/// Cycles in LLVM's model, from a step's first instruction on.
struct Times {
  static constexpr unsigned vector = 5, mask = 6, behindMask = 5, behindChoices = 9, step = 11;
  static constexpr unsigned behindMoves = 2, move = 5; ///< which come in front of all others
};

/// Where instructions fit in.
struct Slot {
  enum Place { BehindMoves, BehindMask, BehindChoices } place;
  unsigned step;
};
using Places = SmallVector<std::pair<MachineInstr *, Slot>>;

class FillSteps : public MachinePass {
public:
  static char ID;
  FillSteps() : MachinePass(ID) {}

  StringRef getPassName() const override { return "work beside a sort's steps, where they wait"; }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  StringRef getName(const MachineInstr &instruction) const { return instructions->getName(instruction.getOpcode()); }
  bool isSelect(const MachineInstr &instruction) const { return getName(instruction).starts_with("V_CNDMASK_B32_e64"); }
  bool isCompare(const MachineInstr &instruction) const {
    return getName(instruction).starts_with("V_SUB") || getName(instruction).starts_with("V_CMP");
  }
  MachineInstr *getDefinition(const MachineOperand &operand) const;
  const MachineOperand &getMask(const MachineInstr &select) const { return getOperand(select, 5); }
  const MachineOperand &getOwn(const MachineInstr &select) const { return getOperand(select, 4); }
  const MachineOperand &getOther(const MachineInstr &select) const { return getOperand(select, 2); }
  /// With a move, what keeps lanes' results stands in front of the sources.
  const MachineOperand &getOperand(const MachineInstr &select, unsigned at) const {
    return select.getOperand(at + getName(select).ends_with("_dpp"));
  }
  SmallVector<Step> findSteps(MachineBasicBlock &block) const;
  void addTurn(MachineInstr *of, SmallVectorImpl<MachineInstr *> &work) const;
  SmallVector<MachineInstr *> findWork(SmallVectorImpl<Step> &steps) const;
  std::pair<Places, unsigned> place(ArrayRef<MachineInstr *> work, ArrayRef<Step> steps, bool isTight) const;
  bool fill(MachineBasicBlock &block);

  MachineRegisterInfo *registers = nullptr;
  const TargetInstrInfo *instructions = nullptr;
  const TargetRegisterInfo *physical = nullptr;
};
char FillSteps::ID = 0;
} // namespace

MachineInstr *FillSteps::getDefinition(const MachineOperand &operand) const {
  return operand.isReg() && operand.getReg().isVirtual() ? registers->getUniqueVRegDef(operand.getReg()) : nullptr;
}

SmallVector<Step> FillSteps::findSteps(MachineBasicBlock &block) const {
  SmallVector<Step> steps;
  DenseMap<Register, unsigned> numbers; // by mask
  for (MachineInstr &instruction : block) {
    if (isSelect(instruction)) {
      if (auto found = numbers.find(getMask(instruction).isReg() ? getMask(instruction).getReg() : Register());
          found != numbers.end())
        steps[found->second].selects.push_back(&instruction);
      continue;
    }
    if (!getName(instruction).starts_with("S_XOR_B") && !getName(instruction).starts_with("S_XNOR_B"))
      continue;
    Step step{&instruction, {}, {}, {}};
    for (unsigned at : {1, 2})
      if (MachineInstr *compare = getDefinition(instruction.getOperand(at)); compare && isCompare(*compare))
        step.compares.push_back(compare);
    if (step.compares.size() != 1)
      continue;
    auto isBorrow = [&](const MachineOperand &operand) {
      MachineInstr *compare = getDefinition(operand);
      return compare && isCompare(*compare) && !machine::isVector(operand, *registers);
    };
    for (bool isFound = true; isFound;) {
      auto uses = step.compares.back()->explicit_uses();
      auto borrow = find_if(uses, isBorrow);
      isFound = borrow != uses.end();
      if (isFound)
        step.compares.push_back(getDefinition(*borrow));
    }
    for (MachineInstr *compare : reverse(step.compares))
      for (const MachineOperand &word : compare->explicit_uses())
        if (MachineInstr *move = getDefinition(word); move && getName(*move).starts_with("V_PERMLANE"))
          step.moves.push_back(move);
    numbers[instruction.getOperand(0).getReg()] = steps.size();
    steps.push_back(step);
  }
  erase_if(steps, [](const Step &step) { return step.selects.empty(); });
  return steps;
}

/// Adds what `of` is computed from, but for what a step has chosen.
void FillSteps::addTurn(MachineInstr *of, SmallVectorImpl<MachineInstr *> &work) const {
  constexpr unsigned most = 8;
  if (!of || !getName(*of).starts_with("V_") || isSelect(*of) || is_contained(work, of) || work.size() == most)
    return;
  for (const MachineOperand &operand : of->explicit_uses())
    addTurn(getDefinition(operand), work);
  work.push_back(of);
}

/// What the last step chooses from but does not compare, in order, and takes its choices out of the steps.
SmallVector<MachineInstr *> FillSteps::findWork(SmallVectorImpl<Step> &steps) const {
  SmallVector<MachineInstr *> work, choices;
  for (MachineInstr *last : steps.back().selects) {
    const MachineOperand &own = getOwn(*last);
    bool isCompared = any_of(steps.back().compares, [&](const MachineInstr *compare) {
      return own.isReg() && compare->readsVirtualRegister(own.getReg());
    });
    if (isCompared || !own.isReg() || !getOther(*last).isReg() || getOther(*last).getReg() != own.getReg())
      continue;
    MachineInstr *at = getDefinition(own);
    for (Step &step : reverse(drop_end(steps))) {
      auto *found = find(step.selects, at);
      if (found == step.selects.end())
        break;
      choices.push_back(at);
      step.selects.erase(found);
      if (MachineInstr *move = getDefinition(getOther(*at)); move && getName(*move).starts_with("V_PERMLANE"))
        choices.push_back(move);
      at = getDefinition(getOwn(*at));
    }
    addTurn(at, work);
    work.append(choices.rbegin(), choices.rend());
    return work;
  }
  return {};
}

/// A place for each instruction, in order, and when the last one's result is there.
std::pair<Places, unsigned> FillSteps::place(ArrayRef<MachineInstr *> work, ArrayRef<Step> steps, bool isTight) const {
  Places places;
  DenseMap<const MachineInstr *, unsigned> ready;
  const auto *next = work.begin();
  unsigned start = 0;
  // Places what is ready from `first` to `last`; all that is left where that is 0.
  auto fill = [&](Slot slot, unsigned first, unsigned last) {
    for (; next != work.end(); ++next, ++first) {
      unsigned from = std::max(first, 1u);
      for (const MachineOperand &operand : (*next)->explicit_uses())
        if (const MachineInstr *source = getDefinition(operand))
          from = std::max(from, ready.lookup(source));
      if (last && from > last)
        break;
      first = from;
      ready[*next] = from + Times::vector;
      places.emplace_back(*next, slot);
    }
    return first;
  };
  for (auto [at, step] : enumerate(steps)) {
    unsigned number = at;
    if (!step.moves.empty()) {
      fill({Slot::BehindMoves, number}, start + Times::behindMoves, start + Times::behindMoves + 1);
      start += Times::move;
    }
    bool isLast = at + 1 == steps.size();
    ready[step.flip] = start + Times::mask;
    fill({Slot::BehindMask, number}, start + Times::behindMask, isLast ? 0 : start + Times::behindMask);
    if (isLast)
      break;
    unsigned behind = fill({Slot::BehindChoices, number}, start + Times::behindChoices,
                           start + Times::behindChoices + 1 + isTight);
    start = std::max(start + Times::step, behind);
  }
  return {places, std::max(start + Times::mask + 1, ready.lookup(work.back()))};
}

bool FillSteps::fill(MachineBasicBlock &block) {
  SmallVector<Step> steps = findSteps(block);
  if (steps.size() < 2)
    return false;
  SmallVector<MachineInstr *> work = findWork(steps);
  auto isEmpty = [](const Step &step) { return step.selects.empty(); };
  auto isKept = [&](MachineInstr *instruction) {
    return all_of(registers->use_nodbg_instructions(instruction->getOperand(0).getReg()), [&](MachineInstr &user) {
      return is_contained(work, &user) || is_contained(steps.back().selects, &user);
    });
  };
  if (work.empty() || any_of(steps, isEmpty) || !all_of(work, isKept))
    return false;

  // The step behind which work begins.
  unsigned begin = steps.size();
  for (const MachineOperand &operand : work.front()->explicit_uses())
    for (auto [at, step] : enumerate(steps))
      if (is_contained(step.selects, getDefinition(operand)))
        begin = at;
  if (begin + 1 >= steps.size())
    return false;

  // Two instructions behind choices delay what follows, but may be worth it.
  Places places;
  unsigned end = 0;
  for (bool isTight : {false, true}) {
    auto [tried, triedEnd] = place(work, ArrayRef(steps).drop_front(begin + 1), isTight);
    if (places.empty() || triedEnd < end) {
      places = tried;
      end = triedEnd;
    }
  }
  auto getNext = [&](const Slot &at) -> MachineInstr * {
    const Step &step = steps[begin + 1 + at.step];
    return at.place == Slot::BehindMoves  ? step.compares.back()
           : at.place == Slot::BehindMask ? step.selects.front()
                                          : steps[begin + 2 + at.step].getFirst();
  };
  auto getPrevious = [&](const Slot &at) -> MachineInstr * {
    const Step &step = steps[begin + 1 + at.step];
    return at.place == Slot::BehindMoves  ? step.moves.back()
           : at.place == Slot::BehindMask ? step.flip
                                          : step.selects.back();
  };
  for (auto [instruction, at] : places)
    if (!machine::isBefore(*getPrevious(at), *getNext(at)) ||
        !machine::hasSameLanes(*instruction, *getNext(at), *physical))
      return false;
  for (auto [instruction, at] : places) {
    MachineInstr *previous = getPrevious(at), *next = getNext(at);
    instruction->moveBefore(next);
    auto addUse = [](MachineInstr &of, Register reg) {
      of.addOperand(MachineOperand::CreateReg(reg, /*isDef=*/false, /*isImp=*/true));
    };
    addUse(*instruction, previous->getOperand(0).getReg());
    addUse(*next, instruction->getOperand(0).getReg());
    for (const MachineOperand &operand : instruction->all_uses())
      if (operand.getReg().isVirtual())
        registers->clearKillFlags(operand.getReg());
  }
  return true;
}

bool FillSteps::runOnMachineFunction(MachineFunction &function) {
  registers = &function.getRegInfo();
  instructions = function.getSubtarget().getInstrInfo();
  physical = function.getSubtarget().getRegisterInfo();
  StringRef chip = function.getSubtarget().getCPU();
  if (!chip.starts_with("gfx11") && !chip.starts_with("gfx12"))
    return false;
  bool hasChanged = false;
  for (MachineBasicBlock &block : function)
    hasChanged |= fill(block);
  return hasChanged;
}

char &registerFillSteps() {
  registerMachinePass<FillSteps>("work beside a sort's steps, where they wait", "qd-fill-steps");
  return FillSteps::ID;
}

} // namespace qd
