// Element types, their names, and conversions between bits, values and text. Pure functions: any input gives
// a value or an error sentence.
#include "runtime/Types.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

namespace qd::rt {

namespace {

struct ScalarRow {
  ScalarType type;
  std::string_view name;
  unsigned bits;
  size_t bytes;
  bool isFloat;
};

constexpr std::array<ScalarRow, 9> scalarTable = {{
    {ScalarType::I1, "i1", 1, 1, false},
    {ScalarType::I8, "i8", 8, 1, false},
    {ScalarType::I16, "i16", 16, 2, false},
    {ScalarType::I32, "i32", 32, 4, false},
    {ScalarType::I64, "i64", 64, 8, false},
    {ScalarType::F16, "f16", 16, 2, true},
    {ScalarType::BF16, "bf16", 16, 2, true},
    {ScalarType::F32, "f32", 32, 4, true},
    {ScalarType::F64, "f64", 64, 8, true},
}};

const ScalarRow &row(ScalarType type) { return scalarTable[static_cast<size_t>(type)]; }

/// Rounds a double to a binary format with `mantissa` stored bits and `exponent` exponent bits, once.
uint16_t roundTo16(double value, int mantissa, int exponent) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  uint16_t infinity = static_cast<uint16_t>(((1u << exponent) - 1) << mantissa);
  if (std::isnan(value))
    return static_cast<uint16_t>(sign | infinity | (1u << (mantissa - 1)));
  double magnitude = std::fabs(value);
  if (std::isinf(magnitude))
    return sign | infinity;
  if (magnitude == 0)
    return sign;
  int bias = (1 << (exponent - 1)) - 1;
  int power = std::max(std::ilogb(magnitude), 1 - bias);
  // nearbyint rounds to nearest even in the default mode; the scaling by a power of two is exact.
  auto units = static_cast<uint64_t>(std::nearbyint(std::ldexp(magnitude, mantissa - power)));
  // A subnormal's units are its field; a normal's leading one carries into the exponent field, as does a
  // rounding up to the next power of two.
  uint64_t field = (static_cast<uint64_t>(power + bias - 1) << mantissa) + units;
  return static_cast<uint16_t>(sign | std::min<uint64_t>(field, infinity));
}

double valueOf16(uint16_t bits, int mantissa, int exponent) {
  uint32_t fraction = bits & ((1u << mantissa) - 1);
  int field = (bits >> mantissa) & ((1 << exponent) - 1);
  int bias = (1 << (exponent - 1)) - 1;
  double magnitude;
  if (field == (1 << exponent) - 1)
    magnitude = fraction ? std::nan("") : HUGE_VAL;
  else if (field == 0)
    magnitude = std::ldexp(fraction, 1 - bias - mantissa);
  else
    magnitude = std::ldexp(fraction + (1u << mantissa), field - bias - mantissa);
  return std::copysign(magnitude, bits & 0x8000 ? -1.0 : 1.0);
}

template <typename Float> std::string shortest(Float value) {
  char buffer[64];
  auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, result.ptr};
}

Expected<uint64_t> parseInteger(ScalarType type, std::string_view text) {
  std::string_view digits = text;
  bool negative = !digits.empty() && digits[0] == '-';
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+'))
    digits.remove_prefix(1);
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
    base = 16;
    digits.remove_prefix(2);
  }
  uint64_t magnitude = 0;
  auto result = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (digits.empty() || result.ptr != digits.data() + digits.size())
    return fail("'", text, "' is not an ", scalarName(type), " (expected an integer)");
  unsigned bits = scalarBits(type);
  uint64_t mask = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  uint64_t largest = negative ? uint64_t(1) << (bits - 1) : mask;
  if (result.ec != std::errc() || magnitude > largest)
    return fail("'", text, "' does not fit into ", scalarName(type));
  return (negative ? 0 - magnitude : magnitude) & mask;
}

template <typename Float> bool parseFloat(std::string_view text, Float &value) {
  std::string_view digits = text;
  bool negative = !digits.empty() && digits[0] == '-';
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+'))
    digits.remove_prefix(1);
  if (digits.empty() || digits[0] == '-' || digits[0] == '+')
    return false;
  auto format = std::chars_format::general;
  if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
    format = std::chars_format::hex;
    digits.remove_prefix(2);
  }
  auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, format);
  if (result.ptr != digits.data() + digits.size())
    return false;
  // Too large or too small a number is rounded as arithmetic would: to an infinity or to zero.
  if (result.ec == std::errc::result_out_of_range) {
    std::string copy(text);
    value = static_cast<Float>(std::strtod(copy.c_str(), nullptr));
  } else if (result.ec != std::errc()) {
    return false;
  } else if (negative) {
    value = std::copysign(value, Float(-1));
  }
  return true;
}

size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> distances(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    distances[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = distances[0];
    distances[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replace = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = distances[j];
      distances[j] = std::min({replace, distances[j] + 1, distances[j - 1] + 1});
    }
  }
  return distances[b.size()];
}

} // namespace

std::string_view scalarName(ScalarType type) { return row(type).name; }
size_t scalarBytes(ScalarType type) { return row(type).bytes; }
unsigned scalarBits(ScalarType type) { return row(type).bits; }
bool isFloat(ScalarType type) { return row(type).isFloat; }

