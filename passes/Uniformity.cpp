//===- Uniformity.cpp - which values are the same in all threads -----------------------===//
//
// Purpose: the analysis' fixpoint over control flow, and its answers; what single ops mean is in UniformityOps.cpp.
//
// All values start out uniform and only ever rise, at most four times each, so the work is linear in the
// kernel's size. A value that threads compute under divergent control is judged among the threads that are there;
// where such values leave the region, the condition joins in.
//
//===----------------------------------------------------------------------===//

#include "passes/Uniformity.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace qd {

UniformityAnalysis::UniformityAnalysis(KernelOp kernel, unsigned subgroupSize, unsigned groupLanes)
    : subgroupSize(subgroupSize), groupLanes(groupLanes), blockThreads(kernel.getNumThreads()),
      blockDims{kernel.getBlockDim(0), kernel.getBlockDim(1), kernel.getBlockDim(2)} {
  // A launch passes the same arguments to all threads.
  for (BlockArgument argument : kernel.getBodyBlock().getArguments())
    states.try_emplace(argument);
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == kernel)
      return;
    for (Value result : op->getResults())
      states.try_emplace(result);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          states.try_emplace(argument);
    hasCombiners |= isa<QDDialect>(op->getDialect()) && op->getNumRegions() && !op->getRegion(0).empty();
    worklist.insert(op);
  });
  // The list is a stack: in program order most operands are settled when an op is visited.
  SmallVector<Operation *> inOrder = worklist.takeVector();
  worklist.insert(inOrder.rbegin(), inOrder.rend());
  while (!worklist.empty())
    visit(worklist.pop_back_val());
}

UniformityAnalysis::State UniformityAnalysis::get(Value value) const {
  auto found = states.find(value);
  return found == states.end() ? varying : found->second;
}

Divergence UniformityAnalysis::getDivergence(Value value, Scope scope) const { return get(value)[scope]; }

//===----------------------------------------------------------------------===//
// Fixpoint
//===----------------------------------------------------------------------===//

void UniformityAnalysis::enqueueUsers(Value value) {
  for (Operation *user : value.getUsers()) {
    // What a terminator passes on is its parent's to join.
    bool isTerminator = user->hasTrait<OpTrait::IsTerminator>() && user->getParentOp() != nullptr;
    worklist.insert(isTerminator ? user->getParentOp() : user);
    // A loop looks through the sum that is its bound.
    if (isa<arith::AddIOp>(user))
      for (Operation *loop : user->getUsers())
        if (isa<scf::ForOp>(loop))
          worklist.insert(loop);
    // What a combine region captures is an operand of its op.
    for (Operation *parent = hasCombiners ? user->getParentOp() : nullptr; parent; parent = parent->getParentOp())
      if (parent->getNumResults() && isa<QDDialect>(parent->getDialect()))
        worklist.insert(parent);
  }
}

void UniformityAnalysis::raise(Value value, State state) {
  if (blockThreads == 1)
    return;
  // What all threads of a block share, those of a subgroup share as well; a block of one subgroup is the subgroup.
  state.block = std::max(state.block, state.subgroup);
  if (blockThreads <= (groupLanes ? groupLanes : getSmallestSubgroup()))
    state.block = state.subgroup;
  State &current = states[value];
  State joined = current | state;
  if (joined.subgroup == current.subgroup && joined.block == current.block)
    return;
  current = joined;
  enqueueUsers(value);
}

void UniformityAnalysis::visit(Operation *op) {
  if (isa<scf::IfOp>(op))
    return visitIf(op);
  if (isa<scf::ForOp>(op))
    return visitFor(op);
  if (isa<scf::WhileOp>(op))
    return visitWhile(op);
  if (op->getNumRegions() && isa<QDDialect>(op->getDialect()))
    return visitCombine(op);
  if (op->getNumRegions()) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          raise(argument, varying);
    for (Value result : op->getResults())
      raise(result, varying);
    return;
  }
  for (OpResult result : op->getResults())
    raise(result, getResultState(result));
}

