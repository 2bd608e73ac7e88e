//===- ShareStorage.cpp - shared arrays whose lifetimes do not overlap share storage ----------===//
//
// Purpose: gives arrays that are never needed at the same time the same place in shared memory:
//
//   qd.store %a, %s[%t]   qd.block.sync   %b = qd.load %s[%u]   qd.block.sync   qd.store %b, %r[%t] ...
//     ->
//   %s = qd.shared.alloc {qd.storage = array<i64: 0, 0>}   %r = qd.shared.alloc {qd.storage = array<i64: 0, 0>}
//
// An array is needed where an earlier access may have written it and a later one may read it. Threads are not at the
// same place: until the next barrier of the block, one may still be at an access that another has passed. So an array
// also counts as needed from each access to the next barrier, and without a barrier in between two arrays never share;
// none is added. Control flow that holds a barrier is the same for the whole block, and followed; threads may go
// different ways through an op without one, which counts as one access of all its arrays.
//
// Input invariant: a verified module after the expansions.
//
// Output invariant: arrays that share have `qd.storage` (ir/SharedStorage.h). On SPIR-V, which has no casts of
// pointers, those of one piece have one type in memory and start where the piece does.
//
//===----------------------------------------------------------------------===//

#include "ir/SharedStorage.h"
#include "passes/Passes.h"
#include "passes/TargetPass.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

namespace {
class ShareStoragePass : public TargetPass<ShareStoragePass> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ShareStoragePass)

  using TargetPass::TargetPass;

  StringRef getArgument() const override { return "share-storage"; }
  StringRef getDescription() const override { return "Let shared arrays share storage"; }

  void runOnModule();
};

/// Which arrays of a kernel are needed at the same time. Arrays are numbered in their order.
class Interference {
public:
  explicit Interference(KernelOp kernel);

  ArrayRef<SharedAllocOp> getArrays() const { return arrays; }
  bool conflict(unsigned a, unsigned b) const { return conflicts[a].test(b); }

private:
  using Set = llvm::BitVector;

  /// The arrays that an op and what is in it access.
  struct Access {
    Set reads, writes;
    bool hasBarrier = false;
  };
  /// What came before a point: arrays that may be written, and those accessed since the last barrier.
  struct Past {
    Set written, recent;

    Past &operator|=(const Past &other) {
      written |= other.written;
      recent |= other.recent;
      return *this;
    }
    bool operator==(const Past &other) const { return written == other.written && recent == other.recent; }
  };

  Access &collect(Operation *op);
  void findFuture(Block &block, Set future);
  void findFuture(Operation *op, const Set &future);
  Past follow(Block &block, Past past);
  Past follow(Operation *op, const Past &past);
  void record(Operation *op, const Past &past);

  SmallVector<SharedAllocOp> arrays;
  llvm::DenseMap<Value, unsigned> numbers;
  llvm::DenseMap<Operation *, Access> accesses;
  llvm::DenseMap<Operation *, Set> futures; ///< arrays that may be read after an op
  SmallVector<Set> conflicts;
};
} // namespace

/// Waits for all threads of the block, and orders shared memory.
static bool isBarrier(Operation *op) {
  return isa<BlockSyncOp, BlockSyncSharedOp, BlockSyncAllOp, BlockSyncAnyOp, BlockSyncCountOp, GridSyncOp>(op);
}

/// Other ops may go on with an array after they are done, as asynchronous copies do, or hand it on.
static bool isPlainUser(Operation *op) {
  return isa<LoadOp, StoreOp, AtomicRMWOp, AtomicCASOp, AtomicLoadOp, AtomicStoreOp>(op);
}

