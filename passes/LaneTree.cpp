//===- LaneTree.cpp - reductions and votes inside a subgroup --------------------------===//
//
// Purpose: the tree of a reduction,
//
//   %r = qd.subgroup.reduce add %v tile(4)
//     ->
//   %a = qd.subgroup.shuffle_down %v, 1 tile(2) poison_edge   %b = arith.addf %v, %a
//   %c = qd.subgroup.shuffle_down %b, 2 tile(4) poison_edge   %r = arith.addf %b, %c
//
// and its butterfly, which uses shuffle_xor and leaves the result in every lane. After the step of distance d,
// lane i (a multiple of 2d) holds lanes [i, i + 2d) in order. Only those lanes count, and their source never leaves
// the aligned group of 2d lanes, so the shuffle names that group: the narrower, the cheaper on some targets.
// In the butterfly half of the lanes hold the higher values: operands that must not change places are selected.
// Where lanes are elements of a vector, the largest distance comes first if operands may change places: from then on
// half a vector is left. All lanes get the result of lane 0.
//
// A vote of a tile is one ballot, of which a lane looks at its own tile's bits:
//
//   %any = qd.subgroup.any %p tile(8)
//     ->
//   %b = qd.subgroup.ballot %p   %own = %b & (255 << (lane & -8))   %any = %own != 0
//
//===----------------------------------------------------------------------===//

#include "passes/LaneTree.h"

#include "passes/Redux.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

/// Whether the tree of `lanes` lanes ends with reads of its groups of `distance` lanes.
static bool endsWithReads(const BlockShape &shape, int32_t lanes, int32_t distance) {
  return distance == shape.readLanes && lanes == shape.subgroupSize && !shape.getPartialLanes();
}

/// Combines the values of the first lanes of all groups, in every lane of the subgroup.
static Values buildReads(const LaneBuilder &builder, const Combiner &combiner, ValueRange values) {
  const BlockShape &shape = builder.shape;
  SmallVector<Values> groups;
  for (int32_t lane = 0; lane < shape.subgroupSize; lane += shape.readLanes)
    groups.push_back(builder.broadcast(values, lane, shape.subgroupSize));
  for (; groups.size() > 1; groups.resize(groups.size() / 2))
    for (size_t i = 0; i < groups.size() / 2; ++i)
      groups[i] = combiner.combine(builder.b, builder.loc, groups[2 * i], groups[2 * i + 1]);
  return groups.front();
}

/// Combines halves of a vector, of half a vector, and so on.
static Values buildReduceHalves(const LaneBuilder &builder, const Combiner &combiner, Values values, int32_t lanes) {
  for (int32_t distance = lanes / 2; distance; distance /= 2) {
    Values higher = builder.shift<ShuffleDownOp>(values, distance, lanes, combiner.takesPoison());
    auto holdsResult = [&] {
      return builder.compare(arith::CmpIPredicate::ult, builder.lane(lanes), int64_t(distance));
    };
    values = combiner.combineWhere(builder.b, builder.loc, holdsResult, values, higher);
  }
  return values;
}

Values buildReduce(const LaneBuilder &builder, const Combiner &combiner, Values values, int32_t lanes) {
  const BlockShape &shape = builder.shape;
  if (Value native = buildNativeReduce(builder, combiner, values, lanes))
    return native;
  lanes = shape.narrowToBlock(lanes);
  if (shape.isVector && combiner.isCommutative() && !shape.getPartialLanes(lanes))
    return buildReduceHalves(builder, combiner, values, lanes);
  if (hasRowKind(shape, combiner, values, lanes))
    return ReduceOp::create(builder.b, builder.loc, *combiner.getKind(), values.front(), shape.getTileClause(lanes))
        ->getResult(0);
  int32_t partial = shape.getPartialLanes(lanes);
  Value threadIndex;
  // A distance that no thread of the block spans has nothing to combine.
  for (int32_t distance = 1; distance < lanes && distance < shape.threads; distance *= 2) {
    if (endsWithReads(shape, lanes, distance))
      return buildReads(builder, combiner, values);
    // Groups that straddle the block's end are no tiles.
    int32_t group = shape.threads % (2 * distance) ? shape.subgroupSize : 2 * distance;
    Values higher = builder.shift<ShuffleDownOp>(values, distance, group, combiner.takesPoison());
    // Where the present lanes are whole groups of 2d, each present lane that counts has its partner.
    auto holdsResult = [&] {
      return builder.compare(arith::CmpIPredicate::eq, builder.lane(2 * distance), int64_t(0));
    };
    if (partial % (2 * distance) == 0) {
      values = combiner.combineWhere(builder.b, builder.loc, holdsResult, values, higher);
      continue;
    }
    if (!threadIndex)
      threadIndex = builder.thread();
    Value hasPartner = builder.compare(arith::CmpIPredicate::slt, threadIndex, shape.threads - distance);
    if (!combiner.takesPoison())
      higher = builder.select(hasPartner, higher, values);
    auto counts = [&]() -> Value { return builder.create<arith::AndIOp>(hasPartner, holdsResult()); };
    Values combined = combiner.combineWhere(builder.b, builder.loc, counts, values, higher);
    values = builder.select(hasPartner, combined, values);
  }
  return values;
}

