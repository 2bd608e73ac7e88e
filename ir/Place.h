//===- Place.h - where in a file an op comes from --------------------------------------------===//
//
// Purpose: reads MLIR's locations, which may nest: for diagnostics and debug information.
//
//===----------------------------------------------------------------------===//

#ifndef QD_IR_PLACE_H
#define QD_IR_PLACE_H

#include "mlir/IR/Location.h"

namespace qd {

/// The place that a location names first, of a call the callee's; null for none.
mlir::FileLineColRange findPlace(mlir::Location location);

} // namespace qd

#endif
