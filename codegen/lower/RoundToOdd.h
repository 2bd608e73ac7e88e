//===- RoundToOdd.h - rounding in two steps as in one ------------------------------------------------===//
//
// Purpose: fused multiply-add of formats that have no instruction for it, by a wider one. The exact result is rounded
// to odd there: then the last rounding sees on which side of a tie it lies. Scalars and vectors alike.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_LOWER_ROUNDTOODD_H
#define QD_CODEGEN_LOWER_ROUNDTOODD_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/IRBuilder.h"

namespace qd {

/// An f32 or f64 next to an exact result that lies off by `rest` (f64), moved to the neighbour with an odd last bit if
/// there is a rest at all. No comparison holds where there is an infinity or a NaN.
llvm::Value *roundToOdd(llvm::IRBuilderBase &b, llvm::Value *nearest, llvm::Value *rest);

/// x * y + z of f32 values, as f64 that is off by the second number.
std::pair<llvm::Value *, llvm::Value *> fuseInDouble(llvm::IRBuilderBase &b, llvm::ArrayRef<llvm::Value *> operands);

/// x * y + z of f32 values with at most 11 bits each, as f32 rounded to odd.
llvm::Value *fuseToOdd(llvm::IRBuilderBase &b, llvm::ArrayRef<llvm::Value *> operands);

} // namespace qd

#endif
