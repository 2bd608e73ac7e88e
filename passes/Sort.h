//===- Sort.h - sorting networks across lanes -----------------------------------------===//
//
// Purpose: builds the bitonic network of a sort over the lanes of a subgroup or tile, or a block's threads.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_SORT_H
#define QD_PASSES_SORT_H

#include "passes/LaneBuilder.h"

namespace qd {

/// What a sort op asks for.
struct SortOrder {
  mlir::Value key, value; ///< value: null where keys are sorted alone
  bool isDescending = false, isUnsignedKey = false, isUnsignedValue = false;

  explicit SortOrder(BitonicSortOp op) : SortOrder(op, nullptr) {}
  explicit SortOrder(BlockBitonicSortOp op) : SortOrder(op, nullptr) {}
  explicit SortOrder(BitonicSortKVOp op) : SortOrder(op, op.getValue()) { isUnsignedValue = op.getUnsignedValues(); }
  explicit SortOrder(BlockBitonicSortKVOp op) : SortOrder(op, op.getValue()) {
    isUnsignedValue = op.getUnsignedValues();
  }

private:
  template <typename Op>
  SortOrder(Op op, mlir::Value value)
      : key(op.getKey()), value(value), isDescending(op.getDescending()), isUnsignedKey(op.getUnsignedKeys()) {}
};

/// Gives each lane the words (i32 or i64) of the lane whose number differs by `mask`, and its own where a predicate is
/// given and says that there is no such lane. Empty after a diagnostic.
using Exchange = llvm::function_ref<Values(mlir::ValueRange words, int32_t mask, mlir::Value hasPartner)>;

/// The sorted key, and the sorted value where there is one, of each aligned group of `lanes` lanes, of which the
/// block's last may be partial. Masks below the subgroup's size are shuffles; `exchange` carries out others. Empty
/// where that failed.
Values buildSort(const LaneBuilder &builder, const SortOrder &order, int32_t lanes, Exchange exchange = nullptr);

} // namespace qd

#endif
