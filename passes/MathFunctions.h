//===- MathFunctions.h - functions as sequences of exactly rounded steps --------------------===//
//
// Purpose: what math ops expand to. Every step is a sum, product, quotient or square root that is rounded to nearest,
// or works on bits: results are the same bits on every target. Multiplication and addition are one step in f32
// (math.fma), which Vulkan devices that do not fuse compute by integers. In f64 that would cost too much: there only
// exact products are fused, which makes no difference.
// Errors are below 2 units in the last place of f32, 4 of f64; special values are those of C99, annex F.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_MATHFUNCTIONS_H
#define QD_PASSES_MATHFUNCTIONS_H

#include "passes/MathBuilder.h"
#include "passes/MathTables.h"

#include <limits>

namespace qd::math {

/// The parts of a format, and the number that brings a sum's integer part into its lowest bits.
template <unsigned W> struct Format {
  static constexpr unsigned digits = W == 32 ? 24 : 53;
  static constexpr unsigned fractionBits = digits - 1;
  static constexpr int64_t bias = W == 32 ? 127 : 1023;
  static constexpr int64_t infinityBits = (2 * bias + 1) << fractionBits;
  static constexpr int64_t leastNormalBits = int64_t(1) << fractionBits;
  static constexpr double toInteger = W == 32 ? 0x1.8p23 : 0x1.8p52;
  /// A factor that makes an infinity of every number from 2 on.
  static constexpr double largestPower = W == 32 ? 0x1p127 : 0x1p1023;
};

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double quietNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double log2e = 0x1.71547652b82fep+0, ln2 = 0x1.62e42fefa39efp-1;

/// c[first] + c[first + 1]*z + c[first + 2]*z^2 ...
template <size_t first = 0, unsigned W, size_t N> Real<W> evaluate(const double (&c)[N], Real<W> z) {
  Real<W> sum = multiplyAdd(z, c[N - 1], c[N - 2]);
  for (size_t i = N - 2; i-- > first;)
    sum = multiplyAdd(sum, z, c[i]);
  return sum;
}

/// The upper half of a number's digits: products of two such halves are exact.
template <unsigned W> Real<W> upperHalf(Real<W> x) {
  constexpr unsigned dropped = Format<W>::digits - Format<W>::digits / 2;
  return fromBits(toBits(x) & (-(int64_t(1) << dropped)));
}

/// A number as the sum of two, of which `low` is small against the last digit of `high`.
template <unsigned W> struct Sum { Real<W> high, low; };

/// a + b, with nothing lost.
template <unsigned W> Sum<W> add(Real<W> a, Real<W> b) {
  Real<W> high = a + b, bOfHigh = high - a;
  return {high, (a - (high - bOfHigh)) + (b - bOfHigh)};
}

/// a + b, where a is larger or zero.
template <unsigned W> Sum<W> addToLarger(Real<W> a, Real<W> b) {
  Real<W> high = a + b;
  return {high, b - (high - a)};
}

/// The product with nothing lost: in f64 that of the halves is exact.
template <unsigned W> Sum<W> multiply(Real<W> a, Real<W> b) {
  Real<W> p = a * b;
  if constexpr (W == 32)
    return {p, multiplyAdd(a, b, -p)};
  Real<W> aUpper = upperHalf(a), bUpper = upperHalf(b);
  Real<W> aLower = a - aUpper, bLower = b - bUpper;
  Real<W> low = aUpper * bUpper - p;
  return {p, low + aUpper * bLower + aLower * bUpper + aLower * bLower};
}

/// A positive finite number as 2^exponent * (1 + f), f from sqrt(1/2) - 1 to sqrt(2) - 1.
template <unsigned W> struct Decomposed {
  Int<W> exponent;
  Real<W> f;
  Real<W> mantissa; ///< 1 + f
};
template <unsigned W> Decomposed<W> decompose(Real<W> x);
template <unsigned W> Decomposed<W> decomposeNormal(Real<W> x);

/// 2^(high + low), where low is small against the last digit of 1; `high` within +-2000.
template <unsigned W> Real<W> buildExp2OfSum(Real<W> high, Real<W> low);
/// factor * exp(-x^2), for x from 0 to 30 and factors from 0.01 to 1.
template <unsigned W> Real<W> buildTimesExpOfSquare(Sum<W> factor, Real<W> x);
/// The logarithm of 2^exponent * (u.high + u.low), where u.high is a normal number.
template <unsigned W> Real<W> buildLogOfSum(Sum<W> u, Int<W> exponent);

/// x*y + z, rounded once, to nearest or to odd: then a narrower format can be rounded to in turn.
template <unsigned W> Real<W> buildFma(Real<W> x, Real<W> y, Real<W> z, bool toOdd);

template <unsigned W> Real<W> buildExp(Real<W> x);
template <unsigned W> Real<W> buildExp2(Real<W> x);
template <unsigned W> Real<W> buildExpM1(Real<W> x);
template <unsigned W> Real<W> buildSinh(Real<W> x);
template <unsigned W> Real<W> buildCosh(Real<W> x);
template <unsigned W> Real<W> buildTanh(Real<W> x);
template <unsigned W> Real<W> buildAsinh(Real<W> x);
template <unsigned W> Real<W> buildAcosh(Real<W> x);
template <unsigned W> Real<W> buildAtanh(Real<W> x);
template <unsigned W> Real<W> buildLog(Real<W> x);
template <unsigned W> Real<W> buildLog2(Real<W> x);
template <unsigned W> Real<W> buildLog10(Real<W> x);
template <unsigned W> Real<W> buildLog1p(Real<W> x);
template <unsigned W> Real<W> buildSin(Real<W> x);
template <unsigned W> Real<W> buildCos(Real<W> x);
template <unsigned W> Real<W> buildTan(Real<W> x);
template <unsigned W> Real<W> buildAsin(Real<W> x);
template <unsigned W> Real<W> buildAcos(Real<W> x);
template <unsigned W> Real<W> buildAtan(Real<W> x);
template <unsigned W> Real<W> buildAtan2(Real<W> y, Real<W> x);
template <unsigned W> Real<W> buildPow(Real<W> x, Real<W> y);
template <unsigned W> Real<W> buildCbrt(Real<W> x);
template <unsigned W> Real<W> buildRsqrt(Real<W> x);
template <unsigned W> Real<W> buildErf(Real<W> x);
template <unsigned W> Real<W> buildErfc(Real<W> x);
template <unsigned W> Real<W> buildRemainder(Real<W> x, Real<W> y);

/// `exponent` as wide as `base`; wraps around, and negative powers of 0 are 0.
mlir::Value buildIntegerPower(const Place &at, mlir::Value base, mlir::Value exponent);

/// `x`, of f32 or f64, in a narrower type.
mlir::Value buildTruncation(const Place &at, mlir::Value x, mlir::Type narrow, mlir::arith::RoundingMode mode);

} // namespace qd::math

#endif
