//===- BlockOps.h - operations of a whole block ------------------------------------------===//
//
// Purpose: carries out the collective ops of a block by those of its subgroups, shared memory and barriers. Blocks
// have any number of threads; the last subgroup may be partial.
//
// Input invariant: all threads of the block reach the op together.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_BLOCKOPS_H
#define QD_PASSES_BLOCKOPS_H

#include "passes/Staging.h"

namespace qd {

/// Whether `expandBlockOp` expands the op on the target.
bool hasBlockExpansion(mlir::Operation *op, const BlockShape &shape, const Target &target);

/// The results of an op of the block. Empty after a diagnostic.
Values expandBlockOp(mlir::Operation *op, const LaneBuilder &at, Staging &staging);

} // namespace qd

#endif
