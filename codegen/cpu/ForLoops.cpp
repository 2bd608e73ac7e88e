//===- ForLoops.cpp - scf.for as scalar and masked loops ------------------------------------------------------===//
//
// A loop runs until no lane is left, and lanes that have left keep the values they left with.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/KernelEmitter.h"

#include "codegen/LoopHint.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace qd {

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
  /// As far as another bound.
  Counter to(llvm::Value *bound) const { return {b, op, bound, step}; }
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

static llvm::Value *atLeastOne(llvm::IRBuilder<> &b, llvm::Value *step) {
  llvm::Value *one = llvm::ConstantInt::get(step->getType(), 1);
  if (auto *constant = dyn_cast<llvm::ConstantInt>(step))
    return constant->isZero() ? one : step;
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, step, one);
}

void KernelEmitter::emitRoundEnd(scf::ForOp op) {
  if (mayTakeLong(op) && !goesInParts(op))
    emitCheck(getLength(*op.getBody()));
}

/// Behind the body of a loop whose phis are complete: another round where `goesOn` with the upper bound holds, or on in
/// `after`. Where the loop goes in parts it becomes one in another, with the check between two parts. Returns the block
/// that leaves it.
llvm::BasicBlock *KernelEmitter::endLoop(scf::ForOp op, llvm::PHINode *variable, llvm::Value *upper,
                                         llvm::BasicBlock *after,
                                         llvm::function_ref<llvm::Value *(llvm::Value *upper)> goesOn) {
  llvm::BasicBlock *before = variable->getIncomingBlock(0), *body = variable->getParent(), *end = b.GetInsertBlock();
  if (!goesInParts(op)) {
    setLoopHint(b.CreateCondBr(goesOn(upper), body, after), op);
    b.SetInsertPoint(after);
    return end;
  }
  auto *part = llvm::BasicBlock::Create(context, "for.part", body->getParent(), body);
  auto *partEnd = llvm::BasicBlock::Create(context, "for.part.end", body->getParent());
  before->getTerminator()->replaceSuccessorWith(body, part);
  llvm::IRBuilder<> atPart(part);
  SmallVector<llvm::PHINode *> outer;
  for (llvm::PHINode &phi : body->phis()) {
    outer.push_back(atPart.CreatePHI(phi.getType(), 2));
    outer.back()->addIncoming(phi.getIncomingValueForBlock(before), before);
    phi.setIncomingValueForBlock(before, outer.back());
    phi.replaceIncomingBlockWith(before, part);
  }
  // Of a part's rounds the check counts few: that many last some microseconds.
  constexpr unsigned roundsOfPart = 4096, roundsThatCount = 4;
  APInt step;
  bool isConstant = matchPattern(op.getStep(), m_ConstantInt(&step));
  assert(isConstant && "the rounds of a part are counted by a step that is known");
  (void)isConstant;
  APInt most =
      step.umul_sat(APInt(step.getBitWidth(), roundsOfPart)).zextOrTrunc(upper->getType()->getIntegerBitWidth());
  llvm::Value *from = variable->getIncomingValueForBlock(part);
  llvm::Value *distance = atPart.CreateSub(upper, from);
  llvm::Value *limit =
      atPart.CreateAdd(from, atPart.CreateBinaryIntrinsic(llvm::Intrinsic::umin, distance, atPart.getInt(most)));
  atPart.CreateBr(body);

  setLoopHint(b.CreateCondBr(goesOn(limit), body, partEnd), op);
  b.SetInsertPoint(partEnd);
  emitCheck(roundsThatCount * getLength(*op.getBody()));
  llvm::BasicBlock *last = b.GetInsertBlock();
  for (auto [phi, first] : llvm::zip_equal(body->phis(), outer))
    first->addIncoming(phi.getIncomingValueForBlock(end), last);
  b.CreateCondBr(goesOn(upper), part, after);
  b.SetInsertPoint(after);
  return last;
}

LogicalResult KernelEmitter::emitUniformFor(scf::ForOp op) {
  Counter counter{b, op, getBase(op.getUpperBound()), atLeastOne(b, getBase(op.getStep()))};
  llvm::Value *lower = getBase(op.getLowerBound());
  SmallVector<llvm::Value *> inits = convertAll(op.getInits(), op.getRegionIterArgs());

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
  emitRoundEnd(op);
  llvm::BasicBlock *end = b.GetInsertBlock();
  llvm::Value *next = counter.next(variable);
  variable->addIncoming(next, end);
  for (auto [phi, value] : llvm::zip_equal(carried, nexts))
    phi->addIncoming(value, end);
  end = endLoop(op, variable, counter.upper, after,
                [&](llvm::Value *upper) { return counter.to(upper).goesOn(variable, next); });

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
  emitRoundEnd(op);
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
    e.emitRoundEnd(op);
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

  /// Goes on behind the loop, of which `end` is the last block.
  void leave(llvm::BasicBlock *end) {
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
  llvm::Value *active =
      isUnsigned ? b.CreateICmpULT(splat(variable), bounds) : b.CreateICmpSLT(splat(variable), bounds);
  if (failed(loop.emitBody(active)))
    return failure();
  llvm::Value *next = counter.next(variable);
  variable->addIncoming(next, b.GetInsertBlock());
  loop.leave(endLoop(op, variable, last, loop.after,
                     [&](llvm::Value *upper) { return counter.to(upper).goesOn(variable, next); }));
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
  llvm::Value *stays = anyLane(staying);
  llvm::BasicBlock *end = b.GetInsertBlock();
  setLoopHint(b.CreateCondBr(stays, loop.body, loop.after), op);
  loop.leave(end);
  return success();
}

} // namespace qd
