//===- Bytecode.h - QIR as bytes ---------------------------------------------------------------===//
//
// Purpose: MLIR's bytecode behind a header with its length and checksum. MLIR's reader trusts what it reads, so that it
// only gets what was written whole. The same module gives the same bytes.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_BYTECODE_H
#define QD_COMPILER_BYTECODE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <string>

namespace qd {

/// A module with its locations, but without the folders of the files that they name.
std::string writeBytecode(mlir::ModuleOp module);

/// Whether the bytes, or the few that there are, begin as bytecode does, be it with the header or without.
bool beginsAsBytecode(llvm::StringRef bytes);

/// What MLIR's reader may be given of such bytes; an error where they are not those that were written.
llvm::Expected<llvm::StringRef> openBytecode(llvm::StringRef bytes);

} // namespace qd

#endif
