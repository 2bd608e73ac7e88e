//===- LoopStep.h - how a loop's variable may be advanced ------------------------------===//
//
// Purpose: tells lowerings whether `scf.for` may add its step without care.
// A loop runs for lower, lower + step, ... as long as they are below the upper bound as numbers: where the sum
// leaves the variable's type it must end, not wrap round.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_LOOPSTEP_H
#define QD_CODEGEN_LOOPSTEP_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace qd {

/// Whether the variable plus the step can leave its type. If so, a lowering advances by the lesser of the step
/// and the distance to the upper bound, as unsigned numbers.
bool mayStepWrap(mlir::scf::ForOp op);

} // namespace qd

#endif
