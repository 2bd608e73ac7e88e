//===- KeyOrder.h - the order of sorts as one of integers ----------------------------------===//
//
// Purpose: turns keys into integers that compare as sorts order the keys, and back.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_KEYORDER_H
#define QD_PASSES_KEYORDER_H

#include "passes/IntegerBuilder.h"

namespace qd {

/// The order of one type's values as an order of unsigned integers of its width, or of signed ones.
///
/// Floats: with the other bits of negative numbers flipped, signed integers have the order of numbers, and negative
/// NaNs at the bottom. Counted from -infinity, around the end, the NaNs of both signs are at the top.
struct KeyOrder {
  mlir::Type type;
  bool isUnsigned; ///< of integers: how they compare

  unsigned getBits() const { return type.getIntOrFloatBitWidth(); }
  bool isFloat() const { return llvm::isa<mlir::FloatType>(type); }
  bool hasSign() const { return !isFloat() && !isUnsigned; }

  /// `keepsSign`: to an order of signed integers, where the type has that itself.
  mlir::Value map(const IntegerBuilder &i, mlir::Value value, bool keepsSign) const;
  mlir::Value unmap(const IntegerBuilder &i, mlir::Value bits, bool keepsSign) const;
};

} // namespace qd

#endif
