//===- Float.cpp - arith on floats, on SPIR-V ----------------------------------------===//

#include "codegen/spirv/KernelLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace spv;

namespace qd::spirv {

/// Marks the result of `op`'s arithmetic as not to be fused with other arithmetic, unless its flags allow that.
static Id keepUnfused(KernelLowering &l, Operation *op, Id result) {
  auto flags = cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr();
  if (!arith::bitEnumContainsAny(flags ? flags.getValue() : arith::FastMathFlags::none,
                                 arith::FastMathFlags::contract))
    l.b.decorate(result, Decoration::NoContraction);
  return result;
}

/// bf16 goes by f32: its 24 bits of precision are more than twice bf16's 8 and two, so rounding twice is rounding
/// once for these operations.
static LogicalResult lowerBinary(KernelLowering &l, Operation *op, const OpRow &row) {
  Type type = op->getResult(0).getType();
  Id lhs = l.getOperand(op->getOperand(0)), rhs = l.getOperand(op->getOperand(1));
  if (!type.isBF16())
    return l.setResult(op, keepUnfused(l, op, l.emit(Op(row.code), l.getType(type), {lhs, rhs})));
  Id result = l.emit(Op(row.code), l.getFloatType(32), {l.toF32(lhs, type), l.toF32(rhs, type)});
  return l.setResult(op, l.fromF32(keepUnfused(l, op, result), type));
}

static LogicalResult lowerNegF(KernelLowering &l, Operation *op, const OpRow &) {
  Type type = op->getResult(0).getType();
  Id value = l.get(op->getOperand(0)), id = l.getType(type);
  if (type.isBF16())
    return l.setResult(op, l.emit(Op::OpBitwiseXor, id, {value, l.b.getInt(16, 0x8000)}));
  return l.setResult(op, l.emit(Op::OpFNegate, id, value));
}

//===----------------------------------------------------------------------===//
// Minimum and maximum
//===----------------------------------------------------------------------===//

/// minnumf and maxnumf: NMin and NMax give the other operand where one is a NaN.
static LogicalResult lowerMinMaxNum(KernelLowering &l, Operation *op, const OpRow &row) {
  Type type = op->getResult(0).getType();
  Id lhs = l.get(op->getOperand(0)), rhs = l.get(op->getOperand(1));
  auto function = GLSLstd450(row.code);
  if (!type.isBF16())
    return l.setResult(op, l.b.emitExt(function, l.getType(type), {lhs, rhs}));
  Id result = l.b.emitExt(function, l.getFloatType(32), {l.toF32(lhs, type), l.toF32(rhs, type)});
  return l.setResult(op, l.fromF32(result, type));
}

/// minimumf and maximumf. Equal operands differ at most in a zero's sign: or-ing their bits gives the smaller,
/// and-ing them the larger.
static LogicalResult lowerMinMaxImum(KernelLowering &l, Operation *op, const OpRow &row) {
  Type type = op->getResult(0).getType();
  bool isMin = row.code == GLSLstd450NMin, isDouble = type.isF64();
  Id lhs = l.get(op->getOperand(0)), rhs = l.get(op->getOperand(1));
  if (!isDouble) {
    lhs = l.toF32(lhs, type);
    rhs = l.toF32(rhs, type);
  }
  Id id = l.getFloatType(isDouble ? 64 : 32);
  if (llvm::APFloat bound(0.0f);
      matchPattern(op->getOperand(1), m_ConstantFloat(&bound)) && !bound.isNaN() && !bound.isZero()) {
    // A bound: what is not beyond it, NaN included, stays.
    Id isBeyond = l.emitBool(isMin ? Op::OpFOrdGreaterThan : Op::OpFOrdLessThan, {lhs, rhs});
    Id result = l.select(id, isBeyond, rhs, lhs);
    return l.setResult(op, isDouble ? result : l.fromF32(result, type));
  }
  Id bitsType = isDouble ? l.b.getVectorType(l.getU32Type(), 2) : l.getU32Type();
  auto bits = [&](Id x) { return l.emit(Op::OpBitcast, bitsType, x); };
  Id merged = l.emit(isMin ? Op::OpBitwiseOr : Op::OpBitwiseAnd, bitsType, {bits(lhs), bits(rhs)});
  Id isLeft = l.emitBool(isMin ? Op::OpFOrdLessThan : Op::OpFOrdGreaterThan, {lhs, rhs});
  Id result = l.select(id, isLeft, lhs, rhs);
  result = l.select(id, l.emitBool(Op::OpFOrdEqual, {lhs, rhs}), l.emit(Op::OpBitcast, id, merged), result);
  // A NaN on the right is the result already: no comparison with it holds.
  result = l.select(id, l.emitBool(Op::OpIsNan, lhs), lhs, result);
  return l.setResult(op, isDouble ? result : l.fromF32(result, type));
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

static Op getCompareOp(arith::CmpFPredicate predicate) {
  switch (predicate) {
  case arith::CmpFPredicate::OEQ:
    return Op::OpFOrdEqual;
  case arith::CmpFPredicate::OGT:
    return Op::OpFOrdGreaterThan;
  case arith::CmpFPredicate::OGE:
    return Op::OpFOrdGreaterThanEqual;
  case arith::CmpFPredicate::OLT:
    return Op::OpFOrdLessThan;
  case arith::CmpFPredicate::OLE:
    return Op::OpFOrdLessThanEqual;
  case arith::CmpFPredicate::ONE:
    return Op::OpFOrdNotEqual;
  case arith::CmpFPredicate::UEQ:
    return Op::OpFUnordEqual;
  case arith::CmpFPredicate::UGT:
    return Op::OpFUnordGreaterThan;
  case arith::CmpFPredicate::UGE:
    return Op::OpFUnordGreaterThanEqual;
  case arith::CmpFPredicate::ULT:
    return Op::OpFUnordLessThan;
  case arith::CmpFPredicate::ULE:
    return Op::OpFUnordLessThanEqual;
  case arith::CmpFPredicate::UNE:
    return Op::OpFUnordNotEqual;
  default:
    return Op::OpNop;
  }
}

static LogicalResult lowerCmpF(KernelLowering &l, Operation *op, const OpRow &) {
  auto compare = cast<arith::CmpFOp>(op);
  Type type = compare.getLhs().getType();
  Id lhs = l.get(compare.getLhs()), rhs = l.get(compare.getRhs());
  if (type.isBF16()) {
    lhs = l.toF32(lhs, type);
    rhs = l.toF32(rhs, type);
  }
  switch (compare.getPredicate()) {
  case arith::CmpFPredicate::AlwaysFalse:
    return l.setResult(op, l.b.getBool(false));
  case arith::CmpFPredicate::AlwaysTrue:
    return l.setResult(op, l.b.getBool(true));
  case arith::CmpFPredicate::ORD:
  case arith::CmpFPredicate::UNO: {
    // OpOrdered and OpUnordered are not for shaders.
    Id isUnordered = l.emitBool(Op::OpLogicalOr, {l.emitBool(Op::OpIsNan, lhs), l.emitBool(Op::OpIsNan, rhs)});
    if (compare.getPredicate() == arith::CmpFPredicate::UNO)
      return l.setResult(op, isUnordered);
    return l.setResult(op, l.emitBool(Op::OpLogicalNot, isUnordered));
  }
  default:
    return l.setResult(op, l.emitBool(getCompareOp(compare.getPredicate()), {lhs, rhs}));
  }
}

ArrayRef<OpRow> getFloatRows() {
  static const OpRow rows[] = {
      makeRow<arith::AddFOp>(lowerBinary, Op::OpFAdd),
      makeRow<arith::SubFOp>(lowerBinary, Op::OpFSub),
      makeRow<arith::MulFOp>(lowerBinary, Op::OpFMul),
      makeRow<arith::DivFOp>(lowerBinary, Op::OpFDiv),
      makeRow<arith::NegFOp>(lowerNegF),
      makeRow<arith::MinNumFOp>(lowerMinMaxNum, GLSLstd450NMin),
      makeRow<arith::MaxNumFOp>(lowerMinMaxNum, GLSLstd450NMax),
      makeRow<arith::MinimumFOp>(lowerMinMaxImum, GLSLstd450NMin),
      makeRow<arith::MaximumFOp>(lowerMinMaxImum, GLSLstd450NMax),
      makeRow<arith::CmpFOp>(lowerCmpF),
  };
  return rows;
}

} // namespace qd::spirv
