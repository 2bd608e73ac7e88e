//===- LaneTree.h - reductions and votes inside a subgroup ----------------------------===//
//
// Purpose: builds the shuffle trees and ballots that reductions and votes up to a subgroup's width consist of.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_LANETREE_H
#define QD_PASSES_LANETREE_H

#include "ir/Dialect.h"

namespace qd {

/// What takes the place of an op's results; empty for none.
struct Values : llvm::SmallVector<mlir::Value, 2> {
  Values() = default;
  Values(mlir::Value value) {
    if (value)
      push_back(value);
  }
};

/// How a kernel's threads fall into subgroups: both constants of the compilation.
struct BlockShape {
  int32_t threads;      ///< of the block
  int32_t subgroupSize; ///< of the target
  /// From groups of this many lanes on, all lanes read a lane of each group, where another shuffle costs the target
  /// more; 0 for never.
  int32_t readLanes = 0;

  /// Lanes of the block's partial last subgroup; 0 where all subgroups are whole.
  int32_t getPartialLanes() const { return threads % subgroupSize; }
};

/// The `tile` clause of an op on aligned groups of `lanes`; none where a group is the whole subgroup.
std::optional<int32_t> getTileClause(const BlockShape &shape, int32_t lanes);

/// Combines the values of each aligned group of `lanes` lanes, a power of two up to the subgroup size. The group's
/// lane 0 holds the result, other lanes hold poison. A group of the whole subgroup may be partial; a smaller one
/// is whole or absent.
mlir::Value buildReduce(mlir::OpBuilder &builder, mlir::Location loc, const BlockShape &shape, Kind kind,
                        mlir::Value value, int32_t lanes);

/// The same with the result in every lane.
mlir::Value buildReduceAll(mlir::OpBuilder &builder, mlir::Location loc, const BlockShape &shape, Kind kind,
                           mlir::Value value, int32_t lanes);

/// `all` (else: `any`) of a predicate over each aligned group of `lanes` lanes, in every lane.
mlir::Value buildVote(mlir::OpBuilder &builder, mlir::Location loc, const BlockShape &shape, bool isAll,
                      mlir::Value predicate, int32_t lanes);

} // namespace qd

#endif
