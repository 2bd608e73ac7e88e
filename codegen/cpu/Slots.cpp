//===- Slots.cpp - the parts of a block between barriers, and what they keep for each other -------------------===//
//
// A part (Segments.h) does anew what is cheap, and reads the rest from slots: one a subgroup and value.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/KernelEmitter.h"

using namespace mlir;

namespace qd {

/// The values that outlive a segment, and what loops carry that the block enters.
llvm::SmallSetVector<Value, 8> KernelEmitter::getSlotOwners() {
  llvm::SmallSetVector<Value, 8> owners;
  for (Value value : segments.getKept())
    owners.insert(getSlotOwner(value));
  kernel.getBody().walk([&](scf::ForOp loop) {
    if (segments.isEntered(loop))
      owners.insert(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
  });
  return owners;
}

/// Slots that take much memory are in the worker's, behind all else, and the others on its stack, where they may become
/// registers.
void KernelEmitter::placeSlots() {
  constexpr uint64_t maxOnStack = 64 * 1024;
  const llvm::DataLayout &layout = module.getDataLayout();
  uint64_t subgroups = llvm::divideCeil(kernel.getNumThreads(), lanes), bytes = 0;
  for (Value value : getSlotOwners()) {
    slots[value].offset = bytes;
    bytes += llvm::alignTo(layout.getTypeAllocSize(representation(value)) * subgroups, cpu::sharedAlignment);
  }
  if (bytes <= maxOnStack)
    return;
  slotsAreShared = true;
  uint64_t start = llvm::alignTo(sharedBytes, cpu::sharedAlignment);
  for (auto &[value, slot] : slots)
    slot.offset += start;
  sharedBytes = start + bytes;
}

void KernelEmitter::createSlots() {
  llvm::BasicBlock &entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> atEntry(&entry, entry.begin());
  unsigned subgroups = llvm::divideCeil(kernel.getNumThreads(), lanes);
  for (auto &[value, slot] : slots)
    slot.place = slotsAreShared ? b.CreateConstGEP1_64(b.getInt8Ty(), frame.shared, slot.offset)
                                : atEntry.CreateAlloca(llvm::ArrayType::get(representation(value), subgroups));
}

/// The value as which another one is kept.
Value KernelEmitter::getSlotOwner(Value value) {
  auto loop = value.getDefiningOp<scf::ForOp>();
  if (!loop || !segments.isEntered(loop))
    return value;
  return loop.getRegionIterArgs()[cast<OpResult>(value).getResultNumber()];
}

/// Shared arrays that nobody else sees are variables: their elements may become registers.
void KernelEmitter::createLocalArrays() {
  constexpr uint64_t maxLocalBytes = 32 * 1024;
  uint64_t bytes = 0;
  for (const SharedStorage::Piece &piece : storage.getPieces())
    bytes += llvm::alignTo(piece.bytes, cpu::sharedAlignment);
  if (suspends || bytes > maxLocalBytes)
    return;
  llvm::BasicBlock &entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> atEntry(&entry, entry.begin());
  for (const SharedStorage::Piece &piece : storage.getPieces()) {
    llvm::AllocaInst *array =
        atEntry.CreateAlloca(llvm::ArrayType::get(b.getInt8Ty(), std::max<uint64_t>(piece.bytes, 1)));
    array->setAlignment(llvm::Align(cpu::sharedAlignment));
    for (SharedAllocOp alloc : piece.arrays)
      localArrays[alloc] = {array, storage.getOffset(alloc)};
  }
}

LogicalResult KernelEmitter::emitSegment(const Segment &segment, llvm::Value *number, bool partial) {
  enterSubgroup(number, partial);
  auto slotOf = [&](Value value) { return b.CreateGEP(representation(value), slots.lookup(value).place, number); };
  auto alignmentOf = [&](Value value) {
    return std::min(module.getDataLayout().getABITypeAlign(representation(value)), llvm::Align(cpu::sharedAlignment));
  };
  auto keep = [&](Value value, Value as) { b.CreateAlignedStore(convertTo(value, as), slotOf(as), alignmentOf(as)); };
  for (Operation *op : segment.again)
    if (failed(emitOp(*op)))
      return failure();
  for (Value value : segment.kept) {
    Value owner = getSlotOwner(value);
    define(owner, b.CreateAlignedLoad(representation(owner), slotOf(owner), alignmentOf(owner)));
    if (owner != value)
      define(value, convertTo(owner, value));
  }
  for (Operation *op : segment.ops) {
    if (segments.isEntered(op)) {
      // All subgroups agree on what decides; its last value counts.
      entering.clear();
      if (auto branch = dyn_cast<scf::IfOp>(op)) {
        entering = {getFirstLane(branch.getCondition())};
        continue;
      }
      auto loop = cast<scf::ForOp>(op);
      entering = {getFirstLane(loop.getLowerBound()), getFirstLane(loop.getUpperBound()), getFirstLane(loop.getStep())};
      for (auto [init, argument] : llvm::zip_equal(loop.getInits(), loop.getRegionIterArgs()))
        keep(init, argument);
    } else if (auto yield = dyn_cast<scf::YieldOp>(op)) {
      // All are read before one is written.
      SmallVector<std::pair<Value, llvm::Value *>> stores;
      Operation *parent = yield->getParentOp();
      auto loop = dyn_cast<scf::ForOp>(parent);
      for (auto [i, value] : llvm::enumerate(yield.getOperands())) {
        Value as = loop ? Value(loop.getRegionIterArgs()[i]) : Value(parent->getResult(i));
        if (slots.contains(as))
          stores.push_back({as, convertTo(value, as)});
      }
      for (auto [as, value] : stores)
        b.CreateAlignedStore(value, slotOf(as), alignmentOf(as));
    } else {
      if (failed(emitOp(*op)))
        return failure();
      for (Value result : op->getResults())
        if (slots.contains(result))
          keep(result, result);
    }
  }
  return success();
}

} // namespace qd
