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
/// `type` is that of operands that follow, where there are no `indices`.
void printSubscripts(mlir::OpAsmPrinter &printer, mlir::OperandRange indices, llvm::ArrayRef<int64_t> literals,
                     mlir::Type type = {});
/// Without brackets and type.
mlir::ParseResult parseSubscriptList(mlir::OpAsmParser &parser, Subscripts &subscripts);
void printSubscriptList(mlir::OpAsmPrinter &printer, mlir::OperandRange indices, llvm::ArrayRef<int64_t> literals);
/// `align(n)`, where it stands.
mlir::ParseResult parseAlign(mlir::OpAsmParser &parser, mlir::IntegerAttr &align);
/// Reports a type at `location` that is no array's.
mlir::ParseResult checkArrayType(mlir::OpAsmParser &parser, llvm::SMLoc location, mlir::Type type);
/// `: !qd.buffer<..>` or `: !qd.shared<..>`
mlir::ParseResult parseArrayType(mlir::OpAsmParser &parser, mlir::Type &type);

/// Checks the subscripts against the array, and `element` against its element type, or, for `takesVectors`, as a vector
/// of its elements.
mlir::LogicalResult verifyAccess(mlir::Operation *op, mlir::Type array, mlir::OperandRange indices,
                                 llvm::ArrayRef<int64_t> literals, mlir::Type element, bool takesVectors = false);
/// Checks a promise of an alignment in bytes.
mlir::LogicalResult verifyAlign(mlir::Operation *op, std::optional<uint32_t> align, unsigned most);

/// The access qualifiers of the kernel argument that `array` is or is a view of, or 0.
int32_t getDeclaredAccess(mlir::Value array);

} // namespace qd

#endif
