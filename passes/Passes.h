//===- Passes.h - the stages between QIR as written and codegen -----------------------===//
//
// Purpose: one constructor a pass; `<PassName>.cpp` holds it, `-pass-name` runs it in qdc-opt.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_PASSES_H
#define QD_PASSES_PASSES_H

#include "ir/Targets.h"

#include "mlir/Pass/Pass.h"
#include <memory>

namespace qd {

/// What to do about a collective op in control flow that is divergent.
enum class DivergencePolicy { Error, Warn, Allow };

/// -inline-calls: kernels hold no calls, and the module no functions.
std::unique_ptr<mlir::Pass> createInlineCallsPass();

/// -resolve-views: accesses name arguments, by one subscript that counts scalars.
std::unique_ptr<mlir::Pass> createResolveViewsPass(const Target &target = {});

/// -legalize-vectors: all values are scalars, but for vectors that are loaded and stored whole.
std::unique_ptr<mlir::Pass> createLegalizeVectorsPass(const Target &target = {});

/// -check-uniformity: collective ops stand in uniform control flow. Without a target, what it proves holds for
/// every subgroup size.
std::unique_ptr<mlir::Pass> createCheckUniformityPass(DivergencePolicy policy = DivergencePolicy::Error,
                                                      const Target &target = {});

/// -expand-collectives: no reduction, and no tile wider than the target's subgroup, is left. `remarks` says how
/// ops are carried out.
std::unique_ptr<mlir::Pass> createExpandCollectivesPass(const Target &target = {}, bool remarks = false);

/// -check-waits: warns of loops that wait on a plain load.
std::unique_ptr<mlir::Pass> createCheckWaitsPass();

/// -expand-atomics: the target has an instruction for each atomic_rmw that is left.
std::unique_ptr<mlir::Pass> createExpandAtomicsPass(const Target &target = {});

/// -share-storage: shared arrays that are never needed at the same time have one place.
std::unique_ptr<mlir::Pass> createShareStoragePass(const Target &target = {});

/// -check-limits: the target has the shared memory and the launches that kernels need.
std::unique_ptr<mlir::Pass> createCheckLimitsPass(const Target &target = {});

/// -expand-thread: the target carries out what is left of a thread's own ops.
std::unique_ptr<mlir::Pass> createExpandThreadPass(const Target &target = {});

/// -expand-math: functions of math are arithmetic that gives the same bits on every target, or approximations of a
/// GPU where an op allows that.
std::unique_ptr<mlir::Pass> createExpandMathPass(const Target &target = {});

/// Makes the passes known to qdc-opt by their flags.
void registerPasses();

} // namespace qd

#endif
