//===- ShuffleGuard.h - choices that a shuffle's own predicate makes --------------------------------===//
//
// Purpose: finds the selects that take a shuffled value only on lanes whose source lies in the tile, as the steps of a
// scan have them. shfl.sync tells that by a predicate, which costs nothing:
//
//   %u = qd.subgroup.shuffle_up %v, 2 poison_edge   %a = arith.addi %u, %v
//   %c = arith.cmpi uge, %lane, 2                   %r = arith.select %c, %a, %v
//
// Input: expanded QIR. Output: the conditions, for the lowering of the shuffle to replace.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_LOWER_SHUFFLEGUARD_H
#define QD_CODEGEN_LOWER_SHUFFLEGUARD_H

#include "ir/Dialect.h"

namespace qd {

/// A select's condition that says whether the lane's source lies in its tile, or the contrary.
struct ShuffleGuard {
  mlir::OpOperand *condition;
  bool isInverted;
};

/// Those behind `shuffled` of a shuffle by a constant offset on a subgroup of `size` lanes. `hasSource` answers for
/// each lane.
llvm::SmallVector<ShuffleGuard> findShuffleGuards(mlir::Value shuffled, unsigned size,
                                                  llvm::function_ref<bool(unsigned lane)> hasSource);

} // namespace qd

#endif
