//===----------------------------------------------------------------------===//
// Handlers of integer operations. Words hold values zero-extended.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Handlers.h"
#include "codegen/sim/Wave.h"
#include "llvm/ADT/APInt.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instruction.h"

using namespace llvm;

namespace qd::sim {

namespace {

__extension__ typedef unsigned __int128 UInt128;
__extension__ typedef __int128 Int128;

//===----------------------------------------------------------------------===//
// Binary operations on one word
//===----------------------------------------------------------------------===//

template <unsigned opcode> uint64_t compute(uint64_t a, uint64_t b, unsigned bits) {
  switch (opcode) {
  case Instruction::Add:
    return a + b;
  case Instruction::Sub:
    return a - b;
  case Instruction::Mul:
    return a * b;
  case Instruction::And:
    return a & b;
  case Instruction::Or:
    return a | b;
  case Instruction::Xor:
    return a ^ b;
  case Instruction::Shl:
    return b < bits ? a << b : 0;
  case Instruction::LShr:
    return b < bits ? a >> b : 0;
  case Instruction::AShr:
    return signedValue(a, bits) >> (b < bits ? b : bits - 1);
  }
  return 0;
}

template <unsigned opcode> bool breaksFlags(uint64_t a, uint64_t b, unsigned bits, uint32_t flags) {
  int64_t sa = signedValue(a, bits), sb = signedValue(b, bits);
  auto fitsSigned = [&](Int128 value) {
    return value >= -(Int128(1) << (bits - 1)) && value < Int128(1) << (bits - 1);
  };
  auto fitsUnsigned = [&](UInt128 value) { return value >> bits == 0; };
  switch (opcode) {
  case Instruction::Add:
    return ((flags & FlagNUW) && !fitsUnsigned(UInt128(a) + b)) ||
           ((flags & FlagNSW) && !fitsSigned(Int128(sa) + sb));
  case Instruction::Sub:
    return ((flags & FlagNUW) && a < b) || ((flags & FlagNSW) && !fitsSigned(Int128(sa) - sb));
  case Instruction::Mul:
    return ((flags & FlagNUW) && !fitsUnsigned(UInt128(a) * b)) ||
           ((flags & FlagNSW) && !fitsSigned(Int128(sa) * sb));
  case Instruction::Or:
    return (flags & FlagDisjoint) && (a & b);
  case Instruction::Shl: {
    if (b >= bits)
      return true;
    uint64_t result = (a << b) & lowBits(bits);
    return ((flags & FlagNUW) && result >> b != a) ||
           ((flags & FlagNSW) && signedValue(result, bits) >> b != sa);
  }
  case Instruction::LShr:
  case Instruction::AShr:
    return b >= bits || ((flags & FlagExact) && (a & lowBits(b)));
  default:
    return false;
  }
}

template <unsigned opcode, bool flagged> void binary(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a), *b = w.val(op.b);
  uint64_t *out = w.out(op.dst), keep = lowBits(op.bits), poison = w.poisonOf(op.a) | w.poisonOf(op.b);
  unsigned bits = op.bits;
  if (flagged)
    w.each([&](unsigned l) { poison |= uint64_t(breaksFlags<opcode>(a[l], b[l], bits, op.flags)) << l; });
  w.each([&](unsigned l) { out[l] = compute<opcode>(a[l], b[l], bits) & keep; });
  w.setPoison(op.dst, poison);
}

template <unsigned opcode> void divide(Wave &w, const Op &op) {
  if (!w.needsValue(op, op.b, "a divisor"))
    return;
  const uint64_t *a = w.val(op.a), *b = w.val(op.b);
  uint64_t *out = w.out(op.dst), poison = w.poisonOf(op.a);
  uint64_t keep = lowBits(op.bits), least = uint64_t(1) << (op.bits - 1);
  constexpr bool isSigned = opcode == Instruction::SDiv || opcode == Instruction::SRem;
  w.each([&](unsigned l) {
    if (!b[l]) {
      if (!(poison >> l & 1))
        w.fail(op, l, "division by zero");
      return;
    }
    if (isSigned && a[l] == least && b[l] == keep) {
      if (!(poison >> l & 1))
        w.fail(op, l, "signed division overflows");
      return;
    }
    int64_t sa = signedValue(a[l], op.bits), sb = signedValue(b[l], op.bits);
    uint64_t remainder = isSigned ? uint64_t(sa % sb) : a[l] % b[l];
    if ((op.flags & FlagExact) && remainder)
      poison |= uint64_t(1) << l;
    if (opcode == Instruction::SRem || opcode == Instruction::URem)
      out[l] = remainder & keep;
    else
      out[l] = (isSigned ? uint64_t(sa / sb) : a[l] / b[l]) & keep;
  });
  w.setPoison(op.dst, poison);
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

template <unsigned predicate> bool relation(uint64_t a, uint64_t b, int64_t sa, int64_t sb) {
  switch (predicate) {
  case CmpInst::ICMP_EQ:
    return a == b;
  case CmpInst::ICMP_NE:
    return a != b;
  case CmpInst::ICMP_UGT:
    return a > b;
  case CmpInst::ICMP_UGE:
    return a >= b;
  case CmpInst::ICMP_ULT:
    return a < b;
  case CmpInst::ICMP_ULE:
    return a <= b;
  case CmpInst::ICMP_SGT:
    return sa > sb;
  case CmpInst::ICMP_SGE:
    return sa >= sb;
  case CmpInst::ICMP_SLT:
    return sa < sb;
  default:
    return sa <= sb;
  }
}

template <unsigned predicate> void compare(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a), *b = w.val(op.b);
  uint64_t *out = w.out(op.dst), poison = w.poisonOf(op.a) | w.poisonOf(op.b);
  unsigned drop = 64 - op.bits;
  auto extended = [&](uint64_t value) { return int64_t(value << drop) >> drop; };
  w.each([&](unsigned l) { out[l] = relation<predicate>(a[l], b[l], extended(a[l]), extended(b[l])); });
  if (op.flags & FlagSameSign)
    w.each([&](unsigned l) { poison |= uint64_t((extended(a[l]) < 0) != (extended(b[l]) < 0)) << l; });
  w.setPoison(op.dst, poison);
}

//===----------------------------------------------------------------------===//
// Integer intrinsics
//===----------------------------------------------------------------------===//

uint64_t saturate(Int128 value, unsigned bits, bool isSigned) {
  Int128 high = isSigned ? (Int128(1) << (bits - 1)) - 1 : (Int128(1) << bits) - 1;
  Int128 low = isSigned ? -high - 1 : 0;
  return uint64_t(value > high ? high : value < low ? low : value);
}

template <IntegerOp kind>
uint64_t integer(uint64_t a, uint64_t b, uint64_t c, unsigned bits, uint32_t flags, bool &poison) {
  int64_t sa = signedValue(a, bits), sb = signedValue(b, bits);
  switch (kind) {
  case IntegerOp::Ctpop:
    return popcount(a);
  case IntegerOp::Ctlz:
    poison = !a && flags;
    return a ? countl_zero(a) - (64 - bits) : bits;
  case IntegerOp::Cttz:
    poison = !a && flags;
    return a ? countr_zero(a) : bits;
  case IntegerOp::BitReverse:
    return reverseBits(a) >> (64 - bits);
  case IntegerOp::ByteSwap:
    return llvm::byteswap(a) >> (64 - bits);
  case IntegerOp::Abs:
    poison = flags && a == uint64_t(1) << (bits - 1);
    return sa < 0 ? 0 - a : a;
  case IntegerOp::SMin:
    return sa < sb ? a : b;
  case IntegerOp::SMax:
    return sa > sb ? a : b;
  case IntegerOp::UMin:
    return a < b ? a : b;
  case IntegerOp::UMax:
    return a > b ? a : b;
  case IntegerOp::FunnelLeft:
    c %= bits;
    return c ? a << c | b >> (bits - c) : a;
  case IntegerOp::FunnelRight:
    c %= bits;
    return c ? a << (bits - c) | b >> c : b;
  case IntegerOp::SAddSat:
    return saturate(Int128(sa) + sb, bits, true);
  case IntegerOp::UAddSat:
    return saturate(Int128(a) + b, bits, false);
  case IntegerOp::SSubSat:
    return saturate(Int128(sa) - sb, bits, true);
  case IntegerOp::USubSat:
    return saturate(Int128(a) - b, bits, false);
  case IntegerOp::SShlSat:
    poison = b >= bits;
    return poison ? 0 : saturate(Int128(sa) * (Int128(1) << b), bits, true);
  case IntegerOp::UShlSat:
    poison = b >= bits;
    return poison ? 0 : (a << b & lowBits(bits)) >> b == a ? a << b : lowBits(bits);
  case IntegerOp::UCmp:
    return a < b ? -1 : a > b;
  case IntegerOp::SCmp:
    return sa < sb ? -1 : sa > sb;
  case IntegerOp::MulHighS:
    return uint64_t(Int128(sa) * sb >> bits);
  case IntegerOp::MulHighU:
    return uint64_t(UInt128(a) * b >> bits);
  }
  return 0;
}

template <IntegerOp kind> void integerHandler(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a), *b = w.val(op.b), *c = w.val(op.c);
  uint64_t *out = w.out(op.dst), poison = w.poisonOf(op.a) | w.poisonOf(op.b) | w.poisonOf(op.c);
  uint64_t keep = lowBits(op.bits2 ? op.bits2 : op.bits); // the result of a comparison has its own width
  w.each([&](unsigned l) {
    bool isPoison = false;
    out[l] = integer<kind>(a[l], b[l], c[l], op.bits, op.flags, isPoison) & keep;
    poison |= uint64_t(isPoison) << l;
  });
  w.setPoison(op.dst, poison);
}

