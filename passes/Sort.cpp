//===- Sort.cpp - sorting networks across lanes ---------------------------------------===//
//
// Purpose: the bitonic network in the form whose comparators all point the same way. A merge of two sorted runs of k
// lanes first pairs each lane with its mirror image (mask 2k - 1), then lanes at the distances k/2 ... 1:
//
//   %r = qd.subgroup.bitonic_sort unsigned %k tile(2) : i32
//     ->
//   %upper = (lane & 1) != 0   %o = qd.subgroup.shuffle_xor %k, 1
//   %take = (%o < %k) xor %upper   %r = select %take, %o, %k
//
// The smaller element always goes to the lower lane: there is one predicate a bit of the lane number, which all steps
// share, and lanes that do not exist, at the upper end, act as largest elements of which nobody needs to know.
//
// Where that spares moves, lanes do not stand in the order of their numbers before a merge: each bit of a lane's place
// in the network is a sum, modulo 2, of bits of its number. Partners still differ by a constant mask, whose bits solve
// these sums; a step may take another sum for the bit that it compares by, as all pairs of lanes that this exchanges
// hold two elements in order.
//
// Keys and values become words that compare as integers do: one of 32 or 64 bits where key and value fit together,
// else two, of which the first decides where it differs. Equal elements have equal bits, so that it never matters
// which of them a lane takes; and a descending sort only turns the predicates around. Where lanes have rows, all words
// of an element compare as one number without a sign, which takes one subtraction with borrow a word, but pairs of
// integers where one comparison does that.
//
//===----------------------------------------------------------------------===//

#include "passes/Sort.h"

#include "passes/KeyOrder.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

namespace {

/// How elements are spread over words, the one that decides first in front. The first word compares signed where
/// the key does, all others unsigned.
class Layout {
public:
  Layout(const SortOrder &order, const BlockShape &shape, int32_t lanes)
      : key{order.key.getType(), order.isUnsignedKey} {
    if (order.value)
      value = KeyOrder{order.value.getType(), order.isUnsignedValue};
    bool comparesPairs = shape.comparesPairs && !key.isFloat();
    comparesWhole = shape.rowLanes && getNumWords32() > (comparesPairs ? 2 : 1);
    splitsPair = shape.subtractsMoved && key.isFloat() && key.getBits() == 32 && getValueBits() == 32 &&
                 lanes <= shape.subgroupSize;
  }

  bool isSigned() const { return key.hasSign() && !isWhole(); }
  /// Whether the words compare as one number without a sign.
  bool isWhole() const { return comparesWhole; }
  /// Whether a key that is turned around and a value are words of their own.
  bool isSplit() const { return splitsPair; }
  unsigned getNumWords32() const {
    unsigned bits = getBits();
    return bits <= 32 ? 1 : bits <= 64 ? 2 : bits <= 96 ? 3 : 4;
  }

  Values pack(const IntegerBuilder &i, const SortOrder &order) const;
  Values unpack(const IntegerBuilder &i, ArrayRef<Value> words) const;

private:
  unsigned getValueBits() const { return value ? value->getBits() : 0; }
  unsigned getBits() const { return key.getBits() + getValueBits(); }
  /// Whether a key of 64 bits and a narrower value share words of 32 and 64 bits.
  bool splitsKey() const { return getNumWords32() == 3 && key.getBits() == 64; }

  KeyOrder key;
  std::optional<KeyOrder> value;
  bool comparesWhole = false, splitsPair = false;
};

/// The network over one kernel's lanes.
class Sorter {
public:
  Sorter(const LaneBuilder &at, const SortOrder &order, int32_t lanes, Exchange exchange)
      : at(at), i(at), shape(at.shape), order(order), layout(order, at.shape, lanes), lanes(lanes), exchange(exchange) {
  }

  Values sort();
  /// Keys of one bit: as many lanes as there are smaller keys hold one of these.
  Value sortBits();

private:
  bool step(int32_t mask, int32_t bits);
  bool merge(int32_t run);
  int32_t getMask(int32_t flipped) const;
  int32_t getPlace(int32_t run, int32_t bit);
  bool missesPartners(int32_t mask) const;
  Value isBefore(ArrayRef<Value> lhs, ArrayRef<Value> rhs, bool isSigned);
  Value getTakesLast(int32_t bits, bool isInverted);
  Value getLane();

  const LaneBuilder &at;
  IntegerBuilder i;
  const BlockShape &shape;
  const SortOrder &order;
  Layout layout;
  int32_t lanes;
  Exchange exchange;
  Values words;
  Value result; ///< in the last steps the key as it is returned
  Value lane;
  llvm::ArrayRef<int32_t> sums;      ///< `shape.sums` of the steps to come
  llvm::SmallVector<int32_t> places; ///< for each bit of a lane's place, the bits of its number whose sum that is
  llvm::DenseMap<int32_t, Value> takesLast; ///< by bits of the lane number
};

} // namespace

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

