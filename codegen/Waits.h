//===- Waits.h - loops in which threads wait for each other --------------------------------===//

#ifndef QD_CODEGEN_WAITS_H
#define QD_CODEGEN_WAITS_H

#include "ir/Dialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace qd {

/// Whether a thread may wait in the loop, or in one of the kernel's, for what another one writes.
bool mayWait(mlir::scf::WhileOp loop);
bool mayWait(KernelOp kernel);

/// Whether the region writes memory that others see.
bool writesForOthers(mlir::Region &region);

} // namespace qd

#endif
