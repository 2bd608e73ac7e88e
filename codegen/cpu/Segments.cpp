//===- Segments.cpp ----------------------------------------------------------------------------===//

#include "codegen/cpu/Segments.h"

#include "codegen/lower/Elementwise.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace qd {

/// Whether the op may be computed anew: it reads no memory and no other lane, and is a few instructions.
static bool isRepeatable(Operation &op, const llvm::DenseSet<Operation *> &repeatable) {
  if (isa<ThreadIdOp, GlobalThreadIdOp, ThreadIndexOp, BlockIdOp, BlockDimOp, GridDimOp, LaneIdOp, SubgroupSizeOp,
          SizeOp, ElectOp, SharedAllocOp, PrivateAllocOp, ConstantGetOp, ReinterpretOp>(op))
    return true;
  if (!isElementwise(op.getName()))
    return false;
  auto isCheap = [](Type type) { return type.isInteger(); };
  bool isConstant = op.getNumOperands() == 0;
  if (!isConstant && !(llvm::all_of(op.getResultTypes(), isCheap) && llvm::all_of(op.getOperandTypes(), isCheap)))
    return false;
  return llvm::all_of(op.getOperands(), [&](Value operand) {
    Operation *definition = operand.getDefiningOp();
    return !definition || repeatable.contains(definition);
  });
}

Segments::Segments(KernelOp kernel, bool split) {
  Block &body = kernel.getBodyBlock();
  kernel.getBody().walk([&](Operation *op) {
    topLevel &= !isa<BlockSyncOp, BlockSyncSharedOp>(op) || op->getBlock() == &body;
  });

  llvm::DenseMap<Operation *, unsigned> home;
  llvm::DenseSet<Operation *> repeatable;
  segments.emplace_back();
  for (Operation &op : body.without_terminator()) {
    if (split && isa<BlockSyncOp, BlockSyncSharedOp>(op)) {
      segments.emplace_back();
      continue;
    }
    home[&op] = segments.size() - 1;
    segments.back().ops.push_back(&op);
    if (isRepeatable(op, repeatable))
      repeatable.insert(&op);
  }

  llvm::SetVector<Value> allKept;
  for (unsigned number = 0; number < segments.size(); ++number) {
    Segment &segment = segments[number];
    // What the segment reads from outside itself, closed over the ops that are done anew.
    llvm::SetVector<Operation *> again;
    llvm::SetVector<Value> read;
    SmallVector<Operation *> queue(segment.ops);
    while (!queue.empty()) {
      queue.pop_back_val()->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands()) {
          Operation *definition = operand.getDefiningOp();
          auto at = home.find(definition);
          if (!definition || at == home.end() || at->second == number)
            continue;
          if (!repeatable.contains(definition))
            read.insert(operand);
          else if (again.insert(definition))
            queue.push_back(definition);
        }
      });
    }
    for (unsigned earlier = 0; earlier < number; ++earlier)
      for (Operation *op : segments[earlier].ops)
        if (again.contains(op))
          segment.again.push_back(op);
    llvm::append_range(segment.kept, read);
    allKept.insert(read.begin(), read.end());
  }
  kept.assign(allKept.begin(), allKept.end());
}

} // namespace qd
