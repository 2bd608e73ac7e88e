//===- CPU.h - native code for this machine ------------------------------------------------------------===//
//
// Purpose: the text of what the cpu device runs, for `qdc -target=cpu`. Running it is createCPUProgram
// (codegen/HostProgram.h).
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_CPU_CPU_H
#define QD_CODEGEN_CPU_CPU_H

#include "codegen/Codegen.h"

namespace qd {

enum class CPUText { LLVM, Assembly };

/// Whether a cpu target is the processor of this machine.
bool isThisMachine(const Target &target);

/// The optimised LLVM IR of all kernels of a module, or the assembly, which is for this machine alone. Takes a
/// verified module after the expansions for `target`; diagnoses what it cannot lower.
mlir::FailureOr<std::string> emitCPUText(mlir::ModuleOp module, const Target &target, const CodegenOptions &options,
                                         CPUText form);

} // namespace qd

#endif
