//===- Integer.cpp - arith on integers, on SPIR-V ------------------------------------===//

#include "codegen/spirv/KernelLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace spv;

namespace qd::spirv {

static LogicalResult lowerConstant(KernelLowering &l, Operation *op, const OpRow &) {
  return l.setResult(op, l.getConstant(cast<arith::ConstantOp>(op).getValue()));
}

/// Whether an integer has the bits of 1.0 or -1.0, or a zero's; `sign` is that bit.
static bool isOneOrZero(Value value, bool &isOne, bool &sign) {
  APInt bits;
  if (!matchPattern(value, m_ConstantInt(&bits)) || bits.getBitWidth() < 16)
    return false;
  const llvm::fltSemantics &format = bits.getBitWidth() == 16   ? APFloat::IEEEhalf()
                                     : bits.getBitWidth() == 32 ? APFloat::IEEEsingle()
                                                                : APFloat::IEEEdouble();
  APFloat number(format, bits);
  isOne = abs(number).isExactlyValue(1.0);
  sign = number.isNegative();
  return isOne || number.isZero();
}

/// Mesa takes a zero beside 1.0 or -1.0 for one of the same sign, in integers too.
static LogicalResult lowerSelect(KernelLowering &l, Operation *op, const OpRow &) {
  auto select = cast<arith::SelectOp>(op);
  Id ifTrue = l.get(select.getTrueValue()), ifFalse = l.get(select.getFalseValue());
  bool isOne, isOtherOne, sign, otherSign;
  if (isOneOrZero(select.getTrueValue(), isOne, sign) &&
      isOneOrZero(select.getFalseValue(), isOtherOne, otherSign) && isOne != isOtherOne && sign != otherSign)
    ifTrue = l.hide(ifTrue, select.getType());
  return l.setResult(op, l.select(l.getType(select.getType()), l.get(select.getCondition()), ifTrue, ifFalse));
}

//===----------------------------------------------------------------------===//
// Two operands of one type
//===----------------------------------------------------------------------===//

/// The row's `boolCode` may also be OpCopyObject (the left operand) or OpConstantFalse.
static Id emitOnBools(KernelLowering &l, Op boolCode, Id lhs, Id rhs) {
  if (boolCode == Op::OpCopyObject)
    return lhs;
  if (boolCode == Op::OpConstantFalse)
    return l.b.getBool(false);
  return l.emitBool(boolCode, {lhs, rhs});
}

static LogicalResult lowerBinary(KernelLowering &l, Operation *op, const OpRow &row) {
  Type type = op->getResult(0).getType();
  Id lhs = l.get(op->getOperand(0)), rhs = l.get(op->getOperand(1));
  if (type.isInteger(1))
    return l.setResult(op, emitOnBools(l, Op(row.boolCode), lhs, rhs));
  return l.setResult(op, l.emit(Op(row.code), l.getType(type), {lhs, rhs}));
}

/// As above with a function of GLSL.std.450.
static LogicalResult lowerExtBinary(KernelLowering &l, Operation *op, const OpRow &row) {
  Type type = op->getResult(0).getType();
  Id lhs = l.get(op->getOperand(0)), rhs = l.get(op->getOperand(1));
  if (type.isInteger(1))
    return l.setResult(op, emitOnBools(l, Op(row.boolCode), lhs, rhs));
  return l.setResult(op, l.b.emitExt(GLSLstd450(row.code), l.getType(type), {lhs, rhs}));
}

//===----------------------------------------------------------------------===//
// Division
//===----------------------------------------------------------------------===//

namespace {
struct Division {
  Id quotient, remainder;
};
} // namespace

/// Towards zero. Vulkan leaves OpSRem undefined for negative operands, so the remainder comes from the quotient.
static Division divide(KernelLowering &l, Op code, Type type, Id lhs, Id rhs) {
  Id id = l.getType(type);
  Id quotient = l.emit(code, id, {lhs, rhs});
  Id product = l.emit(Op::OpIMul, id, {quotient, rhs});
  return {quotient, l.emit(Op::OpISub, id, {lhs, product})};
}

static LogicalResult lowerRemSI(KernelLowering &l, Operation *op, const OpRow &) {
  Type type = op->getResult(0).getType();
  if (type.isInteger(1))
    return l.setResult(op, l.b.getBool(false));
  return l.setResult(op, divide(l, Op::OpSDiv, type, l.get(op->getOperand(0)), l.get(op->getOperand(1))).remainder);
}

/// ceildivui, ceildivsi and floordivsi: the quotient towards zero, corrected where a remainder is left and the true
/// quotient lies on the far side.
static LogicalResult lowerRoundingDiv(KernelLowering &l, Operation *op, const OpRow &row) {
  Type type = op->getResult(0).getType();
  Id lhs = l.get(op->getOperand(0)), rhs = l.get(op->getOperand(1));
  if (type.isInteger(1))
    return l.setResult(op, lhs);
  unsigned width = type.getIntOrFloatBitWidth();
  Id id = l.getType(type), zero = l.b.getInt(width, 0);
  Division division = divide(l, Op(row.code), type, lhs, rhs);
  Id corrects = l.emitBool(Op::OpINotEqual, {division.remainder, zero});
  bool isFloor = isa<arith::FloorDivSIOp>(op);
  if (!isa<arith::CeilDivUIOp>(op)) {
    Id signs = l.emit(Op::OpBitwiseXor, id, {division.remainder, rhs});
    Id rightSide = l.emitBool(isFloor ? Op::OpSLessThan : Op::OpSGreaterThanEqual, {signs, zero});
    corrects = l.emitBool(Op::OpLogicalAnd, {corrects, rightSide});
  }
  Id step = l.select(id, corrects, l.b.getInt(width, 1), zero);
  return l.setResult(op, l.emit(isFloor ? Op::OpISub : Op::OpIAdd, id, {division.quotient, step}));
}

//===----------------------------------------------------------------------===//
// Two results
//===----------------------------------------------------------------------===//

static LogicalResult lowerAddUIExtended(KernelLowering &l, Operation *op, const OpRow &) {
  auto add = cast<arith::AddUIExtendedOp>(op);
  Id lhs = l.get(add.getLhs()), rhs = l.get(add.getRhs());
  if (add.getSum().getType().isInteger(1)) {
    l.set(add.getSum(), l.emitBool(Op::OpLogicalNotEqual, {lhs, rhs}));
    l.set(add.getOverflow(), l.emitBool(Op::OpLogicalAnd, {lhs, rhs}));
    return success();
  }
  Id sum = l.emit(Op::OpIAdd, l.getType(add.getSum().getType()), {lhs, rhs});
  l.set(add.getSum(), sum);
  l.set(add.getOverflow(), l.emitBool(Op::OpULessThan, {sum, lhs}));
  return success();
}

/// The upper half of the unsigned product of two i64: the devices that have it natively compute it so as well.
static Id emitMulHigh64(KernelLowering &l, Type i64, Id lhs, Id rhs) {
  Id id = l.getType(i64), halfWidth = l.getU32(32), lowMask = l.b.getInt(64, 0xffffffff);
  auto low = [&](Id x) { return l.emit(Op::OpBitwiseAnd, id, {x, lowMask}); };
  auto high = [&](Id x) { return l.emit(Op::OpShiftRightLogical, id, {x, halfWidth}); };
  auto mul = [&](Id x, Id y) { return l.emit(Op::OpIMul, id, {x, y}); };
  auto add = [&](Id x, Id y) { return l.emit(Op::OpIAdd, id, {x, y}); };
  Id a0 = low(lhs), a1 = high(lhs), b0 = low(rhs), b1 = high(rhs);
  Id middle = add(mul(a1, b0), high(mul(a0, b0)));
  Id cross = add(mul(a0, b1), low(middle));
  return add(add(mul(a1, b1), high(middle)), high(cross));
}

/// mulsi_extended and mului_extended: the row's code is the instruction on 32 bits.
static LogicalResult lowerMulExtended(KernelLowering &l, Operation *op, const OpRow &row) {
  Type type = op->getResult(0).getType();
  if (type.isInteger(1)) {
    // 1 * 1 and -1 * -1 are both 0b01.
    l.set(op->getResult(0), l.emitBool(Op::OpLogicalAnd, {l.get(op->getOperand(0)), l.get(op->getOperand(1))}));
    l.set(op->getResult(1), l.b.getBool(false));
    return success();
  }
  bool isSigned = isa<arith::MulSIExtendedOp>(op);
  unsigned width = type.getIntOrFloatBitWidth();
  Id id = l.getType(type), lhs = l.get(op->getOperand(0)), rhs = l.get(op->getOperand(1));
  Value lowResult = op->getResult(0), highResult = op->getResult(1);
  if (width == 32) {
    Id pair = l.emit(Op(row.code), l.b.getPairType(id), {lhs, rhs});
    l.set(lowResult, l.emit(Op::OpCompositeExtract, id, {pair, 0}));
    l.set(highResult, l.emit(Op::OpCompositeExtract, id, {pair, 1}));
    return success();
  }
  l.set(lowResult, l.emit(Op::OpIMul, id, {lhs, rhs}));
  if (width < 32) {
    Op extend = isSigned ? Op::OpSConvert : Op::OpUConvert;
    Id product = l.emitU32(Op::OpIMul, {l.emitU32(extend, lhs), l.emitU32(extend, rhs)});
    l.set(highResult, l.resize(l.emitU32(Op::OpShiftRightLogical, {product, l.getU32(width)}), 32, width));
    return success();
  }
  Id high = emitMulHigh64(l, type, lhs, rhs);
  if (isSigned) {
    // As an unsigned number a negative x is x + 2^64: that share of the product goes.
    Id zero = l.b.getInt(64, 0);
    auto shareOf = [&](Id sign, Id other) {
      return l.select(id, l.emitBool(Op::OpSLessThan, {sign, zero}), other, zero);
    };
    high = l.emit(Op::OpISub, id, {high, shareOf(lhs, rhs)});
    high = l.emit(Op::OpISub, id, {high, shareOf(rhs, lhs)});
  }
  l.set(highResult, high);
  return success();
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

static Op getCompareOp(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return Op::OpIEqual;
  case arith::CmpIPredicate::ne:
    return Op::OpINotEqual;
  case arith::CmpIPredicate::slt:
    return Op::OpSLessThan;
  case arith::CmpIPredicate::sle:
    return Op::OpSLessThanEqual;
  case arith::CmpIPredicate::sgt:
    return Op::OpSGreaterThan;
  case arith::CmpIPredicate::sge:
    return Op::OpSGreaterThanEqual;
  case arith::CmpIPredicate::ult:
    return Op::OpULessThan;
  case arith::CmpIPredicate::ule:
    return Op::OpULessThanEqual;
  case arith::CmpIPredicate::ugt:
    return Op::OpUGreaterThan;
  case arith::CmpIPredicate::uge:
    return Op::OpUGreaterThanEqual;
  }
  return Op::OpNop;
}

/// On i1, where true is 1 unsigned and -1 signed.
static Id compareBools(KernelLowering &l, arith::CmpIPredicate predicate, Id lhs, Id rhs) {
  auto negate = [&](Id x) { return l.emitBool(Op::OpLogicalNot, x); };
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return l.emitBool(Op::OpLogicalEqual, {lhs, rhs});
  case arith::CmpIPredicate::ne:
    return l.emitBool(Op::OpLogicalNotEqual, {lhs, rhs});
  case arith::CmpIPredicate::ult:
  case arith::CmpIPredicate::sgt:
    return l.emitBool(Op::OpLogicalAnd, {negate(lhs), rhs});
  case arith::CmpIPredicate::ugt:
  case arith::CmpIPredicate::slt:
    return l.emitBool(Op::OpLogicalAnd, {lhs, negate(rhs)});
  case arith::CmpIPredicate::ule:
  case arith::CmpIPredicate::sge:
    return l.emitBool(Op::OpLogicalOr, {negate(lhs), rhs});
  case arith::CmpIPredicate::uge:
  case arith::CmpIPredicate::sle:
    return l.emitBool(Op::OpLogicalOr, {lhs, negate(rhs)});
  }
  return 0;
}

