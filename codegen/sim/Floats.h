//===----------------------------------------------------------------------===//
// Floating-point formats and operations on their bits, rounded to nearest even
// and without any fast-math freedom.
//===----------------------------------------------------------------------===//
#ifndef QD_CODEGEN_SIM_FLOATS_H
#define QD_CODEGEN_SIM_FLOATS_H

#include "llvm/ADT/APFloat.h"
#include <cstdint>

namespace qd::sim {

enum class Format : uint8_t { Half, BFloat, Float, Double };

constexpr unsigned formatBits(Format format) {
  return format == Format::Double ? 64 : format == Format::Float ? 32 : 16;
}
const llvm::fltSemantics &formatSemantics(Format format);
llvm::APFloat toAPFloat(Format format, uint64_t bits);

double toDouble(Format format, uint64_t bits);
/// Rounds once.
uint64_t fromDouble(Format format, double value);
uint64_t fromFloat(Format format, float value);

enum class FloatOp : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  Rem,
  MinNum,
  MaxNum,
  Minimum,
  Maximum,
  MinimumNum,
  MaximumNum,
  CopySign,
  Pow,
  Atan2
};
uint64_t floatBinary(Format format, FloatOp op, uint64_t a, uint64_t b);

enum class FloatFunction : uint8_t {
  Abs,
  Sqrt,
  Floor,
  Ceil,
  Trunc,
  Rint,
  RoundEven,
  Round,
  Canonicalize,
  Exp,
  Exp2,
  Exp10,
  Log,
  Log2,
  Log10,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Reciprocal,
  ReciprocalSqrt,
  Fract,
  SinTurns,
  CosTurns,
};
uint64_t floatUnary(Format format, FloatFunction function, uint64_t a);

} // namespace qd::sim

#endif
