//===- KeyOrder.cpp - the order of sorts as one of integers ----------------------------===//

#include "passes/KeyOrder.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace qd {

static int64_t getSignBit(unsigned width) { return int64_t(uint64_t(1) << (width - 1)); }

/// -infinity with its other bits flipped.
static int64_t getLeast(FloatType type) {
  unsigned fraction = type.getFPMantissaWidth() - 1;
  return getSignBit(type.getWidth()) | ((int64_t(1) << fraction) - 1);
}

static Value flipNegative(const IntegerBuilder &i, Value bits) {
  unsigned width = bits.getType().getIntOrFloatBitWidth();
  Value sign = i.shrS(bits, width - 1);
  return i.bitXor(bits, i.bitAnd(sign, int64_t((uint64_t(1) << (width - 1)) - 1)));
}

/// The same where an instruction adds to an exclusive or: one operation fewer waits for another.
static Value flipAndAddSign(const IntegerBuilder &i, Value bits) {
  unsigned width = bits.getType().getIntOrFloatBitWidth();
  return i.add(i.bitXor(bits, i.shrS(bits, width - 1)), i.bitAnd(bits, getSignBit(width)));
}

/// `flipNegative` less the least of floats: the sign, which is flipped with the other bits, is added with that.
static Value flipAndSubtract(const IntegerBuilder &i, Value value, int64_t least) {
  auto type = cast<FloatType>(value.getType());
  unsigned width = type.getWidth();
  // As integers the sum would be taken apart again.
  llvm::APFloat addend(type.getFloatSemantics(), llvm::APInt(width, -least & (getSignBit(width) - 1)));
  Value magnitude = arith::ConstantOp::create(i.b, i.loc, i.b.getFloatAttr(type, addend));
  Value bits = i.toBits(value), added = i.toBits(math::CopySignOp::create(i.b, i.loc, magnitude, value));
  return i.add(i.bitXor(bits, i.shrS(bits, width - 1)), added);
}

Value KeyOrder::map(const IntegerBuilder &i, Value value, bool keepsSign) const {
  Value bits = i.toBits(value);
  if (isFloat()) {
    int64_t least = getLeast(cast<FloatType>(type));
    if (i.shape.subtractsMoved && getBits() == 32)
      return flipAndSubtract(i, value, least);
    return i.sub(flipNegative(i, bits), least);
  }
  return hasSign() && !keepsSign ? i.bitXor(bits, getSignBit(getBits())) : bits;
}

Value KeyOrder::unmap(const IntegerBuilder &i, Value bits, bool keepsSign) const {
  if (isFloat()) {
    Value signedBits = i.add(bits, getLeast(cast<FloatType>(type)));
    bool addsToXor = i.shape.rowLanes && getBits() == 32;
    return i.bitcast(addsToXor ? flipAndAddSign(i, signedBits) : flipNegative(i, signedBits), type);
  }
  return hasSign() && !keepsSign ? i.bitXor(bits, getSignBit(getBits())) : bits;
}

} // namespace qd
