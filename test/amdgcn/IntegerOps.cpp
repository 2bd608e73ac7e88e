// Operations of lanes on integers and bits, by the ISA manuals.
#include "Wave.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace amdgcn {

namespace {

u32 u24(u64 value) { return value & 0xFFFFFF; }
i32 i24(u64 value) { return i32(u32(value) << 8) >> 8; }

template <typename T> T median(T a, T b, T c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }

u32 saturateSigned(i64 value) { return u32(std::clamp<i64>(value, INT32_MIN, INT32_MAX)); }

u32 permute(u32 high, u32 low, u32 selector) {
  u64 both = u64(high) << 32 | low;
  u32 made = 0;
  for (unsigned i = 0; i < 4; ++i) {
    u32 select = selector >> 8 * i & 255, byte;
    if (select >= 13)
      byte = 0xFF;
    else if (select == 12)
      byte = 0;
    else if (select >= 8) // the sign of a half
      byte = both >> (16 * (select - 8) + 15) & 1 ? 0xFF : 0;
    else
      byte = both >> 8 * select & 0xFF;
    made |= byte << 8 * i;
  }
  return made;
}

/// Each bit by a table of eight: the first source's bit is the number's highest.
u32 byTable(u32 a, u32 b, u32 c, u32 table) {
  u32 made = 0;
  for (unsigned row = 0; row < 8; ++row)
    if (table >> row & 1)
      made |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  return made;
}

/// How often the sign stands before another bit, or -1.
u32 signs(i32 value) {
  return value == 0 || value == -1 ? ~0u : u32(llvm::countl_zero(u32(value < 0 ? ~value : value)));
}

u32 below(u64 mask, unsigned lane) { return u32(llvm::popcount(mask & ((u64(1) << lane) - 1))); }

#define PLAIN(expression) [](const u64 *s, const Mode &) -> Result { return {u64(expression), false}; }
#define FLAGGED(expression, flag) [](const u64 *s, const Mode &) -> Result { return {u64(expression), bool(flag)}; }

template <typename T> Result less(const u64 *s, const Mode &) { return {0, T(s[0]) < T(s[1])}; }
template <typename T> Result equal(const u64 *s, const Mode &) { return {0, T(s[0]) == T(s[1])}; }
template <typename T> Result lessOrEqual(const u64 *s, const Mode &) { return {0, T(s[0]) <= T(s[1])}; }
template <typename T> Result greater(const u64 *s, const Mode &) { return {0, T(s[0]) > T(s[1])}; }
template <typename T> Result different(const u64 *s, const Mode &) { return {0, T(s[0]) != T(s[1])}; }
template <typename T> Result greaterOrEqual(const u64 *s, const Mode &) { return {0, T(s[0]) >= T(s[1])}; }

template <typename T> Function integerComparison(const std::string &kind) {
  return kind == "lt" ? less<T> : kind == "eq" ? equal<T> : kind == "le" ? lessOrEqual<T> : kind == "gt" ? greater<T>
         : kind == "ne" || kind == "lg" ? different<T> : kind == "ge" ? greaterOrEqual<T> : Function(nullptr);
}

} // namespace

Function findFloatComparison(const std::string &kind, const std::string &type);

Function findComparison(const std::string &kind, const std::string &type) {
  if (type == "u16")
    return integerComparison<u16>(kind);
  if (type == "i16")
    return integerComparison<i16>(kind);
  if (type == "u32")
    return integerComparison<u32>(kind);
  if (type == "i32")
    return integerComparison<i32>(kind);
  if (type == "u64")
    return integerComparison<u64>(kind);
  if (type == "i64")
    return integerComparison<i64>(kind);
  return findFloatComparison(kind, type);
}

