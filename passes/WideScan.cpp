//===- WideScan.cpp - scans of tiles wider than the subgroup --------------------------===//
//
// Purpose: scans of each subgroup, to which the values of the subgroups below are added:
//
//   %r = qd.subgroup.inclusive_scan add %v tile(128)
//     ->
//   %s = qd.subgroup.inclusive_scan add %v
//   qd.store %s, %totals[%subgroup] if LAST LANE   qd.block.sync   %t = qd.load %totals[%lane]
//   %p = qd.subgroup.inclusive_scan add %t tile(4)   %carry = qd.subgroup.shuffle %p, %subgroup - 1
//   %r = FIRST SUBGROUP ? %s : %carry + %s
//
// Where a tile has more subgroups than lanes fit a subgroup, as many subgroups as there are lanes form a group, whose
// total goes the same way to the groups above it: a barrier for each level. In segments a carry only reaches lanes
// that have no head below them.
//
//===----------------------------------------------------------------------===//

#include "passes/WideScan.h"

#include "passes/Scan.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

using Predicate = arith::CmpIPredicate;

namespace {
/// Builds the expansion of one op.
class WideScan {
public:
  template <typename Op>
  WideScan(Op op, int32_t lanes, const LaneBuilder &builder, Staging &staging)
      : op(op), lanes(lanes), at(builder), staging(staging), combiner(op), size(builder.shape.subgroupSize),
        own(ValueRange(op.getValues())), thread(ThreadIndexOp::create(at.b, at.loc, at.i32)),
        position(inTile(thread)) {}

  Values scan(Value head, bool isExclusive);
  Values reduceSegments(Value head);

private:
  /// What a subgroup, or a group of them, tells those around it.
  struct Group {
    Values totals;   ///< of its last segment, in the last lane of its first subgroup
    Value hasHead;   ///< in segments
    Value firstHead; ///< where the end of segments is wanted: its place in the tile, or `lanes` for none
  };

  bool scanSubgroups(Value head, bool isExclusive, bool wantsEnds);
  bool addCarries(Group group);
  void addCarry(ValueRange carry, Value applies);
  /// The first of the heads whose bits are given, among the lanes' `heads`; `lanes` for none.
  Value findHead(Value bits, Value heads, int32_t count);

  Value inTile(Value number) { return lanes == at.shape.threads ? number : bitAnd(number, lanes - 1); }
  Value bitAnd(Value value, int64_t mask) { return at.create<arith::AndIOp>(value, mask); }
  Value both(Value a, Value b) { return a ? at.create<arith::AndIOp>(a, b) : b; }
  Value isZero(Value word) { return at.compare(Predicate::eq, word, int64_t(0)); }
  Value isNotZero(Value word) { return at.compare(Predicate::ne, word, int64_t(0)); }
  Value countTrailingZeros(Value word) {
    return at.fromWord(math::CountTrailingZerosOp::create(at.b, at.loc, word));
  }
  /// The bits of the lanes above `lane`. Two shifts: one of all bits has no meaning.
  Value dropUpTo(Value bits, Value lane) {
    return at.create<arith::ShRUIOp>(at.create<arith::ShRUIOp>(bits, at.toWord(lane)), int64_t(1));
  }

  Operation *op;
  int32_t lanes;
  const LaneBuilder &at;
  Staging &staging;
  Combiner combiner;
  int32_t size;
  Values own;
  Value thread, position;

  Values result;  ///< grows with each level's carry
  Value isEmpty;  ///< where the scan is exclusive: whether a lane's result has no value yet
  Value isOpen;   ///< in segments: whether a carry may reach the lane
  Value nextHead; ///< where the end of segments is wanted: the place of the first head above the lane
};
} // namespace

Value WideScan::findHead(Value bits, Value heads, int32_t count) {
  Value lane = bitAnd(countTrailingZeros(bits), count - 1);
  Value found = at.shuffle(heads, lane, count).front();
  return at.select(isZero(bits), at.constant(lanes), found).front();
}

void WideScan::addCarry(ValueRange carry, Value applies) {
  auto joins = [&]() -> Value {
    if (!isEmpty)
      return applies;
    return at.create<arith::AndIOp>(applies,
                                    at.create<arith::XOrIOp>(isEmpty, at.constant(-1, isEmpty.getType())));
  };
  Values combined = combiner.combineWhere(at.b, at.loc, joins, carry, result);
  if (isEmpty) {
    combined = at.select(isEmpty, carry, combined);
    Value stays = at.create<arith::XOrIOp>(applies, at.constant(-1, applies.getType()));
    isEmpty = at.create<arith::AndIOp>(isEmpty, stays);
  }
  result = at.select(applies, combined, result);
}

