//===- RadixRank.cpp - ranks of a block's keys by one digit ----------------------------------===//
//
// Purpose: counts in shared memory, in which each subgroup has a row of counters of its own, one a digit:
//
//   %r = qd.block.radix_rank (%k) radix_bits(8) : i32
//     ->
//   %d = %k & 255                         %m = LANES OF THE SUBGROUP WITH THE SAME %d
//   %below = ctpop (%m & LANES BELOW)     qd.store %below + 1, %rows[%subgroup, %d] if HIGHEST LANE OF %m
//   qd.block.sync
//   one subgroup turns each counter into the number of keys that come before those that it counts
//   qd.block.sync
//   %before = qd.load %rows[%subgroup, %d]    %r = %before + %below
//
// Between the barriers of one rank and the next a subgroup touches its own row alone, so that ranks in a loop need no
// further barrier. With one key a thread, where counts fit 16 bits, a word holds two counters: those of the digits d
// and d + 2^(bits - 1), so that sums of words are sums of both.
//
// With several keys a thread a counter is half a word of its own, where the target has accesses to such: what travels
// through the row then is as short.
//
// Several keys a thread: matches go through the lanes in rounds, in which lane l has key l of as many neighbouring keys
// as there are lanes. Digits get there, and ranks back, through the subgroup's own row.
//
// Where shared memory has no row for each subgroup, neighbouring subgroups share one and count one after the other.
//
// Where the block's threads access memory in the order of their numbers, nothing has to be matched: one row serves all,
// and the counts that additions find there are the numbers of equal digits below.
//
//===----------------------------------------------------------------------===//

#include "passes/RadixRank.h"

#include "passes/LaneMasks.h"
#include "passes/RadixRanker.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace qd {

using Predicate = arith::CmpIPredicate;

/// What counters may take of a chip's shared memory, where that has more: Vulkan devices may have no more than twice
/// that.
static constexpr int64_t maxRowBytes = 16 * 1024;
/// Repeated steps are loops where there would be more of them than this.
static constexpr int32_t maxUnrolled = 16;

RadixDigits::RadixDigits(BlockRadixRankOp op)
    : keys(op.getKeys()), begin(op.getBegin()), staticBegin(op.getStaticBegin().value_or(0)),
      numBits(op.getNumBits().value_or(op.getRadixBits())), tableBits(op.getRadixBits()), bins(op.getBins()),
      prefix(op.getPrefix()) {}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

bool Ranker::allocate() {
  int64_t keysOfBlock = int64_t(threads) * numKeys;
  int32_t passing = numKeys == 1 ? 0 : numKeys * std::min(size, threads);
  int64_t maxBytes = std::min<int64_t>(maxRowBytes, staging.getCertainBytes() - staging.bytes - digits.reservedBytes);
  int64_t passingBytes = numKeys == 1 ? 0 : keysOfBlock * 4; // are needed in any case
  countsFit16 = keysOfBlock < (1 << 16);
  if (at.shape.isWarp && countsFit16 && numKeys > 1) {
    isHalf = true;
    element = i.b.getI16Type();
    words = numDigits;
    rows = subgroups;
    stride = llvm::alignTo(std::max(words, passing), mostHalves);
    stage.arrays = staging.findRows(element, rows, stride);
    if (!stage && (subgroups == 1 || int64_t(rows) * stride * 2 <= std::max(maxBytes, passingBytes)))
      stage.arrays = staging.acquireRows(at, op, element, rows, stride);
    if (stage)
      return true;
    isHalf = false;
    element = i.i32;
  }
  // Pairs take less memory, but more arithmetic for each key: of several keys a thread that is too much.
  for (bool isPacked : {countsFit16 && numKeys == 1, countsFit16}) {
    isPackedPair = isPacked;
    words = isPacked ? numDigits / 2 : numDigits;
    rows = subgroups;
    stride = std::max(words, passing);
    stage.arrays = staging.findRows(element, rows, stride);
    if (stage)
      return true;
    if (subgroups == 1 || int64_t(rows) * stride * 4 <= std::max(maxBytes, passingBytes)) {
      stage.arrays = staging.acquireRows(at, op, element, rows, stride);
      return bool(stage);
    }
  }
  hasOwnRows = false;
  stride = words;
  int32_t fitting = std::clamp<int64_t>(maxBytes / (4 * words), 1, subgroups);
  turns = llvm::divideCeil(subgroups, fitting);
  rows = llvm::divideCeil(subgroups, turns);
  stage = staging.acquire(at, op, i.i32, std::max<int64_t>(rows * words, passingBytes / 4));
  return bool(stage);
}

bool Ranker::allocateInOrder() {
  hasOwnRows = false;
  words = stride = numDigits;
  rows = 1;
  stage = staging.acquire(at, op, i.i32, std::max<int64_t>(words, numKeys == 1 ? 0 : int64_t(threads) * numKeys));
  return bool(stage);
}

