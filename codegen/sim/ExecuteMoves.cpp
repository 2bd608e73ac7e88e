//===----------------------------------------------------------------------===//
// Handlers that move words: selects, integer conversions, freeze, and what
// takes values apart and puts them together.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Handlers.h"
#include "codegen/sim/Wave.h"

namespace qd::sim {

namespace {

void select(Wave &w, const Op &op) {
  const uint64_t *condition = w.val(op.a), *b = w.val(op.b), *c = w.val(op.c);
  uint64_t *out = w.out(op.dst), chosen = 0;
  w.each([&](unsigned l) {
    chosen |= (condition[l] & 1) << l;
    out[l] = condition[l] & 1 ? b[l] : c[l];
  });
  w.setPoison(op.dst, w.poisonOf(op.a) | (w.poisonOf(op.b) & chosen) | (w.poisonOf(op.c) & ~chosen));
}

void trunc(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a);
  uint64_t *out = w.out(op.dst), keep = lowBits(op.bits), poison = w.poisonOf(op.a);
  w.each([&](unsigned l) {
    if (((op.flags & FlagNUW) && (a[l] & ~keep)) ||
        ((op.flags & FlagNSW) && signedValue(a[l], op.bits) != signedValue(a[l], op.bits2)))
      poison |= uint64_t(1) << l;
    out[l] = a[l] & keep;
  });
  w.setPoison(op.dst, poison);
}

void zext(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a);
  uint64_t *out = w.out(op.dst), poison = w.poisonOf(op.a);
  w.each([&](unsigned l) {
    if (a[l] >> (op.bits2 - 1) & 1)
      poison |= uint64_t(1) << l;
    out[l] = a[l];
  });
  w.setPoison(op.dst, poison);
}

void sext(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a);
  uint64_t *out = w.out(op.dst), keep = lowBits(op.bits);
  unsigned drop = 64 - op.bits2;
  w.each([&](unsigned l) { out[l] = uint64_t(int64_t(a[l] << drop) >> drop) & keep; });
  w.setPoison(op.dst, w.poisonOf(op.a));
}

void sign(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a);
  uint64_t *out = w.out(op.dst), keep = lowBits(op.bits);
  w.each([&](unsigned l) { out[l] = a[l] >> (op.bits2 - 1) & 1 ? keep : 0; });
  w.setPoison(op.dst, w.poisonOf(op.a));
}

void freezeWord(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a);
  uint64_t *out = w.out(op.dst), poison = w.poisonOf(op.a);
  w.each([&](unsigned l) { out[l] = poison >> l & 1 ? 0 : a[l]; });
  w.setPoison(op.dst, 0);
}

void pack(Wave &w, const Op &op) {
  uint64_t *out = w.out(op.dst), poison = w.poisonOfArgs(op);
  w.each([&](unsigned l) { out[l] = 0; });
  for (unsigned i = 0; i < op.nargs; ++i) {
    const uint64_t *in = w.val(w.arg(op, i));
    w.each([&](unsigned l) { out[l] |= in[l] << (i * op.bits2); });
  }
  w.setPoison(op.dst, poison);
}

void extract(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a);
  uint64_t *out = w.out(op.dst), keep = lowBits(op.bits);
  w.each([&](unsigned l) { out[l] = a[l] >> op.imm & keep; });
  w.setPoison(op.dst, w.poisonOf(op.a));
}

void pick(Wave &w, const Op &op) {
  const uint64_t *index = w.val(op.a);
  uint64_t *out = w.out(op.dst), poison = 0;
  w.each([&](unsigned l) {
    if (index[l] >= op.nargs) {
      poison |= uint64_t(1) << l;
      return;
    }
    Ref chosen = w.arg(op, index[l]);
    out[l] = w.val(chosen)[l];
    poison |= w.poisonOf(chosen) & uint64_t(1) << l;
  });
  w.setPoison(op.dst, poison | w.poisonOf(op.a));
}

void insert(Wave &w, const Op &op) {
  const uint64_t *index = w.val(op.a), *b = w.val(op.b), *c = w.val(op.c);
  uint64_t *out = w.out(op.dst), chosen = 0;
  w.each([&](unsigned l) {
    bool here = index[l] == uint64_t(op.imm);
    chosen |= uint64_t(here) << l;
    out[l] = here ? b[l] : c[l];
  });
  w.setPoison(op.dst, w.poisonOf(op.a) | (w.poisonOf(op.b) & chosen) | (w.poisonOf(op.c) & ~chosen));
}

} // namespace

Handler selectWord() { return select; }
Handler truncate() { return trunc; }
Handler zeroExtend() { return zext; }
Handler signExtend() { return sext; }
Handler signWord() { return sign; }
Handler freeze() { return freezeWord; }
Handler packBits() { return pack; }
Handler extractBits() { return extract; }
Handler pickElement() { return pick; }
Handler insertElement() { return insert; }

} // namespace qd::sim
