//===- MathBuilder.h - arithmetic on values, as formulas ------------------------------------===//
//
// Purpose: numbers and integers of W bits that a kernel computes, with C++'s operators; each builds an op. An operand
// that is a C++ number becomes a constant of the other's type. Integers compare as signed numbers unless the name says
// otherwise; comparisons of numbers are false where one is NaN.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_MATHBUILDER_H
#define QD_PASSES_MATHBUILDER_H

#include "ir/RareAttribute.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <utility>

namespace qd::math {

/// Where ops are built.
struct Place {
  mlir::OpBuilder &b;
  mlir::Location loc;
  bool marksRare = false; ///< values may be chosen by selectRare
  template <typename Op, typename... Args> mlir::Value make(Args &&...args) const {
    return b.createOrFold<Op>(loc, std::forward<Args>(args)...);
  }
};

struct Bool {
  const Place *at;
  mlir::Value v;
};
template <unsigned W> struct Int {
  const Place *at;
  mlir::Value v;
};
template <unsigned W> struct Real {
  const Place *at;
  mlir::Value v;
};

template <unsigned W> mlir::Type getRealType(const Place &at) {
  return W == 32 ? at.b.getF32Type() : at.b.getF64Type();
}
template <unsigned W> mlir::Type getIntType(const Place &at) { return at.b.getIntegerType(W); }

/// A constant; the first operand only says of which type and where.
template <unsigned W> Real<W> constant(Real<W> like, double value) {
  llvm::APFloat exact(value);
  bool losesInfo;
  if (W == 32)
    exact.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  mlir::FloatAttr attribute = like.at->b.getFloatAttr(getRealType<W>(*like.at), exact);
  return {like.at, mlir::arith::ConstantOp::create(like.at->b, like.at->loc, attribute)};
}
template <unsigned W> Int<W> constant(Int<W> like, int64_t value) {
  mlir::IntegerAttr attribute = like.at->b.getIntegerAttr(
      getIntType<W>(*like.at), llvm::APInt(W, uint64_t(value), false, /*implicitTrunc=*/true));
  return {like.at, mlir::arith::ConstantOp::create(like.at->b, like.at->loc, attribute)};
}

#define QD_MATH_BINARY(Type, Number, op, Op)                                                                           \
  template <unsigned W> Type<W> operator op(Type<W> a, Type<W> b) {                                                    \
    return {a.at, a.at->template make<Op>(a.v, b.v)};                                                                  \
  }                                                                                                                    \
  template <unsigned W> Type<W> operator op(Type<W> a, Number b) { return a op constant(a, b); }                       \
  template <unsigned W> Type<W> operator op(Number a, Type<W> b) { return constant(b, a) op b; }
QD_MATH_BINARY(Real, double, +, mlir::arith::AddFOp)
QD_MATH_BINARY(Real, double, -, mlir::arith::SubFOp)
QD_MATH_BINARY(Real, double, *, mlir::arith::MulFOp)
QD_MATH_BINARY(Real, double, /, mlir::arith::DivFOp)
QD_MATH_BINARY(Int, int64_t, +, mlir::arith::AddIOp)
QD_MATH_BINARY(Int, int64_t, -, mlir::arith::SubIOp)
QD_MATH_BINARY(Int, int64_t, *, mlir::arith::MulIOp)
QD_MATH_BINARY(Int, int64_t, &, mlir::arith::AndIOp)
QD_MATH_BINARY(Int, int64_t, |, mlir::arith::OrIOp)
QD_MATH_BINARY(Int, int64_t, ^, mlir::arith::XOrIOp)
QD_MATH_BINARY(Int, int64_t, <<, mlir::arith::ShLIOp)
QD_MATH_BINARY(Int, int64_t, >>, mlir::arith::ShRSIOp)
#undef QD_MATH_BINARY

#define QD_MATH_COMPARE(Type, Number, op, Op, predicate)                                                               \
  template <unsigned W> Bool operator op(Type<W> a, Type<W> b) {                                                       \
    return {a.at, a.at->template make<Op>(predicate, a.v, b.v)};                                                       \
  }                                                                                                                    \
  template <unsigned W> Bool operator op(Type<W> a, Number b) { return a op constant(a, b); }
QD_MATH_COMPARE(Real, double, <, mlir::arith::CmpFOp, mlir::arith::CmpFPredicate::OLT)
QD_MATH_COMPARE(Real, double, >, mlir::arith::CmpFOp, mlir::arith::CmpFPredicate::OGT)
QD_MATH_COMPARE(Real, double, ==, mlir::arith::CmpFOp, mlir::arith::CmpFPredicate::OEQ)
QD_MATH_COMPARE(Int, int64_t, <, mlir::arith::CmpIOp, mlir::arith::CmpIPredicate::slt)
QD_MATH_COMPARE(Int, int64_t, ==, mlir::arith::CmpIOp, mlir::arith::CmpIPredicate::eq)
QD_MATH_COMPARE(Int, int64_t, !=, mlir::arith::CmpIOp, mlir::arith::CmpIPredicate::ne)
#undef QD_MATH_COMPARE

inline Bool operator&(Bool a, Bool b) { return {a.at, a.at->make<mlir::arith::AndIOp>(a.v, b.v)}; }
inline Bool operator|(Bool a, Bool b) { return {a.at, a.at->make<mlir::arith::OrIOp>(a.v, b.v)}; }
inline Bool operator^(Bool a, Bool b) { return {a.at, a.at->make<mlir::arith::XOrIOp>(a.v, b.v)}; }
inline Bool constant(const Place &at, bool value) {
  return {&at, mlir::arith::ConstantOp::create(at.b, at.loc, at.b.getBoolAttr(value))};
}
inline Bool operator!(Bool a) { return {a.at, a.at->make<mlir::arith::XOrIOp>(a.v, constant(*a.at, true).v)}; }

/// a*b + c. In f32 it is rounded once, on every target; in f64 the product is rounded too: where a device does not
/// fuse, that would cost too much.
template <unsigned W> Real<W> multiplyAdd(Real<W> a, Real<W> b, Real<W> c) {
  if constexpr (W == 32)
    return {a.at, a.at->template make<mlir::math::FmaOp>(a.v, b.v, c.v)};
  else
    return a * b + c;
}
template <unsigned W> Real<W> multiplyAdd(Real<W> a, double b, Real<W> c) { return multiplyAdd(a, constant(a, b), c); }
template <unsigned W> Real<W> multiplyAdd(Real<W> a, Real<W> b, double c) { return multiplyAdd(a, b, constant(a, c)); }
template <unsigned W> Real<W> multiplyAdd(Real<W> a, double b, double c) {
  return multiplyAdd(a, constant(a, b), constant(a, c));
}

template <unsigned W> Real<W> operator-(Real<W> a) { return {a.at, a.at->template make<mlir::arith::NegFOp>(a.v)}; }

/// a + b*c and a - b*c where the product is exact: a target may fuse the two, which gives the same.
template <typename Op, unsigned W> Real<W> addExactProduct(Real<W> a, Real<W> b, Real<W> c) {
  auto contract = mlir::arith::FastMathFlags::contract;
  mlir::Value product = a.at->template make<mlir::arith::MulFOp>(b.v, c.v, contract);
  return {a.at, a.at->template make<Op>(a.v, product, contract)};
}
template <unsigned W> Real<W> plusExact(Real<W> a, Real<W> b, Real<W> c) {
  return addExactProduct<mlir::arith::AddFOp>(a, b, c);
}
template <unsigned W> Real<W> plusExact(Real<W> a, Real<W> b, double c) { return plusExact(a, b, constant(a, c)); }
template <unsigned W> Real<W> minusExact(Real<W> a, Real<W> b, Real<W> c) {
  return addExactProduct<mlir::arith::SubFOp>(a, b, c);
}
template <unsigned W> Real<W> minusExact(Real<W> a, Real<W> b, double c) { return minusExact(a, b, constant(a, c)); }

template <unsigned W> Real<W> select(Bool c, Real<W> a, Real<W> b) {
  return {c.at, c.at->make<mlir::arith::SelectOp>(c.v, a.v, b.v)};
}
template <unsigned W> Real<W> select(Bool c, double a, Real<W> b) { return select(c, constant(b, a), b); }
template <unsigned W> Real<W> select(Bool c, Real<W> a, double b) { return select(c, a, constant(a, b)); }
template <unsigned W> Int<W> select(Bool c, Int<W> a, Int<W> b) {
  return {c.at, c.at->make<mlir::arith::SelectOp>(c.v, a.v, b.v)};
}
template <unsigned W> Int<W> select(Bool c, int64_t a, Int<W> b) { return select(c, constant(b, a), b); }
template <unsigned W> Int<W> select(Bool c, Int<W> a, int64_t b) { return select(c, a, constant(a, b)); }

/// The same, marked by `rareAttribute`: `a` is right in any case, and `b`, which takes less time, unless c holds.
template <unsigned W> Real<W> selectRare(Bool c, Real<W> a, Real<W> b) {
  auto select = mlir::arith::SelectOp::create(c.at->b, c.at->loc, c.v, a.v, b.v);
  select->setAttr(rareAttribute, c.at->b.getUnitAttr());
  return {c.at, select};
}

template <unsigned W> Bool isNaN(Real<W> a) {
  return {a.at, a.at->template make<mlir::arith::CmpFOp>(mlir::arith::CmpFPredicate::UNO, a.v, a.v)};
}
template <unsigned W> Real<W> abs(Real<W> a) { return {a.at, a.at->template make<mlir::math::AbsFOp>(a.v)}; }
/// The larger and the smaller, and NaN where the number is that.
template <unsigned W> Real<W> atLeast(Real<W> a, double b) {
  return {a.at, a.at->template make<mlir::arith::MaximumFOp>(a.v, constant(a, b).v)};
}
template <unsigned W> Real<W> atMost(Real<W> a, double b) {
  return {a.at, a.at->template make<mlir::arith::MinimumFOp>(a.v, constant(a, b).v)};
}
/// Whether a is further from zero than b, or NaN.
template <unsigned W> Bool isBeyond(Real<W> a, double b) {
  return {a.at, a.at->template make<mlir::arith::CmpFOp>(mlir::arith::CmpFPredicate::UGT, abs(a).v, constant(a, b).v)};
}
template <unsigned W> Real<W> sqrt(Real<W> a) { return {a.at, a.at->template make<mlir::math::SqrtOp>(a.v)}; }
template <unsigned W> Real<W> trunc(Real<W> a) { return {a.at, a.at->template make<mlir::math::TruncOp>(a.v)}; }
template <unsigned W> Real<W> copySign(Real<W> a, Real<W> sign) {
  return {a.at, a.at->template make<mlir::math::CopySignOp>(a.v, sign.v)};
}

template <unsigned W> Int<W> toBits(Real<W> a) {
  return {a.at, a.at->template make<mlir::arith::BitcastOp>(getIntType<W>(*a.at), a.v)};
}
template <unsigned W> Real<W> fromBits(Int<W> a) {
  return {a.at, a.at->template make<mlir::arith::BitcastOp>(getRealType<W>(*a.at), a.v)};
}
template <unsigned W> Real<W> toReal(Int<W> a) {
  return {a.at, a.at->template make<mlir::arith::SIToFPOp>(getRealType<W>(*a.at), a.v)};
}
template <unsigned W> Int<W> shiftRight(Int<W> a, Int<W> n) {
  return {a.at, a.at->template make<mlir::arith::ShRUIOp>(a.v, n.v)};
}
template <unsigned W> Int<W> shiftRight(Int<W> a, int64_t n) { return shiftRight(a, constant(a, n)); }
template <unsigned W> Bool below(Int<W> a, Int<W> b) {
  return {a.at, a.at->template make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::ult, a.v, b.v)};
}
template <unsigned W> Bool below(Int<W> a, int64_t b) { return below(a, constant(a, b)); }

