//===- InlineCalls.h - which calls of helper functions are legal ----------------------===//
//
// Purpose: the check that comes before calls are unfolded, by the pass or by an executor that does it itself.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_INLINECALLS_H
#define QD_PASSES_INLINECALLS_H

#include "mlir/IR/BuiltinOps.h"

namespace qd {

/// Diagnoses calls under the module's kernels that cannot be unfolded: of functions without a body, recursive ones,
/// and those that make a kernel too large. Free where the module has no functions.
mlir::LogicalResult checkCalls(mlir::ModuleOp module);

} // namespace qd

#endif
