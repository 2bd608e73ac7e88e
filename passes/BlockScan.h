//===- BlockScan.h - scans of a whole block -----------------------------------------------===//
//
// Purpose: scans in each subgroup; then what the subgroups below add travels through shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_BLOCKSCAN_H
#define QD_PASSES_BLOCKSCAN_H

#include "passes/Combiner.h"
#include "passes/Staging.h"

namespace qd {

/// The scan of the block's threads in their order, restarted where `head`, if given, is not zero. Empty after a
/// diagnostic, at `user`.
Values buildBlockScan(const LaneBuilder &at, mlir::Operation *user, const Combiner &combiner, Values values,
                      mlir::Value head, bool isExclusive, Staging &staging);

} // namespace qd

#endif
