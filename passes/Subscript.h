//===- Subscript.h - arithmetic of subscripts ------------------------------------------===//
//
// Purpose: sums and products of subscripts, strides and extents, folded where they are constants.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_SUBSCRIPT_H
#define QD_PASSES_SUBSCRIPT_H

#include "ir/Dialect.h"

namespace qd {

/// A constant, or a value of the builder's index type.
struct Number {
  explicit Number(int64_t constant = 0) : constant(constant) {}
  explicit Number(mlir::Value value) : value(value) {}

  bool is(int64_t other) const { return !value && constant == other; }
  /// As a subscript: an operand, or a literal.
  mlir::ValueRange asOperands() const { return value ? mlir::ValueRange(value) : mlir::ValueRange(); }
  int64_t getLiteral() const { return value ? mlir::ShapedType::kDynamic : constant; }

  mlir::Value value;
  int64_t constant = 0;
};

/// A power of two that divides an integer, as far as the ops that make it tell.
uint64_t getKnownFactor(mlir::Value value, unsigned depth = 0);

class NumberBuilder {
public:
  NumberBuilder(mlir::MLIRContext *context, mlir::Type index) : builder(context), index(index) {}

  void setBefore(mlir::Operation *op);
  void setToStart(KernelOp kernel);

  Number add(Number a, Number b);
  Number mul(Number a, Number b);
  /// Of a number that is not negative.
  Number divide(Number a, unsigned by);
  Number cast(mlir::Value value);
  Number getExtent(mlir::Value buffer, unsigned dim, unsigned rank);
  mlir::Value toValue(Number number, mlir::Type type);

  mlir::Value extract(mlir::Value vector, unsigned i);
  mlir::Value combine(mlir::Type vector, mlir::ValueRange scalars);

  bool isOwn(mlir::Operation *op) const { return own.contains(op); }
  /// Erases what was made and has no use.
  void eraseUnused();

  mlir::OpBuilder builder;

private:
  template <typename Op, typename... Args> mlir::Value make(Args &&...args) {
    auto op = Op::create(builder, loc, std::forward<Args>(args)...);
    own.insert(op);
    order.push_back(op);
    return op->getResult(0);
  }

  mlir::Type index;
  mlir::Location loc = mlir::UnknownLoc::get(builder.getContext());
  llvm::DenseSet<mlir::Operation *> own;
  llvm::SmallVector<mlir::Operation *> order;
};

} // namespace qd

#endif
