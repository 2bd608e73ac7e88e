//===- WideTiles.cpp - tiles wider than the subgroup ----------------------------------===//
//
// Purpose: the shared-memory forms of subgroup ops. A move writes every value, waits, and reads the source's:
//
//   %r = qd.subgroup.shuffle_xor %v, 32 tile(64)
//     ->
//   qd.store %v, %s[%t]   qd.block.sync   %r = qd.load %s[%t ^ 32]
//
// A reduction first reduces in each subgroup; then the subgroups' results, in order, are combined by every
// subgroup of the tile for itself: directly when they are few, else as a reduction of a smaller tile.
//
//===----------------------------------------------------------------------===//

#include "passes/WideTiles.h"

#include "passes/IntegerBuilder.h"
#include "passes/LaneMasks.h"
#include "passes/Sort.h"
#include "passes/WideScan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

namespace {
using Combine = llvm::function_ref<Values(ValueRange, ValueRange)>;
using CombineLanes = llvm::function_ref<Values(ValueRange, int32_t)>;

/// Builds the expansion of one op.
class WideTile {
public:
  WideTile(Operation *op, int32_t lanes, OpBuilder &builder, const BlockShape &shape, Staging &staging)
      : op(op), lanes(lanes), b(builder), loc(op->getLoc()), shape(shape), staging(staging), i32(b.getI32Type()),
        at(builder, loc, shape), thread(ThreadIndexOp::create(b, loc, i32)) {}

  Values shuffle(ValueRange values, Value lane) { return exchange(values, inTile(bitAnd(lane, lanes - 1))); }
  Values shuffleUp(ValueRange values, Value offset);
  Values shuffleDown(ValueRange values, Value offset);
  Values shuffleXor(ValueRange values, Value mask) {
    return exchange(values, b.createOrFold<arith::XOrIOp>(loc, thread, bitAnd(mask, lanes - 1)));
  }
  Values broadcast(ValueRange values, int32_t lane);
  Values reduce(ValueRange values, const Combiner &combiner, bool toAll);
  Values vote(Value predicate, bool isAll);
  Values rotate(Value value, Value offset) {
    return exchange(value, inTile(bitAnd(arith::AddIOp::create(b, loc, thread, offset), lanes - 1)));
  }
  Values ballot(Value predicate);
  Values allEqual(Value value);
  Values matchAny(Value value);
  Values matchAll(Value value);
  Values sort(const SortOrder &order) {
    return buildSort(at, order, lanes, [&](ValueRange words, int32_t mask, Value) {
      return shuffleXor(words, constant(mask));
    });
  }

  /// The lane operand of a shuffle-like op as a value.
  template <typename Op> Value lane(Op shuffle) {
    return shuffle.getLane() ? shuffle.getLane() : constant(*shuffle.getStaticLane());
  }

private:
  Values exchange(ValueRange values, Value sourceThread) {
    return staging.exchange(at, op, values, thread, sourceThread);
  }
  Values combineSubgroups(ValueRange partial, int32_t lanes, Combine combine, CombineLanes inSubgroup,
                          CombineLanes inLastSubgroup);

  Value constant(int64_t value) { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(i32, value)); }
  Value bitAnd(Value value, int64_t mask) { return b.createOrFold<arith::AndIOp>(loc, value, constant(mask)); }
  Value shiftRight(Value value, int32_t divisor) {
    return arith::ShRUIOp::create(b, loc, value, constant(llvm::Log2_32(divisor)));
  }
  /// The thread that is `lane` of the own tile.
  Value inTile(Value lane) {
    return lanes == shape.threads ? lane : b.createOrFold<arith::OrIOp>(loc, bitAnd(thread, -lanes), lane);
  }

  Operation *op;
  int32_t lanes;
  OpBuilder &b;
  Location loc;
  const BlockShape &shape;
  Staging &staging;
  Type i32;
  LaneBuilder at;
  Value thread;
};
} // namespace

// The comparisons are unsigned, so that a negative offset, which has no meaning, leaves no array either.
Values WideTile::shuffleUp(ValueRange values, Value offset) {
  Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, bitAnd(thread, lanes - 1), offset);
  Value source = arith::SubIOp::create(b, loc, thread, offset);
  return exchange(values, arith::SelectOp::create(b, loc, isInside, source, thread));
}

Values WideTile::shuffleDown(ValueRange values, Value offset) {
  Value above = arith::SubIOp::create(b, loc, constant(lanes), bitAnd(thread, lanes - 1));
  Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, offset, above);
  Value source = arith::AddIOp::create(b, loc, thread, offset);
  return exchange(values, arith::SelectOp::create(b, loc, isInside, source, thread));
}

