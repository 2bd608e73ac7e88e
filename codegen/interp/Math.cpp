//===- Math.cpp - mathematical functions ----------------------------------------------------------===//
//
// Rounding, classification, sqrt and fma are exact to the last bit. Other functions have been expanded before; those
// without an expansion, which no target has, are the host's double-precision ones, rounded to the op's type.
//
//===----------------------------------------------------------------------===//

#include "codegen/interp/Machine.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;

namespace qd::interp {

//===----------------------------------------------------------------------===//
// Exact functions
//===----------------------------------------------------------------------===//

static MaybeFloat absf(Operation *, Floats in) { return abs(in[0]); }
static MaybeFloat copysign(Operation *, Floats in) { return APFloat::copySign(in[0], in[1]); }

template <APFloat::roundingMode mode> static MaybeFloat toIntegral(Operation *, Floats in) {
  APFloat result = in[0];
  result.roundToIntegral(mode);
  return result;
}

static MaybeFloat fma(Operation *, Floats in) {
  APFloat result = in[0];
  result.fusedMultiplyAdd(in[1], in[2], APFloat::rmNearestTiesToEven);
  return result;
}

template <typename Op, bool (APFloat::*classify)() const> static void addClassification(RuleTable &table) {
  table.addStrict<Op>([](Thread &thread) {
    APFloat value = toFloat(thread.in[0].bits, thread.inType(0));
    thread.out[0] = LaneValue::of((value.*classify)());
  });
}

//===----------------------------------------------------------------------===//
// Functions of the host
//===----------------------------------------------------------------------===//

static double toDouble(APFloat value) {
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

static APFloat fromDouble(double value, const llvm::fltSemantics &semantics) {
  APFloat result(value);
  bool losesInfo;
  result.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
  return result;
}

template <double (*function)(double)> static MaybeFloat unary(Operation *, Floats in) {
  return fromDouble(function(toDouble(in[0])), in[0].getSemantics());
}

/// Wraps around; a negative power is the integer part of the quotient, and of zero it is poison.
static MaybeInt ipowi(Operation *, Ints in) {
  APInt base = in[0], power = in[1], one(base.getBitWidth(), 1), result = one;
  if (power.isNegative()) {
    if (base.isZero())
      return std::nullopt;
    if (base.isAllOnes())
      return power[0] ? base : one;
    return base == one ? one : APInt::getZero(base.getBitWidth());
  }
  for (; !power.isZero(); power.lshrInPlace(1)) {
    if (power[0])
      result *= base;
    base *= base;
  }
  return result;
}

void addMathRules(RuleTable &table) {
  table.addFloats<math::AbsFOp>(absf);
  table.addFloats<math::CopySignOp>(copysign);
  table.addFloats<math::FloorOp>(toIntegral<APFloat::rmTowardNegative>);
  table.addFloats<math::CeilOp>(toIntegral<APFloat::rmTowardPositive>);
  table.addFloats<math::TruncOp>(toIntegral<APFloat::rmTowardZero>);
  table.addFloats<math::RoundOp>(toIntegral<APFloat::rmNearestTiesToAway>);
  table.addFloats<math::RoundEvenOp>(toIntegral<APFloat::rmNearestTiesToEven>);
  table.addFloats<math::FmaOp>(fma);
  addClassification<math::IsNaNOp, &APFloat::isNaN>(table);
  addClassification<math::IsInfOp, &APFloat::isInfinity>(table);
  addClassification<math::IsFiniteOp, &APFloat::isFinite>(table);
  addClassification<math::IsNormalOp, &APFloat::isNormal>(table);

  // The square root of a double, rounded again, is that of the narrower type.
  table.addFloats<math::SqrtOp>(unary<std::sqrt>);
  table.addInts<math::IPowIOp>(ipowi);
}

} // namespace qd::interp
