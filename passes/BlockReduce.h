//===- BlockReduce.h - reductions of a whole block ---------------------------------------===//
//
// Purpose: reduces in each subgroup, and then the subgroups' results, which travel through shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_BLOCKREDUCE_H
#define QD_PASSES_BLOCKREDUCE_H

#include "passes/Combiner.h"
#include "passes/Staging.h"

namespace qd {

/// The block's threads' values combined in their order: in thread 0, or in all threads. Empty after a diagnostic,
/// at `user`.
Values buildBlockReduce(const LaneBuilder &at, mlir::Operation *user, const Combiner &combiner, Values values,
                        bool toAll, Staging &staging);

/// The same of values that the lane 0 of each subgroup has, or all its lanes, in a block of several subgroups.
Values buildReduceSubgroups(const LaneBuilder &at, mlir::Operation *user, const Combiner &combiner, Values partial,
                            bool inAllLanes, bool toAll, Staging &staging);

} // namespace qd

#endif
