//===- ControlFlow.cpp - kernels' ends and scf, on SPIR-V ----------------------------===//
//
// Each scf op becomes one structured construct; its results and loop-carried values are phis.
//
//===----------------------------------------------------------------------===//

#include "codegen/spirv/KernelLowering.h"

#include "codegen/LoopStep.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

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
  void enter(ArrayRef<uint32_t> control = {noHint}) {
    SmallVector<uint32_t> operands = {merge, latch};
    llvm::append_range(operands, control);
    b.emitVoid(Op::OpLoopMerge, operands);
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

/// Whether some lanes of a subgroup may leave the loop before others do.
static bool isLeftOneByOne(KernelLowering &l, Operation *loop) {
  auto isUniform = [&](Value value) { return l.getUniformity().isUniform(value, qd::Scope::subgroup); };
  if (auto whileOp = dyn_cast<scf::WhileOp>(loop))
    return !isUniform(whileOp.getConditionOp().getCondition());
  auto forOp = cast<scf::ForOp>(loop);
  return !isUniform(forOp.getLowerBound()) || !isUniform(forOp.getUpperBound()) || !isUniform(forOp.getStep());
}

/// Lanes that leave a loop one by one meet behind it, as its construct says. NVIDIA's driver (580) moves the place where
/// they do into a branch that follows and has subgroup ops, and those that go past that branch never meet: a barrier,
/// which orders no memory, keeps it. Only kernels in which lanes hear of each other need it.
static void meetBehind(KernelLowering &l, Operation *loop) {
  if (!l.hasConvergentOps() || !isLeftOneByOne(l, loop))
    return;
  l.b.require(Capability::GroupNonUniform);
  Id subgroup = l.getU32(unsigned(spv::Scope::Subgroup));
  l.b.emitVoid(Op::OpControlBarrier, {subgroup, subgroup, l.getU32(unsigned(MemorySemanticsMask::MaskNone))});
}

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

/// The loop control that says how often a loop is to be unrolled; before SPIR-V 1.4 there is no number in it.
static SmallVector<uint32_t> getLoopControl(scf::ForOp op, unsigned minorVersion) {
  std::optional<UnrollHint> hint = getUnrollHint(op);
  if (!hint)
    return {noHint};
  if (!hint->isFull && hint->count == 1)
    return {uint32_t(LoopControlMask::DontUnroll)};
  if (hint->isFull || minorVersion < 4)
    return {uint32_t(LoopControlMask::Unroll)};
  return {uint32_t(LoopControlMask::PartialCount), hint->count};
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
  loop.enter(getLoopControl(forOp, l.b.getMinorVersion()));

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
  meetBehind(l, op);
  for (auto [result, argument] : llvm::zip(forOp.getResults(), forOp.getRegionIterArgs()))
    l.set(result, l.get(argument));
  return success();
}

/// Whether lanes that have left the loop would compute the same value again: it comes from the loop's arguments and
/// from around it by pure ops. Loads, and ops that hear of other lanes, are none.
static bool isRepeatable(Value value, scf::WhileOp whileOp) {
  DenseMap<Operation *, bool> known;
  auto isKnown = [&](Value operand) {
    auto at = known.find(operand.getDefiningOp());
    return at == known.end() || at->second;
  };
  for (Operation &op : whileOp.getBeforeBody()->without_terminator())
    known[&op] = isPure(&op) && op.getNumRegions() == 0 && llvm::all_of(op.getOperands(), isKnown);
  return isKnown(value);
}

/// Phis for the first region's arguments open the loop.
static void startWhile(KernelLowering &l, Loop &loop, scf::WhileOp whileOp) {
  for (auto [argument, init] : llvm::zip(whileOp.getBeforeArguments(), whileOp.getInits()))
    l.set(argument, loop.addPhi(l.getType(argument.getType()), l.get(init)));
}

/// while (go on) { first region; go on = condition; results = its operands; if (condition) second region }
///
/// Lavapipe computes a loop's values on lanes that have left it too, and only phis keep theirs: results that such a
/// lane would get otherwise go around once more in phis of the header.
static LogicalResult lowerWhileWithKeptResults(KernelLowering &l, scf::WhileOp whileOp) {
  scf::ConditionOp condition = whileOp.getConditionOp();
  Loop loop(l.b);
  startWhile(l, loop, whileOp);
  for (Value result : whileOp.getResults()) {
    Id type = l.getType(result.getType());
    l.set(result, loop.addPhi(type, l.b.getNull(type)));
  }
  Id goesOn = loop.addPhi(l.b.getBoolType(), l.b.getBool(true));
  loop.enter();
  Id work = l.b.createId(), body = l.b.createId(), join = l.b.createId();
  l.b.emitVoid(Op::OpBranchConditional, {goesOn, work, loop.merge});

  l.b.startBlock(work);
  if (failed(l.lowerBlock(*whileOp.getBeforeBody())))
    return failure();
  Id workEnd = l.b.getBlock();
  SmallVector<Id> kept;
  for (auto [value, argument] : llvm::zip(condition.getArgs(), whileOp.getAfterArguments())) {
    kept.push_back(l.get(value));
    l.set(argument, kept.back());
  }
  kept.push_back(l.get(condition.getCondition()));
  l.b.emitVoid(Op::OpSelectionMerge, {join, noHint});
  l.b.emitVoid(Op::OpBranchConditional, {kept.back(), body, join});

  l.b.startBlock(body);
  if (failed(l.lowerBlock(*whileOp.getAfterBody())))
    return failure();
  Id bodyEnd = l.b.getBlock();
  SmallVector<Id> next;
  for (Value value : whileOp.getYieldOp().getOperands())
    next.push_back(l.get(value));
  l.b.emitVoid(Op::OpBranch, join);
  l.b.startBlock(join);
  for (auto [value, argument] : llvm::zip(next, whileOp.getBeforeArguments()))
    value = l.b.emitPhi(l.getType(argument.getType()), {{value, bodyEnd}, {l.get(argument), workEnd}});
  llvm::append_range(next, kept);

  loop.startLatch();
  for (auto [phi, value] : llvm::zip(loop.phis, next))
    l.b.setBackValue(phi, value);
  loop.leave();
  meetBehind(l, whileOp);
  return success();
}

static LogicalResult lowerWhile(KernelLowering &l, Operation *op, const OpRow &) {
  auto whileOp = cast<scf::WhileOp>(op);
  scf::ConditionOp condition = whileOp.getConditionOp();
  for (auto [value, result] : llvm::zip(condition.getArgs(), whileOp.getResults()))
    if (!result.use_empty() && !isRepeatable(value, whileOp))
      return lowerWhileWithKeptResults(l, whileOp);
  Loop loop(l.b);
  startWhile(l, loop, whileOp);
  loop.enter();
  if (failed(l.lowerBlock(*whileOp.getBeforeBody())))
    return failure();
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
  meetBehind(l, whileOp);
  return success();
}

//===----------------------------------------------------------------------===//
// Terminators
//===----------------------------------------------------------------------===//

/// What a terminator means is part of the op around it.
static LogicalResult lowerTerminator(KernelLowering &, Operation *, const OpRow &) { return success(); }

ArrayRef<OpRow> getControlFlowRows() {
  static const OpRow rows[] = {
      makeRow<ReturnOp>(lowerTerminator),        makeRow<scf::YieldOp>(lowerTerminator),
      makeRow<scf::ConditionOp>(lowerTerminator), makeRow<scf::IfOp>(lowerIf),
      makeRow<scf::ForOp>(lowerFor),             makeRow<scf::WhileOp>(lowerWhile),
  };
  return rows;
}

} // namespace qd::spirv
