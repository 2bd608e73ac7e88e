//===- AMDGCNBallots.cpp - many ballots do not wait in scalar registers --------------------------===//
//
// Purpose: a ballot stays in its block, and what is made of it, an exclusive or with a lane's own bit, LLVM 22 moves to
// where that is used: MachineSink to a later block, the scheduler behind other ballots. Up to then the ballot takes a
// scalar register, or two, and where there are many of them some are spilled. So in blocks whose ballots would fill the
// registers empty asm statements read at their place what is made of ballots while MachineSink runs, and the scheduler
// moves nothing past every so many ballots.
//
//   %ballot = V_CMP ..                     %ballot = V_CMP ..
//   %same = V_XOR %ballot, %own      ->    %same = V_XOR %ballot, %own
//   ..                                     asm "" (%same)
//   branch                                 branch
//   use: ... %same                         use: ... %same
//
// Input: machine code in SSA form. Output: the same values.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNPasses.h"

#include "codegen/AMDGCNMachine.h"
#include "codegen/MachinePass.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/InlineAsm.h"

using namespace llvm;

namespace qd {

namespace {
class HoldBallots : public MachinePass {
public:
  static char ID;
  HoldBallots() : MachinePass(ID) {}

  StringRef getPassName() const override { return "what is made of ballots stays"; }
  bool runOnMachineFunction(MachineFunction &function) override;
};
char HoldBallots::ID = 0;

class PartBallots : public MachinePass {
public:
  static char ID;
  PartBallots() : MachinePass(ID) {}

  StringRef getPassName() const override { return "ballots in parts"; }
  bool runOnMachineFunction(MachineFunction &function) override;
};
char PartBallots::ID = 0;

/// The ballots of a block: masks that its vector instructions compute with, as with any word.
class Ballots {
public:
  explicit Ballots(MachineBasicBlock &block)
      : block(block), instructions(*block.getParent()->getSubtarget().getInstrInfo()),
        registers(block.getParent()->getRegInfo()) {
    for (MachineInstr &instruction : block)
      if (isComparison(instruction) && isComputedWith(instruction.getOperand(0).getReg()))
        comparisons.insert(&instruction);
  }

  /// Kernels have some 100 scalar registers. Fewer ballots LLVM orders well by itself.
  bool areMany() const { return !comparisons.empty() && comparisons.size() * getWords() > 32; }
  /// Ballots between which the scheduler may choose.
  size_t getPart() const { return 32 / getWords(); }
  bool contains(const MachineInstr &instruction) const { return comparisons.contains(&instruction); }

  /// What copies and bit operations of the block make of its ballots, in order.
  SmallVector<MachineInstr *> findMade() const {
    DenseSet<Register> known;
    SmallVector<MachineInstr *> made;
    for (MachineInstr &instruction : block) {
      if (contains(instruction)) {
        known.insert(instruction.getOperand(0).getReg());
      } else if (llvm::any_of(instruction.uses(), [&](const MachineOperand &operand) {
                   return operand.isReg() && known.contains(operand.getReg());
                 }) && (instruction.isCopy() || instruction.isRegSequence() || isBitwise(instruction)) &&
                 instruction.getOperand(0).getReg().isVirtual()) {
        known.insert(instruction.getOperand(0).getReg());
        made.push_back(&instruction);
      }
    }
    return made;
  }

private:
  bool isComparison(const MachineInstr &instruction) const {
    StringRef name = instructions.getName(instruction.getOpcode());
    return name.starts_with("V_CMP_") && name.ends_with("_e64") && instruction.getOperand(0).getReg().isVirtual();
  }

  /// Whether a vector instruction takes the mask as a word, be it through a copy of a half of it.
  bool isComputedWith(Register mask) const {
    return llvm::any_of(registers.use_nodbg_instructions(mask), [&](const MachineInstr &reader) {
      if (!reader.isCopy())
        return isBitwise(reader);
      Register copy = reader.getOperand(0).getReg();
      return copy.isVirtual() && llvm::any_of(registers.use_nodbg_instructions(copy),
                                              [&](const MachineInstr &further) { return isBitwise(further); });
    });
  }

  /// A vector instruction; of those the names below are no others'.
  bool isBitwise(const MachineInstr &instruction) const {
    StringRef name = instructions.getName(instruction.getOpcode());
    return llvm::any_of(ArrayRef<StringRef>{"V_AND_B32", "V_OR_B32", "V_XOR_B32", "V_XNOR_B32"},
                        [&](StringRef prefix) { return name.starts_with(prefix); });
  }

