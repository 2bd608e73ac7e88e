//===- ControlFlow.cpp - scf ops as branches and masks ---------------------------------------------===//
//
// A condition that all lanes share is a branch. Otherwise each arm runs under the mask of its lanes, skipped where no
// lane takes it; a loop runs until no lane is left, and lanes that have left keep the values they left with.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/KernelEmitter.h"

#include "codegen/LoopHint.h"
#include "codegen/lower/Elementwise.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace qd {

//===----------------------------------------------------------------------===//
// scf.if
//===----------------------------------------------------------------------===//

LogicalResult KernelEmitter::emitIf(scf::IfOp op) {
  return analysis.isUniform(op.getCondition()) ? emitUniformIf(op) : emitDivergentIf(op);
}

/// Emits one arm under `armMask` and gives its yields in the representation of `results`.
LogicalResult KernelEmitter::emitArm(Block *block, llvm::Value *armMask, ValueRange results,
                                     SmallVectorImpl<llvm::Value *> &yielded) {
  llvm::Value *outer = mask;
  mask = armMask;
  LogicalResult done = emitBlock(*block);
  mask = outer;
  if (failed(done))
    return failure();
  for (auto [result, value] : llvm::zip_equal(results, block->getTerminator()->getOperands()))
    yielded.push_back(convertTo(value, result));
  return success();
}

LogicalResult KernelEmitter::emitUniformIf(scf::IfOp op) {
  llvm::Function *function = b.GetInsertBlock()->getParent();
  auto *thenStart = llvm::BasicBlock::Create(context, "then", function);
  auto *elseStart = llvm::BasicBlock::Create(context, "else", function);
  auto *merge = llvm::BasicBlock::Create(context, "endif", function);
  b.CreateCondBr(getBase(op.getCondition()), thenStart, elseStart);

  SmallVector<llvm::Value *> thenValues, elseValues;
  b.SetInsertPoint(thenStart);
  if (failed(emitArm(op.thenBlock(), mask, op.getResults(), thenValues)))
    return failure();
  llvm::BasicBlock *thenEnd = b.GetInsertBlock();
  b.CreateBr(merge);
  b.SetInsertPoint(elseStart);
  if (op.elseBlock() && failed(emitArm(op.elseBlock(), mask, op.getResults(), elseValues)))
    return failure();
  llvm::BasicBlock *elseEnd = b.GetInsertBlock();
  b.CreateBr(merge);

  b.SetInsertPoint(merge);
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    llvm::PHINode *phi = b.CreatePHI(thenValues[i]->getType(), 2);
    phi->addIncoming(thenValues[i], thenEnd);
    phi->addIncoming(elseValues[i], elseEnd);
    define(result, phi);
  }
  return success();
}

/// Whether running `block` with no lane active is harmless and cheaper than a branch round it.
bool KernelEmitter::isCheap(Block &block) {
  constexpr unsigned maxOps = 16, maxAccesses = 4;
  unsigned ops = 0, accesses = 0;
  for (Operation &op : block.without_terminator()) {
    if (isa<LoadOp, StoreOp>(op)) {
      if (op.hasAttr("is_volatile"))
        return false;
      OperandRange indices = isa<LoadOp>(op) ? cast<LoadOp>(op).getIndices() : cast<StoreOp>(op).getIndices();
      // One subscript of unit stride: a masked access, which touches nothing under an empty mask.
      if (indices.size() != 1 || !isContiguous(analysis.getShape(indices.front()).offsets) || ++accesses > maxAccesses)
        return false;
    } else if (!isElementwise(op.getName()) ||
               isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp,
                   arith::CeilDivSIOp, arith::CeilDivUIOp, arith::RemFOp>(op)) {
      return false;
    }
    if (!isa<arith::ConstantOp>(op) && ++ops > maxOps)
      return false;
  }
  return true;
}

/// The store that ends a block, if nothing behind it touches memory.
static StoreOp getLastStore(Block &block) {
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (auto store = dyn_cast<StoreOp>(op))
      return store.getIsVolatile() || store.getPredicate() ? StoreOp() : store;
    if (!isElementwise(op.getName()))
      return {};
  }
  return {};
}

