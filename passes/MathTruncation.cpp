//===- MathTruncation.cpp - narrower floats in other rounding modes than to nearest even ------------------===//
//
// The nearest narrow number is at most one step from the one that is asked for, and steps are those of its bits: to the
// next number away from zero by one more, from the largest to infinity as well.
//
//===----------------------------------------------------------------------===//

#include "passes/MathFunctions.h"

using namespace mlir;

namespace qd::math {

static Value getInteger(const Place &at, Type type, int64_t value) {
  return arith::ConstantOp::create(at.b, at.loc, at.b.getIntegerAttr(type, value));
}

/// `value` in the format of x, whose sign it has. A subnormal f32 goes by its bits: Vulkan devices may take it for a
/// zero.
template <unsigned W> static Real<W> widen(Value value, Real<W> x) {
  const Place &at = *x.at;
  Real<W> wide = {&at, at.make<arith::ExtFOp>(x.v.getType(), value)};
  if (!value.getType().isF32())
    return wide;
  Type type = at.b.getI32Type();
  Value bits = at.make<arith::AndIOp>(at.make<arith::BitcastOp>(type, value), getInteger(at, type, 0x7fffffff));
  Value isSmall = at.make<arith::CmpIOp>(arith::CmpIPredicate::ult, bits, getInteger(at, type, 0x00800000));
  Real<W> small = Real<W>{&at, at.make<arith::UIToFPOp>(x.v.getType(), bits)} * 0x1p-149;
  small = {&at, at.make<arith::SelectOp>((x < 0.0).v, (-small).v, small.v)};
  return {&at, at.make<arith::SelectOp>(isSmall, small.v, wide.v)};
}

template <unsigned W> static Value truncate(Real<W> x, Type narrow, arith::RoundingMode mode) {
  const Place &at = *x.at;
  Value nearest = at.make<arith::TruncFOp>(narrow, x.v);
  Real<W> wide = widen(nearest, x);
  Type type = at.b.getIntegerType(narrow.getIntOrFloatBitWidth());
  Value bits = at.make<arith::BitcastOp>(type, nearest);
  auto number = [&](int64_t value) { return getInteger(at, type, value); };
  auto step = [&](Value by) { return at.make<arith::BitcastOp>(narrow, at.make<arith::AddIOp>(bits, by)); };
  auto stepIf = [&](Bool condition, Value by) { return at.make<arith::SelectOp>(condition.v, step(by), nearest); };
  auto bySign = [&](int64_t ifNegative) {
    return at.make<arith::SelectOp>((x < 0.0).v, number(ifNegative), number(-ifNegative));
  };
  switch (mode) {
  case arith::RoundingMode::to_nearest_even:
    return nearest;
  case arith::RoundingMode::toward_zero:
    return stepIf(abs(wide) > abs(x), number(-1));
  case arith::RoundingMode::upward:
    return stepIf(wide < x, bySign(-1));
  case arith::RoundingMode::downward:
    return stepIf(wide > x, bySign(1));
  case arith::RoundingMode::to_nearest_away: {
    // Where both neighbours are as far from x, which its difference from either tells exactly.
    Bool isTie = (abs(widen(step(number(1)), x)) - abs(x)) == (abs(x) - abs(wide));
    return stepIf((abs(wide) < abs(x)) & isTie, number(1));
  }
  }
  llvm_unreachable("all rounding modes are handled");
}

Value buildTruncation(const Place &at, Value x, Type narrow, arith::RoundingMode mode) {
  return x.getType().isF64() ? truncate(Real<64>{&at, x}, narrow, mode) : truncate(Real<32>{&at, x}, narrow, mode);
}

} // namespace qd::math
