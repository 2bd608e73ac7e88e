//===- ExpansionRemark.cpp - what an expansion consists of, in words ------------------===//

#include "passes/ExpansionRemark.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace qd {

bool deservesRemark(Operation *op) {
  return op->hasTrait<Convergent>() && !isa<ShuffleOp, ShuffleUpOp, ShuffleDownOp, ShuffleXorOp, BroadcastOp,
                                            BroadcastFirstOp, RotateOp, ActiveMaskOp, SubgroupSyncOp, BlockSyncOp,
                                            BlockSyncSharedOp>(op);
}

/// What an op of an expansion is counted as; "" for what stays in a lane.
static StringRef getUnit(Operation *op, const BlockShape &shape) {
  return TypeSwitch<Operation *, StringRef>(op)
      .Case<ReduceOp, ReduceAllOp, InclusiveScanOp, ExclusiveScanOp>([&](auto) {
        return shape.hasRedux ? "redux.sync" : shape.rowLanes ? "lane chain" : "group operation";
      })
      .Case<ShuffleOp, ShuffleUpOp, ShuffleDownOp, ShuffleXorOp>([](auto) { return "shuffle"; })
      .Case([](BroadcastOp) { return "broadcast"; })
      .Case([](BallotOp) { return "ballot"; })
      .Case<AllOp, AnyOp, AllEqualOp>([](auto) { return "vote"; })
      .Case<MatchAnyOp, MatchAllOp>([](auto) { return "match"; })
      .Default([](Operation *) { return ""; });
}

std::string describeExpansion(Operation *first, Operation *end, const BlockShape &shape) {
  SmallVector<std::pair<StringRef, unsigned>> counts;
  auto count = [&](Operation *op) {
    StringRef unit = getUnit(op, shape);
    if (unit.empty())
      return;
    auto *found = llvm::find_if(counts, [&](auto &counted) { return counted.first == unit; });
    if (found == counts.end())
      counts.push_back({unit, 1});
    else
      ++found->second;
  };
  for (Operation *op = first; op != end; op = op->getNextNode())
    op->walk(count);
  std::string text;
  for (auto [i, counted] : llvm::enumerate(counts)) {
    auto [unit, number] = counted;
    text += i == 0 ? "" : i + 1 == counts.size() ? " and " : ", ";
    text += std::to_string(number) + " " + unit.str();
    if (number > 1 && unit != "redux.sync")
      text += unit == "match" ? "es" : "s";
  }
  return text.empty() ? "arithmetic in each lane" : text;
}

} // namespace qd
