//===- Dialect.h - the qd dialect in C++ -----------------------------------===//
//
// Purpose: declares QIR's types, enums and ops, and the predicates on types that all stages share.
//
//===----------------------------------------------------------------------===//

#ifndef QD_IR_DIALECT_H
#define QD_IR_DIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace qd {

/// i1, i8, i16, i32, i64, f16, bf16, f32 or f64.
bool isScalarType(mlir::Type type);

/// A vector of 2, 3, 4, 8 or 16 scalars.
bool isVectorType(mlir::Type type);

/// What an array may hold: a scalar, or a vector of at most 16 bytes.
bool isElementType(mlir::Type type);

/// The type of a vector's scalars, and their number; a scalar is its own, and one.
mlir::Type getScalarOf(mlir::Type type);
unsigned getNumScalars(mlir::Type type);

/// A buffer, or an array of static shape.
bool isArrayType(mlir::Type type);

/// What an array holds.
mlir::Type getElementType(mlir::Type array);

/// The extents of a shared or private array or a table; none of a buffer.
llvm::ArrayRef<int64_t> getStaticShape(mlir::Type array);

/// Bytes that an element takes in memory; an i1 takes one.
unsigned getStorageBytes(mlir::Type element);

/// Marks an op that all lanes of its scope must reach together.
template <typename ConcreteType>
class Convergent : public mlir::OpTrait::TraitBase<ConcreteType, Convergent> {};

/// Marks a convergent op that knows which lanes take part.
template <typename ConcreteType>
class Members : public mlir::OpTrait::TraitBase<ConcreteType, Members> {};

/// Whether all lanes of an op's scope must reach it together: a convergent op without `members`.
bool needsUniformControl(mlir::Operation *op);

/// The attribute by which an scf.for is unrolled: an integer number of times, or "full".
constexpr llvm::StringLiteral unrollAttribute = "qd.unroll";

/// How often a loop is to be unrolled, 1 for never, or entirely; absent without a hint.
struct UnrollHint {
  bool isFull = false;
  unsigned count = 0;
};
std::optional<UnrollHint> getUnrollHint(mlir::Operation *loop);

/// Names the dialects that QIR consists of; a context loads each when a file first uses it.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace qd

#include "ir/Enums.h.inc"

#include "ir/Dialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/Attrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/Types.h.inc"

#define GET_OP_CLASSES
#include "ir/Ops.h.inc"

#endif
