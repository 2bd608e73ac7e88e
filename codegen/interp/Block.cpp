//===- Block.cpp - what the threads of a block do together --------------------------------------===//
//
// Reductions and scans are in Combine.cpp, sorts in Sort.cpp.
//
//===----------------------------------------------------------------------===//

#include "codegen/interp/Memory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd::interp {

//===----------------------------------------------------------------------===//
// Votes
//===----------------------------------------------------------------------===//

/// On how many threads the predicate holds; nothing where it is poison on one.
static std::optional<unsigned> countThreads(Tile &tile) {
  unsigned count = 0;
  for (unsigned thread : tile.lanes()) {
    LaneValue predicate = tile.get(thread);
    if (predicate.poison)
      return std::nullopt;
    count += predicate.bits;
  }
  return count;
}

template <uint64_t (*make)(unsigned count, unsigned all)> static void runVote(Tile &tile) {
  std::optional<unsigned> count = countThreads(tile);
  tile.setAll(count ? LaneValue::of(make(*count, tile.size)) : LaneValue());
}

static uint64_t isAll(unsigned count, unsigned all) { return count == all; }
static uint64_t isAny(unsigned count, unsigned) { return count != 0; }
static uint64_t isCount(unsigned count, unsigned) { return count; }

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

/// An operand that all threads give alike; nothing where it is poison, or differs and that is reported.
static std::optional<uint32_t> getUniform(Tile &tile, unsigned operand, StringRef what) {
  LaneValue first = tile.get(0, operand);
  if (tile.block.launch.checks.promises)
    for (unsigned thread : tile.lanes())
      if (LaneValue value = tile.get(thread, operand); !(value == first)) {
        unsigned slot = tile.instruction.operands[operand];
        tile.fail(thread,
                  "has " + what + " " + printValue(value, tile.inType(operand)) + " here and " +
                      printValue(first, tile.inType(operand)) + " on thread 0, expected the same on all threads",
                  {{slot, thread}, {slot, 0}});
        return std::nullopt;
      }
  return first.poison ? std::nullopt : std::optional(uint32_t(first.bits));
}

static std::optional<unsigned> findBroadcaster(Tile &tile, unsigned) {
  std::optional<int32_t> literal = tile.op<BlockBroadcastOp>().getStaticLane();
  LaneValue thread = literal ? LaneValue::of(*literal) : tile.get(0, 1);
  return thread.poison || thread.bits >= tile.size ? std::nullopt : std::optional<unsigned>(thread.bits);
}

static void runBroadcast(Tile &tile) {
  if (tile.op<BlockBroadcastOp>().getLane())
    getUniform(tile, 1, "thread");
  moveValues(tile);
}

//===----------------------------------------------------------------------===//
// Ranks by a digit
//===----------------------------------------------------------------------===//

/// Writes the counts of digits to the array that an operand is, as thread 0.
static void writeCounts(Tile &tile, Value array, unsigned operand, ArrayRef<uint32_t> counts) {
  if (!array)
    return;
  Launch &launch = tile.block.launch;
  Subgroup &subgroup = tile.block.subgroups.front();
  SmallVector<LaneValue, 4> in;
  for (unsigned i = 0; i < tile.instruction.operands.size(); ++i)
    in.push_back(tile.get(0, i));
  Thread writer{subgroup, tile.instruction, 0, in, {}};
  Array *target = findArray(writer, operand);
  if (!target)
    return;
  for (auto [digit, count] : llvm::enumerate(counts)) {
    if (launch.checks.races && !launch.races.checkWrite(writer, *target, digit, count))
      return;
    writeElement(launch, *target, digit, count);
  }
}

static void runRadixRank(Tile &tile) {
  auto op = tile.op<BlockRadixRankOp>();
  unsigned each = op.getKeys().size(), width = tile.inType().getIntOrFloatBitWidth(), operand = each;
  std::optional<uint32_t> begin = op.getStaticBegin().value_or(0);
  if (op.getBegin())
    begin = getUniform(tile, operand++, "begin");
  if (tile.block.launch.failed())
    return;
  if (begin && *begin >= width)
    return tile.fail(0, "has begin " + llvm::Twine(int32_t(*begin)) + ", expected a bit of " + llvm::Twine(width),
                     {{tile.instruction.operands[each], 0}});
  uint64_t mask = llvm::maskTrailingOnes<uint64_t>(op.getNumBits().value_or(op.getRadixBits()));
  std::vector<uint32_t> bins(size_t(1) << op.getRadixBits());
  std::vector<uint64_t> digits;
  bool hasPoison = !begin;
  for (unsigned thread : tile.lanes())
    for (unsigned i = 0; i < each; ++i) {
      LaneValue key = tile.get(thread, i);
      hasPoison |= key.poison;
      digits.push_back(begin ? key.bits >> *begin & mask : 0);
      ++bins[digits.back()];
    }
  if (hasPoison && tile.block.launch.checks.poison)
    return tile.fail(0, "ranks poison");
  std::vector<uint32_t> prefix(bins.size());
  for (size_t digit = 1; digit < bins.size(); ++digit)
    prefix[digit] = prefix[digit - 1] + bins[digit - 1];

  std::vector<uint32_t> next = prefix;
  auto digit = digits.begin();
  for (unsigned thread : tile.lanes())
    for (unsigned i = 0; i < each; ++i, ++digit)
      tile.set(thread, hasPoison ? LaneValue() : LaneValue::of(next[*digit]++), i);

  // Nobody may still read what the arrays held, as after a barrier; that all see the counts, the one behind the op
  // does.
  if (op.getBins() || op.getPrefix())
    tile.block.passBarrier();
  writeCounts(tile, op.getBins(), operand, bins);
  writeCounts(tile, op.getPrefix(), operand + bool(op.getBins()), prefix);
}

static void runBlockElect(Thread &thread) { thread.out[0] = LaneValue::of(thread.index() == 0); }

void addBlockRules(RuleTable &table) {
  table.addThread<BlockElectOp>(runBlockElect);
  table.addBlock<BlockBroadcastOp>(runBroadcast);
  table.add<BlockBroadcastOp>().source = findBroadcaster;
  table.addBarrier<BlockSyncOp>(nullptr);
  table.addGrid<GridSyncOp>();
  table.addBarrier<BlockSyncSharedOp>(nullptr);
  table.addBarrier<BlockSyncAllOp>(runVote<isAll>);
  table.addBarrier<BlockSyncAnyOp>(runVote<isAny>);
  table.addBarrier<BlockSyncCountOp>(runVote<isCount>);
  table.addBarrier<BlockRadixRankOp>(runRadixRank);
}

} // namespace qd::interp
