//===- Pipeline.h - the stages of a compilation -------------------------------------------===//

#ifndef QD_COMPILER_PIPELINE_H
#define QD_COMPILER_PIPELINE_H

#include "ir/Targets.h"
#include "passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace qd {

struct PipelineOptions {
  DivergencePolicy divergence = DivergencePolicy::Error;
  bool remarks = false;
};

/// Takes a module from QIR as written to what codegen expects for `target`.
mlir::LogicalResult runPipeline(mlir::ModuleOp module, const Target &target, const PipelineOptions &options);

} // namespace qd

#endif
