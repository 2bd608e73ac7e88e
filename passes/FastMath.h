//===- FastMath.h - functions by the approximations of GPUs --------------------------------===//

#ifndef QD_PASSES_FASTMATH_H
#define QD_PASSES_FASTMATH_H

#include "passes/MathBuilder.h"

namespace qd::math {

/// Whether the op is on f32 and carries `afn`.
bool isApproximated(mlir::Operation *op);

/// Whether a GPU has the op as an instruction, or nearly.
bool isApproximationOfHardware(mlir::Operation *op);

/// What stands for another op that is approximated; nothing where only the exact way is known.
mlir::Value buildApproximation(const Place &at, mlir::Operation *op);

} // namespace qd::math

#endif
