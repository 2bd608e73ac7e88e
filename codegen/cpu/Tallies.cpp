//===- Tallies.cpp - what all blocks add to the same elements --------------------------------------------------===//
//
// At the end of a histogram each block adds its counts to the grid's: hundreds of locked instructions, on cache lines
// that other workers change as well. Where a thread's element is the same in all blocks, its additions are summed in a
// variable of the function, a tally, and added to memory once, when the function has run its blocks:
//
//   for each block: atomic bins[t] += v   becomes   for each block: tally[t] += v
//                                                   atomic bins[t] += tally[t], where that is not 0
//
// Nobody can tell: integers come to the same sum in any order; nothing in the kernel sees the buffer otherwise or waits
// for another block; no other buffer overlaps it; and relaxed additions order nothing else. A sum that is not 0 shows
// that its thread was to touch the element.
//
//===----------------------------------------------------------------------===//

#include "codegen/Waits.h"
#include "codegen/cpu/KernelEmitter.h"
#include "codegen/lower/Elementwise.h"
#include "ir/Arrays.h"

using namespace mlir;

namespace qd {

/// Whether a thread's value is the same in all blocks, by integer arithmetic alone; collects that, in order.
static bool isOfThread(Value value, llvm::SetVector<Operation *> &computation) {
  constexpr unsigned maxOps = 16;
  if (isa<BlockArgument>(value))
    return isa<KernelOp>(value.getParentBlock()->getParentOp());
  Operation *op = value.getDefiningOp();
  if (computation.contains(op))
    return true;
  bool isId = isa<ThreadIdOp, ThreadIndexOp, LaneIdOp, SubgroupSizeOp, BlockDimOp, GridDimOp, SizeOp>(op);
  auto isInteger = [](Type type) { return type.isInteger(); };
  if (!isId && !(isElementwise(op->getName()) && llvm::all_of(op->getResultTypes(), isInteger) &&
                 llvm::all_of(op->getOperands(), [&](Value operand) {
                   return isInteger(operand.getType()) && isOfThread(operand, computation);
                 })))
    return false;
  computation.insert(op);
  return computation.size() <= maxOps;
}

static bool onlyAdds(AtomicRMWOp op) {
  return op.getKind() == AtomicKind::add && op.getOrder() == Order::relaxed && op.use_empty() &&
         (op.getType().isInteger(32) || op.getType().isInteger(64));
}

void KernelEmitter::chooseTallies() {
  constexpr uint64_t maxBytes = 16 * 1024;
  // Asserts leave the function early.
  if (suspends || asserts || qd::mayWait(kernel))
    return;
  uint64_t threads = llvm::alignTo(kernel.getNumThreads(), lanes), bytes = 0;
  for (BlockArgument buffer : kernel.getBodyBlock().getArguments()) {
    if (!isa<BufferType>(buffer.getType()) || !(kernel.getAccess(buffer.getArgNumber()) & KernelOp::NoAlias))
      continue;
    bool isOnlyAddedTo = llvm::all_of(buffer.getUsers(), [](Operation *user) {
      auto rmw = dyn_cast<AtomicRMWOp>(user);
      return isa<SizeOp>(user) || (rmw && onlyAdds(rmw));
    });
    if (!isOnlyAddedTo)
      continue;
    for (Operation *user : buffer.getUsers()) {
      auto rmw = dyn_cast<AtomicRMWOp>(user);
      Tally tally;
      if (!rmw || !llvm::all_of(rmw.getIndices(), [&](Value index) { return isOfThread(index, tally.subscripts); }))
        continue;
      bytes += threads * rmw.getType().getIntOrFloatBitWidth() / 8;
      if (bytes > maxBytes)
        return;
      tallies.insert({rmw, std::move(tally)});
    }
  }
}

/// A vector for each subgroup.
void KernelEmitter::createTallies() {
  unsigned subgroups = llvm::divideCeil(kernel.getNumThreads(), lanes);
  llvm::Align alignment(cpu::sharedAlignment);
  for (auto &[op, tally] : tallies) {
    auto *type = llvm::ArrayType::get(vectorOf(scalarType(op->getResult(0).getType())), subgroups);
    tally.sums = b.CreateAlloca(type, nullptr, "tally");
    tally.sums->setAlignment(alignment);
    b.CreateMemSet(tally.sums, b.getInt8(0), module.getDataLayout().getTypeAllocSize(type), alignment);
  }
}

/// The subgroup's.
KernelEmitter::TallyPlace KernelEmitter::getTallyPlace(const Tally &tally) {
  llvm::Type *type = cast<llvm::ArrayType>(tally.sums->getAllocatedType())->getElementType();
  uint64_t bytes = module.getDataLayout().getTypeAllocSize(type);
  return {type, b.CreateGEP(type, tally.sums, b.CreateUDiv(frame.firstThread, b.getInt32(lanes))),
          llvm::Align(std::min<uint64_t>(bytes, cpu::sharedAlignment))};
}

bool KernelEmitter::emitTally(AtomicRMWOp op) {
  auto found = tallies.find(op);
  if (found == tallies.end())
    return false;
  TallyPlace place = getTallyPlace(found->second);
  llvm::Value *active = op.getPredicate() ? both(mask, freeze(getVector(op.getPredicate()))) : mask;
  llvm::Value *before = b.CreateAlignedLoad(place.type, place.pointer, place.alignment);
  llvm::Value *after = b.CreateAdd(before, getVector(op.getValue()));
  b.CreateAlignedStore(active ? b.CreateSelect(active, after, before) : after, place.pointer, place.alignment);
  return true;
}

/// A subgroup's sums to memory; they are one where all lanes name one element.
void KernelEmitter::addTally(AtomicRMWOp op, const Tally &tally) {
  TallyPlace place = getTallyPlace(tally);
  llvm::Value *sums = b.CreateAlignedLoad(place.type, place.pointer, place.alignment);
  mask = both(mask, b.CreateICmpNE(sums, llvm::Constant::getNullValue(place.type)));
  if (llvm::all_of(op.getIndices(), [&](Value index) { return analysis.isUniform(index); })) {
    sums = b.CreateAddReduce(sums);
    llvm::Value *isAny = b.CreateICmpNE(sums, llvm::Constant::getNullValue(sums->getType()));
    mask = both(splat(isAny), maskVector([](unsigned lane) { return lane == 0; }));
  }
  LaneAccess access = {op, op.getArray(), op.getIndices(), op.getStaticIndices(), Value(), op.getType()};
  accessEachLane(access, sums, Value(), nullptr, [&](llvm::Value *pointer, ArrayRef<llvm::Value *> operands) {
    annotate(b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, pointer, operands[0],
                               llvm::Align(getStorageBytes(op.getType())), llvm::AtomicOrdering::Monotonic),
             op.getArray());
    return nullptr;
  });
}

/// Behind the last block. It runs once, so there are no copies of it.
LogicalResult KernelEmitter::addTallies() {
  unroll.subgroups = false;
  unsigned full = kernel.getNumThreads() / lanes;
  for (auto &[op, tally] : tallies) {
    auto add = [&, op = op, &tally = tally](llvm::Value *number, bool partial) -> LogicalResult {
      enterSubgroup(number, partial);
      for (Operation *computed : tally.subscripts)
        if (failed(emitOp(*computed)))
          return failure();
      addTally(cast<AtomicRMWOp>(op), tally);
      return success();
    };
    if (full && failed(emitSubgroupLoop(full, [&](llvm::Value *number) { return add(number, /*partial=*/false); })))
      return failure();
    if (kernel.getNumThreads() % lanes && failed(add(b.getInt32(full), /*partial=*/true)))
      return failure();
  }
  return success();
}

} // namespace qd
