//===- BlockOps.cpp - operations of a whole block ----------------------------------------===//

#include "passes/BlockOps.h"

#include "passes/BlockReduce.h"
#include "passes/BlockScan.h"
#include "passes/BlockSort.h"
#include "passes/BlockVote.h"
#include "passes/RadixRank.h"
#include "passes/RadixSort.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace qd {

bool hasBlockExpansion(Operation *op, const BlockShape &shape, const Target &target) {
  return isa<BlockElectOp, BlockBroadcastOp, BlockReduceOp, BlockReduceAllOp, BlockInclusiveScanOp,
             BlockExclusiveScanOp, BlockSegmentedScanOp, BlockSyncAllOp, BlockSyncAnyOp, BlockSyncCountOp,
             BlockBitonicSortOp, BlockBitonicSortKVOp, BlockRadixRankOp, BlockRadixSortOp>(op) &&
         !keepsBlockVote(op, shape, target);
}

static Value buildElect(const LaneBuilder &at) {
  return at.compare(arith::CmpIPredicate::eq, ThreadIndexOp::create(at.b, at.loc, at.i32), int64_t(0));
}

/// One element, which its thread writes.
static Values buildBroadcast(const LaneBuilder &at, BlockBroadcastOp op, Staging &staging) {
  if (at.shape.threads == 1)
    return op.getValue();
  std::optional<int32_t> constant;
  APInt number;
  if (op.getStaticLane())
    constant = *op.getStaticLane();
  else if (matchPattern(op.getLane(), m_ConstantInt(&number)))
    constant = number.getSExtValue();
  if (at.shape.threads <= at.shape.subgroupSize)
    return constant ? at.broadcast(op.getValue(), *constant, at.shape.subgroupSize)
                    : at.broadcast(op.getValue(), op.getLane(), at.shape.subgroupSize);
  Value source = constant ? at.constant(*constant) : op.getLane();
  Stage stage = staging.acquire(at, op, op.getValue().getType(), 1);
  if (!stage)
    return {};
  Value thread = ThreadIndexOp::create(at.b, at.loc, at.i32);
  stage.store(at, op.getValue(), at.constant(0), at.compare(arith::CmpIPredicate::eq, thread, source));
  staging.publish(at, stage);
  return stage.load(at, at.constant(0));
}

Values expandBlockOp(Operation *op, const LaneBuilder &at, Staging &staging) {
  auto reduce = [&](auto reduction, bool toAll) {
    return buildBlockReduce(at, op, Combiner(reduction), reduction.getValues(), toAll, staging);
  };
  auto scan = [&](auto scanOp, Value head, bool isExclusive) {
    return buildBlockScan(at, op, Combiner(scanOp), scanOp.getValues(), head, isExclusive, staging);
  };
  return TypeSwitch<Operation *, Values>(op)
      .Case([&](BlockElectOp) { return buildElect(at); })
      .Case([&](BlockBroadcastOp broadcast) { return buildBroadcast(at, broadcast, staging); })
      .Case([&](BlockReduceOp reduction) { return reduce(reduction, /*toAll=*/false); })
      .Case([&](BlockReduceAllOp reduction) { return reduce(reduction, /*toAll=*/true); })
      .Case([&](BlockInclusiveScanOp inclusive) { return scan(inclusive, Value(), /*isExclusive=*/false); })
      .Case([&](BlockExclusiveScanOp exclusive) { return scan(exclusive, Value(), /*isExclusive=*/true); })
      .Case([&](BlockSegmentedScanOp segmented) {
        return scan(segmented, segmented.getHead(), segmented.getExclusive());
      })
      .Case<BlockSyncAllOp, BlockSyncAnyOp, BlockSyncCountOp>([&](auto) { return buildBlockVote(at, op, staging); })
      .Case<BlockBitonicSortOp, BlockBitonicSortKVOp>(
          [&](auto sort) { return buildBlockSort(at, sort, SortOrder(sort), staging); })
      .Case([&](BlockRadixRankOp rank) { return buildRadixRank(at, rank, RadixDigits(rank), staging); })
      .Case([&](BlockRadixSortOp sort) { return buildRadixSort(at, sort, staging); })
      .Default([](Operation *) { return Values(); });
}

} // namespace qd
