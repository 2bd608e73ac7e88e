//===- ExpandAtomics.cpp - atomic accesses that a target lacks, as loops ----------------===//
//
// Purpose: writes an atomic access that the target has no instruction for as a loop that computes the new value and
// swaps it in where nobody came in between. The new value is arith's, and the swap compares bits: NaNs, zeros' signs
// and signedness are the kind's on every target.
//
//   %old = qd.atomic_rmw mul %v, %x[%i] acquire : !qd.buffer<f32>
// becomes
//   %first = qd.atomic_load %x[%i] : !qd.buffer<f32>
//   %old = scf.while (%seen = %first) : (f32) -> f32 {
//     %new = arith.mulf %seen, %v : f32
//     %found, %done = qd.atomic_cas %seen, %new, %x[%i] : !qd.buffer<f32>
//     %again = arith.xori %done, %true : i1
//     scf.condition(%again) %found : f32
//   } do { ^bb0(%found: f32): scf.yield %found : f32 }
//   qd.grid.mem_fence
//
// Order is kept once, around the loop: a fence before it releases, one behind it acquires. (Lavapipe takes what orders
// memory for a barrier, and loses subgroups where they go round a loop with one differently often.)
//
// Input invariant: a verified module.
//
// Output invariant: the target has an instruction for each atomic_rmw.
//
//===----------------------------------------------------------------------===//

#include "ir/Atomics.h"
#include "ir/Kind.h"
#include "passes/Passes.h"
#include "passes/TargetPass.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace qd {

namespace {
class ExpandAtomicsPass : public TargetPass<ExpandAtomicsPass> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandAtomicsPass)

  using TargetPass::TargetPass;

  StringRef getArgument() const override { return "expand-atomics"; }
  StringRef getDescription() const override { return "Write atomic accesses that the target lacks as loops"; }

  void runOnModule();
};
} // namespace

static void createFence(OpBuilder &b, Location loc, Scope scope) {
  if (scope == Scope::device)
    GridMemFenceOp::create(b, loc);
  else if (scope == Scope::block)
    BlockMemFenceOp::create(b, loc);
  else
    SubgroupMemFenceOp::create(b, loc);
}

/// The loop, without a predicate; the value that it found in the end.
static Value createLoop(OpBuilder &b, AtomicRMWOp op) {
  Location loc = op.getLoc();
  Order order = op.getOrder();
  if (order == Order::release || order == Order::acq_rel)
    createFence(b, loc, op.getEffectiveScope());
  Type type = op.getType();
  DenseI64ArrayAttr literals = op.getStaticIndicesAttr();
  Value first = AtomicLoadOp::create(b, loc, type, op.getArray(), op.getIndices(), literals, Value(), Value(),
                                     Order::relaxed, op.getScopeAttr());
  auto swap = [&](OpBuilder &b, Location loc, ValueRange seen) {
    Value fresh = createAtomicKindOp(b, loc, op.getKind(), seen.front(), op.getValue());
    auto cas = AtomicCASOp::create(b, loc, TypeRange{type, b.getI1Type()}, seen.front(), fresh, op.getArray(),
                                   op.getIndices(), literals, Value(), Order::relaxed, op.getScopeAttr());
    Value yes = arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1);
    Value again = arith::XOrIOp::create(b, loc, cas.getSuccess(), yes);
    scf::ConditionOp::create(b, loc, again, cas.getOld());
  };
  auto retry = [](OpBuilder &b, Location loc, ValueRange found) { scf::YieldOp::create(b, loc, found); };
  Value old = scf::WhileOp::create(b, loc, TypeRange(type), ValueRange(first), swap, retry).getResult(0);
  if (order == Order::acquire || order == Order::acq_rel)
    createFence(b, loc, op.getEffectiveScope());
  return old;
}

static void expand(AtomicRMWOp op) {
  OpBuilder b(op);
  Value old;
  if (Value predicate = op.getPredicate()) {
    // Where the predicate is false the result is poison: any value will do.
    auto then = [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, createLoop(b, op)); };
    auto otherwise = [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, op.getValue()); };
    old = scf::IfOp::create(b, op.getLoc(), predicate, then, otherwise).getResult(0);
  } else {
    old = createLoop(b, op);
  }
  op.getResult().replaceAllUsesWith(old);
  op.erase();
}

void ExpandAtomicsPass::runOnModule() {
  SmallVector<AtomicRMWOp> lacking;
  getOperation().walk([&](AtomicRMWOp op) {
    if (!isNativeAtomic(op, target))
      lacking.push_back(op);
  });
  llvm::for_each(lacking, expand);
}

std::unique_ptr<Pass> createExpandAtomicsPass(const Target &target) {
  return std::make_unique<ExpandAtomicsPass>(target);
}

} // namespace qd