Values buildReduceAll(const LaneBuilder &builder, const Combiner &combiner, Values values, int32_t lanes) {
  const BlockShape &shape = builder.shape;
  if (Value native = buildNativeReduce(builder, combiner, values, lanes))
    return native;
  lanes = shape.narrowToBlock(lanes);
  if (hasRowKind(shape, combiner, values, lanes))
    return ReduceAllOp::create(builder.b, builder.loc, *combiner.getKind(), values.front(), shape.getTileClause(lanes))
        ->getResult(0);
  // A butterfly would read missing lanes on the way to lanes that are present.
  if (shape.getPartialLanes(lanes) || (shape.isVector && lanes == shape.subgroupSize)) {
    Values reduced = buildReduce(builder, combiner, values, lanes);
    return builder.broadcast(reduced, int32_t(0), lanes);
  }
  Value lane;
  for (int32_t distance = 1; distance < lanes; distance *= 2) {
    if (endsWithReads(shape, lanes, distance))
      return buildReads(builder, combiner, values);
    // All lanes of the other group hold the same. Below 16 the group read backwards is one instruction on every
    // AMD chip, which a distance of 4 is not.
    int32_t mask = distance < 16 ? 2 * distance - 1 : distance;
    Values other = builder.shuffleXor(values, mask);
    if (combiner.isCommutative()) {
      values = combiner.combine(builder.b, builder.loc, values, other);
      continue;
    }
    if (!lane)
      lane = builder.lane(shape.subgroupSize);
    Value isLower =
        builder.compare(arith::CmpIPredicate::eq, builder.create<arith::AndIOp>(lane, distance), int64_t(0));
    Values lower = builder.select(isLower, values, other), higher = builder.select(isLower, other, values);
    values = combiner.combine(builder.b, builder.loc, lower, higher);
  }
  return values;
}

/// Whether each aligned group is a whole subgroup or all of a block.
static bool isWhole(const BlockShape &shape, int32_t lanes) {
  return lanes == shape.subgroupSize || lanes == shape.threads;
}

GroupBallot buildGroupBallot(const LaneBuilder &builder, Value predicate, int32_t lanes) {
  Value bits = builder.ballot(predicate);
  if (isWhole(builder.shape, lanes))
    return {bits, Value()};
  Value start = builder.create<arith::AndIOp>(builder.lane(builder.shape.subgroupSize), int64_t(-lanes));
  Value ones = builder.constant((int64_t(1) << lanes) - 1, bits.getType());
  Value mask = builder.create<arith::ShLIOp>(ones, builder.toWord(start));
  return {builder.create<arith::AndIOp>(bits, mask), mask};
}

Value buildVote(const LaneBuilder &builder, bool isAll, Value predicate, int32_t lanes) {
  if (lanes == 1)
    return predicate;
  Type i1 = builder.b.getI1Type();
  // Lanes that a block of one tile lacks do not vote.
  if (isWhole(builder.shape, lanes)) {
    if (isAll)
      return AllOp::create(builder.b, builder.loc, i1, predicate, IntegerAttr());
    return AnyOp::create(builder.b, builder.loc, i1, predicate, IntegerAttr());
  }
  GroupBallot own = buildGroupBallot(builder, predicate, lanes);
  if (isAll)
    return builder.compare(arith::CmpIPredicate::eq, own.bits, own.mask);
  return builder.compare(arith::CmpIPredicate::ne, own.bits, int64_t(0));
}

} // namespace qd
