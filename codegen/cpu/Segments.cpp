//===- Segments.cpp ----------------------------------------------------------------------------===//

#include "codegen/cpu/Segments.h"

#include "codegen/lower/Elementwise.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace qd {

static bool isBarrier(Operation &op) { return isa<BlockSyncOp, BlockSyncSharedOp>(op); }

static bool holdsBarrier(Operation &op) {
  return op.getNumRegions() &&
         op.walk([](Operation *inner) { return isBarrier(*inner) ? WalkResult::interrupt() : WalkResult::advance(); })
             .wasInterrupted();
}

/// Finds the values that all threads of the block have alike: they follow from what the threads share, memory at one
/// place included.
void Segments::findShared(KernelOp kernel) {
  auto areShared = [&](ValueRange values) { return llvm::all_of(values, [&](Value v) { return isShared(v); }); };
  shared.insert_range(kernel.getBodyBlock().getArguments());
  kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (areShared({loop.getLowerBound(), loop.getStep()}))
        shared.insert(loop.getInductionVar());
      return;
    }
    auto load = dyn_cast<LoadOp>(op);
    bool isRead = load && !load.getIsVolatile() && !isa<PrivateType>(load.getArray().getType());
    if (isa<BlockIdOp, BlockDimOp, GridDimOp, SizeOp, SharedAllocOp, ConstantGetOp>(op) ||
        ((isRead || isElementwise(op->getName())) && areShared(op->getOperands())))
      shared.insert_range(op->getResults());
  });
}

/// Whether a block can enter the op, and what in it holds barriers, as a whole.
bool Segments::canEnter(Operation &op) const {
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    if (!isShared(branch.getCondition()))
      return false;
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (!isShared(loop.getLowerBound()) || !isShared(loop.getUpperBound()) || !isShared(loop.getStep()))
      return false;
  } else {
    return false;
  }
  for (Region &region : op.getRegions())
    for (Block &block : region)
      for (Operation &inner : block)
        if (holdsBarrier(inner) && !canEnter(inner))
          return false;
  return true;
}

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
    if (auto argument = dyn_cast<BlockArgument>(operand)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      return !loop || operand == loop.getInductionVar();
    }
    return repeatable.contains(operand.getDefiningOp());
  });
}

/// Whether the op is a loop of loads from consecutive elements that carries nothing.
bool Segments::walksTogether(Operation &op) const {
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop || loop.getNumResults() || !canEnter(op))
    return false;
  bool loads = false;
  for (Operation &inner : *loop.getBody()) {
    if (inner.getNumRegions())
      return false;
    auto load = dyn_cast<LoadOp>(inner);
    if (!load || !isa<BufferType>(load.getArray().getType()))
      continue;
    if (load.getIsVolatile() || load.getIndices().size() != 1 || !analysis.isUnitStride(load.getIndices().front()))
      return false;
    loads = true;
  }
  return loads;
}

/// Cuts a block at its barriers and at what holds some.
void Segments::collect(Block &block) {
  auto open = [&] {
    steps[&block].push_back({unsigned(segments.size())});
    segments.emplace_back();
  };
  open();
  bool isBody = isa<KernelOp>(block.getParentOp());
  for (Operation &op : block) {
    if (isBarrier(op)) {
      open();
      continue;
    }
    if (isBody && op.hasTrait<OpTrait::IsTerminator>())
      continue;
    home[&op] = segments.size() - 1;
    segments.back().ops.push_back(&op);
    if (!holdsBarrier(op) && !walksTogether(op))
      continue;
    entered.insert(&op);
    steps[&block].back().entered = &op;
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        collect(inner);
    open();
  }
}

/// Finds what the segments need of each other.
void Segments::connect() {
  llvm::DenseSet<Operation *> repeatable;
  llvm::DenseMap<Operation *, unsigned> places;
  for (Segment &segment : segments)
    for (Operation *op : segment.ops) {
      places[op] = places.size();
      if (isRepeatable(*op, repeatable))
        repeatable.insert(op);
    }

  llvm::SetVector<Value> allKept;
  for (auto [number, segment] : llvm::enumerate(segments)) {
    // What the segment reads from outside itself, closed over the ops that are done anew.
    llvm::SetVector<Operation *> again;
    llvm::SetVector<Value> read;
    SmallVector<Operation *> queue(segment.ops);
    auto readOperands = [&, number = number](Operation *op) {
      for (Value operand : op->getOperands()) {
        if (auto argument = dyn_cast<BlockArgument>(operand)) {
          auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
          if (loop && entered.contains(loop) && operand != loop.getInductionVar())
            read.insert(operand);
          continue;
        }
        Operation *definition = operand.getDefiningOp();
        auto at = home.find(definition);
        if (at == home.end() || at->second == number)
          continue;
        if (!repeatable.contains(definition))
          read.insert(operand);
        else if (again.insert(definition))
          queue.push_back(definition);
      }
    };
    while (!queue.empty()) {
      Operation *op = queue.pop_back_val();
      if (entered.contains(op))
        readOperands(op);
      else
        op->walk(readOperands);
    }
    llvm::append_range(segment.again, again);
    llvm::sort(segment.again, [&](Operation *a, Operation *b) { return places.lookup(a) < places.lookup(b); });
    llvm::append_range(segment.kept, read);
    allKept.insert(read.begin(), read.end());
  }
  kept.assign(allKept.begin(), allKept.end());
}

Segments::Segments(KernelOp kernel, const LaneAnalysis &analysis, bool split) : analysis(analysis) {
  Block &body = kernel.getBodyBlock();
  findShared(kernel);
  for (Operation &op : body)
    splits &= !holdsBarrier(op) || canEnter(op);
  if (split && splits) {
    collect(body);
    connect();
    return;
  }
  steps[&body].push_back({0});
  segments.emplace_back();
  for (Operation &op : body.without_terminator())
    segments.front().ops.push_back(&op);
}

} // namespace qd
