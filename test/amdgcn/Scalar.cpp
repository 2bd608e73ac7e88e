// Scalar instructions, and what directs a wave: branches, the mask of lanes, barriers.
#include "Wave.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>
#include <string_view>

namespace amdgcn {

namespace {

/// The result with the condition that it is not zero.
Result nonZero(u64 value) { return {value, value != 0}; }
u64 field(u64 value, u64 control, unsigned width, bool isSigned) {
  unsigned offset = control & (width - 1), bits = control >> 16 & 127;
  if (!bits)
    return 0;
  bits = std::min(bits, width - offset);
  u64 taken = (width == 32 ? u64(u32(value)) : value) >> offset;
  u64 mask = bits >= 64 ? ~u64(0) : (u64(1) << bits) - 1;
  taken &= mask;
  if (isSigned && taken >> (bits - 1) & 1)
    taken |= ~mask;
  return width == 32 ? u32(taken) : taken;
}
/// Bits that say how often the sign stands before another bit, or -1.
u32 leadingSigns(i32 value) {
  return value == 0 || value == -1 ? ~0u : u32(llvm::countl_zero(u32(value < 0 ? ~value : value)));
}

#define OP(expression) [](const u64 *s, const Mode &) -> Result { return expression; }
#define PLAIN(expression) [](const u64 *s, const Mode &) -> Result { return {u64(expression), false}; }

} // namespace

const Op scalarOps[] = {
    {"s_mov_b32", "u:u", PLAIN(s[0])},
    {"s_mov_b64", "w:w", PLAIN(s[0])},
    {"s_movk_i32", "u:k", PLAIN(u32(s[0]))},
    {"s_cmovk_i32", "u:ks+", PLAIN(s[1] ? u32(s[0]) : s[2])},
    {"s_cmov_b32", "u:us+", PLAIN(s[1] ? s[0] : s[2])},
    {"s_cmov_b64", "w:ws+", PLAIN(s[1] ? s[0] : s[2])},
    {"s_cselect_b32", "u:uus", PLAIN(s[2] ? s[0] : s[1])},
    {"s_cselect_b64", "w:wws", PLAIN(s[2] ? s[0] : s[1])},
    {"s_not_b32", "us:u", OP(nonZero(u32(~s[0])))},
    {"s_not_b64", "ws:w", OP(nonZero(~s[0]))},
    {"s_and_b32", "us:uu", OP(nonZero(s[0] & s[1]))},
    {"s_and_b64", "ws:ww", OP(nonZero(s[0] & s[1]))},
    {"s_or_b32", "us:uu", OP(nonZero(s[0] | s[1]))},
    {"s_or_b64", "ws:ww", OP(nonZero(s[0] | s[1]))},
    {"s_xor_b32", "us:uu", OP(nonZero(s[0] ^ s[1]))},
    {"s_xor_b64", "ws:ww", OP(nonZero(s[0] ^ s[1]))},
    {"s_andn2_b32", "us:uu", OP(nonZero(s[0] & u32(~s[1])))},
    {"s_andn2_b64", "ws:ww", OP(nonZero(s[0] & ~s[1]))},
    {"s_orn2_b32", "us:uu", OP(nonZero(u32(s[0] | ~s[1])))},
    {"s_orn2_b64", "ws:ww", OP(nonZero(s[0] | ~s[1]))},
    {"s_nand_b32", "us:uu", OP(nonZero(u32(~(s[0] & s[1]))))},
    {"s_nand_b64", "ws:ww", OP(nonZero(~(s[0] & s[1])))},
    {"s_nor_b32", "us:uu", OP(nonZero(u32(~(s[0] | s[1]))))},
    {"s_nor_b64", "ws:ww", OP(nonZero(~(s[0] | s[1])))},
    {"s_xnor_b32", "us:uu", OP(nonZero(u32(~(s[0] ^ s[1]))))},
    {"s_xnor_b64", "ws:ww", OP(nonZero(~(s[0] ^ s[1])))},
    {"s_lshl_b32", "us:uu", OP(nonZero(u32(s[0] << (s[1] & 31))))},
    {"s_lshl_b64", "ws:wu", OP(nonZero(s[0] << (s[1] & 63)))},
    {"s_lshr_b32", "us:uu", OP(nonZero(u32(s[0]) >> (s[1] & 31)))},
    {"s_lshr_b64", "ws:wu", OP(nonZero(s[0] >> (s[1] & 63)))},
    {"s_ashr_i32", "us:uu", OP(nonZero(u32(i32(s[0]) >> (s[1] & 31))))},
    {"s_ashr_i64", "ws:wu", OP(nonZero(u64(i64(s[0]) >> (s[1] & 63))))},
    {"s_bfm_b32", "u:uu", PLAIN(u32(((1u << (s[0] & 31)) - 1) << (s[1] & 31)))},
    {"s_bfm_b64", "w:uu", PLAIN(((u64(1) << (s[0] & 63)) - 1) << (s[1] & 63))},
    {"s_bfe_u32", "us:uu", OP(nonZero(field(s[0], s[1], 32, false)))},
    {"s_bfe_i32", "us:uu", OP(nonZero(field(s[0], s[1], 32, true)))},
    {"s_bfe_u64", "ws:wu", OP(nonZero(field(s[0], s[1], 64, false)))},
    {"s_bfe_i64", "ws:wu", OP(nonZero(field(s[0], s[1], 64, true)))},
    {"s_add_u32", "us:uu", OP((Result{u32(s[0] + s[1]), u64(u32(s[0])) + u32(s[1]) > 0xFFFFFFFF}))},
    {"s_addc_u32", "us:uus", OP((Result{u32(s[0] + s[1] + s[2]), u64(u32(s[0])) + u32(s[1]) + s[2] > 0xFFFFFFFF}))},
    {"s_sub_u32", "us:uu", OP((Result{u32(s[0] - s[1]), u32(s[1]) > u32(s[0])}))},
    {"s_subb_u32", "us:uus", OP((Result{u32(s[0] - s[1] - s[2]), u64(u32(s[1])) + s[2] > u32(s[0])}))},
    {"s_add_i32", "us:uu", OP((Result{u32(s[0] + s[1]), i64(i32(s[0])) + i32(s[1]) != i32(s[0] + s[1])}))},
    {"s_sub_i32", "us:uu", OP((Result{u32(s[0] - s[1]), i64(i32(s[0])) - i32(s[1]) != i32(s[0] - s[1])}))},
    {"s_addk_i32", "us:+k", OP((Result{u32(s[0] + s[1]), i64(i32(s[0])) + i32(s[1]) != i32(s[0] + s[1])}))},
    {"s_mulk_i32", "u:+k", PLAIN(u32(s[0] * s[1]))},
    {"s_add_u64", "w:ww", PLAIN(s[0] + s[1])},
    {"s_sub_u64", "w:ww", PLAIN(s[0] - s[1])},
    {"s_mul_u64", "w:ww", PLAIN(s[0] * s[1])},
    {"s_mul_i32", "u:uu", PLAIN(u32(s[0] * s[1]))},
    {"s_mul_hi_u32", "u:uu", PLAIN((u64(u32(s[0])) * u32(s[1])) >> 32)},
    {"s_mul_hi_i32", "u:uu", PLAIN(u32(u64(i64(i32(s[0])) * i32(s[1])) >> 32))},
    {"s_lshl1_add_u32", "us:uu", OP((Result{u32((s[0] << 1) + s[1]), (u64(u32(s[0])) << 1) + u32(s[1]) > 0xFFFFFFFF}))},
    {"s_lshl2_add_u32", "us:uu", OP((Result{u32((s[0] << 2) + s[1]), (u64(u32(s[0])) << 2) + u32(s[1]) > 0xFFFFFFFF}))},
    {"s_lshl3_add_u32", "us:uu", OP((Result{u32((s[0] << 3) + s[1]), (u64(u32(s[0])) << 3) + u32(s[1]) > 0xFFFFFFFF}))},
    {"s_lshl4_add_u32", "us:uu", OP((Result{u32((s[0] << 4) + s[1]), (u64(u32(s[0])) << 4) + u32(s[1]) > 0xFFFFFFFF}))},
    {"s_min_i32", "us:uu", OP((Result{u32(std::min(i32(s[0]), i32(s[1]))), i32(s[0]) < i32(s[1])}))},
    {"s_max_i32", "us:uu", OP((Result{u32(std::max(i32(s[0]), i32(s[1]))), i32(s[0]) > i32(s[1])}))},
    {"s_min_u32", "us:uu", OP((Result{std::min(u32(s[0]), u32(s[1])), u32(s[0]) < u32(s[1])}))},
    {"s_max_u32", "us:uu", OP((Result{std::max(u32(s[0]), u32(s[1])), u32(s[0]) > u32(s[1])}))},
    {"s_abs_i32", "us:u", OP(nonZero(u32(i32(s[0]) < 0 ? -u32(s[0]) : u32(s[0]))))},
    {"s_absdiff_i32", "us:uu", OP(nonZero(u32(i32(s[0]) > i32(s[1]) ? s[0] - s[1] : s[1] - s[0])))},
    {"s_sext_i32_i8", "u:u", PLAIN(u32(int8_t(s[0])))},
    {"s_sext_i32_i16", "u:u", PLAIN(u32(int16_t(s[0])))},
    {"s_brev_b32", "u:u", PLAIN(llvm::reverseBits(u32(s[0])))},
    {"s_brev_b64", "w:w", PLAIN(llvm::reverseBits(s[0]))},
    {"s_bcnt1_i32_b32", "us:u", OP(nonZero(u64(llvm::popcount(u32(s[0])))))},
    {"s_bcnt1_i32_b64", "us:w", OP(nonZero(u64(llvm::popcount(s[0]))))},
    {"s_ff1_i32_b32", "u:u", PLAIN(u32(s[0]) ? u32(llvm::countr_zero(u32(s[0]))) : ~0u)},
    {"s_ff1_i32_b64", "u:w", PLAIN(s[0] ? u32(llvm::countr_zero(s[0])) : ~0u)},
    {"s_flbit_i32_b32", "u:u", PLAIN(u32(s[0]) ? u32(llvm::countl_zero(u32(s[0]))) : ~0u)},
    {"s_flbit_i32_b64", "u:w", PLAIN(s[0] ? u32(llvm::countl_zero(s[0])) : ~0u)},
    {"s_flbit_i32", "u:u", PLAIN(leadingSigns(i32(s[0])))},
    {"s_bitset0_b32", "u:u+", PLAIN(u32(s[1] & ~(u64(1) << (s[0] & 31))))},
    {"s_bitset1_b32", "u:u+", PLAIN(u32(s[1] | u64(1) << (s[0] & 31)))},
    {"s_bitset0_b64", "w:u+", PLAIN(s[1] & ~(u64(1) << (s[0] & 63)))},
    {"s_bitset1_b64", "w:u+", PLAIN(s[1] | u64(1) << (s[0] & 63))},
    {"s_bitcmp0_b32", "s:uu", OP((Result{0, !(s[0] >> (s[1] & 31) & 1)}))},
    {"s_bitcmp1_b32", "s:uu", OP((Result{0, bool(s[0] >> (s[1] & 31) & 1)}))},
    {"s_bitcmp0_b64", "s:wu", OP((Result{0, !(s[0] >> (s[1] & 63) & 1)}))},
    {"s_bitcmp1_b64", "s:wu", OP((Result{0, bool(s[0] >> (s[1] & 63) & 1)}))},
    {"s_bitreplicate_b64_b32", "w:u", [](const u64 *s, const Mode &) -> Result {
       u64 twice = 0;
       for (unsigned i = 0; i < 32; ++i)
         twice |= (s[0] >> i & 1) * 3 << 2 * i;
       return {twice, false};
     }},
    {"s_pack_ll_b32_b16", "u:uu", PLAIN((s[0] & 0xFFFF) | (s[1] & 0xFFFF) << 16)},
    {"s_pack_lh_b32_b16", "u:uu", PLAIN((s[0] & 0xFFFF) | (s[1] & 0xFFFF0000))},
    {"s_pack_hh_b32_b16", "u:uu", PLAIN((s[0] >> 16 & 0xFFFF) | (s[1] & 0xFFFF0000))},
    {"s_pack_hl_b32_b16", "u:uu", PLAIN((s[0] >> 16 & 0xFFFF) | (s[1] & 0xFFFF) << 16)},
    {nullptr, nullptr, nullptr}};

namespace {

/// Names of gfx11 and gfx12 for what others call differently.
std::string olderName(const std::string &name) {
  static const struct {
    const char *newer, *older;
  } names[] = {{"s_and_not1_", "s_andn2_"},   {"s_or_not1_", "s_orn2_"},      {"s_ctz_i32_", "s_ff1_i32_"},
               {"s_clz_i32_u32", "s_flbit_i32_b32"}, {"s_clz_i32_u64", "s_flbit_i32_b64"}, {"s_cls_i32", "s_flbit_i32"},
               {"s_add_co_ci_u32", "s_addc_u32"}, {"s_add_co_u32", "s_add_u32"}, {"s_add_co_i32", "s_add_i32"},
               {"s_sub_co_ci_u32", "s_subb_u32"}, {"s_sub_co_u32", "s_sub_u32"}, {"s_sub_co_i32", "s_sub_i32"},
               {"s_addk_co_i32", "s_addk_i32"},   {"s_add_nc_u64", "s_add_u64"}, {"s_sub_nc_u64", "s_sub_u64"}};
  for (const auto &row : names)
    if (!name.compare(0, std::strlen(row.newer), row.newer))
      return row.older + name.substr(std::strlen(row.newer));
  return name;
}

Value readSource(Wave &wave, const Operand &operand, char letter) {
  unsigned width = widthOf(letter);
  Value value;
  if (operand.kind == Operand::Kind::Scalar)
    value = wave.scalar(operand, width == 64 ? 2 : 1);
  else if (operand.kind == Operand::Kind::Condition)
    value = {wave.condition, wave.isConditionUnknown ? 1u : 0u};
  else if (operand.kind == Operand::Kind::Name || operand.kind == Operand::Kind::Vector)
    wave.fail("an operand is not known");
  else if (letter == 'k')
    value.bits = uint64_t(int64_t(int16_t(operand.integer)));
  else
    value.bits = constantBits(operand, letter);
  if (width == 32)
    value.bits = u32(value.bits);
  return value;
}

void runOp(Wave &wave, const Instruction &what, const Op &op) {
  std::string_view form = op.form;
  size_t colon = form.find(':'), next = 0;
  std::string_view results = form.substr(0, colon), letters = form.substr(colon + 1);
  const Operand *destination = nullptr;
  if (results[0] != 's')
    destination = &what.operands[next++];
  Value sources[6];
  unsigned count = 0;
  for (char letter : letters) {
    if (letter == 's') {
      sources[count++] = {wave.condition, wave.isConditionUnknown ? 1u : 0u};
      continue;
    }
    if (letter != '+' && next == what.operands.size())
      return wave.fail("there are too few operands");
    const Operand &operand = letter == '+' ? *destination : what.operands[next++];
    Value value = readSource(wave, operand, letter == '+' ? results[0] : letter);
    if (isFloatLetter(letter)) {
      uint64_t sign = uint64_t(1) << (widthOf(letter) - 1);
      if (operand.isAbsolute)
        value.bits &= ~sign;
      if (operand.isNegated)
        value.bits ^= sign;
    }
    sources[count++] = value;
  }
  if (next != what.operands.size())
    return wave.fail("there are more operands than are understood");
  bool flag, isFlagUnknown;
  Value value = evaluate(op.function, sources, count, wave.mode, flag, isFlagUnknown);
  if (destination)
    wave.setScalar(*destination, widthOf(results[0]) == 64 ? 2 : 1, value);
  if (results.back() == 's') {
    wave.condition = flag;
    wave.isConditionUnknown = isFlagUnknown;
  }
}

/// s_and_saveexec_b64 and the like.
void saveExec(Wave &wave, const Instruction &what, const std::string &kind, unsigned words) {
  Operand exec;
  exec.kind = Operand::Kind::Scalar;
  exec.place = execPlace;
  Value old = wave.scalar(exec, words), source = readSource(wave, what.operands[1], words == 2 ? 'w' : 'u'), made;
  auto set = [&](uint64_t bits) { made = {bits, source.unknown | old.unknown}; };
  uint64_t s = source.bits, e = old.bits;
  if (kind == "and")
    set(s & e);
  else if (kind == "or")
    set(s | e);
  else if (kind == "xor")
    set(s ^ e);
  else if (kind == "andn2" || kind == "and_not1")
    set(s & ~e);
  else if (kind == "andn1" || kind == "and_not0")
    set(~s & e);
  else if (kind == "orn2" || kind == "or_not1")
    set(s | ~e);
  else if (kind == "orn1" || kind == "or_not0")
    set(~s | e);
  else
    return wave.fail("the mask of lanes is changed in no known way");
  if (kind == "and" || kind == "andn1" || kind == "and_not0")
    made.unknown &= (source.unknown & (e | old.unknown)) | old.unknown;
  if (words == 1)
    made.bits = u32(made.bits), made.unknown = u32(made.unknown);
  wave.setScalar(exec, words, made);
  wave.setScalar(what.operands[0], words, old);
  wave.condition = made.bits != 0;
  wave.isConditionUnknown = made.unknown != 0;
}

void branch(Wave &wave, const Instruction &what, const std::string &when, bool &jumped) {
  auto isAny = [&](unsigned place) {
    Operand operand;
    operand.kind = Operand::Kind::Scalar;
    operand.place = uint16_t(place);
    Value value = wave.mask(operand);
    if (value.unknown)
      wave.fail("a branch depends on what nobody has written");
    return value.bits != 0;
  };
  bool isTaken = true;
  if (when == "scc0" || when == "scc1") {
    if (wave.isConditionUnknown)
      wave.fail("a branch depends on what nobody has written");
    isTaken = wave.condition == (when == "scc1");
  } else if (when == "vccz" || when == "vccnz") {
    isTaken = isAny(vccPlace) == (when == "vccnz");
  } else if (when == "execz" || when == "execnz") {
    isTaken = isAny(execPlace) == (when == "execnz");
  } else if (!when.empty()) {
    wave.fail("a branch has no known condition");
  }
  if (!isTaken)
    return;
  wave.pc = what.next + uint64_t(int64_t(int16_t(what.operands[0].integer)) * 4);
  jumped = true;
}

/// s_setreg and its kin may set how floats round.
void setRegister(Wave &wave, const Instruction &what, bool &isKnown) {
  const std::string &name = what.name;
  isKnown = true;
  if (name == "s_denorm_mode") {
    wave.mode.flush32 = (what.operands[0].integer & 3) != 3;
    wave.mode.flush64 = (what.operands[0].integer >> 2 & 3) != 3;
    return;
  }
  if (name == "s_setreg_imm32_b32" && what.operands[0].kind == Operand::Kind::Name) {
    int offset = 0, width = 0;
    if (std::sscanf(what.operands[0].name.c_str(), "hwreg(HW_REG_MODE, %d, %d)", &offset, &width) == 2 ||
        std::sscanf(what.operands[0].name.c_str(), "hwreg(HW_REG_MODE,%d,%d)", &offset, &width) == 2) {
      int64_t bits = what.operands[1].integer;
      if (offset == 4 && width == 2)
        wave.mode.flush32 = (bits & 3) != 3;
      else if (offset == 4 && width == 4)
        wave.mode.flush32 = (bits & 3) != 3, wave.mode.flush64 = (bits >> 2 & 3) != 3;
      else if (offset == 6 && width == 2)
        wave.mode.flush64 = (bits & 3) != 3;
      else
        isKnown = false;
      return;
    }
  }
  isKnown = false;
}

bool startsWith(const std::string &text, const char *start) { return !text.compare(0, std::strlen(start), start); }

/// What a program may do without any effect here: waits, hints and caches, for memory is one.
bool isIdle(const std::string &name) {
  for (const char *start : {"s_wait", "s_nop", "s_delay_alu", "s_clause", "s_sleep", "s_inst_prefetch",
                            "s_set_inst_prefetch", "s_setprio", "buffer_gl", "buffer_inv", "buffer_wb", "global_inv",
                            "global_wb", "s_dcache", "s_icache"})
    if (startsWith(name, start))
      return true;
  return false;
}

void signalBarrier(Wave &wave) {
  Group &group = *wave.group;
  wave.barrier = group.numBarriers + 1;
  ++group.numSignalled;
  group.release();
}

} // namespace

bool runScalar(Wave &wave, const Instruction &what, bool &jumped) {
  const std::string &name = what.name;
  if (isIdle(name))
    return true;
  // Float functions of one value, on gfx12.
  if (startsWith(name, "v_s_")) {
    const Op *op = findOp("v_" + name.substr(4));
    if (op)
      runOp(wave, what, *op);
    return op;
  }
  if (name[0] != 's' || name[1] != '_')
    return false;
  if (startsWith(name, "s_load") || startsWith(name, "s_buffer"))
    return false;
  if (name == "s_endpgm") {
    wave.isDone = true;
    return true;
  }
  if (startsWith(name, "s_sendmsg")) {
    if (what.text.find("DEALLOC_VGPRS") == std::string::npos)
      wave.fail("a message is sent that nobody takes");
    return true;
  }
  bool isBarrier = name == "s_barrier";
  if (isBarrier || name == "s_barrier_signal")
    signalBarrier(wave);
  if (isBarrier || name == "s_barrier_wait")
    wave.isWaiting = true;
  if (startsWith(name, "s_barrier")) {
    if (!isBarrier &&
        ((what.text.find("-1") == std::string::npos && what.text.find("0xffff") == std::string::npos) || !wave.barrier))
      wave.fail("a barrier is waited for that is not the block's, or was not signalled");
    return true;
  }
  if (name == "s_branch" || startsWith(name, "s_cbranch_"))
    return branch(wave, what, name == "s_branch" ? "" : name.substr(10), jumped), true;
  if (name == "s_getpc_b64") {
    wave.setScalar(what.operands[0], 2, {what.next, 0});
    return true;
  }
  if (name == "s_setpc_b64" || name == "s_swappc_b64") {
    Value target = wave.scalar(what.operands.back(), 2);
    if (target.unknown)
      wave.fail("a jump's target is what nobody has written");
    if (name == "s_swappc_b64")
      wave.setScalar(what.operands[0], 2, {what.next, 0});
    wave.pc = target.bits;
    return jumped = true;
  }
  size_t saves = name.find("_saveexec_b");
  if (saves != std::string::npos)
    return saveExec(wave, what, name.substr(2, saves - 2), name.back() == '4' ? 2 : 1), true;
  bool isMode = false;
  setRegister(wave, what, isMode);
  if (isMode)
    return true;
  if (startsWith(name, "s_cmp_") || startsWith(name, "s_cmpk_")) {
    size_t kind = name.find('_', 2) + 1, type = name.rfind('_') + 1;
    Function function = findComparison(name.substr(kind, type - 1 - kind), name.substr(type));
    std::string typeName = name.substr(type);
    const char *form = startsWith(name, "s_cmpk") ? "s:uk" : typeName == "f32" ? "s:ff" : typeName == "f16" ? "s:gg"
                       : typeName == "u64" ? "s:ww" : "s:uu";
    if (!function)
      return false;
    return runOp(wave, what, {"", form, function}), true;
  }
  const Op *op = findOp(olderName(name));
  // Float operations of gfx11.5 and gfx12 do what those of lanes do.
  if (!op && name.size() > 4)
    op = findOp("v_" + name.substr(2));
  if (!op)
    return false;
  runOp(wave, what, *op);
  return true;
}

} // namespace amdgcn
