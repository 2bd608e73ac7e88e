//===- CheckUniformity.cpp - collective ops stand in uniform control flow --------------===//
//
// Purpose: refuses collective ops that some lanes of their scope may not reach: what those would compute is
// undefined on every target.
//
// Input invariant: a verified module, before or after expansions.
//
// Output invariant: the module is unchanged. Every collective op is reached by all lanes of its scope, or by a
// condition that comes from memory, of which a warning told; with the policies warn and allow the author answers
// for all conditions.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/Uniformity.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

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
  bool diagnose(Operation *collective, const UniformityAnalysis &analysis);

  Target target;
  Option<std::string> targetName{*this, "target", llvm::cl::desc("BACKEND[:CHIP][@SUBGROUP-SIZE]; default: any size")};
  Option<DivergencePolicy> policy{
      *this, "divergent", llvm::cl::desc("What a condition that depends on the thread is"),
      llvm::cl::values(clEnumValN(DivergencePolicy::Error, "error", "an error (default)"),
                       clEnumValN(DivergencePolicy::Warn, "warn", "a warning"),
                       clEnumValN(DivergencePolicy::Allow, "allow", "the author's business"))};
};
} // namespace

/// Returns whether `collective` makes the module illegal.
bool CheckUniformityPass::diagnose(Operation *collective, const UniformityAnalysis &analysis) {
  Scope scope = analysis.getRequiredScope(collective);
  UniformityAnalysis::Control control = analysis.getControl(collective, scope);
  if (control.divergence == Divergence::Uniform)
    return false;
  bool isVarying = control.divergence == Divergence::Varying;
  bool isError = isVarying && policy == DivergencePolicy::Error;

  StringRef scopeName = stringifyEnum(scope);
  InFlightDiagnostic diagnostic = isError ? collective->emitOpError() : collective->emitWarning();
  if (!isError)
    diagnostic << "'" << collective->getName() << "' op ";
  diagnostic << "expected control flow that is uniform in the " << scopeName << ", found a condition that "
             << (isVarying ? "depends on the thread" : "comes from memory, which leaves it undecided");
  if (!control.condition) {
    diagnostic.attachNote(control.branch->getLoc()) << "'" << control.branch->getName() << "' is the branch";
    return isError;
  }
  diagnostic.attachNote(control.condition.getLoc()) << "the condition of '" << control.branch->getName() << "' is this";
  Operation *source = analysis.findSource(control.condition, scope);
  if (source && source != control.condition.getDefiningOp())
    diagnostic.attachNote(source->getLoc()) << "it depends on '" << source->getName() << "'";
  return isError;
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

  for (Operation &function : getOperation().getOps()) {
    if (!isa<KernelOp, FunctionOpInterface>(function))
      continue;
    // Most kernels have no collective op under a condition, and need no analysis.
    SmallVector<Operation *> nested;
    function.walk([&](Operation *op) {
      if (needsUniformControl(op) && op->getParentOp() != &function)
        nested.push_back(op);
    });
    if (nested.empty())
      continue;
    UniformityAnalysis analysis(&function, target.subgroupSize);
    for (Operation *collective : nested)
      if (diagnose(collective, analysis))
        signalPassFailure();
  }
}

std::unique_ptr<Pass> createCheckUniformityPass(DivergencePolicy policy, const Target &target) {
  return std::make_unique<CheckUniformityPass>(policy, target);
}

} // namespace qd
