//===- LaneMasks.cpp - masks with a bit a lane ----------------------------------------===//
//
// Purpose: lane masks are arithmetic, unless a register holds them; a tile's ballot is the subgroup's, cut:
//
//   %m = qd.subgroup.lanemask_lt : i64      ->   (1 << lane) - 1
//   %m = qd.subgroup.ballot %p tile(8)      ->   (ballot >> (lane & -8)) & 255
//
//===----------------------------------------------------------------------===//

#include "passes/LaneMasks.h"

#include "passes/IntegerBuilder.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

//===----------------------------------------------------------------------===//
// Ballots
//===----------------------------------------------------------------------===//

/// An integer with a bit for each of `lanes` lanes, in the width that is cheapest to compute with.
static Type getMaskType(const IntegerBuilder &i, int32_t lanes) { return lanes <= 32 ? i.i32 : i.i64; }

static int64_t getFullMask(int32_t lanes) { return llvm::maskTrailingOnes<uint64_t>(lanes); }

Value buildTileBits(const LaneBuilder &at, Value mask, int32_t lanes) {
  IntegerBuilder i(at);
  if (isWholeSubgroup(i.shape, lanes))
    return i.cast(mask, getMaskType(i, lanes));
  // Half the work on targets whose registers have 32 bits.
  mask = i.cast(mask, getMaskType(i, i.shape.subgroupSize));
  Value tileStart = i.bitAnd(LaneIdOp::create(i.b, i.loc, i.i32), -lanes);
  Value moved = i.cast(i.shrU(mask, i.cast(tileStart, mask.getType())), getMaskType(i, lanes));
  return lanes == 32 ? moved : i.bitAnd(moved, getFullMask(lanes));
}

Value buildPresentMask(const LaneBuilder &at, Type type, int32_t lanes) {
  IntegerBuilder i(at);
  int32_t partial = i.shape.getPartialLanes();
  if (!partial || !isWholeSubgroup(i.shape, lanes))
    return i.constant(getFullMask(std::min(lanes, i.shape.subgroupSize)), type);
  if (i.shape.threads < i.shape.subgroupSize)
    return i.constant(getFullMask(partial), type);
  Value thread = ThreadIndexOp::create(i.b, i.loc, i.i32);
  Value isLast = i.compare(arith::CmpIPredicate::uge, thread, i.shape.threads - partial);
  return i.select(isLast, i.constant(getFullMask(partial), type), i.constant(getFullMask(i.shape.subgroupSize), type));
}

Value buildBallot(const LaneBuilder &at, Value predicate, int32_t lanes) {
  IntegerBuilder i(at);
  if (lanes == 1)
    return i.cast(predicate, i.i64);
  Value ballot = BallotOp::create(i.b, i.loc, predicate);
  return isWholeSubgroup(i.shape, lanes) ? ballot : i.cast(buildTileBits(i, ballot, lanes), i.i64);
}

Value buildBallotFirstN(const LaneBuilder &at, BallotFirstNOp op) {
  IntegerBuilder i(at);
  int32_t n = op.getN();
  Value ballot = i.cast(BallotOp::create(i.b, i.loc, op.getPredicate()), i.i32);
  return n == 32 || n >= i.shape.subgroupSize ? ballot : i.bitAnd(ballot, getFullMask(n));
}

//===----------------------------------------------------------------------===//
// Lane masks
//===----------------------------------------------------------------------===//

/// The mask of a lane; shifted out bits are meant to be lost.
static Value buildMaskOf(const IntegerBuilder &i, Operation *op, Type type, Value lane) {
  lane = i.cast(lane, type);
  auto ones = [&](int64_t start) { return i.shl(i.constant(start, type), lane); };
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](LaneMaskLtOp) { return i.sub(ones(1), 1); })
      .Case([&](LaneMaskLeOp) { return i.sub(ones(2), 1); })
      .Case([&](LaneMaskEqOp) { return ones(1); })
      .Case([&](LaneMaskGeOp) { return ones(-1); })
      .Case([&](LaneMaskGtOp) { return ones(-2); });
}

Value buildLaneMask(const LaneBuilder &at, const Target &target, Operation *op, int32_t lanes) {
  IntegerBuilder i(at);
  Type type = op->getResult(0).getType();
  if (op->getNumOperands())
    return buildMaskOf(i, op, type, op->getOperand(0));
  bool isInSubgroup = lanes == i.shape.subgroupSize || (lanes < i.shape.subgroupSize && lanes >= i.shape.threads);
  if (isInSubgroup && target.has(LaneMaskRegister)) {
    if (type == i.i32 && !op->hasAttr("tile"))
      return {};
    OperationState state(op->getLoc(), op->getName());
    state.addTypes(i.i32);
    Value mask = i.cast(i.b.create(state)->getResult(0), type);
    // Bits above the subgroup's are compared as well.
    bool holdsAbove = isa<LaneMaskGeOp, LaneMaskGtOp>(op) && type != i.i32;
    return holdsAbove ? i.bitOr(mask, int64_t(~uint64_t(0) << 32)) : mask;
  }
  Value lane = lanes > i.shape.subgroupSize ? ThreadIndexOp::create(i.b, i.loc, i.i32).getResult()
                                          : LaneIdOp::create(i.b, i.loc, i.i32).getResult();
  return buildMaskOf(i, op, type, isInSubgroup ? lane : i.bitAnd(lane, lanes - 1));
}

} // namespace qd
