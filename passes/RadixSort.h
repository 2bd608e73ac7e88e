//===- RadixSort.h - radix sorts of a block's keys -------------------------------------------===//
//
// Purpose: carries out block.radix_sort.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_RADIXSORT_H
#define QD_PASSES_RADIXSORT_H

#include "passes/Staging.h"

namespace qd {

/// The sorted keys, then the values. Empty after a diagnostic at `op`.
Values buildRadixSort(const LaneBuilder &at, BlockRadixSortOp op, Staging &staging);

} // namespace qd

#endif
