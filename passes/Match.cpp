//===- Match.cpp - comparisons of all lanes -------------------------------------------===//
//
// Purpose: which lanes hold the same value. Where no instruction says so, one ballot a bit of the value does:
//
//   %m = qd.subgroup.match_any %v : i8
//     ->
//   %c0 = bit 0 of %v is 0   %b0 = qd.subgroup.ballot %c0   %m0 = %b0 ^ (bit 0 of %v, all over a word)
//   ...                                                     %m = %m0 & ... & %m7
//
// and where all lanes are to hold the same one, each compares with a lane of its group:
//
//   %e = qd.subgroup.all_equal %v : f32
//     ->
//   %f = qd.subgroup.broadcast %v, 0   %s = arith.cmpf oeq, %v, %f   %e = qd.subgroup.all %s
//
//===----------------------------------------------------------------------===//

#include "passes/IntegerBuilder.h"
#include "passes/LaneMasks.h"
#include "passes/LaneTree.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

Value buildEquals(const LaneBuilder &at, Value lhs, Value rhs) {
  IntegerBuilder i(at);
  if (isa<FloatType>(lhs.getType()))
    return arith::CmpFOp::create(i.b, i.loc, arith::CmpFPredicate::OEQ, lhs, rhs);
  return i.compare(arith::CmpIPredicate::eq, lhs, rhs);
}

Value buildWord(const LaneBuilder &at, Value value) {
  IntegerBuilder i(at);
  Value bits = i.toBits(value);
  return i.cast(bits, bits.getType().getIntOrFloatBitWidth() <= 32 ? i.i32 : i.i64);
}

//===----------------------------------------------------------------------===//
// All lanes hold the same
//===----------------------------------------------------------------------===//

/// Whether a predicate is the same on all lanes of each group.
static Value buildIsUniform(const IntegerBuilder &i, const Target &target, Value predicate,
                            int32_t lanes) {
  if (!isWholeSubgroup(i.shape, lanes)) {
    Value own = buildTileBits(i, BallotOp::create(i.b, i.loc, predicate), lanes);
    Value present = buildPresentMask(i, own.getType(), lanes);
    return i.bitOr(i.compare(arith::CmpIPredicate::eq, own, 0), i.compare(arith::CmpIPredicate::eq, own, present));
  }
  if (target.has(VoteUni))
    return AllEqualOp::create(i.b, i.loc, i.i1, predicate, IntegerAttr());
  Value all = buildVote(i, /*isAll=*/true, predicate, i.shape.subgroupSize);
  Value any = buildVote(i, /*isAll=*/false, predicate, i.shape.subgroupSize);
  return i.bitOr(all, i.bitNot(any));
}

/// Whether a value equals that of lane 0 on all lanes of each group.
static Value buildEqualsFirst(const IntegerBuilder &i, Value value, int32_t lanes) {
  std::optional<int32_t> clause = isWholeSubgroup(i.shape, lanes) ? std::nullopt : i.shape.getTileClause(lanes);
  Value first = BroadcastOp::create(i.b, i.loc, value, int32_t(0), clause);
  return buildVote(i, /*isAll=*/true, buildEquals(i, value, first), lanes);
}

Values buildAllEqual(const LaneBuilder &at, const Target &target, AllEqualOp op,
                     int32_t lanes) {
  IntegerBuilder i(at);
  Value value = op.getValue();
  if (lanes == 1 || i.shape.threads == 1)
    return buildEquals(i, value, value);
  if (!value.getType().isInteger(1))
    return buildEqualsFirst(i, value, lanes);
  if (target.has(VoteUni) && !op.getTile())
    return {};
  return buildIsUniform(i, target, value, lanes);
}

//===----------------------------------------------------------------------===//
// Which lanes hold the same
//===----------------------------------------------------------------------===//

/// The ballot of the subgroup's lanes, or of the members among them.
static Value createBallot(const IntegerBuilder &i, Value predicate, Value members) {
  if (members)
    return BallotOp::create(i.b, i.loc, i.i64, predicate, members, IntegerAttr());
  return BallotOp::create(i.b, i.loc, predicate);
}

/// A word that is all ones or zeros, in each half of a word of the subgroup's size.
static Value repeat(const IntegerBuilder &i, Value ones) {
  Value word = i.cast(ones, i.getWordType());
  return word == ones ? word : i.bitOr(i.shl(word, 32), word);
}