Values Layout::pack(const IntegerBuilder &i, const SortOrder &order) const {
  unsigned numWords = getNumWords32();
  Value high = key.map(i, order.key, /*keepsSign=*/!isWhole());
  Value low = value ? value->map(i, order.value, /*keepsSign=*/false) : Value();
  if (numWords <= 2 && !splitsPair) {
    Type word = numWords == 1 ? i.i32 : i.i64;
    high = i.cast(high, word, isSigned());
    return low ? i.bitOr(i.shl(high, getValueBits()), i.cast(low, word)) : high;
  }
  if (splitsKey()) {
    low = i.bitOr(i.shl(high, 32), i.cast(low, i.i64));
    high = i.shrU(high, 32);
  }
  Values words = i.cast(high, numWords == 4 ? i.i64 : i.i32, isSigned());
  words.push_back(low);
  return words;
}

Values Layout::unpack(const IntegerBuilder &i, ArrayRef<Value> words) const {
  Value high = words.front(), low = words.back();
  if (splitsKey())
    high = i.bitOr(i.shl(i.cast(high, i.i64), 32), i.shrU(low, 32));
  else if (value && words.size() == 1)
    high = i.shrU(high, getValueBits());
  auto toType = [&](const KeyOrder &order, Value word, bool keepsSign) {
    return order.unmap(i, i.cast(word, i.b.getIntegerType(order.getBits())), keepsSign);
  };
  Values values = toType(key, high, /*keepsSign=*/!isWhole());
  if (value)
    values.push_back(toType(*value, low, /*keepsSign=*/false));
  return values;
}

//===----------------------------------------------------------------------===//
// The network
//===----------------------------------------------------------------------===//

/// The lane's number, of which bits below the group's size count.
Value Sorter::getLane() {
  if (!lane)
    lane = lanes > shape.subgroupSize ? ThreadIndexOp::create(i.b, i.loc, i.i32).getResult()
                                      : LaneIdOp::create(i.b, i.loc, i.i32).getResult();
  return lane;
}

/// Whether the lane receives the element that comes last, as those with an odd number of the bits do, or else whether
/// not.
Value Sorter::getTakesLast(int32_t bits, bool isInverted) {
  Value &predicate = takesLast[bits];
  if (predicate)
    return predicate;
  bool isEven = order.isDescending != isInverted;
  for (int32_t bit = 1; bit <= bits; bit *= 2)
    if (bits & bit) {
      Value hasBit = i.compare(isEven && !predicate ? arith::CmpIPredicate::eq : arith::CmpIPredicate::ne,
                               i.bitAnd(getLane(), bit), 0);
      predicate = predicate ? i.bitXor(predicate, hasBit) : hasBit;
    }
  return predicate;
}

/// Whether a thread is paired with one that does not exist.
bool Sorter::missesPartners(int32_t mask) const {
  for (int32_t thread = 0; thread < shape.threads; ++thread)
    if ((thread ^ mask) >= shape.threads)
      return true;
  return false;
}

Value Sorter::isBefore(ArrayRef<Value> lhs, ArrayRef<Value> rhs, bool isSigned) {
  Value isLess = i.compare(isSigned ? arith::CmpIPredicate::slt : arith::CmpIPredicate::ult, lhs.front(), rhs.front());
  if (lhs.size() == 1)
    return isLess;
  Value isEqual = i.compare(arith::CmpIPredicate::eq, lhs.front(), rhs.front());
  Value restIsLess = isBefore(lhs.drop_front(), rhs.drop_front(), /*isSigned=*/false);
  return i.bitOr(isLess, i.bitAnd(isEqual, restIsLess));
}

/// The bits of a lane's number whose sum is a bit of its place, where runs of so many lanes are merged.
int32_t Sorter::getPlace(int32_t run, int32_t bit) {
  if (!sums.empty()) {
    int32_t place = sums.front();
    sums = sums.drop_front();
    return place;
  }
  bool isWhole = shape.threads % lanes == 0; // lanes that do not exist are the last ones
  int32_t place = bit;
  for (const Turn &turn : shape.turns)
    if (isWhole && run < lanes && run >= turn.firstRun && run <= turn.lastRun && (turn.turned & bit))
      place |= turn.by;
  return place;
}

/// What takes a lane's number to that of the lane whose place differs in the bits `flipped`.
int32_t Sorter::getMask(int32_t flipped) const {
  auto flips = [&](int32_t mask) {
    for (auto [at, bits] : llvm::enumerate(places))
      if ((llvm::popcount(uint32_t(mask & bits)) & 1) != (flipped >> at & 1))
        return false;
    return true;
  };
  int32_t mask = 1;
  while (!flips(mask))
    ++mask;
  return mask;
}

