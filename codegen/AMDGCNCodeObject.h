//===- AMDGCNCodeObject.h - linking and checking code objects --------------------===//
//
// Purpose: makes a loadable code object (HSACO) of one relocatable object, and finds out whether every kernel is
// in what was emitted. The backend drops a kernel that it cannot compile without reporting an error.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_AMDGCNCODEOBJECT_H
#define QD_CODEGEN_AMDGCNCODEOBJECT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>

namespace qd {

/// Links one relocatable object into a shared one, by lld.
llvm::Expected<std::string> linkAMDGCN(llvm::StringRef object);

/// Each kernel has a 64-byte descriptor `NAME.kd`, and the metadata note lists exactly `kernels`. Takes a
/// relocatable object or a linked one.
llvm::Error checkAMDGCNCodeObject(llvm::StringRef elf, llvm::ArrayRef<std::string> kernels);

/// The same of assembly text.
llvm::Error checkAMDGCNAssembly(llvm::StringRef text, llvm::ArrayRef<std::string> kernels);

/// How many bytes of shared memory a block of each kernel takes. LLVM may have moved private arrays there.
llvm::Expected<llvm::StringMap<uint64_t>> readAMDGCNSharedBytes(llvm::StringRef elf);

} // namespace qd

#endif