Interference::Interference(KernelOp kernel) {
  for (auto alloc : kernel.getBodyBlock().getOps<SharedAllocOp>()) {
    numbers[alloc] = arrays.size();
    arrays.push_back(alloc);
  }
  conflicts.assign(arrays.size(), Set(arrays.size()));
  for (auto [number, alloc] : llvm::enumerate(arrays))
    if (!llvm::all_of(alloc->getUsers(), isPlainUser)) {
      conflicts[number].set();
      for (Set &others : conflicts)
        others.set(number);
    }
  collect(kernel);
  Set none(arrays.size());
  findFuture(kernel.getBodyBlock(), none);
  follow(kernel.getBodyBlock(), {none, none});
}

Interference::Access &Interference::collect(Operation *op) {
  Access access{Set(arrays.size()), Set(arrays.size()), isBarrier(op)};
  if (isPlainUser(op)) {
    for (Value operand : op->getOperands())
      if (auto number = numbers.find(operand); number != numbers.end()) {
        if (!isa<StoreOp, AtomicStoreOp>(op))
          access.reads.set(number->second);
        if (!isa<LoadOp, AtomicLoadOp>(op))
          access.writes.set(number->second);
      }
  }
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Operation &inner : block) {
        Access &part = collect(&inner);
        access.reads |= part.reads;
        access.writes |= part.writes;
        access.hasBarrier |= part.hasBarrier;
      }
  return accesses[op] = std::move(access);
}

//===----------------------------------------------------------------------===//
// What may be read later, from the end to the start
//===----------------------------------------------------------------------===//

void Interference::findFuture(Block &block, Set future) {
  for (Operation &op : llvm::reverse(block)) {
    findFuture(&op, future);
    future |= accesses[&op].reads;
  }
}

void Interference::findFuture(Operation *op, const Set &future) {
  futures[op] = future;
  const Access &access = accesses[op];
  if (!access.hasBarrier)
    return;
  // Whatever a loop reads, its next round may read.
  Set inside = future;
  if (!isa<scf::IfOp>(op))
    inside |= access.reads;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      findFuture(block, inside);
}

//===----------------------------------------------------------------------===//
// What came before, from the start to the end
//===----------------------------------------------------------------------===//

void Interference::record(Operation *op, const Past &past) {
  const Access &access = accesses[op];
  Set touched = access.reads;
  touched |= access.writes;
  Set needed = past.written;
  needed &= futures[op];
  needed |= past.recent;
  needed |= touched;
  for (unsigned number : touched.set_bits()) {
    conflicts[number] |= needed;
    for (unsigned other : needed.set_bits())
      conflicts[other].set(number);
  }
}

Interference::Past Interference::follow(Block &block, Past past) {
  for (Operation &op : block)
    past = follow(&op, past);
  return past;
}

