//===- AMDGCNHints.cpp - where gfx11 and later are told how long to wait ----------------------===//
//
// Purpose: hints of how long operations depend on earlier ones, of which one instruction holds two. LLVM 22
// puts one in front of every second operation that waits, and so between comparisons and what reads their
// masks: a mask is there before a vector register would be, and the hint takes the turn of its reader.
//
//   v_sub_co_u32 _, c    s_delay_alu (1), skip 1, (2)    v_subb_u32 c    s_xor    v_cndmask
//     ->
//   s_delay_alu (3), next, (1)    v_sub_co_u32 _, c    v_subb_u32 c    s_xor    s_delay_alu (2)    v_cndmask
//
// Input: machine code behind LLVM's amdgpu-insert-delay-alu. Output: the same with as much said in other
// places, but for the second of two comparisons behind an operation that waits itself.
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

namespace {
/// A hint's fields: on what the next instruction depends, and on what one some instructions later does.
struct Hint {
  static constexpr unsigned skipAt = 4, secondAt = 7, most = 5, lastVector = 4;
  unsigned first = 0, skip = 0, second = 0;

  explicit Hint(unsigned bits) : first(bits & 15), skip(bits >> skipAt & 7), second(bits >> secondAt & 15) {}
  unsigned getBits() const { return first | skip << skipAt | second << secondAt; }
};

class MoveHints : public MachinePass {
public:
  static char ID;
  MoveHints() : MachinePass(ID) {}

  StringRef getPassName() const override { return "hints in front of comparisons"; }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  bool readsMask(const MachineInstr &of, const MachineInstr &by) const;
  bool move(MachineBasicBlock &block);

  const TargetInstrInfo *instructions = nullptr;
  const TargetRegisterInfo *physical = nullptr;
  unsigned hintOpcode = 0;
};
char MoveHints::ID = 0;
} // namespace

/// Whether one instruction reads a mask of lanes that another, of vectors, writes.
bool MoveHints::readsMask(const MachineInstr &of, const MachineInstr &by) const {
  return instructions->getName(of.getOpcode()).starts_with("V_") &&
         any_of(of.all_defs(), [&](const auto &mask) {
           return !StringRef(physical->getName(mask.getReg())).starts_with("VGPR") &&
                  by.readsRegister(mask.getReg(), physical);
         });
}

bool MoveHints::move(MachineBasicBlock &block) {
  SmallVector<MachineInstr *> code, hints;
  auto counts = [](const MachineInstr &instruction) {
    return !instruction.isBundle() && !instruction.isMetaInstruction();
  };
  for (MachineInstr &instruction : block.instrs())
    if (instruction.getOpcode() == hintOpcode)
      hints.push_back(&instruction);
    else if (counts(instruction))
      code.push_back(&instruction);
  if (hints.empty())
    return false;

  DenseMap<const MachineInstr *, unsigned> waits;
  for (MachineInstr *instruction : hints) {
    Hint hint(instruction->getOperand(0).getImm());
    auto at = std::next(MachineBasicBlock::instr_iterator(instruction));
    for (unsigned i = 0; at != block.instr_end() && i <= hint.skip; ++at) {
      if (!counts(*at))
        continue;
      if (i == 0)
        waits[&*at] = hint.first;
      if (i == hint.skip && hint.second)
        waits[&*at] = hint.second;
      ++i;
    }
  }

  // The first of two comparisons, the other's mask being turned around; of three, a hint stands between in
  // any case.
  auto isVector = [&](size_t i) { return instructions->getName(code[i]->getOpcode()).starts_with("V_"); };
  auto isCompared = [&](size_t i) {
    return i + 2 < code.size() && waits.lookup(code[i + 1]) && isVector(i + 1) && !isVector(i + 2) &&
           readsMask(*code[i], *code[i + 1]) && readsMask(*code[i + 1], *code[i + 2]) &&
           !(i && readsMask(*code[i - 1], *code[i]));
  };
  constexpr unsigned nearby = 2;
  MachineInstr *last = nullptr;
  for (size_t i = 0, lastAt = 0; i < code.size(); ++i) {
    unsigned wait = waits.lookup(code[i]);
    if (!wait)
      continue;
    // A vector operation's hint right in front serves the first comparison, and then the other has none.
    bool isFirst = isCompared(i);
    Hint hint(last ? last->getOperand(0).getImm() : 0);
    if (last && (isFirst ? i - lastAt <= nearby && hint.first <= Hint::lastVector : i - lastAt <= Hint::most)) {
      hint.skip = i - lastAt;
      hint.second = wait;
      last->getOperand(0).setImm(hint.getBits());
      last = nullptr;
      if (isFirst)
        waits.erase(code[i + 1]);
      continue;
    }
    last = BuildMI(block, code[i], DebugLoc(), instructions->get(hintOpcode)).addImm(wait);
    lastAt = i;
  }
  for (MachineInstr *hint : hints)
    hint->eraseFromParent();
  return true;
}

bool MoveHints::runOnMachineFunction(MachineFunction &function) {
  instructions = function.getSubtarget().getInstrInfo();
  physical = function.getSubtarget().getRegisterInfo();
  hintOpcode = machine::findOpcode(*instructions, "S_DELAY_ALU");
  bool hasChanged = false;
  for (MachineBasicBlock &block : function)
    hasChanged |= move(block);
  return hasChanged;
}

char &registerMoveHints() {
  registerMachinePass<MoveHints>("hints in front of comparisons", "qd-move-hints");
  return MoveHints::ID;
}

} // namespace qd
