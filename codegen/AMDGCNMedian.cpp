//===- AMDGCNMedian.cpp - a sorted element's highest word, chosen early -----------------------===//
//
// Purpose: gfx942 and later of gfx9 wait for the borrow of a comparison. Where the highest of several words comes
// through shared memory, a choice of it, which depends on no other word, takes that time:
//
//   %c = V_CMP_LT_U64 ...    (wait)    _, %b = V_SUBB_U32 %m, %v, %c    %k = S_XOR_B64 %b, mask
//   %r = V_CNDMASK_B32 %m, %v, %k
//     ->
//   %c = V_CMP_LT_U64 ...    %r = V_MED3_U32 %m, %v, %limit    _, %b = V_SUBB_U32 %m, %v, %c
//
// The limit is the least or largest number, by the lane's bit in the mask.
//
// Input: machine code in SSA form behind AMDGCNMasks.cpp. Output: the same values.
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

namespace {
/// Places of operands, by LLVM's definitions.
struct Subtract {
  enum { result, borrow, source0, source1, borrowed };
};
struct Select {
  enum { result, modifiers0, source0, modifiers1, source1, mask };
};

class ChooseByMedian : public MachinePass {
public:
  static char ID;
  ChooseByMedian() : MachinePass(ID) {}

  StringRef getPassName() const override { return "a sorted element's highest word, chosen early"; }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  unsigned find(StringRef name) const { return machine::findOpcode(*instructions, name); }
  MachineInstr *getOnlyUser(Register reg) const;
  Register choose(MachineInstr &compare);
  bool choose(MachineBasicBlock &block);
  void hoistAddress(MachineInstr &compare);

  MachineRegisterInfo *registers = nullptr;
  const TargetInstrInfo *instructions = nullptr;
  unsigned nextOpcode = 0, selectOpcode = 0, flipOpcode = 0, turnOpcode = 0;
};
char ChooseByMedian::ID = 0;
} // namespace

MachineInstr *ChooseByMedian::getOnlyUser(Register reg) const {
  return reg.isVirtual() && registers->hasOneNonDBGUse(reg) ? &*registers->use_instr_nodbg_begin(reg) : nullptr;
}

static void addSource(MachineInstrBuilder &fused, const MachineOperand &source) {
  fused.addReg(source.getReg(), /*flags=*/0, source.getSubReg());
}

/// gfx942 and later of gfx9, where the last of several words comes through shared memory: it is the larger or smaller
/// one whatever the others are, so that a choice of it fills the wait for their borrow. Returns lanes' limits.
Register ChooseByMedian::choose(MachineInstr &compare) {
  const MachineOperand &moved = compare.getOperand(Subtract::source0), &own = compare.getOperand(Subtract::source1);
  MachineInstr *flip = getOnlyUser(compare.getOperand(Subtract::borrow).getReg());
  if (!machine::isVector(moved, *registers) || moved.getSubReg() || !machine::isVector(own, *registers) || !flip ||
      flip->getOpcode() != flipOpcode ||
      !instructions->getName(registers->getUniqueVRegDef(moved.getReg())->getOpcode()).starts_with("DS_"))
    return {};
  const MachineOperand &first = flip->getOperand(1);
  bool isSwapped = first.isReg() && first.getReg() == compare.getOperand(Subtract::borrow).getReg();
  const MachineOperand &mask = flip->getOperand(isSwapped ? 2 : 1);
  Register turned = flip->getOperand(0).getReg();
  MachineInstr *constant =
      mask.isReg() && mask.getReg().isVirtual() ? registers->getUniqueVRegDef(mask.getReg()) : nullptr;
  if (!turned.isVirtual() || !(mask.isImm() || (constant && machine::isBefore(*constant, compare))))
    return {};
  auto isSame = [](const MachineOperand &a, const MachineOperand &b) {
    return a.isReg() && a.getReg() == b.getReg() && a.getSubReg() == b.getSubReg();
  };
  for (MachineInstr &select : registers->use_nodbg_instructions(turned)) {
    if (select.getOpcode() != selectOpcode || select.getParent() != compare.getParent() ||
        select.getOperand(Select::modifiers0).getImm() || select.getOperand(Select::modifiers1).getImm() ||
        !isSame(select.getOperand(Select::source0), moved) || !isSame(select.getOperand(Select::source1), own))
      continue;
    MachineBasicBlock &block = *compare.getParent();
    if (mask.isImm())
      constant = BuildMI(block, compare, select.getDebugLoc(), instructions->get(find("S_MOV_B64")),
                         registers->createVirtualRegister(registers->getRegClass(turned)))
                     .add(mask);
    Register lanes = constant->getOperand(0).getReg();
    Register limit = registers->createVirtualRegister(registers->getRegClass(select.getOperand(0).getReg()));
    BuildMI(block, std::next(constant->getIterator()), select.getDebugLoc(), instructions->get(selectOpcode), limit)
        .addImm(0)
        .addImm(-1)
        .addImm(0)
        .addImm(0)
        .addReg(lanes);
    auto chosen = BuildMI(block, compare, select.getDebugLoc(), instructions->get(find("V_MED3_U32_e64")),
                          select.getOperand(0).getReg());
    addSource(chosen, moved);
    addSource(chosen, own);
    chosen.addReg(limit);
    // No sooner than the other words are there, which are compared first.
    Register borrowed = compare.getOperand(Subtract::borrowed).getReg();
    if (MachineInstr *pairs = borrowed.isVirtual() ? registers->getUniqueVRegDef(borrowed) : nullptr)
      for (const MachineOperand &pair : pairs->explicit_uses())
        if (pair.isReg() && pair.getReg().isVirtual()) {
          chosen.addReg(pair.getReg(), RegState::Implicit, pair.getSubReg());
          registers->clearKillFlags(pair.getReg());
        }
    // In front of the comparison, whose operands keep their registers.
    compare.addOperand(MachineOperand::CreateReg(select.getOperand(0).getReg(), /*isDef=*/false, /*isImp=*/true));
    for (Register reg : {moved.getReg(), own.getReg(), lanes})
      registers->clearKillFlags(reg);
    select.eraseFromParent();
    return limit;
  }
  return {};
}

