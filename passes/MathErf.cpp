//===- MathErf.cpp - the error function ---------------------------------------------------===//
//
// A polynomial times x up to 1. Beyond, 1 - erf(x), which is small and needs few digits, is 2 to the power of a
// polynomial.
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

template Real<32> buildErf(Real<32>);
template Real<64> buildErf(Real<64>);

} // namespace qd::math
