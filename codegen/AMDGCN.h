//===- AMDGCN.h - from LLVM IR to AMD code objects -------------------------------===//
//
// Purpose: the ABI and emission of the amdgcn target: machine description, kernel attributes, assembly text,
// objects and linked code objects (HSACO).
// Input: LLVM IR whose kernels are defined functions of the calling convention amdgpu_kernel and call nothing but
// intrinsics. Output: code object version 5.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_AMDGCN_H
#define QD_CODEGEN_AMDGCN_H

#include "codegen/Codegen.h"

#include "llvm/IR/Function.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace qd {

/// The machine that optimisation and emission describe themselves to; an error where the chip lacks the target's
/// wave size.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createAMDGCNMachine(const Target &target, unsigned optLevel);

/// Gives `module` the triple, data layout and code object version of `machine`.
void setAMDGCNModuleABI(llvm::Module &module, const llvm::TargetMachine &machine);

/// Makes `function` a kernel for blocks of exactly `numThreads` threads, compiled for `target`.
void setAMDGCNKernelABI(llvm::Function &function, const Target &target, unsigned numThreads);

/// So many blocks should fit a multiprocessor at once, and a thread take no more registers.
void setAMDGCNKernelHints(llvm::Function &function, const Target &target, unsigned numThreads,
                          std::optional<unsigned> minBlocks, std::optional<unsigned> maxRegisters);

} // namespace qd

#endif
