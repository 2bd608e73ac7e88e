//===- WideScan.h - scans of tiles wider than the subgroup ----------------------------===//
//
// Purpose: carries out scans, segmented ones included, and reductions of segments whose tile is wider than the
// subgroup through shared memory.
//
// Input invariant: that of WideTiles.h.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_WIDESCAN_H
#define QD_PASSES_WIDESCAN_H

#include "passes/WideTiles.h"

namespace qd {

/// Whether `expandWideScan` knows the op.
bool isScan(mlir::Operation *op);

/// The results of a scan with a tile of `lanes` lanes, more than the subgroup has. Empty after a diagnostic.
Values expandWideScan(mlir::Operation *op, int32_t lanes, const LaneBuilder &builder, Staging &staging);

} // namespace qd

#endif
