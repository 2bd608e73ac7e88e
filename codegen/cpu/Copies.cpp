//===- Copies.cpp - whether each subgroup gets its own copy of the code ---------------------------------------===//
//
// By the size that all copies together would have.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/KernelEmitter.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace qd {

std::optional<uint64_t> getTurns(scf::ForOp loop) {
  APInt lower, upper, step;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) || !matchPattern(loop.getStep(), m_ConstantInt(&step)) ||
      !step.isStrictlyPositive())
    return std::nullopt;
  if (loop.getUnsignedCmp() ? lower.uge(upper) : lower.sge(upper))
    return 0;
  return llvm::divideCeil((upper - lower).getZExtValue(), step.getZExtValue());
}

unsigned getCodeSize(Operation *op, unsigned lanes, bool isTally) {
  constexpr unsigned registerBits = 512;
  if (isa<AtomicRMWOp, AtomicCASOp>(op) && !isTally)
    return 4 * lanes;
  auto store = dyn_cast<StoreOp>(op);
  Type type = store ? store.getValue().getType() : op->getNumResults() ? op->getResult(0).getType() : Type();
  unsigned bits = type && type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 1;
  return std::max(1u, lanes * bits / registerBits);
}

/// The size of all copies that a block's code would consist of.
uint64_t KernelEmitter::getSizeOfCopies(Block &block, bool unrollLoops) {
  uint64_t size = 0;
  unsigned subgroups = llvm::divideCeil(kernel.getNumThreads(), lanes);
  for (const Segments::Step &step : segments.getSteps(block)) {
    const Segment &segment = segments.get(step.segment);
    uint64_t inSegment = segment.again.size();
    for (Operation *op : segment.ops) {
      if (segments.isEntered(op))
        ++inSegment;
      else
        op->walk([&](Operation *inner) { inSegment += getCodeSize(inner, lanes, tallies.contains(inner)); });
    }
    size += inSegment * subgroups;
    if (!step.entered)
      continue;
    uint64_t inside = 0;
    for (Region &region : step.entered->getRegions())
      for (Block &inner : region)
        inside += getSizeOfCopies(inner, unrollLoops);
    auto loop = dyn_cast<scf::ForOp>(step.entered);
    size += inside * (loop && unrollLoops ? getTurns(loop).value_or(1) : 1);
  }
  return size;
}

/// The most that a block's loads of one place in the kernel read.
static uint64_t getBytesOfLoad(KernelOp kernel) {
  uint64_t most = 0;
  kernel.getBody().walk([&](LoadOp load) {
    if (isa<BufferType>(load.getArray().getType()))
      most = std::max<uint64_t>(most, kernel.getNumThreads() * getStorageBytes(load.getType()));
  });
  return most;
}

/// With a copy for each subgroup, places in shared memory and masks are constants, and arrays become registers. Short
/// code gains too: what a subgroup costs beside its own instructions. But where many copies of one load walk through a
/// buffer, each by far steps, processors read ahead less well: half as fast from the second cache, where it was measured.
void KernelEmitter::chooseUnrolling(bool allowed) {
  constexpr uint64_t maxCopies = 4800, maxCopiesWithoutBarriers = 1024, maxBytesOfLoad = 1024;
  constexpr uint64_t longWork = 2048;
  if (!allowed || suspends)
    return;
  Block &body = kernel.getBodyBlock();
  if (!segments.hasBarriers()) {
    unroll.subgroups = getSizeOfCopies(body, /*unrollLoops=*/false) <= maxCopiesWithoutBarriers &&
                       getBytesOfLoad(kernel) <= maxBytesOfLoad;
    return;
  }
  uint64_t size = getSizeOfCopies(body, /*unrollLoops=*/false);
  unroll.loops = getSizeOfCopies(body, /*unrollLoops=*/true) <= maxCopies;
  unroll.subgroups = unroll.loops || size <= maxCopies;
  readsAhead = size >= longWork;
}

} // namespace qd
