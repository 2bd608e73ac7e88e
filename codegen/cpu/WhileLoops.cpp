//===- WhileLoops.cpp - scf.while as scalar and masked loops --------------------------------------------------===//
//
// A loop runs until no lane is left, and lanes that have left keep the values they left with.
//
//===----------------------------------------------------------------------===//

#include "codegen/Waits.h"
#include "codegen/cpu/KernelEmitter.h"

#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace qd {

LogicalResult KernelEmitter::emitWhile(scf::WhileOp op) {
  return analysis.isUniform(op.getConditionOp().getCondition()) ? emitUniformWhile(op) : emitDivergentWhile(op);
}

/// Between two rounds the launch may end, and in a loop that may wait the block's other subgroups have their turn.
void KernelEmitter::emitTurn(scf::WhileOp op) {
  emitCheck(getLength(*op.getBeforeBody()) + getLength(*op.getAfterBody()));
  if (waits && mayWait(op))
    emitSuspend(/*final=*/false);
}

LogicalResult KernelEmitter::emitUniformWhile(scf::WhileOp op) {
  scf::ConditionOp condition = op.getConditionOp();
  llvm::Function *function = b.GetInsertBlock()->getParent();
  auto *head = llvm::BasicBlock::Create(context, "while", function);
  auto *body = llvm::BasicBlock::Create(context, "do", function);
  auto *after = llvm::BasicBlock::Create(context, "while.end", function);
  SmallVector<llvm::Value *> inits = convertAll(op.getInits(), op.getBeforeArguments());
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
  SmallVector<llvm::Value *> inits = convertAll(op.getInits(), op.getBeforeArguments());
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