void overflow(Wave &w, const Op &op) {
  const uint64_t *a = w.val(op.a), *b = w.val(op.b);
  uint64_t *out = w.out(op.dst), *flag = w.out(op.dst + 1), poison = w.poisonOf(op.a) | w.poisonOf(op.b);
  w.each([&](unsigned l) {
    bool isSigned = !(op.sub & 1);
    Int128 x = isSigned ? Int128(signedValue(a[l], op.bits)) : Int128(a[l]);
    Int128 y = isSigned ? Int128(signedValue(b[l], op.bits)) : Int128(b[l]);
    bool over;
    if (op.sub >= 4 && !isSigned) {
      UInt128 product = UInt128(a[l]) * b[l];
      out[l] = uint64_t(product) & lowBits(op.bits);
      over = product >> op.bits != 0;
    } else {
      Int128 exact = op.sub < 2 ? x + y : op.sub < 4 ? x - y : x * y;
      out[l] = uint64_t(exact) & lowBits(op.bits);
      over = exact != (isSigned ? Int128(signedValue(out[l], op.bits)) : Int128(out[l]));
    }
    flag[l] = over;
  });
  w.setPoison(op.dst, poison);
  w.setPoison(op.dst + 1, poison);
}

template <unsigned opcode> Handler binaryOf(bool flagged) {
  return flagged ? binary<opcode, true> : binary<opcode, false>;
}

} // namespace

