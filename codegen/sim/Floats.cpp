//===----------------------------------------------------------------------===//
// Formats and their arithmetic. half and bfloat add, subtract, multiply, divide
// and take roots in float, which has more than twice their digits plus two, so
// that rounding twice gives what rounding once would.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Floats.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace llvm;

namespace qd::sim {

const fltSemantics &formatSemantics(Format format) {
  switch (format) {
  case Format::Half:
    return APFloat::IEEEhalf();
  case Format::BFloat:
    return APFloat::BFloat();
  case Format::Float:
    return APFloat::IEEEsingle();
  case Format::Double:
    break;
  }
  return APFloat::IEEEdouble();
}

APFloat toAPFloat(Format format, uint64_t bits) {
  return APFloat(formatSemantics(format), APInt(formatBits(format), bits, false, true));
}

static float halfToFloat(uint32_t half) {
  uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3ff;
  if (exponent == 31)
    return bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent)
    return bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  float value = float(fraction) * 0x1p-24f;
  return sign ? -value : value;
}

static uint32_t floatToHalf(float value) {
  uint32_t bits = bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000)
    return sign | 0x7e00 | (bits >> 13 & 0x1ff);
  if (bits >= 0x47800000)
    return sign | 0x7c00;
  if (bits < 0x38800000) {
    // The sum's last place is that of the subnormal halves.
    float shifted = bit_cast<float>(bits) + 0.5f;
    return sign | (bit_cast<uint32_t>(shifted) - 0x3f000000);
  }
  bits += 0xc8000000 + 0xfff + (bits >> 13 & 1);
  return sign | bits >> 13;
}

