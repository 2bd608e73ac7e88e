// Operations of lanes on floats of 16 bits, by LLVM's arithmetic.
#include "Wave.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/ADT/bit.h"

#include <cmath>

namespace amdgcn {

namespace {

using llvm::APFloat;

APFloat half(u64 bits, const Mode &mode) {
  APFloat value(APFloat::IEEEhalf(), llvm::APInt(16, bits & 0xFFFF));
  return mode.flush64 && value.isDenormal() ? APFloat::getZero(APFloat::IEEEhalf(), value.isNegative()) : value;
}
Result out(APFloat value, const Mode &mode) {
  if (mode.flush64 && value.isDenormal())
    value = APFloat::getZero(APFloat::IEEEhalf(), value.isNegative());
  if (value.isSignaling())
    value = value.makeQuiet();
  return {value.bitcastToAPInt().getZExtValue(), false};
}
APFloat rounded(double number) {
  APFloat value(number);
  bool losesInfo;
  value.convert(APFloat::IEEEhalf(), APFloat::rmNearestTiesToEven, &losesInfo);
  return value;
}
float single(u64 bits, const Mode &mode) {
  float value = llvm::bit_cast<float>(u32(bits));
  return mode.flush32 && std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}
APFloat fma(APFloat a, const APFloat &b, const APFloat &c) {
  a.fusedMultiplyAdd(b, c, APFloat::rmNearestTiesToEven);
  return a;
}
/// Where one is no number, the other; a NaN that signals counts as such in IEEE's old mode.
APFloat choose(const APFloat &a, const APFloat &b, const Mode &mode, bool wantsGreater) {
  if (mode.isIeee && (a.isSignaling() || b.isSignaling()))
    return a.isSignaling() ? a : b;
  return wantsGreater ? maximumnum(a, b) : minimumnum(a, b);
}
APFloat median(const APFloat &a, const APFloat &b, const APFloat &c, const Mode &mode) {
  APFloat low = choose(a, b, mode, false);
  if (a.isNaN() || b.isNaN() || c.isNaN())
    return choose(low, c, mode, false);
  return choose(low, choose(choose(a, b, mode, true), c, mode, false), mode, true);
}

#define A half(s[0], mode)
#define B half(s[1], mode)
#define C half(s[2], mode)
#define HALF(letters, expression)                                                                                      \
  letters, [](const u64 *s, const Mode &mode) -> Result { return out(expression, mode); }

/// A float's upper half, to the nearest even.
u64 upperHalf(float value) {
  u32 bits = llvm::bit_cast<u32>(value);
  if (std::isnan(value))
    return bits >> 16 | 0x40;
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}
/// Sources that are floats of 32 bits or, where the flags behind them say so, of 16.
float mixed(const u64 *s, unsigned at, const Mode &mode) {
  return s[3] >> at & 1 ? float(half(s[at], mode).convertToDouble()) : single(s[at], mode);
}
float mix(const u64 *s, const Mode &mode) { return std::fma(mixed(s, 0, mode), mixed(s, 1, mode), mixed(s, 2, mode)); }

template <unsigned Wanted> Result compare(const u64 *s, const Mode &mode) {
  unsigned is = 0;
  switch (A.compare(B)) {
  case APFloat::cmpLessThan:
    is = 1;
    break;
  case APFloat::cmpEqual:
    is = 2;
    break;
  case APFloat::cmpGreaterThan:
    is = 4;
    break;
  case APFloat::cmpUnordered:
    is = 8;
  }
  return {0, (Wanted & is) != 0};
}
Result classify(const u64 *s, const Mode &) {
  APFloat value(APFloat::IEEEhalf(), llvm::APInt(16, s[0] & 0xFFFF));
  unsigned kind = value.isInfinity() ? 0 : value.isZero() ? 3 : value.isDenormal() ? 2 : 1;
  unsigned place = value.isNaN() ? !value.isSignaling() : value.isNegative() ? 2 + kind : 9 - kind;
  return {0, bool(s[1] >> place & 1)};
}

template <typename Int> Result toInt(const u64 *s, const Mode &mode) {
  llvm::APSInt made(16, !std::is_signed_v<Int>);
  bool isExact;
  if (A.isNaN())
    return {0, false};
  A.convertToInteger(made, APFloat::rmTowardZero, &isExact);
  return {made.getZExtValue(), false};
}

} // namespace

Function findHalfComparison(const std::string &kind);
Function findHalfComparison(const std::string &kind) {
  static const struct {
    const char *name;
    Function function;
  } rows[] = {{"f", compare<0>},    {"lt", compare<1>},   {"eq", compare<2>},   {"le", compare<3>},
              {"gt", compare<4>},   {"lg", compare<5>},   {"ge", compare<6>},   {"o", compare<7>},
              {"u", compare<8>},    {"nge", compare<9>},  {"nlg", compare<10>}, {"ngt", compare<11>},
              {"nle", compare<12>}, {"neq", compare<13>}, {"nlt", compare<14>}, {"t", compare<15>},
              {"class", classify}};
  for (const auto &row : rows)
    if (kind == row.name)
      return row.function;
  return nullptr;
}

const Op halfOps[] = {
    {"v_add_f16", HALF("g:gg", A + B)},
    {"v_sub_f16", HALF("g:gg", A - B)},
    {"v_subrev_f16", HALF("g:gg", B - A)},
    {"v_mul_f16", HALF("g:gg", A *B)},
    {"v_fma_f16", HALF("g:ggg", fma(A, B, C))},
    {"v_fmac_f16", HALF("g:gg+", fma(A, B, C))},
    {"v_fmaak_f16", HALF("g:ggg", fma(A, B, C))},
    {"v_fmamk_f16", HALF("g:ggg", fma(A, B, C))},
    {"v_min_f16", HALF("g:gg", choose(A, B, mode, false))},
    {"v_max_f16", HALF("g:gg", choose(A, B, mode, true))},
    {"v_min_num_f16", HALF("g:gg", choose(A, B, mode, false))},
    {"v_max_num_f16", HALF("g:gg", choose(A, B, mode, true))},
    {"v_min3_f16", HALF("g:ggg", choose(choose(A, B, mode, false), C, mode, false))},
    {"v_max3_f16", HALF("g:ggg", choose(choose(A, B, mode, true), C, mode, true))},
    {"v_min3_num_f16", HALF("g:ggg", choose(choose(A, B, mode, false), C, mode, false))},
    {"v_max3_num_f16", HALF("g:ggg", choose(choose(A, B, mode, true), C, mode, true))},
    {"v_minimum_f16", HALF("g:gg", minimum(A, B))},
    {"v_maximum_f16", HALF("g:gg", maximum(A, B))},
    {"v_minimum3_f16", HALF("g:ggg", minimum(minimum(A, B), C))},
    {"v_maximum3_f16", HALF("g:ggg", maximum(maximum(A, B), C))},
    {"v_med3_f16", HALF("g:ggg", median(A, B, C, mode))},
    {"v_med3_num_f16", HALF("g:ggg", median(A, B, C, mode))},
    {"v_minmax_f16", HALF("g:ggg", choose(choose(A, B, mode, false), C, mode, true))},
    {"v_maxmin_f16", HALF("g:ggg", choose(choose(A, B, mode, true), C, mode, false))},
    {"v_minmax_num_f16", HALF("g:ggg", choose(choose(A, B, mode, false), C, mode, true))},
    {"v_maxmin_num_f16", HALF("g:ggg", choose(choose(A, B, mode, true), C, mode, false))},
    {"v_minimummaximum_f16", HALF("g:ggg", maximum(minimum(A, B), C))},
    {"v_maximumminimum_f16", HALF("g:ggg", minimum(maximum(A, B), C))},
    {"v_rcp_f16", HALF("g:g", rounded(1 / A.convertToDouble()))},
    {"v_rsq_f16", HALF("g:g", rounded(1 / std::sqrt(A.convertToDouble())))},
    {"v_sqrt_f16", HALF("g:g", rounded(std::sqrt(A.convertToDouble())))},
    {"v_exp_f16", HALF("g:g", rounded(std::exp2(A.convertToDouble())))},
    {"v_log_f16", HALF("g:g", rounded(std::log2(A.convertToDouble())))},
    {"v_sin_f16", HALF("g:g", rounded(std::sin(A.convertToDouble() * 6.283185307179586476925)))},
    {"v_cos_f16", HALF("g:g", rounded(std::cos(A.convertToDouble() * 6.283185307179586476925)))},
    {"v_floor_f16", HALF("g:g", rounded(std::floor(A.convertToDouble())))},
    {"v_ceil_f16", HALF("g:g", rounded(std::ceil(A.convertToDouble())))},
    {"v_trunc_f16", HALF("g:g", rounded(std::trunc(A.convertToDouble())))},
    {"v_rndne_f16", HALF("g:g", rounded(std::nearbyint(A.convertToDouble())))},
    {"v_ldexp_f16", HALF("g:gh", rounded(std::ldexp(A.convertToDouble(), int16_t(s[1]))))},
    {"v_div_fixup_f16", "g:ggg", [](const u64 *s, const Mode &mode) -> Result {
       APFloat denominator = B, numerator = C;
       bool isNegative = denominator.isNegative() != numerator.isNegative();
       auto signedZero = APFloat::getZero(APFloat::IEEEhalf(), isNegative);
       auto infinity = APFloat::getInf(APFloat::IEEEhalf(), isNegative);
       if (numerator.isNaN() || denominator.isNaN())
         return out(numerator.isNaN() ? numerator : denominator, mode);
       if ((numerator.isZero() && denominator.isZero()) || (numerator.isInfinity() && denominator.isInfinity()))
         return out(APFloat::getNaN(APFloat::IEEEhalf()), mode);
       if (denominator.isZero() || numerator.isInfinity())
         return out(infinity, mode);
       if (denominator.isInfinity() || numerator.isZero())
         return out(signedZero, mode);
       APFloat quotient = A;
       quotient.copySign(infinity);
       return out(quotient, mode);
     }},
    {"v_cvt_f16_f32", "g:f", [](const u64 *s, const Mode &mode) {
       return out(rounded(double(single(s[0], mode))), mode);
     }},
    {"v_cvt_f32_f16", "f:g", [](const u64 *s, const Mode &mode) -> Result {
       return {llvm::bit_cast<u32>(float(A.convertToDouble())), false};
     }},
    {"v_cvt_pk_bf16_f32", "u:ff", [](const u64 *s, const Mode &mode) -> Result {
       return {upperHalf(single(s[0], mode)) | upperHalf(single(s[1], mode)) << 16, false};
     }},
    {"v_cvt_pk_f16_f32", "u:ff", [](const u64 *s, const Mode &mode) -> Result {
       u64 halves[2];
       for (unsigned i = 0; i < 2; ++i)
         halves[i] = out(rounded(double(single(s[i], mode))), mode).value;
       return {halves[0] | halves[1] << 16, false};
     }},
    {"v_fma_mix_f32", "f:xxxm", [](const u64 *s, const Mode &mode) -> Result {
       return {llvm::bit_cast<u32>(mix(s, mode)), false};
     }},
    {"v_fma_mixlo_f16", "g:xxxm", [](const u64 *s, const Mode &mode) {
       return out(rounded(double(mix(s, mode))), mode);
     }},
    {"v_fma_mixhi_f16", "g:xxxm", [](const u64 *s, const Mode &mode) {
       return out(rounded(double(mix(s, mode))), mode);
     }},
    {"v_cvt_f16_u16", HALF("g:h", rounded(double(s[0] & 0xFFFF)))},
    {"v_cvt_f16_i16", HALF("g:h", rounded(double(int16_t(s[0]))))},
    {"v_cvt_u16_f16", "h:g", toInt<uint16_t>},
    {"v_cvt_i16_f16", "h:g", toInt<int16_t>},
    {nullptr, nullptr, nullptr}};

} // namespace amdgcn
