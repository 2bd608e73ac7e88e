//===- Combine.cpp - reductions and scans ------------------------------------------------------===//
//
// All are left folds of the lanes' values, in the lanes' order, by a kind or a region; a block's lanes are its threads.
// Lanes that do not exist contribute nothing. A fold starts with its first value, not with the identity.
//
//===----------------------------------------------------------------------===//

#include "codegen/interp/Machine.h"
#include "ir/Kind.h"

using namespace mlir;

namespace qd::interp {

//===----------------------------------------------------------------------===//
// Rows: the values of one lane, one an operand
//===----------------------------------------------------------------------===//

using Row = SmallVector<LaneValue, 4>;

template <typename Op> static unsigned countValues(Tile &tile) { return tile.op<Op>().getValues().size(); }

template <typename Op> static Row getRow(Tile &tile, unsigned lane) {
  Row row;
  for (unsigned i = 0; i < countValues<Op>(tile); ++i)
    row.push_back(tile.get(lane, i));
  return row;
}

template <typename Op> static Row getIdentityRow(Tile &tile, unsigned lane) {
  if (std::optional<Kind> kind = tile.op<Op>().getKind()) {
    TypedAttr identity = getIdentity(*kind, tile.inType());
    if (auto integer = dyn_cast<IntegerAttr>(identity))
      return {LaneValue::of(integer.getValue())};
    return {LaneValue::of(cast<FloatAttr>(identity).getValue())};
  }
  unsigned first = countValues<Op>(tile);
  Row row;
  for (unsigned i = 0; i < first; ++i)
    row.push_back(tile.get(lane, first + i));
  return row;
}

static void setRow(Tile &tile, unsigned lane, const Row &row) {
  for (auto [i, value] : llvm::enumerate(row))
    tile.set(lane, value, i);
}

/// What a fold over the lanes below `lane` becomes with that lane's values. It is empty before the first lane.
template <typename Op> static Row append(Tile &tile, const Row &fold, unsigned lane) {
  Row row = getRow<Op>(tile, lane);
  if (fold.empty())
    return row;
  if (std::optional<Kind> kind = tile.op<Op>().getKind())
    return {applyBinary(getKindOpName(*kind, tile.inType()), tile.inType(), fold[0], row[0])};
  Row arguments = fold;
  arguments.append(row);
  return tile.evaluate(lane, arguments);
}

//===----------------------------------------------------------------------===//
// Whole tiles
//===----------------------------------------------------------------------===//

template <typename Op> static Row foldLanes(Tile &tile) {
  Row fold;
  for (unsigned lane : tile.lanes())
    fold = append<Op>(tile, fold, lane);
  return fold;
}

/// The other lanes hold poison.
template <typename Op> static void runReduce(Tile &tile) {
  if (!tile.checkCaptures())
    return;
  Row poison(countValues<Op>(tile));
  for (unsigned lane : tile.lanes())
    setRow(tile, lane, poison);
  setRow(tile, 0, foldLanes<Op>(tile));
}

template <typename Op> static void runReduceAll(Tile &tile) {
  if (!tile.checkCaptures())
    return;
  Row fold = foldLanes<Op>(tile);
  for (unsigned lane : tile.lanes())
    setRow(tile, lane, fold);
}

template <typename Op> static void runInclusiveScan(Tile &tile) {
  if (!tile.checkCaptures())
    return;
  Row fold;
  for (unsigned lane : tile.lanes()) {
    fold = append<Op>(tile, fold, lane);
    setRow(tile, lane, fold);
  }
}

template <typename Op> static void runExclusiveScan(Tile &tile) {
  if (!tile.checkCaptures())
    return;
  Row fold;
  for (unsigned lane : tile.lanes()) {
    setRow(tile, lane, fold.empty() ? getIdentityRow<Op>(tile, lane) : fold);
    fold = append<Op>(tile, fold, lane);
  }
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

/// The lanes that start a segment, the first among them; nothing, and poison as the results, where a head is poison.
template <typename Op> static std::optional<SmallVector<unsigned, 64>> findHeads(Tile &tile) {
  unsigned operand = tile.op<Op>().getHeadMutable().getOperandNumber();
  SmallVector<unsigned, 64> lanes = tile.lanes(), heads;
  for (unsigned lane : lanes) {
    LaneValue head = tile.get(lane, operand);
    if (lane == lanes.front() || (!head.poison && head.bits)) {
      heads.push_back(lane);
    } else if (head.poison) {
      Row poison(countValues<Op>(tile));
      for (unsigned each : lanes)
        setRow(tile, each, poison);
      return std::nullopt;
    }
  }
  return heads;
}

template <typename Op> static void runSegmentedScan(Tile &tile) {
  if (!tile.checkCaptures())
    return;
  auto heads = findHeads<Op>(tile);
  if (!heads)
    return;
  bool isExclusive = tile.op<Op>().getExclusive();
  Row fold;
  for (unsigned lane : tile.lanes()) {
    if (llvm::is_contained(*heads, lane))
      fold.clear();
    if (isExclusive)
      setRow(tile, lane, fold.empty() ? getIdentityRow<Op>(tile, lane) : fold);
    fold = append<Op>(tile, fold, lane);
    if (!isExclusive)
      setRow(tile, lane, fold);
  }
}

static void runSegmentedReduceAll(Tile &tile) {
  if (!tile.checkCaptures())
    return;
  auto heads = findHeads<SegmentedReduceAllOp>(tile);
  if (!heads)
    return;
  heads->push_back(tile.size);
  for (unsigned i = 0; i + 1 < heads->size(); ++i) {
    unsigned start = (*heads)[i], end = (*heads)[i + 1];
    Row fold;
    for (unsigned lane = start; lane < end; ++lane)
      if (tile.has(lane))
        fold = append<SegmentedReduceAllOp>(tile, fold, lane);
    for (unsigned lane = start; lane < end; ++lane)
      setRow(tile, lane, fold);
  }
}

void addCombineRules(RuleTable &table) {
  table.addTile<ReduceOp>(runReduce<ReduceOp>);
  table.addTile<ReduceAllOp>(runReduceAll<ReduceAllOp>);
  table.addTile<InclusiveScanOp>(runInclusiveScan<InclusiveScanOp>);
  table.addTile<ExclusiveScanOp>(runExclusiveScan<ExclusiveScanOp>);
  table.addTile<SegmentedScanOp>(runSegmentedScan<SegmentedScanOp>);
  table.addTile<SegmentedReduceAllOp>(runSegmentedReduceAll);
  table.addBlock<BlockReduceOp>(runReduce<BlockReduceOp>);
  table.addBlock<BlockReduceAllOp>(runReduceAll<BlockReduceAllOp>);
  table.addBlock<BlockInclusiveScanOp>(runInclusiveScan<BlockInclusiveScanOp>);
  table.addBlock<BlockExclusiveScanOp>(runExclusiveScan<BlockExclusiveScanOp>);
  table.addBlock<BlockSegmentedScanOp>(runSegmentedScan<BlockSegmentedScanOp>);
}

} // namespace qd::interp
