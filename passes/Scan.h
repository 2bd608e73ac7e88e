//===- Scan.h - scans inside a subgroup -----------------------------------------------===//
//
// Purpose: builds the shuffles that scans up to a subgroup's width consist of. Groups of `lanes` lanes are as in
// LaneTree.h: aligned, and whole but where they are whole subgroups.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_SCAN_H
#define QD_PASSES_SCAN_H

#include "passes/Combiner.h"
#include "passes/LaneBuilder.h"

namespace qd {

Values buildInclusiveScan(const LaneBuilder &builder, const Combiner &combiner, Values values, int32_t lanes);
Values buildExclusiveScan(const LaneBuilder &builder, const Combiner &combiner, Values values, int32_t lanes);

/// Whether the exclusive scan comes from the steps of the inclusive one more cheaply than by another move between
/// lanes.
bool takesBothScans(const LaneBuilder &builder, const Combiner &combiner, mlir::ValueRange values);

/// The inclusive scan, and with it the exclusive one, of lanes other than the group's first, which hold anything.
Values buildBothScans(const LaneBuilder &builder, const Combiner &combiner, Values values, int32_t lanes,
                      Values &exclusive);

/// For an exclusive scan of the block, what lanes with nothing below them in their group combine with the carry: a
/// neutral value, or the identity in the first thread, whose carry is neutral.
Values buildNothing(const LaneBuilder &builder, const Combiner &combiner, mlir::Type type);

/// Where the segments of each group begin, from one ballot.
class Segments {
public:
  /// `head` is any integer: not zero on lanes that begin a segment. The group's first lane always does.
  Segments(const LaneBuilder &builder, mlir::Value head, int32_t lanes);

  mlir::Value getHeads() const { return heads; } ///< one bit a lane of the subgroup, where `head` says so
  mlir::Value getBelow() const { return below; } ///< how many lanes of its segment the own lane has below it

  /// Whether no lane of the segment is a head: it begins where the group does.
  mlir::Value getOpen() const { return builder.compare(mlir::arith::CmpIPredicate::eq, upToOwn, int64_t(0)); }

  /// The last lane of the own segment, counted from the group's start.
  mlir::Value getLast() const;

private:
  LaneBuilder builder;
  int32_t lanes;
  mlir::Value heads, below;
  mlir::Value upToOwn; ///< the heads' bits up to the own lane's, which is the topmost
};

/// The inclusive scan of each segment.
Values buildSegmentedSteps(const LaneBuilder &builder, const Combiner &combiner, Values values,
                           const Segments &segments, int32_t lanes);

Values buildSegmentedScan(const LaneBuilder &builder, const Combiner &combiner, Values values, mlir::Value head,
                          bool isExclusive, int32_t lanes);
Values buildSegmentedReduceAll(const LaneBuilder &builder, const Combiner &combiner, Values values, mlir::Value head,
                               int32_t lanes);

/// The exclusive scan that belongs to an inclusive one; lanes with nothing `below` hold the identity.
Values buildExclusive(const LaneBuilder &builder, const Combiner &combiner, mlir::ValueRange own,
                      mlir::ValueRange inclusive, mlir::Value below, int32_t lanes);

} // namespace qd

#endif
