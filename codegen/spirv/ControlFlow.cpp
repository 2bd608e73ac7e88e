//===- ControlFlow.cpp - kernels' ends and scf, on SPIR-V ----------------------------===//
//
// Each scf op becomes one structured construct; its results and loop-carried values are phis.
//
//===----------------------------------------------------------------------===//

#include "codegen/spirv/KernelLowering.h"

#include "codegen/LoopStep.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;
using namespace spv;

namespace qd::spirv {

static constexpr uint32_t noHint = 0;

//===----------------------------------------------------------------------===//
// scf.if
//===----------------------------------------------------------------------===//

static LogicalResult lowerIf(KernelLowering &l, Operation *op, const OpRow &) {
  auto ifOp = cast<scf::IfOp>(op);
  Block *elseBlock = ifOp.elseBlock();
  Id from = l.b.getBlock(), thenLabel = l.b.createId(), merge = l.b.createId();
  Id elseLabel = elseBlock ? l.b.createId() : merge;
  l.b.emitVoid(Op::OpSelectionMerge, {merge, noHint});
  l.b.emitVoid(Op::OpBranchConditional, {l.get(ifOp.getCondition()), thenLabel, elseLabel});

  l.b.startBlock(thenLabel);
  if (failed(l.lowerBlock(*ifOp.thenBlock())))
    return failure();
  Id thenEnd = l.b.getBlock(), elseEnd = from;
  l.b.emitVoid(Op::OpBranch, merge);
  if (elseBlock) {
    l.b.startBlock(elseLabel);
    if (failed(l.lowerBlock(*elseBlock)))
      return failure();
    elseEnd = l.b.getBlock();
    l.b.emitVoid(Op::OpBranch, merge);
  }

  l.b.startBlock(merge);
  if (!ifOp.getNumResults())
    return success();
  for (auto [result, ifTrue, ifFalse] :
       llvm::zip(ifOp.getResults(), ifOp.thenYield().getOperands(), ifOp.elseYield().getOperands()))
    l.set(result, l.b.emitPhi(l.getType(result.getType()), {{l.get(ifTrue), thenEnd}, {l.get(ifFalse), elseEnd}}));
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

namespace {
/// The blocks that both loops share. `start` opens the header, in which phis may follow; `enter` ends it.
struct Loop {
  Builder &b;
  Id before, header, first, latch, merge;
  SmallVector<LoopPhi> phis;

  explicit Loop(Builder &b)
      : b(b), before(b.getBlock()), header(b.createId()), first(b.createId()), latch(b.createId()),
        merge(b.createId()) {
    b.emitVoid(Op::OpBranch, header);
    b.startBlock(header);
  }
  Id addPhi(Id type, Id init) {
    phis.push_back(b.emitLoopPhi(type, init, before, latch));
    return phis.back().id;
  }
  void enter() {
    b.emitVoid(Op::OpLoopMerge, {merge, latch, noHint});
    b.emitVoid(Op::OpBranch, first);
    b.startBlock(first);
  }
  void startLatch() {
    b.emitVoid(Op::OpBranch, latch);
    b.startBlock(latch);
  }
  void leave() {
    b.emitVoid(Op::OpBranch, header);
    b.startBlock(merge);
  }
};
} // namespace

/// The loop variable's next value: past the upper bound it is the bound.
static Id advance(KernelLowering &l, scf::ForOp op, Id type, Id variable) {
  Id step = l.get(op.getStep()), upper = l.get(op.getUpperBound());
  Id next = l.emit(Op::OpIAdd, type, {variable, step});
  if (!mayStepWrap(op))
    return next;
  Id left = l.emit(Op::OpISub, type, {upper, variable});
  Id fits = l.emitBool(Op::OpUGreaterThan, {left, step});
  return l.emit(Op::OpSelect, type, {fits, next, upper});
}

static LogicalResult lowerFor(KernelLowering &l, Operation *op, const OpRow &) {
  auto forOp = cast<scf::ForOp>(op);
  Type indexType = forOp.getInductionVar().getType();
  Id index = l.getType(indexType);
  Loop loop(l.b);
  Id counter = loop.addPhi(index, l.get(forOp.getLowerBound()));
  l.set(forOp.getInductionVar(), counter);
  for (auto [argument, init] : llvm::zip(forOp.getRegionIterArgs(), forOp.getInitArgs()))
    l.set(argument, loop.addPhi(l.getType(argument.getType()), l.get(init)));
  loop.enter();

  Id body = l.b.createId();
  Op less = forOp.getUnsignedCmp() ? Op::OpULessThan : Op::OpSLessThan;
  Id goesOn = l.emitBool(less, {counter, l.get(forOp.getUpperBound())});
  l.b.emitVoid(Op::OpBranchConditional, {goesOn, body, loop.merge});
  l.b.startBlock(body);
  if (failed(l.lowerBlock(*forOp.getBody())))
    return failure();

  loop.startLatch();
  Id next = advance(l, forOp, index, counter);
  l.b.setBackValue(loop.phis.front(), next);
  for (auto [phi, value] : llvm::zip(llvm::drop_begin(loop.phis), forOp.getYieldedValues()))
    l.b.setBackValue(phi, l.get(value));
  loop.leave();
  for (auto [result, argument] : llvm::zip(forOp.getResults(), forOp.getRegionIterArgs()))
    l.set(result, l.get(argument));
  return success();
}

static LogicalResult lowerWhile(KernelLowering &l, Operation *op, const OpRow &) {
  auto whileOp = cast<scf::WhileOp>(op);
  Loop loop(l.b);
  for (auto [argument, init] : llvm::zip(whileOp.getBeforeArguments(), whileOp.getInits()))
    l.set(argument, loop.addPhi(l.getType(argument.getType()), l.get(init)));
  loop.enter();
  if (failed(l.lowerBlock(*whileOp.getBeforeBody())))
    return failure();
  scf::ConditionOp condition = whileOp.getConditionOp();
  for (auto [value, argument, result] :
       llvm::zip(condition.getArgs(), whileOp.getAfterArguments(), whileOp.getResults())) {
    l.set(argument, l.get(value));
    l.set(result, l.get(value));
  }

  Id body = l.b.createId();
  l.b.emitVoid(Op::OpBranchConditional, {l.get(condition.getCondition()), body, loop.merge});
  l.b.startBlock(body);
  if (failed(l.lowerBlock(*whileOp.getAfterBody())))
    return failure();
  loop.startLatch();
  for (auto [phi, value] : llvm::zip(loop.phis, whileOp.getYieldOp().getOperands()))
    l.b.setBackValue(phi, l.get(value));
  loop.leave();
  return success();
}

//===----------------------------------------------------------------------===//
// Terminators and poison
//===----------------------------------------------------------------------===//

/// What a terminator means is part of the op around it.
static LogicalResult lowerTerminator(KernelLowering &, Operation *, const OpRow &) { return success(); }

static LogicalResult lowerPoison(KernelLowering &l, Operation *op, const OpRow &) {
  return l.setResult(op, l.b.getNull(l.getType(op->getResult(0).getType())));
}

ArrayRef<OpRow> getControlFlowRows() {
  static const OpRow rows[] = {
      makeRow<ReturnOp>(lowerTerminator),        makeRow<scf::YieldOp>(lowerTerminator),
      makeRow<scf::ConditionOp>(lowerTerminator), makeRow<scf::IfOp>(lowerIf),
      makeRow<scf::ForOp>(lowerFor),             makeRow<scf::WhileOp>(lowerWhile),
      makeRow<ub::PoisonOp>(lowerPoison),
  };
  return rows;
}

} // namespace qd::spirv
