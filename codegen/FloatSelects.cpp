//===- FloatSelects.cpp - selects of floats that selection takes for something else -----------===//
//
// Purpose: IEEE's comparisons and plain selects where LLVM 22 makes a minimum or maximum of them in spite of zeros'
// signs. Neither of two zeros is below the other, and the select gives its second operand; minima give -0.0:
//
//   x < 0.0 ? x : 0.0     ->     float(x < 0.0 ? bits(x) : bits(0.0))
//
// What cannot be a zero of the wrong sign stays a minimum or maximum: that of a number that is no zero, max(x, 0.0).
//
// For AMD's chips the number that is compared with a constant takes the constant's place, and a NaN comes out:
//
//   x ueq 2.5 ? 2.5 : y     ->     float(x ueq 2.5 ? bits(2.5) : bits(y))
//
// Input: optimised LLVM IR. Output: the same with such selects on integers, for which there is the same instruction.
//
//===----------------------------------------------------------------------===//

#include "codegen/FloatSelects.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/KnownFPClass.h"

using namespace llvm;

namespace qd {

/// Whether the value is a float that one of two operands is by a comparison of them.
static bool isChoiceOfCompared(Value *value) {
  auto *select = dyn_cast<SelectInst>(value);
  auto *compare = select ? dyn_cast<FCmpInst>(select->getCondition()) : nullptr;
  return compare && is_contained(compare->operands(), select->getTrueValue()) &&
         is_contained(compare->operands(), select->getFalseValue());
}

PartedSelects::PartedSelects(Module &module) : module(module) {
  SmallVector<Instruction *> inner;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (isChoiceOfCompared(&instruction) && llvm::any_of(instruction.users(), isChoiceOfCompared))
        inner.push_back(&instruction);
  for (Instruction *select : inner) {
    IRBuilder<> b(select->getNextNode());
    Value *fence = b.CreateArithmeticFence(select, select->getType());
    select->replaceUsesWithIf(fence, [&](const Use &use) { return use.getUser() != fence; });
  }
}

PartedSelects::~PartedSelects() {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function)))
      if (auto *fence = dyn_cast<IntrinsicInst>(&instruction);
          fence && fence->getIntrinsicID() == Intrinsic::arithmetic_fence) {
        fence->replaceAllUsesWith(fence->getArgOperand(0));
        fence->eraseFromParent();
      }
}

/// Whether a minimum or maximum is made of the select, but gives zeros another sign.
static bool losesSign(SelectInst &select) {
  auto *compare = dyn_cast<FCmpInst>(select.getCondition());
  Value *lhs, *rhs;
  if (!compare || !compare->isStrictPredicate() || select.hasNoSignedZeros())
    return false;
  SelectPatternFlavor flavor = matchSelectPattern(&select, lhs, rhs).Flavor;
  if (flavor != SPF_FMINNUM && flavor != SPF_FMAXNUM)
    return false;
  SimplifyQuery query(select.getDataLayout());
  auto mayBe = [&](Value *value, FPClassTest zero) {
    return !computeKnownFPClass(value, zero, query).isKnownNever(zero);
  };
  // Of zeros the second is wanted; a minimum gives the negative one.
  bool isMin = flavor == SPF_FMINNUM;
  return mayBe(select.getTrueValue(), isMin ? fcNegZero : fcPosZero) &&
         mayBe(select.getFalseValue(), isMin ? fcPosZero : fcNegZero);
}

/// Whether the select gives for NaNs the constant that it compares with.
static bool losesConstant(const SelectInst &select) {
  auto *compare = dyn_cast<FCmpInst>(select.getCondition());
  if (!compare || !select.getModule()->getTargetTriple().isAMDGCN())
    return false;
  bool isEqual = compare->getPredicate() == CmpInst::FCMP_UEQ;
  if (!isEqual && compare->getPredicate() != CmpInst::FCMP_ONE)
    return false;
  const Value *given = isEqual ? select.getTrueValue() : select.getFalseValue();
  return isa<ConstantFP>(given) && is_contained(compare->operands(), given);
}

static void chooseBits(SelectInst &select) {
  IRBuilder<> b(&select);
  Type *type = select.getType();
  Type *bits = type->getWithNewType(b.getIntNTy(type->getScalarSizeInBits()));
  Value *chosen = b.CreateSelect(select.getCondition(), b.CreateBitCast(select.getTrueValue(), bits),
                                 b.CreateBitCast(select.getFalseValue(), bits));
  select.replaceAllUsesWith(b.CreateBitCast(chosen, type));
  select.eraseFromParent();
}

void keepSelects(Function &function) {
  for (Instruction &instruction : make_early_inc_range(instructions(function)))
    if (auto *select = dyn_cast<SelectInst>(&instruction);
        select && select->getType()->isFPOrFPVectorTy() && (losesSign(*select) || losesConstant(*select)))
      chooseBits(*select);
}

} // namespace qd