/// One element a tile, which its source lane writes.
Values WideTile::broadcast(ValueRange values, int32_t lane) {
  Stage stage = staging.acquire(at, op, values.getTypes(), shape.threads / lanes);
  if (!stage)
    return {};
  Value tile = shiftRight(thread, lanes);
  Value isSource =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, bitAnd(thread, lanes - 1), constant(lane & (lanes - 1)));
  stage.store(at, values, tile, isSource);
  staging.publish(at, stage);
  return stage.load(at, tile);
}

/// Combines the values of each subgroup's lane 0 over tiles of `lanes` threads.
Values WideTile::combineSubgroups(ValueRange partial, int32_t lanes, Combine combine, CombineLanes inSubgroup,
                                  CombineLanes inLastSubgroup) {
  constexpr int32_t few = 4;
  int32_t subgroups = lanes / shape.subgroupSize;
  Stage stage = staging.acquire(at, op, partial.getTypes(), shape.threads / shape.subgroupSize);
  if (!stage)
    return {};
  Value subgroup = shiftRight(thread, shape.subgroupSize);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, LaneIdOp::create(b, loc, i32), constant(0));
  stage.store(at, partial, subgroup, isFirst);
  staging.publish(at, stage);

  Value first = lanes == shape.threads ? Value() : bitAnd(subgroup, -subgroups);
  auto load = [&](Value i) { return stage.load(at, first ? b.createOrFold<arith::OrIOp>(loc, first, i) : i); };
  if (subgroups <= few) {
    // Neighbours first, as in the tree of a subgroup: a tile's sum is the same at every subgroup size.
    SmallVector<Values> values;
    for (int32_t i = 0; i < subgroups; ++i)
      values.push_back(load(constant(i)));
    for (; values.size() > 1; values.truncate(values.size() / 2))
      for (size_t i = 0; i < values.size() / 2; ++i)
        values[i] = combine(values[2 * i], values[2 * i + 1]);
    return values.front();
  }
  // Each aligned group of `subgroups` threads now holds all values of its tile, in order.
  Values values = load(bitAnd(thread, subgroups - 1));
  if (subgroups <= shape.subgroupSize)
    return inLastSubgroup(values, subgroups);
  return combineSubgroups(inSubgroup(values, shape.subgroupSize), subgroups, combine, inSubgroup, inLastSubgroup);
}

Values WideTile::reduce(ValueRange values, const Combiner &combiner, bool toAll) {
  auto combine = [&](ValueRange lower, ValueRange higher) { return combiner.combine(b, loc, lower, higher); };
  auto toFirst = [&](ValueRange v, int32_t n) { return buildReduce(at, combiner, v, n); };
  auto last = [&](ValueRange v, int32_t n) {
    return toAll ? buildReduceAll(at, combiner, v, n) : buildReduce(at, combiner, v, n);
  };
  return combineSubgroups(toFirst(values, shape.subgroupSize), lanes, combine, toFirst, last);
}

Values WideTile::vote(Value predicate, bool isAll) {
  Combiner combiner(isAll ? Kind::andi : Kind::ori);
  auto combine = [&](ValueRange lower, ValueRange higher) { return combiner.combine(b, loc, lower, higher); };
  auto inSubgroup = [&](ValueRange p, int32_t n) -> Values { return buildVote(at, isAll, p.front(), n); };
  return combineSubgroups(inSubgroup(predicate, shape.subgroupSize), lanes, combine, inSubgroup, inSubgroup);
}

/// Each subgroup's ballot, at its place in the tile's.
Values WideTile::ballot(Value predicate) {
  IntegerBuilder i(at);
  Value start = i.cast(i.bitAnd(thread, (lanes - 1) & -shape.subgroupSize), i.i64);
  Value own = i.shl(BallotOp::create(b, loc, predicate), start);
  Combiner combiner(Kind::ori);
  auto combine = [&](ValueRange lower, ValueRange higher) { return combiner.combine(b, loc, lower, higher); };
  auto inSubgroup = [&](ValueRange masks, int32_t n) { return buildReduceAll(at, combiner, masks, n); };
  return combineSubgroups(own, lanes, combine, inSubgroup, inSubgroup);
}

Values WideTile::allEqual(Value value) {
  IntegerBuilder i(at);
  if (value.getType().isInteger(1)) {
    Values all = vote(value, /*isAll=*/true), any = vote(value, /*isAll=*/false);
    if (all.empty() || any.empty())
      return {};
    return i.bitOr(all.front(), i.bitNot(any.front()));
  }
  Values first = broadcast(value, 0);
  if (first.empty())
    return {};
  return vote(buildEquals(at, value, first.front()), /*isAll=*/true);
}

