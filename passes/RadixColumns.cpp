//===- RadixColumns.cpp - sums of the counters of digits --------------------------------------===//
//
// Purpose: one subgroup turns each counter of RadixRank.cpp into the number of keys that come before those that it
// counts, and tells bins and prefixes. A column holds the counters of one digit, a row of counters each.
//
//===----------------------------------------------------------------------===//

#include "passes/RadixRanker.h"
#include "passes/Scan.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace qd {

using Predicate = arith::CmpIPredicate;

/// Counters that one lane sums up without a loop.
static constexpr int32_t maxCounters = 64;

/// The sums of the lanes below. Of pairs all counters of lower digits come before those of the upper ones.
Value Ranker::scanLanes(Value total, bool isPair) {
  Value sums = buildInclusiveScan(at, Combiner(Kind::add), total, size).front();
  Value before = i.sub(sums, total);
  if (!isPair)
    return before;
  Value all = threads == 1 ? sums : at.broadcast(sums, sumLanes - 1, size).front();
  return i.add(before, i.shl(all, 16));
}

/// Tells how many keys have the digits of a word, and how many a lower one.
void Ranker::tell(Value word, Value startOfWord, Value total, Value isActive) {
  auto put = [&](Value array, Value number, Value index) {
    auto access = StoreOp::create(i.b, i.loc, number, array, index);
    if (isActive)
      access.getPredicateMutable().assign(isActive);
  };
  for (auto [array, value] : {std::pair(digits.bins, total), std::pair(digits.prefix, startOfWord)}) {
    if (!array)
      continue;
    put(array, isPackedPair ? i.bitAnd(value, 0xffff) : value, word);
    if (isPackedPair)
      put(array, i.shrU(value, 16), i.add(word, words));
  }
}

/// Digits that `num_bits` leaves out have no keys.
void Ranker::tellBeyond() {
  int32_t end = 1 << digits.tableBits;
  if (!(digits.bins || digits.prefix) || end <= numDigits)
    return;
  auto body = [&](OpBuilder &, Location, Value index, ValueRange) {
    if (digits.bins)
      StoreOp::create(i.b, i.loc, i.constant(0, i.i32), digits.bins, index);
    if (digits.prefix)
      StoreOp::create(i.b, i.loc, i.constant(threads * numKeys, i.i32), digits.prefix, index);
    scf::YieldOp::create(i.b, i.loc);
  };
  scf::ForOp::create(i.b, i.loc, i.add(thread, numDigits), i.constant(end, i.i32), i.constant(threads, i.i32),
                     ValueRange(), body);
}

void Ranker::sumFewColumns(Value lane, Value isActive) {
  int32_t each = words / sumLanes;
  // A lane's words are neighbours, up to four: one access of the lanes then is one of neighbouring memory. Where there
  // are twice as many, two such groups are scanned as pairs.
  bool isSplit = each == 8 && countsFit16 && !isPackedPair;
  int32_t inGroup = isSplit ? each / 2 : each;
  Value first = i.shl(lane, llvm::Log2_32(inGroup));
  auto place = [&](int32_t c) { return c / inGroup * (words / 2) + c % inGroup; };
  SmallVector<SmallVector<Value>> counts(rows);
  SmallVector<Value> totals(each);
  for (int32_t r = 0; r < rows; ++r)
    for (int32_t c = 0; c < each; ++c) {
      Value number = load(i.add(first, r * stride + place(c)), isActive);
      counts[r].push_back(number);
      totals[c] = r ? i.add(totals[c], number) : number;
    }
  auto sum = [&](int32_t begin, int32_t end) {
    Value total = totals[begin];
    for (int32_t c = begin + 1; c < end; ++c)
      total = i.add(total, totals[c]);
    return total;
  };
  Value total = isSplit ? i.add(sum(0, inGroup), i.shl(sum(inGroup, each), 16)) : sum(0, each);
  Value pair = scanLanes(total, isPackedPair || isSplit);
  Value before = isSplit ? i.bitAnd(pair, 0xffff) : pair;
  SmallVector<Value> starts;
  for (int32_t c = 0; c < each; ++c) {
    if (isSplit && c == inGroup)
      before = i.shrU(pair, 16);
    starts.push_back(before);
    tell(i.add(first, place(c)), before, totals[c], isActive);
    before = i.add(before, totals[c]);
  }
  for (int32_t r = 0; r < rows; ++r)
    for (int32_t c = 0; c < each; ++c) {
      store(starts[c], i.add(first, r * stride + place(c)), isActive);
      starts[c] = i.add(starts[c], counts[r][c]);
    }
}

