//===- ShuffleGuard.cpp - choices that a shuffle's own predicate makes ------------------------------===//

#include "codegen/lower/ShuffleGuard.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace qd {

/// What `value` is on a lane, where the lane's number alone decides.
static std::optional<APInt> evaluateAtLane(Value value, unsigned lane, unsigned size, unsigned depth = 0) {
  constexpr unsigned maxDepth = 4;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant;
  Operation *op = value.getDefiningOp();
  if (!op || depth == maxDepth)
    return std::nullopt;
  if (isa<LaneIdOp>(op))
    return APInt(32, lane);
  if (!isa<arith::AndIOp, arith::CmpIOp>(op))
    return std::nullopt;
  std::optional<APInt> rhs = evaluateAtLane(op->getOperand(1), lane, size, depth + 1);
  if (!rhs)
    return std::nullopt;
  // Whole subgroups before its own are dropped from a thread's number.
  if (isa<arith::AndIOp>(op) && isa_and_nonnull<ThreadIndexOp>(op->getOperand(0).getDefiningOp()) && rhs->ult(size))
    return *rhs & lane;
  std::optional<APInt> lhs = evaluateAtLane(op->getOperand(0), lane, size, depth + 1);
  if (!lhs)
    return std::nullopt;
  if (isa<arith::AndIOp>(op))
    return *lhs & *rhs;
  return APInt(1, arith::applyCmpPredicate(cast<arith::CmpIOp>(op).getPredicate(), *lhs, *rhs));
}

/// Whether `condition` is `hasSource` on every lane, or false on every lane where that is true and the reverse.
static std::optional<bool> isInvertedGuard(Value condition, unsigned size,
                                           llvm::function_ref<bool(unsigned)> hasSource) {
  std::optional<bool> isInverted;
  for (unsigned lane = 0; lane < size; ++lane) {
    std::optional<APInt> holds = evaluateAtLane(condition, lane, size);
    if (!holds || isInverted.value_or(holds->getBoolValue() != hasSource(lane)) !=
                      (holds->getBoolValue() != hasSource(lane)))
      return std::nullopt;
    isInverted = holds->getBoolValue() != hasSource(lane);
  }
  return isInverted;
}

llvm::SmallVector<ShuffleGuard> findShuffleGuards(Value shuffled, unsigned size,
                                                  llvm::function_ref<bool(unsigned lane)> hasSource) {
  // A combination is some operations long; a chain of steps is not followed to its end.
  constexpr unsigned maxOps = 24;
  llvm::SmallVector<ShuffleGuard> guards;
  llvm::SmallSetVector<Operation *, maxOps> reached;
  auto reach = [&](Value value) {
    for (Operation *user : value.getUsers())
      if (isa<arith::ArithDialect>(user->getDialect()) && reached.size() < maxOps)
        reached.insert(user);
  };
  reach(shuffled);
  for (unsigned i = 0; i < reached.size(); ++i) {
    Operation *op = reached[i];
    if (auto select = dyn_cast<arith::SelectOp>(op))
      if (std::optional<bool> isInverted = isInvertedGuard(select.getCondition(), size, hasSource)) {
        guards.push_back({&select.getConditionMutable(), *isInverted});
        continue;
      }
    for (Value result : op->getResults())
      reach(result);
  }
  return guards;
}

} // namespace qd
