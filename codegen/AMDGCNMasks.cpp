//===- AMDGCNMasks.cpp - masks of 64 lanes as one instruction each ---------------------------===//
//
// Purpose: constants of 64 bits, such as the masks of lanes in a sort's steps, each of which takes two instructions.
// One makes a constant whose bits are pairs of equal ones, one in which two others differ, or one to which a shift
// takes another; the mask of the lower lanes is a literal:
//
//   %a = S_MOV_B32 0xcccccccc    %b = S_MOV_B32 0xcccccccc    %m = %a, %b
//     ->
//   %m = S_BITREPLICATE_B64_B32 0xaaaaaaaa
//
// Input: machine code in SSA form behind our passes that make DPP moves part of operations. Output: the same values.
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
class ShortenMasks : public MachinePass {
public:
  static char ID;
  ShortenMasks() : MachinePass(ID) {}

  StringRef getPassName() const override { return "masks of 64 lanes as one instruction each"; }
  bool runOnMachineFunction(MachineFunction &function) override;

private:
  unsigned find(StringRef name) const { return machine::findOpcode(*instructions, name); }
  std::optional<uint64_t> getMask(const MachineInstr &constant) const;
  bool shortenMasks(MachineBasicBlock &block);
  bool useLiteral(MachineInstr &flip);

  MachineRegisterInfo *registers = nullptr;
  const TargetInstrInfo *instructions = nullptr;
  const TargetRegisterInfo *physical = nullptr;
};
char ShortenMasks::ID = 0;
} // namespace

/// The bits of a constant in two halves, in scalar registers.
std::optional<uint64_t> ShortenMasks::getMask(const MachineInstr &constant) const {
  constexpr unsigned numOperands = 5;
  Register result = constant.getOperand(0).getReg();
  if (constant.getNumOperands() != numOperands || !result.isVirtual() ||
      !StringRef(physical->getRegClassName(registers->getRegClass(result))).starts_with("S"))
    return std::nullopt;
  uint64_t bits = 0;
  for (unsigned at : {1, 3}) {
    Register part = constant.getOperand(at).getReg();
    MachineInstr *definition = part.isVirtual() ? registers->getUniqueVRegDef(part) : nullptr;
    if (!definition || definition->getOpcode() != find("S_MOV_B32") || !definition->getOperand(1).isImm() ||
        constant.getOperand(at).getSubReg())
      return std::nullopt;
    bool isUpper = physical->getSubRegIdxOffset(constant.getOperand(at + 1).getImm()) != 0;
    bits |= uint64_t(uint32_t(definition->getOperand(1).getImm())) << (isUpper ? 32 : 0);
  }
  return isUInt<32>(bits) || isInt<32>(int64_t(bits)) ? std::nullopt : std::optional(bits);
}

/// Every second bit, where the bits are pairs of equal ones.
static std::optional<uint32_t> getHalf(uint64_t bits) {
  uint64_t half = 0;
  for (unsigned i = 0; i < 32; ++i) {
    if ((bits >> 2 * i & 1) != (bits >> (2 * i + 1) & 1))
      return std::nullopt;
    half |= (bits >> 2 * i & 1) << i;
  }
  return uint32_t(half);
}

