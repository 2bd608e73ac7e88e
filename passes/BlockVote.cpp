//===- BlockVote.cpp - barriers with a predicate ------------------------------------------===//

#include "passes/BlockVote.h"

#include "passes/BlockReduce.h"
#include "passes/LaneTree.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace qd {

/// One subgroup waits for itself more cheaply.
bool keepsBlockVote(Operation *op, const BlockShape &shape, const Target &target) {
  return isa<BlockSyncAllOp, BlockSyncAnyOp, BlockSyncCountOp>(op) && target.has(BarrierVote) &&
         shape.threads > shape.subgroupSize;
}

Values buildBlockVote(const LaneBuilder &at, Operation *op, Staging &staging) {
  int32_t size = at.shape.subgroupSize;
  Value predicate = op->getOperand(0);
  bool isCount = isa<BlockSyncCountOp>(op), isAll = isa<BlockSyncAllOp>(op);
  bool isOneSubgroup = at.shape.threads <= size;
  llvm::SaveAndRestore ordersAll(staging.ordersAllMemory, true);
  if (isOneSubgroup)
    staging.sync(at);
  Value vote;
  if (isCount) {
    Value count = math::CtPopOp::create(at.b, at.loc, at.ballot(predicate));
    vote = at.fromWord(count);
  } else {
    vote = buildVote(at, isAll, predicate, size);
  }
  if (isOneSubgroup)
    return vote;
  Combiner combiner(isCount ? Kind::add : isAll ? Kind::andi : Kind::ori);
  return buildReduceSubgroups(at, op, combiner, vote, /*inAllLanes=*/true, /*toAll=*/true, staging);
}

} // namespace qd
