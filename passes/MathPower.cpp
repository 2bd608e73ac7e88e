//===- MathPower.cpp - powers and roots ------------------------------------------------------===//
//
// x^y is 2^(y * log2|x|) with a logarithm of half as many digits again as the result, which takes numbers in two parts.
// The sign and what C says of special operands are put in at the end.
//
//===----------------------------------------------------------------------===//

#include "passes/MathFunctions.h"

namespace qd::math {

/// s = (m - 1) / (m + 1), of which log2(m) = 2/log(2) * (s + s^3/3 + ...) is a series.
template <unsigned W> static Sum<W> ratioOf(Decomposed<W> d) {
  Real<W> m = d.mantissa, f = d.f, u = m + 1;
  Real<W> uUpper = upperHalf(u), uLower = m - (uUpper - 1);
  Real<W> reciprocal = 1 / u, s = f * reciprocal;
  Real<W> sUpper = upperHalf(s), sLower = s - sUpper;
  // What is missing from s: f - s*(m + 1), divided likewise.
  Real<W> rest = minusExact(minusExact(f, sUpper, uUpper), sLower, uUpper) - s * uLower;
  return {s, rest * reciprocal};
}

/// log2(m) in f32. Of the sum's low part only seven digits count, of that of s^3 not even those.
static Sum<32> logOfMantissaFused(Decomposed<32> d) {
  using T = Tables<32>;
  Real<32> u = d.mantissa + 1, lostOfU = d.mantissa - (u - 1);
  Real<32> reciprocal = 1 / u, s = d.f * reciprocal, negative = -s;
  Real<32> rest = multiplyAdd(negative, lostOfU, multiplyAdd(negative, u, d.f)) * reciprocal;
  Real<32> z = s * s, lostOfZ = multiplyAdd(s, s, -z);
  Real<32> cube = multiplyAdd(z, evaluate(T::powLog, z), T::thirdOfTwoLog2e[0]);
  Real<32> term = z * cube, lostOfTerm = multiplyAdd(lostOfZ, cube, multiplyAdd(z, cube, -term));
  Sum<32> factor = addToLarger(constant(s, T::twoLog2e[0]), term);
  factor.low = factor.low + (lostOfTerm + T::twoLog2e[1]);
  // The derivative by s is 2/log(2) / (1 - s^2).
  Real<32> slope = multiplyAdd(term, 2, factor.high);
  Sum<32> result = multiply(s, factor.high);
  result.low = multiplyAdd(rest, slope, multiplyAdd(s, factor.low, result.low));
  return result;
}

/// The terms of s and s^3 have to be more exact than a number is; of higher powers rounding errors hardly count.
template <unsigned W> static Sum<W> logOfMantissa(Decomposed<W> d) {
  if constexpr (W == 32)
    return logOfMantissaFused(d);
  using T = Tables<W>;
  auto [s, rest] = ratioOf(d);
  Sum<W> z = multiply(s, s);
  z.low = z.low + s * rest * 2;
  Sum<W> cube = addToLarger(constant(s, T::thirdOfTwoLog2e[0]), z.high * evaluate(T::powLog, z.high));
  cube.low = cube.low + T::thirdOfTwoLog2e[1];
  Sum<W> term = multiply(z.high, cube.high);
  term.low = term.low + z.high * cube.low + z.low * cube.high;
  Sum<W> factor = addToLarger(constant(s, T::twoLog2e[0]), term.high);
  factor.low = factor.low + term.low + T::twoLog2e[1];
  Sum<W> result = multiply(s, factor.high);
  result.low = result.low + s * factor.low + rest * factor.high;
  return result;
}

template <unsigned W> static Sum<W> logOf(Real<W> x) {
  Decomposed<W> d = decompose(x);
  Sum<W> inner = logOfMantissa(d), sum = addToLarger(toReal(d.exponent), inner.high);
  if constexpr (W == 32)
    return {sum.high, sum.low + inner.low};
  return addToLarger(sum.high, sum.low + inner.low);
}

/// `power`, the result for finite x > 0, made right for all operands.
template <unsigned W> static Real<W> atSpecial(Real<W> x, Real<W> y, Real<W> power) {
  Real<W> ax = abs(x), halfOfY = y * 0.5;
  Bool isInteger = trunc(y) == y;
  Bool isOdd = isInteger & !(trunc(halfOfY) == halfOfY);
  Bool isNegative = toBits(x) < 0;
  // Of zero and infinity.
  Bool isZero = ax == 0, isEnd = isZero | (ax == infinity);
  Real<W> end = select(isZero ^ (y < 0), constant(x, 0), infinity);
  Real<W> result = select(isEnd, end, power);
  result = select(isNegative & isOdd, -result, result);
  result = select(isNegative & !isInteger & !isEnd, quietNaN, result);
  result = select(isNaN(x) | isNaN(y), x + y, result);
  return select((x == 1.0) | (y == 0), 1, result);
}

template <unsigned W> Real<W> buildPow(Real<W> x, Real<W> y) {
  // Beyond this every power but that of 1 is infinity or zero.
  constexpr double large = W == 32 ? 0x1p40 : 0x1p70;
  Real<W> limited = select(y > large, large, select(y < -large, -large, y));
  Sum<W> log = logOf(abs(x));
  Sum<W> product = multiply(log.high, limited);
  Real<W> low = multiplyAdd(log.low, limited, product.low);
  // What overflows needs no lower part.
  Bool isInRange = abs(product.high) < 2000;
  return atSpecial(x, y, buildExp2OfSum(product.high, select(isInRange, low, 0)));
}

/// x = 2^(3k) * m with m from 1/2 to 4, and y its cube root to some digits, of so few that y^3 is exact. The rest is
/// a series in the part of y^3 that is missing.
template <unsigned W> Real<W> buildCbrt(Real<W> x) {
  constexpr unsigned fraction = Format<W>::fractionBits, kept = W == 32 ? 7 : 16;
  Real<W> a = abs(x);
  Int<W> bits = toBits(a);
  Bool isSubnormal = bits < Format<W>::leastNormalBits;
  // The least subnormal number times `more` is 2^-up, of which a root is taken with ease.
  constexpr int64_t up = W == 32 ? 150 : 1074;
  constexpr double more = W == 32 ? 2 : 1;
  bits = select(isSubnormal, toBits(toReal(bits) * more), bits);
  // 2^(bias - 1) as exponents go, and the next number that 3 divides.
  constexpr int64_t half = Format<W>::bias - 1, third = (half + 2) / 3;
  Int<W> exponent = shiftRight(bits, fraction) + (third * 3 - half);
  Int<W> k = shiftRight(exponent * 43691, 17), over = exponent - k * 3;
  Int<W> digits = bits & ((int64_t(1) << fraction) - 1);
  Real<W> mantissa = fromBits(digits | (half << fraction));
  Real<W> m = fromBits(digits | ((over + half) << fraction));
  Real<W> root = evaluate(Tables<W>::cbrt, mantissa);
  root = root * select(over == 0, 1, select(over == 1, 0x1.428a2f98d728bp+0, constant(x, 0x1.965fea53d6e3dp+0)));
  constexpr int64_t unit = int64_t(1) << (fraction - kept);
  Real<W> y = fromBits((toBits(root) + unit / 2) & -unit);
  Real<W> cube = y * y * y, d = (m - cube) / cube;
  static constexpr double series32[] = {1.0 / 3, -1.0 / 9, 5.0 / 81},
                          series64[] = {1.0 / 3, -1.0 / 9, 5.0 / 81, -10.0 / 243, 22.0 / 729};
  Real<W> sum = d;
  if constexpr (W == 32)
    sum = evaluate(series32, d);
  else
    sum = evaluate(series64, d);
  Real<W> result = y * d * sum + y;
  Int<W> scale = k - third - select(isSubnormal, up / 3, constant(k, 0));
  result = fromBits(toBits(result) + (scale << fraction));
  Bool isEnd = (a == infinity) | isNaN(x) | (toBits(a) == 0);
  return select(isEnd, x, copySign(result, x));
}

template <unsigned W> Real<W> buildRsqrt(Real<W> x) { return 1 / sqrt(x); }

#define INSTANTIATE(W)                                                                                                 \
  template Real<W> buildPow(Real<W>, Real<W>);                                                                         \
  template Real<W> buildCbrt(Real<W>);                                                                                 \
  template Real<W> buildRsqrt(Real<W>);
INSTANTIATE(32)
INSTANTIATE(64)
#undef INSTANTIATE

} // namespace qd::math