std::optional<ScalarType> parseScalarType(std::string_view name) {
  for (const ScalarRow &entry : scalarTable)
    if (entry.name == name)
      return entry.type;
  return std::nullopt;
}

std::string elementName(ElementType type) {
  if (type.lanes == 1)
    return std::string(scalarName(type.scalar));
  return text("vector<", type.lanes, "x", scalarName(type.scalar), ">");
}

std::optional<ElementType> parseElementType(std::string_view name) {
  if (auto scalar = parseScalarType(name))
    return ElementType{*scalar, 1};
  constexpr std::string_view prefix = "vector<";
  if (name.substr(0, prefix.size()) != prefix || name.back() != '>')
    return std::nullopt;
  name.remove_prefix(prefix.size());
  name.remove_suffix(1);
  ElementType type;
  auto result = std::from_chars(name.data(), name.data() + name.size(), type.lanes);
  if (result.ec != std::errc() || type.lanes < 1 || type.lanes > 16)
    return std::nullopt;
  name.remove_prefix(result.ptr - name.data());
  if (name.empty() || name[0] != 'x')
    return std::nullopt;
  auto scalar = parseScalarType(name.substr(1));
  if (!scalar)
    return std::nullopt;
  type.scalar = *scalar;
  return type;
}

uint16_t doubleToF16(double value) { return roundTo16(value, 10, 5); }
uint16_t doubleToBF16(double value) { return roundTo16(value, 7, 8); }
double f16ToDouble(uint16_t bits) { return valueOf16(bits, 10, 5); }
double bf16ToDouble(uint16_t bits) { return valueOf16(bits, 7, 8); }

uint64_t floatBits(ScalarType type, double value) {
  switch (type) {
  case ScalarType::F16:
    return doubleToF16(value);
  case ScalarType::BF16:
    return doubleToBF16(value);
  case ScalarType::F32: {
    auto narrow = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof bits);
    return bits;
  }
  default: {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  }
  }
}

double floatValue(ScalarType type, uint64_t bits) {
  switch (type) {
  case ScalarType::F16:
    return f16ToDouble(static_cast<uint16_t>(bits));
  case ScalarType::BF16:
    return bf16ToDouble(static_cast<uint16_t>(bits));
  case ScalarType::F32: {
    auto low = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &low, sizeof value);
    return value;
  }
  default: {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  }
}

int64_t signedValue(ScalarType type, uint64_t bits) {
  unsigned width = scalarBits(type);
  if (width == 1)
    return static_cast<int64_t>(bits & 1);
  unsigned shift = 64 - width;
  return static_cast<int64_t>(bits << shift) >> shift;
}

uint64_t loadScalar(ScalarType type, const uint8_t *memory) {
  uint64_t bits = 0;
  std::memcpy(&bits, memory, scalarBytes(type));
  return bits;
}

void storeScalar(ScalarType type, uint64_t bits, uint8_t *memory) {
  std::memcpy(memory, &bits, scalarBytes(type));
}

Expected<uint64_t> parseScalar(ScalarType type, std::string_view text) {
  if (type == ScalarType::I1 && (text == "true" || text == "false"))
    return uint64_t(text == "true");
  if (!isFloat(type))
    return parseInteger(type, text);
  // f32 is read directly, so that a decimal is rounded once.
  if (type == ScalarType::F32) {
    float value;
    if (parseFloat(text, value))
      return floatBits(type, value);
  } else {
    double value;
    if (parseFloat(text, value))
      return floatBits(type, value);
  }
  return fail("'", text, "' is not an ", scalarName(type), " (expected a number, inf or nan)");
}

std::string formatScalar(ScalarType type, uint64_t bits, bool isUnsigned) {
  if (!isFloat(type))
    return isUnsigned ? std::to_string(bits) : std::to_string(signedValue(type, bits));
  double value = floatValue(type, bits);
  if (std::isnan(value))
    return "nan";
  if (type == ScalarType::F64)
    return shortest(value);
  if (type == ScalarType::F32)
    return shortest(static_cast<float>(value));
  // The first precision that reads back to the same bits is the shortest.
  for (int precision = 1; precision <= 9; ++precision) {
    char buffer[64];
    auto result = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, precision);
    double back = 0;
    if (parseFloat(std::string_view(buffer, result.ptr - buffer), back) && floatBits(type, back) == bits)
      return {buffer, result.ptr};
  }
  return shortest(value);
}

std::string shapeText(const std::vector<int64_t> &shape) {
  if (shape.empty())
    return "scalar";
  std::string result;
  for (size_t i = 0; i < shape.size(); ++i)
    result += (i ? "x" : "") + std::to_string(shape[i]);
  return result;
}

std::string suggestion(std::string_view word, const std::vector<std::string> &candidates) {
  const std::string *nearest = nullptr;
  // A third of the word may be wrong, and something must be right.
  size_t best = std::min(word.size() / 3 + 2, word.size());
  for (const std::string &candidate : candidates) {
    size_t distance = editDistance(word, candidate);
    if (distance < best) {
      best = distance;
      nearest = &candidate;
    }
  }
  if (nearest)
    return "; did you mean '" + *nearest + "'?";
  if (candidates.empty())
    return "; there is none";
  if (candidates.size() > 8)
    return "";
  std::string list;
  for (const std::string &candidate : candidates)
    list += (list.empty() ? "" : ", ") + candidate;
  return "; there is " + list;
}

} // namespace qd::rt
