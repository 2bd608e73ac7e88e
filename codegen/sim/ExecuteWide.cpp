//===----------------------------------------------------------------------===//
// Handlers of integers of 65 to 128 bits, two words each: rare, so they go
// through APInt one lane at a time.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Handlers.h"
#include "codegen/sim/Wave.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace qd::sim {

namespace {

APInt read(const Wave &w, const Op &op, unsigned operand, unsigned lane, unsigned bits) {
  uint64_t words[] = {w.val(w.arg(op, 2 * operand))[lane], w.val(w.arg(op, 2 * operand + 1))[lane]};
  return APInt(bits, words);
}

void write(Wave &w, const Op &op, unsigned lane, const APInt &value) {
  w.out(op.dst)[lane] = value.getRawData()[0];
  w.out(op.dst + 1)[lane] = value.getRawData()[1];
}

void setPoison(Wave &w, const Op &op, uint64_t lanes) {
  w.setPoison(op.dst, lanes);
  w.setPoison(op.dst + 1, lanes);
}

bool isDivision(unsigned opcode) {
  return opcode >= Instruction::UDiv && opcode <= Instruction::SRem && opcode != Instruction::FDiv;
}

void binary(Wave &w, const Op &op) {
  uint64_t poison = w.poisonOfArgs(op);
  uint32_t flags = op.flags;
  bool divides = isDivision(op.sub), isSigned = op.sub == Instruction::SDiv || op.sub == Instruction::SRem;
  if (divides)
    for (unsigned i : {2u, 3u})
      if (!w.needsValue(op, w.arg(op, i), "a divisor"))
        return;
  w.each([&](unsigned l) {
    if (poison >> l & 1)
      return;
    APInt a = read(w, op, 0, l, op.bits), b = read(w, op, 1, l, op.bits), r(op.bits, 0);
    if (divides && b.isZero())
      return w.fail(op, l, "division by zero");
    if (isSigned && b.isAllOnes() && a.isMinSignedValue())
      return w.fail(op, l, "signed division overflows");
    bool over = false, overSigned = false, inexact = false;
    switch (op.sub) {
    case Instruction::Add:
      (void)a.sadd_ov(b, overSigned);
      r = a.uadd_ov(b, over);
      break;
    case Instruction::Sub:
      (void)a.ssub_ov(b, overSigned);
      r = a.usub_ov(b, over);
      break;
    case Instruction::Mul:
      (void)a.smul_ov(b, overSigned);
      (void)a.umul_ov(b, over);
      r = a * b;
      break;
    case Instruction::UDiv:
      r = a.udiv(b);
      inexact = !a.urem(b).isZero();
      break;
    case Instruction::SDiv:
      r = a.sdiv(b);
      inexact = !a.srem(b).isZero();
      break;
    case Instruction::URem:
      r = a.urem(b);
      break;
    case Instruction::SRem:
      r = a.srem(b);
      break;
    case Instruction::And:
      r = a & b;
      break;
    case Instruction::Or:
      r = a | b;
      inexact = (flags & FlagDisjoint) && a.intersects(b);
      break;
    case Instruction::Xor:
      r = a ^ b;
      break;
    default: { // shifts
      if (b.uge(op.bits)) {
        poison |= uint64_t(1) << l;
        return;
      }
      unsigned by = b.getZExtValue();
      if (op.sub == Instruction::Shl) {
        r = a.shl(by);
        over = r.lshr(by) != a;
        overSigned = r.ashr(by) != a;
      } else {
        r = op.sub == Instruction::LShr ? a.lshr(by) : a.ashr(by);
        inexact = a.countr_zero() < by;
      }
      break;
    }
    }
    if (((flags & FlagNUW) && over) || ((flags & FlagNSW) && overSigned) ||
        ((flags & (FlagExact | FlagDisjoint)) && inexact))
      poison |= uint64_t(1) << l;
    write(w, op, l, r);
  });
  setPoison(w, op, poison);
}

void compare(Wave &w, const Op &op) {
  uint64_t *out = w.out(op.dst), poison = w.poisonOfArgs(op);
  w.each([&](unsigned l) {
    APInt a = read(w, op, 0, l, op.bits), b = read(w, op, 1, l, op.bits);
    out[l] = ICmpInst::compare(a, b, CmpInst::Predicate(op.sub));
    if ((op.flags & FlagSameSign) && a.isNegative() != b.isNegative())
      poison |= uint64_t(1) << l;
  });
  w.setPoison(op.dst, poison);
}

void function(Wave &w, const Op &op) {
  uint64_t poison = w.poisonOfArgs(op);
  w.each([&](unsigned l) {
    APInt a = read(w, op, 0, l, op.bits), b = op.nargs > 2 ? read(w, op, 1, l, op.bits) : a;
    APInt c = op.nargs > 4 ? read(w, op, 2, l, op.bits) : a, r = a;
    bool isPoison = false;
    auto number = [&](uint64_t value) { return APInt(op.bits, value); };
    switch (IntegerOp(op.sub)) {
    case IntegerOp::Ctpop:
      r = number(a.popcount());
      break;
    case IntegerOp::Ctlz:
      r = number(a.countl_zero());
      isPoison = op.flags && a.isZero();
      break;
    case IntegerOp::Cttz:
      r = number(a.countr_zero());
      isPoison = op.flags && a.isZero();
      break;
    case IntegerOp::BitReverse:
      r = a.reverseBits();
      break;
    case IntegerOp::ByteSwap:
      r = a.byteSwap();
      break;
    case IntegerOp::Abs:
      r = a.abs();
      isPoison = op.flags && a.isMinSignedValue();
      break;
    case IntegerOp::SMin:
      r = APIntOps::smin(a, b);
      break;
    case IntegerOp::SMax:
      r = APIntOps::smax(a, b);
      break;
    case IntegerOp::UMin:
      r = APIntOps::umin(a, b);
      break;
    case IntegerOp::UMax:
      r = APIntOps::umax(a, b);
      break;
    case IntegerOp::FunnelLeft: {
      unsigned by = c.urem(op.bits);
      r = by ? a.shl(by) | b.lshr(op.bits - by) : a;
      break;
    }
    case IntegerOp::FunnelRight: {
      unsigned by = c.urem(op.bits);
      r = by ? a.shl(op.bits - by) | b.lshr(by) : b;
      break;
    }
    case IntegerOp::SAddSat:
      r = a.sadd_sat(b);
      break;
    case IntegerOp::UAddSat:
      r = a.uadd_sat(b);
      break;
    case IntegerOp::SSubSat:
      r = a.ssub_sat(b);
      break;
    case IntegerOp::USubSat:
      r = a.usub_sat(b);
      break;
    case IntegerOp::SShlSat:
      isPoison = b.uge(op.bits);
      r = isPoison ? a : a.sshl_sat(b);
      break;
    case IntegerOp::UShlSat:
      isPoison = b.uge(op.bits);
      r = isPoison ? a : a.ushl_sat(b);
      break;
    default:
      break;
    }
    poison |= uint64_t(isPoison) << l;
    write(w, op, l, r);
  });
  setPoison(w, op, poison);
}

void overflow(Wave &w, const Op &op) {
  uint64_t *flag = w.out(op.dst + 2), poison = w.poisonOfArgs(op);
  w.each([&](unsigned l) {
    APInt a = read(w, op, 0, l, op.bits), b = read(w, op, 1, l, op.bits), r = a;
    bool over = false;
    switch (op.sub) {
    case 0:
      r = a.sadd_ov(b, over);
      break;
    case 1:
      r = a.uadd_ov(b, over);
      break;
    case 2:
      r = a.ssub_ov(b, over);
      break;
    case 3:
      r = a.usub_ov(b, over);
      break;
    case 4:
      r = a.smul_ov(b, over);
      break;
    default:
      (void)a.umul_ov(b, over);
      r = a * b;
      break;
    }
    write(w, op, l, r);
    flag[l] = over;
  });
  setPoison(w, op, poison);
  w.setPoison(op.dst + 2, poison);
}

/// sub: 1 signed, 2 saturating; bits2 Format.
void fromFloat(Wave &w, const Op &op) {
  const uint64_t *in = w.val(op.a);
  uint64_t poison = w.poisonOf(op.a);
  w.each([&](unsigned l) {
    APFloat value = toAPFloat(Format(op.bits2), in[l]);
    APSInt result(op.bits, !(op.sub & 1));
    bool exact;
    // Out of range it leaves the nearest value, and 0 for NaN.
    if (value.convertToInteger(result, APFloat::rmTowardZero, &exact) == APFloat::opInvalidOp &&
        !(op.sub & 2))
      poison |= uint64_t(1) << l;
    write(w, op, l, result);
  });
  setPoison(w, op, poison);
}

/// bits Format, bits2 the width of the integer; sub 1: signed.
void toFloat(Wave &w, const Op &op) {
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) {
    APFloat result(formatSemantics(Format(op.bits)));
    result.convertFromAPInt(read(w, op, 0, l, op.bits2), op.sub, APFloat::rmNearestTiesToEven);
    out[l] = result.bitcastToAPInt().getZExtValue();
  });
  w.setPoison(op.dst, w.poisonOfArgs(op));
}

} // namespace

const WideHandlers wideHandlers = {binary, compare, function, overflow, fromFloat, toFloat};

} // namespace qd::sim