/// Has the address of a later move through shared memory computed while `compare` waits for one.
void ChooseByMedian::hoistAddress(MachineInstr &compare) {
  for (auto at = compare.getIterator(); at != compare.getParent()->end(); ++at) {
    if (instructions->getName(at->getOpcode()) != "DS_BPERMUTE_B32")
      continue;
    Register address = at->getOperand(1).getReg();
    MachineInstr *turn = address.isVirtual() ? registers->getUniqueVRegDef(address) : nullptr;
    if (!turn || turn->getOpcode() != turnOpcode || !machine::isBefore(compare, *turn))
      return;
    for (const MachineOperand &lane : turn->explicit_uses())
      if (lane.isReg()) {
        MachineInstr *source = lane.getReg().isVirtual() ? registers->getUniqueVRegDef(lane.getReg()) : nullptr;
        if (!source)
          continue; // EXEC
        if (source->getParent() == compare.getParent() && machine::isBefore(compare, *source)) {
          if (!source->isMoveImmediate())
            return;
          source->moveBefore(&compare);
        }
        registers->clearKillFlags(lane.getReg());
      }
    turn->moveBefore(&compare);
    compare.addOperand(MachineOperand::CreateReg(address, /*isDef=*/false, /*isImp=*/true));
    return;
  }
}

/// Has what later steps need besides computed while the first one waits for shared memory.
bool ChooseByMedian::choose(MachineBasicBlock &block) {
  MachineInstr *first = nullptr;
  for (MachineInstr &compare : make_early_inc_range(block)) {
    Register limit = compare.getOpcode() == nextOpcode ? choose(compare) : Register();
    if (!limit)
      continue;
    if (!first) {
      first = &compare;
      hoistAddress(compare);
      continue;
    }
    MachineInstr &made = *registers->getUniqueVRegDef(limit);
    MachineInstr &mask = *registers->getUniqueVRegDef(made.getOperand(Select::mask).getReg());
    if (machine::isBefore(*first, mask) && !mask.isMoveImmediate())
      continue;
    for (MachineInstr *each : {&mask, &made})
      if (machine::isBefore(*first, *each))
        each->moveBefore(first);
    first->addOperand(MachineOperand::CreateReg(limit, /*isDef=*/false, /*isImp=*/true));
  }
  return first;
}

bool ChooseByMedian::runOnMachineFunction(MachineFunction &function) {
  if (!machine::waitsForMasks(function.getSubtarget().getCPU()))
    return false;
  registers = &function.getRegInfo();
  instructions = function.getSubtarget().getInstrInfo();
  nextOpcode = find("V_SUBB_U32_e64");
  selectOpcode = find("V_CNDMASK_B32_e64");
  flipOpcode = find("S_XOR_B64");
  turnOpcode = find("V_XOR_B32_e64");
  bool hasChanged = false;
  for (MachineBasicBlock &block : function)
    hasChanged |= choose(block);
  return hasChanged;
}

char &registerChooseByMedian() {
  registerMachinePass<ChooseByMedian>("a sorted element's highest word, chosen early", "qd-choose-by-median");
  return ChooseByMedian::ID;
}

} // namespace qd
