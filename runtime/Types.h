// The element types of arguments, and their values as bits.
//
// A value travels as its bits, zero-extended to 64: the kernel's interface says how to read them.
#ifndef QD_RUNTIME_TYPES_H
#define QD_RUNTIME_TYPES_H

#include "runtime/Error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qd::rt {

enum class ScalarType : uint8_t { I1, I8, I16, I32, I64, F16, BF16, F32, F64 };

std::string_view scalarName(ScalarType type);
std::optional<ScalarType> parseScalarType(std::string_view name);
/// Bytes in memory; an i1 takes one.
size_t scalarBytes(ScalarType type);
unsigned scalarBits(ScalarType type);
bool isFloat(ScalarType type);

/// What one element of a buffer is: a scalar, or a short vector of them ("vector<4xf32>").
struct ElementType {
  ScalarType scalar = ScalarType::F32;
  unsigned lanes = 1;

  size_t bytes() const { return scalarBytes(scalar) * lanes; }
  bool operator==(const ElementType &other) const { return scalar == other.scalar && lanes == other.lanes; }
  bool operator!=(const ElementType &other) const { return !(*this == other); }
};

std::string elementName(ElementType type);
std::optional<ElementType> parseElementType(std::string_view name);

/// IEEE conversions with round to nearest even; a NaN stays a NaN.
uint16_t doubleToF16(double value);
uint16_t doubleToBF16(double value);
double f16ToDouble(uint16_t bits);
double bf16ToDouble(uint16_t bits);

/// The bits of `value` rounded once to a floating-point type.
uint64_t floatBits(ScalarType type, double value);
/// The value of a floating-point type's bits, exactly.
double floatValue(ScalarType type, uint64_t bits);
/// The bits sign-extended from the type's width (i1: 0 or 1).
int64_t signedValue(ScalarType type, uint64_t bits);

/// Reads and writes one scalar of memory.
uint64_t loadScalar(ScalarType type, const uint8_t *memory);
void storeScalar(ScalarType type, uint64_t bits, uint8_t *memory);

/// Text to bits: decimal or 0x integers from the type's signed minimum to its unsigned maximum, `true` and
/// `false` for i1, decimal or hexadecimal floats, `inf` and `nan`.
Expected<uint64_t> parseScalar(ScalarType type, std::string_view text);
/// Bits to the shortest text that `parseScalar` reads back to the same bits (NaN payloads excepted).
std::string formatScalar(ScalarType type, uint64_t bits, bool isUnsigned = false);

/// "4x1024"; "scalar" for no dimension.
std::string shapeText(const std::vector<int64_t> &shape);

/// A sentence's tail that offers the nearest of `candidates`: "; did you mean 'x'?", or else lists them where
/// they are few.
std::string suggestion(std::string_view word, const std::vector<std::string> &candidates);

} // namespace qd::rt

#endif // QD_RUNTIME_TYPES_H
