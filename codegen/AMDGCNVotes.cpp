//===- AMDGCNVotes.cpp - votes on comparisons of floats ---------------------------------------===//
//
// Purpose: votes that instruction selection of LLVM 22 gets wrong. In a ballot it takes `one` (ordered and unequal) for
// `une` (unordered or unequal), and NaNs vote with the others. Of the 14 comparisons this is the only one:
//
//   ballot(fcmp one x, y)     ->     ballot(fcmp ueq x, y) ^ ballot(true)
//
// One scalar operation; a vote by `any` or `all` compares with the lanes that are here, not with 0. Selection finds
// `one` in logic of other comparisons too, (x < y) | (x > y) say: unless the optimiser has found it before, such a vote
// is on a word that selection cannot look through, which takes as many instructions as a vote on logic anyway.
//
// Input: optimised LLVM IR. Output: the same without ballots on `one`.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNVotes.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace qd {

/// Whether comparisons of floats are among what `value` is made of by logic and conversions.
static bool isMadeOfComparisons(const Value *value, unsigned depth = 0) {
  constexpr unsigned limit = 6;
  auto *user = dyn_cast<Instruction>(value);
  if (!user || !(isa<FCmpInst, ICmpInst, SelectInst, FreezeInst, TruncInst, ZExtInst, SExtInst>(user) ||
                 user->isBitwiseLogicOp()))
    return false;
  return isa<FCmpInst>(user) || depth == limit ||
         any_of(user->operands(), [&](const Use &use) { return isMadeOfComparisons(use, depth + 1); });
}

/// The comparison that `value` is, or is the opposite of.
static FCmpInst *findComparison(Value *value, bool &isInverted) {
  isInverted = false;
  for (Value *x;; value = x) {
    if (match(value, m_Not(m_Value(x))))
      isInverted = !isInverted;
    else if (!match(value, m_Freeze(m_Value(x))))
      return dyn_cast<FCmpInst>(value);
  }
}

void voteOnUnequal(Function &kernel, unsigned waveSize) {
  SmallVector<IntrinsicInst *> ballots;
  for (Instruction &instruction : instructions(kernel))
    if (auto *call = dyn_cast<IntrinsicInst>(&instruction); call && call->getIntrinsicID() == Intrinsic::amdgcn_ballot)
      ballots.push_back(call);
  for (IntrinsicInst *ballot : ballots) {
    IRBuilder<> b(ballot);
    bool isInverted;
    Value *predicate = ballot->getArgOperand(0);
    FCmpInst *compare = findComparison(predicate, isInverted);
    if (!compare) {
      if (!isMadeOfComparisons(predicate))
        continue;
      auto *type = FunctionType::get(b.getInt32Ty(), {b.getInt32Ty()}, /*isVarArg=*/false);
      Value *word = b.CreateCall(InlineAsm::get(type, "", "=v,0", /*hasSideEffects=*/false),
                                 {b.CreateZExt(predicate, b.getInt32Ty())});
      ballot->setArgOperand(0, b.CreateICmpNE(word, b.getInt32(0)));
      continue;
    }
    if ((isInverted ? compare->getInversePredicate() : compare->getPredicate()) != CmpInst::FCMP_ONE)
      continue;
    Value *opposite = isInverted ? compare : b.CreateFCmpUEQ(compare->getOperand(0), compare->getOperand(1));
    // In waves of 32 the upper half of EXEC is nothing to rely on.
    Type *mask = b.getIntNTy(waveSize);
    auto vote = [&](Value *value) { return b.CreateIntrinsic(Intrinsic::amdgcn_ballot, {mask}, {value}); };
    Value *others = vote(opposite), *present = vote(b.getTrue());
    for (User *user : make_early_inc_range(ballot->users())) {
      auto *isNone = dyn_cast<ICmpInst>(user);
      if (!isNone || !isNone->isEquality() || !match(isNone->getOperand(1), m_Zero()))
        continue;
      IRBuilder<> at(isNone);
      isNone->replaceAllUsesWith(at.CreateICmp(isNone->getPredicate(), others, present));
      isNone->eraseFromParent();
    }
    ballot->replaceAllUsesWith(b.CreateZExt(b.CreateXor(others, present), ballot->getType()));
    ballot->eraseFromParent();
  }
}

} // namespace qd
