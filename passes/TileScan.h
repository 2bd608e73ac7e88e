//===- TileScan.h - scans of a whole block by tiles ---------------------------------------===//

#ifndef QD_PASSES_TILESCAN_H
#define QD_PASSES_TILESCAN_H

#include "passes/Combiner.h"
#include "passes/Staging.h"

namespace qd {

/// Whether such a scan, which takes a barrier more, is the faster one.
bool takesTiles(const LaneBuilder &at, const Combiner &combiner, mlir::ValueRange values);

/// The scan of a block. Empty after a diagnostic at `user`.
Values buildTileScan(const LaneBuilder &at, mlir::Operation *user, const Combiner &combiner, Values values,
                     bool isExclusive, Staging &staging);

} // namespace qd

#endif
