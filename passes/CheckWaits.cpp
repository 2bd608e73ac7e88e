//===- CheckWaits.cpp - waits read memory in a way that sees it change -------------------===//
//
// Purpose: warns of a loop that waits for memory to change but reads it by a plain load: an optimiser may read once,
// before the loop, which then never ends. An atomic or volatile access, a fence or a barrier in the loop keeps the load
// in it. Refuses counting loops whose step is a constant that does not lead upwards.
//
// Input invariant: a verified module.
//
// Output invariant: the module is unchanged.
//
//===----------------------------------------------------------------------===//

#include "ir/Dialect.h"
#include "passes/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace qd {

namespace {
class CheckWaitsPass : public PassWrapper<CheckWaitsPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckWaitsPass)

  StringRef getArgument() const override { return "check-waits"; }
  StringRef getDescription() const override { return "Warn of loops that wait on plain loads, refuse those without a step"; }

  void runOnOperation() override;
};

/// What a loop's condition is made of.
class ConditionSlice {
public:
  explicit ConditionSlice(scf::WhileOp loop) : loop(loop) {}

  /// The loads of the loop that alone decide its condition, from the same elements each time; none where something
  /// else that changes decides it too, or no load does.
  ArrayRef<Operation *> find() {
    isWait = true;
    visit(loop.getConditionOp().getCondition());
    return isWait ? loads.getArrayRef() : ArrayRef<Operation *>();
  }

private:
  void visit(Value value);
  void visitArgument(BlockArgument argument);
  bool isInside(Value value) { return loop->isAncestor(value.getParentBlock()->getParentOp()); }

  scf::WhileOp loop;
  bool isWait = false;
  llvm::DenseSet<Value> visited;
  llvm::SetVector<Operation *> loads;
  unsigned changes = 0; ///< ops between a carried value and what is visited now
  llvm::DenseSet<Value> open;
};
} // namespace

void ConditionSlice::visitArgument(BlockArgument argument) {
  if (argument.getOwner() == loop.getBeforeBody())
    return visit(loop.getYieldOp().getOperand(argument.getArgNumber()));
  if (argument.getOwner() == loop.getAfterBody())
    return visit(loop.getConditionOp().getArgs()[argument.getArgNumber()]);
  isWait = false; // of a loop inside this one
}

void ConditionSlice::visit(Value value) {
  if (!isWait || !isInside(value))
    return;
  if (open.contains(value)) {
    // A value that is computed from its own last one counts, and ends the loop by itself.
    isWait &= changes == 0;
    return;
  }
  if (!visited.insert(value).second)
    return;
  open.insert(value);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    visitArgument(argument);
  } else {
    Operation *op = value.getDefiningOp();
    auto load = dyn_cast<LoadOp>(op);
    // Nobody else writes a private array or a table.
    bool isOthers = load && isa<BufferType, SharedType>(load.getArray().getType());
    if (isOthers)
      loads.insert(op);
    else if (op->getNumRegions() || !isMemoryEffectFree(op))
      isWait = false;
    ++changes;
    for (Value operand : op->getOperands())
      visit(operand);
    --changes;
  }
  open.erase(value);
}

/// Whether the op makes others' writes seen, or writes what `loads` read.
static bool endsWait(Operation *op, ArrayRef<Operation *> loads) {
  if (auto load = dyn_cast<LoadOp>(op))
    return load.getIsVolatile();
  if (auto store = dyn_cast<StoreOp>(op))
    return store.getIsVolatile() ||
           llvm::any_of(loads, [&](Operation *load) { return cast<LoadOp>(load).getArray() == store.getArray(); });
  return isa<AtomicRMWOp, AtomicCASOp, AtomicLoadOp, AtomicStoreOp, BlockSyncOp, BlockSyncSharedOp, BlockSyncAllOp,
             BlockSyncAnyOp, BlockSyncCountOp, BlockMemFenceOp, GridMemFenceOp, GridSyncOp, SubgroupSyncOp,
             SubgroupMemFenceOp>(op);
}

static void warnOfPlainLoads(scf::WhileOp loop) {
  ArrayRef<Operation *> loads;
  ConditionSlice slice(loop);
  loads = slice.find();
  if (loads.empty())
    return;
  bool isSafe = loop.walk([&](Operation *op) {
                      return endsWait(op, loads) ? WalkResult::interrupt() : WalkResult::advance();
                    })
                    .wasInterrupted();
  if (isSafe)
    return;
  InFlightDiagnostic warning = loop.emitWarning();
  warning << "'scf.while' op waits on a plain load, which may be carried out once for all rounds; expected "
             "qd.atomic_load, or a fence in the loop";
  for (Operation *load : loads)
    warning.attachNote(load->getLoc()) << "the load is this";
}

static LogicalResult check(scf::ForOp loop) {
  std::optional<llvm::APInt> step = loop.getConstantStep();
  if (!step || !(step->isZero() || (step->isNegative() && !loop.getUnsignedCmp())))
    return success();
  return loop.emitOpError() << "has a step of " << step->getSExtValue() << ", expected at least 1";
}

void CheckWaitsPass::runOnOperation() {
  getOperation().walk([](scf::WhileOp loop) { warnOfPlainLoads(loop); });
  getOperation().walk([&](scf::ForOp loop) {
    if (failed(check(loop)))
      signalPassFailure();
  });
}

std::unique_ptr<Pass> createCheckWaitsPass() { return std::make_unique<CheckWaitsPass>(); }

} // namespace qd
