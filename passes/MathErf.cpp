//===- MathErf.cpp - the error function, and 1 less it -------------------------------------===//
//
// erf(x) is a polynomial times x up to 1. Beyond, 1 - erf(x), which is small and needs few digits, is 2 to the power of
// a polynomial.
//
// erfc(x) = 1 - erf(x) has as many digits everywhere: up to 1/2 it is 1 - x less x times the polynomial of erf. Beyond,
// (1 + 2x) * exp(x^2) * erfc(x), which hardly varies, is a polynomial in (x - c) / (x + c). Its quotient by 1 + 2x
// comes in two parts, so that the digits of the factors add up to one rounding.
//
//===----------------------------------------------------------------------===//

#include "passes/MathFunctions.h"

namespace qd::math {

template <unsigned W> Real<W> buildErf(Real<W> x) {
  Real<W> a = abs(x);
  // 1 from here on.
  constexpr double limit = W == 32 ? 4 : 6;
  Real<W> limited = select(a > limit, limit, a);
  Real<W> small = a * evaluate(Tables<W>::erfSmall, a * a) + a;
  Real<W> exponent = evaluate(Tables<W>::erfLarge, limited);
  Real<W> large = 1 - buildExp2OfSum(exponent, constant(x, 0));
  Real<W> result = select(a < 1.0, small, large);
  return copySign(select(isNaN(x), x, result), x);
}

/// For x from 1/2 to where it is 0.
template <unsigned W> static Real<W> erfcOfLarge(Real<W> x) {
  constexpr double center = W == 32 ? 2 : 4;
  Real<W> q = (x - center) / (x + center);
  Sum<W> p = addToLarger(constant(x, Tables<W>::erfcLarge[0]), q * evaluate<1>(Tables<W>::erfcLarge, q));
  Sum<W> divisor = addToLarger(x * 2, constant(x, 1));
  Real<W> quotient = p.high / divisor.high;
  Sum<W> product = multiply(quotient, divisor.high);
  Real<W> rest = (p.high - product.high) - product.low + p.low - quotient * divisor.low;
  return buildTimesExpOfSquare({quotient, rest / divisor.high}, x);
}

template <unsigned W> Real<W> buildErfc(Real<W> x) {
  Real<W> a = abs(x);
  // 0 from here on.
  constexpr double limit = W == 32 ? 10.125 : 27.25;
  Real<W> most = select(a < limit, a, limit);
  Real<W> large = select(a < limit, erfcOfLarge(select(most > 0.5, most, 0.5)), 0);
  large = select(x < 0, 2 - large, large);
  Sum<W> rest = add(constant(x, 1), -x);
  Real<W> small = rest.high - (x * evaluate(Tables<W>::erfSmall, x * x) - rest.low);
  return select(isNaN(x), x, select(a < 0.5, small, large));
}

template Real<32> buildErf(Real<32>);
template Real<64> buildErf(Real<64>);
template Real<32> buildErfc(Real<32>);
template Real<64> buildErfc(Real<64>);

} // namespace qd::math
