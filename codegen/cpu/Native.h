//===- Native.h - LLVM IR made code for this machine ------------------------------------------------------===//
//
// Purpose: target machine, optimisation and the JIT, apart from QIR. Floating point is strict: no contraction, no
// flushing of subnormals.
// Input: LLVM modules that KernelEmitter made. Output: addresses of functions, or text.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_CPU_NATIVE_H
#define QD_CODEGEN_CPU_NATIVE_H

#include "codegen/cpu/KernelEmitter.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>

namespace qd::cpu {

/// A description of this machine for one compilation at a time; it goes back to a store when the last owner drops it.
/// A `cpu` that is not "" describes that processor instead, and is made anew.
llvm::Expected<std::shared_ptr<llvm::TargetMachine>> acquireMachine(unsigned optLevel, llvm::StringRef cpu);

/// Gives a fresh module the machine's layout. Before emission.
void prepare(llvm::Module &module, const llvm::TargetMachine &machine);

NativeFeatures getFeatures(const llvm::TargetMachine &machine);

/// Runs the pipeline; coroutines are gone after it.
void optimise(llvm::Module &module, llvm::TargetMachine &machine, unsigned optLevel, bool hasCoroutines);

/// Unravels the conditions of selects for processors without mask registers (VectorMasks.cpp).
void unravelMasks(llvm::Module &module);

/// A JIT that knows the library functions which generated code may call, and no other symbol of the process.
llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> createJIT(std::shared_ptr<llvm::TargetMachine> machine);

} // namespace qd::cpu

#endif