Handler integerBinary(unsigned opcode, bool flagged) {
  switch (opcode) {
  case Instruction::Add:
    return binaryOf<Instruction::Add>(flagged);
  case Instruction::Sub:
    return binaryOf<Instruction::Sub>(flagged);
  case Instruction::Mul:
    return binaryOf<Instruction::Mul>(flagged);
  case Instruction::And:
    return binaryOf<Instruction::And>(false);
  case Instruction::Or:
    return binaryOf<Instruction::Or>(flagged);
  case Instruction::Xor:
    return binaryOf<Instruction::Xor>(false);
  case Instruction::Shl:
    return binaryOf<Instruction::Shl>(true);
  case Instruction::LShr:
    return binaryOf<Instruction::LShr>(true);
  case Instruction::AShr:
    return binaryOf<Instruction::AShr>(true);
  case Instruction::UDiv:
    return divide<Instruction::UDiv>;
  case Instruction::SDiv:
    return divide<Instruction::SDiv>;
  case Instruction::URem:
    return divide<Instruction::URem>;
  case Instruction::SRem:
    return divide<Instruction::SRem>;
  default:
    return nullptr;
  }
}

Handler integerFunction(IntegerOp op) {
#define QD_CASE(name)                                                                                        \
  case IntegerOp::name:                                                                                      \
    return integerHandler<IntegerOp::name>;
  switch (op) {
    QD_CASE(Ctpop)
    QD_CASE(Ctlz)
    QD_CASE(Cttz)
    QD_CASE(BitReverse)
    QD_CASE(ByteSwap)
    QD_CASE(Abs) QD_CASE(SMin) QD_CASE(SMax) QD_CASE(UMin) QD_CASE(UMax) QD_CASE(FunnelLeft)
        QD_CASE(FunnelRight) QD_CASE(SAddSat) QD_CASE(UAddSat) QD_CASE(SSubSat) QD_CASE(USubSat)
            QD_CASE(SShlSat) QD_CASE(UShlSat) QD_CASE(UCmp) QD_CASE(SCmp) QD_CASE(MulHighS) QD_CASE(MulHighU)
  }
#undef QD_CASE
  return nullptr;
}

Handler integerCompare(unsigned predicate) {
  switch (predicate) {
  case CmpInst::ICMP_EQ:
    return compare<CmpInst::ICMP_EQ>;
  case CmpInst::ICMP_NE:
    return compare<CmpInst::ICMP_NE>;
  case CmpInst::ICMP_UGT:
    return compare<CmpInst::ICMP_UGT>;
  case CmpInst::ICMP_UGE:
    return compare<CmpInst::ICMP_UGE>;
  case CmpInst::ICMP_ULT:
    return compare<CmpInst::ICMP_ULT>;
  case CmpInst::ICMP_ULE:
    return compare<CmpInst::ICMP_ULE>;
  case CmpInst::ICMP_SGT:
    return compare<CmpInst::ICMP_SGT>;
  case CmpInst::ICMP_SGE:
    return compare<CmpInst::ICMP_SGE>;
  case CmpInst::ICMP_SLT:
    return compare<CmpInst::ICMP_SLT>;
  default:
    return compare<CmpInst::ICMP_SLE>;
  }
}
Handler overflowOp() { return overflow; }

} // namespace qd::sim
