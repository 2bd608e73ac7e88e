//===- Combiner.cpp - how a reduction or scan combines values -------------------------===//

#include "passes/Combiner.h"

#include "ir/Kind.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace qd {

bool Combiner::takesPoison() const {
  return kind || llvm::all_of(region->front(), [](Operation &op) { return op.getNumRegions() == 0; });
}

bool Combiner::isInvertible(ValueRange values) const {
  return (kind == Kind::add || kind == Kind::xori) && isa<IntegerType>(values.front().getType());
}

Values Combiner::combine(OpBuilder &builder, Location loc, ValueRange lower, ValueRange higher) const {
  if (kind)
    return createKindOp(builder, loc, *kind, lower.front(), higher.front());
  Block &block = region->front();
  IRMapping mapping;
  mapping.map(block.getArguments().take_front(lower.size()), lower);
  mapping.map(block.getArguments().drop_front(lower.size()), higher);
  for (Operation &op : block.without_terminator())
    builder.clone(op, mapping);
  Values results;
  for (Value yielded : block.getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(yielded));
  return results;
}

/// Whether an op may hang or trap on operands that its author did not mean. Upstream takes remainders for pure.
static bool mayFail(Operation *op) {
  if (isa<LoopLikeOpInterface, arith::RemSIOp, arith::RemUIOp>(op))
    return true;
  return op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() && !isSpeculatable(op);
}

bool Combiner::isTotal() const {
  if (kind)
    return true;
  WalkResult walked =
      region->walk([](Operation *op) { return mayFail(op) ? WalkResult::interrupt() : WalkResult::advance(); });
  return !walked.wasInterrupted();
}

Values Combiner::combineWhere(OpBuilder &builder, Location loc, llvm::function_ref<Value()> counts, ValueRange lower,
                              ValueRange higher) const {
  if (isTotal())
    return combine(builder, loc, lower, higher);
  auto guarded = scf::IfOp::create(
      builder, loc, counts(),
      [&](OpBuilder &b, Location) { scf::YieldOp::create(b, loc, combine(b, loc, lower, higher)); },
      [&](OpBuilder &b, Location) { scf::YieldOp::create(b, loc, higher); });
  return guarded.getResults();
}

Value Combiner::remove(OpBuilder &builder, Location loc, Value whole, Value removed) const {
  if (kind == Kind::add)
    return arith::SubIOp::create(builder, loc, whole, removed);
  return arith::XOrIOp::create(builder, loc, whole, removed);
}

Value Combiner::getNeutral(OpBuilder &builder, Location loc, Type type) const {
  TypedAttr constant = qd::getIdentity(*kind, type);
  if (auto floatType = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
    if (kind == Kind::add)
      constant = FloatAttr::get(type, APFloat::getZero(semantics, /*Negative=*/true));
    else if (kind == Kind::minnumf || kind == Kind::maxnumf)
      constant = FloatAttr::get(type, APFloat::getNaN(semantics));
  }
  return arith::ConstantOp::create(builder, loc, constant);
}

Values Combiner::getIdentity(OpBuilder &builder, Location loc, TypeRange types) const {
  Values values;
  if (kind)
    values.push_back(arith::ConstantOp::create(builder, loc, qd::getIdentity(*kind, types.front())));
  else
    llvm::append_range(values, identity);
  return values;
}

} // namespace qd
