//===- WideTiles.h - tiles wider than the subgroup ------------------------------------===//
//
// Purpose: carries out subgroup ops whose tile is wider than the subgroup through shared memory and barriers.
//
// Input invariant: the block is a multiple of the tile, and all its threads reach the op together.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_WIDETILES_H
#define QD_PASSES_WIDETILES_H

#include "passes/LaneTree.h"
#include "passes/Staging.h"

namespace qd {

/// Whether `expandWideTile` knows the op.
bool hasWideTileExpansion(mlir::Operation *op);

/// The results of an op with a tile of `lanes` lanes, more than the subgroup has. Empty after a diagnostic.
Values expandWideTile(mlir::Operation *op, int32_t lanes, mlir::OpBuilder &builder, const BlockShape &shape,
                      Staging &staging);

} // namespace qd

#endif