static LogicalResult lowerCmpI(KernelLowering &l, Operation *op, const OpRow &) {
  auto compare = cast<arith::CmpIOp>(op);
  Id lhs = l.get(compare.getLhs()), rhs = l.get(compare.getRhs());
  if (compare.getLhs().getType().isInteger(1))
    return l.setResult(op, compareBools(l, compare.getPredicate(), lhs, rhs));
  return l.setResult(op, l.emitBool(getCompareOp(compare.getPredicate()), {lhs, rhs}));
}

ArrayRef<OpRow> getIntegerRows() {
  static const OpRow rows[] = {
      makeRow<arith::ConstantOp>(lowerConstant),
      makeRow<arith::SelectOp>(lowerSelect),
      makeRow<arith::CmpIOp>(lowerCmpI),
      makeRow<arith::AddIOp>(lowerBinary, Op::OpIAdd, Op::OpLogicalNotEqual),
      makeRow<arith::SubIOp>(lowerBinary, Op::OpISub, Op::OpLogicalNotEqual),
      makeRow<arith::MulIOp>(lowerBinary, Op::OpIMul, Op::OpLogicalAnd),
      makeRow<arith::AndIOp>(lowerBinary, Op::OpBitwiseAnd, Op::OpLogicalAnd),
      makeRow<arith::OrIOp>(lowerBinary, Op::OpBitwiseOr, Op::OpLogicalOr),
      makeRow<arith::XOrIOp>(lowerBinary, Op::OpBitwiseXor, Op::OpLogicalNotEqual),
      makeRow<arith::ShLIOp>(lowerBinary, Op::OpShiftLeftLogical, Op::OpCopyObject),
      makeRow<arith::ShRUIOp>(lowerBinary, Op::OpShiftRightLogical, Op::OpCopyObject),
      makeRow<arith::ShRSIOp>(lowerBinary, Op::OpShiftRightArithmetic, Op::OpCopyObject),
      makeRow<arith::DivUIOp>(lowerBinary, Op::OpUDiv, Op::OpCopyObject),
      makeRow<arith::DivSIOp>(lowerBinary, Op::OpSDiv, Op::OpCopyObject),
      makeRow<arith::RemUIOp>(lowerBinary, Op::OpUMod, Op::OpConstantFalse),
      makeRow<arith::RemSIOp>(lowerRemSI),
      makeRow<arith::CeilDivUIOp>(lowerRoundingDiv, Op::OpUDiv),
      makeRow<arith::CeilDivSIOp>(lowerRoundingDiv, Op::OpSDiv),
      makeRow<arith::FloorDivSIOp>(lowerRoundingDiv, Op::OpSDiv),
      makeRow<arith::MinSIOp>(lowerExtBinary, GLSLstd450SMin, uint32_t(Op::OpLogicalOr)),
      makeRow<arith::MaxSIOp>(lowerExtBinary, GLSLstd450SMax, uint32_t(Op::OpLogicalAnd)),
      makeRow<arith::MinUIOp>(lowerExtBinary, GLSLstd450UMin, uint32_t(Op::OpLogicalAnd)),
      makeRow<arith::MaxUIOp>(lowerExtBinary, GLSLstd450UMax, uint32_t(Op::OpLogicalOr)),
      makeRow<arith::AddUIExtendedOp>(lowerAddUIExtended),
      makeRow<arith::MulSIExtendedOp>(lowerMulExtended, Op::OpSMulExtended),
      makeRow<arith::MulUIExtendedOp>(lowerMulExtended, Op::OpUMulExtended),
  };
  return rows;
}

} // namespace qd::spirv