static uint32_t floatToBFloat(float value) {
  uint32_t bits = bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return bits >> 16 | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static float toFloat(Format format, uint64_t bits) {
  if (format == Format::Half)
    return halfToFloat(bits);
  return bit_cast<float>(uint32_t(format == Format::BFloat ? bits << 16 : bits));
}

double toDouble(Format format, uint64_t bits) {
  return format == Format::Double ? bit_cast<double>(bits) : toFloat(format, bits);
}

uint64_t fromFloat(Format format, float value) {
  switch (format) {
  case Format::Half:
    return floatToHalf(value);
  case Format::BFloat:
    return floatToBFloat(value);
  case Format::Float:
    return bit_cast<uint32_t>(value);
  case Format::Double:
    break;
  }
  return bit_cast<uint64_t>(double(value));
}

uint64_t fromDouble(Format format, double value) {
  if (format == Format::Double)
    return bit_cast<uint64_t>(value);
  if (format == Format::Float)
    return bit_cast<uint32_t>(float(value));
  APFloat rounded(value);
  bool loses;
  rounded.convert(formatSemantics(format), APFloat::rmNearestTiesToEven, &loses);
  return rounded.bitcastToAPInt().getZExtValue();
}

namespace {

/// x86 makes a negative NaN where the GPUs make a positive one.
template <typename T> T positiveNaN(T result) { return std::isnan(result) ? std::abs(result) : result; }

template <typename T> T arithmetic(FloatOp op, T a, T b) {
  switch (op) {
  case FloatOp::Add:
    return a + b;
  case FloatOp::Sub:
    return a - b;
  case FloatOp::Mul:
    return a * b;
  case FloatOp::Div:
    return a / b;
  case FloatOp::Rem:
    return std::fmod(a, b);
  case FloatOp::Pow:
    return std::pow(a, b);
  case FloatOp::Atan2:
    return std::atan2(a, b);
  default:
    break;
  }
  // What is left picks one of the two.
  bool wantsMax = op == FloatOp::MaxNum || op == FloatOp::Maximum || op == FloatOp::MaximumNum;
  if (std::isnan(a) || std::isnan(b)) {
    if (op == FloatOp::Minimum || op == FloatOp::Maximum)
      return std::isnan(a) ? a : b;
    return std::isnan(a) ? b : a;
  }
  if (a == b) // orders the zeros
    return std::signbit(a) == wantsMax ? b : a;
  return (a > b) == wantsMax ? a : b;
}

template <typename T> T function(FloatFunction f, T a) {
  constexpr T turn = T(6.283185307179586476925286766559);
  switch (f) {
  case FloatFunction::Abs:
    return std::abs(a);
  case FloatFunction::Sqrt:
    return std::sqrt(a);
  case FloatFunction::Floor:
    return std::floor(a);
  case FloatFunction::Ceil:
    return std::ceil(a);
  case FloatFunction::Trunc:
    return std::trunc(a);
  case FloatFunction::Rint:
  case FloatFunction::RoundEven:
    return std::nearbyint(a);
  case FloatFunction::Round:
    return std::round(a);
  case FloatFunction::Canonicalize:
    return a;
  case FloatFunction::Exp:
    return std::exp(a);
  case FloatFunction::Exp2:
    return std::exp2(a);
  case FloatFunction::Exp10:
    return std::pow(T(10), a);
  case FloatFunction::Log:
    return std::log(a);
  case FloatFunction::Log2:
    return std::log2(a);
  case FloatFunction::Log10:
    return std::log10(a);
  case FloatFunction::Sin:
    return std::sin(a);
  case FloatFunction::Cos:
    return std::cos(a);
  case FloatFunction::Tan:
    return std::tan(a);
  case FloatFunction::Asin:
    return std::asin(a);
  case FloatFunction::Acos:
    return std::acos(a);
  case FloatFunction::Atan:
    return std::atan(a);
  case FloatFunction::Sinh:
    return std::sinh(a);
  case FloatFunction::Cosh:
    return std::cosh(a);
  case FloatFunction::Tanh:
    return std::tanh(a);
  case FloatFunction::Reciprocal:
    return T(1) / a;
  case FloatFunction::ReciprocalSqrt:
    return T(1) / std::sqrt(a);
  case FloatFunction::Fract:
    return std::fmin(a - std::floor(a), std::nextafter(T(1), T(0)));
  case FloatFunction::SinTurns:
    return std::sin(a * turn);
  case FloatFunction::CosTurns:
    return std::cos(a * turn);
  }
  return a;
}

} // namespace

uint64_t floatBinary(Format format, FloatOp op, uint64_t a, uint64_t b) {
  uint64_t sign = uint64_t(1) << (formatBits(format) - 1);
  if (op == FloatOp::CopySign)
    return (a & ~sign) | (b & sign);
  bool picks = op >= FloatOp::MinNum && op <= FloatOp::MaximumNum;
  if (format == Format::Double) {
    double result = arithmetic(op, bit_cast<double>(a), bit_cast<double>(b));
    return bit_cast<uint64_t>(picks ? result : positiveNaN(result));
  }
  float x = toFloat(format, a), y = toFloat(format, b);
  if (op == FloatOp::Pow || op == FloatOp::Atan2)
    return fromDouble(format, positiveNaN(arithmetic<double>(op, x, y)));
  float result = arithmetic(op, x, y);
  return fromFloat(format, picks ? result : positiveNaN(result));
}

uint64_t floatUnary(Format format, FloatFunction f, uint64_t a) {
  uint64_t sign = uint64_t(1) << (formatBits(format) - 1);
  if (f == FloatFunction::Abs)
    return a & ~sign;
  if (f == FloatFunction::Canonicalize)
    return std::isnan(toDouble(format, a))
               ? a | uint64_t(1) << (APFloat::semanticsPrecision(formatSemantics(format)) - 2)
               : a;
  if (format == Format::Double)
    return bit_cast<uint64_t>(positiveNaN(function(f, bit_cast<double>(a))));
  if (f <= FloatFunction::Round)
    return fromFloat(format, positiveNaN(function(f, toFloat(format, a))));
  return fromDouble(format, positiveNaN(function<double>(f, toFloat(format, a))));
}

} // namespace qd::sim
