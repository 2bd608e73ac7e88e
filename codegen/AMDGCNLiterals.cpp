//===- AMDGCNLiterals.cpp - literals as the assembler writes them ------------------------------===//
//
// Purpose: a literal of an operation on 16 bits fills 32, of which the chip reads the lower half. LLVM extends negative
// ones by their sign in objects, but prints the lower half alone, so that its assembler writes zeros above:
//
//   V_MUL_LO_U16_e64 -31745   ->   V_MUL_LO_U16_e64 33791
//
// Input: machine code that is about to be written. Output: the same, with no bits above the literals that count.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNLiterals.h"

#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace qd {

namespace {
class TrimLiterals : public MachineFunctionPass {
public:
  static char ID;
  TrimLiterals() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override { return "literals of operations on 16 bits"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
  bool runOnMachineFunction(MachineFunction &function) override;
};
char TrimLiterals::ID = 0;
} // namespace

/// Vector operations all of whose sources have 16 bits, by LLVM's names; a packed one reads both halves.
static bool hasShortSources(StringRef name) {
  return name.starts_with("V_") && name.contains("16") && !name.starts_with("V_PK_") && !name.contains("DOT") &&
         !name.contains("MIX") && !name.contains("32_I16") && !name.contains("32_U16");
}

bool TrimLiterals::runOnMachineFunction(MachineFunction &function) {
  const TargetInstrInfo &instructions = *function.getSubtarget().getInstrInfo();
  // Numbers down to -16 are part of the instruction.
  constexpr int64_t least = -32768, leastInline = -16;
  bool hasChanged = false;
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : block) {
      auto isNegative = [](const MachineOperand &operand) {
        return operand.isImm() && operand.getImm() >= least && operand.getImm() < leastInline;
      };
      if (none_of(instruction.explicit_operands(), isNegative) ||
          !hasShortSources(instructions.getName(instruction.getOpcode())))
        continue;
      for (MachineOperand &operand : instruction.explicit_operands())
        if (isNegative(operand)) {
          operand.setImm(operand.getImm() & 0xffff);
          hasChanged = true;
        }
    }
  return hasChanged;
}

MachineFunctionPass *createTrimLiteralsPass() { return new TrimLiterals; }

} // namespace qd
