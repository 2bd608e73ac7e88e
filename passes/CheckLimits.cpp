//===- CheckLimits.cpp - the target has what a kernel asks for --------------------------------===//
//
// Purpose: refuses kernels whose blocks need more shared memory than the target has or are larger along z than it
// launches, and barriers of the grid where no launch runs all blocks at once.
//
// Input invariant: a verified module after the expansions, its shared arrays in their places.
//
// Output invariant: the module is unchanged, and within the limits of the target's row in the table of chips.
//
//===----------------------------------------------------------------------===//

#include "ir/SharedStorage.h"
#include "passes/Passes.h"
#include "passes/TargetPass.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace qd {

namespace {
class CheckLimitsPass : public TargetPass<CheckLimitsPass> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckLimitsPass)

  using TargetPass::TargetPass;

  StringRef getArgument() const override { return "check-limits"; }
  StringRef getDescription() const override { return "Check that the target has what kernels ask for"; }

  void runOnModule();

private:
  void check(KernelOp kernel);
};
} // namespace

/// CUDA launches at most 64 threads along z, of up to 1024 in all; LLVM takes that for granted.
static int64_t getMostAlongZ(const Target &target) { return target.getBackend() == Backend::NVPTX ? 64 : 1024; }

void CheckLimitsPass::check(KernelOp kernel) {
  if (int64_t z = kernel.getBlockDim(2), most = getMostAlongZ(target); z > most) {
    kernel.emitOpError() << "has blocks of " << z << " threads along z, the limit is " << most << " on " << target.str();
    signalPassFailure();
  }
  uint64_t bytes = SharedStorage(kernel, target).getBytes();
  if (bytes > target.chip->sharedBytes) {
    kernel.emitOpError() << "needs " << bytes << " bytes of shared memory a block, the limit is "
                         << target.chip->sharedBytes << " on " << target.str();
    signalPassFailure();
  }
  if (target.has(CooperativeLaunch))
    return;
  kernel.walk([&](GridSyncOp sync) {
    sync.emitOpError() << "needs all blocks of the grid to run at once, which no launch on " << target.str()
                       << " ensures";
    signalPassFailure();
  });
}

void CheckLimitsPass::runOnModule() {
  markAllAnalysesPreserved();
  for (KernelOp kernel : getOperation().getOps<KernelOp>())
    check(kernel);
}

std::unique_ptr<Pass> createCheckLimitsPass(const Target &target) { return std::make_unique<CheckLimitsPass>(target); }

} // namespace qd
