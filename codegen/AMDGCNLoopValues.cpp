//===- AMDGCNLoopValues.cpp - scalars of loops that lanes leave one by one ---------------------------===//
//
// Purpose: what all lanes share in one round of a loop, such as which of them are active, differs between them behind
// the loop where they leave it in different rounds. A copy to a vector register inside keeps each lane's; LLVM 22's
// si-fold-operands reads the scalar behind the loop instead, which then holds the last round's. The pass copies again.
//
//   loop: %s:sreg_32 = ...                      loop: %s:sreg_32 = ...
//         SI_LOOP                        ->           %v:vgpr_32 = COPY %s
//   exit: V_ADD_U32 %s, ...                           SI_LOOP
//                                               exit: V_ADD_U32 %v, ...
//
// Input: machine code in SSA form behind si-fold-operands. Output: the same, with such copies.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNPasses.h"

#include "codegen/MachinePass.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace qd {

namespace {
class KeepLoopValues : public MachinePass {
public:
  static char ID;
  KeepLoopValues() : MachinePass(ID) {}

  StringRef getPassName() const override { return "scalars of loops that lanes leave one by one"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.addRequired<MachineLoopInfoWrapperPass>();
    MachinePass::getAnalysisUsage(usage);
  }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  bool isLeftOneByOne(const MachineLoop &loop) const;
  bool outlives(const MachineOperand &operand) const;
  Register copyInLoop(const MachineOperand &operand);

  MachineRegisterInfo *registers = nullptr;
  const TargetInstrInfo *instructions = nullptr;
  const TargetRegisterInfo *physical = nullptr;
  const MachineLoopInfo *loops = nullptr;
  const TargetRegisterClass *vector = nullptr;
};
char KeepLoopValues::ID = 0;
} // namespace

static bool isScalarClass(const TargetRegisterInfo &physical, const TargetRegisterClass *type) {
  return type && StringRef(physical.getRegClassName(type)).starts_with("S");
}

bool KeepLoopValues::isLeftOneByOne(const MachineLoop &loop) const {
  SmallVector<MachineBasicBlock *> exiting;
  loop.getExitingBlocks(exiting);
  return any_of(exiting, [&](MachineBasicBlock *block) {
    return any_of(block->terminators(), [&](const MachineInstr &instruction) {
      return instructions->getName(instruction.getOpcode()) == "SI_LOOP";
    });
  });
}

/// Whether lanes read the 32-bit scalar behind a loop that they leave one by one.
bool KeepLoopValues::outlives(const MachineOperand &operand) const {
  if (!operand.isReg() || !operand.isUse() || operand.isImplicit() || !operand.getReg().isVirtual() ||
      !isScalarClass(*physical, registers->getRegClass(operand.getReg())))
    return false;
  constexpr unsigned bits = 32;
  unsigned size = operand.getSubReg() ? physical->getSubRegIdxSize(operand.getSubReg())
                                      : physical->getRegSizeInBits(*registers->getRegClass(operand.getReg()));
  const MachineInstr &user = *operand.getParent();
  const MachineInstr *definition = registers->getUniqueVRegDef(operand.getReg());
  if (size != bits || !definition || user.isPHI() || definition->getParent() == user.getParent())
    return false;
  // Masks of lanes are operands that only scalar registers can be.
  const TargetRegisterClass *taken = nullptr;
  if (!user.isCopy())
    taken = instructions->getRegClass(user.getDesc(), operand.getOperandNo());
  else if (Register result = user.getOperand(0).getReg(); result.isVirtual())
    taken = registers->getRegClass(result);
  if (!taken || isScalarClass(*physical, taken) || !physical->getCommonSubClass(taken, vector))
    return false;
  for (const MachineLoop *loop = loops->getLoopFor(definition->getParent()); loop && !loop->contains(user.getParent());
       loop = loop->getParentLoop())
    if (isLeftOneByOne(*loop))
      return true;
  return false;
}

Register KeepLoopValues::copyInLoop(const MachineOperand &operand) {
  MachineInstr *definition = registers->getUniqueVRegDef(operand.getReg());
  MachineBasicBlock &block = *definition->getParent();
  auto at = definition->isPHI() ? block.getFirstNonPHI() : std::next(definition->getIterator());
  Register copy = registers->createVirtualRegister(vector);
  BuildMI(block, at, definition->getDebugLoc(), instructions->get(TargetOpcode::COPY), copy)
      .addReg(operand.getReg(), /*flags=*/0, operand.getSubReg());
  registers->clearKillFlags(operand.getReg());
  return copy;
}

bool KeepLoopValues::runOnMachineFunction(MachineFunction &function) {
  loops = &getAnalysis<MachineLoopInfoWrapperPass>().getLI();
  if (loops->empty() || !function.getProperties().hasIsSSA())
    return false;
  registers = &function.getRegInfo();
  instructions = function.getSubtarget().getInstrInfo();
  physical = function.getSubtarget().getRegisterInfo();
  vector = *find_if(physical->regclasses(), [&](const TargetRegisterClass *type) {
    return StringRef(physical->getRegClassName(type)) == "VGPR_32";
  });
  MapVector<std::pair<Register, unsigned>, SmallVector<MachineOperand *>> found; // uses by scalar
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : block)
      for (MachineOperand &operand : instruction.explicit_uses())
        if (outlives(operand))
          found[{operand.getReg(), operand.getSubReg()}].push_back(&operand);
  for (auto &[scalar, uses] : found) {
    Register copy = copyInLoop(*uses.front());
    for (MachineOperand *use : uses) {
      use->setReg(copy);
      use->setSubReg(0);
      use->setIsKill(false);
    }
  }
  return !found.empty();
}

char &registerKeepLoopValues() {
  registerMachinePass<KeepLoopValues>("scalars of loops that lanes leave one by one", "qd-keep-loop-values");
  return KeepLoopValues::ID;
}

} // namespace qd
