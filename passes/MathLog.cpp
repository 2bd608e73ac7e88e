//===- MathLog.cpp - logarithms -----------------------------------------------------------===//
//
// A number is 2^k * (1 + f) with f around zero, exactly; its logarithm is k times that of 2, plus c*f and f^2 times a
// polynomial in f. c is the logarithm of e: for bases other than e, c*f comes in two parts, the first of which is
// exact.
//
//===----------------------------------------------------------------------===//

#include "passes/MathFunctions.h"

namespace qd::math {

template <unsigned W> Decomposed<W> decomposeNormal(Real<W> x) {
  // The bits of sqrt(1/2), which becomes the least mantissa.
  constexpr int64_t rootHalf = W == 32 ? 0x3f3504f3 : 0x3fe6a09e667f3bcd;
  Int<W> bits = toBits(x), exponent = (bits - rootHalf) >> Format<W>::fractionBits;
  Real<W> mantissa = fromBits(bits - (exponent << Format<W>::fractionBits));
  return {exponent, mantissa - 1, mantissa};
}

/// Subnormal numbers are integers, times the least of them.
template <unsigned W> Decomposed<W> decompose(Real<W> x) {
  Int<W> bits = toBits(x);
  Bool isSubnormal = bits < Format<W>::leastNormalBits;
  Decomposed<W> d = decomposeNormal(select(isSubnormal, toReal(bits), x));
  constexpr int64_t leastExponent = 1 - Format<W>::bias - int64_t(Format<W>::fractionBits);
  d.exponent = d.exponent + select(isSubnormal, leastExponent, constant(bits, 0));
  return d;
}

/// `result` for positive finite numbers; -inf for zeros, inf and NaN for themselves, NaN for negative numbers.
template <unsigned W> static Real<W> atSpecial(Real<W> x, Real<W> result) {
  Int<W> bits = toBits(x);
  // x * inf + inf is what all of them have but zeros.
  Real<W> special = multiplyAdd(x, infinity, infinity);
  constexpr int64_t magnitude = Format<W>::infinityBits | (Format<W>::leastNormalBits - 1);
  return select((bits & magnitude) == 0, -infinity, select(below(bits, Format<W>::infinityBits), result, special));
}

template <unsigned W> Real<W> buildLog(Real<W> x) {
  Decomposed<W> d = decompose(x);
  Real<W> k = toReal(d.exponent);
  if constexpr (W == 32) // 24 bits of log(2) are enough: no k brings their error near a result's last digit
    return atSpecial(x, multiplyAdd(k, ln2, multiplyAdd(d.f * d.f, evaluate(Tables<W>::log, d.f), d.f)));
  Real<W> tail = d.f * d.f * evaluate(Tables<W>::log, d.f) + k * Tables<W>::ln2[1];
  return atSpecial(x, plusExact(tail + d.f, k, Tables<W>::ln2[0]));
}

/// c*f + f^2 * polynomial, c in two parts: a part that is `upper` times half the digits of f, and the rest.
template <unsigned W, size_t N>
static Real<W> scaledLog(Real<W> f, const double (&c)[2], const double (&p)[N], Real<W> more) {
  if constexpr (W == 32)
    return multiplyAdd(f, c[0], multiplyAdd(f, c[1], multiplyAdd(f * f, evaluate(p, f), more)));
  Real<W> upper = upperHalf(f), lower = f - upper;
  Real<W> rest = plusExact(f * f * evaluate(p, f) + f * c[1] + more, lower, c[0]);
  return plusExact(rest, upper, c[0]);
}

template <unsigned W> Real<W> buildLog2(Real<W> x) {
  Decomposed<W> d = decompose(x);
  Real<W> inner = scaledLog(d.f, Tables<W>::log2e, Tables<W>::log2, constant(x, 0));
  return atSpecial(x, inner + toReal(d.exponent));
}

template <unsigned W> Real<W> buildLog10(Real<W> x) {
  Decomposed<W> d = decompose(x);
  Real<W> k = toReal(d.exponent);
  Real<W> inner = scaledLog(d.f, Tables<W>::log10e, Tables<W>::log10, k * Tables<W>::log10Of2[1]);
  return atSpecial(x, plusExact(inner, k, Tables<W>::log10Of2[0]));
}

/// The logarithm of u.high, plus u.low divided by u.high.
template <unsigned W> Real<W> buildLogOfSum(Sum<W> u, Int<W> exponent) {
  Decomposed<W> d = decomposeNormal(u.high);
  Real<W> k = toReal(d.exponent + exponent), f = d.f;
  // c / 2^k; of numbers as large as 2^100, c is nothing.
  Int<W> limited = select(d.exponent < 100, d.exponent, 100);
  Real<W> c = u.low * fromBits((Format<W>::bias - limited) << Format<W>::fractionBits);
  Real<W> rest = c - c * (f - f * f) + k * Tables<W>::ln2[1];
  return plusExact(f * f * evaluate(Tables<W>::log, f) + rest + f, k, Tables<W>::ln2[0]);
}

template <unsigned W> Real<W> buildLog1p(Real<W> x) {
  Real<W> result = buildLogOfSum(add(constant(x, 1), x), constant(toBits(x), 0));
  result = select(x < infinity, result, x);
  result = select(x < -1.0, quietNaN, select(x == -1.0, -infinity, result));
  return copySign(result, x);
}

#define INSTANTIATE(W)                                                                                                 \
  template Decomposed<W> decompose(Real<W>);                                                                           \
  template Decomposed<W> decomposeNormal(Real<W>);                                                                     \
  template Real<W> buildLogOfSum(Sum<W>, Int<W>);                                                                      \
  template Real<W> buildLog(Real<W>);                                                                                  \
  template Real<W> buildLog2(Real<W>);                                                                                 \
  template Real<W> buildLog10(Real<W>);                                                                                \
  template Real<W> buildLog1p(Real<W>);
INSTANTIATE(32)
INSTANTIATE(64)
#undef INSTANTIATE

} // namespace qd::math