void UniformityAnalysis::visitIf(Operation *op) {
  auto ifOp = cast<scf::IfOp>(op);
  if (!ifOp.getNumResults())
    return;
  State condition = get(ifOp.getCondition());
  for (auto [result, fromThen, fromElse] :
       llvm::zip_equal(ifOp.getResults(), ifOp.thenYield().getResults(), ifOp.elseYield().getResults()))
    raise(result, fromThen == fromElse ? get(fromThen) : condition | get(fromThen) | get(fromElse));
}

/// Lanes that run a loop a different number of times leave it with values of different iterations.
void UniformityAnalysis::visitFor(Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  raise(loop.getInductionVar(), get(loop.getLowerBound()) | get(loop.getStep()));
  State trip = getTripState(loop);
  for (auto [argument, init, yielded, result] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs(), loop.getYieldedValues(), loop.getResults())) {
    raise(argument, get(init) | get(yielded));
    raise(result, get(argument) | trip);
  }
}

void UniformityAnalysis::visitWhile(Operation *op) {
  auto loop = cast<scf::WhileOp>(op);
  scf::ConditionOp condition = loop.getConditionOp();
  for (auto [argument, init, yielded] :
       llvm::zip_equal(loop.getBeforeArguments(), loop.getInits(), loop.getYieldOp().getResults()))
    raise(argument, get(init) | get(yielded));
  for (auto [argument, passed, result] :
       llvm::zip_equal(loop.getAfterArguments(), condition.getArgs(), loop.getResults())) {
    raise(argument, get(passed));
    raise(result, get(passed) | get(condition.getCondition()));
  }
}

/// The region combines the values of other lanes, for each lane those of different ones.
void UniformityAnalysis::visitCombine(Operation *op) {
  for (BlockArgument argument : op->getRegion(0).getArguments())
    raise(argument, varying);
  for (OpResult result : op->getResults())
    raise(result, getResultState(result));
}

