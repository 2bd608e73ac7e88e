//===- Passes.cpp - the list of passes, for qdc-opt --------------------------------===//

#include "passes/Passes.h"

namespace qd {

void registerPasses() {
  mlir::registerPass([] { return createInlineCallsPass(); });
  mlir::registerPass([] { return createResolveViewsPass(); });
  mlir::registerPass([] { return createLegalizeVectorsPass(); });
  mlir::registerPass([] { return createCheckUniformityPass(); });
  mlir::registerPass([] { return createCheckWaitsPass(); });
  mlir::registerPass([] { return createExpandAtomicsPass(); });
  mlir::registerPass([] { return createExpandCollectivesPass(); });
  mlir::registerPass([] { return createShareStoragePass(); });
  mlir::registerPass([] { return createCheckLimitsPass(); });
  mlir::registerPass([] { return createExpandThreadPass(); });
  mlir::registerPass([] { return createExpandMathPass(); });
}

} // namespace qd
