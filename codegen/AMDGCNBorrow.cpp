//===- AMDGCNBorrow.cpp - comparisons of several words by subtraction -------------------------===//
//
// Purpose: what the comparisons of sorts become. No instruction compares more than 64 bits, and none of 64 bits takes a
// DPP move; a subtraction with borrow takes one in each word, and the last borrow is the result:
//
//   icmp ult i64 %a, %b     ->     v_sub_co_u32 _, c, a0, b0    v_subb_u32 _, c, a1, b1, c
//
// Where waves wait for each borrow, the first of more than two words are compared as pairs.
//
// Input: optimised LLVM IR. Output: the same, in the form of which instruction selection makes subtractions that give
// and take a borrow.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNBorrow.h"

#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/IR/ValueHandle.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace qd {

static constexpr unsigned wordBits = 32;

/// The 32-bit word `i` of `value`, looked for in what `value` was put together from.
static Value *getWord(IRBuilder<> &b, Value *value, unsigned i) {
  unsigned width = value->getType()->getIntegerBitWidth();
  if (width == wordBits && i == 0)
    return value;
  Value *x, *y;
  uint64_t shift;
  if (match(value, m_ZExt(m_Value(x)))) {
    unsigned narrow = x->getType()->getIntegerBitWidth();
    if (i * wordBits >= narrow)
      return b.getInt32(0);
    if (narrow % wordBits == 0)
      return getWord(b, x, i);
  }
  if (match(value, m_Shl(m_Value(x), m_ConstantInt(shift))) && shift % wordBits == 0)
    return i < shift / wordBits ? b.getInt32(0) : getWord(b, x, i - shift / wordBits);
  if (match(value, m_Or(m_Value(x), m_Value(y)))) {
    Value *lhs = getWord(b, x, i), *rhs = getWord(b, y, i);
    return match(lhs, m_Zero()) ? rhs : match(rhs, m_Zero()) ? lhs : b.CreateOr(lhs, rhs);
  }
  if (match(value, m_BitCast(m_Value(x))))
    if (auto *type = dyn_cast<FixedVectorType>(x->getType()); type && type->getElementType()->isIntegerTy(wordBits)) {
      Value *element = findScalarElement(x, i);
      return element ? element : b.CreateExtractElement(x, i);
    }
  return b.CreateTrunc(b.CreateLShr(value, i * wordBits), b.getInt32Ty());
}

static bool isMove(Value *word) {
  auto *call = dyn_cast<CallInst>(word);
  return call && call->getIntrinsicID() == Intrinsic::amdgcn_update_dpp;
}

namespace {
/// Numbers of several words that are compared without a sign, the lowest word first.
struct Order {
  SmallVector<Value *, 2> lhs, rhs; ///< integers of one or two words each
};
} // namespace

/// `value` as whether `lhs` is before `rhs`: one comparison, or one that decides where it differs, and another.
static std::optional<Order> matchOrder(Value *value) {
  Order order;
  CmpPredicate predicate;
  Value *a, *b, *c, *d, *isLess, *rest, *isEqual;
  auto add = [&](Value *comparison) {
    if (!match(comparison, m_ICmp(predicate, m_Value(a), m_Value(b))) || !a->getType()->isIntegerTy())
      return false;
    if (predicate == CmpInst::ICMP_UGT)
      std::swap(a, b);
    unsigned width = a->getType()->getIntegerBitWidth();
    if ((predicate != CmpInst::ICMP_ULT && predicate != CmpInst::ICMP_UGT) ||
        (width != wordBits && width != 2 * wordBits))
      return false;
    order.lhs.push_back(a);
    order.rhs.push_back(b);
    return true;
  };
  if (add(value))
    return order;
  order = {};
  if (!match(value, m_c_Or(m_Value(isLess), m_OneUse(m_c_And(m_Value(isEqual), m_Value(rest))))))
    return std::nullopt;
  for (auto [equal, other] : {std::pair(isEqual, rest), std::pair(rest, isEqual)})
    if (match(equal, m_SpecificICmp(CmpInst::ICMP_EQ, m_Value(c), m_Value(d)))) {
      order = {};
      if (add(other) && add(isLess) && ((a == c && b == d) || (a == d && b == c)))
        return order;
    }
  return std::nullopt;
}

/// Whether the comparison was rewritten. `turns`: of two words, every other one is not.
static bool rewrite(Instruction &compare, bool comparesLower, unsigned *turns) {
  std::optional<Order> order = matchOrder(&compare);
  if (!order)
    return false;
  IRBuilder<> b(&compare);
  SmallVector<std::pair<Value *, Value *>, 4> words;
  for (auto [lhs, rhs] : zip(order->lhs, order->rhs))
    for (unsigned i = 0; i < lhs->getType()->getIntegerBitWidth() / wordBits; ++i)
      words.emplace_back(getWord(b, lhs, i), getWord(b, rhs, i));
  // Two words of one number that have no moves to take are compared at once.
  bool isPair = order->lhs.size() == 1 && words.size() == 2;
  if (words.size() < 2 || (isPair && !(isMove(words[0].first) && isMove(words[1].first))))
    return false;
  if (words.size() == 2 && turns && (*turns)++ % 2)
    return false;
  auto subtract = [&](Value *x, Value *y) {
    Value *pair = b.CreateBinaryIntrinsic(Intrinsic::usub_with_overflow, x, y);
    return std::pair(b.CreateExtractValue(pair, 0), b.CreateExtractValue(pair, 1));
  };
  Value *borrow = nullptr;
  if (comparesLower && words.size() > 2 && order->lhs.front()->getType()->isIntegerTy(2 * wordBits)) {
    borrow = b.CreateICmpULT(order->lhs.front(), order->rhs.front());
    words.erase(words.begin(), words.begin() + 2);
  }
  for (auto [x, y] : words) {
    auto [difference, isLess] = subtract(x, y);
    borrow = borrow ? b.CreateOr(isLess, subtract(difference, b.CreateZExt(borrow, b.getInt32Ty())).second) : isLess;
  }
  compare.replaceAllUsesWith(borrow);
  return true;
}

void compareByBorrow(Function &kernel, bool comparesLower, bool comparesPairs) {
  // The whole before its parts, which it leaves without users.
  SmallVector<WeakTrackingVH> candidates;
  for (Instruction &instruction : instructions(kernel))
    if (instruction.getType()->isIntegerTy(1) &&
        (isa<ICmpInst>(instruction) || instruction.getOpcode() == Instruction::Or))
      candidates.push_back(&instruction);
  unsigned numPairs = 0, *turns = comparesPairs ? &numPairs : nullptr;
  for (WeakTrackingVH &candidate : reverse(candidates))
    if (auto *compare = dyn_cast_or_null<Instruction>(candidate); compare && rewrite(*compare, comparesLower, turns))
      RecursivelyDeleteTriviallyDeadInstructions(compare);
}

} // namespace qd
