//===- X86AccessOrder.cpp - accesses at rising addresses ---------------------------------------------------===//
//
// Purpose: processors read ahead of accesses at rising addresses. LLVM's instruction selection makes a load part of the
// addition that it is for, and two accesses of a vector wider than a register, and leaves them where that puts them:
//
//   a = load 0   b = load 64   c = load 256   d = load 320   e = add b, [192]   f = add a, [128]   ..
//     ->
//   a = load 0   b = load 64   f = add a, [128]   e = add b, [192]   c = load 256   d = load 320   ..
//
// A load moves up in front of loads at greater offsets from the same registers, a store in front of such stores, where
// what it takes is there already. A sum then needs fewer registers, too.
// Input: machine code in SSA form. Output: the same instructions of each block, in another order.
//
//===----------------------------------------------------------------------===//

#include "codegen/X86Passes.h"

#include "codegen/MachinePass.h"

#include "llvm/CodeGen/MachineInstr.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace qd {

namespace {
class OrderAccesses : public MachinePass {
public:
  static char ID;
  OrderAccesses() : MachinePass(ID) {}

  StringRef getPassName() const override { return "accesses at rising addresses"; }
  bool runOnMachineFunction(MachineFunction &function) override;
};
char OrderAccesses::ID = 0;

/// A load or a store of a vector.
struct Access {
  ExtAddrMode address;
  int64_t bytes;

  bool isBeside(const Access &other) const {
    return address.BaseReg == other.address.BaseReg && address.ScaledReg == other.address.ScaledReg &&
           address.Scale == other.address.Scale;
  }
  bool isBelow(const Access &other) const {
    return address.Displacement + bytes <= other.address.Displacement;
  }
};
} // namespace

/// Nothing for what is no vector, or has to stay where it is.
static std::optional<Access> getAccess(const MachineInstr &instruction) {
  if (!instruction.hasOneMemOperand() || instruction.hasOrderedMemoryRef() ||
      instruction.mayLoad() == instruction.mayStore())
    return std::nullopt;
  const MachineMemOperand &memory = **instruction.memoperands_begin();
  constexpr uint64_t leastBytes = 16;
  LocationSize size = memory.getSize();
  if (!size.hasValue() || size.isScalable() || size.getValue() < leastBytes || memory.getAddrSpace())
    return std::nullopt;
  auto isFixed = [](const MachineOperand &operand) {
    return operand.isReg() && operand.getReg().isPhysical() && (operand.isDef() || !operand.isImplicit());
  };
  if (any_of(instruction.operands(), isFixed))
    return std::nullopt;
  const TargetSubtargetInfo &chip = instruction.getMF()->getSubtarget();
  std::optional<ExtAddrMode> address =
      chip.getInstrInfo()->getAddrModeFromMemoryOp(instruction, chip.getRegisterInfo());
  if (!address)
    return std::nullopt;
  return Access{*address, int64_t(size.getValue().getFixedValue())};
}

/// In front of which instruction the access goes: the first of those at greater addresses that it may pass. Null where
/// it stays.
static MachineInstr *findPlace(MachineInstr &instruction, const Access &access) {
  const TargetRegisterInfo &registers = *instruction.getMF()->getSubtarget().getRegisterInfo();
  auto isUsed = [&](const MachineOperand &result) { return instruction.readsRegister(result.getReg(), &registers); };
  MachineInstr *place = nullptr;
  unsigned left = 64;
  for (MachineInstr *passed = instruction.getPrevNode(); passed && left--; passed = passed->getPrevNode()) {
    if (passed->isPHI() || passed->isCall() || passed->hasUnmodeledSideEffects() || any_of(passed->all_defs(), isUsed))
      break;
    if (!passed->mayLoadOrStore())
      continue;
    if (passed->mayLoad() != instruction.mayLoad() || passed->mayStore() != instruction.mayStore() ||
        passed->hasOrderedMemoryRef())
      break;
    std::optional<Access> other = getAccess(*passed);
    bool isBeside = other && access.isBeside(*other);
    if (isBeside ? !access.isBelow(*other) : instruction.mayStore())
      break;
    if (isBeside)
      place = passed;
  }
  return place;
}

bool OrderAccesses::runOnMachineFunction(MachineFunction &function) {
  MachineRegisterInfo &registers = function.getRegInfo();
  bool changed = false;
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : make_early_inc_range(block)) {
      std::optional<Access> access = getAccess(instruction);
      MachineInstr *place = access ? findPlace(instruction, *access) : nullptr;
      if (!place)
        continue;
      block.splice(place->getIterator(), &block, instruction.getIterator());
      for (const MachineOperand &operand : instruction.all_uses())
        if (operand.getReg().isVirtual())
          registers.clearKillFlags(operand.getReg());
      changed = true;
    }
  return changed;
}

char &registerOrderAccesses() {
  registerMachinePass<OrderAccesses>("accesses at rising addresses", "qd-order-accesses");
  return OrderAccesses::ID;
}

} // namespace qd