/// Both arms' last stores, where they are to the same element.
static std::pair<StoreOp, StoreOp> getCommonStore(scf::IfOp op) {
  if (!op.elseBlock())
    return {};
  StoreOp first = getLastStore(*op.thenBlock()), second = getLastStore(*op.elseBlock());
  bool same = first && second && first.getArray() == second.getArray() && first.getIndices() == second.getIndices() &&
              first.getStaticIndices() == second.getStaticIndices();
  return same ? std::pair(first, second) : std::pair<StoreOp, StoreOp>();
}

LogicalResult KernelEmitter::emitDivergentIf(scf::IfOp op) {
  llvm::Value *condition = freeze(getVector(op.getCondition()));
  bool flatten = isCheap(*op.thenBlock()) && (!op.elseBlock() || isCheap(*op.elseBlock()));
  // One store of what the lanes choose, instead of one for each arm.
  auto [thenStore, elseStore] = flatten ? getCommonStore(op) : std::pair<StoreOp, StoreOp>();
  if (thenStore) {
    postponed.insert(thenStore);
    postponed.insert(elseStore);
  }

  // An arm's results are poison where it is skipped: then no lane selects them.
  auto arm = [&](Block *block, llvm::Value *armMask, SmallVectorImpl<llvm::Value *> &yielded) -> LogicalResult {
    std::optional<uint64_t> known = constantBits(armMask);
    if (known && !*known) {
      for (Value result : op.getResults())
        yielded.push_back(llvm::PoisonValue::get(representation(result)));
      return success();
    }
    if (flatten || known)
      return emitArm(block, known && llvm::popcount(*known) == int(lanes) ? nullptr : armMask, op.getResults(), yielded);
    llvm::Function *function = b.GetInsertBlock()->getParent();
    auto *start = llvm::BasicBlock::Create(context, "some", function);
    auto *merge = llvm::BasicBlock::Create(context, "skip", function);
    llvm::BasicBlock *before = b.GetInsertBlock();
    b.CreateCondBr(anyLane(armMask), start, merge);
    b.SetInsertPoint(start);
    if (failed(emitArm(block, armMask, op.getResults(), yielded)))
      return failure();
    llvm::BasicBlock *end = b.GetInsertBlock();
    b.CreateBr(merge);
    b.SetInsertPoint(merge);
    for (auto [result, value] : llvm::zip_equal(op.getResults(), yielded)) {
      if (!analysis.getShape(result).isVarying())
        continue;
      llvm::PHINode *phi = b.CreatePHI(value->getType(), 2);
      phi->addIncoming(value, end);
      phi->addIncoming(llvm::PoisonValue::get(value->getType()), before);
      value = phi;
    }
    return success();
  };
  SmallVector<llvm::Value *> thenValues, elseValues;
  if (failed(arm(op.thenBlock(), both(mask, condition), thenValues)))
    return failure();
  if (op.elseBlock() && failed(arm(op.elseBlock(), both(mask, b.CreateNot(condition)), elseValues)))
    return failure();
  if (thenStore) {
    postponed.erase(thenStore);
    postponed.erase(elseStore);
    // Which of the arms was skipped, if one was, is known: its value is not there.
    auto valueOf = [&](StoreOp store) {
      Value value = store.getValue();
      return values.contains(value) ? getVector(value) : llvm::PoisonValue::get(vectorOf(scalarType(value.getType())));
    };
    storeValue(thenStore, b.CreateSelect(condition, valueOf(thenStore), valueOf(elseStore)));
  }
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    define(result, analysis.getShape(result).isVarying()
                       ? b.CreateSelect(condition, thenValues[i], elseValues[i])
                       : getBase(op.thenYield().getOperand(i))); // the same value on both sides, from before the op
  return success();
}

//===----------------------------------------------------------------------===//
// scf.for
//===----------------------------------------------------------------------===//

LogicalResult KernelEmitter::emitFor(scf::ForOp op) {
  return analysis.isDivergent(op) ? emitDivergentFor(op) : emitUniformFor(op);
}

namespace {
/// The loop's arithmetic on scalars or vectors. A step past the upper bound must not wrap round to below it, and a
/// step of 0, which means nothing, must not hang.
struct Counter {
  llvm::IRBuilder<> &b;
  scf::ForOp op;
  llvm::Value *upper, *step;

