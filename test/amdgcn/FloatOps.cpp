// Operations of lanes on floats of 32 and 64 bits, and conversions. Approximations give the value that is right when
// rounded, which no chip need do better.
#include "Wave.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace amdgcn {

namespace {

template <typename T> using BitsOf = std::conditional_t<sizeof(T) == 4, u32, u64>;

template <typename T> bool flushes(const Mode &mode) { return sizeof(T) == 4 ? mode.flush32 : mode.flush64; }
template <typename T> T flushed(T value, const Mode &mode) {
  return flushes<T>(mode) && std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(T(0), value) : value;
}
template <typename T> T in(u64 bits, const Mode &mode) { return flushed(llvm::bit_cast<T>(BitsOf<T>(bits)), mode); }
template <typename T> Result out(T value, const Mode &mode) {
  return {llvm::bit_cast<BitsOf<T>>(flushed(value, mode)), false};
}

template <typename T> bool isSignaling(T value) {
  BitsOf<T> quiet = BitsOf<T>(1) << (std::numeric_limits<T>::digits - 2);
  return std::isnan(value) && !(llvm::bit_cast<BitsOf<T>>(value) & quiet);
}
template <typename T> T quieted(T value) {
  return llvm::bit_cast<T>(
      BitsOf<T>(llvm::bit_cast<BitsOf<T>>(value) | BitsOf<T>(1) << (std::numeric_limits<T>::digits - 2)));
}

/// Zeros are ordered by their sign.
template <typename T> bool isLess(T a, T b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }

/// The number where one is none; in IEEE's old mode a signaling NaN counts as such.
template <typename T> T leastNumber(T a, T b, const Mode &mode) {
  if (mode.isIeee && isSignaling(a))
    return quieted(a);
  if (mode.isIeee && isSignaling(b))
    return quieted(b);
  if (std::isnan(a))
    return std::isnan(b) ? quieted(b) : b;
  return std::isnan(b) ? a : isLess(b, a) ? b : a;
}
template <typename T> T greatestNumber(T a, T b, const Mode &mode) {
  if (mode.isIeee && isSignaling(a))
    return quieted(a);
  if (mode.isIeee && isSignaling(b))
    return quieted(b);
  if (std::isnan(a))
    return std::isnan(b) ? quieted(b) : b;
  return std::isnan(b) ? a : isLess(a, b) ? b : a;
}
template <typename T> T least(T a, T b) {
  return std::isnan(a) ? quieted(a) : std::isnan(b) ? quieted(b) : isLess(b, a) ? b : a;
}
template <typename T> T greatest(T a, T b) {
  return std::isnan(a) ? quieted(a) : std::isnan(b) ? quieted(b) : isLess(a, b) ? b : a;
}
template <typename T> T median(T a, T b, T c, const Mode &mode) {
  if (std::isnan(a) || std::isnan(b) || std::isnan(c))
    return leastNumber(leastNumber(a, b, mode), c, mode);
  return greatestNumber(leastNumber(a, b, mode), leastNumber(greatestNumber(a, b, mode), c, mode), mode);
}

template <typename Int, typename T> Int toInt(T value) {
  if (std::isnan(value))
    return 0;
  double whole = std::trunc(double(value));
  if (whole <= double(std::numeric_limits<Int>::min()))
    return std::numeric_limits<Int>::min();
  if (whole >= double(std::numeric_limits<Int>::max()))
    return std::numeric_limits<Int>::max();
  return Int(whole);
}

/// What comparisons ask, by bits: 1 less, 2 equal, 4 greater, 8 unordered.
template <typename T, unsigned Wanted> Result compare(const u64 *s, const Mode &mode) {
  T a = in<T>(s[0], mode), b = in<T>(s[1], mode);
  unsigned is = a < b ? 1 : a == b ? 2 : a > b ? 4 : 8;
  return {0, (Wanted & is) != 0};
}
/// NaNs that signal and do not, -inf, -normal, -subnormal, -0, and the positive ones from there.
template <typename T> Result classify(const u64 *s, const Mode &) {
  T value = llvm::bit_cast<T>(BitsOf<T>(s[0]));
  unsigned place;
  if (std::isnan(value)) {
    place = isSignaling(value) ? 0 : 1;
  } else {
    unsigned kind = std::isinf(value) ? 0 : value == 0 ? 3 : std::fpclassify(value) == FP_SUBNORMAL ? 2 : 1;
    place = std::signbit(value) ? 2 + kind : 9 - kind;
  }
  return {0, bool(s[1] >> place & 1)};
}

template <typename T> Function floatComparison(const std::string &kind) {
  static const struct {
    const char *name;
    Function function;
  } rows[] = {{"f", compare<T, 0>},    {"lt", compare<T, 1>},   {"eq", compare<T, 2>},   {"le", compare<T, 3>},
              {"gt", compare<T, 4>},   {"lg", compare<T, 5>},   {"ge", compare<T, 6>},   {"o", compare<T, 7>},
              {"u", compare<T, 8>},    {"nge", compare<T, 9>},  {"nlg", compare<T, 10>}, {"ngt", compare<T, 11>},
              {"nle", compare<T, 12>}, {"neq", compare<T, 13>}, {"nlt", compare<T, 14>}, {"t", compare<T, 15>},
              {"class", classify<T>}};
  for (const auto &row : rows)
    if (kind == row.name)
      return row.function;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Division in three steps
//===----------------------------------------------------------------------===//

template <typename T> int exponentOf(T value) {
  constexpr int mantissa = std::numeric_limits<T>::digits - 1;
  return int(llvm::bit_cast<BitsOf<T>>(value) >> mantissa & (sizeof(T) == 4 ? 0xFF : 0x7FF));
}
template <typename T> bool isSubnormal(T value) { return std::fpclassify(value) == FP_SUBNORMAL; }

/// Scales what is given first, the denominator or the numerator, so that no step of the division leaves the range; the
/// flag says that the quotient has to be scaled back.
template <typename T> Result divScale(const u64 *s, const Mode &) {
  constexpr bool isSingle = sizeof(T) == 4;
  constexpr int far = isSingle ? 96 : 768, by = isSingle ? 64 : 128, small = isSingle ? 23 : 53;
  T value = llvm::bit_cast<T>(BitsOf<T>(s[0])), denominator = llvm::bit_cast<T>(BitsOf<T>(s[1])),
    numerator = llvm::bit_cast<T>(BitsOf<T>(s[2]));
  bool isDenominator = BitsOf<T>(s[0]) == BitsOf<T>(s[1]), flag = false;
  T result = value;
  T reciprocal = T(1) / denominator, quotient = numerator / denominator;
  if (numerator == 0 || denominator == 0) {
    result = std::numeric_limits<T>::quiet_NaN();
  } else if (exponentOf(numerator) - exponentOf(denominator) >= far) {
    flag = true;
    if (isDenominator)
      result = std::ldexp(value, by);
  } else if (isSubnormal(denominator)) {
    result = std::ldexp(value, by);
  } else if (isSubnormal(reciprocal) && isSubnormal(quotient)) {
    flag = true;
    if (isDenominator)
      result = std::ldexp(value, -by);
  } else if (isSubnormal(reciprocal)) {
    result = std::ldexp(value, -by);
  } else if (isSubnormal(quotient)) {
    flag = true;
    if (BitsOf<T>(s[0]) == BitsOf<T>(s[2]))
      result = std::ldexp(value, by);
  } else if (exponentOf(numerator) <= small) {
    result = std::ldexp(value, by);
  }
  return {llvm::bit_cast<BitsOf<T>>(result), flag};
}

template <typename T> Result divFmas(const u64 *s, const Mode &mode) {
  T addend = in<T>(s[2], mode);
  if (!s[3])
    return out(std::fma(in<T>(s[0], mode), in<T>(s[1], mode), addend), mode);
  constexpr int by = sizeof(T) == 4 ? 64 : 128, middle = sizeof(T) == 4 ? 127 : 1023;
  // What is rounded is the scaled sum.
  int scale = exponentOf(addend) > middle ? by : -by;
  if (sizeof(T) == 4) {
    double exact = std::fma(double(in<T>(s[0], mode)), double(in<T>(s[1], mode)), double(addend));
    return out(T(std::ldexp(exact, scale)), mode);
  }
  auto wide = [&](u64 bits) {
    llvm::APFloat value(double(in<T>(bits, mode)));
    bool losesInfo;
    value.convert(llvm::APFloat::IEEEquad(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return value;
  };
  llvm::APFloat sum = wide(s[0]);
  sum.fusedMultiplyAdd(wide(s[1]), wide(s[2]), llvm::APFloat::rmNearestTiesToEven);
  sum = scalbn(sum, scale, llvm::APFloat::rmNearestTiesToEven);
  bool losesInfo;
  sum.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return out(T(sum.convertToDouble()), mode);
}

template <typename T> Result divFixup(const u64 *s, const Mode &) {
  T quotient = llvm::bit_cast<T>(BitsOf<T>(s[0])), denominator = llvm::bit_cast<T>(BitsOf<T>(s[1])),
    numerator = llvm::bit_cast<T>(BitsOf<T>(s[2]));
  T sign = std::signbit(denominator) != std::signbit(numerator) ? T(-1) : T(1), result;
  T infinity = std::numeric_limits<T>::infinity();
  constexpr int least = sizeof(T) == 4 ? -150 : -1075, top = sizeof(T) == 4 ? 255 : 2047;
  if (std::isnan(numerator))
    result = quieted(numerator);
  else if (std::isnan(denominator))
    result = quieted(denominator);
  else if ((numerator == 0 && denominator == 0) || (std::isinf(numerator) && std::isinf(denominator)))
    result = std::numeric_limits<T>::quiet_NaN();
  else if (denominator == 0 || std::isinf(numerator))
    result = sign * infinity;
  else if (std::isinf(denominator) || numerator == 0)
    result = sign * T(0);
  else if (exponentOf(numerator) - exponentOf(denominator) < least)
    result = sign * T(0);
  else if (exponentOf(denominator) == top || std::isnan(quotient)) // steps that left the range above
    result = sign * infinity;
  else
    result = std::copysign(quotient, sign);
  return {llvm::bit_cast<BitsOf<T>>(result), false};
}

template <typename T> T fraction(T value) {
  T below = std::nextafter(T(1), T(0));
  return std::isinf(value) ? std::numeric_limits<T>::quiet_NaN() : std::min(value - std::floor(value), below);
}
template <typename T> int exponentToStandard(T value) {
  int exponent = 0;
  if (value == 0 || !std::isfinite(value))
    return 0;
  std::frexp(value, &exponent);
  return exponent;
}
template <typename T> T mantissaOf(T value) {
  int exponent;
  return std::isfinite(value) ? std::frexp(value, &exponent) : value;
}
/// Turns, of which many make an angle that says nothing.
double turns(double value) { return (value - std::floor(value)) * 6.283185307179586476925; }

#define A in<T>(s[0], mode)
#define B in<T>(s[1], mode)
#define C in<T>(s[2], mode)
#define FLOAT(letters, expression)                                                                                     \
  letters, [](const u64 *s, const Mode &mode) -> Result {                                                              \
    using T = float;                                                                                                   \
    return out<T>(T(expression), mode);                                                                                \
  }
#define DOUBLE(letters, expression)                                                                                    \
  letters, [](const u64 *s, const Mode &mode) -> Result {                                                              \
    using T = double;                                                                                                  \
    return out<T>(T(expression), mode);                                                                                \
  }
#define FROM32(letters, expression)                                                                                    \
  letters, [](const u64 *s, const Mode &mode) -> Result {                                                              \
    using T = float;                                                                                                   \
    (void)mode;                                                                                                        \
    return {u64(expression), false};                                                                                   \
  }
#define FROM64(letters, expression)                                                                                    \
  letters, [](const u64 *s, const Mode &mode) -> Result {                                                              \
    using T = double;                                                                                                  \
    (void)mode;                                                                                                        \
    return {u64(expression), false};                                                                                   \
  }

} // namespace

Function findHalfComparison(const std::string &kind);
Function findFloatComparison(const std::string &kind, const std::string &type);
Function findFloatComparison(const std::string &kind, const std::string &type) {
  return type == "f32" ? floatComparison<float>(kind) : type == "f64" ? floatComparison<double>(kind)
         : type == "f16" ? findHalfComparison(kind) : nullptr;
}

const Op floatOps[] = {
    {"v_add_f32", FLOAT("f:ff", A + B)},
    {"v_sub_f32", FLOAT("f:ff", A - B)},
    {"v_subrev_f32", FLOAT("f:ff", B - A)},
    {"v_mul_f32", FLOAT("f:ff", A *B)},
    {"v_fma_f32", FLOAT("f:fff", std::fma(A, B, C))},
    {"v_fmac_f32", FLOAT("f:ff+", std::fma(A, B, C))},
    {"v_fmaak_f32", FLOAT("f:fff", std::fma(A, B, C))},
    {"v_fmamk_f32", FLOAT("f:fff", std::fma(A, B, C))},
    {"v_mad_f32", FLOAT("f:fff", T(A *B) + C)},
    {"v_mac_f32", FLOAT("f:ff+", T(A *B) + C)},
    {"v_madak_f32", FLOAT("f:fff", T(A *B) + C)},
    {"v_madmk_f32", FLOAT("f:fff", T(A *B) + C)},
    {"v_min_f32", FLOAT("f:ff", leastNumber(A, B, mode))},
    {"v_max_f32", FLOAT("f:ff", greatestNumber(A, B, mode))},
    {"v_min_num_f32", FLOAT("f:ff", leastNumber(A, B, mode))},
    {"v_max_num_f32", FLOAT("f:ff", greatestNumber(A, B, mode))},
    {"v_min3_f32", FLOAT("f:fff", leastNumber(leastNumber(A, B, mode), C, mode))},
    {"v_max3_f32", FLOAT("f:fff", greatestNumber(greatestNumber(A, B, mode), C, mode))},
    {"v_min3_num_f32", FLOAT("f:fff", leastNumber(leastNumber(A, B, mode), C, mode))},
    {"v_max3_num_f32", FLOAT("f:fff", greatestNumber(greatestNumber(A, B, mode), C, mode))},
    {"v_med3_f32", FLOAT("f:fff", median(A, B, C, mode))},
    {"v_med3_num_f32", FLOAT("f:fff", median(A, B, C, mode))},
    {"v_minmax_f32", FLOAT("f:fff", greatestNumber(leastNumber(A, B, mode), C, mode))},
    {"v_maxmin_f32", FLOAT("f:fff", leastNumber(greatestNumber(A, B, mode), C, mode))},
    {"v_minmax_num_f32", FLOAT("f:fff", greatestNumber(leastNumber(A, B, mode), C, mode))},
    {"v_maxmin_num_f32", FLOAT("f:fff", leastNumber(greatestNumber(A, B, mode), C, mode))},
    {"v_minimum_f32", FLOAT("f:ff", least(A, B))},
    {"v_maximum_f32", FLOAT("f:ff", greatest(A, B))},
    {"v_minimum3_f32", FLOAT("f:fff", least(least(A, B), C))},
    {"v_maximum3_f32", FLOAT("f:fff", greatest(greatest(A, B), C))},
    {"v_minimummaximum_f32", FLOAT("f:fff", greatest(least(A, B), C))},
    {"v_maximumminimum_f32", FLOAT("f:fff", least(greatest(A, B), C))},
    {"v_rcp_f32", FLOAT("f:f", 1 / A)},
    {"v_rcp_iflag_f32", FLOAT("f:f", 1 / A)},
    {"v_rsq_f32", FLOAT("f:f", 1 / std::sqrt(double(A)))},
    {"v_sqrt_f32", FLOAT("f:f", std::sqrt(A))},
    {"v_exp_f32", FLOAT("f:f", std::exp2(double(A)))},
    {"v_log_f32", FLOAT("f:f", std::log2(double(A)))},
    {"v_sin_f32", FLOAT("f:f", std::sin(turns(A)))},
    {"v_cos_f32", FLOAT("f:f", std::cos(turns(A)))},
    {"v_floor_f32", FLOAT("f:f", std::floor(A))},
    {"v_ceil_f32", FLOAT("f:f", std::ceil(A))},
    {"v_trunc_f32", FLOAT("f:f", std::trunc(A))},
    {"v_rndne_f32", FLOAT("f:f", std::nearbyint(A))},
    {"v_fract_f32", FLOAT("f:f", fraction(A))},
    {"v_ldexp_f32", FLOAT("f:fi", std::ldexp(A, i32(s[1])))},
    {"v_frexp_mant_f32", FLOAT("f:f", mantissaOf(A))},
    {"v_frexp_exp_i32_f32", FROM32("i:f", u32(exponentToStandard(A)))},
    {"v_div_scale_f32", "fC:fff", divScale<float>},
    {"v_div_fmas_f32", "f:fffv", divFmas<float>},
    {"v_div_fixup_f32", "f:fff", divFixup<float>},

    {"v_add_f64", DOUBLE("d:dd", A + B)},
    {"v_mul_f64", DOUBLE("d:dd", A *B)},
    {"v_fma_f64", DOUBLE("d:ddd", std::fma(A, B, C))},
    {"v_fmac_f64", DOUBLE("d:dd+", std::fma(A, B, C))},
    {"v_min_f64", DOUBLE("d:dd", leastNumber(A, B, mode))},
    {"v_max_f64", DOUBLE("d:dd", greatestNumber(A, B, mode))},
    {"v_min_num_f64", DOUBLE("d:dd", leastNumber(A, B, mode))},
    {"v_max_num_f64", DOUBLE("d:dd", greatestNumber(A, B, mode))},
    {"v_minimum_f64", DOUBLE("d:dd", least(A, B))},
    {"v_maximum_f64", DOUBLE("d:dd", greatest(A, B))},
    {"v_rcp_f64", DOUBLE("d:d", 1 / A)},
    {"v_rsq_f64", DOUBLE("d:d", 1 / std::sqrt(A))},
    {"v_sqrt_f64", DOUBLE("d:d", std::sqrt(A))},
    {"v_floor_f64", DOUBLE("d:d", std::floor(A))},
    {"v_ceil_f64", DOUBLE("d:d", std::ceil(A))},
    {"v_trunc_f64", DOUBLE("d:d", std::trunc(A))},
    {"v_rndne_f64", DOUBLE("d:d", std::nearbyint(A))},
    {"v_fract_f64", DOUBLE("d:d", fraction(A))},
    {"v_ldexp_f64", DOUBLE("d:di", std::ldexp(A, i32(s[1])))},
    {"v_frexp_mant_f64", DOUBLE("d:d", mantissaOf(A))},
    {"v_frexp_exp_i32_f64", FROM64("i:d", u32(exponentToStandard(A)))},
    {"v_div_scale_f64", "dC:ddd", divScale<double>},
    {"v_div_fmas_f64", "d:dddv", divFmas<double>},
    {"v_div_fixup_f64", "d:ddd", divFixup<double>},

    {"v_cvt_f32_i32", FLOAT("f:i", float(i32(s[0])))},
    {"v_cvt_f32_u32", FLOAT("f:i", float(u32(s[0])))},
    {"v_cvt_f32_ubyte0", FLOAT("f:i", float(s[0] & 255))},
    {"v_cvt_f32_ubyte1", FLOAT("f:i", float(s[0] >> 8 & 255))},
    {"v_cvt_f32_ubyte2", FLOAT("f:i", float(s[0] >> 16 & 255))},
    {"v_cvt_f32_ubyte3", FLOAT("f:i", float(s[0] >> 24 & 255))},
    {"v_cvt_f64_i32", DOUBLE("d:i", double(i32(s[0])))},
    {"v_cvt_f64_u32", DOUBLE("d:i", double(u32(s[0])))},
    {"v_cvt_f64_f32", "d:f", [](const u64 *s, const Mode &mode) { return out(double(in<float>(s[0], mode)), mode); }},
    {"v_cvt_f32_f64", "f:d", [](const u64 *s, const Mode &mode) { return out(float(in<double>(s[0], mode)), mode); }},
    {"v_cvt_i32_f32", FROM32("i:f", u32(toInt<i32>(A)))},
    {"v_cvt_u32_f32", FROM32("i:f", toInt<u32>(A))},
    {"v_cvt_rpi_i32_f32", FROM32("i:f", u32(toInt<i32>(std::floor(A + 0.5f))))},
    {"v_cvt_flr_i32_f32", FROM32("i:f", u32(toInt<i32>(std::floor(A))))},
    {"v_cvt_floor_i32_f32", FROM32("i:f", u32(toInt<i32>(std::floor(A))))},
    {"v_cvt_i32_f64", FROM64("i:d", u32(toInt<i32>(A)))},
    {"v_cvt_u32_f64", FROM64("i:d", toInt<u32>(A))},
    {nullptr, nullptr, nullptr}};

} // namespace amdgcn
