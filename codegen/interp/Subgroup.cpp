//===- Subgroup.cpp - what the lanes of a tile do together ------------------------------------===//

#include "codegen/interp/Machine.h"

using namespace mlir;

namespace qd::interp {

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

void moveValues(Tile &tile) {
  for (unsigned lane : tile.lanes()) {
    std::optional<unsigned> source = tile.instruction.rule->source(tile, lane);
    tile.set(lane, source ? tile.get(*source) : LaneValue());
  }
}

/// The source that `choose` finds from the own number and the lane, offset or mask that is an operand or a literal.
template <typename Op, std::optional<unsigned> (*choose)(Tile &, unsigned lane, uint32_t operand)>
static std::optional<unsigned> findSource(Tile &tile, unsigned lane) {
  if (std::optional<int32_t> literal = tile.op<Op>().getStaticLane())
    return choose(tile, lane, *literal);
  LaneValue operand = tile.get(lane, 1);
  if (operand.poison)
    return std::nullopt;
  return choose(tile, lane, operand.bits);
}

static std::optional<unsigned> chooseLane(Tile &tile, unsigned, uint32_t source) { return source % tile.size; }
static std::optional<unsigned> chooseFirst(Tile &, unsigned) { return 0; }

static std::optional<unsigned> chooseXor(Tile &tile, unsigned lane, uint32_t mask) {
  return lane ^ (mask % tile.size);
}

static std::optional<unsigned> chooseRotated(Tile &tile, unsigned lane, uint32_t offset) {
  return (lane + offset) % tile.size;
}

/// A lane whose source lies past the tile's edge keeps its own value.
template <typename Op> static std::optional<unsigned> chooseOwn(Tile &tile, unsigned lane) {
  if (tile.op<Op>().getPoisonEdge())
    return std::nullopt;
  return lane;
}

static std::optional<unsigned> chooseBelow(Tile &tile, unsigned lane, uint32_t offset) {
  return offset > lane ? chooseOwn<ShuffleUpOp>(tile, lane) : lane - offset;
}

static std::optional<unsigned> chooseAbove(Tile &tile, unsigned lane, uint32_t offset) {
  return offset >= tile.size - lane ? chooseOwn<ShuffleDownOp>(tile, lane) : lane + offset;
}

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
static void runSync(Tile &tile) {
  Subgroup &subgroup = tile.block.subgroups[tile.firstThread / tile.size];
  ++subgroup.syncs;
  if (tile.block.launch.checks.races)
    tile.block.launch.races.meet(subgroup);
}

static void runAssumeUniform(Subgroup &subgroup, const Instruction &instruction) {
  subgroup.copy(instruction.operands, instruction.results, subgroup.frame().active);
  bool isBlockWide = cast<AssumeUniformOp>(instruction.op).getScope() == Scope::block;
  subgroup.checkUniform(instruction, isBlockWide);
}

void addSubgroupRules(RuleTable &table) {
  table.addMove<ShuffleOp>(findSource<ShuffleOp, chooseLane>);
  table.addMove<ShuffleUpOp>(findSource<ShuffleUpOp, chooseBelow>);
  table.addMove<ShuffleDownOp>(findSource<ShuffleDownOp, chooseAbove>);
  table.addMove<ShuffleXorOp>(findSource<ShuffleXorOp, chooseXor>);
  table.addMove<RotateOp>(findSource<RotateOp, chooseRotated>);
  table.addMove<BroadcastOp>(findSource<BroadcastOp, chooseLane>);
  table.addMove<BroadcastFirstOp>(chooseFirst);
  table.addTile<BallotOp>(runBallot);
  table.addTile<BallotFirstNOp>(runBallotFirstN);
  table.addTile<AllOp>(runAll);
  table.addTile<AnyOp>(runAny);
  table.addTile<AllEqualOp>(runAllEqual);
  table.addTile<MatchAnyOp>(runMatchAny);
  table.addTile<MatchAllOp>(runMatchAll);
  table.addTile<SubgroupSyncOp>(runSync);
  table.addControl<AssumeUniformOp>(runAssumeUniform);
}

} // namespace qd::interp
