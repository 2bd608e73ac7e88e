//===- TileScan.cpp - scans of a whole block by tiles -------------------------------------===//
//
// Purpose: scans of values that take two shuffles a move, where shuffles are what a block waits for. Only the first
// steps are done by every subgroup, the others by one for all of them:
//
//   %r = qd.block.inclusive_scan add %v
//     ->
//   %s = qd.subgroup.inclusive_scan add %v tile(4)
//   qd.store %s, %totals[%tile] if LAST LANE OF THE TILE   qd.block.sync
//   scf.if FIRST SUBGROUP { each total becomes the sum of those before it: a run of neighbours a lane }
//   qd.block.sync
//   %carry = qd.load %totals[%tile]   %r = %carry + %s
//
// A tile's total is only touched by its own subgroup from the second barrier to the first one of the next scan, so that
// scans in a loop need no further barrier.
//
//===----------------------------------------------------------------------===//

#include "passes/TileScan.h"

#include "passes/Scan.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace qd {

using Predicate = arith::CmpIPredicate;

/// Blocks of fewer threads wait longer for a barrier than for their shuffles.
static constexpr int32_t leastThreads = 256;

/// Lanes of a tile: the fewer, the more totals has each lane of the first subgroup.
static int32_t getTile(const BlockShape &shape) {
  constexpr int32_t small = 4, manyThreads = 512;
  bool isLarge = shape.threads > manyThreads && shape.threads % (2 * small * shape.subgroupSize) == 0;
  return isLarge ? 2 * small : small;
}

bool takesTiles(const LaneBuilder &at, const Combiner &combiner, ValueRange values) {
  const BlockShape &shape = at.shape;
  return shape.isWarp && combiner.getKind() && values.front().getType().getIntOrFloatBitWidth() > 32 &&
         shape.threads >= leastThreads && shape.threads % (getTile(shape) * shape.subgroupSize) == 0;
}

/// Each lane replaces its run of totals by the sums of all before them.
static void scanTotals(const LaneBuilder &at, const Combiner &combiner, Type type, const Stage &stage, int32_t length) {
  int32_t size = at.shape.subgroupSize;
  Value lane = LaneIdOp::create(at.b, at.loc, at.i32);
  Value start = at.create<arith::MulIOp>(lane, int64_t(length));
  SmallVector<Values> run;
  for (int32_t i = 0; i < length; ++i)
    run.push_back(stage.load(at, at.create<arith::AddIOp>(start, int64_t(i))));
  Values sum = run.front();
  for (const Values &total : ArrayRef(run).drop_front())
    sum = combiner.combine(at.b, at.loc, sum, total);
  Values inclusive = buildInclusiveScan(at, combiner, sum, size), before;
  if (combiner.isInvertible(sum)) {
    before = combiner.remove(at.b, at.loc, inclusive.front(), sum.front());
  } else {
    before = at.shift<ShuffleUpOp>(inclusive, 1, size, /*poisonEdge=*/true);
    Value isFirst = at.compare(Predicate::eq, lane, int64_t(0));
    before = at.select(isFirst, Values(combiner.getNeutral(at.b, at.loc, type)), before);
  }
  for (int32_t i = 0; i < length; ++i) {
    stage.store(at, before, at.create<arith::AddIOp>(start, int64_t(i)));
    before = combiner.combine(at.b, at.loc, before, run[i]);
  }
}

Values buildTileScan(const LaneBuilder &at, Operation *user, const Combiner &combiner, Values own, bool isExclusive,
                     Staging &staging) {
  int32_t tile = getTile(at.shape), size = at.shape.subgroupSize, tilesOfSubgroup = size / tile;
  Type type = own.front().getType();
  Stage stage;
  stage.arrays = staging.acquireRows(at, user, type, at.shape.getNumSubgroups(), tilesOfSubgroup);
  if (!stage)
    return {};
  bool subtracts = isExclusive && combiner.isInvertible(own);
  Values result, shifted;
  if (isExclusive && takesBothScans(at, combiner, own))
    result = buildBothScans(at, combiner, own, tile, shifted);
  else
    result = buildInclusiveScan(at, combiner, own, tile);

  Value thread = ThreadIndexOp::create(at.b, at.loc, at.i32), lane = at.lane(tile);
  Value number = at.create<arith::ShRUIOp>(thread, int64_t(llvm::Log2_32(tile)));
  SubgroupSyncOp::create(at.b, at.loc); // the reads of the row's last use
  stage.store(at, result, number, at.compare(Predicate::eq, lane, int64_t(tile - 1)));
  staging.sync(at);
  Value isFirstSubgroup = at.compare(Predicate::ult, thread, size);
  scf::IfOp::create(at.b, at.loc, isFirstSubgroup, [&](OpBuilder &, Location) {
    scanTotals(at, combiner, type, stage, at.shape.threads / tile / size);
    scf::YieldOp::create(at.b, at.loc);
  });
  staging.sync(at);

  Values carry = stage.load(at, number);
  if (!isExclusive)
    return combiner.combine(at.b, at.loc, carry, result);
  if (subtracts)
    return combiner.remove(at.b, at.loc, combiner.combine(at.b, at.loc, carry, result).front(), own.front());
  if (shifted.empty())
    shifted = at.shift<ShuffleUpOp>(result, 1, tile, /*poisonEdge=*/true);
  Value isEmpty = at.compare(Predicate::eq, lane, int64_t(0));
  return combiner.combine(at.b, at.loc, carry, at.select(isEmpty, buildNothing(at, combiner, type), shifted));
}

} // namespace qd
