//===- RadixSort.cpp - radix sorts of a block's keys -----------------------------------------===//
//
// Purpose: stable ranks by one digit after the other, from the lowest; after each the keys and values change places
// through shared memory:
//
//   %r = qd.block.radix_sort unsigned (%k) : i32
//     ->
//   %r = scf.for %b = 0 to 32 step 8 iter_args(%key = %k) {
//     %rank = qd.block.radix_rank (%key) radix_bits(8) begin(%b)
//     qd.store %key, %s[%rank]   qd.block.sync   %next = qd.load %s[%t]   scf.yield %next
//   }
//
// Keys are integers of the sort's order on the way. The digits are as wide as suits the number of keys; the last one
// ends where the sort does, and may repeat bits of the one before, which changes nothing.
//
//===----------------------------------------------------------------------===//

#include "passes/RadixSort.h"

#include "passes/KeyOrder.h"
#include "passes/RadixRank.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

namespace {

/// Builds the expansion of one sort.
class RadixSorter {
public:
  RadixSorter(const LaneBuilder &at, BlockRadixSortOp op, Staging &staging)
      : at(at), i(at), op(op), staging(staging), order{op.getKeys().front().getType(),
                                                                       op.getUnsignedKeys()},
        numKeys(op.getKeys().size()), count(int64_t(at.shape.threads) * numKeys) {}

  Values sort();

private:
  Values pass(ValueRange elements, Value begin, int32_t staticBegin);
  int64_t countExchangeBytes(ValueRange elements) const;
  Values exchange(ValueRange elements, ValueRange ranks);
  Values exchangeWords(ValueRange elements, ValueRange ranks);
  Values toWords(Value element);
  Value fromWords(ValueRange words, Type type);

  Value toKey(Value value) {
    Value bits = order.map(i, value, /*keepsSign=*/false);
    return i.cast(op.getDescending() ? i.bitNot(bits) : bits, wordType);
  }
  Value fromKey(Value word) {
    Value bits = i.cast(word, i.b.getIntegerType(order.getBits()));
    return order.unmap(i, op.getDescending() ? i.bitNot(bits) : bits, /*keepsSign=*/false);
  }