Values WideTile::matchAll(Value value) {
  IntegerBuilder i(at);
  Values same = allEqual(i.toBits(value));
  if (same.empty())
    return {};
  Value all = i.constant(llvm::maskTrailingOnes<uint64_t>(lanes), i.i64);
  Values results = i.select(same.front(), all, i.constant(0, i.i64));
  results.push_back(same.front());
  return results;
}

/// Each lane looks at all values of its tile, in a loop.
Values WideTile::matchAny(Value value) {
  IntegerBuilder i(at);
  Value word = buildWord(at, value);
  Stage stage = staging.acquire(at, op, word.getType(), shape.threads);
  if (!stage)
    return {};
  stage.store(at, word, thread);
  staging.publish(at, stage);
  Type type = lanes <= 32 ? i.i32 : i.i64;
  auto loop = scf::ForOp::create(b, loc, constant(0), constant(lanes), constant(1), i.constant(0, type),
                                 [&](OpBuilder &, Location, Value lane, ValueRange matches) {
    Value other = stage.getElement(at, inTile(lane));
    Value isSame = i.compare(arith::CmpIPredicate::eq, word, other);
    Value bit = i.shl(i.cast(isSame, type), i.cast(lane, type));
    scf::YieldOp::create(b, loc, i.bitOr(matches.front(), bit));
  });
  return i.cast(loop.getResult(0), i.i64);
}

bool hasWideTileExpansion(Operation *op) {
  return isScan(op) ||
         isa<ReduceOp, ReduceAllOp, ShuffleOp, ShuffleUpOp, ShuffleDownOp, ShuffleXorOp, BroadcastOp, BroadcastFirstOp,
             AllOp, AnyOp, RotateOp, BallotOp, AllEqualOp, MatchAnyOp, MatchAllOp, BitonicSortOp, BitonicSortKVOp>(op);
}

Values expandWideTile(Operation *op, int32_t lanes, OpBuilder &builder, const BlockShape &shape, Staging &staging) {
  if (isScan(op))
    return expandWideScan(op, lanes, LaneBuilder(builder, op->getLoc(), shape), staging);
  WideTile wide(op, lanes, builder, shape, staging);
  return TypeSwitch<Operation *, Values>(op)
      .Case([&](ReduceOp reduce) { return wide.reduce(reduce.getValues(), Combiner(reduce), /*toAll=*/false); })
      .Case([&](ReduceAllOp reduce) { return wide.reduce(reduce.getValues(), Combiner(reduce), /*toAll=*/true); })
      .Case([&](ShuffleOp shuffle) { return wide.shuffle(shuffle.getValue(), wide.lane(shuffle)); })
      .Case([&](ShuffleUpOp shuffle) { return wide.shuffleUp(shuffle.getValue(), wide.lane(shuffle)); })
      .Case([&](ShuffleDownOp shuffle) { return wide.shuffleDown(shuffle.getValue(), wide.lane(shuffle)); })
      .Case([&](ShuffleXorOp shuffle) { return wide.shuffleXor(shuffle.getValue(), wide.lane(shuffle)); })
      .Case([&](BroadcastFirstOp broadcast) { return wide.broadcast(broadcast.getValue(), 0); })
      .Case([&](BroadcastOp broadcast) {
        if (std::optional<int32_t> lane = broadcast.getConstantLane())
          return wide.broadcast(broadcast.getValue(), *lane);
        return wide.shuffle(broadcast.getValue(), broadcast.getLane());
      })
      .Case([&](AllOp vote) { return wide.vote(vote.getPredicate(), /*isAll=*/true); })
      .Case([&](AnyOp vote) { return wide.vote(vote.getPredicate(), /*isAll=*/false); })
      .Case([&](RotateOp rotate) { return wide.rotate(rotate.getValue(), wide.lane(rotate)); })
      .Case([&](BallotOp ballot) { return wide.ballot(ballot.getPredicate()); })
      .Case([&](AllEqualOp equal) { return wide.allEqual(equal.getValue()); })
      .Case([&](MatchAnyOp match) { return wide.matchAny(match.getValue()); })
      .Case([&](MatchAllOp match) { return wide.matchAll(match.getValue()); })
      .Case<BitonicSortOp, BitonicSortKVOp>([&](auto sort) { return wide.sort(SortOrder(sort)); })
      .Default([](Operation *) { return Values(); });
}

} // namespace qd
