//===- VectorMasks.cpp - selects on processors without mask registers -------------------------------------===//
//
// Purpose: without mask registers a comparison makes a mask as wide as what it compares, which a select of that width
// takes as it is. Arithmetic on predicates first packs such masks into bytes and unpacks them again, several
// instructions a register; choosing one operand after the other does not:
//   select(or(c, and(d, e)), a, b)  ->  select(c, a, select(d, select(e, a, b), b))
//   select(xor(c, lanes), a, b)     ->  select(c, a and b mixed by lane, b and a mixed by lane)
// Input: an optimised module; its selects' conditions are what the program made of comparisons.
// Output: selects by single comparisons where the condition is made of a few that are as wide as the values.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Native.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace qd::cpu {

/// The lanes of a constant mask that are set, or nothing where one is unknown.
static std::optional<SmallVector<bool>> getLanes(Value *value) {
  auto *constant = dyn_cast<Constant>(value);
  if (!constant)
    return std::nullopt;
  SmallVector<bool> lanes;
  for (unsigned lane = 0, e = cast<FixedVectorType>(value->getType())->getNumElements(); lane < e; ++lane) {
    auto *bit = dyn_cast_or_null<ConstantInt>(constant->getAggregateElement(lane));
    if (!bit)
      return std::nullopt;
    lanes.push_back(bit->isOne());
  }
  return lanes;
}

/// The number of comparisons that a condition is made of; 0 where it holds something else, or one that is not `width`
/// bits wide.
static unsigned countComparisons(Value *condition, unsigned width) {
  Value *first, *second;
  if (match(condition, m_Xor(m_Value(first), m_Value(second))))
    return getLanes(second) ? countComparisons(first, width) : 0;
  if (match(condition, m_LogicalOr(m_Value(first), m_Value(second))) ||
      match(condition, m_LogicalAnd(m_Value(first), m_Value(second)))) {
    unsigned inFirst = countComparisons(first, width), inSecond = countComparisons(second, width);
    return inFirst && inSecond ? inFirst + inSecond : 0;
  }
  auto *comparison = dyn_cast<CmpInst>(condition);
  return comparison && comparison->getOperand(0)->getType()->getScalarSizeInBits() == width;
}

static Value *choose(IRBuilder<> &b, Value *condition, Value *ifTrue, Value *ifFalse) {
  Value *first, *second;
  if (match(condition, m_Xor(m_Value(first), m_Value(second)))) {
    SmallVector<int> straight, turned;
    SmallVector<bool> lanes = *getLanes(second);
    for (auto [lane, isTurned] : enumerate(lanes)) {
      int other = lane + lanes.size();
      straight.push_back(isTurned ? other : lane);
      turned.push_back(isTurned ? lane : other);
    }
    return choose(b, first, b.CreateShuffleVector(ifTrue, ifFalse, straight),
                  b.CreateShuffleVector(ifTrue, ifFalse, turned));
  }
  if (match(condition, m_LogicalOr(m_Value(first), m_Value(second))))
    return choose(b, first, ifTrue, choose(b, second, ifTrue, ifFalse));
  if (match(condition, m_LogicalAnd(m_Value(first), m_Value(second))))
    return choose(b, first, choose(b, second, ifTrue, ifFalse), ifFalse);
  return b.CreateSelect(condition, ifTrue, ifFalse);
}

void unravelMasks(Module &module) {
  constexpr unsigned maxComparisons = 4;
  SmallVector<WeakTrackingVH> replaced;
  for (Function &function : module)
    for (BasicBlock &block : function)
      for (Instruction &instruction : make_early_inc_range(block)) {
        auto *select = dyn_cast<SelectInst>(&instruction);
        if (!select || !isa<FixedVectorType>(select->getType()) || !select->getCondition()->getType()->isVectorTy() ||
            isa<CmpInst>(select->getCondition()))
          continue;
        unsigned comparisons = countComparisons(select->getCondition(), select->getType()->getScalarSizeInBits());
        if (!comparisons || comparisons > maxComparisons)
          continue;
        IRBuilder<> b(select);
        select->replaceAllUsesWith(
            choose(b, select->getCondition(), select->getTrueValue(), select->getFalseValue()));
        replaced.push_back(select);
      }
  RecursivelyDeleteTriviallyDeadInstructionsPermissive(replaced);
}

} // namespace qd::cpu
