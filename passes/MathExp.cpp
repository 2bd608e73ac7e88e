//===- MathExp.cpp - exponential functions, and the hyperbolic ones ---------------------===//
//
// exp(x) = 2^n * exp(r): n is the integer nearest to x / log(2), and r, within +-log(2)/2, is x less n*log(2). The
// latter comes in two parts whose products with n are exact. A polynomial gives exp(r), and n goes into the exponent's
// bits.
//
//===----------------------------------------------------------------------===//

#include "passes/MathFunctions.h"

namespace qd::math {

namespace {
/// x = n * log(2) + r, for |x| < 2000.
template <unsigned W> struct Reduced {
  Real<W> r, n;
  Int<W> shifted; ///< n where a number has its exponent
};
} // namespace

template <unsigned W> static Reduced<W> reduce(Real<W> x) {
  Real<W> sum = x * log2e + Format<W>::toInteger;
  Real<W> n = sum - Format<W>::toInteger;
  Real<W> r = minusExact(minusExact(x, n, Tables<W>::ln2[0]), n, Tables<W>::ln2[1]);
  return {r, n, toBits(sum) << Format<W>::fractionBits};
}

/// p * 2^n for p near 1, rounded once where that is subnormal: n is taken apart as n + 100 and -100.
template <unsigned W> static Real<W> scale(Real<W> p, Int<W> shifted, Bool isNegative) {
  constexpr int64_t up = int64_t(100) << Format<W>::fractionBits, down = -(int64_t(2) << Format<W>::fractionBits);
  Int<W> step = select(isNegative, up, constant(shifted, down));
  return fromBits(toBits(p) + shifted + step) * select(isNegative, 0x1p-100, constant(p, 4));
}

/// Puts in the values where x is so far from zero that the result is infinity or zero, and NaN where x is that.
template <unsigned W> static Real<W> limit(Real<W> result, Real<W> x, double largest, double least) {
  return select(x < least, 0, select(x < largest, result, x * Format<W>::largestPower));
}

template <unsigned W> static Real<W> expOfReduced(Real<W> r) {
  if constexpr (W == 32)
    return multiplyAdd(multiplyAdd(r, evaluate(Tables<W>::exp, r), 1), r, 1);
  return r * r * evaluate(Tables<W>::exp, r) + r + 1;
}

/// Added to a number it leaves the nearest integer in the sum's lowest bits; of two equally near ones the even one.
static constexpr double wholeMagic = 0x1.8p23;
/// The same with more in these bits: as much as the biases of two powers of two.
static constexpr double twiceBiasedMagic = wholeMagic + 2 * 127;

/// p * 2^n, where the lowest bits of `sum` are n + 254: times two powers of two that are normal numbers, so that only
/// the last product is rounded.
static Real<32> scaleTwice(Real<32> p, Real<32> sum) {
  Int<32> n = toBits(sum), half = n >> 1;
  return p * fromBits(half << 23) * fromBits((n - half) << 23);
}

/// p * 2^n, where that is a normal number and the lowest bits of `sum` are n.
static Real<32> scaleNormal(Real<32> p, Real<32> sum) { return fromBits(toBits(p) + (toBits(sum) << 23)); }

/// 2^n * exp(r) = exp(x): exp(r), and in the lowest bits of `sum` n more than those of `magic`.
static Real<32> reduceExp(Real<32> x, double magic, Real<32> &sum) {
  using T = Tables<32>;
  sum = multiplyAdd(x, log2e, magic);
  Real<32> n = sum - magic;
  Real<32> r = multiplyAdd(n, -T::ln2Whole[1], multiplyAdd(n, -T::ln2Whole[0], x));
  return multiplyAdd(evaluate(T::expShort, r), r, 1);
}

/// 2^n * 2^r = 2^x, likewise.
static Real<32> reduceExp2(Real<32> x, double magic, Real<32> &sum) {
  sum = x + magic;
  Real<32> r = x - (sum - magic);
  return multiplyAdd(evaluate(Tables<32>::exp2Short, r), r, 1);
}

/// The function of which `reduced` gives a factor and a power of 2. Beyond `least` and `most` the result is zero and
/// infinity, within +-`normal` it is a normal number.
static Real<32> buildPower(Real<32> (*reduced)(Real<32>, double, Real<32> &), Real<32> x, double least, double most,
                           double normal) {
  Real<32> sum = x;
  Real<32> p = reduced(atMost(atLeast(x, least), most), twiceBiasedMagic, sum);
  Real<32> result = scaleTwice(p, sum);
  if (!x.at->marksRare)
    return result;
  p = reduced(x, wholeMagic, sum);
  return selectRare(isBeyond(x, normal), result, scaleNormal(p, sum));
}

template <unsigned W> Real<W> buildExp(Real<W> x) {
  if constexpr (W == 32)
    return buildPower(reduceExp, x, -104.5, 89, 87);
  Reduced<W> e = reduce(x);
  return limit(scale(expOfReduced(e.r), e.shifted, x < 0), x, W == 32 ? 89 : 710, W == 32 ? -104 : -746);
}

template <unsigned W> static Real<W> exp2OfReduced(Real<W> r) { return r * evaluate(Tables<W>::exp2, r) + 1; }

template <unsigned W> Real<W> buildExp2(Real<W> x) {
  if constexpr (W == 32)
    return buildPower(reduceExp2, x, -151, 129, 125);
  Real<W> sum = x + Format<W>::toInteger;
  Real<W> r = x - (sum - Format<W>::toInteger);
  Int<W> shifted = toBits(sum) << Format<W>::fractionBits;
  return limit(scale(exp2OfReduced(r), shifted, x < 0), x, W == 32 ? 128 : 1024, W == 32 ? -150 : -1075);
}

/// 2^(high + low) = (2^m)^2 * 2^r, with r within 1. The power of two comes as a factor that is applied twice: it stays
/// a normal number until the result is infinity or zero, and only the last product is rounded.
static Real<32> buildFusedExp2OfSum(Real<32> high, Real<32> low) {
  constexpr double magic = wholeMagic + 127;
  Real<32> limited = atMost(atLeast(high, -151), 129);
  Real<32> sum = multiplyAdd(limited, 0.5, magic);
  Real<32> r = multiplyAdd(sum - magic, -2, limited) + low;
  Real<32> power = fromBits(toBits(sum) << 23);
  return multiplyAdd(evaluate(Tables<32>::exp2Wide, r), r, 1) * power * power;
}

template <unsigned W> Real<W> buildExp2OfSum(Real<W> high, Real<W> low) {
  if constexpr (W == 32)
    return buildFusedExp2OfSum(high, low);
  Real<W> sum = high + Format<W>::toInteger;
  Real<W> r = high - (sum - Format<W>::toInteger) + low;
  Real<W> result = scale(exp2OfReduced(r), toBits(sum) << Format<W>::fractionBits, high < 0);
  return select(high < (W == 32 ? -151 : -1076), 0, select(high > (W == 32 ? 129 : 1025), infinity, result));
}

/// The square comes in two parts: that of x's upper digits, which is exact, and the rest.
template <unsigned W> Real<W> buildTimesExpOfSquare(Sum<W> factor, Real<W> x) {
  Real<W> upper = upperHalf(x);
  Reduced<W> e = reduce(-(x * x));
  Real<W> high = minusExact(-(upper * upper), e.n, Tables<W>::ln2[0]);
  Sum<W> r = add(high, -((x - upper) * (x + upper) + e.n * Tables<W>::ln2[1]));
  Sum<W> s = addToLarger(r.high, r.high * r.high * evaluate(Tables<W>::exp, r.high));
  Sum<W> exp = addToLarger(constant(x, 1), s.high);
  Real<W> low = exp.low + s.low + r.low * exp.high;
  Real<W> product = factor.high * exp.high + (factor.high * low + factor.low * exp.high);
  return scale(product, e.shifted, constant(*x.at, true));
}

/// exp(x) - 1 = 2^n * (exp(r) - 1) + (2^n - 1). Half of it is computed, which does not overflow too early.
template <unsigned W> Real<W> buildExpM1(Real<W> x) {
  // Below this the result is -1, and 2^n would leave the normal numbers.
  constexpr double least = W == 32 ? -60 : -600;
  Real<W> above = select(x < least, least, x);
  Reduced<W> e = reduce(above);
  Real<W> inner = e.r * e.r * evaluate(Tables<W>::expm1, e.r) + e.r;
  Real<W> half = fromBits(e.shifted + ((Format<W>::bias - 1) << Format<W>::fractionBits));
  Real<W> result = (half * inner + (half - 0.5)) * 2;
  result = select(e.n == 0, inner, result);
  return copySign(select(x < (W == 32 ? 89 : 710), result, x * Format<W>::largestPower), x);
}

/// exp(x) / 2 for x >= 0 whose hyperbolic functions are finite.
template <unsigned W> static Real<W> halfExp(Real<W> x) {
  Reduced<W> e = reduce(x);
  return fromBits(toBits(expOfReduced(e.r)) + e.shifted - (int64_t(3) << Format<W>::fractionBits)) * 4;
}

/// Where the hyperbolic functions have long been infinite.
template <unsigned W> static constexpr double hyperbolicLimit = W == 32 ? 90 : 711;

template <unsigned W> Real<W> buildSinh(Real<W> x) {
  Real<W> a = abs(x), z = a * a;
  Real<W> small = a * z * evaluate(Tables<W>::sinh, z) + a;
  Real<W> half = halfExp(a);
  Real<W> large = half - 0.25 / half;
  large = select(a < hyperbolicLimit<W>, large, a * Format<W>::largestPower);
  return copySign(select(a < 1.0, small, large), x);
}

template <unsigned W> Real<W> buildCosh(Real<W> x) {
  Real<W> a = abs(x), half = halfExp(a);
  return select(a < hyperbolicLimit<W>, half + 0.25 / half, a * Format<W>::largestPower);
}

/// 1 - 2 / (exp(2x) + 1), and a polynomial where that would cancel.
template <unsigned W> Real<W> buildTanh(Real<W> x) {
  Real<W> a = abs(x), z = a * a;
  Real<W> small = a * z * evaluate(Tables<W>::tanh, z) + a;
  Real<W> twice = a * 2;
  Reduced<W> e = reduce(twice);
  Real<W> exp = fromBits(toBits(expOfReduced(e.r)) + e.shifted);
  Real<W> large = 1 - 2 / (exp + 1);
  // From here on the result is 1; NaN stays what it is.
  large = select(a > 20.0, 1, large);
  Real<W> result = select(a < (W == 32 ? 0.625 : 0.5), small, large);
  return copySign(select(isNaN(x), x, result), x);
}

#define INSTANTIATE(W)                                                                                                 \
  template Real<W> buildExp2OfSum(Real<W>, Real<W>);                                                                   \
  template Real<W> buildTimesExpOfSquare(Sum<W>, Real<W>);                                                             \
  template Real<W> buildExp(Real<W>);                                                                                  \
  template Real<W> buildExp2(Real<W>);                                                                                 \
  template Real<W> buildExpM1(Real<W>);                                                                                \
  template Real<W> buildSinh(Real<W>);                                                                                 \
  template Real<W> buildCosh(Real<W>);                                                                                 \
  template Real<W> buildTanh(Real<W>);
INSTANTIATE(32)
INSTANTIATE(64)
#undef INSTANTIATE

} // namespace qd::math