const Op integerOps[] = {
    // Moves and choices.
    {"v_mov_b32", "u:u", PLAIN(s[0])},
    {"v_mov_b64", "w:w", PLAIN(s[0])},
    {"v_mov_b16", "h:h", PLAIN(s[0])},
    {"v_accvgpr_read_b32", "u:u", PLAIN(s[0])},
    {"v_accvgpr_write_b32", "u:u", PLAIN(s[0])},
    {"v_accvgpr_mov_b32", "u:u", PLAIN(s[0])},
    {"v_cndmask_b32", "f:ffc", PLAIN(s[2] ? s[1] : s[0])},
    {"v_cndmask_b16", "g:ggc", PLAIN(s[2] ? s[1] : s[0])},
    // Bits.
    {"v_not_b32", "u:u", PLAIN(u32(~s[0]))},
    {"v_not_b16", "h:h", PLAIN(u16(~s[0]))},
    {"v_and_b32", "u:uu", PLAIN(s[0] & s[1])},
    {"v_or_b32", "u:uu", PLAIN(s[0] | s[1])},
    {"v_xor_b32", "u:uu", PLAIN(s[0] ^ s[1])},
    {"v_xnor_b32", "u:uu", PLAIN(u32(~(s[0] ^ s[1])))},
    {"v_and_b16", "h:hh", PLAIN(s[0] & s[1])},
    {"v_or_b16", "h:hh", PLAIN(s[0] | s[1])},
    {"v_xor_b16", "h:hh", PLAIN(s[0] ^ s[1])},
    {"v_and_or_b32", "u:uuu", PLAIN((s[0] & s[1]) | s[2])},
    {"v_or3_b32", "u:uuu", PLAIN(s[0] | s[1] | s[2])},
    {"v_xor3_b32", "u:uuu", PLAIN(s[0] ^ s[1] ^ s[2])},
    {"v_bfi_b32", "u:uuu", PLAIN((s[0] & s[1]) | (u32(~s[0]) & s[2]))},
    {"v_bitop3_b32", "u:uuut", PLAIN(byTable(u32(s[0]), u32(s[1]), u32(s[2]), u32(s[3])))},
    {"v_bitop3_b16", "h:hhht", PLAIN(u16(byTable(u32(s[0]), u32(s[1]), u32(s[2]), u32(s[3]))))},
    {"v_bfrev_b32", "u:u", PLAIN(llvm::reverseBits(u32(s[0])))},
    {"v_ffbh_u32", "u:u", PLAIN(u32(s[0]) ? u32(llvm::countl_zero(u32(s[0]))) : ~0u)},
    {"v_clz_i32_u32", "u:u", PLAIN(u32(s[0]) ? u32(llvm::countl_zero(u32(s[0]))) : ~0u)},
    {"v_ffbh_i32", "u:u", PLAIN(signs(i32(s[0])))},
    {"v_cls_i32", "u:u", PLAIN(signs(i32(s[0])))},
    {"v_ffbl_b32", "u:u", PLAIN(u32(s[0]) ? u32(llvm::countr_zero(u32(s[0]))) : ~0u)},
    {"v_ctz_i32_b32", "u:u", PLAIN(u32(s[0]) ? u32(llvm::countr_zero(u32(s[0]))) : ~0u)},
    {"v_bcnt_u32_b32", "u:uu", PLAIN(u32(u32(llvm::popcount(u32(s[0]))) + s[1]))},
    {"v_mbcnt_lo_u32_b32", "u:uul", PLAIN(u32(below(u32(s[0]), unsigned(s[2])) + s[1]))},
    {"v_mbcnt_hi_u32_b32", "u:uul", PLAIN(u32((s[2] < 32 ? 0 : below(u32(s[0]), unsigned(s[2] - 32))) + s[1]))},
    {"v_bfm_b32", "u:uu", PLAIN(u32(((1u << (s[0] & 31)) - 1) << (s[1] & 31)))},
    {"v_bfe_u32", "u:uuu", PLAIN(u32(s[0]) >> (s[1] & 31) & ((1u << (s[2] & 31)) - 1))},
    {"v_bfe_i32", "u:uuu", [](const u64 *s, const Mode &) -> Result {
       unsigned width = s[2] & 31;
       if (!width)
         return {0, false};
       u32 taken = u32(i32(s[0]) >> (s[1] & 31));
       return {u32(i32(taken << (32 - width)) >> (32 - width)), false};
     }},
    {"v_perm_b32", "u:uuu", PLAIN(permute(u32(s[0]), u32(s[1]), u32(s[2])))},
    {"v_alignbit_b32", "u:uuu", PLAIN(u32((u64(u32(s[0])) << 32 | u32(s[1])) >> (s[2] & 31)))},
    {"v_alignbyte_b32", "u:uuu", PLAIN(u32((u64(u32(s[0])) << 32 | u32(s[1])) >> 8 * (s[2] & 3)))},
    // Shifts.
    {"v_lshlrev_b32", "u:uu", PLAIN(u32(s[1] << (s[0] & 31)))},
    {"v_lshrrev_b32", "u:uu", PLAIN(u32(s[1]) >> (s[0] & 31))},
    {"v_ashrrev_i32", "u:uu", PLAIN(u32(i32(s[1]) >> (s[0] & 31)))},
    {"v_lshlrev_b16", "h:hh", PLAIN(u16(s[1] << (s[0] & 15)))},
    {"v_lshrrev_b16", "h:hh", PLAIN(u16(s[1]) >> (s[0] & 15))},
    {"v_ashrrev_i16", "h:hh", PLAIN(u16(i16(s[1]) >> (s[0] & 15)))},
    {"v_lshlrev_b64", "w:uw", PLAIN(s[1] << (s[0] & 63))},
    {"v_lshrrev_b64", "w:uw", PLAIN(s[1] >> (s[0] & 63))},
    {"v_ashrrev_i64", "w:uw", PLAIN(i64(s[1]) >> (s[0] & 63))},
    {"v_lshl_add_u32", "u:uuu", PLAIN(u32((s[0] << (s[1] & 31)) + s[2]))},
    {"v_add_lshl_u32", "u:uuu", PLAIN(u32((s[0] + s[1]) << (s[2] & 31)))},
    {"v_lshl_or_b32", "u:uuu", PLAIN(u32((s[0] << (s[1] & 31)) | s[2]))},
    {"v_lshl_add_u64", "w:wuw", PLAIN((s[0] << (s[1] & 7)) + s[2])},
    // Sums.
    {"v_add_nc_u32", "u:uu", PLAIN(u32(s[0] + s[1]))},
    {"v_add_nc_u32 clamp", "u:uu", PLAIN(std::min<u64>(u64(u32(s[0])) + u32(s[1]), 0xFFFFFFFF))},
    {"v_sub_nc_u32", "u:uu", PLAIN(u32(s[0] - s[1]))},
    {"v_sub_nc_u32 clamp", "u:uu", PLAIN(u32(s[0]) < u32(s[1]) ? 0 : u32(s[0] - s[1]))},
    {"v_subrev_nc_u32", "u:uu", PLAIN(u32(s[1] - s[0]))},
    {"v_subrev_nc_u32 clamp", "u:uu", PLAIN(u32(s[1]) < u32(s[0]) ? 0 : u32(s[1] - s[0]))},
    {"v_add_nc_i32", "u:uu", PLAIN(u32(s[0] + s[1]))},
    {"v_add_nc_i32 clamp", "u:uu", PLAIN(saturateSigned(i64(i32(s[0])) + i32(s[1])))},
    {"v_sub_nc_i32", "u:uu", PLAIN(u32(s[0] - s[1]))},
    {"v_sub_nc_i32 clamp", "u:uu", PLAIN(saturateSigned(i64(i32(s[0])) - i32(s[1])))},
    {"v_add_nc_u64", "w:ww", PLAIN(s[0] + s[1])},
    {"v_sub_nc_u64", "w:ww", PLAIN(s[0] - s[1])},
    {"v_add3_u32", "u:uuu", PLAIN(u32(s[0] + s[1] + s[2]))},
    {"v_xad_u32", "u:uuu", PLAIN(u32((s[0] ^ s[1]) + s[2]))},
    {"v_add_co_u32", "uC:uu", FLAGGED(u32(s[0] + s[1]), u64(u32(s[0])) + u32(s[1]) > 0xFFFFFFFF)},
    {"v_sub_co_u32", "uC:uu", FLAGGED(u32(s[0] - s[1]), u32(s[1]) > u32(s[0]))},
    {"v_subrev_co_u32", "uC:uu", FLAGGED(u32(s[1] - s[0]), u32(s[0]) > u32(s[1]))},
    {"v_add_co_ci_u32", "uC:uuc", FLAGGED(u32(s[0] + s[1] + s[2]), u64(u32(s[0])) + u32(s[1]) + s[2] > 0xFFFFFFFF)},
    {"v_sub_co_ci_u32", "uC:uuc", FLAGGED(u32(s[0] - s[1] - s[2]), u64(u32(s[1])) + s[2] > u32(s[0]))},
    {"v_subrev_co_ci_u32", "uC:uuc", FLAGGED(u32(s[1] - s[0] - s[2]), u64(u32(s[0])) + s[2] > u32(s[1]))},
    {"v_add_nc_u16", "h:hh", PLAIN(u16(s[0] + s[1]))},
    {"v_sub_nc_u16", "h:hh", PLAIN(u16(s[0] - s[1]))},
    {"v_subrev_nc_u16", "h:hh", PLAIN(u16(s[1] - s[0]))},
    {"v_add_nc_i16", "h:hh", PLAIN(u16(s[0] + s[1]))},
    {"v_sub_nc_i16", "h:hh", PLAIN(u16(s[0] - s[1]))},
    // Products.
    {"v_mul_lo_u32", "u:uu", PLAIN(u32(s[0] * s[1]))},
    {"v_mul_hi_u32", "u:uu", PLAIN(u64(u32(s[0])) * u32(s[1]) >> 32)},
    {"v_mul_hi_i32", "u:uu", PLAIN(u32(u64(i64(i32(s[0])) * i32(s[1])) >> 32))},
    {"v_mul_lo_u16", "h:hh", PLAIN(u16(s[0] * s[1]))},
    {"v_mul_u32_u24", "u:uu", PLAIN(u32(u64(u24(s[0])) * u24(s[1])))},
    {"v_mul_i32_i24", "u:uu", PLAIN(u32(i64(i24(s[0])) * i24(s[1])))},
    {"v_mul_hi_u32_u24", "u:uu", PLAIN(u64(u24(s[0])) * u24(s[1]) >> 32)},
    {"v_mul_hi_i32_i24", "u:uu", PLAIN(u32(u64(i64(i24(s[0])) * i24(s[1])) >> 32))},
    {"v_mad_u32_u24", "u:uuu", PLAIN(u32(u64(u24(s[0])) * u24(s[1]) + s[2]))},
    {"v_mad_i32_i24", "u:uuu", PLAIN(u32(u64(i64(i24(s[0])) * i24(s[1])) + s[2]))},
    {"v_mad_u16", "h:hhh", PLAIN(u16(s[0] * s[1] + s[2]))},
    {"v_mad_i16", "h:hhh", PLAIN(u16(s[0] * s[1] + s[2]))},
    {"v_mad_legacy_u16", "h:hhh", PLAIN(u16(s[0] * s[1] + s[2]))},
    {"v_mad_u32_u16", "u:hhu", PLAIN(u32(s[0] * s[1] + s[2]))},
    {"v_mad_i32_i16", "u:hhu", PLAIN(u32(u64(i64(i16(s[0])) * i16(s[1])) + s[2]))},
    {"v_mad_u64_u32", "wC:uuw", [](const u64 *s, const Mode &) -> Result {
       u64 product = u64(u32(s[0])) * u32(s[1]);
       return {product + s[2], product + s[2] < product};
     }},
    {"v_mad_i64_i32", "wC:uuw", [](const u64 *s, const Mode &) -> Result {
       i64 product = i64(i32(s[0])) * i32(s[1]), sum;
       bool overflows = __builtin_add_overflow(product, i64(s[2]), &sum);
       return {u64(sum), overflows};
     }},
    {"v_sad_u32", "u:uuu", PLAIN(u32((u32(s[0]) > u32(s[1]) ? s[0] - s[1] : s[1] - s[0]) + s[2]))},
    // Least, greatest and in between.
    {"v_min_i32", "u:uu", PLAIN(u32(std::min(i32(s[0]), i32(s[1]))))},
    {"v_max_i32", "u:uu", PLAIN(u32(std::max(i32(s[0]), i32(s[1]))))},
    {"v_min_u32", "u:uu", PLAIN(std::min(u32(s[0]), u32(s[1])))},
    {"v_max_u32", "u:uu", PLAIN(std::max(u32(s[0]), u32(s[1])))},
    {"v_min_i16", "h:hh", PLAIN(u16(std::min(i16(s[0]), i16(s[1]))))},
    {"v_max_i16", "h:hh", PLAIN(u16(std::max(i16(s[0]), i16(s[1]))))},
    {"v_min_u16", "h:hh", PLAIN(std::min(u16(s[0]), u16(s[1])))},
    {"v_max_u16", "h:hh", PLAIN(std::max(u16(s[0]), u16(s[1])))},
    {"v_min_i64", "w:ww", PLAIN(std::min(i64(s[0]), i64(s[1])))},
    {"v_max_i64", "w:ww", PLAIN(std::max(i64(s[0]), i64(s[1])))},
    {"v_min_u64", "w:ww", PLAIN(std::min(s[0], s[1]))},
    {"v_max_u64", "w:ww", PLAIN(std::max(s[0], s[1]))},
    {"v_min3_i32", "u:uuu", PLAIN(u32(std::min({i32(s[0]), i32(s[1]), i32(s[2])})))},
    {"v_max3_i32", "u:uuu", PLAIN(u32(std::max({i32(s[0]), i32(s[1]), i32(s[2])})))},
    {"v_min3_u32", "u:uuu", PLAIN(std::min({u32(s[0]), u32(s[1]), u32(s[2])}))},
    {"v_max3_u32", "u:uuu", PLAIN(std::max({u32(s[0]), u32(s[1]), u32(s[2])}))},
    {"v_min3_i16", "h:hhh", PLAIN(u16(std::min({i16(s[0]), i16(s[1]), i16(s[2])})))},
    {"v_max3_i16", "h:hhh", PLAIN(u16(std::max({i16(s[0]), i16(s[1]), i16(s[2])})))},
    {"v_min3_u16", "h:hhh", PLAIN(std::min({u16(s[0]), u16(s[1]), u16(s[2])}))},
    {"v_max3_u16", "h:hhh", PLAIN(std::max({u16(s[0]), u16(s[1]), u16(s[2])}))},
    {"v_med3_i32", "u:uuu", PLAIN(u32(median(i32(s[0]), i32(s[1]), i32(s[2]))))},
    {"v_med3_u32", "u:uuu", PLAIN(median(u32(s[0]), u32(s[1]), u32(s[2])))},
    {"v_med3_i16", "h:hhh", PLAIN(u16(median(i16(s[0]), i16(s[1]), i16(s[2]))))},
    {"v_med3_u16", "h:hhh", PLAIN(median(u16(s[0]), u16(s[1]), u16(s[2])))},
    {"v_maxmin_i32", "u:uuu", PLAIN(u32(std::min(std::max(i32(s[0]), i32(s[1])), i32(s[2]))))},
    {"v_minmax_i32", "u:uuu", PLAIN(u32(std::max(std::min(i32(s[0]), i32(s[1])), i32(s[2]))))},
    {"v_maxmin_u32", "u:uuu", PLAIN(std::min(std::max(u32(s[0]), u32(s[1])), u32(s[2])))},
    {"v_minmax_u32", "u:uuu", PLAIN(std::max(std::min(u32(s[0]), u32(s[1])), u32(s[2])))},
    // Packing.
    {"v_pack_b32_f16", "u:gg", PLAIN(s[0] | s[1] << 16)},
    {nullptr, nullptr, nullptr}};

} // namespace amdgcn
