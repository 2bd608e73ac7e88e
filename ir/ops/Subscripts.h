//===- Subscripts.h - what ops that access an array's element share ---------===//
//
// Purpose: assembly and checks of `%array[%i, 4 : i64]`.
//
//===----------------------------------------------------------------------===//

#ifndef QD_IR_OPS_SUBSCRIPTS_H
#define QD_IR_OPS_SUBSCRIPTS_H

#include "ir/Dialect.h"

namespace qd {

/// Subscripts as they are parsed: an operand for each literal that is ShapedType::kDynamic.
struct Subscripts {
  llvm::SmallVector<mlir::OpAsmParser::UnresolvedOperand> operands;
  llvm::SmallVector<int64_t> literals;
  mlir::Type type;
};

mlir::ParseResult parseSubscripts(mlir::OpAsmParser &parser, Subscripts &subscripts);
void printSubscripts(mlir::OpAsmPrinter &printer, mlir::OperandRange indices, llvm::ArrayRef<int64_t> literals);
/// `: !qd.buffer<..>` or `: !qd.shared<..>`
mlir::ParseResult parseArrayType(mlir::OpAsmParser &parser, mlir::Type &type);

/// Checks the subscripts against the array, and `element` against its element type.
mlir::LogicalResult verifyAccess(mlir::Operation *op, mlir::Type array, mlir::OperandRange indices,
                                 llvm::ArrayRef<int64_t> literals, mlir::Type element);

/// The element type of a buffer or shared array.
mlir::Type getElementType(mlir::Type array);

/// The access qualifiers of the kernel argument that `array` is, or 0.
int32_t getDeclaredAccess(mlir::Value array);

} // namespace qd

#endif
