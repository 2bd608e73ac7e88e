//===- LaneMasks.h - masks with a bit a lane ------------------------------------------===//
//
// Purpose: builds ballots, lane masks and comparisons of lanes inside a subgroup. Masks are i64; those of a tile count
// from its start.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_LANEMASKS_H
#define QD_PASSES_LANEMASKS_H

#include "ir/Targets.h"
#include "passes/LaneBuilder.h"

namespace qd {

/// Whether `lanes` lanes are all that the own subgroup can have: a mask of them is one of the subgroup.
inline bool isWholeSubgroup(const BlockShape &shape, int32_t lanes) {
  return lanes >= shape.subgroupSize || lanes >= shape.threads;
}

/// The bits of the own group of `lanes` lanes in a mask of the subgroup, moved to its start. An i32 where that is wide
/// enough, else an i64.
mlir::Value buildTileBits(const LaneBuilder &at, mlir::Value mask, int32_t lanes);

/// The bits of those lanes of the group that exist, in a word of `type`.
mlir::Value buildPresentMask(const LaneBuilder &at, mlir::Type type, int32_t lanes);

/// ballot over each aligned group of `lanes` lanes.
mlir::Value buildBallot(const LaneBuilder &at, mlir::Value predicate, int32_t lanes);
mlir::Value buildBallotFirstN(const LaneBuilder &at, BallotFirstNOp op);

/// Whether `op` is one of the lanemask ops.
inline bool isLaneMask(mlir::Operation *op) {
  return llvm::isa<LaneMaskLtOp, LaneMaskLeOp, LaneMaskEqOp, LaneMaskGeOp, LaneMaskGtOp>(op);
}

/// One of the lanemask ops, by its name; null where it may stay as it is. Without a lane, `lanes` is the scope in
/// which the own one is numbered.
mlir::Value buildLaneMask(const LaneBuilder &at, const Target &target, mlir::Operation *op, int32_t lanes);

/// Comparisons of the lanes' values; nothing where the op may stay as it is.
Values buildAllEqual(const LaneBuilder &at, const Target &target, AllEqualOp op, int32_t lanes);
Values buildMatchAny(const LaneBuilder &at, const Target &target, MatchAnyOp op, int32_t lanes);
Values buildMatchAll(const LaneBuilder &at, const Target &target, MatchAllOp op, int32_t lanes);

/// The lanes of the subgroup with the same i32, of which only the `bits` low bits may be set, in a word of the
/// subgroup's size, or of `members`, whose ballots are taken; bits of other lanes are undefined.
mlir::Value buildMatchLowBits(const LaneBuilder &at, mlir::Value number, unsigned bits, mlir::Value members = {});

/// Whether two scalars are equal: floats by value.
mlir::Value buildEquals(const LaneBuilder &at, mlir::Value lhs, mlir::Value rhs);

/// The bits of a scalar in an i32 or, where they do not fit, an i64.
mlir::Value buildWord(const LaneBuilder &at, mlir::Value value);

} // namespace qd

#endif
