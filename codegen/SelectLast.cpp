//===- SelectLast.cpp - guarded operations as ptxas wants them ---------------------------===//

#include "codegen/SelectLast.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace qd {

/// `operation` of a select between a value and the operation's identity, as a select of two results; else null.
static Value *selectResult(BinaryOperator &operation, unsigned side) {
  auto *guarded = dyn_cast<SelectInst>(operation.getOperand(side));
  if (!guarded || !guarded->hasOneUse())
    return nullptr;
  Constant *identity = ConstantExpr::getBinOpIdentity(operation.getOpcode(), operation.getType());
  bool isInverted = guarded->getTrueValue() == identity;
  if (!identity || (!isInverted && guarded->getFalseValue() != identity))
    return nullptr;
  IRBuilder<> builder(&operation);
  Value *kept = operation.getOperand(1 - side);
  Instruction *result = operation.clone();
  result->setOperand(side, isInverted ? guarded->getFalseValue() : guarded->getTrueValue());
  builder.Insert(result);
  return isInverted ? builder.CreateSelect(guarded->getCondition(), kept, result)
                    : builder.CreateSelect(guarded->getCondition(), result, kept);
}

void selectLast(Function &function) {
  SmallVector<Instruction *> unused; // may stand anywhere, so also where the walk goes next
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    auto *operation = dyn_cast<BinaryOperator>(&instruction);
    if (!operation || !operation->isCommutative() || !operation->getType()->isIntegerTy())
      continue;
    for (unsigned side : {1u, 0u}) {
      Value *result = selectResult(*operation, side);
      if (!result)
        continue;
      unused.push_back(cast<SelectInst>(operation->getOperand(side)));
      operation->replaceAllUsesWith(result);
      operation->eraseFromParent();
      break;
    }
  }
  for (Instruction *guarded : unused)
    guarded->eraseFromParent();
}

} // namespace qd
