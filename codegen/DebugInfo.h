//===- DebugInfo.h - the source's lines in LLVM IR ------------------------------------------===//
//
// Purpose: makes a kernel's locations in QIR those of LLVM's instructions: a subprogram for each kernel, a place for
// each op. There are no variables, so no instruction is added and code stays what it is without.
// Input: kernels whose calls are inlined (InlineCalls names the callee). Output: metadata of the LLVM module.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_DEBUGINFO_H
#define QD_CODEGEN_DEBUGINFO_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/DIBuilder.h"

namespace qd {

class DebugInfo {
public:
  /// Files have the names that `source` and its ops' locations give, relative to the folder that a debugger is told.
  DebugInfo(mlir::ModuleOp source, llvm::Module &module, bool isOptimised);

  /// Makes `function` a part of the kernel at `location`; the locations that follow are within it.
  void begin(llvm::StringRef name, mlir::Location location, llvm::Function &function);
  /// Goes on with a function that was begun before others.
  void resume(llvm::Function &function);
  /// Line 0 where the location names no place.
  llvm::DebugLoc get(mlir::Location location);
  /// Completes the module's metadata.
  void finish() { builder.finalize(); }

private:
  llvm::DIFile *getFile(llvm::StringRef name);
  llvm::DISubprogram *create(llvm::StringRef name, llvm::DIFile *file, unsigned line);
  llvm::DISubprogram *getCallee(llvm::StringRef name, llvm::StringRef file);
  llvm::DILocation *locate(mlir::Location location, llvm::DISubprogram *within, llvm::DILocation *call);

  llvm::DIBuilder builder;
  llvm::StringRef folder;
  bool isOptimised;
  llvm::DICompileUnit *unit = nullptr;
  llvm::DISubprogram *kernel = nullptr;
  llvm::DenseMap<std::pair<llvm::StringRef, llvm::StringRef>, llvm::DISubprogram *> callees; ///< by name and file
  llvm::DenseMap<mlir::Location, llvm::DILocation *> places; ///< in the kernel
};

} // namespace qd

#endif
