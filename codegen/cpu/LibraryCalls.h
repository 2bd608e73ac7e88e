//===- LibraryCalls.h - what generated code may call ---------------------------------------------------------===//
//
// Purpose: the closed list of library functions that LLVM's code generation asks for, and their addresses; a name
// outside it is a link error of the JIT, never some symbol that the process happens to have.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_CPU_LIBRARYCALLS_H
#define QD_CODEGEN_CPU_LIBRARYCALLS_H

#include "llvm/ADT/ArrayRef.h"

namespace qd::cpu {

struct LibraryCall {
  const char *name;
  void *address;
};

llvm::ArrayRef<LibraryCall> getLibraryCalls();

} // namespace qd::cpu

#endif
