//===- Conversion.cpp - constants and conversions between types ---------------------------------===//

#include "codegen/interp/Machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace qd::interp {

static void constant(Thread &thread) {
  TypedAttr value = thread.op<arith::ConstantOp>().getValue();
  if (auto integer = dyn_cast<IntegerAttr>(value))
    thread.out[0] = LaneValue::of(integer.getValue());
  else
    thread.out[0] = LaneValue::of(cast<FloatAttr>(value).getValue());
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

static APInt intIn(Thread &thread) { return toInt(thread.in[0].bits, thread.inType(0)); }
static unsigned outWidth(Thread &thread) { return thread.outType().getIntOrFloatBitWidth(); }

static void extui(Thread &thread) { thread.out[0] = LaneValue::of(intIn(thread).zext(outWidth(thread))); }
static void extsi(Thread &thread) { thread.out[0] = LaneValue::of(intIn(thread).sext(outWidth(thread))); }

static void trunci(Thread &thread) {
  APInt wide = intIn(thread), narrow = wide.trunc(outWidth(thread));
  auto op = thread.op<arith::TruncIOp>();
  if ((op.hasNoSignedWrap() && narrow.sext(wide.getBitWidth()) != wide) ||
      (op.hasNoUnsignedWrap() && narrow.zext(wide.getBitWidth()) != wide))
    return;
  thread.out[0] = LaneValue::of(narrow);
}

/// The bits are the same on both sides.
static void bitcast(Thread &thread) { thread.out[0] = thread.in[0]; }

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

static APFloat floatIn(Thread &thread) { return toFloat(thread.in[0].bits, thread.inType(0)); }

static APFloat::roundingMode getRounding(std::optional<arith::RoundingMode> mode) {
  switch (mode.value_or(arith::RoundingMode::to_nearest_even)) {
  case arith::RoundingMode::to_nearest_even:
    return APFloat::rmNearestTiesToEven;
  case arith::RoundingMode::downward:
    return APFloat::rmTowardNegative;
  case arith::RoundingMode::upward:
    return APFloat::rmTowardPositive;
  case arith::RoundingMode::toward_zero:
    return APFloat::rmTowardZero;
  case arith::RoundingMode::to_nearest_away:
    return APFloat::rmNearestTiesToAway;
  }
  llvm_unreachable("all rounding modes are handled");
}

static void convertFloat(Thread &thread, APFloat::roundingMode rounding) {
  APFloat value = floatIn(thread);
  bool losesInfo;
  value.convert(cast<FloatType>(thread.outType()).getFloatSemantics(), rounding, &losesInfo);
  thread.out[0] = LaneValue::of(value);
}

static void extf(Thread &thread) { convertFloat(thread, APFloat::rmNearestTiesToEven); }
static void truncf(Thread &thread) {
  convertFloat(thread, getRounding(thread.op<arith::TruncFOp>().getRoundingmode()));
}

/// A value out of the integer's range is poison, a NaN too.
static void convertToInt(Thread &thread, bool isUnsigned) {
  llvm::APSInt result(outWidth(thread), isUnsigned);
  bool isExact;
  APFloat::opStatus status = floatIn(thread).convertToInteger(result, APFloat::rmTowardZero, &isExact);
  if (status != APFloat::opInvalidOp)
    thread.out[0] = LaneValue::of(result);
}

static void fptoui(Thread &thread) { convertToInt(thread, /*isUnsigned=*/true); }
static void fptosi(Thread &thread) { convertToInt(thread, /*isUnsigned=*/false); }

static void convertFromInt(Thread &thread, bool isSigned) {
  APFloat result(cast<FloatType>(thread.outType()).getFloatSemantics());
  result.convertFromAPInt(intIn(thread), isSigned, APFloat::rmNearestTiesToEven);
  thread.out[0] = LaneValue::of(result);
}

static void uitofp(Thread &thread) { convertFromInt(thread, /*isSigned=*/false); }
static void sitofp(Thread &thread) { convertFromInt(thread, /*isSigned=*/true); }

void addConversionRules(RuleTable &table) {
  table.addStrict<arith::ConstantOp>(constant);
  table.addStrict<arith::ExtUIOp>(extui);
  table.addStrict<arith::ExtSIOp>(extsi);
  table.addStrict<arith::TruncIOp>(trunci);
  table.addStrict<arith::BitcastOp>(bitcast);
  table.addStrict<arith::ExtFOp>(extf);
  table.addStrict<arith::TruncFOp>(truncf);
  table.addStrict<arith::FPToUIOp>(fptoui);
  table.addStrict<arith::FPToSIOp>(fptosi);
  table.addStrict<arith::UIToFPOp>(uitofp);
  table.addStrict<arith::SIToFPOp>(sitofp);
}

} // namespace qd::interp
