//===- Atomics.h - what targets have instructions for --------------------------===//
//
// Purpose: one rule from a target's capabilities to the atomic accesses that it has in one instruction; all others
// are loops around a compare-and-swap, which every target has for every type.
//
//===----------------------------------------------------------------------===//

#ifndef QD_IR_ATOMICS_H
#define QD_IR_ATOMICS_H

#include "ir/Dialect.h"
#include "ir/Targets.h"

namespace qd {

/// Whether the target carries an atomic_rmw out in one instruction. `isUsed`: somebody reads the old value.
bool isNativeAtomic(AtomicKind kind, mlir::Type type, bool isShared, bool isUsed, const Target &target);
bool isNativeAtomic(AtomicRMWOp op, const Target &target);

} // namespace qd

#endif
