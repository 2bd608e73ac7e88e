//===- Kind.h - what a reduction kind means on a type -------------------------===//
//
// Purpose: one table from a kind to its operation and its identity; expansions, lowerings and the
// interpreter all read it.
//
//===----------------------------------------------------------------------===//

#ifndef QD_IR_KIND_H
#define QD_IR_KIND_H

#include "ir/Dialect.h"

namespace qd {

/// Whether `kind` is defined on scalars of `type`.
bool isLegalKind(Kind kind, mlir::Type type);

/// The arith op that combines two values, "arith.addi"; "" where `kind` is not defined on `type`.
llvm::StringRef getKindOpName(Kind kind, mlir::Type type);

/// `lhs kind rhs` as an arith op; `kind` must be legal on their type.
mlir::Value createKindOp(mlir::OpBuilder &builder, mlir::Location loc, Kind kind, mlir::Value lhs, mlir::Value rhs);

/// The constant e with e kind x = x: +0, 1, the type's largest or smallest value (infinite for floats), all ones.
mlir::TypedAttr getIdentity(Kind kind, mlir::Type type);

/// Whether an atomic access can change elements of `type` by `kind`.
bool isLegalAtomicKind(AtomicKind kind, mlir::Type type);

/// What `old kind value` is, as arith ops; `exchange` gives `value` itself. `kind` must be legal on their type.
mlir::Value createAtomicKindOp(mlir::OpBuilder &builder, mlir::Location loc, AtomicKind kind, mlir::Value old,
                               mlir::Value value);

/// The arith op of an atomic kind; "" for `exchange`, and where it is not defined on `type`.
llvm::StringRef getAtomicKindOpName(AtomicKind kind, mlir::Type type);

} // namespace qd

#endif
