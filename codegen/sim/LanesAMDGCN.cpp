//===----------------------------------------------------------------------===//
// Lane moves of AMDGCN: DPP, permlane, swizzle, ds_permute, readlane. Each says
// for every lane where its value comes from; the ISA manuals' pseudo-code is
// the reference.
//
// An inactive lane delivers poison, also where an instruction has a rule of its
// own for it (DPP, permlane16: zero or the old value): a program that goes by
// the rule of one chip's instruction is wrong on others. Lanes for which an
// instruction has no source (past a row's or the wave's end) follow its rule.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Compile.h"
#include "codegen/sim/Wave.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"

using namespace llvm;

namespace qd::sim {

namespace {

/// Not a lane: the instruction has no source there.
constexpr int noLane = -1;

enum DppControl : unsigned {
  QuadPermLast = 0xff,
  RowShl = 0x100,
  RowShr = 0x110,
  RowRor = 0x120,
  WaveShl = 0x130,
  WaveRol = 0x134,
  WaveShr = 0x138,
  WaveRor = 0x13c,
  RowMirror = 0x140,
  RowHalfMirror = 0x141,
  RowBcast15 = 0x142,
  RowBcast31 = 0x143,
  RowShare = 0x150,
  RowXmask = 0x160,
};

int dppSource(unsigned control, int lane, int width) {
  int row = lane & ~15, inRow = lane & 15, n = control & 15;
  if (control <= QuadPermLast)
    return (lane & ~3) | (control >> (2 * (lane & 3)) & 3);
  switch (control & ~15u) {
  case RowShl:
    return inRow + n < 16 ? lane + n : noLane;
  case RowShr:
    return inRow - n >= 0 ? lane - n : noLane;
  case RowRor:
    return row | ((inRow - n) & 15);
  case RowShare:
    return row | n;
  case RowXmask:
    return row | (inRow ^ n);
  default:
    break;
  }
  switch (control) {
  case WaveShl:
    return lane + 1 < width ? lane + 1 : noLane;
  case WaveRol:
    return (lane + 1) % width;
  case WaveShr:
    return lane - 1;
  case WaveRor:
    return (lane + width - 1) % width;
  case RowMirror:
    return row | (15 - inRow);
  case RowHalfMirror:
    return (lane & ~7) | (7 - (lane & 7));
  case RowBcast15:
    return row ? row - 1 : noLane;
  case RowBcast31:
    return lane >= 32 ? 31 : noLane;
  }
  return noLane;
}

/// Empty where the chip has the control.
std::string dppMissing(unsigned control, const ChipRules &chip) {
  unsigned n = control & 15;
  if (control <= QuadPermLast || control == RowMirror || control == RowHalfMirror)
    return "";
  switch (control & ~15u) {
  case RowShl:
  case RowShr:
  case RowRor:
    return n ? "" : "is not encoded";
  case RowShare:
    return chip.rowShare ? "" : "(row_share) does not exist";
  case RowXmask:
    return chip.permlane16 ? "" : "(row_xmask) does not exist";
  default:
    break;
  }
  switch (control) {
  case WaveShl:
  case WaveRol:
  case WaveShr:
  case WaveRor:
    return chip.waveShift ? "" : "(a shift of the wave) does not exist";
  case RowBcast15:
  case RowBcast31:
    return chip.waveShift ? "" : "(row_bcast) does not exist";
  }
  return "is not encoded";
}

enum NoSource { KeepOld, Zero };

/// Fills dst from `source(lane)` of `value`, where noLane follows `rule`; `old`
/// is what KeepOld keeps.
template <typename F>
void gatherLanes(Wave &w, Ref dst, Ref value, Ref old, NoSource rule, uint64_t extraPoison, F source) {
  const uint64_t *in = w.val(value), *kept = w.val(old);
  uint64_t inPoison = w.poisonOf(value), keptPoison = w.poisonOf(old), poison = 0;
  uint64_t result[64];
  w.each([&](unsigned l) {
    int from = source(int(l));
    uint64_t bit = uint64_t(1) << l;
    if (from >= 0) {
      bool isActive = w.mask >> from & 1;
      result[l] = isActive ? in[from] : 0;
      poison |= !isActive || (inPoison >> from & 1) ? bit : 0;
    } else if (rule == KeepOld) {
      result[l] = kept[l];
      poison |= keptPoison & bit;
    } else {
      result[l] = 0;
    }
  });
  uint64_t *out = w.out(dst);
  w.each([&](unsigned l) { out[l] = result[l]; });
  w.setPoison(dst, poison | extraPoison);
}

/// The same where every lane has a source.
template <typename F> void gatherLanes(Wave &w, Ref dst, Ref value, uint64_t extraPoison, F source) {
  gatherLanes(w, dst, value, value, Zero, extraPoison, source);
}

/// a: value, b: old; imm: control | row mask << 16 | bank mask << 20; flags:
/// bound_ctrl.
void dpp(Wave &w, const Op &op) {
  unsigned control = op.imm & 0xffff, rows = op.imm >> 16 & 15, banks = op.imm >> 20 & 15;
  const uint64_t *old = w.val(op.b);
  uint64_t oldPoison = w.poisonOf(op.b), masked = 0;
  w.each([&](unsigned l) {
    if (!(rows >> (l >> 4) & 1) || !(banks >> (l >> 2 & 3) & 1))
      masked |= uint64_t(1) << l;
  });
  gatherLanes(w, op.dst, op.a, op.b, op.flags ? Zero : KeepOld, 0,
              [&](int lane) { return dppSource(control, lane, w.width); });
  uint64_t *out = w.out(op.dst);
  masked &= w.mask;
  w.eachOf(masked, [&](unsigned l) { out[l] = old[l]; });
  w.poison[op.dst] = (w.poison[op.dst] & ~masked) | (oldPoison & masked);
}

void dpp8(Wave &w, const Op &op) {
  gatherLanes(w, op.dst, op.a, 0,
              [&](int lane) { return (lane & ~7) | int(op.imm >> (3 * (lane & 7)) & 7); });
}

/// a: value. sub 1: from the other row. args: the two selectors, of scalar
/// registers.
void permlane16(Wave &w, const Op &op) {
  unsigned first = countr_zero(w.mask);
  uint64_t select = w.val(w.arg(op, 0))[first] | w.val(w.arg(op, 1))[first] << 32;
  uint64_t badSelect = w.poisonOf(w.arg(op, 0)) | w.poisonOf(w.arg(op, 1));
  gatherLanes(w, op.dst, op.a, badSelect, [&](int lane) {
    return ((lane & ~15) ^ (op.sub ? 16 : 0)) | int(select >> (4 * (lane & 15)) & 15);
  });
}

/// The same with a selector a lane, b.
void permlane16Var(Wave &w, const Op &op) {
  const uint64_t *select = w.val(op.b);
  gatherLanes(w, op.dst, op.a, w.poisonOf(op.b),
              [&](int lane) { return ((lane & ~15) ^ (op.sub ? 16 : 0)) | int(select[lane] & 15); });
}

void permlane64(Wave &w, const Op &op) {
  gatherLanes(w, op.dst, op.a, 0, [&](int lane) { return w.width == 64 ? lane ^ 32 : lane; });
}

/// Exchanges the odd rows (imm 16) or the upper half (imm 32) of a with the
/// even rows or the lower half of b. Results a, b.
void permlaneSwap(Wave &w, const Op &op) {
  int step = op.imm;
  const uint64_t *a = w.val(op.a), *b = w.val(op.b);
  uint64_t poisonA = w.poisonOf(op.a), poisonB = w.poisonOf(op.b);
  uint64_t upper = 0;
  for (int l = 0; l < int(w.width); ++l)
    upper |= uint64_t((l & step) != 0) << l;
  gatherLanes(w, op.dst, op.b, 0, [&](int lane) { return lane & ~step; });
  gatherLanes(w, op.dst + 1, op.a, 0, [&](int lane) { return lane | step; });
  // The halves that stay.
  auto restore = [&](Ref dst, const uint64_t *from, uint64_t poison, uint64_t lanes) {
    uint64_t *out = w.out(dst);
    w.eachOf(lanes, [&](unsigned l) { out[l] = from[l]; });
    w.poison[dst] = (w.poison[dst] & ~lanes) | (poison & lanes);
  };
  restore(op.dst, a, poisonA, w.mask & ~upper);
  restore(op.dst + 1, b, poisonB, w.mask & upper);
}

/// a: value, b: byte address.
void bpermute(Wave &w, const Op &op) {
  const uint64_t *address = w.val(op.b);
  int reach = w.width == 64 ? int(w.image.chip->bpermuteReach) : 32;
  gatherLanes(w, op.dst, op.a, w.poisonOf(op.b),
              [&](int lane) { return (lane & ~(reach - 1)) | int(address[lane] >> 2 & (reach - 1)); });
}

/// Pushes: a: value, b: byte address. Lanes that nobody hits get zero.
void permute(Wave &w, const Op &op) {
  const uint64_t *address = w.val(op.b);
  int reach = w.width == 64 ? int(w.image.chip->bpermuteReach) : 32;
  int from[64];
  std::fill(from, from + 64, noLane);
  w.each([&](unsigned l) { from[(int(l) & ~(reach - 1)) | int(address[l] >> 2 & (reach - 1))] = l; });
  // Any poisonous address might hit any lane.
  uint64_t poison = w.poisonOf(op.b) & w.mask ? ~uint64_t(0) : 0;
  gatherLanes(w, op.dst, op.a, op.a, Zero, poison, [&](int lane) { return from[lane]; });
}

/// imm: the offset field.
void swizzle(Wave &w, const Op &op) {
  unsigned offset = op.imm;
  gatherLanes(w, op.dst, op.a, 0, [&](int lane) -> int {
    int half = lane & 32, low = lane & 31;
    if (offset >= 0xe000) { // the order of a fast Fourier transform
      int mask = offset & 31, reversed = 0;
      for (int bit = 0; bit < 5; ++bit)
        reversed |= (low >> bit & 1) << (4 - bit);
      return half | reversed >> llvm::popcount(unsigned(mask)) | (low & mask);
    }
    if (offset >= 0xc000) { // rotates
      int mask = offset & 31, by = offset >> 5 & 31;
      if (offset & 0x400)
        by = -by;
      return half | (low & mask) | ((low + by) & ~mask & 31);
    }
    if (offset & 0x8000) // permutes the lanes of a quad
      return (lane & ~3) | int(offset >> (2 * (lane & 3)) & 3);
    return half | int(((low & (offset & 31)) | (offset >> 5 & 31)) ^ (offset >> 10 & 31));
  });
}

/// One lane index for the whole wave, in a scalar register.
bool uniformLane(Wave &w, const Op &op, Ref r, unsigned &lane) {
  if (!w.needsValue(op, r, "a lane index"))
    return false;
  unsigned first = countr_zero(w.mask);
  const uint64_t *value = w.val(r);
  uint64_t same = 0;
  w.each([&](unsigned l) { same |= uint64_t(value[l] == value[first]) << l; });
  if (same != w.mask) {
    w.fail(op, countr_zero(w.mask & ~same), "the lane index differs between lanes of one wave");
    return false;
  }
  lane = value[first] & (w.width - 1);
  return true;
}

void readLane(Wave &w, const Op &op) {
  unsigned lane;
  if (uniformLane(w, op, op.b, lane))
    gatherLanes(w, op.dst, op.a, 0, [&](int) { return int(lane); });
}

void readFirstLane(Wave &w, const Op &op) {
  int first = countr_zero(w.mask);
  gatherLanes(w, op.dst, op.a, 0, [&](int) { return first; });
}

/// a: value, b: lane, c: old.
void writeLane(Wave &w, const Op &op) {
  unsigned lane;
  if (!uniformLane(w, op, op.b, lane))
    return;
  int first = countr_zero(w.mask);
  gatherLanes(w, op.dst, op.a, op.c, KeepOld, 0, [&](int l) { return l == int(lane) ? first : noLane; });
}

void waveShuffle(Wave &w, const Op &op) {
  const uint64_t *lane = w.val(op.b);
  gatherLanes(w, op.dst, op.a, w.poisonOf(op.b),
              [&](int l) { return int(lane[l] & (w.width - 1)); });
}

} // namespace

Expected<bool> FunctionCompiler::compileLaneMove(const CallBase &call) {
  unsigned wave = parent.image.wave;
  auto operand = [&](unsigned i, unsigned word = 0) { return ref(call.getArgOperand(i), word); };
  auto number = [&](unsigned i) { return immediate(call.getArgOperand(i)); };
  auto missing = [&](const Twine &what) {
    return unsupported(call, what + " does not exist on " + chip.name);
  };
  unsigned words = wordsOf(call.getType());
  // One operation a word, the same lanes in each.
  auto move = [&](Handler handler, auto setOperands) {
    Ref dst = define(call);
    for (unsigned i = 0; i < words; ++i)
      setOperands(emit(handler, dst + i), i);
    return true;
  };

  switch (call.getIntrinsicID()) {
  case Intrinsic::amdgcn_update_dpp:
  case Intrinsic::amdgcn_mov_dpp: {
    unsigned at = call.getIntrinsicID() == Intrinsic::amdgcn_update_dpp ? 1 : 0;
    unsigned control = *number(at + 1);
    std::string problem = dppMissing(control, chip);
    if (!problem.empty())
      return unsupported(call,
                         "DPP control 0x" + utohexstr(control, true) + " " + problem + " on " + chip.name);
    Ref poison = parent.word(0, true);
    return move(dpp, [&](Op &op, unsigned i) {
      op.a = operand(at, i);
      op.b = at ? operand(0, i) : poison;
      op.imm = control | *number(at + 2) << 16 | *number(at + 3) << 20;
      op.flags = *number(at + 4);
    });
  }
  case Intrinsic::amdgcn_mov_dpp8:
    if (!chip.permlane16)
      return missing("mov.dpp8");
    return move(dpp8, [&](Op &op, unsigned i) {
      op.a = operand(0, i);
      op.imm = *number(1);
    });
  case Intrinsic::amdgcn_permlane16:
  case Intrinsic::amdgcn_permlanex16: {
    if (!chip.permlane16)
      return missing("permlane16");
    bool other = call.getIntrinsicID() == Intrinsic::amdgcn_permlanex16;
    Refs selectors = {operand(2), operand(3)};
    return move(permlane16, [&](Op &op, unsigned i) {
      op.a = operand(1, i);
      op.sub = other;
      setArgs(op, selectors);
    });
  }
  case Intrinsic::amdgcn_permlane16_var:
  case Intrinsic::amdgcn_permlanex16_var: {
    if (!chip.gfx12)
      return missing("permlane16.var");
    bool other = call.getIntrinsicID() == Intrinsic::amdgcn_permlanex16_var;
    return move(permlane16Var, [&](Op &op, unsigned i) {
      op.a = operand(1, i);
      op.b = operand(2);
      op.sub = other;
    });
  }
  case Intrinsic::amdgcn_permlane64:
    if (!chip.permlane64)
      return missing("permlane64");
    return move(permlane64, [&](Op &op, unsigned i) { op.a = operand(0, i); });
  case Intrinsic::amdgcn_permlane16_swap:
  case Intrinsic::amdgcn_permlane32_swap: {
    if (!chip.permlaneSwap)
      return missing("permlane swap");
    Op &op = emit(permlaneSwap, define(call), operand(0), operand(1));
    op.imm = call.getIntrinsicID() == Intrinsic::amdgcn_permlane16_swap ? 16 : 32;
    return true;
  }
  case Intrinsic::amdgcn_ds_bpermute_fi_b32:
    if (!chip.gfx12)
      return missing("ds.bpermute.fi");
    [[fallthrough]];
  case Intrinsic::amdgcn_ds_bpermute:
    emit(bpermute, define(call), operand(1), operand(0));
    return true;
  case Intrinsic::amdgcn_ds_permute:
    emit(permute, define(call), operand(1), operand(0));
    return true;
  case Intrinsic::amdgcn_ds_swizzle: {
    Op &op = emit(swizzle, define(call), operand(0));
    op.imm = *number(1) & 0xffff;
    return true;
  }
  case Intrinsic::amdgcn_readlane:
    return move(readLane, [&](Op &op, unsigned i) {
      op.a = operand(0, i);
      op.b = operand(1);
    });
  case Intrinsic::amdgcn_readfirstlane:
    return move(readFirstLane, [&](Op &op, unsigned i) { op.a = operand(0, i); });
  case Intrinsic::amdgcn_writelane:
    return move(writeLane, [&](Op &op, unsigned i) {
      op.a = operand(0, i);
      op.b = operand(1);
      op.c = operand(2, i);
    });
  case Intrinsic::amdgcn_wave_shuffle:
    if (wave == 64 && chip.bpermuteReach != 64 && !chip.permlane64)
      return missing("wave.shuffle in a wave of 64");
    if (scalarBits(call.getType()) > 32)
      return unsupported(call, "wave.shuffle of more than 32 bits does not exist");
    return move(waveShuffle, [&](Op &op, unsigned i) {
      op.a = operand(0, i);
      op.b = operand(1);
    });
  default:
    return false;
  }
}

} // namespace qd::sim