/// The product of unsigned integers, lower and upper half.
template <unsigned W> std::pair<Int<W>, Int<W>> multiplyWide(Int<W> a, Int<W> b) {
  auto op = mlir::arith::MulUIExtendedOp::create(a.at->b, a.at->loc, a.v, b.v);
  return {{a.at, op.getLow()}, {a.at, op.getHigh()}};
}

/// `then` builds what takes the place of a value or of a structure of values where the condition holds. It is computed
/// only then, for what is seldom needed and long.
template <typename Value, typename Then> void replaceIf(Bool condition, Then then, Value &value) {
  auto list = [](Value &value) {
    auto &[a, b, c] = value;
    return llvm::SmallVector<mlir::Value>{a.v, b.v, c.v};
  };
  auto build = [&](mlir::OpBuilder &b, mlir::Location loc) {
    Value other = then();
    mlir::scf::YieldOp::create(b, loc, list(other));
  };
  auto keep = [&](mlir::OpBuilder &b, mlir::Location loc) { mlir::scf::YieldOp::create(b, loc, list(value)); };
  const Place &at = *condition.at;
  auto op = mlir::scf::IfOp::create(at.b, at.loc, condition.v, build, keep);
  auto &[a, b, c] = value;
  a.v = op.getResult(0);
  b.v = op.getResult(1);
  c.v = op.getResult(2);
}

} // namespace qd::math

#endif