void Ranker::findPlace() {
  thread = ThreadIndexOp::create(i.b, i.loc, i.i32);
  lane = LaneIdOp::create(i.b, i.loc, i.i32);
  int32_t partial = at.shape.getPartialLanes();
  if (subgroups == 1) {
    width = i.constant(threads, i.i32);
    return;
  }
  subgroup = i.shrU(thread, llvm::Log2_32(size));
  width = i.constant(size, i.i32);
  if (partial)
    width = i.select(i.compare(Predicate::uge, thread, threads - partial), i.constant(partial, i.i32), width);
  if (!isInOrder) {
    Value number = subgroup;
    if (turns > 1)
      number = i.divU(number, turns);
    row = i.mul(number, stride);
  }
  start = hasOwnRows ? row : i.mul(i.bitAnd(thread, -size), numKeys);
}

void Ranker::repeat(int32_t end, llvm::function_ref<void(Value)> body) {
  if (end <= maxUnrolled) {
    for (int32_t number = 0; number < end; ++number)
      body(i.constant(number, i.i32));
    return;
  }
  auto inLoop = [&](OpBuilder &, Location, Value number, ValueRange) {
    body(number);
    scf::YieldOp::create(i.b, i.loc);
  };
  scf::ForOp::create(i.b, i.loc, i.constant(0, i.i32), i.constant(end, i.i32), i.constant(1, i.i32), ValueRange(),
                     inLoop);
}

/// An element; 0 where a predicate is given and does not hold.
Value Ranker::load(Value index, Value predicate) {
  Value otherwise = predicate ? i.constant(0, element) : Value();
  Value number = stage.getElement(at, index);
  if (predicate) {
    auto access = number.getDefiningOp<LoadOp>();
    access.getPredicateMutable().assign(predicate);
    access.getOtherwiseMutable().assign(otherwise);
  }
  return i.cast(number, i.i32);
}

Value Ranker::get(const Counter &counter, Value isOnTurn) {
  Value word = load(counter.word, isOnTurn);
  return counter.shift ? i.bitAnd(i.shrU(word, counter.shift), 0xffff) : word;
}

/// Lanes that count add to different counters, but those may share a word.
void Ranker::addTo(const Counter &counter, Value old, Value number, Value predicate) {
  if (!counter.shift)
    return store(old ? i.add(old, number) : number, counter.word, predicate);
  Value index = stage.start ? i.add(stage.start, counter.word) : counter.word;
  AtomicRMWOp::create(i.b, i.loc, i.i32, AtomicKind::add, i.shl(number, counter.shift), stage.arrays.front(), index,
                      ArrayRef<int64_t>{ShapedType::kDynamic}, predicate, Order::relaxed, ScopeAttr());
}

/// All counters of the own row, or of the block's.
void Ranker::clear() {
  Value zero = i.constant(0, i.i32);
  if (isInOrder) {
    for (int32_t first = 0; first < words; first += threads) {
      Value index = i.add(thread, first);
      store(zero, index, first + threads > words ? i.compare(Predicate::ult, index, words) : Value());
    }
    return;
  }
  if (!hasOwnRows) {
    int32_t all = rows * words;
    auto body = [&](OpBuilder &, Location, Value index, ValueRange) {
      store(zero, index);
      scf::YieldOp::create(i.b, i.loc);
    };
    scf::ForOp::create(i.b, i.loc, thread, i.constant(all, i.i32), i.constant(threads, i.i32), ValueRange(), body);
    return;
  }
  int32_t partial = at.shape.getPartialLanes();
  int32_t lanes = std::min<int32_t>(words, llvm::bit_floor(unsigned(partial ? partial : size)));
  Value isActive;
  if (lanes < size && lanes != threads)
    isActive = i.compare(Predicate::ult, lane, lanes);
  // Neighbouring words are one access.
  int32_t each = std::min(isHalf ? mostHalves : 4, words / lanes);
  Value first = plus(row, i.shl(lane, llvm::Log2_32(each)));
  repeat(words / (lanes * each), [&](Value turn) {
    storeRun(SmallVector<Value>(each, zero), i.add(first, i.mul(turn, lanes * each)), isActive);
  });
}

//===----------------------------------------------------------------------===//
// Digits
//===----------------------------------------------------------------------===//

Values Ranker::getDigits() {
  Value begin = digits.begin;
  return at.each(digits.keys, [&](Value key) {
    if (begin)
      key = i.shrU(key, i.cast(begin, key.getType()));
    else if (digits.staticBegin)
      key = i.shrU(key, digits.staticBegin);
    return i.bitAnd(i.cast(key, i.i32), numDigits - 1);
  });
}

/// Values of neighbouring keys to neighbouring lanes.
Values Ranker::toRounds(ValueRange values) {
  Value own = plus(start, i.mul(lane, numKeys));
  storeRun(values, own);
  rowBarrier();
  Values moved;
  Value from = plus(start, lane);
  for (int32_t round = 0; round < numKeys; ++round) {
    moved.push_back(load(from));
    from = i.add(from, width);
  }
  return moved;
}

Values Ranker::fromRounds(ValueRange values) {
  Value to = plus(start, lane);
  for (Value value : values) {
    store(value, to);
    to = i.add(to, width);
  }
  if (hasOwnRows)
    rowBarrier();
  else
    staging.publish(at, stage);
  Value own = plus(start, i.mul(lane, numKeys));
  return loadRun(own, numKeys);
}