Interference::Past Interference::follow(Operation *op, const Past &past) {
  const Access &access = accesses[op];
  if (isBarrier(op))
    return {past.written, Set(arrays.size())};
  if (!access.hasBarrier) {
    record(op, past);
    Past after = past;
    after.written |= access.writes;
    after.recent |= access.reads;
    after.recent |= access.writes;
    return after;
  }
  if (isa<scf::IfOp>(op)) {
    Past after{Set(arrays.size()), Set(arrays.size())};
    for (Region &region : op->getRegions())
      after |= region.empty() ? past : follow(region.front(), past);
    return after;
  }
  // A loop: its regions run in their order, and again, until nothing new comes round. It may also not run at all.
  Past entry = past, exit = past;
  while (true) {
    Past round = entry;
    for (Region &region : op->getRegions()) {
      round = follow(region.front(), round);
      exit |= round;
    }
    round |= entry;
    if (round == entry)
      return exit;
    entry = round;
  }
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

namespace {
struct Place {
  unsigned number; ///< of the array
  uint64_t offset, bytes;

  uint64_t end() const { return offset + bytes; }
  bool overlaps(const Place &other) const { return offset < other.end() && other.offset < end(); }
};
} // namespace

/// The largest array first, each at the lowest offset where nothing lies that is needed together with it.
static SmallVector<Place> placeAnywhere(const Interference &interference, ArrayRef<unsigned> order,
                                        ArrayRef<uint64_t> sizes) {
  SmallVector<Place> placed;
  for (unsigned number : order) {
    Place place{number, 0, sizes[number]};
    for (bool moved = true; moved;) {
      moved = false;
      for (const Place &other : placed)
        if (interference.conflict(number, other.number) && place.overlaps(other)) {
          place.offset = llvm::alignTo(other.end(), sharedArrayAlignment);
          moved = true;
        }
    }
    placed.push_back(place);
  }
  return placed;
}

static void setPlace(SharedAllocOp alloc, int64_t piece, int64_t offset) {
  alloc->setAttr(storageAttribute, DenseI64ArrayAttr::get(alloc.getContext(), {piece, offset}));
}

/// Arrays that overlap, directly or by others in between, become one piece.
static void shareBytes(const Interference &interference, ArrayRef<unsigned> order, ArrayRef<uint64_t> sizes) {
  SmallVector<Place> placed = placeAnywhere(interference, order, sizes);
  llvm::sort(placed, [](const Place &a, const Place &b) {
    return std::pair(a.offset, a.number) < std::pair(b.offset, b.number);
  });
  int64_t pieces = 0;
  for (size_t first = 0; first < placed.size();) {
    uint64_t end = placed[first].end();
    size_t next = first + 1;
    for (; next < placed.size() && placed[next].offset < end; ++next)
      end = std::max(end, placed[next].end());
    if (next - first > 1) {
      for (size_t i = first; i < next; ++i)
        setPlace(interference.getArrays()[placed[i].number], pieces, placed[i].offset - placed[first].offset);
      ++pieces;
    }
    first = next;
  }
}

/// Arrays of one type take turns.
static void shareVariables(const Interference &interference, ArrayRef<unsigned> order, const Target &target) {
  SmallVector<SmallVector<unsigned>> variables;
  ArrayRef<SharedAllocOp> arrays = interference.getArrays();
  auto getMemoryType = [&](unsigned number) {
    SharedAllocOp alloc = arrays[number];
    return std::pair(alloc.getType().getElementType(), isArrayOfWords(alloc, target));
  };
  for (unsigned number : order) {
    auto fits = [&](ArrayRef<unsigned> variable) {
      return getMemoryType(variable.front()) == getMemoryType(number) &&
             llvm::none_of(variable, [&](unsigned other) { return interference.conflict(number, other); });
    };
    auto found = llvm::find_if(variables, fits);
    if (found == variables.end())
      variables.push_back({number});
    else
      found->push_back(number);
  }
  int64_t pieces = 0;
  for (ArrayRef<unsigned> variable : variables) {
    if (variable.size() < 2)
      continue;
    for (unsigned number : variable)
      setPlace(arrays[number], pieces, 0);
    ++pieces;
  }
}

static void shareStorage(KernelOp kernel, const Target &target) {
  for (auto alloc : kernel.getBodyBlock().getOps<SharedAllocOp>())
    alloc->removeAttr(storageAttribute);
  auto allocs = kernel.getBodyBlock().getOps<SharedAllocOp>();
  if (std::distance(allocs.begin(), allocs.end()) < 2)
    return;
  Interference interference(kernel);
  SmallVector<uint64_t> sizes;
  for (SharedAllocOp alloc : interference.getArrays())
    sizes.push_back(getArrayBytes(alloc, target));
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, sizes.size()));
  llvm::sort(order, [&](unsigned a, unsigned b) { return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b; });
  if (target.getBackend() == Backend::SPIRV)
    shareVariables(interference, order, target);
  else
    shareBytes(interference, order, sizes);
}

void ShareStoragePass::runOnModule() {
  for (KernelOp kernel : getOperation().getOps<KernelOp>())
    shareStorage(kernel, target);
}

std::unique_ptr<Pass> createShareStoragePass(const Target &target) {
  return std::make_unique<ShareStoragePass>(target);
}

} // namespace qd
