//===- Sort.cpp - sorting the lanes' keys -------------------------------------------------------===//

#include "codegen/interp/Machine.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace qd::interp {

/// IEEE 754's totalOrder of the bits of two floats, but for negative NaNs, which come behind positive ones.
static bool isFloatLess(const APFloat &a, const APFloat &b) {
  bool aIsLast = a.isNaN() && a.isNegative(), bIsLast = b.isNaN() && b.isNegative();
  if (aIsLast != bIsLast)
    return bIsLast;
  if (a.isNegative() != b.isNegative())
    return a.isNegative();
  // A float's magnitude grows with its bits, infinities and NaNs included.
  APInt aBits = a.bitcastToAPInt(), bBits = b.bitcastToAPInt();
  return a.isNegative() ? bBits.ult(aBits) : aBits.ult(bBits);
}

static bool isLess(LaneValue a, LaneValue b, Type type, bool isUnsigned) {
  if (isa<FloatType>(type))
    return isFloatLess(toFloat(a.bits, type), toFloat(b.bits, type));
  APInt aInt = toInt(a.bits, type), bInt = toInt(b.bits, type);
  return isUnsigned ? aInt.ult(bInt) : aInt.slt(bInt);
}

/// Puts the lanes' rows of operands into the order of `less`; any poison makes all of them poison. Rows that are
/// equal in that order are the same, so that how a sort puts them does not matter.
template <typename Less> static void sortLanes(Tile &tile, unsigned width, bool descending, Less less) {
  using Row = SmallVector<LaneValue, 2>;
  SmallVector<unsigned, 64> lanes = tile.lanes();
  std::vector<Row> rows;
  bool hasPoison = false;
  for (unsigned lane : lanes) {
    Row &row = rows.emplace_back();
    for (unsigned i = 0; i < width; ++i) {
      row.push_back(tile.get(lane, i));
      hasPoison |= row.back().poison;
    }
  }
  if (!hasPoison)
    llvm::sort(rows, [&](const Row &a, const Row &b) { return descending ? less(b, a) : less(a, b); });
  for (auto [lane, row] : llvm::zip_equal(lanes, rows))
    for (unsigned i = 0; i < width; ++i)
      tile.set(lane, hasPoison ? LaneValue() : row[i], i);
}

static void runBitonicSort(Tile &tile) {
  auto op = tile.op<BitonicSortOp>();
  sortLanes(tile, 1, op.getDescending(), [&](auto &a, auto &b) {
    return isLess(a[0], b[0], tile.inType(0), op.getUnsignedKeys());
  });
}

static void runBitonicSortKV(Tile &tile) {
  auto op = tile.op<BitonicSortKVOp>();
  sortLanes(tile, 2, op.getDescending(), [&](auto &a, auto &b) {
    if (isLess(a[0], b[0], tile.inType(0), op.getUnsignedKeys()))
      return true;
    if (isLess(b[0], a[0], tile.inType(0), op.getUnsignedKeys()))
      return false;
    return isLess(a[1], b[1], tile.inType(1), op.getUnsignedValues());
  });
}

void addSortRules(RuleTable &table) {
  table.addTile<BitonicSortOp>(runBitonicSort);
  table.addTile<BitonicSortKVOp>(runBitonicSortKV);
}

} // namespace qd::interp
