//===- LaneTree.h - reductions and votes inside a subgroup ----------------------------===//
//
// Purpose: builds the shuffle trees and ballots that reductions and votes up to a subgroup's width consist of.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_LANETREE_H
#define QD_PASSES_LANETREE_H

#include "passes/Combiner.h"
#include "passes/LaneBuilder.h"

namespace qd {

/// Combines the values of each aligned group of `lanes` lanes, a power of two up to the subgroup size. The group's
/// lane 0 holds the results, other lanes hold poison. A group of the whole subgroup may be partial; a smaller one
/// is whole or absent.
Values buildReduce(const LaneBuilder &builder, const Combiner &combiner, Values values, int32_t lanes);

/// The same with the results in every lane.
Values buildReduceAll(const LaneBuilder &builder, const Combiner &combiner, Values values, int32_t lanes);

/// The bits of the own group's lanes in a ballot among the subgroup, and a mask of them all; null where the group is
/// all that there is.
struct GroupBallot {
  mlir::Value bits, mask;
};
GroupBallot buildGroupBallot(const LaneBuilder &builder, mlir::Value predicate, int32_t lanes);

/// `all` (else: `any`) of a predicate over each aligned group of `lanes` lanes, in every lane.
mlir::Value buildVote(const LaneBuilder &builder, bool isAll, mlir::Value predicate, int32_t lanes);

} // namespace qd

#endif
