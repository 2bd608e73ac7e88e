//===- Combiner.h - how a reduction or scan combines values ---------------------------===//
//
// Purpose: one step of a reduction or scan, by a kind or by a `combine` region, of which each step gets a copy.
//
// Input invariant: a verified op; its region, if any, has been expanded itself.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_COMBINER_H
#define QD_PASSES_COMBINER_H

#include "ir/Dialect.h"
#include "passes/LaneBuilder.h"

namespace qd {

class Combiner {
public:
  Combiner(Kind kind) : kind(kind) {}
  template <typename Op>
  explicit Combiner(Op op)
      : kind(op.getKind()), region(kind ? nullptr : &op.getCombiner()), identity(op.getIdentity()) {}

  /// None where a region combines.
  std::optional<Kind> getKind() const { return kind; }

  /// Whether the operands may change places: a region says nothing about that.
  bool isCommutative() const { return kind.has_value(); }

  /// Whether combining poison gives poison and no more. A region that branches on its operands must not see it.
  bool takesPoison() const;

  /// Whether the exclusive scan is the inclusive one without the own value, exactly.
  bool isInvertible(mlir::ValueRange values) const;

  /// The values of a lower lane, or of lanes, with those of a higher one.
  Values combine(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange lower, mlir::ValueRange higher) const;

  /// As `combine` on the lanes that `counts` names; the others hold anything. They must not run a region whose loops
  /// may not end, or whose divisions may trap, on values that no combination of lanes gives.
  Values combineWhere(mlir::OpBuilder &builder, mlir::Location loc, llvm::function_ref<mlir::Value()> counts,
                      mlir::ValueRange lower, mlir::ValueRange higher) const;

  /// x of `combine(x, removed) = whole`; the combiner is invertible.
  mlir::Value remove(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value whole, mlir::Value removed) const;

  /// What lanes with nothing to combine hold.
  Values getIdentity(mlir::OpBuilder &builder, mlir::Location loc, mlir::TypeRange types) const;

  /// A constant that changes no value of `type` that it is combined with, nor a zero's sign; of kinds alone.
  mlir::Value getNeutral(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type) const;

private:
  /// Whether any operands may be given.
  bool isTotal() const;

  std::optional<Kind> kind;
  mlir::Region *region = nullptr;
  mlir::ValueRange identity;
};

} // namespace qd

#endif
