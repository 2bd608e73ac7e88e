//===- Pipeline.cpp - the stages of a compilation, in order ----------------------------------===//

#include "compiler/Pipeline.h"

#include "ir/Dialect.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace qd {

LogicalResult runPipeline(ModuleOp module, const Target &target, const PipelineOptions &options) {
  PassManager passes(module.getContext());
  // Kernels hold no calls: what follows sees each op where it is reached from.
  passes.addPass(createInlineCallsPass());
  // Accesses name the argument that they touch, by one subscript.
  passes.addPass(createResolveViewsPass(target));
  // Values are scalars.
  passes.addPass(createLegalizeVectorsPass(target));
  // Collective ops stand where all lanes of their scope come together.
  passes.addPass(createCheckUniformityPass(options.divergence, target));
  // Who waits for memory reads it each time, and loops count upwards.
  passes.addPass(createCheckWaitsPass());
  // The target carries out copies, prints, asserts and pauses as they are, and no packed bits are left.
  passes.addPass(createExpandThreadPass(target));
  // The target has an instruction for each atomic access.
  passes.addPass(createExpandAtomicsPass(target));
  // No reductions and no tiles wider than the target's subgroup are left.
  passes.addPass(createExpandCollectivesPass(target, options.remarks));
  // Shared arrays have their places.
  passes.addPass(createShareStoragePass(target));
  // The target has the memory and the launches that are asked for.
  passes.addPass(createCheckLimitsPass(target));
  // Functions are arithmetic that gives the same bits on every target.
  passes.addPass(createExpandMathPass(target));
  return passes.run(module);
}

} // namespace qd