  llvm::Value *enters(llvm::Value *lower) {
    return op.getUnsignedCmp() ? b.CreateICmpULT(lower, upper) : b.CreateICmpSLT(lower, upper);
  }
  bool isUnitStep() { return matchPattern(op.getStep(), m_One()); }
  llvm::Value *next(llvm::Value *value) {
    bool simple = isUnitStep();
    return b.CreateAdd(value, step, "", simple && op.getUnsignedCmp(), simple && !op.getUnsignedCmp());
  }
  /// `value` is below the upper bound, so the distance between them is exact as an unsigned number.
  llvm::Value *goesOn(llvm::Value *value, llvm::Value *next) {
    return isUnitStep() ? enters(next) : b.CreateICmpUGT(b.CreateSub(upper, value), step);
  }
};
} // namespace

/// What holds barriers, once for the block. What its parts yield is in slots.
LogicalResult KernelEmitter::emitEnteredIf(scf::IfOp op) {
  llvm::Value *condition = entering.front();
  if (auto *constant = dyn_cast<llvm::ConstantInt>(condition)) {
    Block *taken = constant->isOne() ? op.thenBlock() : op.elseBlock();
    return taken ? emitSteps(*taken) : success();
  }
  llvm::Function *function = b.GetInsertBlock()->getParent();
  auto *thenStart = llvm::BasicBlock::Create(context, "then", function);
  auto *elseStart = llvm::BasicBlock::Create(context, "else", function);
  auto *merge = llvm::BasicBlock::Create(context, "endif", function);
  b.CreateCondBr(condition, thenStart, elseStart);
  for (auto [start, block] : {std::pair(thenStart, op.thenBlock()), std::pair(elseStart, op.elseBlock())}) {
    b.SetInsertPoint(start);
    if (block && failed(emitSteps(*block)))
      return failure();
    b.CreateBr(merge);
  }
  b.SetInsertPoint(merge);
  return success();
}

static llvm::Value *atLeastOne(llvm::IRBuilder<> &b, llvm::Value *step) {
  llvm::Value *one = llvm::ConstantInt::get(step->getType(), 1);
  if (auto *constant = dyn_cast<llvm::ConstantInt>(step))
    return constant->isZero() ? one : step;
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, step, one);
}

LogicalResult KernelEmitter::emitUniformFor(scf::ForOp op) {
  Counter counter{b, op, getBase(op.getUpperBound()), atLeastOne(b, getBase(op.getStep()))};
  llvm::Value *lower = getBase(op.getLowerBound());
  SmallVector<llvm::Value *> inits;
  for (auto [init, argument] : llvm::zip_equal(op.getInits(), op.getRegionIterArgs()))
    inits.push_back(convertTo(init, argument));

  llvm::Function *function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock *before = b.GetInsertBlock();
  auto *body = llvm::BasicBlock::Create(context, "for", function);
  auto *after = llvm::BasicBlock::Create(context, "for.end", function);
  b.CreateCondBr(counter.enters(lower), body, after);

  b.SetInsertPoint(body);
  llvm::PHINode *variable = b.CreatePHI(lower->getType(), 2);
  variable->addIncoming(lower, before);
  define(op.getInductionVar(), variable);
  SmallVector<llvm::PHINode *> carried;
  for (auto [init, argument] : llvm::zip_equal(inits, op.getRegionIterArgs())) {
    carried.push_back(b.CreatePHI(init->getType(), 2));
    carried.back()->addIncoming(init, before);
    define(argument, carried.back());
  }
  SmallVector<llvm::Value *> nexts;
  if (failed(emitArm(op.getBody(), mask, op.getRegionIterArgs(), nexts)))
    return failure();
  llvm::BasicBlock *end = b.GetInsertBlock();
  llvm::Value *next = counter.next(variable);
  variable->addIncoming(next, end);
  for (auto [phi, value] : llvm::zip_equal(carried, nexts))
    phi->addIncoming(value, end);
  setLoopHint(b.CreateCondBr(counter.goesOn(variable, next), body, after), op);

  b.SetInsertPoint(after);
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    llvm::PHINode *phi = b.CreatePHI(inits[i]->getType(), 2);
    phi->addIncoming(inits[i], before);
    phi->addIncoming(nexts[i], end);
    define(result, phi);
  }
  return success();
}

