//===- NVPTXBits.cpp - bits of words by predicates ----------------------------------------===//

#include "codegen/NVPTXBits.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace qd {

/// In a ballot of all lanes, which needs no synchronisation. ptxas keeps predicates of others over it, and runs out of
/// them: it does not compile three keys of eight bits in a block that ends with a partial subgroup.
static bool isVotedByAll(const ICmpInst &predicate) {
  return any_of(predicate.users(), [](const User *user) {
    return match(user, m_Intrinsic<Intrinsic::nvvm_vote_ballot_sync>(m_AllOnes()));
  });
}

/// `spread`, which has a bit of a word in all of its bits, by a comparison of the bit that stands before it; else null.
static Value *selectBit(BinaryOperator &spread) {
  Value *word, *masked;
  const APInt *up;
  if (!spread.getType()->isIntegerTy(32))
    return nullptr;
  unsigned width = spread.getType()->getScalarSizeInBits(), bit = 0;
  if (match(&spread, m_AShr(m_Shl(m_Value(word), m_APInt(up)), m_SpecificInt(width - 1))))
    bit = width - 1 - up->getZExtValue();
  else if (!match(&spread, m_Neg(m_CombineAnd(m_Value(masked), m_And(m_Value(word), m_One())))))
    return nullptr;
  for (User *user : word->users()) {
    if (!match(user, m_And(m_Specific(word), m_SpecificInt(APInt::getOneBitSet(width, bit)))))
      continue;
    for (User *comparison : user->users()) {
      auto *isClear = dyn_cast<ICmpInst>(comparison);
      if (!isClear || isClear->getParent() != spread.getParent() || !isClear->comesBefore(&spread) ||
          !match(isClear, m_SpecificICmp(ICmpInst::ICMP_EQ, m_Specific(user), m_Zero())) || !isVotedByAll(*isClear))
        continue;
      Type *type = spread.getType();
      FunctionType *selection = FunctionType::get(type, isClear->getType(), /*isVarArg=*/false);
      return IRBuilder<>(&spread).CreateCall(
          selection, InlineAsm::get(selection, "selp.b32 \t$0, 0, -1, $1;", "=r,b", /*hasSideEffects=*/false), isClear);
    }
  }
  return nullptr;
}

void writeBitsAsPTX(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *spread = dyn_cast<BinaryOperator>(&instruction);
      Value *selected = spread ? selectBit(*spread) : nullptr;
      if (!selected)
        continue;
      spread->replaceAllUsesWith(selected);
      RecursivelyDeleteTriviallyDeadInstructions(spread); // its operands stand before it
    }
}

} // namespace qd
