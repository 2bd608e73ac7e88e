//===- LoopStep.cpp - how a loop's variable may be advanced ------------------------------===//

#include "codegen/LoopStep.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace qd {

bool mayStepWrap(scf::ForOp op) {
  APInt step, upper;
  if (!matchPattern(op.getStep(), m_ConstantInt(&step)))
    return true;
  // The variable is below the upper bound, so one more is at most the bound.
  if (step.isOne())
    return false;
  if (!matchPattern(op.getUpperBound(), m_ConstantInt(&upper)))
    return true;
  bool wraps;
  APInt last = upper - 1;
  if (op.getUnsignedCmp())
    (void)last.uadd_ov(step, wraps);
  else
    (void)last.sadd_ov(step, wraps);
  return wraps;
}

} // namespace qd