/// Tells the group's totals to those above it in the tile, then the totals of groups of groups.
bool WideScan::addCarries(Group group) {
  for (int32_t groupLanes = size; groupLanes < lanes; groupLanes *= size) {
    int32_t groups = lanes / groupLanes, count = std::min(groups, size);
    bool isLast = groups <= size;
    Values published = group.totals;
    Value told = group.firstHead ? group.firstHead : group.hasHead;
    if (told)
      published.push_back(told);
    Stage stage = staging.acquire(at, op, ValueRange(published).getTypes(), at.shape.threads / groupLanes);
    if (!stage)
      return false;
    Value number = at.create<arith::ShRUIOp>(thread, int64_t(llvm::Log2_32(groupLanes)));
    Value isWriter = at.compare(Predicate::eq, bitAnd(thread, groupLanes - 1), int64_t(size - 1));
    stage.store(at, published, number, isWriter);
    staging.publish(at, stage);

    Value start = bitAnd(number, -count), place = bitAnd(number, count - 1);
    auto load = [&](Value index) {
      Values loaded = stage.load(at, index);
      Value heads = told ? loaded.pop_back_val() : Value();
      return std::pair(loaded, heads);
    };
    Value isHigher = isNotZero(place);
    if (count == 2) {
      auto [carry, unused] = load(start);
      addCarry(carry, both(isOpen, isHigher));
      if (nextHead) {
        Value above = load(at.create<arith::OrIOp>(start, int64_t(1))).second;
        Value next = arith::SelectOp::create(at.b, at.loc, isHigher, at.constant(lanes), above);
        nextHead = at.create<arith::MinUIOp>(nextHead, next);
      }
      return true;
    }

    // Each aligned group of `count` lanes now holds the totals in order.
    Value lane = at.lane(size);
    auto [totals, heads] = load(at.create<arith::OrIOp>(start, bitAnd(lane, count - 1)));
    Values sums;
    Value bits;
    if (told) {
      Value isHead = group.firstHead ? at.compare(Predicate::ult, heads, lanes) : heads;
      Segments segments(at, isHead, count);
      sums = buildSegmentedSteps(at, combiner, totals, segments, count);
      bits = segments.getHeads();
      if (count < size)
        bits = bitAnd(bits, (int64_t(1) << count) - 1);
    } else {
      sums = buildInclusiveScan(at, combiner, totals, count);
    }
    Value before = bitAnd(at.create<arith::AddIOp>(place, int64_t(count - 1)), count - 1);
    addCarry(at.shuffle(sums, before, count), both(isOpen, isHigher));
    if (nextHead) {
      Value above = dropUpTo(bits, place);
      // Back in the places that the lanes have.
      Value back = at.create<arith::ShLIOp>(at.create<arith::ShLIOp>(above, at.toWord(place)), int64_t(1));
      nextHead = at.create<arith::MinUIOp>(nextHead, findHead(back, heads, count));
    }
    if (isLast)
      return true;
    group.totals = sums;
    if (!told)
      continue;
    Value ones = at.constant(1, bits.getType());
    Value below = at.create<arith::SubIOp>(at.create<arith::ShLIOp>(ones, at.toWord(place)), int64_t(1));
    isOpen = both(isOpen, isZero(at.create<arith::AndIOp>(bits, below)));
    group.hasHead = isNotZero(bits);
    if (group.firstHead)
      group.firstHead = findHead(bits, heads, count);
  }
  return true;
}

bool WideScan::scanSubgroups(Value head, bool isExclusive, bool wantsEnds) {
  Value lane = at.lane(size), below = lane;
  Group group;
  if (head) {
    Segments segments(at, head, size);
    below = segments.getBelow();
    isOpen = segments.getOpen();
    group.totals = buildSegmentedSteps(at, combiner, own, segments, size);
    group.hasHead = isNotZero(segments.getHeads());
    if (wantsEnds) {
      Value none = at.constant(lanes), start = bitAnd(position, -size), bits = segments.getHeads();
      Value first = at.create<arith::OrIOp>(start, bitAnd(countTrailingZeros(bits), size - 1));
      group.firstHead = arith::SelectOp::create(at.b, at.loc, group.hasHead, first, none);
      Value above = dropUpTo(bits, lane);
      Value next = at.create<arith::AddIOp>(at.create<arith::AddIOp>(position, int64_t(1)), countTrailingZeros(above));
      nextHead = arith::SelectOp::create(at.b, at.loc, isNotZero(above), next, none);
    }
  } else {
    group.totals = buildInclusiveScan(at, combiner, own, size);
  }
  result = group.totals;
  if (isExclusive) {
    result = at.shift<ShuffleUpOp>(result, 1, size, combiner.takesPoison());
    isEmpty = isZero(below);
  }
  return addCarries(group);
}

Values WideScan::scan(Value head, bool isExclusive) {
  bool subtracts = isExclusive && combiner.isInvertible(own);
  if (!scanSubgroups(head, isExclusive && !subtracts, /*wantsEnds=*/false))
    return {};
  if (subtracts)
    return combiner.remove(at.b, at.loc, result.front(), own.front());
  if (!isExclusive)
    return result;
  Values identity = combiner.getIdentity(at.b, at.loc, ValueRange(own).getTypes());
  return at.select(isEmpty, identity, result);
}

/// The inclusive scan, of which each lane reads its segment's last lane.
Values WideScan::reduceSegments(Value head) {
  if (!scanSubgroups(head, /*isExclusive=*/false, /*wantsEnds=*/true))
    return {};
  Value last = at.create<arith::SubIOp>(nextHead, int64_t(1));
  if (lanes != at.shape.threads)
    last = at.create<arith::OrIOp>(bitAnd(thread, -lanes), last);
  return staging.exchange(at, op, result, thread, last);
}

bool isScan(Operation *op) {
  return isa<InclusiveScanOp, ExclusiveScanOp, SegmentedScanOp, SegmentedReduceAllOp>(op);
}

Values expandWideScan(Operation *op, int32_t lanes, const LaneBuilder &builder, Staging &staging) {
  auto make = [&](auto scan) { return WideScan(scan, lanes, builder, staging); };
  return TypeSwitch<Operation *, Values>(op)
      .Case([&](InclusiveScanOp scan) { return make(scan).scan(Value(), /*isExclusive=*/false); })
      .Case([&](ExclusiveScanOp scan) { return make(scan).scan(Value(), /*isExclusive=*/true); })
      .Case([&](SegmentedScanOp scan) { return make(scan).scan(scan.getHead(), scan.getExclusive()); })
      .Case([&](SegmentedReduceAllOp reduce) { return make(reduce).reduceSegments(reduce.getHead()); })
      .Default([](Operation *) { return Values(); });
}

} // namespace qd
