//===- Casts.cpp - arith's conversions, on SPIR-V ------------------------------------===//

#include "codegen/spirv/KernelLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace spv;

namespace qd::spirv {

static Type getSource(Operation *op) { return op->getOperand(0).getType(); }
static Type getTarget(Operation *op) { return op->getResult(0).getType(); }

/// The constant `value` of a float type other than bf16.
static Id getFloat(KernelLowering &l, Type type, double value) {
  APFloat number(value);
  bool losesInfo;
  number.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  return l.getConstant(FloatAttr::get(type, number));
}

static Type getF32(Operation *op) { return Float32Type::get(op->getContext()); }

//===----------------------------------------------------------------------===//
// Between integers
//===----------------------------------------------------------------------===//

/// extui and extsi: the row's code is the instruction.
static LogicalResult lowerExtend(KernelLowering &l, Operation *op, const OpRow &row) {
  Id value = l.get(op->getOperand(0)), type = l.getType(getTarget(op));
  if (!getSource(op).isInteger(1))
    return l.setResult(op, l.emit(Op(row.code), type, value));
  unsigned width = getTarget(op).getIntOrFloatBitWidth();
  uint64_t set = isa<arith::ExtSIOp>(op) ? ~uint64_t(0) : 1;
  return l.setResult(op, l.select(type, value, l.b.getInt(width, set), l.b.getInt(width, 0)));
}

bool isNarrowMask(Value value) {
  if (!isa_and_nonnull<BallotOp, ActiveMaskOp>(value.getDefiningOp()))
    return false;
  return llvm::all_of(value.getUsers(), [value](Operation *user) {
    if (auto ballot = dyn_cast<BallotOp>(user))
      return isNarrowMask(ballot);
    // A shuffle ignores its members.
    if (auto shuffle = dyn_cast<ShuffleOp>(user))
      return shuffle.getValue() != value;
    return isa<arith::TruncIOp>(user) && user->getResult(0).getType().isInteger(32);
  });
}

static LogicalResult lowerTruncI(KernelLowering &l, Operation *op, const OpRow &) {
  if (isNarrowMask(op->getOperand(0)))
    return l.setResult(op, l.get(op->getOperand(0)));
  Id value = l.get(op->getOperand(0)), type = l.getType(getTarget(op));
  if (!getTarget(op).isInteger(1))
    return l.setResult(op, l.emit(Op::OpUConvert, type, value));
  unsigned width = getSource(op).getIntOrFloatBitWidth();
  Id lowest = l.emit(Op::OpBitwiseAnd, l.getType(getSource(op)), {value, l.b.getInt(width, 1)});
  return l.setResult(op, l.emitBool(Op::OpINotEqual, {lowest, l.b.getInt(width, 0)}));
}

//===----------------------------------------------------------------------===//
// From integers to floats
//===----------------------------------------------------------------------===//

/// A u32 as f32. Where it has more bits than an f32, those that cannot matter to a bf16 but as "not zero" are folded
/// into one bit: the conversion is exact then, and rounding it to bf16 rounds the number once.
static Id emitFoldedToF32(KernelLowering &l, Id value) {
  Id low = l.emitU32(Op::OpBitwiseAnd, {value, l.getU32(0xff)});
  Id sticky = l.select(l.getU32Type(), l.emitBool(Op::OpINotEqual, {low, l.getU32(0)}), l.getU32(0x100), l.getU32(0));
  Id high = l.emitU32(Op::OpBitwiseAnd, {value, l.getU32(0xffffff00)});
  Id folded = l.emitU32(Op::OpBitwiseOr, {high, sticky});
  Id isLong = l.emitBool(Op::OpUGreaterThanEqual, {value, l.getU32(1 << 24)});
  return l.emit(Op::OpConvertUToF, l.getFloatType(32), l.select(l.getU32Type(), isLong, folded, value));
}

/// An i32 or i64 as bf16, by its magnitude and sign. Of 64 bits the upper 32 from the first set one on are taken, with
/// what is below folded into their last.
static Id emitToBF16(KernelLowering &l, Id value, Type source, bool isSigned, Type bf16) {
  unsigned width = source.getIntOrFloatBitWidth();
  Id type = l.getType(source), f32 = l.getFloatType(32), zero = l.b.getInt(width, 0), sign = 0;
  if (isSigned) {
    Id high = width == 32 ? value : l.getHalf(l.toHalves(value), 1);
    sign = l.emitU32(Op::OpBitwiseAnd, {high, l.getU32(0x80000000)});
    Id isNegative = l.emitBool(Op::OpSLessThan, {value, zero});
    value = l.select(type, isNegative, l.emit(Op::OpISub, type, {zero, value}), value);
  }
  Id number;
  if (width == 32) {
    number = emitFoldedToF32(l, value);
  } else {
    Id high = l.getHalf(l.toHalves(value), 1);
    // FindUMsb is -1 for zero: no bit is shifted out then.
    Id shift = l.emitU32(Op::OpIAdd, {l.b.emitExt(GLSLstd450FindUMsb, l.getU32Type(), high), l.getU32(1)});
    Id top = l.emit(Op::OpShiftRightLogical, type, {value, shift});
    Id back = l.emit(Op::OpShiftLeftLogical, type, {top, shift});
    Id sticky = l.select(l.getU32Type(), l.emitBool(Op::OpINotEqual, {back, value}), l.getU32(1), l.getU32(0));
    Id folded = l.emitU32(Op::OpBitwiseOr, {l.resize(top, 64, 32), sticky});
    Id exponent = l.emitU32(Op::OpShiftLeftLogical, {l.emitU32(Op::OpIAdd, {shift, l.getU32(127)}), l.getU32(23)});
    number = l.emit(Op::OpFMul, f32, {emitFoldedToF32(l, folded), l.emit(Op::OpBitcast, f32, exponent)});
  }
  if (isSigned)
    number = l.emit(Op::OpBitcast, f32, l.emitU32(Op::OpBitwiseOr, {l.emitU32(Op::OpBitcast, number), sign}));
  return l.fromF32(number, bf16);
}

/// sitofp and uitofp: the row's code is the instruction. f16 goes by f32: integers that an f32 rounds are past f16's
/// range.
static LogicalResult lowerIntToFloat(KernelLowering &l, Operation *op, const OpRow &row) {
  Type source = getSource(op), target = getTarget(op);
  bool isSigned = isa<arith::SIToFPOp>(op), isNarrow = target.getIntOrFloatBitWidth() == 16;
  Type wide = isNarrow ? getF32(op) : target;
  Id value = l.get(op->getOperand(0)), number;
  if (source.isInteger(1)) {
    number = l.select(l.getType(wide), value, getFloat(l, wide, isSigned ? -1 : 1), getFloat(l, wide, 0));
  } else if (target.isBF16() && source.getIntOrFloatBitWidth() >= 32) {
    return l.setResult(op, emitToBF16(l, value, source, isSigned, target));
  } else {
    number = l.emit(Op(row.code), l.getType(wide), value);
  }
  return l.setResult(op, isNarrow ? l.fromF32(number, target) : number);
}

//===----------------------------------------------------------------------===//
// From floats to integers
//===----------------------------------------------------------------------===//

/// fptosi and fptoui: the row's code is the instruction. Out of the integer's range the result is poison.
static LogicalResult lowerFloatToInt(KernelLowering &l, Operation *op, const OpRow &row) {
  Type source = getSource(op), target = getTarget(op);
  bool isNarrow = source.getIntOrFloatBitWidth() == 16;
  Id value = l.get(op->getOperand(0));
  if (isNarrow)
    value = l.toF32(value, source);
  Type wide = isNarrow ? getF32(op) : source;
  if (target.isInteger(1)) {
    bool isSigned = isa<arith::FPToSIOp>(op);
    Op reaches = isSigned ? Op::OpFOrdLessThanEqual : Op::OpFOrdGreaterThanEqual;
    return l.setResult(op, l.emitBool(reaches, {value, getFloat(l, wide, isSigned ? -1 : 1)}));
  }
  unsigned width = target.getIntOrFloatBitWidth();
  Id type = l.getType(target);
  Id integer = l.emit(Op(row.code), width >= 32 ? type : l.getU32Type(), value);
  // Mesa takes integers that became floats and integers again for the first ones, whatever was rounded.
  l.b.decorate(integer, Decoration::NoContraction);
  return l.setResult(op, width >= 32 ? integer : l.resize(integer, 32, width));
}

//===----------------------------------------------------------------------===//
// Between floats
//===----------------------------------------------------------------------===//

static LogicalResult lowerExtF(KernelLowering &l, Operation *op, const OpRow &) {
  Id value = l.toF32(l.get(op->getOperand(0)), getSource(op));
  if (getTarget(op).isF64())
    value = l.emit(Op::OpFConvert, l.getType(getTarget(op)), value);
  return l.setResult(op, value);
}

/// A f64 as the f32 next to it whose last bit says whether anything was cut off: rounding that once more gives what
/// rounding the f64 gives.
static Id emitRoundToOdd(KernelLowering &l, Id value, Type f64) {
  Id f32 = l.getFloatType(32), wideId = l.getType(f64);
  Id nearest = l.emit(Op::OpFConvert, f32, value);
  Id back = l.emit(Op::OpFConvert, wideId, nearest);
  auto magnitude = [&](Id x) { return l.b.emitExt(GLSLstd450FAbs, wideId, x); };
  Id isAbove = l.emitBool(Op::OpFOrdGreaterThan, {magnitude(back), magnitude(value)});
  Id isInexact = l.emitBool(Op::OpFOrdNotEqual, {back, value});
  Id bits = l.emitU32(Op::OpBitcast, nearest), one = l.getU32(1), zero = l.getU32(0);
  bits = l.emitU32(Op::OpISub, {bits, l.select(l.getU32Type(), isAbove, one, zero)});
  bits = l.emitU32(Op::OpBitwiseOr, {bits, l.select(l.getU32Type(), isInexact, one, zero)});
  return l.emit(Op::OpBitcast, f32, bits);
}

static LogicalResult lowerTruncF(KernelLowering &l, Operation *op, const OpRow &) {
  Type source = getSource(op), target = getTarget(op);
  Id value = l.get(op->getOperand(0));
  if (source.isF64() && target.isF32())
    return l.setResult(op, l.emit(Op::OpFConvert, l.getType(target), value));
  if (source.isF64())
    value = emitRoundToOdd(l, value, source);
  return l.setResult(op, l.fromF32(value, target));
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

static LogicalResult lowerBitcast(KernelLowering &l, Operation *op, const OpRow &) {
  Id value = l.get(op->getOperand(0));
  Type source = getSource(op), target = getTarget(op);
  // A bf16 is an integer already.
  auto isInteger = [](Type type) { return isa<IntegerType>(type) || type.isBF16(); };
  if (source == target || (isInteger(source) && isInteger(target)))
    return l.setResult(op, value);
  return l.setResult(op, l.emit(Op::OpBitcast, l.getType(target), value));
}

ArrayRef<OpRow> getCastRows() {
  static const OpRow rows[] = {
      makeRow<arith::ExtUIOp>(lowerExtend, Op::OpUConvert),
      makeRow<arith::ExtSIOp>(lowerExtend, Op::OpSConvert),
      makeRow<arith::TruncIOp>(lowerTruncI),
      makeRow<arith::SIToFPOp>(lowerIntToFloat, Op::OpConvertSToF),
      makeRow<arith::UIToFPOp>(lowerIntToFloat, Op::OpConvertUToF),
      makeRow<arith::FPToSIOp>(lowerFloatToInt, Op::OpConvertFToS),
      makeRow<arith::FPToUIOp>(lowerFloatToInt, Op::OpConvertFToU),
      makeRow<arith::ExtFOp>(lowerExtF),
      makeRow<arith::TruncFOp>(lowerTruncF),
      makeRow<arith::BitcastOp>(lowerBitcast),
  };
  return rows;
}

} // namespace qd::spirv
