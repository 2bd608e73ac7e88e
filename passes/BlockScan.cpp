//===- BlockScan.cpp - scans of a whole block ---------------------------------------------===//
//
// Purpose: the scan of a block of several subgroups:
//
//   %r = qd.block.inclusive_scan add %v
//     ->
//   %s = qd.subgroup.inclusive_scan add %v
//   qd.store %s, %totals[%subgroup] if LAST LANE   qd.block.sync
//   %carry = TOTALS OF THE SUBGROUPS BELOW   %r = FIRST SUBGROUP ? %s : %carry + %s
//
// Every subgroup adds up those below for itself, so that there is one barrier: few totals one after the other, or of
// two words without selects, from a row that begins with neutral values; more by a scan of lanes, each of which takes a
// run of neighbouring totals where there are not enough of them. In segments a carry starts anew at each subgroup with
// a head, and only reaches lanes that have no head below them.
//
// Warps load a total a lane, those below the own warp, and reduce them in one instruction, or load four a lane, the
// same in each group of lanes that has all of them, and exchange sums. Where the last group of a partial warp lacks
// lanes, all groups read the first one's. An exclusive scan takes the last exchange for its own move: a lane tells the
// next one its scan with its half of the carry, and there the other half is added. Values of two words take two
// barriers: TileScan.cpp.
//
//===----------------------------------------------------------------------===//

#include "passes/BlockScan.h"

#include "passes/Redux.h"
#include "passes/Runs.h"
#include "passes/Scan.h"
#include "passes/TileScan.h"

using namespace mlir;

namespace qd {

using Predicate = arith::CmpIPredicate;

/// Totals that each lane loads itself.
static constexpr int32_t fewTotals = 8;
/// Totals that AMD's chips select. So many and more take longer than loads from a place of the own subgroup; where
/// reading a lane is what shuffles cost least, loads cost more.
static constexpr int32_t selectedTotals = 3, selectedTotalsOfReaders = 5;
/// Totals that a lane of a warp loads at once.
static constexpr int32_t totalsOfLane = 4;

namespace {
/// Builds the expansion of one op.
class BlockScan {
public:
  BlockScan(const LaneBuilder &at, Operation *user, const Combiner &combiner, Values own, Value head, Staging &staging)
      : at(at), user(user), combiner(combiner), own(std::move(own)), head(head), staging(staging),
        size(at.shape.subgroupSize), subgroup(at.subgroup(ThreadIndexOp::create(at.b, at.loc, at.i32))) {}

  Values scan(bool isExclusive);

private:
  /// What is carried from subgroup to subgroup. In segments, `hasHead` says that it does not hold all of those below.
  struct Carry {
    Values values;
    Value hasHead;

    Values pack() const {
      Values packed = values;
      if (hasHead)
        packed.push_back(hasHead);
      return packed;
    }
  };
  Carry unpack(Values packed) const {
    Value hasHead = head ? packed.pop_back_val() : Value();
    return {std::move(packed), hasHead};
  }

  Value isBelow(Value place) { return at.compare(Predicate::ult, place, subgroup); }
  Carry append(const Carry &carry, const Carry &next, Value place);
  Values addUp(const Stage &stage, const Runs &runs);
  Values addUpByLanes(const Stage &stage, const Runs &runs);
  Values finish(Values result, ValueRange carry, Value isEmpty, Value isOpen);
  bool hasPads(const Runs &runs) const;
  Values addUpPadded(const Stage &stage, int32_t pads);
  bool hasRowTotals(const Runs &runs) const;
  Values addUpRowTotals(const Stage &stage, const Runs &runs);
  bool isSpread(const Runs &runs) const;
  bool isNative(const Runs &runs) const;
  int32_t getGroup(const Runs &runs) const;
  Values addUpSpread(const Stage &stage, const Runs &runs, int32_t parts);
  Values shiftSpread(Values result, ValueRange half);
  Values finishNeutral(Values result, ValueRange carry, Value isEmpty);

