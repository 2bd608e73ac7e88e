//===- Staging.cpp - shared memory through which values travel ---------------------------===//

#include "passes/Staging.h"

#include "ir/SharedStorage.h"
#include "passes/Turns.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

int64_t getSharedBytes(KernelOp kernel, const Target &target) {
  int64_t bytes = 0;
  for (auto alloc : kernel.getBodyBlock().getOps<SharedAllocOp>()) {
    int64_t arrayBytes = getArrayBytes(alloc, target);
    bytes = llvm::alignTo(bytes, arrayBytes / alloc.getType().getNumElements()) + arrayBytes;
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

static Value getPlace(const LaneBuilder &at, Value start, Value index) {
  return start ? at.create<arith::AddIOp>(start, index) : index;
}

void Stage::store(const LaneBuilder &at, ValueRange values, Value index, Value predicate) const {
  Value place = getPlace(at, start, index);
  for (auto [value, array] : llvm::zip_equal(values, arrays)) {
    auto store = StoreOp::create(at.b, at.loc, value, array, place);
    if (predicate)
      store.getPredicateMutable().assign(predicate);
  }
}

Values Stage::load(const LaneBuilder &at, Value index) const {
  Value place = getPlace(at, start, index);
  return at.each(arrays, [&](Value array) { return LoadOp::create(at.b, at.loc, array, place); });
}

Values Stage::loadWhere(const LaneBuilder &at, Value index, Value predicate, ValueRange otherwise) const {
  Values loaded = load(at, index);
  for (auto [value, instead] : llvm::zip_equal(loaded, otherwise)) {
    auto load = value.getDefiningOp<LoadOp>();
    load.getPredicateMutable().assign(predicate);
    load.getOtherwiseMutable().assign(instead);
  }
  return loaded;
}

Value Stage::getElement(const LaneBuilder &at, Value index) const {
  return LoadOp::create(at.b, at.loc, arrays.front(), getPlace(at, start, index));
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

void Staging::merge(const State &other) {
  state.all |= other.all;
  state.arrays.insert(other.arrays.begin(), other.arrays.end());
}

Staging::State Staging::getStateBehind(size_t firstUse) const {
  if (!state.all)
    return state;
  State behind;
  for (const Values &arrays : ArrayRef(used).drop_front(firstUse))
    for (Value array : arrays)
      behind.arrays.insert(array.getDefiningOp());
  return behind;
}

int64_t Staging::getElementBytes(Type element) const {
  return element.isInteger(1) && target.getBackend() == Backend::SPIRV ? 4 : getStorageBytes(element);
}

int64_t Staging::getCertainBytes() const {
  constexpr int64_t common = 32 * 1024;
  int64_t most = target.chip->sharedBytes;
  return target.getBackend() == Backend::SPIRV ? std::min(common, most) : most;
}

SharedAllocOp Staging::allocate(OpBuilder &builder, Location loc, SharedType type, int64_t maxBytes) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&kernel.getBodyBlock());
  if (!arrays.empty())
    builder.setInsertionPointAfter(arrays.back());
  auto array = SharedAllocOp::create(builder, loc, type);
  if (int64_t total = getSharedBytes(kernel, target); total <= maxBytes) {
    bytes = total;
    arrays.push_back(array);
    return array;
  }
  array.erase();
  return {};
}

void Staging::sync(const LaneBuilder &at) {
  // Only AMD's chips pay for the order of other memory.
  Operation *sync = ordersAllMemory || !at.shape.rowLanes ? BlockSyncOp::create(at.b, at.loc).getOperation()
                                                          : BlockSyncSharedOp::create(at.b, at.loc).getOperation();
  if (taking)
    turnings[*taking].turns.back().lastSync = sync;
  noteSync();
  ++numSyncs;
}

void Staging::publish(const LaneBuilder &at, const Stage &stage) {
  sync(at);
  for (Value array : stage.arrays)
    state.arrays.insert(array.getDefiningOp());
}

bool Staging::isOfAll(SharedAllocOp array) const {
  return llvm::none_of(allRows, [&](const Rows &made) { return made.array == array.getResult(); }) &&
         llvm::none_of(turnings, [&](const Turning &turning) {
           return llvm::is_contained(turning.arrays, array.getResult());
         });
}

/// An array that is read no more and not among those taken: one of the kernel's own, or a new one, where there are
/// fewer than `needed` or twice as many as that take turns. Null where there is none without a barrier or more memory.
SharedAllocOp Staging::find(OpBuilder &builder, Location loc, SharedType type, size_t needed, ValueRange taken) {
  if (state.all)
    return {};
  size_t numArrays = 0;
  for (SharedAllocOp array : arrays) {
    if (array.getType() != type || !isOfAll(array))
      continue;
    if (!state.arrays.contains(array) && !llvm::is_contained(taken, array.getResult()))
      return array;
    ++numArrays;
  }
  if (numArrays < needed)
    return allocate(builder, loc, type, target.chip->sharedBytes);
  return numArrays < 2 * needed ? allocate(builder, loc, type, getCertainBytes()) : SharedAllocOp();
}

/// A half of arrays that only such uses have, of which the round before used the other; none where they are too large.
Stage Staging::takeTurn(const LaneBuilder &at, TypeRange elements, int64_t count) {
  constexpr int64_t maxBytes = 8192;
  auto *turning = llvm::find_if(turnings, [&](const Turning &other) {
    return other.count == count && TypeRange(other.elements) == elements;
  });
  if (turning == turnings.end()) {
    int64_t bytesNeeded = 0;
    for (Type element : elements)
      bytesNeeded += 2 * count * getElementBytes(element);
    if (bytesNeeded > maxBytes)
      return {};
    Values made;
    for (Type element : elements) {
      auto type = SharedType::get(at.b.getContext(), {2 * count}, element);
      SharedAllocOp array = allocate(at.b, at.loc, type, getCertainBytes());
      if (!array) {
        for (Value other : made) {
          llvm::erase(arrays, other.getDefiningOp<SharedAllocOp>());
          other.getDefiningOp()->erase();
        }
        bytes = getSharedBytes(kernel, target);
        return {};
      }
      made.push_back(array);
    }
    turning = &turnings.emplace_back(Turning{llvm::to_vector<2>(elements), count, made, {}});
  }
  Operation *start = UnrealizedConversionCastOp::create(at.b, at.loc, TypeRange(at.i32), ValueRange());
  turning->turns.push_back({start});
  taking = turning - turnings.begin();
  return {turning->arrays, start->getResult(0)};
}

Stage Staging::acquire(const LaneBuilder &at, Operation *user, TypeRange elements, int64_t count) {
  // Two arrays in turn need no barriers but the one that each use has between its writes and reads.
  taking.reset();
  // In a loop a new array, too, was read by the round before.
  if (state.all)
    if (Stage stage = takeTurn(at, elements, count)) {
      used.push_back(stage.arrays);
      return stage;
    }
  for (bool isSynced : {false, true}) {
    if (isSynced)
      sync(at);
    Values found;
    for (Type element : elements) {
      auto type = SharedType::get(at.b.getContext(), {count}, element);
      SharedAllocOp array = find(at.b, at.loc, type, llvm::count(elements, element), found);
      if (!array)
        break;
      found.push_back(array);
    }
    if (found.size() == elements.size()) {
      used.push_back(found);
      return {found, Value()};
    }
  }
  int64_t bytesNeeded = 0;
  for (Type element : elements)
    bytesNeeded += count * getElementBytes(element);
  diagnose(user, bytesNeeded);
  return {};
}

void Staging::diagnose(Operation *user, int64_t bytesNeeded) const {
  user->emitOpError() << "needs " << bytesNeeded << " bytes of shared memory beside the kernel's " << bytes << ", of "
                      << target.chip->sharedBytes << " on " << target.str();
}

bool Staging::hasRoom(TypeRange elements, int64_t count) const {
  int64_t bytesNeeded = bytes;
  for (Type element : elements) {
    auto type = SharedType::get(element.getContext(), {count}, element);
    auto isSame = [&](SharedAllocOp array) { return array.getType() == type && isOfAll(array); };
    if (llvm::count(elements, element) > llvm::count_if(arrays, isSame))
      bytesNeeded += count * getElementBytes(element);
  }
  return bytesNeeded <= getCertainBytes();
}

Values Staging::findRows(Type element, int32_t rows, int32_t length) const {
  for (const Rows &made : allRows)
    if (made.rows == rows && made.length == length &&
        cast<SharedType>(made.array.getType()).getElementType() == element)
      return made.array;
  return {};
}

Values Staging::acquireRows(const LaneBuilder &at, Operation *user, Type element, int32_t rows, int32_t length) {
  taking.reset();
  if (Values found = findRows(element, rows, length); !found.empty())
    return found;
  int64_t count = int64_t(rows) * length;
  SharedAllocOp array =
      allocate(at.b, at.loc, SharedType::get(kernel.getContext(), {count}, element), target.chip->sharedBytes);
  if (!array) {
    diagnose(user, count * getElementBytes(element));
    return {};
  }
  allRows.push_back({rows, length, array});
  return Value(array);
}

/// Whether a barrier stands behind those of the use, where control comes before it reaches the use again or another one
/// of the same arrays, all of which start at one of `starts`.
static bool isFollowedBySync(Operation *lastSync, ArrayRef<Operation *> starts) {
  for (Operation *op = lastSync; op && (op = op->getNextNode());) {
    if (llvm::any_of(starts, [&](Operation *start) { return op->isAncestor(start); }))
      return false;
    if (isa<BlockSyncOp, BlockSyncSharedOp, BlockSyncAllOp, BlockSyncAnyOp, BlockSyncCountOp>(op))
      return true;
  }
  return false;
}

void Staging::finish() {
  for (Turning &turning : turnings) {
    SmallVector<Operation *> starts;
    for (const Turn &turn : turning.turns)
      starts.push_back(turn.start);
    bool needsTurns = llvm::any_of(turning.turns, [&](const Turn &turn) {
      return !turn.lastSync || turn.lastSync->getBlock() != turn.start->getBlock() ||
             !isFollowedBySync(turn.lastSync, starts);
    });
    if (needsTurns) {
      takeTurns(kernel, starts, turning.count);
      continue;
    }
    for (Operation *start : starts)
      replaceStart(start, 0);
    for (auto [array, element] : llvm::zip_equal(turning.arrays, turning.elements))
      array.setType(SharedType::get(kernel.getContext(), {turning.count}, element));
  }
  bytes = getSharedBytes(kernel, target);
}

Values Staging::exchange(const LaneBuilder &at, Operation *user, ValueRange values, Value thread, Value source) {
  Stage stage = acquire(at, user, values.getTypes(), at.shape.threads);
  if (!stage)
    return {};
  stage.store(at, values, thread);
  publish(at, stage);
  return stage.load(at, source);
}

} // namespace qd
