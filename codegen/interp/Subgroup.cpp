//===- Subgroup.cpp - what the lanes of a tile do together ------------------------------------===//

#include "codegen/interp/Machine.h"
#include "ir/Kind.h"

using namespace mlir;

namespace qd::interp {

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

/// The lane, offset or mask that a lane gives: an operand or the op's literal. Poison stays poison.
template <typename Op> static LaneValue getLaneOperand(Tile &tile, unsigned lane) {
  std::optional<int32_t> literal = tile.op<Op>().getStaticLane();
  return literal ? LaneValue::of(uint32_t(*literal)) : tile.get(lane, 1);
}

/// Every lane reads the lane that `choose` names from its own number and its operand.
template <typename Op> static void moveLanes(Tile &tile, LaneValue (*choose)(Tile &, unsigned lane, uint32_t operand)) {
  SmallVector<LaneValue, 64> moved(tile.size);
  for (unsigned lane = 0; lane < tile.size; ++lane) {
    LaneValue operand = getLaneOperand<Op>(tile, lane);
    if (!operand.poison)
      moved[lane] = choose(tile, lane, operand.bits);
  }
  for (unsigned lane = 0; lane < tile.size; ++lane)
    tile.set(lane, moved[lane]);
}

static LaneValue readLane(Tile &tile, unsigned, uint32_t source) { return tile.get(source % tile.size); }

static LaneValue readXor(Tile &tile, unsigned lane, uint32_t mask) { return tile.get(lane ^ (mask % tile.size)); }

/// A lane whose source lies past the tile's edge keeps its own value.
template <typename Op> static LaneValue keepOwn(Tile &tile, unsigned lane) {
  return tile.op<Op>().getPoisonEdge() ? LaneValue() : tile.get(lane);
}

static LaneValue readBelow(Tile &tile, unsigned lane, uint32_t offset) {
  return offset > lane ? keepOwn<ShuffleUpOp>(tile, lane) : tile.get(lane - offset);
}

static LaneValue readAbove(Tile &tile, unsigned lane, uint32_t offset) {
  return offset >= tile.size - lane ? keepOwn<ShuffleDownOp>(tile, lane) : tile.get(lane + offset);
}

static void runShuffle(Tile &tile) { moveLanes<ShuffleOp>(tile, readLane); }
static void runBroadcast(Tile &tile) { moveLanes<BroadcastOp>(tile, readLane); }
static void runShuffleUp(Tile &tile) { moveLanes<ShuffleUpOp>(tile, readBelow); }
static void runShuffleDown(Tile &tile) { moveLanes<ShuffleDownOp>(tile, readAbove); }

static void runShuffleXor(Tile &tile) { moveLanes<ShuffleXorOp>(tile, readXor); }

static void runBroadcastFirst(Tile &tile) { tile.setAll(tile.get(0)); }

//===----------------------------------------------------------------------===//
// Votes
//===----------------------------------------------------------------------===//

static void runBallot(Tile &tile) {
  uint64_t mask = 0;
  for (unsigned lane = 0; lane < tile.size; ++lane) {
    if (!tile.has(lane))
      continue;
    LaneValue predicate = tile.get(lane);
    if (predicate.poison)
      return tile.setAll({});
    mask |= predicate.bits << lane;
  }
  tile.setAll(LaneValue::of(mask));
}

/// The `op` of all lanes' predicates.
static void vote(Tile &tile, bool (*combine)(bool, bool), bool result) {
  for (unsigned lane = 0; lane < tile.size; ++lane) {
    if (!tile.has(lane))
      continue;
    LaneValue predicate = tile.get(lane);
    if (predicate.poison)
      return tile.setAll({});
    result = combine(result, predicate.bits);
  }
  tile.setAll(LaneValue::of(result));
}

static void runAll(Tile &tile) {
  vote(tile, [](bool a, bool b) { return a && b; }, true);
}
static void runAny(Tile &tile) {
  vote(tile, [](bool a, bool b) { return a || b; }, false);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// The left fold of the lanes' values, in lane order.
static LaneValue fold(Tile &tile, Kind kind) {
  StringRef op = getKindOpName(kind, tile.inType());
  LaneValue result = tile.get(0);
  for (unsigned lane = 1; lane < tile.size; ++lane)
    if (tile.has(lane))
      result = applyBinary(op, tile.inType(), result, tile.get(lane));
  return result;
}

static void runReduce(Tile &tile) {
  LaneValue result = fold(tile, *tile.op<ReduceOp>().getKind());
  tile.setAll({});
  tile.set(0, result);
}

static void runReduceAll(Tile &tile) { tile.setAll(fold(tile, *tile.op<ReduceAllOp>().getKind())); }

void addSubgroupRules(RuleTable &table) {
  table.addTile<ShuffleOp>(runShuffle);
  table.addTile<ShuffleUpOp>(runShuffleUp);
  table.addTile<ShuffleDownOp>(runShuffleDown);
  table.addTile<ShuffleXorOp>(runShuffleXor);
  table.addTile<BroadcastOp>(runBroadcast);
  table.addTile<BroadcastFirstOp>(runBroadcastFirst);
  table.addTile<BallotOp>(runBallot);
  table.addTile<AllOp>(runAll);
  table.addTile<AnyOp>(runAny);
  table.addTile<ReduceOp>(runReduce);
  table.addTile<ReduceAllOp>(runReduceAll);
}

void addBlockRules(RuleTable &table) {
  table.addBlock<BlockSyncOp>(nullptr);
}

} // namespace qd::interp
