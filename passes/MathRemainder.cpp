//===- MathRemainder.cpp - remainders of numbers, and powers of integers -----------------------===//
//
// Both are exact, and loops: a remainder takes as many digits at a time as an integer has room for, a power one digit
// of the exponent.
//
//===----------------------------------------------------------------------===//

#include "passes/MathFunctions.h"

using namespace mlir;

namespace qd::math {

namespace {
/// The magnitude of a number: digits * 2^(exponent - 1), counted in least subnormal numbers.
template <unsigned W> struct Digits { Int<W> digits, exponent; };
} // namespace

template <unsigned W> static Digits<W> takeApart(Int<W> bits) {
  constexpr unsigned fraction = Format<W>::fractionBits;
  Int<W> biased = shiftRight(bits, fraction);
  Bool isSubnormal = biased == 0;
  Int<W> lead = select(isSubnormal, 0, constant(bits, int64_t(1) << fraction));
  return {(bits & ((int64_t(1) << fraction) - 1)) | lead, select(isSubnormal, 1, biased)};
}

template <unsigned W> static Int<W> remainder(Int<W> a, Int<W> b) {
  return {a.at, a.at->template make<arith::RemUIOp>(a.v, b.v)};
}

template <unsigned W> static Int<W> smaller(Int<W> a, Int<W> b) {
  return {a.at, a.at->template make<arith::MinSIOp>(a.v, b.v)};
}

/// Digits of zeros above the highest digit, at most W - 1.
template <unsigned W> static Int<W> roomAbove(Int<W> a) {
  Int<W> zeros = {a.at, a.at->template make<mlir::math::CountLeadingZerosOp>(a.v)};
  return smaller(zeros, constant(a, W - 1));
}

/// (digits * 2^places) mod divisor, for digits < divisor.
template <unsigned W> static Int<W> shiftAndDivide(Int<W> digits, Int<W> places, Int<W> divisor) {
  const Place *at = digits.at;
  auto before = [&](OpBuilder &b, Location loc, ValueRange state) {
    Value isLeft = (constant(places, 0) < Int<W>{at, state[1]}).v;
    scf::ConditionOp::create(b, loc, isLeft, state);
  };
  auto after = [&](OpBuilder &b, Location loc, ValueRange state) {
    Int<W> digits = {at, state[0]}, places = {at, state[1]};
    Int<W> step = smaller(places, roomAbove(digits));
    scf::YieldOp::create(b, loc, ValueRange{remainder(digits << step, divisor).v, (places - step).v});
  };
  Type type = digits.v.getType();
  auto loop =
      scf::WhileOp::create(at->b, at->loc, TypeRange{type, type}, ValueRange{digits.v, places.v}, before, after);
  return {at, loop.getResult(0)};
}

template <unsigned W> Real<W> buildRemainder(Real<W> x, Real<W> y) {
  constexpr unsigned fraction = Format<W>::fractionBits;
  // Not of abs(x): a device may leave a NaN its sign.
  constexpr int64_t allButSign = ~(int64_t(1) << (W - 1));
  Int<W> xBits = toBits(x) & allButSign, yBits = toBits(y) & allButSign;
  Digits<W> a = takeApart(xBits), b = takeApart(yBits);
  Bool isZero = yBits == 0;
  b.digits = select(isZero, 1, b.digits);
  Int<W> rest = shiftAndDivide(remainder(a.digits, b.digits), a.exponent - b.exponent, b.digits);
  // Back to a number: up to its place, or as far as it is not subnormal.
  Int<W> up = smaller(roomAbove(rest) - int64_t(W - Format<W>::digits), b.exponent - 1);
  Real<W> result = select(rest == 0, 0.0, fromBits((rest << up) + ((b.exponent - 1 - up) << fraction)));
  result = select(xBits < yBits, x, copySign(result, x));
  constexpr int64_t infinite = Format<W>::infinityBits;
  Bool isDefined = !isZero & (xBits < infinite) & (yBits < infinite + 1);
  return select(isDefined, result, quietNaN);
}

template Real<32> buildRemainder(Real<32>, Real<32>);
template Real<64> buildRemainder(Real<64>, Real<64>);

Value buildIntegerPower(const Place &at, Value base, Value exponent) {
  OpBuilder &b = at.b;
  Type type = base.getType();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, at.loc, b.getIntegerAttr(type, value));
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return at.make<arith::CmpIOp>(predicate, lhs, rhs);
  };
  Value zero = number(0), one = number(1), minusOne = number(-1);
  // Negative powers are 0, but for those of 1 and -1, which are those of the lowest digit.
  Value isNegative = compare(arith::CmpIPredicate::slt, exponent, zero);
  Value isOne = compare(arith::CmpIPredicate::eq, base, one);
  Value isMinusOne = compare(arith::CmpIPredicate::eq, base, minusOne);
  Value lowest = at.make<arith::AndIOp>(exponent, one);
  Value left = at.make<arith::SelectOp>(isNegative, lowest, exponent);
  auto before = [&](OpBuilder &b, Location loc, ValueRange state) {
    scf::ConditionOp::create(b, loc, compare(arith::CmpIPredicate::ne, state[2], zero), state);
  };
  auto after = [&](OpBuilder &b, Location loc, ValueRange state) {
    Value result = state[0], square = state[1], left = state[2];
    Value isOdd = compare(arith::CmpIPredicate::ne, at.make<arith::AndIOp>(left, one), zero);
    Value next = at.make<arith::SelectOp>(isOdd, at.make<arith::MulIOp>(result, square), result);
    scf::YieldOp::create(b, loc,
                         ValueRange{next, at.make<arith::MulIOp>(square, square), at.make<arith::ShRUIOp>(left, one)});
  };
  auto loop = scf::WhileOp::create(b, at.loc, TypeRange{type, type, type}, ValueRange{one, base, left}, before, after);
  Value hasInverse = at.make<arith::OrIOp>(isOne, isMinusOne);
  Value vanishes = at.make<arith::AndIOp>(
      isNegative,
      at.make<arith::XOrIOp>(hasInverse, arith::ConstantOp::create(b, at.loc, b.getBoolAttr(true)).getResult()));
  return at.make<arith::SelectOp>(vanishes, zero, loop.getResult(0));
}

} // namespace qd::math