/// `for %i = %lo to %lo + %n`: lanes may start anywhere and still go round equally often, if the sum cannot wrap.
UniformityAnalysis::State UniformityAnalysis::getTripState(Operation *op) const {
  auto loop = cast<scf::ForOp>(op);
  State step = get(loop.getStep());
  auto sum = loop.getUpperBound().getDefiningOp<arith::AddIOp>();
  if (sum && bitEnumContainsAll(sum.getOverflowFlags(), arith::IntegerOverflowFlags::nsw)) {
    if (sum.getLhs() == loop.getLowerBound())
      return step | get(sum.getRhs());
    if (sum.getRhs() == loop.getLowerBound())
      return step | get(sum.getLhs());
  }
  return step | get(loop.getLowerBound()) | get(loop.getUpperBound());
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

/// The divergence of whether a thread runs a region of `branch`; `condition` is the value to blame for it.
UniformityAnalysis::State UniformityAnalysis::getConditionState(Operation *branch, Value &condition,
                                                                Scope scope) const {
  if (auto ifOp = dyn_cast<scf::IfOp>(branch)) {
    condition = ifOp.getCondition();
    return get(condition);
  }
  if (auto loop = dyn_cast<scf::WhileOp>(branch)) {
    condition = loop.getConditionOp().getCondition();
    return get(condition);
  }
  if (auto loop = dyn_cast<scf::ForOp>(branch)) {
    condition = loop.getUpperBound();
    for (Value bound : {loop.getLowerBound(), loop.getStep()})
      if (get(bound)[scope] > get(condition)[scope])
        condition = bound;
    return getTripState(loop);
  }
  return varying;
}

UniformityAnalysis::Control UniformityAnalysis::getControl(Operation *op, Scope scope) const {
  Control worst;
  for (Operation *branch = op->getParentOp(); branch; branch = branch->getParentOp()) {
    if (branch->hasTrait<OpTrait::IsIsolatedFromAbove>())
      break;
    Value condition;
    State state = getConditionState(branch, condition, scope);
    if (state[scope] > worst.divergence)
      worst = {state[scope], branch, condition};
  }
  return worst;
}

llvm::SetVector<Value> getCaptured(Operation *op) {
  llvm::SetVector<Value> captured;
  if (op->getNumRegions() && isa<QDDialect>(op->getDialect()))
    getUsedValuesDefinedAbove(op->getRegions(), captured);
  return captured;
}

//===----------------------------------------------------------------------===//
// Blame
//===----------------------------------------------------------------------===//

/// The values that `value` is computed or chosen from.
static SmallVector<Value> getInfluences(Value value) {
  SmallVector<Value> influences;
  auto addWhile = [&](scf::WhileOp loop, unsigned i) {
    influences.push_back(loop.getConditionOp().getArgs()[i]);
    influences.push_back(loop.getConditionOp().getCondition());
  };
  auto addFor = [&](scf::ForOp loop) {
    influences.append({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
  };
  if (auto result = dyn_cast<OpResult>(value)) {
    Operation *op = result.getOwner();
    unsigned i = result.getResultNumber();
    if (auto ifOp = dyn_cast<scf::IfOp>(op))
      influences = {ifOp.getCondition(), ifOp.thenYield().getOperand(i), ifOp.elseYield().getOperand(i)};
    else if (auto loop = dyn_cast<scf::WhileOp>(op))
      addWhile(loop, i);
    else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      influences = {loop.getInitArgs()[i], loop.getYieldedValues()[i]};
      addFor(loop);
    } else {
      influences.append(op->operand_begin(), op->operand_end());
      llvm::append_range(influences, getCaptured(op));
    }
    return influences;
  }
  auto argument = cast<BlockArgument>(value);
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(parent)) {
    if (value == loop.getInductionVar())
      addFor(loop);
    else
      influences = {loop.getInitArgs()[argument.getArgNumber() - 1],
                    loop.getYieldedValues()[argument.getArgNumber() - 1]};
  } else if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
    if (argument.getOwner() == loop.getBeforeBody())
      influences = {loop.getInits()[argument.getArgNumber()], loop.getYieldOp().getOperand(argument.getArgNumber())};
    else
      addWhile(loop, argument.getArgNumber());
  }
  return influences;
}

Operation *UniformityAnalysis::findBlockSource(Operation *op) const {
  llvm::SetVector<Value> pending;
  for (Operation *branch = op->getParentOp(); branch && !branch->hasTrait<OpTrait::IsIsolatedFromAbove>();
       branch = branch->getParentOp()) {
    if (auto ifOp = dyn_cast<scf::IfOp>(branch))
      pending.insert(ifOp.getCondition());
    else if (auto loop = dyn_cast<scf::WhileOp>(branch))
      pending.insert(loop.getConditionOp().getCondition());
    else if (auto loop = dyn_cast<scf::ForOp>(branch))
      for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
        pending.insert(bound);
  }
  for (size_t next = 0; next < pending.size(); ++next) {
    Operation *source = pending[next].getDefiningOp();
    if (isa_and_nonnull<BlockIdOp, GlobalThreadIdOp>(source))
      return source;
    // What stands in memory, nobody knows.
    if (isa_and_nonnull<LoadOp, AtomicLoadOp, AtomicRMWOp, AtomicCASOp>(source))
      continue;
    for (Value influence : getInfluences(pending[next]))
      pending.insert(influence);
  }
  return nullptr;
}

Operation *UniformityAnalysis::findSource(Value value, Scope scope) const {
  Divergence wanted = getDivergence(value, scope);
  llvm::SetVector<Value> pending;
  pending.insert(value);
  for (size_t next = 0; next < pending.size(); ++next) {
    Value current = pending[next];
    bool hasCause = false;
    for (Value influence : getInfluences(current)) {
      if (getDivergence(influence, scope) != wanted)
        continue;
      hasCause = true;
      pending.insert(influence);
    }
    if (!hasCause)
      return current.getDefiningOp();
  }
  return nullptr;
}

} // namespace qd
