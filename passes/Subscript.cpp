//===- Subscript.cpp - arithmetic of subscripts ---------------------------------------===//

#include "passes/Subscript.h"

#include "ir/Arrays.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

uint64_t getKnownFactor(Value value, unsigned depth) {
  constexpr unsigned maxDepth = 8, maxShift = 32;
  constexpr uint64_t most = uint64_t(1) << maxShift;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.isZero() ? most : uint64_t(1) << std::min(constant.countr_zero(), maxShift);
  Operation *op = value.getDefiningOp();
  if (!op || depth == maxDepth)
    return 1;
  auto operand = [&](unsigned i) { return getKnownFactor(op->getOperand(i), depth + 1); };
  return llvm::TypeSwitch<Operation *, uint64_t>(op)
      .Case<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>([&](auto) { return operand(0); })
      .Case<arith::AddIOp, arith::SubIOp>([&](auto) { return std::min(operand(0), operand(1)); })
      .Case([&](arith::MulIOp) { return std::min(operand(0) * operand(1), most); })
      .Case([&](arith::AndIOp) { return std::max(operand(0), operand(1)); })
      .Case([&](arith::ShLIOp) {
        bool isKnown = matchPattern(op->getOperand(1), m_ConstantInt(&constant)) && constant.ult(maxShift);
        return isKnown ? std::min(operand(0) << constant.getZExtValue(), most) : operand(0);
      })
      .Case([&](arith::SelectOp) { return std::min(operand(1), operand(2)); })
      .Default([](Operation *) { return 1; });
}

void NumberBuilder::setBefore(Operation *op) {
  builder.setInsertionPoint(op);
  loc = op->getLoc();
}

void NumberBuilder::setToStart(KernelOp kernel) {
  Block &body = kernel.getBodyBlock();
  auto isOther = [&](Operation &op) { return !own.contains(&op); };
  builder.setInsertionPoint(&body, llvm::find_if(body, isOther));
  loc = kernel.getLoc();
}

Number NumberBuilder::cast(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return Number(constant.getSExtValue());
  if (value.getType() == index)
    return Number(value);
  if (!index.isInteger(64))
    return Number(make<arith::TruncIOp>(index, value));
  Value extended = make<arith::ExtSIOp>(index, value);
  extended.getDefiningOp()->setAttr(subscriptAttribute, builder.getUnitAttr());
  return Number(extended);
}

Value NumberBuilder::toValue(Number number, Type type) {
  if (!number.value)
    return make<arith::ConstantIntOp>(type, number.constant);
  if (number.value.getType() == type)
    return number.value;
  return type.isInteger(64) ? make<arith::ExtSIOp>(type, number.value) : make<arith::TruncIOp>(type, number.value);
}

Number NumberBuilder::add(Number a, Number b) {
  if (!a.value && !b.value)
    return Number(int64_t(uint64_t(a.constant) + uint64_t(b.constant)));
  if (a.is(0))
    return b;
  if (b.is(0))
    return a;
  return Number(make<arith::AddIOp>(toValue(a, index), toValue(b, index)));
}

Number NumberBuilder::mul(Number a, Number b) {
  if (!a.value && !b.value)
    return Number(int64_t(uint64_t(a.constant) * uint64_t(b.constant)));
  if (a.is(0) || b.is(0))
    return Number(0);
  if (a.is(1))
    return b;
  if (b.is(1))
    return a;
  return Number(make<arith::MulIOp>(toValue(a, index), toValue(b, index)));
}

Number NumberBuilder::divide(Number a, unsigned by) {
  if (by == 1)
    return a;
  if (!a.value)
    return Number(a.constant / by);
  if (llvm::isPowerOf2_32(by))
    return Number(make<arith::ShRUIOp>(a.value, toValue(Number(llvm::Log2_32(by)), index)));
  return Number(make<arith::DivUIOp>(a.value, toValue(Number(by), index)));
}

Number NumberBuilder::getExtent(Value buffer, unsigned dim, unsigned rank) {
  return Number(make<SizeOp>(index, buffer, rank == 1 ? IntegerAttr() : builder.getI32IntegerAttr(dim)));
}

Value NumberBuilder::extract(Value vector, unsigned i) { return make<vector::ExtractOp>(vector, int64_t(i)); }

Value NumberBuilder::combine(Type vector, ValueRange scalars) {
  return make<vector::FromElementsOp>(vector, scalars);
}

void NumberBuilder::eraseUnused() {
  for (Operation *op : llvm::reverse(order))
    if (op->use_empty())
      op->erase();
  own.clear();
  order.clear();
}

} // namespace qd
