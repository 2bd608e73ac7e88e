//===- RadixRank.h - ranks of a block's keys by one digit ------------------------------------===//
//
// Purpose: carries out block.radix_rank, alone and as the step of a sort.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_RADIXRANK_H
#define QD_PASSES_RADIXRANK_H

#include "passes/Staging.h"

namespace qd {

/// What is ranked: bits of keys, i32 or i64, of which each thread has one or several.
struct RadixDigits {
  Values keys;
  mlir::Value begin;       ///< the digit's lowest bit, null where it is known
  int32_t staticBegin = 0; ///< where it is
  int32_t numBits;
  int32_t tableBits = 0;     ///< sizes the arrays
  mlir::Value bins, prefix; ///< arrays of counts, null where they are not wanted
  int64_t reservedBytes = 0; ///< of shared memory, to leave for what comes next

  RadixDigits(mlir::ValueRange keys, int32_t numBits) : keys(keys), numBits(numBits) {}
  explicit RadixDigits(BlockRadixRankOp op);
};

/// The ranks of the keys. Empty after a diagnostic at `op`.
Values buildRadixRank(const LaneBuilder &at, mlir::Operation *op, const RadixDigits &digits, Staging &staging);

} // namespace qd

#endif
