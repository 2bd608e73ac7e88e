//===- ExpansionRemark.h - what an expansion consists of, in words --------------------===//
//
// Purpose: the text of `-Rpass=expand` for an op that became others inside a subgroup.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_EXPANSIONREMARK_H
#define QD_PASSES_EXPANSIONREMARK_H

#include "passes/LaneBuilder.h"

#include <string>

namespace qd {

/// Whether there was a choice in how `op` is carried out.
bool deservesRemark(mlir::Operation *op);

/// "5 shuffles and 1 ballot": the ops among lanes from `first` up to `end`, which is not one of them.
std::string describeExpansion(mlir::Operation *first, mlir::Operation *end, const BlockShape &shape);

} // namespace qd

#endif
