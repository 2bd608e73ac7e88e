//===- RareAttribute.h - the mark of a choice that a branch may make ---------------------------===//
//
// Purpose: -expand-math puts `qd.rare` on an arith.select where the target may branch. The value for a true condition
// is right always; the other takes less time, and is right where the condition is false, which nearly always it is.
//
//===----------------------------------------------------------------------===//

#ifndef QD_IR_RAREATTRIBUTE_H
#define QD_IR_RAREATTRIBUTE_H

#include "llvm/ADT/StringRef.h"

namespace qd {

constexpr llvm::StringLiteral rareAttribute = "qd.rare";

} // namespace qd

#endif
