//===- RadixHalves.cpp - counters of digits in halves of words -------------------------------===//
//
// Purpose: accesses of neighbouring elements of the memory of RadixRank.cpp, and the sums of its counters where each
// has half a word: two neighbours are added up at once, as no count of the block overflows its half.
//
//===----------------------------------------------------------------------===//

#include "passes/RadixRanker.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace qd {

/// Words of counters that a lane keeps from the sums to the starts; more are read again.
static constexpr int32_t mostKept = 32;

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// How many of `count` halves are one access.
static int32_t getAccess(int32_t count) { return std::min(count & -count, Ranker::mostHalves); }

Values Ranker::loadRun(Value index, int32_t count, Value predicate) {
  Values numbers;
  int32_t each = isHalf ? getAccess(count) : 1;
  for (int32_t first = 0; first < count; first += each) {
    Value place = i.add(index, first);
    if (each == 1) {
      numbers.push_back(load(place, predicate));
      continue;
    }
    auto type = VectorType::get(each, element);
    Value otherwise;
    if (predicate) {
      SmallVector<Value> zeros(each, i.constant(0, element));
      otherwise = vector::FromElementsOp::create(i.b, i.loc, type, zeros);
    }
    Value access = LoadOp::create(i.b, i.loc, type, stage.arrays.front(), place,
                                  i.b.getDenseI64ArrayAttr(ShapedType::kDynamic), predicate, otherwise, UnitAttr(),
                                  i.b.getI32IntegerAttr(2 * each));
    for (Value half : vector::ToElementsOp::create(i.b, i.loc, access).getResults())
      numbers.push_back(i.cast(half, i.i32));
  }
  return numbers;
}

void Ranker::storeRun(ValueRange values, Value index, Value predicate) {
  int32_t count = values.size(), each = isHalf ? getAccess(count) : 1;
  for (int32_t first = 0; first < count; first += each) {
    Value place = i.add(index, first);
    if (each == 1) {
      store(values[first], place, predicate);
      continue;
    }
    Values halves = at.each(values.slice(first, each), [&](Value value) { return i.cast(value, element); });
    Value whole = vector::FromElementsOp::create(i.b, i.loc, VectorType::get(each, element), halves);
    StoreOp::create(i.b, i.loc, whole, stage.arrays.front(), place, i.b.getDenseI64ArrayAttr(ShapedType::kDynamic),
                    predicate, UnitAttr(), i.b.getI32IntegerAttr(2 * each));
  }
}

Values Ranker::loadWords(Value index, int32_t count, Value predicate) {
  Values halves = loadRun(index, 2 * count, predicate), words;
  for (int32_t word = 0; word < count; ++word)
    words.push_back(i.bitOr(halves[2 * word], i.shl(halves[2 * word + 1], 16)));
  return words;
}

void Ranker::storeWords(ValueRange words, Value index, Value predicate) {
  Values halves;
  for (Value word : words) {
    halves.push_back(word);
    halves.push_back(i.shrU(word, 16));
  }
  storeRun(halves, index, predicate);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// One subgroup replaces each counter of words that its lanes share out by the number of keys before its first one.
void Ranker::sumHalves(Value lane, Value isActive) {
  int32_t each = words / 2 / sumLanes;
  Value first = i.shl(lane, llvm::Log2_32(2 * each));
  bool isLoop = rows * each > mostKept;
  auto forRows = [&](Values carried, llvm::function_ref<Values(Value, ValueRange)> step) -> Values {
    if (!isLoop) {
      for (int32_t r = 0; r < rows; ++r)
        carried = step(i.add(first, r * stride), carried);
      return carried;
    }
    auto body = [&](OpBuilder &, Location, Value r, ValueRange values) {
      Values next = step(i.add(first, i.mul(r, stride)), values);
      scf::YieldOp::create(i.b, i.loc, next);
    };
    auto loop = scf::ForOp::create(i.b, i.loc, i.constant(0, i.i32), i.constant(rows, i.i32), i.constant(1, i.i32),
                                   carried, body);
    return loop.getResults();
  };
  auto addEach = [&](ValueRange a, ValueRange b) {
    Values sums;
    for (auto [x, y] : llvm::zip_equal(a, b))
      sums.push_back(i.add(x, y));
    return sums;
  };
  SmallVector<Values> kept;
  SmallVector<Value> zeros(each, i.constant(0, i.i32));
  Values totals = forRows(ValueRange(zeros), [&](Value index, ValueRange sums) {
    Values counts = loadWords(index, each, isActive);
    if (!isLoop)
      kept.push_back(counts);
    return addEach(sums, counts);
  });

  auto addHalves = [&](Value word) { return i.add(i.bitAnd(word, 0xffff), i.shrU(word, 16)); };
  Value all = totals.front();
  for (Value total : ArrayRef<Value>(totals).drop_front())
    all = i.add(all, total);
  Value before = scanLanes(addHalves(all), /*isPair=*/false);
  Values starts;
  for (int32_t word = 0; word < each; ++word) {
    Value total = totals[word];
    // The upper digit's keys come behind the lower one's.
    starts.push_back(i.add(i.mul(before, 0x10001), i.shl(total, 16)));
    Value digit = i.add(first, 2 * word), lower = i.bitAnd(total, 0xffff);
    tell(digit, before, lower, isActive);
    tell(i.add(digit, 1), i.add(before, lower), i.shrU(total, 16), isActive);
    before = i.add(before, addHalves(total));
  }
  int32_t row = 0;
  forRows(starts, [&](Value index, ValueRange starts) {
    Values counts = isLoop ? loadWords(index, each, isActive) : kept[row++];
    storeWords(starts, index, isActive);
    return addEach(starts, counts);
  });
}

} // namespace qd
