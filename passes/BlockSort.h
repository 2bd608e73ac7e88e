//===- BlockSort.h - sorting networks of a whole block ---------------------------------------===//
//
// Purpose: carries out block.bitonic_sort and bitonic_sort_kv: the network of a subgroup's sort over all threads of a
// block, whose wide steps go through shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_BLOCKSORT_H
#define QD_PASSES_BLOCKSORT_H

#include "passes/Sort.h"
#include "passes/Staging.h"

namespace qd {

/// The sorted key, and the sorted value where there is one. Empty after a diagnostic at `op`.
Values buildBlockSort(const LaneBuilder &at, mlir::Operation *op, const SortOrder &order, Staging &staging);

} // namespace qd

#endif
