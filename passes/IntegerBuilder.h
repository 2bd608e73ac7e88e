//===- IntegerBuilder.h - integer arithmetic in few words -----------------------------===//
//
// Purpose: builds the integer arithmetic that expansions consist of. Operands that are numbers become constants of
// the other operand's type; what is known at once folds.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_INTEGERBUILDER_H
#define QD_PASSES_INTEGERBUILDER_H

#include "passes/LaneBuilder.h"

namespace qd {

struct IntegerBuilder : LaneBuilder {
  using Value = mlir::Value;
  using Type = mlir::Type;
  using Predicate = mlir::arith::CmpIPredicate;

  explicit IntegerBuilder(const LaneBuilder &at) : LaneBuilder(at), i1(b.getI1Type()), i64(b.getI64Type()) {}

  Value constant(int64_t value, Type type) const {
    if (type.isInteger(1))
      return mlir::arith::ConstantOp::create(b, loc, b.getBoolAttr(value & 1));
    return LaneBuilder::constant(llvm::SignExtend64(value, type.getIntOrFloatBitWidth()), type);
  }
  template <typename Rhs> Value add(Value lhs, Rhs rhs) const { return make<mlir::arith::AddIOp>(lhs, rhs); }
  template <typename Rhs> Value sub(Value lhs, Rhs rhs) const { return make<mlir::arith::SubIOp>(lhs, rhs); }
  template <typename Rhs> Value mul(Value lhs, Rhs rhs) const { return make<mlir::arith::MulIOp>(lhs, rhs); }
  template <typename Rhs> Value divU(Value lhs, Rhs rhs) const { return make<mlir::arith::DivUIOp>(lhs, rhs); }
  template <typename Rhs> Value remU(Value lhs, Rhs rhs) const { return make<mlir::arith::RemUIOp>(lhs, rhs); }
  template <typename Rhs> Value bitAnd(Value lhs, Rhs rhs) const { return make<mlir::arith::AndIOp>(lhs, rhs); }
  template <typename Rhs> Value bitOr(Value lhs, Rhs rhs) const { return make<mlir::arith::OrIOp>(lhs, rhs); }
  template <typename Rhs> Value bitXor(Value lhs, Rhs rhs) const { return make<mlir::arith::XOrIOp>(lhs, rhs); }
  template <typename Rhs> Value shl(Value lhs, Rhs rhs) const { return make<mlir::arith::ShLIOp>(lhs, rhs); }
  template <typename Rhs> Value shrU(Value lhs, Rhs rhs) const { return make<mlir::arith::ShRUIOp>(lhs, rhs); }
  template <typename Rhs> Value shrS(Value lhs, Rhs rhs) const { return make<mlir::arith::ShRSIOp>(lhs, rhs); }
  Value bitNot(Value value) const { return bitXor(value, -1); }
  template <typename Rhs> Value compare(Predicate predicate, Value lhs, Rhs rhs) const {
    return b.createOrFold<mlir::arith::CmpIOp>(loc, predicate, lhs, toValue(lhs.getType(), rhs));
  }
  Value select(Value condition, Value ifTrue, Value ifFalse) const {
    return b.createOrFold<mlir::arith::SelectOp>(loc, condition, ifTrue, ifFalse);
  }

  /// `value` as an integer of `type`, extended by zeros (or its sign) or cut.
  Value cast(Value value, Type type, bool isSigned = false) const {
    unsigned from = value.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
    if (from == to)
      return value;
    if (from > to)
      return b.createOrFold<mlir::arith::TruncIOp>(loc, type, value);
    if (isSigned)
      return b.createOrFold<mlir::arith::ExtSIOp>(loc, type, value);
    return b.createOrFold<mlir::arith::ExtUIOp>(loc, type, value);
  }

  /// The bits of a scalar as an integer of its width, and integers as scalars of their width.
  Value toBits(Value value) const { return bitcast(value, b.getIntegerType(value.getType().getIntOrFloatBitWidth())); }
  Value bitcast(Value value, Type type) const {
    return value.getType() == type ? value : mlir::arith::BitcastOp::create(b, loc, type, value).getResult();
  }

  Type i1, i64;

private:
  Value toValue(Type, Value value) const { return value; }
  Value toValue(Type type, int64_t value) const { return constant(value, type); }
  template <typename Op, typename Rhs> Value make(Value lhs, Rhs rhs) const {
    return b.createOrFold<Op>(loc, lhs, toValue(lhs.getType(), rhs));
  }
};

} // namespace qd

#endif
