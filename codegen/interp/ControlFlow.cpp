//===- ControlFlow.cpp - structured control flow and calls ---------------------------------===//
//
// An op with regions pushes a frame for the lanes that enter one; the region's terminator moves its operands to
// where they go, and ends the frame or starts the loop's next iteration. The lanes meet again behind the op.
//
//===----------------------------------------------------------------------===//

#include "codegen/interp/Machine.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace qd::interp {

/// The lanes of `mask` in which `slot` is true; a poisoned condition is a failure.
static uint64_t findTrueLanes(Subgroup &subgroup, const Instruction &instruction, unsigned slot, uint64_t mask) {
  uint64_t result = 0;
  for (; mask; mask &= mask - 1) {
    unsigned lane = llvm::countr_zero(mask);
    LaneValue value = subgroup.at(slot, lane);
    if (value.poison && subgroup.block.launch.checks.poison) {
      subgroup.fail(instruction, lane, "branches on poison", {{slot, subgroup.firstThread + lane}});
      return 0;
    }
    result |= value.bits << lane;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// scf.if and calls
//===----------------------------------------------------------------------===//

static void runIf(Subgroup &subgroup, const Instruction &instruction) {
  uint64_t active = subgroup.frame().active;
  uint64_t taken = findTrueLanes(subgroup, instruction, instruction.operands[0], active);
  if (subgroup.block.launch.failed())
    return;
  uint64_t others = active & ~taken;
  if (others && !instruction.regions[1].instructions.empty())
    subgroup.enter(instruction, 1, others);
  if (taken)
    subgroup.enter(instruction, 0, taken);
}

static void runCall(Subgroup &subgroup, const Instruction &call) {
  uint64_t active = subgroup.frame().active;
  subgroup.copy(call.operands, call.regions[0].arguments, active);
  subgroup.enter(call, 0, active);
}

/// Ends a region that is run once: its operands are the results of the op around it.
static void finishOnce(Subgroup &subgroup, const Instruction &yield) {
  subgroup.copy(yield.operands, subgroup.frame().owner->results, subgroup.frame().active);
  subgroup.leave();
}

static void endKernel(Subgroup &subgroup, const Instruction &) { subgroup.leave(); }

/// Ends a `combine` region; Subgroup::evaluate fetches the operands.
static void endCombiner(Subgroup &subgroup, const Instruction &) { subgroup.leave(); }

//===----------------------------------------------------------------------===//
// scf.for: operands are lower bound, upper bound, step and the initial values
//===----------------------------------------------------------------------===//

static void runFor(Subgroup &subgroup, const Instruction &loop) {
  auto op = cast<scf::ForOp>(loop.op);
  Type type = op.getInductionVar().getType();
  uint64_t entering = 0;
  for (uint64_t mask = subgroup.frame().active; mask; mask &= mask - 1) {
    unsigned lane = llvm::countr_zero(mask);
    LaneValue bounds[3];
    for (unsigned i = 0; i < 3; ++i) {
      bounds[i] = subgroup.at(loop.operands[i], lane);
      if (bounds[i].poison)
        return subgroup.fail(loop, lane, "has poison as a bound or step",
                             {{loop.operands[i], subgroup.firstThread + lane}});
    }
    APInt lower = toInt(bounds[0].bits, type), upper = toInt(bounds[1].bits, type), step = toInt(bounds[2].bits, type);
    if (step.isZero() || (step.isNegative() && !op.getUnsignedCmp()))
      return subgroup.fail(loop, lane, "has a step of " + llvm::Twine(step.getSExtValue()) + ", expected at least 1",
                           {{loop.operands[2], subgroup.firstThread + lane}});
    if (op.getUnsignedCmp() ? lower.ult(upper) : lower.slt(upper))
      entering |= uint64_t(1) << lane;
    subgroup.at(loop.regions[0].arguments[0], lane) = bounds[0];
  }
  ArrayRef<unsigned> initial = ArrayRef(loop.operands).drop_front(3);
  subgroup.copy(initial, loop.results, subgroup.frame().active);
  subgroup.copy(initial, ArrayRef(loop.regions[0].arguments).drop_front(), subgroup.frame().active);
  if (entering)
    subgroup.enter(loop, 0, entering);
}

static void finishForIteration(Subgroup &subgroup, const Instruction &yield) {
  const Instruction &loop = *subgroup.frame().owner;
  const Body &body = loop.regions[0];
  uint64_t active = subgroup.frame().active, staying = 0;
  subgroup.copy(yield.operands, loop.results, active);
  subgroup.rememberPoison(yield.operands, ArrayRef(body.arguments).drop_front(), active);
  subgroup.copy(yield.operands, ArrayRef(body.arguments).drop_front(), active);
  Type type = cast<scf::ForOp>(loop.op).getInductionVar().getType();
  for (uint64_t mask = active; mask; mask &= mask - 1) {
    unsigned lane = llvm::countr_zero(mask);
    LaneValue &variable = subgroup.at(body.arguments[0], lane);
    APInt now = toInt(variable.bits, type), step = toInt(subgroup.at(loop.operands[2], lane).bits, type);
    // The distance to the upper bound, not the next value, is compared: the next value may overflow.
    APInt left = toInt(subgroup.at(loop.operands[1], lane).bits, type) - now;
    if (left.ugt(step))
      staying |= uint64_t(1) << lane;
    variable = LaneValue::of(now + step);
  }
  if (!staying)
    return subgroup.leave();
  subgroup.startIteration(body, staying);
  subgroup.pause();
}

//===----------------------------------------------------------------------===//
// scf.while: the condition ends region 0, region 1 leads back to it
//===----------------------------------------------------------------------===//

static void runWhile(Subgroup &subgroup, const Instruction &loop) {
  uint64_t active = subgroup.frame().active;
  subgroup.copy(loop.operands, loop.regions[0].arguments, active);
  subgroup.enter(loop, 0, active);
}

static void finishCondition(Subgroup &subgroup, const Instruction &condition) {
  const Instruction &loop = *subgroup.frame().owner;
  uint64_t active = subgroup.frame().active;
  uint64_t staying = findTrueLanes(subgroup, condition, condition.operands[0], active);
  if (subgroup.block.launch.failed())
    return;
  ArrayRef<unsigned> values = ArrayRef(condition.operands).drop_front();
  subgroup.copy(values, loop.results, active & ~staying);
  subgroup.copy(values, loop.regions[1].arguments, staying);
  if (!staying)
    return subgroup.leave();
  if (staying != active)
    subgroup.frame().memoryVersion = ~uint64_t(0); // not the state that the iteration began in
  subgroup.startIteration(loop.regions[1], staying);
}

static void finishWhileIteration(Subgroup &subgroup, const Instruction &yield) {
  const Instruction &loop = *subgroup.frame().owner;
  Frame &frame = subgroup.frame();
  bool isUnchanged = true;
  for (uint64_t mask = frame.active; mask; mask &= mask - 1) {
    unsigned lane = llvm::countr_zero(mask);
    for (auto [from, to] : llvm::zip_equal(yield.operands, loop.regions[0].arguments))
      isUnchanged &= subgroup.at(from, lane) == subgroup.at(to, lane);
  }
  uint64_t version = subgroup.block.launch.memoryVersion;
  frame.isIdle = isUnchanged && frame.memoryVersion == version;
  frame.memoryVersion = version;
  subgroup.rememberPoison(yield.operands, loop.regions[0].arguments, frame.active);
  subgroup.copy(yield.operands, loop.regions[0].arguments, frame.active);
  subgroup.startIteration(loop.regions[0], frame.active);
  subgroup.pause();
}

//===----------------------------------------------------------------------===//
// Terminators
//===----------------------------------------------------------------------===//

static void runYield(Subgroup &subgroup, const Instruction &yield) {
  Operation *owner = subgroup.frame().owner->op;
  if (isa<scf::ForOp>(owner))
    return finishForIteration(subgroup, yield);
  if (isa<scf::WhileOp>(owner))
    return finishWhileIteration(subgroup, yield);
  finishOnce(subgroup, yield);
}

void addControlRules(RuleTable &table) {
  table.addControl<scf::IfOp>(runIf);
  table.addControl<scf::ForOp>(runFor);
  table.addControl<scf::WhileOp>(runWhile);
  table.addControl<scf::ConditionOp>(finishCondition);
  table.addControl<scf::YieldOp>(runYield);
  table.addControl<func::CallOp>(runCall);
  table.addControl<func::ReturnOp>(finishOnce);
  table.addControl<ReturnOp>(endKernel);
  table.addControl<YieldOp>(endCombiner);
}

} // namespace qd::interp
