//===- Scan.cpp - scans inside a subgroup ---------------------------------------------===//
//
// Purpose: the steps of a scan. Before the step of distance d a lane holds its own value and those of the d - 1 lanes
// below it, after it twice as many:
//
//   %r = qd.subgroup.inclusive_scan add %v tile(4)
//     ->
//   %a = qd.subgroup.shuffle_up %v, 1 tile(4) poison_edge   %b = arith.addi %a, %v
//   %c = arith.select %below >= 1, %b, %v                   and the same for 2
//
// %below is how many lanes the scan has below the lane: its number or, where segments begin at the bits of a ballot,
// the distance to the nearest of those. Neither needs an identity. Where a target moves values cheaply within rows of
// lanes only, a step across rows reads the last lane of the lower rows instead. Where lanes are elements of a vector, a
// value that changes nothing moves in from below: one instruction with the shuffle.
//
//===----------------------------------------------------------------------===//

#include "passes/Scan.h"

#include "passes/Redux.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace qd {

using Predicate = arith::CmpIPredicate;

/// A step after which the upper half of each group of 2d lanes has the values of the lower, from its last lane.
static Values buildHalfStep(const LaneBuilder &builder, const Combiner &combiner, Values values, Value below,
                            int32_t distance) {
  Value lane = builder.lane(builder.shape.subgroupSize);
  Values lower = builder.broadcast(values, distance - 1, 2 * distance);
  auto reachesLower = [&]() -> Value {
    Value isUpper = builder.compare(Predicate::ne, builder.create<arith::AndIOp>(lane, distance), int64_t(0));
    Value reaches =
        builder.compare(Predicate::ugt, below, builder.create<arith::AndIOp>(lane, int64_t(distance - 1)));
    return builder.create<arith::AndIOp>(isUpper, reaches);
  };
  Values combined = combiner.combineWhere(builder.b, builder.loc, reachesLower, lower, values);
  return builder.select(reachesLower(), combined, values);
}

/// Whether a constant combines with any value to that value, a NaN's bits too.
static bool hasExactNeutral(const Combiner &combiner, ValueRange values) {
  std::optional<Kind> kind = combiner.getKind();
  return kind && (values.front().getType().isInteger() || kind == Kind::add);
}

/// Combines each lane's values with those of the lanes `below` it. Where a target has rows, its lanes look below
/// within them, and then all lanes of a row at the last lane of another. `exclusive`, if given, becomes what is
/// combined with the lane's own values, on lanes that have any below; the target has no rows then.
static Values buildSteps(const LaneBuilder &builder, const Combiner &combiner, Values values, Value below,
                         int32_t lanes, Values *exclusive = nullptr) {
  int32_t rowLanes = builder.shape.rowLanes;
  // Tiles that the steps name must not straddle the block's end.
  bool hasRows = rowLanes && rowLanes < lanes && !builder.shape.getPartialLanes(lanes);
  Value inRow = below;
  if (hasRows)
    inRow = builder.create<arith::MinUIOp>(below, builder.lane(rowLanes));
  for (int32_t distance = 1; distance < lanes && distance < builder.shape.threads; distance *= 2) {
    if (hasRows && distance >= rowLanes) {
      values = buildHalfStep(builder, combiner, values, below, distance);
      continue;
    }
    int32_t group = hasRows ? rowLanes : lanes;
    Values lower = builder.shift<ShuffleUpOp>(values, distance, group, combiner.takesPoison());
    auto hasLower = [&] { return builder.compare(Predicate::uge, inRow, distance); };
    if (exclusive && exclusive->empty())
      *exclusive = lower;
    else if (exclusive)
      *exclusive = builder.select(hasLower(), combiner.combine(builder.b, builder.loc, lower, *exclusive), *exclusive);
    if (builder.shape.isVector && !exclusive && hasExactNeutral(combiner, values)) {
      Values neutral = combiner.getNeutral(builder.b, builder.loc, values.front().getType());
      values = combiner.combine(builder.b, builder.loc, builder.select(hasLower(), lower, neutral), values);
      continue;
    }
    Values combined = combiner.combineWhere(builder.b, builder.loc, hasLower, lower, values);
    values = builder.select(hasLower(), combined, values);
  }
  return values;
}

bool takesBothScans(const LaneBuilder &builder, const Combiner &combiner, ValueRange values) {
  Type type = values.front().getType();
  return combiner.getKind() && isa<FloatType>(type) && type.getIntOrFloatBitWidth() > 32 && !builder.shape.rowLanes &&
         (combiner.getKind() == Kind::add || combiner.getKind() == Kind::mul);
}

Values buildBothScans(const LaneBuilder &builder, const Combiner &combiner, Values values, int32_t lanes,
                      Values &exclusive) {
  return buildSteps(builder, combiner, values, builder.lane(lanes), lanes, &exclusive);
}

/// Below a row no move stops at a group's edge. Whole are those scans whose lowering weighs what was moved, masks it
/// with a constant of the lane, where zeros change nothing, or takes the sum of the lower group off a row's.
static bool hasRowScan(const BlockShape &shape, const Combiner &combiner, ValueRange values, int32_t lanes) {
  if (!hasRowKind(shape, combiner, values, lanes))
    return false;
  if (lanes >= shape.rowLanes)
    return true;
  Kind kind = *combiner.getKind();
  Type type = values.front().getType();
  unsigned width = type.getIntOrFloatBitWidth();
  if (isa<FloatType>(type))
    return kind == Kind::add && (width == 32 || width == 64);
  return kind == Kind::add || kind == Kind::xori || kind == Kind::ori;
}

