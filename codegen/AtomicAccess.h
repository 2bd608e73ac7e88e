//===- AtomicAccess.h - atomic accesses in LLVM's terms ------------------------------------===//
//
// Purpose: QIR's orders and kinds as LLVM's, for all backends that emit LLVM IR.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_ATOMICACCESS_H
#define QD_CODEGEN_ATOMICACCESS_H

#include "ir/Dialect.h"

#include "llvm/IR/Instructions.h"
#include "llvm/Support/AtomicOrdering.h"

namespace qd {

llvm::AtomicOrdering getOrdering(Order order);

/// The operation of `kind` on integers or floats; BAD_BINOP for those that are expanded for every chip.
llvm::AtomicRMWInst::BinOp getAtomicOperation(AtomicKind kind, bool isFloat);

} // namespace qd

#endif
