//===----------------------------------------------------------------------===//
// Intrinsics of AMDGCN other than lane moves: work-item numbers, ballots,
// barriers, hints, and single-lane arithmetic.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Compile.h"
#include "codegen/sim/Wave.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include <cmath>

using namespace llvm;

namespace qd::sim {

namespace {

void workItem(Wave &w, const Op &op) {
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) { out[l] = w.tid[op.sub][l]; });
  w.setPoison(op.dst, 0);
}

void workGroup(Wave &w, const Op &op) {
  uint64_t *out = w.out(op.dst), value = w.block.id[op.sub];
  w.each([&](unsigned l) { out[l] = value; });
  w.setPoison(op.dst, 0);
}

void waveId(Wave &w, const Op &op) {
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) { out[l] = w.index; });
  w.setPoison(op.dst, 0);
}

void time(Wave &w, const Op &op) {
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) { out[l] = w.launch.executed; });
  w.setPoison(op.dst, 0);
}

/// The bits of the mask below the lane, in its low (sub 0) or high word.
void maskedCount(Wave &w, const Op &op) {
  const uint64_t *bits = w.val(op.a), *start = w.val(op.b);
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) {
    uint64_t below = (uint64_t(1) << l) - 1;
    out[l] = (start[l] + popcount(bits[l] & (op.sub ? below >> 32 : below & 0xffffffff))) & 0xffffffff;
  });
  w.setPoison(op.dst, w.poisonOf(op.a) | w.poisonOf(op.b));
}

void ballot(Wave &w, const Op &op) {
  const uint64_t *predicate = w.val(op.a);
  uint64_t *out = w.out(op.dst), lanes = 0;
  w.each([&](unsigned l) { lanes |= (predicate[l] & 1) << l; });
  w.each([&](unsigned l) { out[l] = lanes; });
  w.setPoison(op.dst, w.poisonOf(op.a) & w.mask ? ~uint64_t(0) : 0);
}

void inverseBallot(Wave &w, const Op &op) {
  const uint64_t *lanes = w.val(op.a);
  unsigned first = countr_zero(w.mask);
  uint64_t *out = w.out(op.dst), bits = lanes[first];
  w.each([&](unsigned l) {
    if (lanes[l] != bits && !w.stop && !w.poisonOf(op.a))
      w.fail(op, l, "the mask differs between lanes of one wave");
    out[l] = bits >> l & 1;
  });
  w.setPoison(op.dst, w.poisonOf(op.a) & w.mask ? ~uint64_t(0) : 0);
}

/// Whole waves arrive, so lanes that wait elsewhere would arrive unasked.
bool wholeWave(Wave &w, const Op &op) {
  if (w.mask == w.live)
    return true;
  w.fail(op, countr_zero(w.mask),
         "barrier reached by a part of the wave, missing lane mask 0x" + utohexstr(w.live & ~w.mask, true));
  return false;
}

void barrier(Wave &w, const Op &op) {
  if (!wholeWave(w, op))
    return;
  w.barrierId = 0;
  w.barrierCount = 0;
  w.barrierOp = &op;
  w.state = Wave::AtBarrier;
  w.stop = true;
}

void barrierSignal(Wave &w, const Op &op) {
  if (!wholeWave(w, op))
    return;
  if (w.splitPhase == w.block.phase)
    return w.fail(op, countr_zero(w.mask), "the wave signals the barrier twice without a wait");
  w.splitPhase = w.block.phase;
  ++w.block.signalled;
}

void barrierWait(Wave &w, const Op &op) {
  if (!wholeWave(w, op))
    return;
  if (!w.splitPhase)
    return w.fail(op, countr_zero(w.mask), "the wave waits at a barrier that it has not signalled");
  w.barrierOp = &op;
  w.state = Wave::AtSplitBarrier;
  w.stop = true;
}

/// a, b, c: the middle one.
void median(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a), *b = w.val(op.b), *c = w.val(op.c);
  uint64_t *out = w.out(op.dst);
  Format format = Format(op.bits2);
  auto isNaN = [&](uint64_t value) { return std::isnan(toDouble(format, value)); };
  auto pick = [&](FloatOp kind, uint64_t x, uint64_t y) { return floatBinary(format, kind, x, y); };
  w.each([&](unsigned l) {
    uint64_t low = pick(FloatOp::MinNum, a[l], b[l]), high = pick(FloatOp::MaxNum, a[l], b[l]);
    if (isNaN(a[l]) || isNaN(b[l]) || isNaN(c[l]))
      out[l] = pick(FloatOp::MinNum, low, c[l]);
    else
      out[l] = pick(FloatOp::MaxNum, low, pick(FloatOp::MinNum, high, c[l]));
  });
  w.setPoison(op.dst, w.poisonOf(op.a) | w.poisonOf(op.b) | w.poisonOf(op.c));
}

