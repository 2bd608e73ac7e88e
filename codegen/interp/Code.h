//===- Code.h - a kernel made ready to be stepped through ----------------------------===//
//
// Purpose: a kernel's ops as instructions: each has its rule, and its operands and results are slots.
// Input: a verified module. Output: one Code a kernel, in which every op has a rule and every value is a scalar
// or an array; calls of helper functions are unfolded in place.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_INTERP_CODE_H
#define QD_CODEGEN_INTERP_CODE_H

#include "codegen/interp/Rules.h"
#include "ir/Dialect.h"
#include "ir/Targets.h"

#include <memory>
#include <vector>

namespace qd::interp {

struct Instruction;

/// The ops of one region, in order, and the slots of the values that enter it.
struct Body {
  std::vector<unsigned> arguments;
  std::vector<Instruction> instructions;
};

struct Instruction {
  mlir::Operation *op = nullptr;
  const Rule *rule = nullptr;
  std::vector<unsigned> operands, results; ///< a vector has a slot for each of its scalars
  std::vector<mlir::Type> operandTypes;    ///< by slot
  std::vector<Body> regions;
  /// Collective ops: threads of the scope; 0 for the whole block.
  unsigned scope = 0;
  /// The slot of a `members` clause.
  std::optional<unsigned> members;
  /// Values from around a `combine` region that it uses.
  std::vector<unsigned> captures;
};

/// What gives a slot its value: an op as its result, or as an argument of its region. Kernel arguments have no op.
struct Definition {
  const Instruction *by = nullptr;
  std::optional<unsigned> region;
  unsigned index = 0;
  mlir::Type type;
};

struct Code {
  KernelOp kernel;
  unsigned subgroupSize = 0;
  unsigned numSlots = 0;
  bool isCooperative = false; ///< blocks wait for each other, so all of them run at once
  Body body;
  std::vector<Definition> definitions; ///< by slot
  /// The scalar ops that ops on vectors consist of, and values that stand for their operands.
  mlir::Block scalarOps;
  /// Arrays are numbered in this order: the arguments, shared arrays, tables, and private arrays, each thread's of one
  /// side by side. Views follow as they come up.
  std::vector<SharedAllocOp> shared;
  std::vector<ConstantGetOp> tables;
  std::vector<PrivateAllocOp> privates;
};

/// Translates a kernel; what it does not know it diagnoses at the op.
mlir::FailureOr<std::unique_ptr<Code>> loadKernel(KernelOp kernel, const Target &target);

} // namespace qd::interp

#endif