/// A block's constants in front of the first of them: s_bitreplicate makes those whose bits are pairs, an exclusive or
/// those in which two others differ, or are equal, and a shift those of the next lanes. Others stay as they are.
bool ShortenMasks::shortenMasks(MachineBasicBlock &block) {
  struct Mask {
    MachineInstr *constant;
    uint64_t bits;
    Register reg() const { return constant->getOperand(0).getReg(); }
  };
  SmallVector<Mask> known, left;
  for (MachineInstr &instruction : block)
    if (instruction.isRegSequence())
      if (std::optional<uint64_t> bits = getMask(instruction);
          bits && !registers->use_nodbg_empty(instruction.getOperand(0).getReg()))
        (getHalf(*bits) ? known : left).push_back({&instruction, *bits});
  if (known.empty())
    return false;
  bool isKnown = left.empty() || machine::isBefore(*known.front().constant, *left.front().constant);
  MachineBasicBlock::iterator at = *(isKnown ? known : left).front().constant;
  SmallVector<MachineInstr *> replaced;
  auto build = [&](const Mask &mask, StringRef name) {
    replaced.push_back(mask.constant);
    return BuildMI(block, at, mask.constant->getDebugLoc(), instructions->get(find(name)), mask.reg());
  };
  for (const Mask &mask : known)
    build(mask, "S_BITREPLICATE_B64_B32").addImm(int32_t(*getHalf(mask.bits)));
  const MCInstrDesc &flip = instructions->get(find("S_XOR_B64"));
  constexpr size_t most = 16; // for which every two others are tried
  bool canDerive = left.size() <= most && machine::isFree(flip.implicit_defs().front(), at, *physical);
  auto derive = [&](const Mask &mask) {
    for (const Mask &a : known)
      for (const Mask &b : known)
        if (uint64_t difference = a.bits ^ b.bits; difference == mask.bits || difference == ~mask.bits) {
          build(mask, difference == mask.bits ? "S_XOR_B64" : "S_XNOR_B64").addReg(a.reg()).addReg(b.reg());
          return true;
        }
    for (const Mask &a : known)
      if (a.bits >> 1 == mask.bits) {
        build(mask, "S_LSHR_B64").addReg(a.reg()).addImm(1);
        return true;
      }
    return false;
  };
  while (!left.empty()) {
    Mask *found = canDerive ? find_if(left, derive) : left.end();
    if (found == left.end()) {
      found = left.begin();
      auto keep = [&](MachineInstr &instruction) {
        if (instruction.getIterator() == at)
          ++at;
        else if (instruction.getParent() == &block && machine::isBefore(*at, instruction))
          instruction.moveBefore(&*at);
      };
      keep(*registers->getUniqueVRegDef(found->constant->getOperand(1).getReg()));
      keep(*registers->getUniqueVRegDef(found->constant->getOperand(3).getReg()));
      keep(*found->constant);
    }
    known.push_back(*found);
    left.erase(found);
  }
  for (MachineInstr *constant : replaced)
    constant->eraseFromParent();
  return true;
}

/// The mask of the lower lanes as an operand, or that of the upper ones, which is the opposite.
bool ShortenMasks::useLiteral(MachineInstr &flip) {
  for (unsigned at : {1, 2}) {
    MachineOperand &mask = flip.getOperand(at);
    const MachineInstr *constant =
        mask.isReg() && mask.getReg().isVirtual() ? registers->getUniqueVRegDef(mask.getReg()) : nullptr;
    if (!constant)
      continue;
    std::optional<uint64_t> bits;
    if (constant->isRegSequence())
      bits = getMask(*constant);
    else if (constant->isMoveImmediate() && constant->getOperand(1).isImm())
      bits = constant->getOperand(1).getImm();
    if (bits != UINT32_MAX && bits != ~uint64_t(UINT32_MAX))
      continue;
    if (bits != UINT32_MAX)
      flip.setDesc(instructions->get(find("S_XNOR_B64")));
    mask.ChangeToImmediate(UINT32_MAX);
    return true;
  }
  return false;
}

bool ShortenMasks::runOnMachineFunction(MachineFunction &function) {
  registers = &function.getRegInfo();
  instructions = function.getSubtarget().getInstrInfo();
  physical = function.getSubtarget().getRegisterInfo();
  unsigned flipOpcode = find("S_XOR_B64");
  bool hasChanged = false;
  for (MachineBasicBlock &block : function) {
    for (MachineInstr &instruction : block)
      if (instruction.getOpcode() == flipOpcode)
        hasChanged |= useLiteral(instruction);
    hasChanged |= shortenMasks(block);
  }
  return hasChanged;
}

char &registerShortenMasks() {
  registerMachinePass<ShortenMasks>("masks of 64 lanes as one instruction each", "qd-shorten-masks");
  return ShortenMasks::ID;
}

} // namespace qd
