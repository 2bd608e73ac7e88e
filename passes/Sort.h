//===- Sort.h - sorting networks across lanes -----------------------------------------===//
//
// Purpose: builds the bitonic network of a sort over the lanes of a subgroup or tile.
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

  explicit SortOrder(BitonicSortOp op)
      : key(op.getKey()), isDescending(op.getDescending()), isUnsignedKey(op.getUnsignedKeys()) {}
  explicit SortOrder(BitonicSortKVOp op)
      : key(op.getKey()), value(op.getValue()), isDescending(op.getDescending()),
        isUnsignedKey(op.getUnsignedKeys()), isUnsignedValue(op.getUnsignedValues()) {}
};

/// Gives each lane the words (i32 or i64) of the lane whose number differs by `mask`. Empty after a diagnostic.
using Exchange = llvm::function_ref<Values(mlir::ValueRange words, int32_t mask)>;

/// The sorted key, and the sorted value where there is one, of each aligned group of `lanes` lanes. Masks up to the
/// subgroup's size are shuffles; `exchange` carries out others. Empty where that failed.
Values buildSort(const LaneBuilder &builder, const SortOrder &order, int32_t lanes, Exchange exchange = nullptr);

} // namespace qd

#endif