/// Bits b to b + c of a; sub 1: sign-extended.
void bitField(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a), *b = w.val(op.b), *c = w.val(op.c);
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) {
    unsigned at = b[l] & 31, size = c[l] & 31;
    uint64_t field = size ? a[l] >> at & lowBits(size) : 0;
    if (op.sub && size) // bits above the word are zeros, or the sign
      field = at + size <= 32 ? uint64_t(signedValue(field, size)) : uint64_t(signedValue(a[l], 32) >> at);
    out[l] = field & 0xffffffff;
  });
  w.setPoison(op.dst, w.poisonOf(op.a) | w.poisonOf(op.b) | w.poisonOf(op.c));
}

/// v_perm_b32: bytes of a (7 to 4) and b (3 to 0) by the selectors of c.
void permuteBytes(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a), *b = w.val(op.b), *c = w.val(op.c);
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) {
    uint64_t both = a[l] << 32 | b[l], result = 0;
    for (unsigned i = 0; i < 4; ++i) {
      unsigned select = c[l] >> (8 * i) & 255;
      uint64_t byte = select >= 13   ? 0xff
                      : select == 12 ? 0
                      : select >= 8  ? (both >> (16 * (select - 8) + 15) & 1 ? 0xff : 0)
                                     : both >> (8 * select) & 0xff;
      result |= byte << (8 * i);
    }
    out[l] = result;
  });
  w.setPoison(op.dst, w.poisonOf(op.a) | w.poisonOf(op.b) | w.poisonOf(op.c));
}

/// 24-bit products; sub: 1 signed, 2 the high word.
void multiply24(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a), *b = w.val(op.b);
  uint64_t *out = w.out(op.dst), keep = lowBits(op.bits);
  w.each([&](unsigned l) {
    int64_t x = op.sub & 1 ? signedValue(a[l] & 0xffffff, 24) : int64_t(a[l] & 0xffffff);
    int64_t y = op.sub & 1 ? signedValue(b[l] & 0xffffff, 24) : int64_t(b[l] & 0xffffff);
    out[l] = uint64_t(x * y >> (op.sub & 2 ? 32 : 0)) & keep;
  });
  w.setPoison(op.dst, w.poisonOf(op.a) | w.poisonOf(op.b));
}

std::optional<FloatFunction> amdFunction(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::amdgcn_rcp:
    return FloatFunction::Reciprocal;
  case Intrinsic::amdgcn_rsq:
    return FloatFunction::ReciprocalSqrt;
  case Intrinsic::amdgcn_sqrt:
    return FloatFunction::Sqrt;
  case Intrinsic::amdgcn_exp2:
    return FloatFunction::Exp2;
  case Intrinsic::amdgcn_log:
    return FloatFunction::Log2;
  case Intrinsic::amdgcn_sin:
    return FloatFunction::SinTurns;
  case Intrinsic::amdgcn_cos:
    return FloatFunction::CosTurns;
  case Intrinsic::amdgcn_fract:
    return FloatFunction::Fract;
  case Intrinsic::amdgcn_tanh:
    return FloatFunction::Tanh;
  default:
    return std::nullopt;
  }
}

} // namespace

