//===- Sort.cpp - sorting the lanes' keys -------------------------------------------------------===//

#include "codegen/interp/Machine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

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

template <typename Op> static void runBitonicSort(Tile &tile) {
  auto op = tile.op<Op>();
  sortLanes(tile, 1, op.getDescending(), [&](auto &a, auto &b) {
    return isLess(a[0], b[0], tile.inType(0), op.getUnsignedKeys());
  });
}

template <typename Op> static void runBitonicSortKV(Tile &tile) {
  auto op = tile.op<Op>();
  sortLanes(tile, 2, op.getDescending(), [&](auto &a, auto &b) {
    if (isLess(a[0], b[0], tile.inType(0), op.getUnsignedKeys()))
      return true;
    if (isLess(b[0], a[0], tile.inType(0), op.getUnsignedKeys()))
      return false;
    return isLess(a[1], b[1], tile.inType(1), op.getUnsignedValues());
  });
}

//===----------------------------------------------------------------------===//
// By digits
//===----------------------------------------------------------------------===//

/// A key's place among all of its type in ascending order, which a radix sort reads its digits from.
static uint64_t findPlace(LaneValue key, Type type, bool isUnsigned) {
  APInt bits = toInt(key.bits, type);
  unsigned width = bits.getBitWidth();
  if (isa<IntegerType>(type))
    return (isUnsigned ? bits : bits ^ APInt::getSignMask(width)).getZExtValue();
  // Negative floats go down as their bits go up; negative NaNs leave the bottom for the top.
  APInt place = bits.isNegative() ? ~bits : bits ^ APInt::getSignMask(width);
  unsigned fraction = cast<FloatType>(type).getFPMantissaWidth() - 1;
  return (place - APInt::getLowBitsSet(width, fraction)).getZExtValue();
}

static void runRadixSort(Tile &tile) {
  auto op = tile.op<BlockRadixSortOp>();
  struct Item {
    LaneValue key, value;
    uint64_t digits;
    size_t number; ///< in the order thread, then operand
  };
  unsigned each = op.getKeys().size();
  bool hasValues = !op.getValues().empty(), hasPoison = false;
  Type type = tile.inType();
  unsigned begin = op.getBegin().value_or(0), end = op.getEnd().value_or(type.getIntOrFloatBitWidth());
  std::vector<Item> items;
  for (unsigned thread : tile.lanes())
    for (unsigned i = 0; i < each; ++i) {
      Item &item = items.emplace_back();
      item.number = items.size();
      item.key = tile.get(thread, i);
      if (hasValues)
        item.value = tile.get(thread, each + i);
      hasPoison |= item.key.poison;
      uint64_t place = findPlace(item.key, type, op.getUnsignedKeys());
      item.digits = place >> begin & llvm::maskTrailingOnes<uint64_t>(end - begin);
    }
  if (!hasPoison)
    llvm::sort(items, [&](const Item &a, const Item &b) {
      if (a.digits != b.digits)
        return op.getDescending() ? b.digits < a.digits : a.digits < b.digits;
      return a.number < b.number;
    });
  auto item = items.begin();
  for (unsigned thread : tile.lanes())
    for (unsigned i = 0; i < each; ++i, ++item) {
      tile.set(thread, hasPoison ? LaneValue() : item->key, i);
      if (hasValues)
        tile.set(thread, hasPoison ? LaneValue() : item->value, each + i);
    }
}

void addSortRules(RuleTable &table) {
  table.addTile<BitonicSortOp>(runBitonicSort<BitonicSortOp>);
  table.addTile<BitonicSortKVOp>(runBitonicSortKV<BitonicSortKVOp>);
  table.addBlock<BlockBitonicSortOp>(runBitonicSort<BlockBitonicSortOp>);
  table.addBlock<BlockBitonicSortKVOp>(runBitonicSortKV<BlockBitonicSortKVOp>);
  table.addBlock<BlockRadixSortOp>(runRadixSort);
}

} // namespace qd::interp