/// Merges runs of so many lanes by pairs of mirror images, then distances; false where an exchange failed.
bool Sorter::merge(int32_t run) {
  // Turning a key back takes as long as some steps, which do not wait for it where they choose among both keys: the
  // more of them do, the less waits, for an instruction each.
  int32_t firstTurned = shape.subgroupSize > 32 ? 4 : 16;
  bool turnsEarly = layout.isSplit() && lanes == shape.subgroupSize && shape.threads % lanes == 0;
  for (int32_t distance = run; distance; distance /= 2) {
    int32_t flipped = distance == run ? 2 * run - 1 : distance;
    int32_t place = getPlace(2 * run, distance), change = places[llvm::Log2_32(distance)] ^ place;
    if (turnsEarly && 2 * run == lanes && distance == firstTurned)
      result = layout.unpack(i, words).front();
    if (!step(getMask(flipped), place))
      return false;
    for (unsigned at = 0; at < places.size(); ++at)
      if (flipped >> at & 1)
        places[at] ^= change;
  }
  return true;
}

/// One comparator a pair of lanes; false where the exchange failed.
bool Sorter::step(int32_t mask, int32_t bits) {
  Value hasPartner;
  if (missesPartners(mask)) {
    Value thread = ThreadIndexOp::create(i.b, i.loc, i.i32);
    hasPartner = i.compare(arith::CmpIPredicate::ult, i.bitXor(thread, mask), shape.threads);
  }
  bool isShuffle = mask < shape.subgroupSize;
  Values moved = words, others;
  if (result)
    moved.push_back(result);
  if (isShuffle) {
    // The last word is compared first, and moves first.
    std::reverse(moved.begin(), moved.end());
    others = at.shuffleXor(moved, mask);
    std::reverse(others.begin(), others.end());
  } else {
    others = exchange(moved, mask, hasPartner);
  }
  if (others.empty())
    return false;
  // One number's comparison leaves a borrow, by which the own word, as the second operand, is kept.
  bool keeps = layout.isWhole();
  Value isOtherBefore = isBefore(ArrayRef<Value>(others).take_front(words.size()), words, layout.isSigned());
  Value choice = i.bitXor(isOtherBefore, getTakesLast(bits, /*isInverted=*/keeps));
  if (hasPartner && isShuffle)
    choice = i.select(hasPartner, choice, i.constant(keeps, i.i1)); // it is poison without a partner
  auto choose = [&](Value own, Value other) {
    return keeps ? i.select(choice, own, other) : i.select(choice, other, own);
  };
  for (auto [own, other] : llvm::zip(words, others))
    own = choose(own, other);
  if (result)
    result = choose(result, others.back());
  return true;
}

Values Sorter::sort() {
  words = layout.pack(i, order);
  for (int32_t bit = 1; bit < lanes; bit *= 2)
    places.push_back(bit);
  if (lanes == shape.subgroupSize && shape.threads % lanes == 0 && !shape.sums.empty()) {
    sums = shape.sums.drop_front(places.size());
    llvm::copy(shape.sums.take_front(places.size()), places.begin());
  }
  for (int32_t run = 1; run < lanes; run *= 2)
    if (!merge(run))
      return {};
  Values values = layout.unpack(i, words);
  if (result)
    values.front() = result;
  return values;
}

Value Sorter::sortBits() {
  // As a signed number 1 is -1.
  bool isTrueFirst = order.isUnsignedKey == order.isDescending;
  Value isFirst = isTrueFirst ? order.key : i.bitNot(order.key);
  Type word = shape.subgroupSize > 32 ? i.i64 : i.i32;
  Value ballot = i.cast(BallotOp::create(i.b, i.loc, isFirst), word), lane = getLane();
  if (lanes < shape.subgroupSize && lanes < shape.threads) {
    Value start = i.cast(i.bitAnd(lane, -lanes), word);
    ballot = i.bitAnd(i.shrU(ballot, start), int64_t((uint64_t(1) << lanes) - 1));
    lane = i.bitAnd(lane, lanes - 1);
  }
  Value count = i.cast(math::CtPopOp::create(i.b, i.loc, ballot), i.i32);
  return i.compare(isTrueFirst ? arith::CmpIPredicate::ult : arith::CmpIPredicate::uge, lane, count);
}

Values buildSort(const LaneBuilder &builder, const SortOrder &order, int32_t lanes, Exchange exchange) {
  // A block smaller than the subgroup leaves its end empty.
  lanes = std::min(lanes, int32_t(llvm::PowerOf2Ceil(builder.shape.threads)));
  if (lanes == 1) {
    Values values = order.key;
    if (order.value)
      values.push_back(order.value);
    return values;
  }
  Sorter sorter(builder, order, lanes, exchange);
  if (!order.value && order.key.getType().isInteger(1) && lanes <= builder.shape.subgroupSize)
    return sorter.sortBits();
  return sorter.sort();
}

} // namespace qd