  const LaneBuilder &at;
  Operation *user;
  const Combiner &combiner;
  Values own;
  Value head;
  Staging &staging;
  int32_t size;
  Value subgroup;
};
} // namespace

/// The carry with what the subgroup `place` adds, where that is below the own one.
BlockScan::Carry BlockScan::append(const Carry &carry, const Carry &next, Value place) {
  // By selects: what nobody has written behind the totals is poison, and would poison an `and`.
  Value none = head ? at.constant(0, next.hasHead.getType()) : Value();
  auto joins = [&]() -> Value {
    if (!head)
      return isBelow(place);
    Value goesOn = at.create<arith::XOrIOp>(next.hasHead, at.constant(-1, next.hasHead.getType()));
    return at.select(isBelow(place), goesOn, none).front();
  };
  Values higher = next.values;
  if (!combiner.takesPoison())
    higher = at.select(isBelow(place), higher, carry.values);
  Values combined = combiner.combineWhere(at.b, at.loc, joins, carry.values, higher);
  if (!head)
    return {at.select(joins(), combined, carry.values), Value()};
  combined = at.select(next.hasHead, next.values, combined);
  Value ends = at.select(isBelow(place), next.hasHead, none).front();
  return {at.select(isBelow(place), combined, carry.values), at.create<arith::OrIOp>(carry.hasHead, ends)};
}

/// Each lane adds up its run, as far as it lies below the own subgroup, and then the lanes do; the lane of the last
/// total below has the carry.
Values BlockScan::addUpByLanes(const Stage &stage, const Runs &runs) {
  Value start = runs.getStart(at);
  Carry run = unpack(runs.walk(at, start, stage.load(at, start), [&](Value place, Values carried) {
    return append(unpack(std::move(carried)), unpack(stage.load(at, place)), place).pack();
  }));
  // To the steps, other lanes look as if the block did not have them.
  BlockShape shape = at.shape;
  shape.threads = runs.lanes;
  LaneBuilder lanes(at.b, at.loc, shape);
  Values sums = run.values;
  if (head)
    sums = buildSegmentedSteps(lanes, combiner, sums, Segments(lanes, run.hasHead, size), size);
  else if (runs.lanes > 1)
    sums = buildInclusiveScan(lanes, combiner, sums, size);
  Value last = at.create<arith::MaxSIOp>(at.create<arith::SubIOp>(subgroup, int64_t(1)), int64_t(0));
  if (runs.length > 1)
    last = at.create<arith::DivUIOp>(last, int64_t(runs.length));
  return at.broadcast(sums, last, size);
}

Values BlockScan::addUp(const Stage &stage, const Runs &runs) {
  if (runs.count > fewTotals)
    return addUpByLanes(stage, runs);
  SmallVector<Values> totals;
  for (int32_t i = 0; i < runs.count; ++i)
    totals.push_back(stage.load(at, at.constant(i)));
  Carry carry = unpack(totals.front());
  for (int32_t i = 1; i < runs.count; ++i)
    carry = append(carry, unpack(totals[i]), at.constant(i));
  return carry.values;
}

/// The subgroup's scan with what is carried to it; `result` is exclusive where `isEmpty`, of the lanes with nothing
/// below them in their subgroup, is given.
Values BlockScan::finish(Values result, ValueRange carry, Value isEmpty, Value isOpen) {
  auto applies = [&]() -> Value {
    Value isHigher = at.compare(Predicate::ne, subgroup, int64_t(0));
    return isOpen ? at.create<arith::AndIOp>(isHigher, isOpen) : isHigher;
  };
  auto joins = [&]() -> Value {
    if (!isEmpty)
      return applies();
    return at.create<arith::AndIOp>(applies(), at.create<arith::XOrIOp>(isEmpty, at.constant(-1, isEmpty.getType())));
  };
  Values combined = combiner.combineWhere(at.b, at.loc, joins, carry, result);
  if (isEmpty) {
    combined = at.select(isEmpty, carry, combined);
    result = at.select(isEmpty, combiner.getIdentity(at.b, at.loc, ValueRange(own).getTypes()), result);
  }
  return at.select(applies(), combined, result);
}

/// Selections of values of two words cost more than a few more loads: there the totals stand behind as many values
/// that change nothing, and a window that ends before the own subgroup's total holds all that counts. The window
/// starts at an even place, so that loads go in pairs; where it thereby lacks its last total, that is loaded by itself.
/// AMD's chips load pairs from any place.
bool BlockScan::hasPads(const Runs &runs) const {
  bool isWide = own.front().getType().getIntOrFloatBitWidth() > 32;
  int32_t least = isWide ? 3 : fewTotals + 1;
  if (at.shape.rowLanes && !isWide)
    least = at.shape.readLanes ? selectedTotalsOfReaders : selectedTotals;
  return combiner.getKind() && !head && runs.count >= least && runs.count <= fewTotals;
}

Values BlockScan::addUpPadded(const Stage &stage, int32_t pads) {
  SmallVector<Values> totals;
  if (at.shape.rowLanes) {
    for (int32_t i = 0; i < pads; ++i)
      totals.push_back(stage.load(at, at.create<arith::AddIOp>(subgroup, int64_t(i))));
    return combineRow(at, combiner, std::move(totals));
  }
  Value start = at.create<arith::AndIOp>(subgroup, int64_t(-2));
  for (int32_t i = 0; i < pads; ++i)
    totals.push_back(stage.load(at, at.create<arith::AddIOp>(start, int64_t(i))));
  Value isOdd = at.compare(Predicate::ne, start, subgroup);
  Value end = at.create<arith::AddIOp>(subgroup, int64_t(pads - 1));
  totals.push_back(stage.load(at, at.select(isOdd, end, at.constant(0)).front()));
  return combineRow(at, combiner, std::move(totals));
}

/// AMD's chips select each total or what changes nothing, side by side, and not each sum behind the other.
bool BlockScan::hasRowTotals(const Runs &runs) const {
  return at.shape.rowLanes && combiner.getKind() && !head && runs.count <= fewTotals;
}

Values BlockScan::addUpRowTotals(const Stage &stage, const Runs &runs) {
  Values neutral = combiner.getNeutral(at.b, at.loc, own.front().getType());
  SmallVector<Values> totals;
  for (int32_t i = 0; i < runs.count; ++i)
    totals.push_back(at.select(isBelow(at.constant(i)), stage.load(at, at.constant(i)), neutral));
  return combineRow(at, combiner, std::move(totals));
}

/// Whether the lanes of a warp share out the totals, those of a partial warp too.
bool BlockScan::isSpread(const Runs &runs) const {
  Type type = own.front().getType();
  return at.shape.isWarp && combiner.getKind() && !head && runs.count > totalsOfLane &&
         type.getIntOrFloatBitWidth() <= 32 && !type.isInteger(1) && getGroup(runs) <= at.shape.getLeastLanes();
}

/// Whether one instruction then reduces them, a total a lane.
bool BlockScan::isNative(const Runs &runs) const {
  return own.front().getType().isInteger() && hasNativeReduce(at.shape, combiner, own, size) &&
         runs.count <= at.shape.getLeastLanes();
}

/// Lanes that have all totals.
int32_t BlockScan::getGroup(const Runs &runs) const {
  return llvm::PowerOf2Ceil(llvm::divideCeil(runs.count, totalsOfLane));
}

/// The carry, or one of so many parts of it, as neighbouring lanes have them.
Values BlockScan::addUpSpread(const Stage &stage, const Runs &runs, int32_t parts) {
  Type type = own.front().getType();
  Values neutral = combiner.getNeutral(at.b, at.loc, type);
  Value lane = LaneIdOp::create(at.b, at.loc, at.i32);
  if (isNative(runs))
    return buildNativeReduce(at, combiner, stage.loadWhere(at, lane, isBelow(lane), neutral), size);
  int32_t group = getGroup(runs);
  Value first = at.create<arith::MulIOp>(at.lane(group), int64_t(totalsOfLane));
  SmallVector<Value> places = {first};
  for (int32_t i = 1; i < totalsOfLane; ++i)
    places.push_back(at.create<arith::AddIOp>(first, int64_t(i)));
  auto load = [&](OpBuilder &, Location) {
    Values totals = at.each(places, [&](Value place) { return stage.getElement(at, place); });
    scf::YieldOp::create(at.b, at.loc, totals);
  };
  // Sums behind the branch: a predicate alone guards each of them then.
  auto none = [&](OpBuilder &, Location) {
    scf::YieldOp::create(at.b, at.loc, SmallVector<Value>(totalsOfLane, neutral.front()));
  };
  ValueRange totals = scf::IfOp::create(at.b, at.loc, isBelow(first), load, none).getResults();
  Values sum = totals.front();
  for (int32_t i = 1; i < totalsOfLane; ++i)
    sum = at.select(isBelow(places[i]), combiner.combine(at.b, at.loc, sum, totals[i]), sum);
  bool readsFirst = at.shape.getPartialLanes() % group != 0;
  for (int32_t mask = parts; mask < group; mask *= 2) {
    Values other = readsFirst ? at.shuffle(sum, at.create<arith::XOrIOp>(at.lane(group), int64_t(mask)), size)
                             : at.shuffleXor(sum, mask);
    sum = combiner.combine(at.b, at.loc, sum, other);
  }
  return sum;
}

/// The exclusive scan: each lane's result and half of the carry go to the next lane, the last one's half to the first.
Values BlockScan::shiftSpread(Values result, ValueRange half) {
  Type type = own.front().getType();
  Value lane = LaneIdOp::create(at.b, at.loc, at.i32);
  Values identity = combiner.getIdentity(at.b, at.loc, type), neutral = combiner.getNeutral(at.b, at.loc, type);
  Value isFirstSubgroup = at.compare(Predicate::eq, subgroup, int64_t(0));
  Value isLast = at.compare(Predicate::eq, lane, int64_t(size - 1));
  result = at.select(isLast, at.select(isFirstSubgroup, identity, neutral), result);
  Value source = at.create<arith::AndIOp>(at.create<arith::AddIOp>(lane, int64_t(size - 1)), int64_t(size - 1));
  return combiner.combine(at.b, at.loc, half, at.shuffle(combiner.combine(at.b, at.loc, half, result), source, size));
}

/// As `finish`, where the first subgroup's carry is neutral.
Values BlockScan::finishNeutral(Values result, ValueRange carry, Value isEmpty) {
  if (isEmpty)
    result = at.select(isEmpty, buildNothing(at, combiner, own.front().getType()), result);
  return combiner.combine(at.b, at.loc, carry, result);
}

Values BlockScan::scan(bool isExclusive) {
  bool subtracts = isExclusive && combiner.isInvertible(own);
  // Nobody is above the last subgroup, which may have no last lane.
  Runs runs(at.shape.getNumSubgroups() - 1, at.shape.getLeastLanes());
  bool shiftsLast = isExclusive && !subtracts && isSpread(runs) && !isNative(runs) && !at.shape.getPartialLanes();
  Value below = at.lane(size), isOpen;
  Values shifted; // the exclusive scan of the subgroup
  Carry total;
  if (head) {
    Segments segments(at, head, size);
    below = segments.getBelow();
    isOpen = segments.getOpen();
    total.values = buildSegmentedSteps(at, combiner, own, segments, size);
    total.hasHead = at.compare(Predicate::ne, segments.getHeads(), int64_t(0));
  } else if (isExclusive && !subtracts && !shiftsLast && (isSpread(runs) || takesBothScans(at, combiner, own))) {
    total.values = buildBothScans(at, combiner, own, size, shifted);
  } else {
    total.values = buildInclusiveScan(at, combiner, own, size);
  }

  Values told = total.pack();
  int32_t pads = !hasPads(runs) ? 0 : at.shape.rowLanes ? runs.count : int32_t(llvm::alignTo(runs.count, 2));
  int32_t elements = pads + std::max(runs.getElements(), at.shape.getNumSubgroups());
  if (isSpread(runs))
    elements = llvm::alignTo(std::max(getGroup(runs) * totalsOfLane, at.shape.getNumSubgroups()), totalsOfLane);
  Stage stage = staging.acquire(at, user, ValueRange(told).getTypes(), elements);
  if (!stage)
    return {};
  if (pads) {
    Value thread = ThreadIndexOp::create(at.b, at.loc, at.i32);
    Values neutral = combiner.getNeutral(at.b, at.loc, own.front().getType());
    stage.store(at, neutral, thread, at.compare(Predicate::ult, thread, int64_t(pads)));
  }
  Value isWriter = at.compare(Predicate::eq, LaneIdOp::create(at.b, at.loc, at.i32), int64_t(size - 1));
  stage.store(at, told, pads ? at.create<arith::AddIOp>(subgroup, int64_t(pads)) : subgroup, isWriter);
  staging.publish(at, stage);

  Values result = total.values;
  Value isEmpty;
  if (shiftsLast)
    return shiftSpread(std::move(result), addUpSpread(stage, runs, /*parts=*/2));
  if (isExclusive && !subtracts) {
    result = shifted.empty() ? at.shift<ShuffleUpOp>(result, 1, size, combiner.takesPoison()) : shifted;
    isEmpty = at.compare(Predicate::eq, below, int64_t(0));
  }
  if (isSpread(runs))
    result = finishNeutral(std::move(result), addUpSpread(stage, runs, /*parts=*/1), isEmpty);
  else if (pads)
    result = finishNeutral(std::move(result), addUpPadded(stage, pads), isEmpty);
  else if (hasRowTotals(runs))
    result = finishNeutral(std::move(result), addUpRowTotals(stage, runs), isEmpty);
  else
    result = finish(std::move(result), addUp(stage, runs), isEmpty, isOpen);
  return subtracts ? Values(combiner.remove(at.b, at.loc, result.front(), own.front())) : result;
}

Values buildBlockScan(const LaneBuilder &at, Operation *user, const Combiner &combiner, Values values, Value head,
                      bool isExclusive, Staging &staging) {
  int32_t size = at.shape.subgroupSize;
  if (!head && takesTiles(at, combiner, values))
    return buildTileScan(at, user, combiner, std::move(values), isExclusive, staging);
  if (at.shape.threads > size)
    return BlockScan(at, user, combiner, std::move(values), head, staging).scan(isExclusive);
  if (head)
    return buildSegmentedScan(at, combiner, values, head, isExclusive, size);
  return isExclusive ? buildExclusiveScan(at, combiner, values, size) : buildInclusiveScan(at, combiner, values, size);
}

} // namespace qd