/// Finds each digit's counter, and the lanes with the same digit.
void Ranker::matchDigits(ValueRange digitsOfLane) {
  if (isInOrder) {
    for (Value digit : digitsOfLane)
      counters.push_back({digit, Value()});
    return;
  }
  Type word = at.getWordType();
  Value lower = i.sub(i.shl(i.constant(1, word), i.cast(lane, word)), 1);
  Value higher = i.shl(i.constant(-2, word), i.cast(lane, word));
  if (at.shape.getPartialLanes() || size < 32)
    higher = i.bitAnd(higher, buildPresentMask(at, word, size));
  for (Value digit : digitsOfLane) {
    Value same = buildMatchLowBits(at, digit, digits.numBits);
    below.push_back(i.cast(math::CtPopOp::create(i.b, i.loc, i.bitAnd(same, lower)), i.i32));
    isHighest.push_back(i.compare(Predicate::eq, i.bitAnd(same, higher), 0));
    Counter counter{digit, Value()};
    if (isPackedPair) {
      counter.word = i.bitAnd(digit, words - 1);
      // 16 in the upper half of the digits.
      int32_t up = 4 - (digits.numBits - 1);
      Value shift = up >= 0 ? i.shl(digit, up) : i.shrU(digit, -up);
      counter.shift = i.bitAnd(shift, 16);
    }
    counter.word = plus(row, counter.word);
    counters.push_back(counter);
  }
}

//===----------------------------------------------------------------------===//
// Counts
//===----------------------------------------------------------------------===//

/// Counts the subgroup's keys in its row, round by round, where it is its turn. The numbers of keys with the same digit
/// that come before each in the row, or `locals` where it is not.
Values Ranker::count(Value isOnTurn, Values locals) {
  Values counted;
  for (int32_t round = 0; round < numKeys; ++round) {
    Value old;
    if (round > 0 || turns > 1) {
      SubgroupSyncOp::create(i.b, i.loc);
      old = get(counters[round], isOnTurn);
      SubgroupSyncOp::create(i.b, i.loc);
    }
    addTo(counters[round], old, i.add(below[round], 1), both(isHighest[round], isOnTurn));
    Value local = old ? i.add(old, below[round]) : below[round];
    counted.push_back(isOnTurn ? i.select(isOnTurn, local, locals[round]) : local);
  }
  return counted;
}

/// Each addition finds what the lanes and subgroups below have added; keys come in their order.
Values Ranker::countInOrder() {
  Values counted;
  Value one = i.constant(1, i.i32);
  for (const Counter &counter : counters) {
    Value index = stage.start ? i.add(stage.start, counter.word) : counter.word;
    counted.push_back(AtomicRMWOp::create(i.b, i.loc, i.i32, AtomicKind::add, one, stage.arrays.front(), index,
                                          ArrayRef<int64_t>{ShapedType::kDynamic}, Value(), Order::relaxed, ScopeAttr())
                          .getResult());
  }
  barrier();
  return counted;
}

/// Subgroups that share a row count one after the other.
Values Ranker::countInTurns() {
  if (turns == 1) {
    Values counted = count(Value(), {});
    barrier();
    return counted;
  }
  Value own = i.remU(subgroup, turns);
  auto body = [&](OpBuilder &, Location, Value turn, ValueRange locals) {
    Values counted = count(i.compare(Predicate::eq, turn, own), locals);
    barrier();
    scf::YieldOp::create(i.b, i.loc, counted);
  };
  return ValueRange(scf::ForOp::create(i.b, i.loc, i.constant(0, i.i32), i.constant(turns, i.i32),
                                       i.constant(1, i.i32), below, body)
                        .getResults());
}

Values Ranker::rank() {
  // What is told of the digits may be read behind the op.
  llvm::SaveAndRestore ordersAll(staging.ordersAllMemory, bool(digits.bins || digits.prefix));
  isInOrder = at.shape.isVector;
  if (!(isInOrder ? allocateInOrder() : allocate()))
    return {};
  findPlace();
  Values digitsOfLane = getDigits();
  if (hasOwnRows)
    rowBarrier(); // the reads of the row's last use
  if (numKeys > 1) {
    digitsOfLane = toRounds(digitsOfLane);
    rowBarrier();
  }
  clear();
  matchDigits(digitsOfLane);
  rowBarrier();
  Values ranks = isInOrder ? countInOrder() : countInTurns();
  sumColumns();
  tellBeyond();
  if (hasOwnRows || numKeys > 1)
    barrier();
  else
    staging.publish(at, stage);
  for (int32_t round = 0; round < numKeys; ++round)
    ranks[round] = i.add(ranks[round], get(counters[round]));
  if (numKeys == 1)
    return ranks;
  rowBarrier();
  return fromRounds(ranks);
}

Values buildRadixRank(const LaneBuilder &at, Operation *op, const RadixDigits &digits, Staging &staging) {
  return Ranker(at, op, digits, staging).rank();
}

} // namespace qd
