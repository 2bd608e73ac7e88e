//===- FastMath.cpp - functions by the approximations of GPUs ------------------------------===//
//
// Purpose: what an op with the flag `afn` becomes where the processor itself approximates powers and logarithms of 2,
// sines, cosines and reciprocal roots of f32. Those ops stay, with their flags; others are made of them. Errors are
// relative to the largest value on the way: small results that arise from large ones lose digits.
//
//===----------------------------------------------------------------------===//

#include "passes/FastMath.h"

using namespace mlir;

namespace qd::math {

namespace {
/// Approximate arithmetic on f32.
struct FastBuilder {
  Value constant(double value) const {
    return arith::ConstantOp::create(at.b, at.loc, at.b.getF32FloatAttr(float(value)));
  }
  template <typename Op> Value unary(Value x) const { return Op::create(at.b, at.loc, x, flags); }
  template <typename Op> Value binary(Value a, Value b) const { return Op::create(at.b, at.loc, a, b, flags); }
  Value exp2(Value x) const { return unary<mlir::math::Exp2Op>(x); }
  Value log2(Value x) const { return unary<mlir::math::Log2Op>(x); }
  Value mul(Value a, Value b) const { return binary<arith::MulFOp>(a, b); }
  Value divide(Value a, Value b) const { return binary<arith::DivFOp>(a, b); }

  const Place &at;
  arith::FastMathFlags flags;
};
} // namespace

bool isApproximated(Operation *op) {
  auto holder = dyn_cast<arith::ArithFastMathInterface>(op);
  if (!holder || !holder.getFastMathFlagsAttr() || op->getNumResults() != 1 || !op->getResult(0).getType().isF32())
    return false;
  return arith::bitEnumContainsAll(holder.getFastMathFlagsAttr().getValue(), arith::FastMathFlags::afn);
}

bool isApproximationOfHardware(Operation *op) {
  return isa<mlir::math::Exp2Op, mlir::math::Log2Op, mlir::math::SinOp, mlir::math::CosOp, mlir::math::RsqrtOp>(op);
}

Value buildApproximation(const Place &at, Operation *op) {
  auto flags = cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr().getValue();
  FastBuilder fast{at, flags | arith::FastMathFlags::arcp};
  Value x = op->getOperand(0);
  constexpr double log2e = 1.4426950408889634, ln2 = 0.6931471805599453, log10Of2 = 0.3010299956639812;
  if (isa<mlir::math::ExpOp>(op))
    return fast.exp2(fast.mul(x, fast.constant(log2e)));
  if (isa<mlir::math::LogOp>(op))
    return fast.mul(fast.log2(x), fast.constant(ln2));
  if (isa<mlir::math::Log10Op>(op))
    return fast.mul(fast.log2(x), fast.constant(log10Of2));
  if (isa<mlir::math::PowFOp>(op))
    return fast.exp2(fast.mul(op->getOperand(1), fast.log2(x)));
  if (isa<mlir::math::TanOp>(op))
    return fast.divide(fast.unary<mlir::math::SinOp>(x), fast.unary<mlir::math::CosOp>(x));
  if (isa<mlir::math::TanhOp>(op)) {
    // 1 - 2 / (exp(2x) + 1)
    Value one = fast.constant(1), exp = fast.exp2(fast.mul(x, fast.constant(2 * log2e)));
    Value quotient = fast.divide(fast.constant(2), fast.binary<arith::AddFOp>(exp, one));
    return fast.binary<arith::SubFOp>(one, quotient);
  }
  return {};
}

} // namespace qd::math
