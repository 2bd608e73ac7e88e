//===- LoopHint.h - how often a loop is to be unrolled, as LLVM reads it -------------------===//
//
// Purpose: carries `qd.unroll` of an scf.for over to the loop that is made of it.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_LOOPHINT_H
#define QD_CODEGEN_LOOPHINT_H

#include "mlir/IR/Operation.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instruction.h"
#include "llvm/IR/PassManager.h"

namespace qd {

/// Marks the loop of the back edge `branch`, if `loop` has a hint.
void setLoopHint(llvm::Instruction *branch, mlir::Operation *loop);

/// Unrolls the loops of `function` that are marked with a number; the usual pipelines leave them alone.
void unrollMarkedLoops(llvm::Function &function, llvm::FunctionAnalysisManager &analyses, unsigned optLevel);

} // namespace qd

#endif