/// As emitEnteredIf, with what the loop carries in slots.
LogicalResult KernelEmitter::emitEnteredFor(scf::ForOp op) {
  Counter counter{b, op, entering[1], atLeastOne(b, entering[2])};
  llvm::Value *lower = entering[0];
  auto isTrue = [](llvm::Value *value) { return cast<llvm::ConstantInt>(value)->isOne(); };
  if (unroll.loops && llvm::all_of(entering, [](llvm::Value *bound) { return isa<llvm::ConstantInt>(bound); })) {
    for (bool goesOn = isTrue(counter.enters(lower)); goesOn;) {
      ofBlock[op.getInductionVar()] = {lower, nullptr};
      if (failed(emitSteps(*op.getBody())))
        return failure();
      llvm::Value *next = counter.next(lower);
      goesOn = isTrue(counter.goesOn(lower, next));
      lower = next;
    }
    ofBlock.erase(op.getInductionVar());
    return success();
  }
  llvm::Function *function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock *before = b.GetInsertBlock();
  auto *body = llvm::BasicBlock::Create(context, "for", function);
  auto *after = llvm::BasicBlock::Create(context, "for.end", function);
  b.CreateCondBr(counter.enters(lower), body, after);
  b.SetInsertPoint(body);
  llvm::PHINode *variable = b.CreatePHI(lower->getType(), 2);
  variable->addIncoming(lower, before);
  ofBlock[op.getInductionVar()] = {variable, nullptr};
  if (failed(emitSteps(*op.getBody())))
    return failure();
  ofBlock.erase(op.getInductionVar());
  llvm::Value *next = counter.next(variable);
  variable->addIncoming(next, b.GetInsertBlock());
  setLoopHint(b.CreateCondBr(counter.goesOn(variable, next), body, after), op);
  b.SetInsertPoint(after);
  return success();
}

/// A loop that lanes leave one after the other: what it hands from round to round, and what each lane leaves with.
struct KernelEmitter::MaskedLoop {
  MaskedLoop(KernelEmitter &e, scf::ForOp op) : e(e), op(op) {
    for (auto [init, argument] : llvm::zip_equal(op.getInits(), op.getRegionIterArgs())) {
      inits.push_back(e.convertTo(init, argument));
      results.push_back(e.getVector(init));
    }
  }

  /// Goes on in the body, where `enters` holds.
  void enter(llvm::Value *enters) {
    before = e.b.GetInsertBlock();
    body = llvm::BasicBlock::Create(e.context, "for", before->getParent());
    after = llvm::BasicBlock::Create(e.context, "for.end", before->getParent());
    e.b.CreateCondBr(enters, body, after);
    e.b.SetInsertPoint(body);
  }

  llvm::PHINode *phiOf(llvm::Value *init) {
    llvm::PHINode *phi = e.b.CreatePHI(init->getType(), 2);
    phi->addIncoming(init, before);
    return phi;
  }

  /// What a lane leaves with is kept beside a value that is a scalar inside the loop; a vector serves as both.
  void carry() {
    for (auto [i, argument] : llvm::enumerate(op.getRegionIterArgs())) {
      carried.push_back(phiOf(inits[i]));
      kept.push_back(e.analysis.getShape(argument).isVarying() ? carried.back() : phiOf(results[i]));
      e.define(argument, carried.back());
    }
  }

  /// The body, for the lanes that are active.
  LogicalResult emitBody(llvm::Value *active) {
    llvm::Value *outer = e.mask;
    e.mask = active;
    LogicalResult done = e.emitBlock(*op.getBody());
    e.mask = outer;
    if (failed(done))
      return failure();
    auto yield = cast<scf::YieldOp>(op.getBody()->getTerminator());
    for (auto [i, value] : llvm::enumerate(yield.getOperands())) {
      llvm::Value *next = e.b.CreateSelect(active, e.getVector(value), kept[i]);
      nextResults.push_back(next);
      llvm::Value *inside = kept[i] == carried[i] ? next : e.getBase(value);
      carried[i]->addIncoming(inside, e.b.GetInsertBlock());
      if (kept[i] != carried[i])
        kept[i]->addIncoming(next, e.b.GetInsertBlock());
    }
    return success();
  }

  /// Another round where `goesOn` holds; goes on behind the loop.
  void leave(llvm::Value *goesOn) {
    llvm::BasicBlock *end = e.b.GetInsertBlock();
    setLoopHint(e.b.CreateCondBr(goesOn, body, after), op);
    e.b.SetInsertPoint(after);
    for (auto [i, result] : llvm::enumerate(op.getResults())) {
      llvm::PHINode *phi = phiOf(results[i]);
      phi->addIncoming(nextResults[i], end);
      e.define(result, phi);
    }
  }

