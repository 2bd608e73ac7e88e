//===- MathArc.cpp - arc functions --------------------------------------------------------===//
//
// Polynomials on [0, 1] (atan) and [0, 0.6] (asin), to which identities lead. pi and pi/2 come in two parts.
//
//===----------------------------------------------------------------------===//

#include "passes/MathFunctions.h"

namespace qd::math {

/// atan(t) for t from 0 to 1.
template <unsigned W> static Real<W> atanOfUnit(Real<W> t) {
  Real<W> z = t * t;
  return t * z * evaluate(Tables<W>::atan, z) + t;
}

/// factor * pi/2 - x.
template <unsigned W> static Real<W> fromHalfPi(double factor, Real<W> x) {
  return factor * Tables<W>::halfPi[0] - (x - factor * Tables<W>::halfPi[1]);
}

template <unsigned W> Real<W> buildAtan(Real<W> x) {
  Real<W> a = abs(x);
  Bool isLarge = a > 1;
  Real<W> inner = atanOfUnit(select(isLarge, 1 / a, a));
  return copySign(select(isLarge, fromHalfPi(1, inner), inner), x);
}

template <unsigned W> Real<W> buildAtan2(Real<W> y, Real<W> x) {
  Real<W> ax = abs(x), ay = abs(y);
  Bool isSteep = ay > ax;
  Real<W> smaller = select(isSteep, ax, ay), larger = select(isSteep, ay, ax);
  // 0/0 and inf/inf have an angle all the same.
  Real<W> t = select(larger == 0, 0, select(smaller == infinity, 1, smaller / larger));
  Real<W> angle = atanOfUnit(t);
  angle = select(isSteep, fromHalfPi(1, angle), angle);
  angle = copySign(select(toBits(x) < 0, fromHalfPi(2, angle), angle), y);
  return select(isNaN(x) | isNaN(y), x + y, angle);
}

namespace {
/// asin(t) is t + more, with t = |x|, or for |x| > 0.6 the sine of half the angle that |x| is the cosine of.
template <unsigned W> struct Arc {
  Real<W> t, more;
  Bool isLarge;
};
} // namespace

template <unsigned W> static Arc<W> reduceArc(Real<W> x) {
  Real<W> a = abs(x);
  Bool isLarge = a > 0.6;
  Real<W> z = select(isLarge, (1 - a) * 0.5, a * a);
  Real<W> t = select(isLarge, sqrt(z), a);
  return {t, t * z * evaluate(Tables<W>::asin, z), isLarge};
}

template <unsigned W> Real<W> buildAsin(Real<W> x) {
  Arc<W> arc = reduceArc(x);
  Real<W> angle = arc.t + arc.more;
  return copySign(select(arc.isLarge, fromHalfPi(1, angle * 2), angle), x);
}

template <unsigned W> Real<W> buildAcos(Real<W> x) {
  Arc<W> arc = reduceArc(x);
  Real<W> twice = (arc.t + arc.more) * 2;
  Real<W> large = select(x < 0, fromHalfPi(2, twice), twice);
  Real<W> more = copySign(arc.more, x);
  Real<W> small = Tables<W>::halfPi[0] - (x + (more - Tables<W>::halfPi[1]));
  return select(arc.isLarge, large, small);
}

#define INSTANTIATE(W)                                                                                                 \
  template Real<W> buildAsin(Real<W>);                                                                                 \
  template Real<W> buildAcos(Real<W>);                                                                                 \
  template Real<W> buildAtan(Real<W>);                                                                                 \
  template Real<W> buildAtan2(Real<W>, Real<W>);
INSTANTIATE(32)
INSTANTIATE(64)
#undef INSTANTIATE

} // namespace qd::math
