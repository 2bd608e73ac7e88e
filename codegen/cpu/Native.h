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
/// A `cpu` that is not "", or QDC_CPU in the environment, describes that processor instead, and is made anew.
llvm::Expected<std::shared_ptr<llvm::TargetMachine>> acquireMachine(unsigned optLevel, llvm::StringRef cpu);

/// What code is made for. IR alone needs no target machine: `machine` is null for processors of another kind than this
/// machine's, whose backend is not linked.
struct Processor {
  llvm::Triple triple;
  NativeFeatures features;
  std::shared_ptr<llvm::TargetMachine> machine;
};

Processor describe(std::shared_ptr<llvm::TargetMachine> machine);
/// By the architecture's name, "aarch64".
Processor describeForeign(llvm::StringRef architecture);

/// Gives a fresh module the processor's layout. Before emission.
void prepare(llvm::Module &module, const Processor &processor);

/// Runs the pipeline; coroutines are gone after it.
void optimise(llvm::Module &module, const Processor &processor, unsigned optLevel, bool hasCoroutines);

/// Unravels the conditions of selects for processors without mask registers (VectorMasks.cpp).
void unravelMasks(llvm::Module &module);

/// A JIT that knows the library functions which generated code may call, and no other symbol of the process.
llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> createJIT(std::shared_ptr<llvm::TargetMachine> machine);

} // namespace qd::cpu

#endif