  unsigned getWords() const {
    const TargetRegisterInfo &physical = *registers.getTargetRegisterInfo();
    const MachineInstr &any = **comparisons.begin();
    return physical.getRegSizeInBits(*registers.getRegClass(any.getOperand(0).getReg())) / 32;
  }

  MachineBasicBlock &block;
  const TargetInstrInfo &instructions;
  const MachineRegisterInfo &registers;
  DenseSet<const MachineInstr *> comparisons;
};
} // namespace

/// An empty statement that reads one register; without effects no program's is left.
static bool isHold(const MachineInstr &instruction) {
  return instruction.isInlineAsm() && instruction.getNumOperands() == InlineAsm::MIOp_FirstOperand + 2 &&
         StringRef(instruction.getOperand(InlineAsm::MIOp_AsmString).getSymbolName()).empty() &&
         !instruction.getOperand(InlineAsm::MIOp_ExtraInfo).getImm();
}

bool HoldBallots::runOnMachineFunction(MachineFunction &function) {
  const TargetInstrInfo &instructions = *function.getSubtarget().getInstrInfo();
  bool hasChanged = false;
  for (MachineBasicBlock &block : function) {
    Ballots ballots(block);
    if (!ballots.areMany())
      continue;
    for (MachineInstr *made : ballots.findMade()) {
      Register result = made->getOperand(0).getReg();
      if (llvm::all_of(function.getRegInfo().use_nodbg_instructions(result),
                       [&](const MachineInstr &user) { return user.getParent() == &block; }))
        continue;
      BuildMI(block, block.getFirstTerminator(), made->getDebugLoc(), instructions.get(TargetOpcode::INLINEASM))
          .addExternalSymbol("")
          .addImm(0)
          .addImm(InlineAsm::Flag(InlineAsm::Kind::RegUse, 1))
          .addReg(result);
      hasChanged = true;
    }
  }
  return hasChanged;
}

/// Moves what is made of ballots to behind its operands: LLVM's Reassociate collects such operations at the block's end.
static void raise(MachineBasicBlock &block, ArrayRef<MachineInstr *> made) {
  MachineRegisterInfo &registers = block.getParent()->getRegInfo();
  // Places by the instruction that was there before, then by the order in which others were put behind it.
  DenseMap<const MachineInstr *, std::pair<unsigned, unsigned>> places;
  DenseMap<unsigned, MachineInstr *> last;
  unsigned number = 0, moved = 0;
  for (MachineInstr &instruction : block) {
    last[number] = &instruction;
    places[&instruction] = {number++, 0};
  }
  for (MachineInstr *instruction : made) {
    // One of the operands is made of a ballot, which stands behind the block's PHIs.
    std::pair<unsigned, unsigned> latest = {0, 0};
    for (const MachineOperand &operand : instruction->uses()) {
      if (!operand.isReg() || !operand.getReg().isVirtual())
        continue;
      const MachineInstr *definition = registers.getVRegDef(operand.getReg());
      if (definition->getParent() != &block)
        continue;
      registers.clearKillFlags(operand.getReg());
      latest = std::max(latest, places.lookup(definition));
    }
    MachineInstr *&before = last[latest.first];
    block.splice(std::next(before->getIterator()), &block, instruction->getIterator());
    places[instruction] = {latest.first, ++moved};
    before = instruction;
  }
}

bool PartBallots::runOnMachineFunction(MachineFunction &function) {
  const TargetInstrInfo &instructions = *function.getSubtarget().getInstrInfo();
  bool hasChanged = false;
  for (MachineBasicBlock &block : function) {
    for (MachineInstr &instruction : make_early_inc_range(block))
      if (isHold(instruction)) {
        instruction.eraseFromParent();
        hasChanged = true;
      }
    Ballots ballots(block);
    if (!ballots.areMany())
      continue;
    raise(block, ballots.findMade());
    size_t count = 0;
    for (MachineInstr &instruction : block)
      if (ballots.contains(instruction) && ++count % ballots.getPart() == 0) {
        BuildMI(block, instruction, instruction.getDebugLoc(),
                instructions.get(machine::findOpcode(instructions, "SCHED_BARRIER")))
            .addImm(0);
        hasChanged = true;
      }
  }
  return hasChanged;
}

char &registerHoldBallots() {
  registerMachinePass<HoldBallots>("what is made of ballots stays", "qd-hold-ballots");
  return HoldBallots::ID;
}

char &registerPartBallots() {
  registerMachinePass<PartBallots>("ballots in parts", "qd-part-ballots");
  return PartBallots::ID;
}

} // namespace qd