void Ranker::sumManyColumns(Value lane, Value isActive) {
  int32_t each = words / sumLanes;
  Value first = i.shl(lane, llvm::Log2_32(each));
  auto loop = [&](int32_t end, Value from, llvm::function_ref<Value(Value, Value)> step) {
    auto body = [&](OpBuilder &, Location, Value number, ValueRange sum) {
      Value next = step(number, sum.front());
      scf::YieldOp::create(i.b, i.loc, next);
    };
    return scf::ForOp::create(i.b, i.loc, i.constant(0, i.i32), i.constant(end, i.i32), i.constant(1, i.i32), from,
                              body)
        .getResult(0);
  };
  auto place = [&](Value word, Value r) {
    return i.add(word, i.mul(r, stride));
  };
  Value total = loop(each, i.constant(0, i.i32), [&](Value c, Value sum) {
    Value word = i.add(first, c);
    return loop(rows, sum, [&](Value r, Value sum) { return i.add(sum, load(place(word, r), isActive)); });
  });
  loop(each, scanLanes(total, isPackedPair), [&](Value c, Value before) {
    Value word = i.add(first, c);
    Value after = loop(rows, before, [&](Value r, Value sum) {
      Value index = place(word, r), number = load(index, isActive);
      store(sum, index, isActive);
      return i.add(sum, number);
    });
    tell(word, before, i.sub(after, before), isActive);
    return after;
  });
}

/// One subgroup replaces each count by the sum of those below, as many neighbours at a time as it has lanes.
void Ranker::sumInOrder() {
  int32_t present = std::min(size, threads);
  int32_t width = std::min<int32_t>(words, llvm::bit_floor(unsigned(present)));
  auto sum = [&] {
    Value isActive = width < present ? i.compare(Predicate::ult, lane, width) : Value();
    auto step = [&](Value turn, Value before) -> Value {
      Value word = i.add(lane, i.mul(turn, width));
      Value count = load(word, isActive);
      Value sums = i.add(buildInclusiveScan(at, Combiner(Kind::add), count, size).front(), before);
      Value start = i.sub(sums, count);
      store(start, word, isActive);
      tell(word, start, count, isActive);
      return threads == 1 ? sums : at.broadcast(sums, width - 1, size).front();
    };
    int32_t turns = words / width;
    auto body = [&](OpBuilder &, Location, Value turn, ValueRange before) {
      Value next = step(turn, before.front());
      scf::YieldOp::create(i.b, i.loc, next);
    };
    Value zero = i.constant(0, i.i32);
    if (turns == 1)
      step(zero, zero);
    else
      scf::ForOp::create(i.b, i.loc, zero, i.constant(turns, i.i32), i.constant(1, i.i32), zero, body);
  };
  if (subgroups == 1)
    return sum();
  auto then = [&](OpBuilder &, Location) {
    sum();
    scf::YieldOp::create(i.b, i.loc);
  };
  scf::IfOp::create(i.b, i.loc, i.compare(Predicate::eq, subgroup, 0), then);
}

/// One subgroup replaces each counter by the number of keys that come before its first one.
void Ranker::sumColumns() {
  if (isInOrder)
    return sumInOrder();
  int32_t present = std::min(size, threads);
  sumLanes = std::min<int32_t>(isHalf ? words / 2 : words, llvm::bit_floor(unsigned(present)));
  int32_t each = words / sumLanes;
  auto sum = [&] {
    Value own = sumLanes < present ? i.bitAnd(lane, sumLanes - 1) : lane;
    Value isActive = sumLanes < present ? i.compare(Predicate::ult, lane, sumLanes) : Value();
    if (isHalf)
      sumHalves(own, isActive);
    else if (rows * each <= maxCounters)
      sumFewColumns(own, isActive);
    else
      sumManyColumns(own, isActive);
  };
  if (subgroups == 1)
    return sum();
  auto then = [&](OpBuilder &, Location) {
    sum();
    scf::YieldOp::create(i.b, i.loc);
  };
  // Subgroups of different blocks that share a processor should not all wait for the same part of it.
  int32_t choices = llvm::bit_floor(unsigned(threads / size));
  Value chosen = i.constant(0, i.i32);
  if (choices > 1)
    chosen = i.bitAnd(BlockIdOp::create(i.b, i.loc, i.i32, Dim::x), choices - 1);
  scf::IfOp::create(i.b, i.loc, i.compare(Predicate::eq, subgroup, chosen), then);
}

} // namespace qd
