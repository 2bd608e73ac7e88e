//===- KeyOrder.cpp - the order of sorts as one of integers ----------------------------===//

#include "passes/KeyOrder.h"

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

Value KeyOrder::map(const IntegerBuilder &i, Value value, bool keepsSign) const {
  Value bits = i.toBits(value);
  if (isFloat())
    return i.sub(flipNegative(i, bits), getLeast(cast<FloatType>(type)));
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
