//===- MathFma.cpp - a product and a sum, rounded once, by integers -------------------------===//
//
// For devices whose own multiply-add rounds twice. Product and addend become integers of 2W bits with one exponent; what
// the smaller one loses on the way leaves a lowest bit. Their sum is brought to the left and rounded. It holds for all
// operands, and needs no float arithmetic: drivers that compute with constants while they compile get zeros, infinities
// and NaNs wrong there.
//
//===----------------------------------------------------------------------===//

#include "passes/MathFunctions.h"

namespace qd::math {

namespace {
/// An unsigned integer of 2W bits.
template <unsigned W> struct Wide {
  Int<W> high, low;
};

/// |x| = digits * 2^exponent / 2^(bias + fractionBits), where the uppermost digit is set.
template <unsigned W> struct Parts {
  Int<W> digits, exponent;
};
} // namespace

template <unsigned W> static Int<W> asInt(Bool b) {
  return {b.at, b.at->template make<mlir::arith::ExtUIOp>(getIntType<W>(*b.at), b.v)};
}
/// All ones where the condition holds.
template <unsigned W> static Int<W> asMask(Bool b) {
  return {b.at, b.at->template make<mlir::arith::ExtSIOp>(getIntType<W>(*b.at), b.v)};
}
template <unsigned W> static Int<W> countLeadingZeros(Int<W> a) {
  return {a.at, a.at->template make<mlir::math::CountLeadingZerosOp>(a.v)};
}

/// Of the bits of |x|; for zero the digits are wrong.
template <unsigned W> static Parts<W> takeApart(Int<W> magnitude) {
  constexpr unsigned fraction = Format<W>::fractionBits;
  constexpr int64_t implicit = int64_t(1) << fraction;
  Bool isSubnormal = magnitude < Format<W>::leastNormalBits;
  // Subnormal numbers are integers, times the least of them.
  Int<W> normal = select(isSubnormal, toBits(toReal(magnitude)), magnitude);
  Int<W> exponent = shiftRight(normal, fraction) +
                    select(isSubnormal, 1 - Format<W>::bias - int64_t(fraction), constant(normal, 0));
  return {(normal & (implicit - 1)) | implicit, exponent};
}

/// a >> n for n < W; the lowest bit says whether any that was shifted out was set.
template <unsigned W> static Int<W> shiftRightSticky(Int<W> a, Int<W> n) {
  Int<W> lost = (a << 1) << ((W - 1) - n);
  return shiftRight(a, n) | asInt<W>(lost != 0);
}

/// The same for n < 2W.
template <unsigned W> static Wide<W> shiftRightSticky(Wide<W> a, Int<W> n) {
  Bool isFar = (n & int64_t(W)) != 0;
  Int<W> lostWord = select(isFar, a.low, 0), low = select(isFar, a.high, a.low), high = select(isFar, 0, a.high);
  Int<W> rest = n & int64_t(W - 1), back = (W - 1) - rest;
  Int<W> lost = lostWord | ((low << 1) << back);
  low = shiftRight(low, rest) | ((high << 1) << back) | asInt<W>(lost != 0);
  return {shiftRight(high, rest), low};
}

template <unsigned W> static Int<W> atMost(Int<W> a, int64_t b) { return select(a < constant(a, b), a, b); }

template <unsigned W> Real<W> buildFma(Real<W> x, Real<W> y, Real<W> z, bool toOdd) {
  constexpr unsigned fraction = Format<W>::fractionBits, spare = W - fraction - 1;
  constexpr int64_t bias = Format<W>::bias, infinityBits = Format<W>::infinityBits;
  constexpr int64_t magnitudeMask = infinityBits | (Format<W>::leastNormalBits - 1), signMask = ~magnitudeMask;
  Int<W> xBits = toBits(x), yBits = toBits(y), zBits = toBits(z);
  Int<W> xm = xBits & magnitudeMask, ym = yBits & magnitudeMask, zm = zBits & magnitudeMask;
  Parts<W> a = takeApart(xm), b = takeApart(ym), c = takeApart(zm);

  // Numbers are integers times 2^(exponent - 2W + 3): the product's uppermost bit is 2W-2 or the next, the addend's
  // is 2W-3.
  auto [low, high] = multiplyWide(a.digits << int64_t(spare - 1), b.digits << int64_t(spare));
  Wide<W> product{high, low};
  Wide<W> addend{select(zm == 0, 0, c.digits << int64_t(spare - 2)), constant(low, 0)};
  Int<W> productExponent = a.exponent + b.exponent - 2 * bias, addendExponent = c.exponent - bias;
  Int<W> distance = productExponent - addendExponent;
  Bool isProductSmaller = distance < 0;
  Wide<W> larger{select(isProductSmaller, addend.high, product.high), select(isProductSmaller, 0, product.low)};
  Wide<W> smaller{select(isProductSmaller, product.high, addend.high), select(isProductSmaller, product.low, 0)};
  Int<W> exponent = select(isProductSmaller, addendExponent, productExponent);
  smaller = shiftRightSticky(smaller, atMost(select(isProductSmaller, 0 - distance, distance), 2 * W - 1));

  // Signs alone: Mesa loses the sign of a zero that is chosen instead of the bits of 1.0.
  Int<W> productSign = (xBits ^ yBits) & signMask, addendSign = zBits & signMask;
  Bool isDifference = productSign != addendSign;
  Int<W> mask = asMask<W>(isDifference), one = asInt<W>(isDifference);
  Int<W> otherLow = smaller.low ^ mask, partLow = larger.low + otherLow, sumLow = partLow + one;
  Int<W> carry = asInt<W>(below(partLow, otherLow)) + asInt<W>(below(sumLow, one));
  Int<W> sumHigh = larger.high + (smaller.high ^ mask) + carry;
  // The smaller one by its exponent may be the larger number.
  Bool isNegative = isDifference & (sumHigh < 0);
  sumHigh = select(isNegative, (0 - sumHigh) - asInt<W>(sumLow != 0), sumHigh);
  sumLow = select(isNegative, 0 - sumLow, sumLow);
  Int<W> sign = select(isProductSmaller, addendSign, productSign) ^ select(isNegative, signMask, constant(zBits, 0));
  Bool isZero = (sumHigh | sumLow) == 0;

  // The uppermost bit to the left.
  Bool isShort = sumHigh == 0;
  Int<W> word = select(isShort, sumLow, sumHigh), next = select(isShort, 0, sumLow);
  Int<W> leading = select(isZero, 0, countLeadingZeros(word));
  Int<W> rest = next << leading;
  word = (word << leading) | shiftRight(shiftRight(next, 1), (W - 1) - leading) | asInt<W>(rest != 0);
  exponent = exponent - leading - select(isShort, int64_t(W), constant(word, 0)) + (bias + 2);

  // Below the normal numbers digits are lost.
  Bool isSmall = exponent < 1;
  word = shiftRightSticky(word, select(isSmall, atMost(1 - exponent, W - 1), 0));
  Int<W> digits = shiftRight(word, spare), lost = word & ((int64_t(1) << spare) - 1);
  Int<W> up = toOdd ? asInt<W>(lost != 0)
                    : shiftRight(lost + ((int64_t(1) << (spare - 1)) - 1) + (digits & 1), spare);
  digits = toOdd ? digits | up : digits + up;
  Int<W> bits = digits + (select(isSmall, 0, exponent - 1) << int64_t(fraction));
  constexpr int64_t end = infinityBits;
  bits = select(exponent < constant(exponent, 2 * bias + 1), bits, constant(bits, toOdd ? end - 1 : end));
  bits = bits | sign;
  bits = select(isZero, 0, bits);

  // A product of zero leaves the addend, or a zero that is negative where both are. An infinite product is the result,
  // unless the addend is a NaN, or infinite and of the other sign.
  Bool isZeroProduct = (xm == 0) | (ym == 0), isInfiniteProduct = (xm == infinityBits) | (ym == infinityBits);
  bits = select(isZeroProduct, select(zm == 0, productSign & zBits, zBits), bits);
  bits = select(zm == infinityBits, zBits, bits);
  bits = select(isInfiniteProduct, productSign | infinityBits, bits);
  Bool isNaN = below(constant(xm, infinityBits), xm) | below(constant(ym, infinityBits), ym) |
               below(constant(zm, infinityBits), zm) |
               (isInfiniteProduct & (isZeroProduct | (isDifference & (zm == infinityBits))));
  bits = select(isNaN, infinityBits | (Format<W>::leastNormalBits >> 1), bits);
  return fromBits(bits);
}

template Real<32> buildFma(Real<32>, Real<32>, Real<32>, bool);
template Real<64> buildFma(Real<64>, Real<64>, Real<64>, bool);

} // namespace qd::math
