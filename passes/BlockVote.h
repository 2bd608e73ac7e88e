//===- BlockVote.h - barriers with a predicate --------------------------------------------===//
//
// Purpose: carries out barriers that vote where a chip has none: each subgroup votes before one barrier of the block,
// and combines the subgroups' votes behind it.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_BLOCKVOTE_H
#define QD_PASSES_BLOCKVOTE_H

#include "passes/Staging.h"

namespace qd {

/// Whether the chip's own barrier carries out the op.
bool keepsBlockVote(mlir::Operation *op, const BlockShape &shape, const Target &target);

/// The result of sync_all, sync_any or sync_count. Empty after a diagnostic.
Values buildBlockVote(const LaneBuilder &at, mlir::Operation *op, Staging &staging);

} // namespace qd

#endif
