//===- Integer.cpp - integer arithmetic ---------------------------------------------------------===//
//
// What arith calls undefined (division by zero) or poison (oversized shifts, broken nsw, nuw and exact
// promises) is poison here.
//
//===----------------------------------------------------------------------===//

#include "codegen/interp/Machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace qd::interp {

//===----------------------------------------------------------------------===//
// Sums, products and shifts, with nsw and nuw
//===----------------------------------------------------------------------===//

/// `op` is null where a reduction combines values: it promises nothing.
static MaybeInt checkWrap(Operation *op, APInt result, bool signedWraps, bool unsignedWraps) {
  auto promise = dyn_cast_or_null<arith::ArithIntegerOverflowFlagsInterface>(op);
  if (promise && ((promise.hasNoSignedWrap() && signedWraps) || (promise.hasNoUnsignedWrap() && unsignedWraps)))
    return std::nullopt;
  return result;
}

static MaybeInt addi(Operation *op, Ints in) {
  bool signedWraps, unsignedWraps;
  (void)in[0].sadd_ov(in[1], signedWraps);
  APInt sum = in[0].uadd_ov(in[1], unsignedWraps);
  return checkWrap(op, sum, signedWraps, unsignedWraps);
}

static MaybeInt subi(Operation *op, Ints in) {
  bool signedWraps, unsignedWraps;
  (void)in[0].ssub_ov(in[1], signedWraps);
  APInt difference = in[0].usub_ov(in[1], unsignedWraps);
  return checkWrap(op, difference, signedWraps, unsignedWraps);
}

static MaybeInt muli(Operation *op, Ints in) {
  bool signedWraps, unsignedWraps;
  (void)in[0].smul_ov(in[1], signedWraps);
  APInt product = in[0].umul_ov(in[1], unsignedWraps);
  return checkWrap(op, product, signedWraps, unsignedWraps);
}

static bool isOversized(Ints in) { return in[1].uge(in[0].getBitWidth()); }

static MaybeInt shli(Operation *op, Ints in) {
  if (isOversized(in))
    return std::nullopt;
  APInt shifted = in[0].shl(in[1]);
  return checkWrap(op, shifted, shifted.ashr(in[1]) != in[0], shifted.lshr(in[1]) != in[0]);
}

static MaybeInt shrui(Operation *op, Ints in) {
  if (isOversized(in))
    return std::nullopt;
  APInt shifted = in[0].lshr(in[1]);
  if (cast<arith::ShRUIOp>(op).getIsExact() && shifted.shl(in[1]) != in[0])
    return std::nullopt;
  return shifted;
}

static MaybeInt shrsi(Operation *op, Ints in) {
  if (isOversized(in))
    return std::nullopt;
  APInt shifted = in[0].ashr(in[1]);
  if (cast<arith::ShRSIOp>(op).getIsExact() && shifted.shl(in[1]) != in[0])
    return std::nullopt;
  return shifted;
}

//===----------------------------------------------------------------------===//
// Division
//===----------------------------------------------------------------------===//

static bool overflowsSigned(Ints in) { return in[1].isZero() || (in[0].isMinSignedValue() && in[1].isAllOnes()); }

static MaybeInt divui(Operation *op, Ints in) {
  if (in[1].isZero() || (cast<arith::DivUIOp>(op).getIsExact() && in[0].urem(in[1]) != 0))
    return std::nullopt;
  return in[0].udiv(in[1]);
}

static MaybeInt divsi(Operation *op, Ints in) {
  if (overflowsSigned(in) || (cast<arith::DivSIOp>(op).getIsExact() && in[0].srem(in[1]) != 0))
    return std::nullopt;
  return in[0].sdiv(in[1]);
}

static MaybeInt ceildivui(Operation *, Ints in) {
  if (in[1].isZero())
    return std::nullopt;
  return llvm::APIntOps::RoundingUDiv(in[0], in[1], APInt::Rounding::UP);
}

static MaybeInt ceildivsi(Operation *, Ints in) {
  if (overflowsSigned(in))
    return std::nullopt;
  return llvm::APIntOps::RoundingSDiv(in[0], in[1], APInt::Rounding::UP);
}

static MaybeInt floordivsi(Operation *, Ints in) {
  if (overflowsSigned(in))
    return std::nullopt;
  return llvm::APIntOps::RoundingSDiv(in[0], in[1], APInt::Rounding::DOWN);
}

static MaybeInt remui(Operation *, Ints in) {
  if (in[1].isZero())
    return std::nullopt;
  return in[0].urem(in[1]);
}

static MaybeInt remsi(Operation *, Ints in) {
  if (overflowsSigned(in))
    return std::nullopt;
  return in[0].srem(in[1]);
}

//===----------------------------------------------------------------------===//
// Bits, minima and maxima
//===----------------------------------------------------------------------===//

