//===- AMDGCNFences.cpp - loads stay in front of fences and barriers -------------------------===//
//
// Purpose: LLVM 22's MachineSink moves a load into the block that uses it, past what stands behind it in its own block
// (LLVM issue 181708). It stops at stores, and fences and barriers of AMD's chips are none to it: a wave then reads what
// others have stored in shared memory since. So while MachineSink runs, an empty asm statement that may store stands in
// front of each.
//
//   ds_read x                              ds_read x
//   fence; s_barrier; fence         ->     asm ""; fence; asm ""; s_barrier; asm ""; fence
//   branch                                 branch
//   use: ... x                             use: ... x
//
// Input: machine code in SSA form. Output: the same, with no statement left.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNPasses.h"

#include "codegen/MachinePass.h"

#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/InlineAsm.h"

using namespace llvm;

namespace qd {

namespace {
class MarkFences : public MachinePass {
public:
  static char ID;
  MarkFences() : MachinePass(ID) {}

  StringRef getPassName() const override { return "marks of fences and barriers"; }
  bool runOnMachineFunction(MachineFunction &function) override;
};
char MarkFences::ID = 0;

class UnmarkFences : public MachinePass {
public:
  static char ID;
  UnmarkFences() : MachinePass(ID) {}

  StringRef getPassName() const override { return "no marks of fences and barriers"; }
  bool runOnMachineFunction(MachineFunction &function) override;
};
char UnmarkFences::ID = 0;
} // namespace

constexpr unsigned markFlags = InlineAsm::Extra_HasSideEffects | InlineAsm::Extra_MayLoad | InlineAsm::Extra_MayStore;

static bool isMark(const MachineInstr &instruction) {
  return instruction.isInlineAsm() && instruction.getNumOperands() == InlineAsm::MIOp_FirstOperand &&
         StringRef(instruction.getOperand(InlineAsm::MIOp_AsmString).getSymbolName()).empty() &&
         instruction.getOperand(InlineAsm::MIOp_ExtraInfo).getImm() == markFlags;
}

bool MarkFences::runOnMachineFunction(MachineFunction &function) {
  const TargetInstrInfo &instructions = *function.getSubtarget().getInstrInfo();
  bool hasChanged = false;
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : block) {
      StringRef name = instructions.getName(instruction.getOpcode());
      if (!instruction.hasUnmodeledSideEffects() || !(name == "ATOMIC_FENCE" || name.starts_with("S_BARRIER")))
        continue;
      BuildMI(block, instruction, instruction.getDebugLoc(), instructions.get(TargetOpcode::INLINEASM))
          .addExternalSymbol("")
          .addImm(markFlags);
      hasChanged = true;
    }
  return hasChanged;
}

bool UnmarkFences::runOnMachineFunction(MachineFunction &function) {
  SmallVector<MachineInstr *> marks;
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : block)
      if (isMark(instruction))
        marks.push_back(&instruction);
  for (MachineInstr *mark : marks)
    mark->eraseFromParent();
  return !marks.empty();
}

char &registerMarkFences() {
  registerMachinePass<MarkFences>("marks of fences and barriers", "qd-mark-fences");
  return MarkFences::ID;
}

char &registerUnmarkFences() {
  registerMachinePass<UnmarkFences>("no marks of fences and barriers", "qd-unmark-fences");
  return UnmarkFences::ID;
}

} // namespace qd
