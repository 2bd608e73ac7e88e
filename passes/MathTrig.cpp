//===- MathTrig.cpp - sine, cosine and tangent -----------------------------------------------===//
//
// x = n * pi/2 + r with r within +-pi/4: the quadrant n chooses between polynomials for the sine and the cosine of r,
// and their sign. r is right for every finite x: near multiples of pi/2 it has few digits in common with x.
//
//===----------------------------------------------------------------------===//

#include "passes/MathFunctions.h"

namespace qd::math {

namespace {
/// n*pi/2 + r + low. Of n only the lowest two bits count; `low` is small against the last digit of r.
template <unsigned W> struct Angle {
  Real<W> r, low;
  Int<W> n;
};
} // namespace

static constexpr double twoOverPiRounded = 0x1.45f306dc9c883p-1;

template <unsigned W> static Angle<W> makeAngle(Real<W> larger, Real<W> smaller, Int<W> n) {
  Real<W> r = larger + smaller;
  return {r, (larger - r) + smaller, n};
}

/// Up to here pi/2 in a few parts serves.
template <unsigned W> static constexpr double nearLimit = W == 32 ? 100000 : 1600000;

/// x less pi/2 in three parts, each by one step, of which the first leaves nothing behind. What the others do is in
/// `low`, by the product with the second part in two numbers.
static Angle<32> reduceNearFused(Real<32> x) {
  constexpr auto &parts = Tables<32>::halfPiThree;
  Real<32> sum = multiplyAdd(x, twoOverPiRounded, Format<32>::toInteger);
  Real<32> n = sum - Format<32>::toInteger;
  Real<32> a = multiplyAdd(n, -parts[0], x);
  Real<32> r = multiplyAdd(n, -parts[2], multiplyAdd(n, -parts[1], a));
  Sum<32> second = multiply(n, constant(n, -parts[1])), rest = add(a, second.high);
  Real<32> low = (rest.high - r) + multiplyAdd(n, -parts[2], rest.low + second.low);
  return {r, low, toBits(sum)};
}

/// x less the parts of pi/2 one by one; the rounding errors of the first subtractions are added in the end.
/// Of the four parts the first three have exact products with n.
template <unsigned W> static Angle<W> reduceNear(Real<W> x) {
  if constexpr (W == 32) {
    return reduceNearFused(x);
  } else {
    constexpr auto &parts = Tables<W>::halfPiParts;
    Real<W> sum = x * twoOverPiRounded + Format<W>::toInteger;
    Real<W> n = sum - Format<W>::toInteger;
    Real<W> a = minusExact(x, n, parts[0]);
    Real<W> b = minusExact(a, n, parts[1]), errorOfB = minusExact(a - b, n, parts[1]);
    Real<W> c = minusExact(b, n, parts[2]), errorOfC = minusExact(b - c, n, parts[2]);
    return makeAngle(c, errorOfB + errorOfC - n * parts[3], toBits(sum));
  }
}

namespace {
/// The bits of 2/pi from `first` on, in three words, of which the bits before the point are zeros.
template <unsigned W> struct Window { Int<W> words[3]; };
} // namespace

/// Word `index` of 2/pi behind `padding` zero bits.
template <unsigned W> static constexpr uint64_t getWord(unsigned index, unsigned padding) {
  uint64_t word = 0;
  for (unsigned i = 0; i < W; ++i) {
    unsigned at = index * W + i;
    unsigned bit = at < padding ? 0 : twoOverPi[(at - padding) / 32] >> (31 - (at - padding) % 32) & 1;
    word = word << 1 | bit;
  }
  return word;
}

/// W bits of `high` and `low` together, from bit `shift` of `high` on, which is less than W.
template <unsigned W> static Int<W> funnel(Int<W> high, Int<W> low, Int<W> shift) {
  return (high << shift) | shiftRight(shiftRight(low, 1), (W - 1) - shift);
}

/// No table in memory: words are chosen by the bits of their number.
template <unsigned W> static Window<W> selectWindow(Int<W> first, unsigned padding) {
  constexpr unsigned levels = W == 32 ? 2 : 4;
  Int<W> words[(1 << levels) + 3];
  for (unsigned i = 0; i < (1 << levels) + 3; ++i)
    words[i] = constant(first, int64_t(getWord<W>(i, padding)));
  Int<W> number = shiftRight(first, W == 32 ? 5 : 6);
  for (unsigned level = levels; level-- > 0;) {
    Bool isUpper = (number & (int64_t(1) << level)) != 0;
    for (unsigned i = 0; i < (1u << level) + 3; ++i)
      words[i] = select(isUpper, words[i + (1 << level)], words[i]);
  }
  Int<W> shift = first & int64_t(W - 1);
  return {{funnel(words[0], words[1], shift), funnel(words[1], words[2], shift), funnel(words[2], words[3], shift)}};
}

/// |x| is m * 2^e with an integer m. Of m * 2^e * 2/pi only the last two bits before the point and those behind it
/// count, which are those of m times a window of 2/pi (bits further up give multiples of 4).
template <unsigned W> static Angle<W> reduceFar(Real<W> x) {
  constexpr unsigned fraction = Format<W>::fractionBits;
  // 2^e >= limit / 2^digits; the window then begins at least here before the point.
  constexpr unsigned padding = W == 32 ? 15 : 34;
  Int<W> bits = toBits(abs(x));
  Int<W> m = (bits & ((int64_t(1) << fraction) - 1)) | (int64_t(1) << fraction);
  Int<W> first = shiftRight(bits, fraction) - (Format<W>::bias + fraction + 2) + padding;
  Window<W> w = selectWindow(first, padding);
  // Two words of the product: bits of weight 2, 1, 1/2 and so on.
  auto [low1, high1] = multiplyWide(m, w.words[1]);
  Int<W> q1 = low1 + multiplyWide(m, w.words[2]).second;
  Int<W> carry = select(below(q1, low1), 1, constant(q1, 0));
  Int<W> q0 = m * w.words[0] + high1 + carry;
  Int<W> n = shiftRight(q0 + (int64_t(1) << (W - 3)), W - 2);
  Int<W> part = q0 - (n << (W - 2));

  // The fraction in three numbers that are exact.
  constexpr unsigned cut = W == 32 ? 8 : 10, taken = Format<W>::digits - cut;
  constexpr double unit = W == 32 ? 0x1p-30 : 0x1p-62, step = W == 32 ? 0x1p-16 : 0x1p-43,
                   word = W == 32 ? 0x1p-32 : 0x1p-64;
  constexpr int64_t cutMask = (int64_t(1) << cut) - 1, restMask = (int64_t(1) << (W - taken)) - 1;
  Real<W> upper = toReal(part & ~cutMask) * unit;
  Real<W> middle = toReal(((part & cutMask) << int64_t(taken)) | shiftRight(q1, int64_t(W - taken))) * (unit * step);
  Real<W> lower = toReal(q1 & restMask) * (unit * word);
  Real<W> sum = upper + middle;
  lower = (middle - (sum - upper)) + lower;
  // Times pi/2.
  constexpr auto &halfPi = Tables<W>::halfPiSplit;
  Real<W> sumUpper = upperHalf(sum), sumLower = sum - sumUpper;
  Real<W> rest = plusExact(sum * halfPi[1] + lower * halfPi[0], sumLower, halfPi[0]);
  Bool isNegative = toBits(x) < 0;
  // Infinities and NaNs make NaN.
  Real<W> sign = select(isNegative, -1, constant(x, 1)) + (x - x);
  return makeAngle(sumUpper * halfPi[0] * sign, rest * sign, select(isNegative, 0 - n, n));
}

template <unsigned W> static Angle<W> reduceAngle(Real<W> x, double limit) {
  Angle<W> near = reduceNear(x);
  replaceIf(
      !(abs(x) < limit), [&] { return reduceFar(x); }, near);
  return near;
}

/// The sine of an angle, or for quadrants that are one further the cosine.
template <unsigned W> static Real<W> sinOfQuadrant(Real<W> r, Int<W> quadrant) {
  Real<W> z = r * r;
  Real<W> sin = multiplyAdd(r * z, evaluate(Tables<W>::sin, z), r);
  Real<W> cos = z;
  if constexpr (W == 32)
    cos = multiplyAdd(multiplyAdd(z, evaluate(Tables<W>::cos, z), -0.5), z, 1);
  else
    cos = z * z * evaluate(Tables<W>::cos, z) + (1 - z * 0.5);
  Real<W> result = select((quadrant & 1) != 0, cos, sin);
  return fromBits(toBits(result) ^ ((quadrant & 2) << int64_t(W - 2)));
}

template <unsigned W> Real<W> buildSin(Real<W> x) {
  auto [r, low, n] = reduceAngle(x, nearLimit<W>);
  return select(x == 0, x, sinOfQuadrant(r, n));
}

template <unsigned W> Real<W> buildCos(Real<W> x) {
  auto [r, low, n] = reduceAngle(x, nearLimit<W>);
  return sinOfQuadrant(r, n + 1);
}

template <unsigned W> Real<W> buildTan(Real<W> x) {
  // Where n is by its rounding not the nearest integer, the tangent is above 1, and its error weighs twice in the
  // quotient.
  auto [r, low, n] = reduceAngle(x, W == 32 ? 1600 : nearLimit<W>);
  Real<W> z = r * r;
  // The derivative of the tangent is 1 + z and more.
  Real<W> tan = r * z * evaluate(Tables<W>::tan, z) + (low + low * z) + r;
  return select(x == 0, x, select((n & 1) != 0, -1.0 / tan, tan));
}

#define INSTANTIATE(W)                                                                                                 \
  template Real<W> buildSin(Real<W>);                                                                                  \
  template Real<W> buildCos(Real<W>);                                                                                  \
  template Real<W> buildTan(Real<W>);
INSTANTIATE(32)
INSTANTIATE(64)
#undef INSTANTIATE

} // namespace qd::math
