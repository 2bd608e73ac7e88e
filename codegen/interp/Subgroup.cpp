//===- Subgroup.cpp - what the lanes of a tile do together ------------------------------------===//

#include "codegen/interp/Machine.h"

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

static LaneValue readRotated(Tile &tile, unsigned lane, uint32_t offset) {
  return tile.get((lane + offset) % tile.size);
}

static void runRotate(Tile &tile) { moveLanes<RotateOp>(tile, readRotated); }

static void runBroadcastFirst(Tile &tile) { tile.setAll(tile.get(0)); }

//===----------------------------------------------------------------------===//
// Votes
//===----------------------------------------------------------------------===//

/// One bit a lane below `n`.
static void ballot(Tile &tile, unsigned n) {
  uint64_t mask = 0;
  for (unsigned lane : tile.lanes()) {
    if (lane >= n)
      break;
    LaneValue predicate = tile.get(lane);
    if (predicate.poison)
      return tile.setAll({});
    mask |= predicate.bits << lane;
  }
  tile.setAll(LaneValue::of(mask));
}

static void runBallot(Tile &tile) { ballot(tile, tile.size); }
static void runBallotFirstN(Tile &tile) { ballot(tile, tile.op<BallotFirstNOp>().getN()); }

/// The `op` of all lanes' predicates.
static void vote(Tile &tile, bool (*combine)(bool, bool), bool result) {
  for (unsigned lane : tile.lanes()) {
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

/// Whether the lanes hold equal values: `==` of floats, by which a NaN is not even equal to itself.
static void runAllEqual(Tile &tile) {
  Type type = tile.inType();
  SmallVector<unsigned, 64> lanes = tile.lanes();
  bool isEqual = true;
  for (unsigned lane : lanes) {
    LaneValue first = tile.get(lanes.front()), value = tile.get(lane);
    if (first.poison || value.poison)
      return tile.setAll({});
    isEqual &= isa<FloatType>(type) ? toFloat(first.bits, type) == toFloat(value.bits, type) : first.bits == value.bits;
  }
  tile.setAll(LaneValue::of(isEqual));
}

//===----------------------------------------------------------------------===//
// Matches: bit by bit
//===----------------------------------------------------------------------===//

static bool isPoisoned(Tile &tile) {
  return llvm::any_of(tile.lanes(), [&](unsigned lane) { return tile.get(lane).poison; });
}

static void runMatchAny(Tile &tile) {
  if (isPoisoned(tile))
    return tile.setAll({});
  for (unsigned lane : tile.lanes()) {
    uint64_t mask = 0;
    for (unsigned other : tile.lanes())
      mask |= uint64_t(tile.get(lane).bits == tile.get(other).bits) << other;
    tile.set(lane, LaneValue::of(mask));
  }
}

static void runMatchAll(Tile &tile) {
  bool isSame = true;
  uint64_t mask = 0;
  for (unsigned lane : tile.lanes()) {
    isSame &= tile.get(lane) == tile.get(tile.lanes().front());
    mask |= uint64_t(1) << lane;
  }
  bool hasPoison = isPoisoned(tile);
  tile.setAll(hasPoison ? LaneValue() : LaneValue::of(isSame ? mask : 0), 0);
  tile.setAll(hasPoison ? LaneValue() : LaneValue::of(isSame), 1);
}

//===----------------------------------------------------------------------===//
// Order and promises
//===----------------------------------------------------------------------===//

/// The machine's lanes go in lock-step, and each sees memory as it is: order matters to the search for races alone.
static void runSync(Tile &tile) { ++tile.block.subgroups[tile.firstThread / tile.size].syncs; }
static void runMemFence(Thread &) {}

static void runAssumeUniform(Subgroup &subgroup, const Instruction &instruction) {
  subgroup.copy(instruction.operands, instruction.results, subgroup.frame().active);
  bool isBlockWide = cast<AssumeUniformOp>(instruction.op).getScope() == Scope::block;
  subgroup.checkUniform(instruction, isBlockWide);
}

void addSubgroupRules(RuleTable &table) {
  table.addTile<ShuffleOp>(runShuffle);
  table.addTile<ShuffleUpOp>(runShuffleUp);
  table.addTile<ShuffleDownOp>(runShuffleDown);
  table.addTile<ShuffleXorOp>(runShuffleXor);
  table.addTile<BroadcastOp>(runBroadcast);
  table.addTile<BroadcastFirstOp>(runBroadcastFirst);
  table.addTile<RotateOp>(runRotate);
  table.addTile<BallotOp>(runBallot);
  table.addTile<BallotFirstNOp>(runBallotFirstN);
  table.addTile<AllOp>(runAll);
  table.addTile<AnyOp>(runAny);
  table.addTile<AllEqualOp>(runAllEqual);
  table.addTile<MatchAnyOp>(runMatchAny);
  table.addTile<MatchAllOp>(runMatchAll);
  table.addTile<SubgroupSyncOp>(runSync);
  table.addThread<SubgroupMemFenceOp>(runMemFence);
  table.addControl<AssumeUniformOp>(runAssumeUniform);
}

void addBlockRules(RuleTable &table) {
  table.addBlock<BlockSyncOp>(nullptr);
}

} // namespace qd::interp