Values buildNothing(const LaneBuilder &builder, const Combiner &combiner, Type type) {
  Value thread = ThreadIndexOp::create(builder.b, builder.loc, builder.i32);
  return builder.select(builder.compare(Predicate::eq, thread, int64_t(0)),
                        combiner.getIdentity(builder.b, builder.loc, type),
                        Values(combiner.getNeutral(builder.b, builder.loc, type)));
}

Values buildInclusiveScan(const LaneBuilder &builder, const Combiner &combiner, Values values, int32_t lanes) {
  const BlockShape &shape = builder.shape;
  if (Value native = buildGroupScan<InclusiveScanOp>(builder, combiner, values, lanes))
    return native;
  lanes = shape.narrowToBlock(lanes);
  if (hasRowScan(shape, combiner, values, lanes))
    return InclusiveScanOp::create(builder.b, builder.loc, *combiner.getKind(), values.front(),
                                   shape.getTileClause(lanes))
        ->getResult(0);
  return lanes == 1 ? values : buildSteps(builder, combiner, values, builder.lane(lanes), lanes);
}

Values buildExclusive(const LaneBuilder &builder, const Combiner &combiner, ValueRange own, ValueRange inclusive,
                      Value below, int32_t lanes) {
  if (combiner.isInvertible(own))
    return combiner.remove(builder.b, builder.loc, inclusive.front(), own.front());
  Values shifted = builder.shift<ShuffleUpOp>(inclusive, 1, lanes, /*poisonEdge=*/true);
  Values identity = combiner.getIdentity(builder.b, builder.loc, own.getTypes());
  return builder.select(builder.compare(Predicate::eq, below, int64_t(0)), identity, shifted);
}

Values buildExclusiveScan(const LaneBuilder &builder, const Combiner &combiner, Values values, int32_t lanes) {
  if (Value native = buildGroupScan<ExclusiveScanOp>(builder, combiner, values, lanes))
    return native;
  lanes = builder.shape.narrowToBlock(lanes);
  if (lanes == 1)
    return combiner.getIdentity(builder.b, builder.loc, ValueRange(values).getTypes());
  Value lane = builder.lane(lanes);
  if (takesBothScans(builder, combiner, values)) {
    Values exclusive;
    buildBothScans(builder, combiner, values, lanes, exclusive);
    Values identity = combiner.getIdentity(builder.b, builder.loc, ValueRange(values).getTypes());
    return builder.select(builder.compare(Predicate::eq, lane, int64_t(0)), identity, exclusive);
  }
  Values inclusive = buildInclusiveScan(builder, combiner, values, lanes);
  return buildExclusive(builder, combiner, values, inclusive, lane, lanes);
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

Segments::Segments(const LaneBuilder &builder, Value head, int32_t lanes) : builder(builder), lanes(lanes) {
  if (!head.getType().isInteger(1))
    head = builder.compare(Predicate::ne, head, int64_t(0));
  heads = builder.ballot(head);
  // With the own lane's bit on top, the zeros above the first one count the lanes down to the nearest head.
  int64_t top = heads.getType().getIntOrFloatBitWidth() - 1;
  Value up = builder.toWord(builder.create<arith::XOrIOp>(builder.lane(builder.shape.subgroupSize), top));
  upToOwn = builder.create<arith::ShLIOp>(heads, up);
  Value zeros = math::CountLeadingZerosOp::create(builder.b, builder.loc, upToOwn);
  below = builder.create<arith::MinUIOp>(builder.fromWord(zeros), builder.lane(lanes));
}

Value Segments::getLast() const {
  const BlockShape &shape = builder.shape;
  Value lane = builder.lane(lanes);
  // Two shifts: one of all bits has no meaning.
  Value above = builder.create<arith::ShRUIOp>(heads, builder.toWord(builder.lane(shape.subgroupSize)));
  above = builder.create<arith::ShRUIOp>(above, int64_t(1));
  Value distance = builder.fromWord(math::CountTrailingZerosOp::create(builder.b, builder.loc, above));
  Value room = builder.create<arith::XOrIOp>(lane, int64_t(lanes - 1));
  if (shape.getPartialLanes(lanes)) {
    Value thread = ThreadIndexOp::create(builder.b, builder.loc, builder.i32);
    Value present = arith::SubIOp::create(builder.b, builder.loc, builder.constant(shape.threads - 1), thread);
    room = shape.threads < lanes ? present : builder.create<arith::MinUIOp>(room, present);
  }
  return builder.create<arith::AddIOp>(lane, builder.create<arith::MinUIOp>(distance, room));
}

Values buildSegmentedSteps(const LaneBuilder &builder, const Combiner &combiner, Values values,
                           const Segments &segments, int32_t lanes) {
  return buildSteps(builder, combiner, values, segments.getBelow(), lanes);
}

Values buildSegmentedScan(const LaneBuilder &builder, const Combiner &combiner, Values values, Value head,
                          bool isExclusive, int32_t lanes) {
  lanes = builder.shape.narrowToBlock(lanes);
  if (lanes == 1)
    return isExclusive ? combiner.getIdentity(builder.b, builder.loc, ValueRange(values).getTypes()) : values;
  Segments segments(builder, head, lanes);
  Values inclusive = buildSegmentedSteps(builder, combiner, values, segments, lanes);
  return isExclusive ? buildExclusive(builder, combiner, values, inclusive, segments.getBelow(), lanes) : inclusive;
}

Values buildSegmentedReduceAll(const LaneBuilder &builder, const Combiner &combiner, Values values, Value head,
                               int32_t lanes) {
  lanes = builder.shape.narrowToBlock(lanes);
  if (lanes == 1)
    return values;
  Segments segments(builder, head, lanes);
  Values inclusive = buildSegmentedSteps(builder, combiner, values, segments, lanes);
  return builder.shuffle(inclusive, segments.getLast(), lanes);
}

} // namespace qd
