//===- Bundle.h - writing .qdb files ---------------------------------------------------------===//
//
// Purpose: packs variants and their QIR into LLVM's OffloadBinary container. The same input gives the same bytes.
// Each entry has a checksum of its bytes, which the runtime compares.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_BUNDLE_H
#define QD_COMPILER_BUNDLE_H

#include "ir/Targets.h"

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace qd {

/// Version of the container's keys and of the interface's JSON.
constexpr const char *bundleVersion = "2";

/// What a variant's code is.
enum class CodeKind { PTX, Cubin, HSACO, SPIRV };

/// One variant as a container entry, in which the code begins at `offset`.
std::string packVariant(const Target &target, CodeKind kind, llvm::StringRef code, llvm::StringRef interface,
                        size_t &offset);

/// The QIR that all variants come from as an entry, as `writeBytecode` gives it.
std::string packQIR(mlir::ModuleOp module);

} // namespace qd

#endif
