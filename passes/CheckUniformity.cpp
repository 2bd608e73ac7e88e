//===- CheckUniformity.cpp - collective ops stand in uniform control flow --------------===//
//
// Purpose: refuses collective ops that some lanes of their scope may not reach, and those whose combine region differs
// between lanes: what they would compute is undefined on every target.
//
// Input invariant: a verified module without calls, before or after expansions.
//
// Output invariant: the module is unchanged. Every collective op but those with `members` is reached by all lanes of
// its scope (a barrier of the grid by all blocks), or by a condition that comes from memory, of which a warning told,
// as of such values in combine regions; with the policies warn and allow the author answers for all conditions.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Uniformity.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace qd {

namespace {
class CheckUniformityPass : public PassWrapper<CheckUniformityPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckUniformityPass)

  CheckUniformityPass(DivergencePolicy divergence, const Target &target) : target(target) { policy = divergence; }
  CheckUniformityPass(const CheckUniformityPass &other) : PassWrapper(other), target(other.target) {}

  StringRef getArgument() const override { return "check-uniformity"; }
  StringRef getDescription() const override { return "Check that collective ops stand in uniform control flow"; }

  void runOnOperation() override;

private:
  void check(KernelOp kernel);
  void checkControl(Operation *collective, const UniformityAnalysis &analysis);
  void checkCaptured(Operation *op, const UniformityAnalysis &analysis);
  /// An error or a warning, by the policy, to be continued.
  InFlightDiagnostic report(Operation *op, Divergence divergence);

  Target target;
  Option<std::string> targetName{*this, "target", llvm::cl::desc("BACKEND[:CHIP][@SUBGROUP-SIZE]; default: any size")};
  Option<DivergencePolicy> policy{
      *this, "divergent", llvm::cl::desc("What a condition that depends on the thread is"),
      llvm::cl::values(clEnumValN(DivergencePolicy::Error, "error", "an error (default)"),
                       clEnumValN(DivergencePolicy::Warn, "warn", "a warning"),
                       clEnumValN(DivergencePolicy::Allow, "allow", "the author's business"))};
};
} // namespace

InFlightDiagnostic CheckUniformityPass::report(Operation *op, Divergence divergence) {
  if (divergence == Divergence::Varying && policy == DivergencePolicy::Error) {
    signalPassFailure();
    return op->emitOpError();
  }
  InFlightDiagnostic diagnostic = op->emitWarning();
  diagnostic << "'" << op->getName() << "' op ";
  return diagnostic;
}

static StringRef describe(Divergence divergence) {
  return divergence == Divergence::Varying ? "depends on the thread" : "comes from memory, which leaves it undecided";
}

static void noteSource(InFlightDiagnostic &diagnostic, Value value, Scope scope, const UniformityAnalysis &analysis) {
  Operation *source = analysis.findSource(value, scope);
  if (source && source != value.getDefiningOp())
    diagnostic.attachNote(source->getLoc()) << "it depends on '" << source->getName() << "'";
}

void CheckUniformityPass::checkControl(Operation *collective, const UniformityAnalysis &analysis) {
  Scope scope = analysis.getRequiredScope(collective);
  UniformityAnalysis::Control control = analysis.getControl(collective, scope);
  if (control.divergence == Divergence::Uniform) {
    Operation *source = isa<GridSyncOp>(collective) ? analysis.findBlockSource(collective) : nullptr;
    if (!source)
      return;
    InFlightDiagnostic diagnostic = report(collective, Divergence::Varying);
    diagnostic << "expected control flow that all blocks take alike, found a condition that depends on the block";
    diagnostic.attachNote(source->getLoc()) << "it depends on '" << source->getName() << "'";
    return;
  }
  InFlightDiagnostic diagnostic = report(collective, control.divergence);
  diagnostic << "expected control flow that is uniform in the " << stringifyEnum(scope) << ", found a condition that "
             << describe(control.divergence);
  if (!control.condition) {
    diagnostic.attachNote(control.branch->getLoc()) << "'" << control.branch->getName() << "' is the branch";
    return;
  }
  diagnostic.attachNote(control.condition.getLoc()) << "the condition of '" << control.branch->getName() << "' is this";
  noteSource(diagnostic, control.condition, scope, analysis);
}

/// Lanes that combine by different operations would not agree on a result.
void CheckUniformityPass::checkCaptured(Operation *op, const UniformityAnalysis &analysis) {
  Scope scope = op->getName().getStringRef().starts_with("qd.block.") ? Scope::block : Scope::subgroup;
  auto tile = op->getAttrOfType<IntegerAttr>("tile");
  std::optional<UniformityAnalysis> ofTile;
  for (Value value : getCaptured(op)) {
    if (analysis.isUniform(value, Scope::block))
      continue;
    if (tile && !ofTile)
      ofTile.emplace(op->getParentOfType<KernelOp>(), target.subgroupSize, tile.getInt());
    const UniformityAnalysis &deciding = tile ? *ofTile : analysis;
    Divergence divergence = deciding.getDivergence(value, scope);
    if (divergence == Divergence::Uniform)
      continue;
    InFlightDiagnostic diagnostic = report(op, divergence);
    diagnostic << "expected values from around the 'combine' region to be uniform in the ";
    if (tile)
      diagnostic << "tile of " << tile.getInt() << " lanes";
    else
      diagnostic << stringifyEnum(scope);
    diagnostic << ", found one that " << describe(divergence);
    diagnostic.attachNote(value.getLoc()) << "the value is this";
    noteSource(diagnostic, value, scope, deciding);
  }
}

void CheckUniformityPass::check(KernelOp kernel) {
  // Most kernels have no collective op under a condition, and need no analysis.
  SmallVector<Operation *> nested, combining;
  kernel.walk([&](Operation *op) {
    if (!isa<QDDialect>(op->getDialect()))
      return;
    if (op->getParentOp() != kernel && needsUniformControl(op))
      nested.push_back(op);
    if (op != kernel && op->getNumRegions() && !op->getRegion(0).empty())
      combining.push_back(op);
  });
  if (nested.empty() && combining.empty())
    return;
  UniformityAnalysis analysis(kernel, target.subgroupSize);
  for (Operation *collective : nested)
    checkControl(collective, analysis);
  for (Operation *op : combining)
    checkCaptured(op, analysis);
}

void CheckUniformityPass::runOnOperation() {
  // Nothing changes, so nothing needs another verification.
  markAllAnalysesPreserved();
  if (policy == DivergencePolicy::Allow)
    return;
  if (!targetName.empty()) {
    llvm::Expected<Target> found = findTarget(targetName);
    if (!found) {
      emitError(getOperation().getLoc()) << llvm::toString(found.takeError());
      return signalPassFailure();
    }
    target = *found;
  }
  for (KernelOp kernel : getOperation().getOps<KernelOp>())
    check(kernel);
}

std::unique_ptr<Pass> createCheckUniformityPass(DivergencePolicy policy, const Target &target) {
  return std::make_unique<CheckUniformityPass>(policy, target);
}

} // namespace qd
