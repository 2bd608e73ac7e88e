//===- MathArea.cpp - inverses of the hyperbolic functions ----------------------------------===//
//
// Each is a logarithm of 1 plus a sum, whose first part is exact or the more exact the smaller it is:
//   asinh(x) = log(1 + x + x^2 / (1 + sqrt(1 + x^2)))
//   acosh(x) = 2 * asinh(sqrt((x - 1) / 2))
//   atanh(x) = log(1 + 2x + 2x^2 / (1 - x)) / 2
// Of large numbers the first two are log(2x).
//
//===----------------------------------------------------------------------===//

#include "passes/MathFunctions.h"

namespace qd::math {

/// From here on asinh(x) and acosh(x) are log(2x), to the last digit.
template <unsigned W> static constexpr double largeLimit = W == 32 ? 0x1p13 : 0x1p28;

/// 1 + a + b.
template <unsigned W> static Sum<W> addToOne(Real<W> a, Real<W> b) {
  Sum<W> sum = add(a, b), all = add(constant(a, 1), sum.high);
  return {all.high, all.low + sum.low};
}

/// log(2x) where x is large, else log(u). The factor 2 is the exponent's.
template <unsigned W> static Real<W> logOfTwiceOr(Bool isLarge, Real<W> x, Sum<W> u) {
  Int<W> zero = constant(toBits(x), 0);
  return buildLogOfSum(Sum<W>{select(isLarge, x, u.high), select(isLarge, 0, u.low)}, select(isLarge, 1, zero));
}

template <unsigned W> Real<W> buildAsinh(Real<W> x) {
  Real<W> a = abs(x), square = a * a;
  Sum<W> u = addToOne(a, square / (sqrt(square + 1) + 1));
  Real<W> result = logOfTwiceOr(a > largeLimit<W>, a, u);
  return copySign(select(a < infinity, result, a), x);
}

template <unsigned W> Real<W> buildAcosh(Real<W> x) {
  Real<W> square = (x - 1) * 0.5, root = sqrt(square);
  // What the root's rounding took.
  Sum<W> back = multiply(root, root);
  Real<W> rest = select(root > 0, ((square - back.high) - back.low) / (root * 2), 0);
  Sum<W> u = addToOne(root, square / (sqrt(square + 1) + 1) + rest);
  Bool isLarge = x > largeLimit<W>;
  Real<W> log = logOfTwiceOr(isLarge, x, u), result = select(isLarge, log, log * 2);
  return select(x < 1.0, quietNaN, select(x < infinity, result, x));
}

template <unsigned W> Real<W> buildAtanh(Real<W> x) {
  Real<W> a = abs(x), twice = a * 2;
  Sum<W> u = addToOne(twice, twice * a / (1 - a));
  Real<W> result = buildLogOfSum(u, constant(toBits(x), 0)) * 0.5;
  result = select(a < 1.0, result, select(a == 1.0, infinity, constant(x, quietNaN)));
  return copySign(result, x);
}

#define INSTANTIATE(W)                                                                                                 \
  template Real<W> buildAsinh(Real<W>);                                                                                \
  template Real<W> buildAcosh(Real<W>);                                                                                \
  template Real<W> buildAtanh(Real<W>);
INSTANTIATE(32)
INSTANTIATE(64)
#undef INSTANTIATE

} // namespace qd::math