Value buildMatchLowBits(const LaneBuilder &at, Value number, unsigned bits, Value members) {
  IntegerBuilder i(at);
  Value matches;
  // Ballots of clear bits, and the own bit all over a word: on NVIDIA's chips the predicates of seven ballots are one
  // instruction, and a bit costs four more. On AMD's it is seven in all in waves of 64.
  for (unsigned bit = 0; bit < bits; ++bit) {
    Value isClear = i.compare(arith::CmpIPredicate::eq, i.bitAnd(number, int64_t(1) << bit), 0);
    Value ballot = i.cast(createBallot(i, isClear, members), at.getWordType());
    Value same = i.bitXor(ballot, repeat(i, i.shrS(i.shl(number, 31 - bit), 31)));
    matches = matches ? i.bitAnd(matches, same) : same;
  }
  return matches;
}

Values buildMatchAny(const LaneBuilder &at, const Target &target, MatchAnyOp op,
                     int32_t lanes) {
  IntegerBuilder i(at);
  Value value = op.getValue(), members = op.getMembers();
  unsigned width = value.getType().getIntOrFloatBitWidth();
  bool isWhole = isWholeSubgroup(i.shape, lanes);
  if (lanes == 1)
    return i.constant(1, i.i64);
  if (target.has(MatchSync)) {
    Value word = buildWord(i, value);
    if (word == value && !op.getTile())
      return {};
    Value matches = MatchAnyOp::create(i.b, i.loc, i.i64, word, members, IntegerAttr());
    return isWhole ? matches : i.cast(buildTileBits(i, matches, lanes), i.i64);
  }
  Value word = buildWord(i, value), matches = buildMatchLowBits(i, i.cast(word, i.i32), std::min(width, 32u), members);
  if (width > 32)
    matches = i.bitAnd(matches, buildMatchLowBits(i, i.cast(i.shrU(word, 32), i.i32), width - 32, members));
  Type type = matches.getType();
  if (members)
    matches = i.bitAnd(matches, i.cast(members, type));
  else if (isWhole)
    matches = i.bitAnd(matches, buildPresentMask(i, type, lanes));
  else
    matches = buildTileBits(i, matches, lanes);
  return i.cast(matches, i.i64);
}

/// The lowest member's value is everyone's.
static Values buildMatchAllMembers(const IntegerBuilder &i, Value word, Value members) {
  Value mask = i.shape.subgroupSize > 32 ? members : i.cast(members, i.i32);
  Value lowest = i.cast(math::CountTrailingZerosOp::create(i.b, i.loc, mask), i.i32);
  Value first = ShuffleOp::create(i.b, i.loc, word.getType(), word, lowest, members, IntegerAttr(), IntegerAttr());
  Value ballot = createBallot(i, i.compare(arith::CmpIPredicate::eq, word, first), members);
  Value same = i.compare(arith::CmpIPredicate::eq, ballot, members);
  Values values = i.select(same, members, i.constant(0, i.i64));
  values.push_back(same);
  return values;
}

Values buildMatchAll(const LaneBuilder &at, const Target &target, MatchAllOp op,
                     int32_t lanes) {
  IntegerBuilder i(at);
  Value word = buildWord(i, op.getValue()), members = op.getMembers();
  if (target.has(MatchSync) && isWholeSubgroup(i.shape, lanes) && lanes > 1) {
    if (word == op.getValue() && !op.getTile())
      return {};
    auto match = MatchAllOp::create(i.b, i.loc, i.i64, i.i1, word, members, IntegerAttr());
    Values values = Value(match.getMask());
    values.push_back(match.getSame());
    return values;
  }
  if (members)
    return buildMatchAllMembers(i, word, members);
  Value same;
  if (lanes == 1)
    same = i.constant(1, i.i1);
  else if (op.getValue().getType().isInteger(1))
    same = buildIsUniform(i, target, op.getValue(), lanes);
  else
    same = buildEqualsFirst(i, word, lanes);
  Values values = i.select(same, buildPresentMask(i, i.i64, lanes), i.constant(0, i.i64));
  values.push_back(same);
  return values;
}

} // namespace qd