  const LaneBuilder &at;
  IntegerBuilder i;
  BlockRadixSortOp op;
  Staging &staging;
  KeyOrder order;
  int32_t numKeys;
  int64_t count; ///< of the block's keys
  Type wordType;
  int32_t digitBits = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Exchanges
//===----------------------------------------------------------------------===//

Values RadixSorter::toWords(Value element) {
  Value bits = i.toBits(element);
  if (bits.getType().getIntOrFloatBitWidth() <= 32)
    return i.cast(bits, i.i32);
  Values words = i.cast(bits, i.i32);
  words.push_back(i.cast(i.shrU(bits, 32), i.i32));
  return words;
}

Value RadixSorter::fromWords(ValueRange words, Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  Value bits = i.cast(words.front(), i.b.getIntegerType(width));
  if (words.size() > 1)
    bits = i.bitOr(bits, i.shl(i.cast(words.back(), i.i64), 32));
  return i.bitcast(bits, type);
}

/// What an exchange takes: of all at once, where that is no more than half of shared memory, or of a word.
int64_t RadixSorter::countExchangeBytes(ValueRange elements) const {
  int64_t bytes = 0;
  for (size_t first = 0; first < elements.size(); first += numKeys)
    bytes += count * staging.getElementBytes(elements[first].getType());
  return bytes <= staging.getCertainBytes() / 2 ? bytes : count * staging.getElementBytes(i.i32);
}

/// Keys, then values, each to the place of its rank: at once, or one word after the other where shared memory is short.
Values RadixSorter::exchange(ValueRange elements, ValueRange ranks) {
  SmallVector<Type> types;
  for (size_t first = 0; first < elements.size(); first += numKeys)
    types.push_back(elements[first].getType());
  if (!staging.hasRoom(types, count))
    return exchangeWords(elements, ranks);
  Stage stage = staging.acquire(at, op, types, count);
  if (!stage)
    return {};
  auto getElements = [&](int32_t number) {
    Values each;
    for (size_t at = number; at < elements.size(); at += numKeys)
      each.push_back(elements[at]);
    return each;
  };
  for (int32_t number = 0; number < numKeys; ++number)
    stage.store(at, getElements(number), ranks[number]);
  staging.publish(at, stage);
  Value first = i.mul(ThreadIndexOp::create(i.b, i.loc, i.i32), numKeys);
  Values moved;
  moved.resize(elements.size());
  for (int32_t number = 0; number < numKeys; ++number)
    for (auto [group, value] : llvm::enumerate(stage.load(at, i.add(first, number))))
      moved[group * numKeys + number] = value;
  return moved;
}

Values RadixSorter::exchangeWords(ValueRange elements, ValueRange ranks) {
  Value first = i.mul(ThreadIndexOp::create(i.b, i.loc, i.i32), numKeys);
  SmallVector<Values> moved(elements.size());
  for (size_t group = 0; group < elements.size(); group += numKeys) {
    SmallVector<Values> words;
    for (int32_t number = 0; number < numKeys; ++number)
      words.push_back(toWords(elements[group + number]));
    for (size_t part = 0; part < words.front().size(); ++part) {
      Stage stage = staging.acquire(at, op, i.i32, count);
      if (!stage)
        return {};
      for (int32_t number = 0; number < numKeys; ++number)
        stage.store(at, words[number][part], ranks[number]);
      staging.publish(at, stage);
      for (int32_t number = 0; number < numKeys; ++number)
        moved[group + number].push_back(stage.getElement(at, i.add(first, number)));
    }
  }
  Values results;
  for (auto [element, words] : llvm::zip_equal(elements, moved))
    results.push_back(fromWords(words, element.getType()));
  return results;
}

//===----------------------------------------------------------------------===//
// Passes over the digits
//===----------------------------------------------------------------------===//

Values RadixSorter::pass(ValueRange elements, Value begin, int32_t staticBegin) {
  RadixDigits digits(elements.take_front(numKeys), digitBits);
  digits.begin = begin;
  digits.staticBegin = staticBegin;
  digits.reservedBytes = countExchangeBytes(elements);
  Values ranks = buildRadixRank(at, op, digits, staging);
  return ranks.empty() ? Values() : exchange(elements, ranks);
}

Values RadixSorter::sort() {
  constexpr int32_t minDigitBits = 4, maxDigitBits = 8;
  int32_t begin = op.getBegin().value_or(0), end = op.getEnd().value_or(order.getBits()), bits = end - begin;
  int32_t wanted = std::clamp<int32_t>(llvm::Log2_64_Ceil(count), minDigitBits, maxDigitBits);
  int32_t passes = llvm::divideCeil(bits, wanted);
  digitBits = llvm::divideCeil(bits, passes);
  wordType = order.getBits() <= 32 ? i.i32 : i.i64;
  Values elements = at.each(op.getKeys(), [&](Value key) { return toKey(key); });
  elements.append(op.getValues().begin(), op.getValues().end());

  if (passes == 1) {
    elements = pass(elements, Value(), begin);
  } else {
    bool hasFailed = false;
    auto body = [&](OpBuilder &, Location, Value number, ValueRange current) {
      staging.enterLoop();
      Value at = i.add(i.mul(number, digitBits), begin);
      if (bits % digitBits)
        at = i.b.createOrFold<arith::MinUIOp>(i.loc, at, i.constant(end - digitBits, i.i32));
      Values next = pass(current, at, 0);
      hasFailed = next.empty();
      scf::YieldOp::create(i.b, i.loc, hasFailed ? ValueRange(current) : ValueRange(next));
    };
    elements = ValueRange(scf::ForOp::create(i.b, i.loc, i.constant(0, i.i32), i.constant(passes, i.i32),
                                             i.constant(1, i.i32), elements, body)
                              .getResults());
    if (hasFailed)
      return {};
  }
  if (elements.empty())
    return {};
  for (Value &key : MutableArrayRef<Value>(elements).take_front(numKeys))
    key = fromKey(key);
  return elements;
}

Values buildRadixSort(const LaneBuilder &at, BlockRadixSortOp op, Staging &staging) {
  return RadixSorter(at, op, staging).sort();
}

} // namespace qd
