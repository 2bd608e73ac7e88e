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

/// Whether all threads of the block have the same value: it follows from what they share, memory at one place included.
static bool isOfBlock(Value value, unsigned depth = 0) {
  constexpr unsigned maxDepth = 32;
  if (depth > maxDepth)
    return false;
  auto areOfBlock = [&](ValueRange values) {
    return llvm::all_of(values, [&](Value operand) { return isOfBlock(operand, depth + 1); });
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    auto loop = dyn_cast<scf::ForOp>(parent);
    return isa<KernelOp>(parent) ||
           (loop && value == loop.getInductionVar() && areOfBlock({loop.getLowerBound(), loop.getStep()}));
  }
  Operation *op = value.getDefiningOp();
  if (isa<BlockIdOp, BlockDimOp, GridDimOp, SizeOp, SharedAllocOp, ConstantGetOp>(op))
    return true;
  if (auto load = dyn_cast<LoadOp>(op))
    return !load.getIsVolatile() && !isa<PrivateType>(load.getArray().getType()) && areOfBlock(load->getOperands());
  return isElementwise(op->getName()) && areOfBlock(op->getOperands());
}

/// Whether a block can enter the op, and what in it holds barriers, as a whole.
static bool canEnter(Operation &op) {
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    if (!isOfBlock(branch.getCondition()))
      return false;
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (!isOfBlock(loop.getLowerBound()) || !isOfBlock(loop.getUpperBound()) || !isOfBlock(loop.getStep()))
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
  for (Segment &segment : segments)
    for (Operation *op : segment.ops)
      if (isRepeatable(*op, repeatable))
        repeatable.insert(op);

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
    for (const Segment &other : segments)
      for (Operation *op : other.ops)
        if (again.contains(op))
          segment.again.push_back(op);
    llvm::append_range(segment.kept, read);
    allKept.insert(read.begin(), read.end());
  }
  kept.assign(allKept.begin(), allKept.end());
}

Segments::Segments(KernelOp kernel, const LaneAnalysis &analysis, bool split) : analysis(analysis) {
  Block &body = kernel.getBodyBlock();
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