Expected<bool> FunctionCompiler::compileAMDGCN(const CallBase &call) {
  auto moved = compileLaneMove(call);
  if (!moved || *moved)
    return moved;
  Intrinsic::ID id = call.getIntrinsicID();
  unsigned wave = parent.image.wave;
  auto operand = [&](unsigned i) { return ref(call.getArgOperand(i)); };
  auto missing = [&](const Twine &what) {
    return unsupported(call, what + " does not exist on " + chip.name);
  };
  auto simple = [&](Handler handler, unsigned sub = 0) {
    unsigned count = call.arg_size();
    Op &op = emit(handler, call.getType()->isVoidTy() ? 0 : define(call), count > 0 ? operand(0) : 0,
                  count > 1 ? operand(1) : 0, count > 2 ? operand(2) : 0);
    op.sub = sub;
    op.bits = call.getType()->isVoidTy() ? 0 : scalarBits(call.getType());
    return true;
  };
  auto sameWidth = [&](unsigned bits) -> Error {
    // No instruction is selected for a 32-bit mask of a wave of 64 lanes.
    if (bits < wave)
      return unsupported(call,
                         "a mask of " + Twine(bits) + " bits cannot be selected in a wave of " + Twine(wave));
    return Error::success();
  };
  if (auto function = amdFunction(id)) {
    Op &op = emit(floatUnaryHandler(), define(call), operand(0));
    op.sub = unsigned(*function);
    op.bits2 = unsigned(*format(call.getType()));
    return true;
  }
  switch (id) {
  case Intrinsic::amdgcn_workitem_id_x:
    return simple(workItem, 0);
  case Intrinsic::amdgcn_workitem_id_y:
    return simple(workItem, 1);
  case Intrinsic::amdgcn_workitem_id_z:
    return simple(workItem, 2);
  case Intrinsic::amdgcn_workgroup_id_x:
    return simple(workGroup, 0);
  case Intrinsic::amdgcn_workgroup_id_y:
    return simple(workGroup, 1);
  case Intrinsic::amdgcn_workgroup_id_z:
    return simple(workGroup, 2);
  case Intrinsic::amdgcn_wave_id:
    if (!chip.gfx12)
      return missing("wave.id");
    return simple(waveId);
  case Intrinsic::amdgcn_s_memtime:
  case Intrinsic::amdgcn_s_memrealtime:
    return simple(time);
  case Intrinsic::amdgcn_implicitarg_ptr:
    alias(call, {word(ImplicitArgs << allocationShift)});
    return true;
  case Intrinsic::amdgcn_dispatch_ptr:
    alias(call, {word((ImplicitArgs << allocationShift) + 128)});
    return true;
  case Intrinsic::amdgcn_wavefrontsize:
    alias(call, {word(wave)});
    return true;
  case Intrinsic::amdgcn_groupstaticsize:
    alias(call, {word(parent.image.sharedBytes)});
    return true;
  case Intrinsic::amdgcn_mbcnt_lo:
    return simple(maskedCount, 0);
  case Intrinsic::amdgcn_mbcnt_hi:
    return simple(maskedCount, 1);
  case Intrinsic::amdgcn_ballot:
    if (Error error = sameWidth(scalarBits(call.getType())))
      return error;
    return simple(ballot);
  case Intrinsic::amdgcn_inverse_ballot:
    if (Error error = sameWidth(scalarBits(call.getArgOperand(0)->getType())))
      return error;
    return simple(inverseBallot);
  case Intrinsic::amdgcn_s_barrier:
    return simple(barrier);
  case Intrinsic::amdgcn_s_barrier_signal:
  case Intrinsic::amdgcn_s_barrier_wait: {
    if (!chip.gfx12)
      return missing("a split barrier");
    unsigned bits = scalarBits(call.getArgOperand(0)->getType());
    if (immediate(call.getArgOperand(0)) != lowBits(bits))
      return unsupported(call, "barriers other than the block's (-1) are not supported");
    return simple(id == Intrinsic::amdgcn_s_barrier_signal ? barrierSignal : barrierWait);
  }
  case Intrinsic::amdgcn_fmed3: {
    simple(median);
    code.ops.back().bits2 = unsigned(*format(call.getType()));
    return true;
  }
  case Intrinsic::amdgcn_ubfe:
  case Intrinsic::amdgcn_sbfe:
    if (scalarBits(call.getType()) != 32)
      return false;
    return simple(bitField, id == Intrinsic::amdgcn_sbfe);
  case Intrinsic::amdgcn_perm:
    return simple(permuteBytes);
  case Intrinsic::amdgcn_mul_u24:
    return simple(multiply24, 0);
  case Intrinsic::amdgcn_mul_i24:
    return simple(multiply24, 1);
  case Intrinsic::amdgcn_mulhi_u24:
    return simple(multiply24, 2);
  case Intrinsic::amdgcn_mulhi_i24:
    return simple(multiply24, 3);
  case Intrinsic::amdgcn_class: {
    auto mask = immediate(call.getArgOperand(1));
    if (!mask)
      return unsupported(call, "a class mask that is no constant is not supported");
    Op &op = emit(floatClass(), define(call), operand(0));
    op.imm = *mask;
    op.bits2 = unsigned(*format(call.getArgOperand(0)->getType()));
    return true;
  }
  case Intrinsic::amdgcn_frexp_mant:
  case Intrinsic::amdgcn_frexp_exp: {
    bool mantissa = id == Intrinsic::amdgcn_frexp_mant;
    Op &op = emit(floatParts(), temp(2), operand(0));
    op.bits = mantissa ? 32 : scalarBits(call.getType());
    op.bits2 = unsigned(*format(call.getArgOperand(0)->getType()));
    alias(call, {op.dst + !mantissa});
    return true;
  }
  case Intrinsic::amdgcn_endpgm:
    emit(
        +[](Wave &w, const Op &) { w.exitLanes(); }, 0);
    return true;
  case Intrinsic::amdgcn_wave_barrier:
  case Intrinsic::amdgcn_sched_barrier:
  case Intrinsic::amdgcn_sched_group_barrier:
  case Intrinsic::amdgcn_iglp_opt:
  case Intrinsic::amdgcn_s_sleep:
  case Intrinsic::amdgcn_s_nop:
  case Intrinsic::amdgcn_s_setprio:
  case Intrinsic::amdgcn_s_waitcnt:
  case Intrinsic::amdgcn_s_wait_loadcnt:
  case Intrinsic::amdgcn_s_wait_storecnt:
  case Intrinsic::amdgcn_s_wait_dscnt:
  case Intrinsic::amdgcn_s_wait_kmcnt:
    return true;
  default:
    return false;
  }
}

} // namespace qd::sim
