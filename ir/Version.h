//===- Version.h - of the language ---------------------------------------------------===//

#ifndef QD_IR_VERSION_H
#define QD_IR_VERSION_H

#include "llvm/ADT/StringRef.h"

namespace qd {

/// The version of QIR that this release reads and writes. A module says which it was written for with the attribute
/// `qd.version`; one that says nothing is taken as current.
constexpr unsigned qirVersion = 1;
constexpr llvm::StringLiteral versionAttribute = "qd.version";

} // namespace qd

#endif
