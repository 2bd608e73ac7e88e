//===- AMDGCNMachine.h - what our passes over AMDGCN machine code ask ------------------------===//

#ifndef QD_CODEGEN_AMDGCNMACHINE_H
#define QD_CODEGEN_AMDGCNMACHINE_H

#include "llvm/CodeGen/MachineInstr.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"

namespace qd::machine {

/// Operands of a DPP move, by LLVM's definition.
struct Move {
  enum { result, old, source, control, rows, banks, bound };
};

/// The number of an AMDGCN instruction by LLVM's name for it, of which its public headers have none; 0 for none.
unsigned findOpcode(const llvm::TargetInstrInfo &instructions, llvm::StringRef name);

/// Whether waves of the chip wait for a carry, or another mask that a vector instruction writes, before one reads it.
bool waitsForMasks(llvm::StringRef chip);

/// Whether the operand is one 32-bit vector register.
bool isVector(const llvm::MachineOperand &operand, const llvm::MachineRegisterInfo &registers);

/// Whether `to` follows the DPP move `from` in the same block, for the same active lanes.
bool hasSameLanes(const llvm::MachineInstr &from, const llvm::MachineInstr &to,
                  const llvm::TargetRegisterInfo &physical);

/// Whether nothing from `at` on reads what VCC holds there.
bool isFree(llvm::Register vcc, llvm::MachineBasicBlock::const_iterator at, const llvm::TargetRegisterInfo &physical);

/// Whether `from` stands before `to` in their block.
bool isBefore(const llvm::MachineInstr &from, const llvm::MachineInstr &to);

} // namespace qd::machine

#endif
