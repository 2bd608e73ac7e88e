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

/// The comparison whose bit of a word `spread` has in all of its bits, if it stands before it; else null.
static ICmpInst *findComparison(Instruction &spread) {
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
      if (isClear && isClear->getParent() == spread.getParent() && isClear->comesBefore(&spread) &&
          match(isClear, m_SpecificICmp(ICmpInst::ICMP_EQ, m_Specific(user), m_Zero())) && isVotedByAll(*isClear))
        return isClear;
    }
  }
  return nullptr;
}

namespace {

/// Writes the bits of one function.
class BitWriter {
public:
  explicit BitWriter(Function &function) : function(function), word(Type::getInt32Ty(function.getContext())) {}

  void write() {
    for (Instruction &instruction : make_early_inc_range(instructions(function)))
      if (Value *changed = negate(instruction))
        replace(instruction, changed);
    if (!ones)
      return;
    for (Instruction &instruction : make_early_inc_range(instructions(function)))
      if (Value *joined = joinThree(instruction))
        replace(instruction, joined);
  }

private:
  static void replace(Instruction &old, Value *changed) {
    old.replaceAllUsesWith(changed);
    RecursivelyDeleteTriviallyDeadInstructions(&old); // its operands stand before it
  }

  /// A word of ones that ptxas does not know: it makes subtractions of products with -1. Where there are ballots of all
  /// lanes, subgroups are whole, and here all lanes are still together.
  Value *getOnes() {
    if (!ones) {
      IRBuilder<> builder(&*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
      ones = builder.CreateIntrinsic(word, Intrinsic::nvvm_vote_ballot_sync, {builder.getInt32(-1), builder.getTrue()});
    }
    return ones;
  }

  /// `ballot ^ spread`.
  Value *negate(Instruction &instruction) {
    if (instruction.getOpcode() != Instruction::Xor)
      return nullptr;
    for (unsigned place : {0, 1}) {
      auto *spread = dyn_cast<Instruction>(instruction.getOperand(place));
      ICmpInst *isClear = spread && spread->getParent() == instruction.getParent() ? findComparison(*spread) : nullptr;
      if (!isClear)
        continue;
      FunctionType *type = FunctionType::get(word, {word, isClear->getType(), word}, /*isVarArg=*/false);
      auto *negation = InlineAsm::get(type, "mov.b32 \t$0, $1;\n\t@!$2 mad.lo.s32 \t$0, $1, $3, $3;", "=&r,r,b,r",
                                      /*hasSideEffects=*/false);
      return IRBuilder<>(&instruction)
          .CreateCall(type, negation, {instruction.getOperand(1 - place), isClear, getOnes()});
    }
    return nullptr;
  }

  /// `(a & b) & c` with such words.
  Value *joinThree(Instruction &instruction) {
    Value *inner, *a, *b, *c;
    if (instruction.getType() != word ||
        !match(&instruction,
               m_c_And(m_CombineAnd(m_Value(inner), m_OneUse(m_And(m_Value(a), m_Value(b)))), m_Value(c))) ||
        cast<Instruction>(inner)->getParent() != instruction.getParent() || !isNegated(c) ||
        (!isNegated(a) && !isNegated(b)))
      return nullptr;
    FunctionType *type = FunctionType::get(word, {word, word, word}, /*isVarArg=*/false);
    auto *join = InlineAsm::get(type, "lop3.b32 \t$0, $1, $2, $3, 0x80;", "=r,r,r,r", /*hasSideEffects=*/false);
    return IRBuilder<>(&instruction).CreateCall(type, join, {a, b, c});
  }

  static bool isNegated(Value *value) {
    auto *call = dyn_cast<CallInst>(value);
    auto *assembly = call ? dyn_cast<InlineAsm>(call->getCalledOperand()) : nullptr;
    return assembly && StringRef(assembly->getAsmString()).contains("mad.lo");
  }

  Function &function;
  Type *word;
  Value *ones = nullptr;
};

} // namespace

void writeBitsAsPTX(Module &module) {
  for (Function &function : module)
    if (!function.isDeclaration())
      BitWriter(function).write();
}

} // namespace qd
