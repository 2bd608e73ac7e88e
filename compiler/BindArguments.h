//===- BindArguments.h - kernel arguments that are constants -----------------------------------===//
//
// Purpose: specialises kernels for values that whoever compiles them knows.
// Input: a verified module. Output: a verified module whose kernels lack the bound arguments; the bodies have constants
// in their place.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_BINDARGUMENTS_H
#define QD_COMPILER_BINDARGUMENTS_H

#include "compiler/Session.h"

namespace qd {

/// Applies "n=1024,KERNEL.n=0x10,scale=0.5". A name without a kernel binds the argument of every kernel that has it. A
/// failure is in the session's diagnostics: a name that nothing has, a value that the type does not hold, a buffer.
bool bindArguments(Session &session, mlir::ModuleOp module, llvm::StringRef bindings);

} // namespace qd

#endif
