//===----------------------------------------------------------------------===//
// Handlers of floating-point operations.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Handlers.h"
#include "codegen/sim/Wave.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/ADT/FloatingPointMode.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/InstrTypes.h"
#include <cmath>

using namespace llvm;

namespace qd::sim {

namespace {

template <Format format, FloatOp kind> void binary(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a), *b = w.val(op.b);
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) { out[l] = floatBinary(format, kind, a[l], b[l]); });
  w.setPoison(op.dst, w.poisonOf(op.a) | w.poisonOf(op.b));
}

void unary(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a);
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) { out[l] = floatUnary(Format(op.bits2), FloatFunction(op.sub), a[l]); });
  w.setPoison(op.dst, w.poisonOf(op.a));
}

void negate(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a);
  uint64_t *out = w.out(op.dst), sign = uint64_t(1) << (op.bits - 1);
  w.each([&](unsigned l) { out[l] = a[l] ^ sign; });
  w.setPoison(op.dst, w.poisonOf(op.a));
}

void compare(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a), *b = w.val(op.b);
  uint64_t *out = w.out(op.dst);
  // The predicate's bits: equal, greater, less, unordered.
  w.each([&](unsigned l) {
    double x = toDouble(Format(op.bits2), a[l]), y = toDouble(Format(op.bits2), b[l]);
    unsigned relation = x == y ? 1 : x > y ? 2 : x < y ? 4 : 8;
    out[l] = (op.sub & relation) != 0;
  });
  w.setPoison(op.dst, w.poisonOf(op.a) | w.poisonOf(op.b));
}

uint64_t fma(Format format, uint64_t a, uint64_t b, uint64_t c) {
  if (format == Format::Float) {
    float result =
        std::fma(bit_cast<float>(uint32_t(a)), bit_cast<float>(uint32_t(b)), bit_cast<float>(uint32_t(c)));
    return bit_cast<uint32_t>(std::isnan(result) ? std::abs(result) : result);
  }
  if (format == Format::Double) {
    double result = std::fma(bit_cast<double>(a), bit_cast<double>(b), bit_cast<double>(c));
    return bit_cast<uint64_t>(std::isnan(result) ? std::abs(result) : result);
  }
  APFloat result = toAPFloat(format, a);
  result.fusedMultiplyAdd(toAPFloat(format, b), toAPFloat(format, c), APFloat::rmNearestTiesToEven);
  return result.bitcastToAPInt().getZExtValue();
}

void multiplyAdd(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a), *b = w.val(op.b), *c = w.val(op.c);
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) { out[l] = fma(Format(op.bits2), a[l], b[l], c[l]); });
  w.setPoison(op.dst, w.poisonOf(op.a) | w.poisonOf(op.b) | w.poisonOf(op.c));
}

void convert(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a);
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) { out[l] = fromDouble(Format(op.bits), toDouble(Format(op.bits2), a[l])); });
  w.setPoison(op.dst, w.poisonOf(op.a));
}

void toInteger(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a);
  uint64_t *out = w.out(op.dst), poison = w.poisonOf(op.a);
  bool isSigned = op.sub & 1, saturates = op.sub & 2;
  double high = std::ldexp(1.0, op.bits - isSigned), low = isSigned ? -high : 0.0;
  w.each([&](unsigned l) {
    double value = std::trunc(toDouble(Format(op.bits2), a[l]));
    bool fits = value >= low && value < high;
    if (fits) {
      out[l] = (value < 0 ? uint64_t(int64_t(value)) : uint64_t(value)) & lowBits(op.bits);
      return;
    }
    out[l] = 0;
    if (!saturates)
      poison |= uint64_t(1) << l;
    else if (value >= high)
      out[l] = lowBits(op.bits - isSigned);
    else if (value < low)
      out[l] = isSigned ? uint64_t(1) << (op.bits - 1) : 0;
  });
  w.setPoison(op.dst, poison);
}