  KernelEmitter &e;
  scf::ForOp op;
  SmallVector<llvm::Value *> inits, results, nextResults;
  llvm::BasicBlock *before = nullptr, *body = nullptr, *after = nullptr;
  SmallVector<llvm::PHINode *> carried, kept;
};

/// Lanes that start together leave by their bounds alone: the loop turns until the largest one, and a lane's mask is a
/// comparison that nothing has to wait for.
LogicalResult KernelEmitter::emitCountedFor(scf::ForOp op) {
  bool isUnsigned = op.getUnsignedCmp();
  llvm::Value *lower = getBase(op.getLowerBound()), *bounds = getVector(op.getUpperBound());
  unsigned width = lower->getType()->getIntegerBitWidth();
  if (mask) {
    llvm::APInt least = isUnsigned ? llvm::APInt::getZero(width) : llvm::APInt::getSignedMinValue(width);
    bounds = b.CreateSelect(mask, bounds, llvm::ConstantInt::get(bounds->getType(), least));
  }
  bounds = freeze(bounds);
  llvm::Value *last = b.CreateIntMaxReduce(bounds, !isUnsigned);
  Counter counter{b, op, last, atLeastOne(b, getBase(op.getStep()))};
  MaskedLoop loop(*this, op);
  loop.enter(counter.enters(lower));
  llvm::PHINode *variable = loop.phiOf(lower);
  define(op.getInductionVar(), variable);
  loop.carry();
  llvm::Value *active = isUnsigned ? b.CreateICmpULT(splat(variable), bounds) : b.CreateICmpSLT(splat(variable), bounds);
  if (failed(loop.emitBody(active)))
    return failure();
  llvm::Value *next = counter.next(variable);
  variable->addIncoming(next, b.GetInsertBlock());
  loop.leave(counter.goesOn(variable, next));
  return success();
}

LogicalResult KernelEmitter::emitDivergentFor(scf::ForOp op) {
  if (analysis.isUniform(op.getLowerBound()) && analysis.isUniform(op.getStep()))
    return emitCountedFor(op);
  bool variesInside = analysis.getShape(op.getInductionVar()).isVarying();
  Counter counter{b, op, getVector(op.getUpperBound()), atLeastOne(b, getVector(op.getStep()))};
  llvm::Value *lower = convertTo(op.getLowerBound(), op.getInductionVar());
  llvm::Value *step = variesInside ? counter.step : atLeastOne(b, getBase(op.getStep()));
  llvm::Value *entering = both(mask, freeze(counter.enters(getVector(op.getLowerBound()))));
  MaskedLoop loop(*this, op);
  loop.enter(anyLane(entering));
  llvm::PHINode *active = loop.phiOf(entering), *variable = loop.phiOf(lower);
  define(op.getInductionVar(), variable);
  loop.carry();
  llvm::Value *vectorVariable = getVector(op.getInductionVar());
  if (failed(loop.emitBody(active)))
    return failure();
  llvm::Value *goesOn = counter.goesOn(vectorVariable, counter.next(vectorVariable));
  llvm::Value *staying = both(active, freeze(goesOn));
  variable->addIncoming(b.CreateAdd(variable, step), b.GetInsertBlock());
  active->addIncoming(staying, b.GetInsertBlock());
  loop.leave(anyLane(staying));
  return success();
}

//===----------------------------------------------------------------------===//
// scf.while
//===----------------------------------------------------------------------===//

LogicalResult KernelEmitter::emitWhile(scf::WhileOp op) {
  return analysis.isUniform(op.getConditionOp().getCondition()) ? emitUniformWhile(op) : emitDivergentWhile(op);
}

/// Between two rounds of a loop that may wait, the block's other subgroups have their turn.
void KernelEmitter::emitTurn(scf::WhileOp op) {
  if (!(waits || asserts) || !mayWait(op))
    return;
  if (asserts)
    b.CreateCall(getCallee(cpu::checkAsserts, {b.getPtrTy()}), {getReports()});
  if (waits)
    emitSuspend(/*final=*/false);
}

