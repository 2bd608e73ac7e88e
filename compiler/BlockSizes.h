//===- BlockSizes.h - another block size for resizable kernels -------------------------------===//
//
// Purpose: gives kernels the block sizes that whoever compiles them asks for.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_BLOCKSIZES_H
#define QD_COMPILER_BLOCKSIZES_H

#include "compiler/Session.h"

namespace qd {

/// Applies "NAME=128,NAME=32x8" to the module's kernels, and verifies the module anew. A failure is in the session's
/// diagnostics: a name that no kernel has, a size that no block has, a kernel that is not resizable.
bool resizeBlocks(Session &session, mlir::ModuleOp module, llvm::StringRef sizes);

} // namespace qd

#endif
