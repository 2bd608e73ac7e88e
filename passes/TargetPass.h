//===- TargetPass.h - passes that work for one target ------------------------------------===//
//
// Purpose: the target of a pass, which the pipeline gives in C++ and qdc-opt by name.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_TARGETPASS_H
#define QD_PASSES_TARGETPASS_H

#include "ir/Targets.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace qd {

/// A pass over a module. `Derived` has runOnModule(); the target is known then.
template <typename Derived>
class TargetPass : public mlir::PassWrapper<Derived, mlir::OperationPass<mlir::ModuleOp>> {
  using Base = mlir::PassWrapper<Derived, mlir::OperationPass<mlir::ModuleOp>>;

public:
  explicit TargetPass(const Target &target) : target(target) {}
  TargetPass(const TargetPass &other) : Base(other), target(other.target) {}

  void runOnOperation() final {
    if (!target.chip || !targetName.empty()) {
      llvm::Expected<Target> found = findTarget(targetName);
      if (!found) {
        mlir::emitError(this->getOperation().getLoc()) << llvm::toString(found.takeError());
        return this->signalPassFailure();
      }
      target = *found;
    }
    static_cast<Derived *>(this)->runOnModule();
  }

protected:
  Target target;

private:
  typename Base::template Option<std::string> targetName{*this, "target",
                                                         llvm::cl::desc("BACKEND[:CHIP][@SUBGROUP-SIZE]")};
};

} // namespace qd

#endif