void fromInteger(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a);
  uint64_t *out = w.out(op.dst);
  Format format = Format(op.bits);
  w.each([&](unsigned l) {
    int64_t value = signedValue(a[l], op.bits2);
    if (format == Format::Float)
      out[l] = bit_cast<uint32_t>(op.sub ? float(value) : float(a[l]));
    else if (format == Format::Double)
      out[l] = bit_cast<uint64_t>(op.sub ? double(value) : double(a[l]));
    else {
      APFloat result(formatSemantics(format));
      result.convertFromAPInt(APInt(64, op.sub ? uint64_t(value) : a[l]), op.sub,
                              APFloat::rmNearestTiesToEven);
      out[l] = result.bitcastToAPInt().getZExtValue();
    }
  });
  w.setPoison(op.dst, w.poisonOf(op.a));
}

void classify(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a);
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) {
    out[l] = (toAPFloat(Format(op.bits2), a[l]).classify() & FPClassTest(op.imm)) != 0;
  });
  w.setPoison(op.dst, w.poisonOf(op.a));
}

void power(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a), *b = w.val(op.b);
  uint64_t *out = w.out(op.dst);
  Format format = Format(op.bits2);
  w.each([&](unsigned l) {
    int64_t exponent = std::clamp<int64_t>(signedValue(b[l], op.bits), -100000, 100000);
    if (op.sub) {
      APFloat scaled = scalbn(toAPFloat(format, a[l]), exponent, APFloat::rmNearestTiesToEven);
      out[l] = scaled.bitcastToAPInt().getZExtValue();
    } else {
      out[l] = fromDouble(format, std::pow(toDouble(format, a[l]), double(exponent)));
    }
  });
  w.setPoison(op.dst, w.poisonOf(op.a) | w.poisonOf(op.b));
}

void parts(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a);
  uint64_t *mantissa = w.out(op.dst), *exponent = w.out(op.dst + 1);
  Format format = Format(op.bits2);
  w.each([&](unsigned l) {
    int e = 0;
    double value = toDouble(format, a[l]);
    mantissa[l] = std::isfinite(value) ? fromDouble(format, std::frexp(value, &e)) : a[l];
    exponent[l] = uint64_t(int64_t(e)) & lowBits(op.bits);
  });
  w.setPoison(op.dst, w.poisonOf(op.a));
  w.setPoison(op.dst + 1, w.poisonOf(op.a));
}

template <FloatOp kind> Handler ofFormat(Format format) {
  switch (format) {
  case Format::Half:
    return binary<Format::Half, kind>;
  case Format::BFloat:
    return binary<Format::BFloat, kind>;
  case Format::Float:
    return binary<Format::Float, kind>;
  case Format::Double:
    break;
  }
  return binary<Format::Double, kind>;
}

} // namespace

Handler floatBinaryHandler(Format format, FloatOp op) {
  switch (op) {
  case FloatOp::Add:
    return ofFormat<FloatOp::Add>(format);
  case FloatOp::Sub:
    return ofFormat<FloatOp::Sub>(format);
  case FloatOp::Mul:
    return ofFormat<FloatOp::Mul>(format);
  case FloatOp::Div:
    return ofFormat<FloatOp::Div>(format);
  case FloatOp::Rem:
    return ofFormat<FloatOp::Rem>(format);
  case FloatOp::MinNum:
    return ofFormat<FloatOp::MinNum>(format);
  case FloatOp::MaxNum:
    return ofFormat<FloatOp::MaxNum>(format);
  case FloatOp::Minimum:
    return ofFormat<FloatOp::Minimum>(format);
  case FloatOp::Maximum:
    return ofFormat<FloatOp::Maximum>(format);
  case FloatOp::MinimumNum:
    return ofFormat<FloatOp::MinimumNum>(format);
  case FloatOp::MaximumNum:
    return ofFormat<FloatOp::MaximumNum>(format);
  case FloatOp::CopySign:
    return ofFormat<FloatOp::CopySign>(format);
  case FloatOp::Pow:
    return ofFormat<FloatOp::Pow>(format);
  case FloatOp::Atan2:
    break;
  }
  return ofFormat<FloatOp::Atan2>(format);
}

Handler floatUnaryHandler() { return unary; }
Handler floatNegate() { return negate; }
Handler floatCompare() { return compare; }
Handler floatFma() { return multiplyAdd; }
Handler floatConvert() { return convert; }
Handler floatToInteger() { return toInteger; }
Handler integerToFloat() { return fromInteger; }
Handler floatClass() { return classify; }
Handler floatPower() { return power; }
Handler floatParts() { return parts; }

} // namespace qd::sim
