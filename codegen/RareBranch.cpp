//===- RareBranch.cpp - one branch around what few operands need -------------------------------===//

#include "codegen/RareBranch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace qd {

static constexpr StringLiteral markName = "qd.rare";
/// So many values have to stand together for a branch.
static constexpr unsigned leastShared = 4;

Value *markRare(IRBuilderBase &builder, Value *condition) {
  Module *module = builder.GetInsertBlock()->getModule();
  FunctionCallee mark = module->getOrInsertFunction(markName, builder.getInt1Ty(), builder.getInt1Ty());
  auto *function = cast<Function>(mark.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  function->setSpeculatable();
  return builder.CreateCall(mark, condition);
}

/// The mark that a select is chosen by, or null.
static CallInst *getMark(Value *value) {
  auto *select = dyn_cast<SelectInst>(value);
  auto *call = select ? dyn_cast<CallInst>(select->getCondition()) : nullptr;
  Function *callee = call ? call->getCalledFunction() : nullptr;
  return callee && callee->getName() == markName ? call : nullptr;
}

/// Whether an instruction may take place later or not at all.
static bool isMovable(const Instruction &instruction) {
  auto *call = dyn_cast<CallBase>(&instruction);
  return !instruction.isTerminator() && !isa<PHINode>(instruction) && !instruction.mayReadOrWriteMemory() &&
         !instruction.mayHaveSideEffects() && !(call && call->isConvergent());
}

namespace {
/// Choices that one branch can make.
struct Group {
  SmallVector<SelectInst *> selects; ///< independent of each other
  SmallVector<Instruction *> users;  ///< what between them uses them, at first hand or not
  Instruction *end = nullptr;        ///< where users that cannot be moved begin
};
} // namespace

static Group findGroup(SelectInst *first) {
  Group group;
  SmallPtrSet<Value *, 16> dependent;
  for (Instruction *at = first;; at = at->getNextNode()) {
    group.end = at;
    bool isDependent = any_of(at->operands(), [&](Value *operand) { return dependent.contains(operand); });
    if (at->isTerminator() || (isDependent && !isMovable(*at)))
      return group;
    if (isDependent)
      group.users.push_back(at);
    else if (getMark(at))
      group.selects.push_back(cast<SelectInst>(at));
    else
      continue;
    dependent.insert(at);
  }
}

/// What is computed in the selects' block for their slow values alone, last first.
static SmallVector<Instruction *> findSlow(const Group &group) {
  SmallPtrSet<User *, 16> selects(group.selects.begin(), group.selects.end()), slow;
  SmallVector<Instruction *> found;
  auto isForSlow = [&](Use &use) {
    return slow.contains(use.getUser()) || (selects.contains(use.getUser()) && use.getOperandNo() == 1);
  };
  for (Instruction &instruction : reverse(*group.selects.front()->getParent()))
    if (isMovable(instruction) && !instruction.use_empty() && all_of(instruction.uses(), isForSlow)) {
      slow.insert(&instruction);
      found.push_back(&instruction);
    }
  return found;
}

static void branch(const Group &group) {
  for (Instruction *user : group.users)
    user->moveBefore(group.end->getIterator());
  BasicBlock *block = group.selects.front()->getParent();
  SmallVector<Instruction *> slow = findSlow(group);
  Instruction *split = group.users.empty() ? group.end : group.users.front();
  BasicBlock *rest = block->splitBasicBlock(split->getIterator(), "rest");
  BasicBlock *rare = BasicBlock::Create(block->getContext(), "rare", block->getParent(), rest);
  IRBuilder<> builder(rare);
  Instruction *end = builder.CreateBr(rest);
  for (Instruction *instruction : reverse(slow))
    instruction->moveBefore(end->getIterator());

  builder.SetInsertPoint(block->getTerminator());
  Value *any = nullptr;
  for (SelectInst *select : group.selects) {
    Value *condition = getMark(select)->getArgOperand(0);
    any = any ? builder.CreateOr(any, condition) : condition;
  }
  builder.CreateCondBr(any, rare, rest);
  block->getTerminator()->eraseFromParent();

  builder.SetInsertPoint(rest, rest->begin());
  for (SelectInst *select : group.selects) {
    PHINode *phi = builder.CreatePHI(select->getType(), 2);
    phi->addIncoming(select->getFalseValue(), block);
    phi->addIncoming(select->getTrueValue(), rare);
    select->replaceAllUsesWith(phi);
    select->eraseFromParent();
  }
}

/// The first choice in a function, or null.
static SelectInst *findFirst(Function &function) {
  for (BasicBlock &block : function)
    for (Instruction &instruction : block)
      if (getMark(&instruction))
        return cast<SelectInst>(&instruction);
  return nullptr;
}

void branchWhereRare(Module &module) {
  Function *mark = module.getFunction(markName);
  if (!mark)
    return;
  for (Function &function : module)
    while (SelectInst *first = findFirst(function)) {
      Group group = findGroup(first);
      if (group.selects.size() >= leastShared) {
        branch(group);
        continue;
      }
      SmallVector<WeakTrackingVH> fast;
      for (SelectInst *select : group.selects) {
        fast.push_back(select->getFalseValue());
        select->replaceAllUsesWith(select->getTrueValue());
        select->eraseFromParent();
      }
      RecursivelyDeleteTriviallyDeadInstructionsPermissive(fast);
    }
  // What is folded may leave a mark of a mark, so conditions are deleted when no mark is left.
  SmallVector<WeakTrackingVH> conditions;
  while (!mark->use_empty()) {
    auto *call = cast<CallInst>(mark->user_back());
    conditions.push_back(call->getArgOperand(0));
    call->replaceAllUsesWith(call->getArgOperand(0));
    call->eraseFromParent();
  }
  RecursivelyDeleteTriviallyDeadInstructionsPermissive(conditions);
  mark->eraseFromParent();
}

} // namespace qd
