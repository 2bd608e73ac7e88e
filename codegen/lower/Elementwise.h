//===- Elementwise.h - arith and math for all LLVM backends -----------------------===//
//
// Purpose: lowers the ops that treat each lane by itself. GPU backends pass scalars, the CPU backend passes a
// subgroup's values as vectors; the same row serves both.
// Input: verified arith and math ops on QIR's scalars. Output: LLVM IR with no fast-math flags but the op's own.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_LOWER_ELEMENTWISE_H
#define QD_CODEGEN_LOWER_ELEMENTWISE_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"

namespace qd {

/// The LLVM type of a QIR scalar.
llvm::Type *convertScalarType(llvm::LLVMContext &context, mlir::Type type);

/// The LLVM constant of an integer or float attribute.
llvm::Constant *convertConstant(llvm::LLVMContext &context, mlir::TypedAttr value);

/// Whether `lowerElementwise` has a lowering of the op.
bool isElementwise(mlir::OperationName name);

/// Lowers one op; `operands` are all scalars or all vectors of one length. Appends one value a result and returns
/// true, or returns false where the op is not elementwise. `arith.constant` gives a scalar.
bool lowerElementwise(llvm::IRBuilderBase &builder, mlir::Operation *op, llvm::ArrayRef<llvm::Value *> operands,
                      llvm::SmallVectorImpl<llvm::Value *> &results);

} // namespace qd

#endif
