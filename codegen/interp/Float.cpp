//===- Float.cpp - floating-point arithmetic ----------------------------------------------------===//
//
// Every operation rounds once, to nearest even, to its own type. Fast-math flags allow other results and so
// change nothing here, except that a NaN or infinity that they rule out is poison.
//
//===----------------------------------------------------------------------===//

#include "codegen/interp/Machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace qd::interp {

static constexpr auto nearestEven = APFloat::rmNearestTiesToEven;

/// Poison where a value breaks what the op's fast-math flags promise.
static MaybeFloat checkPromises(Operation *op, Floats in, const APFloat &result) {
  auto flags = dyn_cast_or_null<arith::ArithFastMathInterface>(op);
  if (!flags)
    return result;
  arith::FastMathFlags promise = flags.getFastMathFlagsAttr().getValue();
  auto isBroken = [&](const APFloat &value) {
    return (value.isNaN() && bitEnumContainsAll(promise, arith::FastMathFlags::nnan)) ||
           (value.isInfinity() && bitEnumContainsAll(promise, arith::FastMathFlags::ninf));
  };
  if (llvm::any_of(in, isBroken) || isBroken(result))
    return std::nullopt;
  return result;
}

static MaybeFloat addf(Operation *op, Floats in) {
  APFloat result = in[0];
  result.add(in[1], nearestEven);
  return checkPromises(op, in, result);
}

static MaybeFloat subf(Operation *op, Floats in) {
  APFloat result = in[0];
  result.subtract(in[1], nearestEven);
  return checkPromises(op, in, result);
}

static MaybeFloat mulf(Operation *op, Floats in) {
  APFloat result = in[0];
  result.multiply(in[1], nearestEven);
  return checkPromises(op, in, result);
}

static MaybeFloat divf(Operation *op, Floats in) {
  APFloat result = in[0];
  result.divide(in[1], nearestEven);
  return checkPromises(op, in, result);
}

/// The remainder of the division that rounds towards zero; its sign is the dividend's.
static MaybeFloat remf(Operation *op, Floats in) {
  APFloat result = in[0];
  result.mod(in[1]);
  return checkPromises(op, in, result);
}

static MaybeFloat negf(Operation *op, Floats in) { return checkPromises(op, in, neg(in[0])); }

/// These ignore a quiet NaN beside a number; a zero's sign is open.
static MaybeFloat minnumf(Operation *op, Floats in) { return checkPromises(op, in, llvm::minimumnum(in[0], in[1])); }
static MaybeFloat maxnumf(Operation *op, Floats in) { return checkPromises(op, in, llvm::maximumnum(in[0], in[1])); }

/// These propagate a NaN, and put -0 below +0.
static MaybeFloat minimumf(Operation *op, Floats in) { return checkPromises(op, in, llvm::minimum(in[0], in[1])); }
static MaybeFloat maximumf(Operation *op, Floats in) { return checkPromises(op, in, llvm::maximum(in[0], in[1])); }

static void cmpf(Thread &thread) {
  auto op = thread.op<arith::CmpFOp>();
  APFloat lhs = toFloat(thread.in[0].bits, thread.inType(0)), rhs = toFloat(thread.in[1].bits, thread.inType(1));
  if (!checkPromises(op, {lhs, rhs}, lhs))
    return;
  thread.out[0] = LaneValue::of(arith::applyCmpPredicate(op.getPredicate(), lhs, rhs));
}

void addFloatRules(RuleTable &table) {
  table.addFloats<arith::AddFOp>(addf);
  table.addFloats<arith::SubFOp>(subf);
  table.addFloats<arith::MulFOp>(mulf);
  table.addFloats<arith::DivFOp>(divf);
  table.addFloats<arith::RemFOp>(remf);
  table.addFloats<arith::NegFOp>(negf);
  table.addFloats<arith::MinNumFOp>(minnumf);
  table.addFloats<arith::MaxNumFOp>(maxnumf);
  table.addFloats<arith::MinimumFOp>(minimumf);
  table.addFloats<arith::MaximumFOp>(maximumf);
  table.addStrict<arith::CmpFOp>(cmpf);
}

} // namespace qd::interp