LogicalResult KernelEmitter::emitUniformWhile(scf::WhileOp op) {
  scf::ConditionOp condition = op.getConditionOp();
  llvm::Function *function = b.GetInsertBlock()->getParent();
  auto *head = llvm::BasicBlock::Create(context, "while", function);
  auto *body = llvm::BasicBlock::Create(context, "do", function);
  auto *after = llvm::BasicBlock::Create(context, "while.end", function);
  SmallVector<llvm::Value *> inits;
  for (auto [init, argument] : llvm::zip_equal(op.getInits(), op.getBeforeArguments()))
    inits.push_back(convertTo(init, argument));
  llvm::BasicBlock *before = b.GetInsertBlock();
  b.CreateBr(head);

  b.SetInsertPoint(head);
  SmallVector<llvm::PHINode *> carried;
  for (auto [init, argument] : llvm::zip_equal(inits, op.getBeforeArguments())) {
    carried.push_back(b.CreatePHI(init->getType(), 2));
    carried.back()->addIncoming(init, before);
    define(argument, carried.back());
  }
  if (failed(emitBlock(*op.getBeforeBody())))
    return failure();
  for (auto [argument, value] : llvm::zip_equal(op.getAfterArguments(), condition.getArgs()))
    define(argument, convertTo(value, argument));
  for (auto [result, value] : llvm::zip_equal(op.getResults(), condition.getArgs()))
    define(result, convertTo(value, result));
  b.CreateCondBr(getBase(condition.getCondition()), body, after);

  b.SetInsertPoint(body);
  SmallVector<llvm::Value *> nexts;
  if (failed(emitArm(op.getAfterBody(), mask, op.getBeforeArguments(), nexts)))
    return failure();
  emitTurn(op);
  for (auto [phi, value] : llvm::zip_equal(carried, nexts))
    phi->addIncoming(value, b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(after);
  return success();
}

LogicalResult KernelEmitter::emitDivergentWhile(scf::WhileOp op) {
  scf::ConditionOp condition = op.getConditionOp();
  llvm::Function *function = b.GetInsertBlock()->getParent();
  auto *head = llvm::BasicBlock::Create(context, "while", function);
  auto *body = llvm::BasicBlock::Create(context, "do", function);
  auto *after = llvm::BasicBlock::Create(context, "while.end", function);
  SmallVector<llvm::Value *> inits;
  for (auto [init, argument] : llvm::zip_equal(op.getInits(), op.getBeforeArguments()))
    inits.push_back(convertTo(init, argument));
  llvm::Value *starting = activeLanes(mask);
  llvm::BasicBlock *before = b.GetInsertBlock();
  b.CreateBr(head);

  b.SetInsertPoint(head);
  auto phiOf = [&](llvm::Value *init) {
    llvm::PHINode *phi = b.CreatePHI(init->getType(), 2);
    phi->addIncoming(init, before);
    return phi;
  };
  llvm::PHINode *active = phiOf(starting);
  SmallVector<llvm::PHINode *> carried, kept;
  for (auto [init, argument] : llvm::zip_equal(inits, op.getBeforeArguments())) {
    carried.push_back(phiOf(init));
    define(argument, carried.back());
  }
  for (Value result : op.getResults())
    kept.push_back(phiOf(llvm::PoisonValue::get(vectorOf(scalarType(result.getType())))));
  llvm::Value *outer = mask;
  llvm::scope_exit restoreMask([&] { mask = outer; });
  mask = active;
  if (failed(emitBlock(*op.getBeforeBody())))
    return failure();
  SmallVector<llvm::Value *> left;
  for (auto [phi, value] : llvm::zip_equal(kept, condition.getArgs()))
    left.push_back(b.CreateSelect(active, getVector(value), phi));
  for (auto [argument, value] : llvm::zip_equal(op.getAfterArguments(), condition.getArgs()))
    define(argument, convertTo(value, argument));
  llvm::Value *staying = both(active, freeze(getVector(condition.getCondition())));
  b.CreateCondBr(anyLane(staying), body, after);

  b.SetInsertPoint(body);
  SmallVector<llvm::Value *> nexts;
  if (failed(emitArm(op.getAfterBody(), staying, op.getBeforeArguments(), nexts)))
    return failure();
  emitTurn(op);
  llvm::BasicBlock *end = b.GetInsertBlock();
  active->addIncoming(staying, end);
  for (auto [phi, value] : llvm::zip_equal(carried, nexts))
    phi->addIncoming(value, end);
  for (auto [phi, value] : llvm::zip_equal(kept, left))
    phi->addIncoming(value, end);
  b.CreateBr(head);

  b.SetInsertPoint(after);
  for (auto [result, value] : llvm::zip_equal(op.getResults(), left))
    define(result, value);
  return success();
}

} // namespace qd
