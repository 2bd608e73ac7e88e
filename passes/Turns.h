//===- Turns.h - whose turn it is, carried through control flow ---------------------------===//
//
// Purpose: lets ops that are reached again and again take one of two sides in turn.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_TURNS_H
#define QD_PASSES_TURNS_H

#include "ir/Dialect.h"

namespace qd {

/// Replaces each of `starts`, placeholders of one i32 result, by 0 and `count` in turn, in the order in which the
/// kernel reaches them: by constants where that is known, else by a value that loops and branches carry along.
void takeTurns(KernelOp kernel, llvm::ArrayRef<mlir::Operation *> starts, int64_t count);

/// Replaces a placeholder by a constant; additions of 0 go with it.
void replaceStart(mlir::Operation *start, int64_t constant);

} // namespace qd

#endif
