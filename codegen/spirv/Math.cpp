//===- Math.cpp - the math dialect, on SPIR-V ----------------------------------------===//
//
// Only functions whose results GLSL.std.450 fixes, or that a few instructions compute exactly.
//
//===----------------------------------------------------------------------===//

#include "codegen/spirv/KernelLowering.h"
#include "codegen/spirv/Memory.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace spv;

namespace qd::spirv {

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

static LogicalResult lowerAbsI(KernelLowering &l, Operation *op, const OpRow &) {
  Type type = op->getResult(0).getType();
  Id value = l.get(op->getOperand(0));
  if (type.isInteger(1))
    return l.setResult(op, value);
  // SAbs leaves the smallest number undefined; here it stays what it is.
  Id id = l.getType(type), zero = l.b.getInt(type.getIntOrFloatBitWidth(), 0);
  Id isNegative = l.emitBool(Op::OpSLessThan, {value, zero});
  return l.setResult(op, l.select(id, isNegative, l.emit(Op::OpISub, id, {zero, value}), value));
}

/// The number of zeros above the highest set bit of a u32: 31 - FindUMsb, which is -1 for zero.
static Id countLeading32(KernelLowering &l, Id value) {
  Id highest = l.b.emitExt(GLSLstd450FindUMsb, l.getU32Type(), value);
  return l.emitU32(Op::OpISub, {l.getU32(31), highest});
}

/// The number of zeros below the lowest set bit of a u32; FindILsb is -1, the largest u32, for zero.
static Id countTrailing32(KernelLowering &l, Id value) {
  Id lowest = l.b.emitExt(GLSLstd450FindILsb, l.getU32Type(), value);
  return l.b.emitExt(GLSLstd450UMin, l.getU32Type(), {lowest, l.getU32(32)});
}

static Id countOnes32(KernelLowering &l, Id value) { return l.emitU32(Op::OpBitCount, value); }

/// The count of a 64-bit value whose `outer` half decides unless it is zero.
static Id countFrom(KernelLowering &l, Id (*count)(KernelLowering &, Id), Id outer, Id inner) {
  Id isZero = l.emitBool(Op::OpIEqual, {outer, l.getU32(0)});
  Id further = l.emitU32(Op::OpIAdd, {count(l, inner), l.getU32(32)});
  return l.select(l.getU32Type(), isZero, further, count(l, outer));
}

/// ctpop, ctlz and cttz. Vulkan counts bits of 32-bit integers only.
static LogicalResult lowerCount(KernelLowering &l, Operation *op, const OpRow &) {
  Type type = op->getResult(0).getType();
  unsigned width = type.getIntOrFloatBitWidth();
  Id value = l.get(op->getOperand(0)), count;
  bool isPop = isa<math::CtPopOp>(op), isLeading = isa<math::CountLeadingZerosOp>(op);
  if (width == 1)
    return l.setResult(op, isPop ? value : l.emitBool(Op::OpLogicalNot, value));
  if (width == 64) {
    Id halves = l.toHalves(value), low = l.getHalf(halves, 0), high = l.getHalf(halves, 1);
    count = isPop       ? l.emitU32(Op::OpIAdd, {countOnes32(l, low), countOnes32(l, high)})
            : isLeading ? countFrom(l, countLeading32, high, low)
                        : countFrom(l, countTrailing32, low, high);
  } else {
    value = l.resize(value, width, 32);
    if (isPop) {
      count = countOnes32(l, value);
    } else if (isLeading) {
      count = countLeading32(l, value);
      if (width < 32)
        count = l.emitU32(Op::OpISub, {count, l.getU32(32 - width)});
    } else {
      if (width < 32)
        value = l.emitU32(Op::OpBitwiseOr, {value, l.getU32(1u << width)});
      count = countTrailing32(l, value);
    }
  }
  return l.setResult(op, l.resize(count, 32, width));
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

/// The row's code is the function of GLSL.std.450. bf16 goes by f32, in which each of them is exact.
static LogicalResult lowerUnary(KernelLowering &l, Operation *op, const OpRow &row) {
  Type type = op->getResult(0).getType();
  auto function = GLSLstd450(row.code);
  Id value = l.get(op->getOperand(0));
  if (!type.isBF16())
    return l.setResult(op, l.b.emitExt(function, l.getType(type), value));
  return l.setResult(op, l.fromF32(l.b.emitExt(function, l.getFloatType(32), l.toF32(value, type)), type));
}

/// A magnitude rounded to even: adding 2^52 leaves no room for a fraction. lavapipe has wide vectors in which its own
/// RoundEven truncates.
static Id emitRoundEven64(KernelLowering &l, Id magnitude, Type f64) {
  Id id = l.getType(f64), limit = l.b.getFloat(64, llvm::bit_cast<uint64_t>(0x1p52));
  Id sum = l.emit(Op::OpFAdd, id, {magnitude, limit});
  Id rounded = l.emit(Op::OpFSub, id, {sum, limit});
  l.b.decorate(sum, Decoration::NoContraction);
  l.b.decorate(rounded, Decoration::NoContraction);
  return l.select(id, l.emitBool(Op::OpFOrdLessThan, {magnitude, limit}), rounded, magnitude);
}

/// An f64 with another upper half.
static Id replaceHigh(KernelLowering &l, Id halves, Id high, Type f64) {
  return l.fromHalves(l.emit(Op::OpCompositeInsert, l.b.getVectorType(l.getU32Type(), 2), {high, halves, 1}), f64);
}

/// Trunc or RoundEven of an f64, by its magnitude and sign: lavapipe loses the sign on the way to zero, and has wide
/// vectors in which its own Trunc leaves numbers from 2^24 on as they are.
static Id emitRounding64(KernelLowering &l, GLSLstd450 function, Id value, Type f64) {
  Id halves = l.toHalves(value), high = l.getHalf(halves, 1);
  Id magnitude = replaceHigh(l, halves, l.emitU32(Op::OpBitwiseAnd, {high, l.getU32(0x7fffffff)}), f64);
  Id sign = l.emitU32(Op::OpBitwiseAnd, {high, l.getU32(0x80000000)});
  Id rounded = l.toHalves(function == GLSLstd450RoundEven ? emitRoundEven64(l, magnitude, f64)
                                                          : l.b.emitExt(GLSLstd450Floor, l.getType(f64), magnitude));
  return replaceHigh(l, rounded, l.emitU32(Op::OpBitwiseOr, {l.getHalf(rounded, 1), sign}), f64);
}

static LogicalResult lowerRounding(KernelLowering &l, Operation *op, const OpRow &row) {
  Type type = op->getResult(0).getType();
  if (!type.isF64())
    return lowerUnary(l, op, row);
  return l.setResult(op, emitRounding64(l, GLSLstd450(row.code), l.get(op->getOperand(0)), type));
}

/// The square root of an f32, rounded to nearest. Vulkan allows Sqrt an error of some units in the last place; a
/// driver's y is taken to be at most one unit u off. Then the true root lies nearer to y + u where x - y*y > y*u, and
/// nearer to y - u where x - y*y <= -y*u, with the u of the next lower number there. x - y*y is computed exactly,
/// from y cut into halves whose products are exact: fma, which a driver may round twice, is not needed.
static Id emitSqrt32(KernelLowering &l, Id x) {
  Id f32 = l.getFloatType(32), u32 = l.getU32Type();
  auto constant = [&](double value) { return l.b.getFloat(32, llvm::bit_cast<uint32_t>(float(value))); };
  auto arithmetic = [&](Op op, Id lhs, Id rhs) {
    Id result = l.emit(op, f32, {lhs, rhs});
    l.b.decorate(result, Decoration::NoContraction);
    return result;
  };
  auto mul = [&](Id lhs, Id rhs) { return arithmetic(Op::OpFMul, lhs, rhs); };
  auto sub = [&](Id lhs, Id rhs) { return arithmetic(Op::OpFSub, lhs, rhs); };
  auto maskBits = [&](Id bits, uint32_t mask) {
    return l.emit(Op::OpBitcast, f32, l.emitU32(Op::OpBitwiseAnd, {bits, l.getU32(mask)}));
  };
  // Small numbers are scaled up, so that the products do not underflow.
  Id isSmall = l.emitBool(Op::OpFOrdLessThan, {x, constant(0x1p-40)});
  Id scaled = l.select(f32, isSmall, mul(x, constant(0x1p96)), x);
  Id y = l.b.emitExt(GLSLstd450Sqrt, f32, scaled);

  Id bits = l.emitU32(Op::OpBitcast, y), bitsBelow = l.emitU32(Op::OpISub, {bits, l.getU32(1)});
  Id high = maskBits(bits, 0xfffff000), low = sub(y, high);
  Id rest = sub(scaled, mul(high, high));
  rest = sub(rest, mul(mul(high, constant(2)), low));
  rest = sub(rest, mul(low, low));
  Id limitAbove = mul(y, mul(maskBits(bits, 0x7f800000), constant(0x1p-23)));
  Id limitBelow = mul(y, mul(maskBits(bitsBelow, 0x7f800000), constant(-0x1p-23)));
  Id isAbove = l.emitBool(Op::OpFOrdGreaterThan, {rest, limitAbove});
  Id isBelow = l.emitBool(Op::OpFOrdLessThanEqual, {rest, limitBelow});
  Id step = l.select(u32, isBelow, l.getU32(~0u), l.getU32(0));
  step = l.select(u32, isAbove, l.getU32(1), step);
  Id root = l.emit(Op::OpBitcast, f32, l.emitU32(Op::OpIAdd, {bits, step}));
  root = mul(root, l.select(f32, isSmall, constant(0x1p-48), constant(1)));

  // Zeros, infinity and NaNs are their own roots. Subnormals are told from zeros by their bits: drivers may compare
  // them as zeros.
  Id xBits = l.emitU32(Op::OpBitcast, x);
  auto isBetween = [&](uint32_t least, uint32_t most) {
    Id distance = l.emitU32(Op::OpISub, {xBits, l.getU32(least)});
    return l.emitBool(Op::OpULessThanEqual, {distance, l.getU32(most - least)});
  };
  Id isRegular = isBetween(0x00000001, 0x7f7fffff), isNegative = isBetween(0x80000001, 0xff800000);
  Id special = l.select(f32, isNegative, l.b.getFloat(32, 0x7fc00000), x);
  return l.select(f32, isRegular, root, special);
}

/// f16 and bf16 go by f32, which has more than twice their precision. f64 is the driver's: all that have it compute
/// it by a sequence of their own that rounds right.
static LogicalResult lowerSqrt(KernelLowering &l, Operation *op, const OpRow &row) {
  Type type = op->getResult(0).getType();
  if (type.isF64() || arith::bitEnumContainsAny(cast<math::SqrtOp>(op).getFastmath(), arith::FastMathFlags::afn))
    return lowerUnary(l, op, row);
  return l.setResult(op, l.fromF32(emitSqrt32(l, l.toF32(l.get(op->getOperand(0)), type)), type));
}

/// By bits: NVIDIA's FAbs makes f32 subnormals zeros, and Mesa's keeps the sign of a zero that no other negative number
/// can stand for, as that of a square root.
static LogicalResult lowerAbsF(KernelLowering &l, Operation *op, const OpRow &) {
  Type type = op->getResult(0).getType();
  Id value = l.get(op->getOperand(0));
  if (type.isBF16())
    return l.setResult(op, l.emit(Op::OpBitwiseAnd, l.getType(type), {value, l.b.getInt(16, 0x7fff)}));
  if (type.isF64()) {
    Id halves = l.toHalves(value), high = l.emitU32(Op::OpBitwiseAnd, {l.getHalf(halves, 1), l.getU32(0x7fffffff)});
    return l.setResult(op, replaceHigh(l, halves, high, type));
  }
  Id mask = l.getU32(type.isF16() ? 0x7fff : 0x7fffffff);
  return l.setResult(op, fromWord(l, l.emitU32(Op::OpBitwiseAnd, {toWord(l, value, type), mask}), type));
}

/// By the 32 bits that hold the signs; f16 and bf16 go by f32.
static LogicalResult lowerCopySign(KernelLowering &l, Operation *op, const OpRow &) {
  Type type = op->getResult(0).getType();
  Id value = l.get(op->getOperand(0)), sign = l.get(op->getOperand(1));
  auto merge = [&](Id valueBits, Id signBits) {
    Id magnitude = l.emitU32(Op::OpBitwiseAnd, {valueBits, l.getU32(0x7fffffff)});
    return l.emitU32(Op::OpBitwiseOr, {magnitude, l.emitU32(Op::OpBitwiseAnd, {signBits, l.getU32(0x80000000)})});
  };
  if (type.isF64()) {
    Id halves = l.toHalves(value);
    return l.setResult(op, replaceHigh(l, halves, merge(l.getHalf(halves, 1), l.getHalf(l.toHalves(sign), 1)), type));
  }
  Id bits = merge(l.emitU32(Op::OpBitcast, l.toF32(value, type)), l.emitU32(Op::OpBitcast, l.toF32(sign, type)));
  return l.setResult(op, l.fromF32(l.emit(Op::OpBitcast, l.getFloatType(32), bits), type));
}

/// round takes halves away from zero; GLSL's Round leaves their direction open. The distance to the truncated number
/// is exact.
static LogicalResult lowerRound(KernelLowering &l, Operation *op, const OpRow &) {
  Type type = op->getResult(0).getType();
  bool isDouble = type.isF64();
  Id value = isDouble ? l.get(op->getOperand(0)) : l.toF32(l.get(op->getOperand(0)), type);
  unsigned width = isDouble ? 64 : 32;
  Id id = l.getFloatType(width);
  auto constant = [&](double x) {
    return isDouble ? l.b.getFloat(64, llvm::bit_cast<uint64_t>(x))
                    : l.b.getFloat(32, llvm::bit_cast<uint32_t>(float(x)));
  };
  Id truncated = isDouble ? emitRounding64(l, GLSLstd450Trunc, value, type) : l.b.emitExt(GLSLstd450Trunc, id, value);
  Id distance = l.b.emitExt(GLSLstd450FAbs, id, l.emit(Op::OpFSub, id, {value, truncated}));
  Id isNegative = l.emitBool(Op::OpFOrdLessThan, {value, constant(0)});
  Id step = l.select(id, isNegative, constant(-1), constant(1));
  Id isFar = l.emitBool(Op::OpFOrdGreaterThanEqual, {distance, constant(0.5)});
  Id result = l.select(id, isFar, l.emit(Op::OpFAdd, id, {truncated, step}), truncated);
  return l.setResult(op, isDouble ? result : l.fromF32(result, type));
}

/// f16 and bf16 are rounded to odd in f32, which then rounds right.
static LogicalResult lowerFma(KernelLowering &l, Operation *op, const OpRow &) {
  Type type = op->getResult(0).getType();
  SmallVector<Id> operands;
  for (Value operand : op->getOperands())
    operands.push_back(type.isF64() ? l.get(operand) : l.toF32(l.get(operand), type));
  if (type.isF64() || type.isF32())
    return l.setResult(op, l.emitFma(type.getIntOrFloatBitWidth(), operands));
  return l.setResult(op, l.fromF32(l.emitFma(32, operands, /*toOdd=*/true), type));
}

/// isnan and isinf: the row's code is the instruction.
static LogicalResult lowerClassify(KernelLowering &l, Operation *op, const OpRow &row) {
  Type type = op->getOperand(0).getType();
  Id value = l.get(op->getOperand(0));
  return l.setResult(op, l.emitBool(Op(row.code), type.isBF16() ? l.toF32(value, type) : value));
}

static LogicalResult lowerIsFinite(KernelLowering &l, Operation *op, const OpRow &) {
  Type type = op->getOperand(0).getType();
  Id value = l.get(op->getOperand(0));
  if (type.isBF16())
    value = l.toF32(value, type);
  Id isNot = l.emitBool(Op::OpLogicalOr, {l.emitBool(Op::OpIsNan, value), l.emitBool(Op::OpIsInf, value)});
  return l.setResult(op, l.emitBool(Op::OpLogicalNot, isNot));
}

/// By the bits, as a device may flush subnormals wherever it computes: the magnitude is from the smallest normal up and
/// below infinity. What an f16 or bf16 has as f32 tells which it is, and the upper half of an f64.
static LogicalResult lowerIsNormal(KernelLowering &l, Operation *op, const OpRow &) {
  Type type = op->getOperand(0).getType();
  Id value = l.get(op->getOperand(0));
  Id bits = type.isF64() ? l.getHalf(l.toHalves(value), 1) : l.emitU32(Op::OpBitcast, l.toF32(value, type));
  uint32_t smallest = type.isF64() ? 0x00100000 : type.isF16() ? 0x38800000 : 0x00800000;
  uint32_t infinity = type.isF64() ? 0x7ff00000 : 0x7f800000;
  Id magnitude = l.emitU32(Op::OpBitwiseAnd, {bits, l.getU32(0x7fffffff)});
  Id above = l.emitU32(Op::OpISub, {magnitude, l.getU32(smallest)});
  return l.setResult(op, l.emitBool(Op::OpULessThan, {above, l.getU32(infinity - smallest)}));
}

ArrayRef<OpRow> getMathRows() {
  static const OpRow rows[] = {
      makeRow<math::AbsIOp>(lowerAbsI),
      makeRow<math::CtPopOp>(lowerCount),
      makeRow<math::CountLeadingZerosOp>(lowerCount),
      makeRow<math::CountTrailingZerosOp>(lowerCount),
      makeRow<math::AbsFOp>(lowerAbsF),
      makeRow<math::FloorOp>(lowerUnary, GLSLstd450Floor),
      makeRow<math::CeilOp>(lowerUnary, GLSLstd450Ceil),
      makeRow<math::TruncOp>(lowerRounding, GLSLstd450Trunc),
      makeRow<math::RoundEvenOp>(lowerRounding, GLSLstd450RoundEven),
      makeRow<math::RoundOp>(lowerRound),
      makeRow<math::SqrtOp>(lowerSqrt, GLSLstd450Sqrt),
      makeRow<math::CopySignOp>(lowerCopySign),
      makeRow<math::FmaOp>(lowerFma),
      makeRow<math::IsNaNOp>(lowerClassify, Op::OpIsNan),
      makeRow<math::IsInfOp>(lowerClassify, Op::OpIsInf),
      makeRow<math::IsFiniteOp>(lowerIsFinite),
      makeRow<math::IsNormalOp>(lowerIsNormal),
  };
  return rows;
}

} // namespace qd::spirv
