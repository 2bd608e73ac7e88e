//===- Values.h - what a lane holds -------------------------------------------------===//
//
// Purpose: a lane's value of any scalar type, and its readings as integer and float.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_INTERP_VALUES_H
#define QD_CODEGEN_INTERP_VALUES_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APInt.h"

namespace qd::interp {

/// One SSA value of one lane: the bits of its type, zero-extended, or poison. An array value's bits number it
/// among the arrays of its block.
struct LaneValue {
  uint64_t bits = 0;
  bool poison = true;

  static LaneValue of(uint64_t bits) { return {bits, false}; }
  static LaneValue of(const llvm::APInt &value) { return {value.getZExtValue(), false}; }
  static LaneValue of(const llvm::APFloat &value) { return of(value.bitcastToAPInt()); }

  friend bool operator==(LaneValue a, LaneValue b) { return a.poison == b.poison && (a.poison || a.bits == b.bits); }
};

inline llvm::APInt toInt(uint64_t bits, mlir::Type type) {
  return llvm::APInt(type.getIntOrFloatBitWidth(), bits, /*isSigned=*/false, /*implicitTrunc=*/true);
}

inline llvm::APFloat toFloat(uint64_t bits, mlir::Type type) {
  return llvm::APFloat(llvm::cast<mlir::FloatType>(type).getFloatSemantics(), toInt(bits, type));
}

} // namespace qd::interp

#endif