static MaybeInt andi(Operation *, Ints in) { return in[0] & in[1]; }
static MaybeInt ori(Operation *, Ints in) { return in[0] | in[1]; }
static MaybeInt xori(Operation *, Ints in) { return in[0] ^ in[1]; }
static MaybeInt minsi(Operation *, Ints in) { return llvm::APIntOps::smin(in[0], in[1]); }
static MaybeInt minui(Operation *, Ints in) { return llvm::APIntOps::umin(in[0], in[1]); }
static MaybeInt maxsi(Operation *, Ints in) { return llvm::APIntOps::smax(in[0], in[1]); }
static MaybeInt maxui(Operation *, Ints in) { return llvm::APIntOps::umax(in[0], in[1]); }

static APInt toCount(unsigned count, const APInt &like) {
  return APInt(like.getBitWidth(), count, /*isSigned=*/false, /*implicitTrunc=*/true);
}

/// The most negative value is its own magnitude.
static MaybeInt absi(Operation *, Ints in) { return in[0].abs(); }
static MaybeInt ctpop(Operation *, Ints in) { return toCount(in[0].popcount(), in[0]); }
static MaybeInt ctlz(Operation *, Ints in) { return toCount(in[0].countl_zero(), in[0]); }
static MaybeInt cttz(Operation *, Ints in) { return toCount(in[0].countr_zero(), in[0]); }

//===----------------------------------------------------------------------===//
// Two results
//===----------------------------------------------------------------------===//

static void adduiExtended(Thread &thread) {
  bool carry;
  Type type = thread.inType(0);
  APInt sum = toInt(thread.in[0].bits, type).uadd_ov(toInt(thread.in[1].bits, type), carry);
  thread.out[0] = LaneValue::of(sum);
  thread.out[1] = LaneValue::of(carry);
}

static void putHalves(Thread &thread, const APInt &product) {
  unsigned width = product.getBitWidth() / 2;
  thread.out[0] = LaneValue::of(product.trunc(width));
  thread.out[1] = LaneValue::of(product.lshr(width).trunc(width));
}

static void muluiExtended(Thread &thread) {
  unsigned width = thread.outType().getIntOrFloatBitWidth();
  Type type = thread.inType(0);
  putHalves(thread, toInt(thread.in[0].bits, type).zext(2 * width) * toInt(thread.in[1].bits, type).zext(2 * width));
}

static void mulsiExtended(Thread &thread) {
  unsigned width = thread.outType().getIntOrFloatBitWidth();
  Type type = thread.inType(0);
  putHalves(thread, toInt(thread.in[0].bits, type).sext(2 * width) * toInt(thread.in[1].bits, type).sext(2 * width));
}

static void cmpi(Thread &thread) {
  APInt lhs = toInt(thread.in[0].bits, thread.inType(0)), rhs = toInt(thread.in[1].bits, thread.inType(1));
  bool holds = arith::applyCmpPredicate(thread.op<arith::CmpIOp>().getPredicate(), lhs, rhs);
  thread.out[0] = LaneValue::of(holds);
}

/// Only the chosen value counts: the other may be poison.
static void select(Thread &thread) {
  LaneValue condition = thread.in[0];
  if (!condition.poison)
    thread.out[0] = condition.bits ? thread.in[1] : thread.in[2];
}

void addIntegerRules(RuleTable &table) {
  table.addInts<arith::AddIOp>(addi);
  table.addInts<arith::SubIOp>(subi);
  table.addInts<arith::MulIOp>(muli);
  table.addInts<arith::ShLIOp>(shli);
  table.addInts<arith::ShRUIOp>(shrui);
  table.addInts<arith::ShRSIOp>(shrsi);
  table.addInts<arith::DivUIOp>(divui);
  table.addInts<arith::DivSIOp>(divsi);
  table.addInts<arith::CeilDivUIOp>(ceildivui);
  table.addInts<arith::CeilDivSIOp>(ceildivsi);
  table.addInts<arith::FloorDivSIOp>(floordivsi);
  table.addInts<arith::RemUIOp>(remui);
  table.addInts<arith::RemSIOp>(remsi);
  table.addInts<arith::AndIOp>(andi);
  table.addInts<arith::OrIOp>(ori);
  table.addInts<arith::XOrIOp>(xori);
  table.addInts<arith::MinSIOp>(minsi);
  table.addInts<arith::MinUIOp>(minui);
  table.addInts<arith::MaxSIOp>(maxsi);
  table.addInts<arith::MaxUIOp>(maxui);
  table.addInts<math::AbsIOp>(absi);
  table.addInts<math::CtPopOp>(ctpop);
  table.addInts<math::CountLeadingZerosOp>(ctlz);
  table.addInts<math::CountTrailingZerosOp>(cttz);
  table.addStrict<arith::AddUIExtendedOp>(adduiExtended);
  table.addStrict<arith::MulUIExtendedOp>(muluiExtended);
  table.addStrict<arith::MulSIExtendedOp>(mulsiExtended);
  table.addStrict<arith::CmpIOp>(cmpi);
  table.addThread<arith::SelectOp>(select);
}

} // namespace qd::interp
