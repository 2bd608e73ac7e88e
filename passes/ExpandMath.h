//===- ExpandMath.h - functions as arithmetic, for who runs no pipeline -----------------------===//

#ifndef QD_PASSES_EXPANDMATH_H
#define QD_PASSES_EXPANDMATH_H

#include "mlir/IR/BuiltinOps.h"

namespace qd {

/// Expands the functions of -expand-math but for those that have one right result whatever computes them: remainders
/// and powers of integers.
void keepExactAndExpandMath(mlir::ModuleOp module);

} // namespace qd

#endif
