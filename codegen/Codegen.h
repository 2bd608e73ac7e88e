//===- Codegen.h - from expanded QIR to a target's code ----------------------------===//
//
// Purpose: the entry point of each backend. All take a module after the expansions for `target`, verified; they
// diagnose at the op that they cannot lower and return failure, and never reach a fatal error of LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_CODEGEN_H
#define QD_CODEGEN_CODEGEN_H

#include "ir/Dialect.h"
#include "ir/Targets.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace qd {

struct CodegenOptions {
  unsigned optLevel = 2; ///< 0 to 3
  std::string cpu = {};  ///< cpu: the processor by LLVM's name, "haswell"; "" for this machine's
  bool debug = false;    ///< the source's lines beside the code
};

/// NVPTX and AMDGCN: LLVM IR as instruction selection gets it, optimised at `optLevel`.
std::unique_ptr<llvm::Module> lowerToLLVM(mlir::ModuleOp module, const Target &target, const CodegenOptions &options,
                                          llvm::LLVMContext &context);

enum class AMDGCNOutput { Assembly, Object, HSACO };

/// AMDGCN: emits what `lowerToLLVM` made, and uses `module` up. The bytes depend on the input alone. Every kernel
/// of the module is in the result, or an error says which is missing.
llvm::Expected<std::string> emitAMDGCN(llvm::Module &module, const Target &target, AMDGCNOutput output,
                                       const CodegenOptions &options);

/// NVPTX: the PTX text of what lowerToLLVM made of `module`.
mlir::FailureOr<std::string> emitPTX(mlir::ModuleOp module, llvm::Module &lowered, const Target &target,
                                     const CodegenOptions &options);

/// SPIR-V for Vulkan: the module's words as bytes, validated for the chip's Vulkan version.
mlir::FailureOr<std::string> emitSPIRV(mlir::ModuleOp module, const Target &target, const CodegenOptions &options);

/// The text of a SPIR-V module, as spirv-dis prints it.
mlir::FailureOr<std::string> disassembleSPIRV(llvm::StringRef words);

} // namespace qd

#endif
