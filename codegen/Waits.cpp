//===- Waits.cpp - loops in which threads wait for each other ------------------------------===//

#include "codegen/Waits.h"

using namespace mlir;

namespace qd {

/// A swap of what was last found there is tried until it succeeds, which needs nobody else.
bool mayWait(scf::WhileOp loop) {
  return loop
      .walk([&](Operation *op) {
        auto load = dyn_cast<LoadOp>(op);
        auto swap = dyn_cast<AtomicCASOp>(op);
        bool reads = isa<AtomicLoadOp, AtomicRMWOp, BlockMemFenceOp, GridMemFenceOp, SleepOp>(op) ||
                     (load && load.getIsVolatile()) ||
                     (swap && !loop->isAncestor(swap.getExpected().getParentBlock()->getParentOp()));
        return reads ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool mayWait(KernelOp kernel) {
  return kernel.getBody()
      .walk([](scf::WhileOp loop) { return mayWait(loop) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

bool writesForOthers(Region &region) {
  return region
      .walk([](Operation *op) {
        bool writes = isa<StoreOp, AtomicStoreOp, AtomicRMWOp, AtomicCASOp>(op);
        return writes ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace qd
