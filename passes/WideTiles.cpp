//===- WideTiles.cpp - tiles wider than the subgroup ----------------------------------===//
//
// Purpose: the shared-memory forms of subgroup ops. A move writes every value, waits, and reads the source's:
//
//   %r = qd.subgroup.shuffle_xor %v, 32 tile(64)
//     ->
//   qd.store %v, %s[%t]   qd.block.sync   %r = qd.load %s[%t ^ 32]
//
// A reduction first reduces in each subgroup; then the subgroups' results, in order, are combined by every
// subgroup of the tile for itself: directly when they are few, else as a reduction of a smaller tile.
//
//===----------------------------------------------------------------------===//

#include "passes/WideTiles.h"

#include "ir/Kind.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

//===----------------------------------------------------------------------===//
// Staging
//===----------------------------------------------------------------------===//

int64_t getSharedBytes(KernelOp kernel) {
  int64_t bytes = 0;
  for (auto alloc : kernel.getBodyBlock().getOps<SharedAllocOp>()) {
    SharedType type = alloc.getType();
    int64_t elementBytes = getStorageBytes(type.getElementType());
    bytes = llvm::alignTo(bytes, elementBytes) + type.getNumElements() * elementBytes;
  }
  return bytes;
}

void Staging::merge(const State &other) {
  state.all |= other.all;
  state.arrays.insert(other.arrays.begin(), other.arrays.end());
}

SharedAllocOp Staging::allocate(OpBuilder &builder, Location loc, SharedType type) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&kernel.getBodyBlock());
  if (!arrays.empty())
    builder.setInsertionPointAfter(arrays.back());
  auto array = SharedAllocOp::create(builder, loc, type);
  if (int64_t total = getSharedBytes(kernel); total <= int64_t(target.chip->sharedBytes)) {
    bytes = total;
    arrays.push_back(array);
    return array;
  }
  array.erase();
  return {};
}

void Staging::sync(OpBuilder &builder, Location loc) {
  BlockSyncOp::create(builder, loc);
  noteSync();
  ++numSyncs;
}

Value Staging::acquire(OpBuilder &builder, Operation *user, Type element, int64_t count) {
  // Two arrays in turn need no barriers but the one that each use has between its writes and reads.
  constexpr unsigned maxArrays = 2;
  ++numUses;
  Location loc = user->getLoc();
  auto type = SharedType::get(builder.getContext(), {count}, element);
  SmallVector<SharedAllocOp> candidates;
  llvm::copy_if(arrays, std::back_inserter(candidates), [&](SharedAllocOp array) { return array.getType() == type; });
  if (!state.all)
    for (SharedAllocOp array : candidates)
      if (!state.arrays.contains(array))
        return array;

  bool allocates = candidates.empty() || (!state.all && candidates.size() < maxArrays);
  if (allocates)
    if (SharedAllocOp array = allocate(builder, loc, type)) {
      if (state.all)
        sync(builder, loc);
      return array;
    }
  if (!candidates.empty()) {
    sync(builder, loc);
    return candidates.front();
  }
  user->emitOpError() << "needs " << count * getStorageBytes(element) << " bytes of shared memory beside the kernel's "
                      << bytes << ", of " << target.chip->sharedBytes << " on " << target.str();
  return {};
}

//===----------------------------------------------------------------------===//
// Expansions
//===----------------------------------------------------------------------===//

namespace {
using Combine = llvm::function_ref<Value(Value, Value)>;
using CombineLanes = llvm::function_ref<Value(Value, int32_t)>;

/// Builds the expansion of one op.
class WideTile {
public:
  WideTile(Operation *op, int32_t lanes, OpBuilder &builder, const BlockShape &shape, Staging &staging)
      : op(op), lanes(lanes), b(builder), loc(op->getLoc()), shape(shape), staging(staging), i32(b.getI32Type()),
        thread(ThreadIndexOp::create(b, loc, i32)) {}

  Value shuffle(Value value, Value lane) { return exchange(value, inTile(bitAnd(lane, lanes - 1))); }
  Value shuffleUp(Value value, Value offset);
  Value shuffleDown(Value value, Value offset);
  Value shuffleXor(Value value, Value mask) {
    return exchange(value, b.createOrFold<arith::XOrIOp>(loc, thread, bitAnd(mask, lanes - 1)));
  }
  Value broadcast(Value value, int32_t lane);
  Value reduce(Value value, Kind kind, bool toAll);
  Value vote(Value predicate, bool isAll);

  /// The lane operand of a shuffle-like op as a value.
  template <typename Op> Value lane(Op shuffle) {
    return shuffle.getLane() ? shuffle.getLane() : constant(*shuffle.getStaticLane());
  }

private:
  Value exchange(Value value, Value sourceThread);
  Value combineSubgroups(Value partial, int32_t lanes, Combine combine, CombineLanes inSubgroup,
                         CombineLanes inLastSubgroup);

  Value constant(int64_t value) { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(i32, value)); }
  Value bitAnd(Value value, int64_t mask) { return b.createOrFold<arith::AndIOp>(loc, value, constant(mask)); }
  Value shiftRight(Value value, int32_t divisor) {
    return arith::ShRUIOp::create(b, loc, value, constant(llvm::Log2_32(divisor)));
  }
  /// The thread that is `lane` of the own tile.
  Value inTile(Value lane) {
    return lanes == shape.threads ? lane : b.createOrFold<arith::OrIOp>(loc, bitAnd(thread, -lanes), lane);
  }

  Operation *op;
  int32_t lanes;
  OpBuilder &b;
  Location loc;
  const BlockShape &shape;
  Staging &staging;
  Type i32;
  Value thread;
};
} // namespace

Value WideTile::exchange(Value value, Value sourceThread) {
  Value array = staging.acquire(b, op, value.getType(), shape.threads);
  if (!array)
    return {};
  StoreOp::create(b, loc, value, array, thread);
  staging.sync(b, loc);
  staging.noteRead(array);
  return LoadOp::create(b, loc, array, sourceThread);
}

// The comparisons are unsigned, so that a negative offset, which has no meaning, leaves no array either.
Value WideTile::shuffleUp(Value value, Value offset) {
  Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, bitAnd(thread, lanes - 1), offset);
  Value source = arith::SubIOp::create(b, loc, thread, offset);
  return exchange(value, arith::SelectOp::create(b, loc, isInside, source, thread));
}

Value WideTile::shuffleDown(Value value, Value offset) {
  Value above = arith::SubIOp::create(b, loc, constant(lanes), bitAnd(thread, lanes - 1));
  Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, offset, above);
  Value source = arith::AddIOp::create(b, loc, thread, offset);
  return exchange(value, arith::SelectOp::create(b, loc, isInside, source, thread));
}

/// One element a tile, which its source lane writes.
Value WideTile::broadcast(Value value, int32_t lane) {
  Value array = staging.acquire(b, op, value.getType(), shape.threads / lanes);
  if (!array)
    return {};
  Value tile = shiftRight(thread, lanes);
  Value isSource =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, bitAnd(thread, lanes - 1), constant(lane % lanes));
  auto store = StoreOp::create(b, loc, value, array, tile);
  store.getPredicateMutable().assign(isSource);
  staging.sync(b, loc);
  staging.noteRead(array);
  return LoadOp::create(b, loc, array, tile);
}

/// Combines `partial` of each subgroup's lane 0 over tiles of `lanes` threads.
Value WideTile::combineSubgroups(Value partial, int32_t lanes, Combine combine, CombineLanes inSubgroup,
                                 CombineLanes inLastSubgroup) {
  constexpr int32_t few = 4;
  int32_t subgroups = lanes / shape.subgroupSize;
  Value array = staging.acquire(b, op, partial.getType(), shape.threads / shape.subgroupSize);
  if (!array)
    return {};
  Value subgroup = shiftRight(thread, shape.subgroupSize);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, LaneIdOp::create(b, loc, i32), constant(0));
  auto store = StoreOp::create(b, loc, partial, array, subgroup);
  store.getPredicateMutable().assign(isFirst);
  staging.sync(b, loc);
  staging.noteRead(array);

  Value first = lanes == shape.threads ? Value() : bitAnd(subgroup, -subgroups);
  auto load = [&](Value i) -> Value {
    return LoadOp::create(b, loc, array, first ? b.createOrFold<arith::OrIOp>(loc, first, i) : i);
  };
  if (subgroups <= few) {
    // Neighbours first, as in the tree of a subgroup: a tile's sum is the same at every subgroup size.
    SmallVector<Value> values;
    for (int32_t i = 0; i < subgroups; ++i)
      values.push_back(load(constant(i)));
    for (; values.size() > 1; values.truncate(values.size() / 2))
      for (size_t i = 0; i < values.size() / 2; ++i)
        values[i] = combine(values[2 * i], values[2 * i + 1]);
    return values.front();
  }
  // Each aligned group of `subgroups` threads now holds all values of its tile, in order.
  Value value = load(bitAnd(thread, subgroups - 1));
  if (subgroups <= shape.subgroupSize)
    return inLastSubgroup(value, subgroups);
  return combineSubgroups(inSubgroup(value, shape.subgroupSize), subgroups, combine, inSubgroup, inLastSubgroup);
}

Value WideTile::reduce(Value value, Kind kind, bool toAll) {
  auto combine = [&](Value lhs, Value rhs) { return createKindOp(b, loc, kind, lhs, rhs); };
  auto toFirst = [&](Value v, int32_t n) { return buildReduce(b, loc, shape, kind, v, n); };
  auto last = [&](Value v, int32_t n) {
    return toAll ? buildReduceAll(b, loc, shape, kind, v, n) : buildReduce(b, loc, shape, kind, v, n);
  };
  return combineSubgroups(toFirst(value, shape.subgroupSize), lanes, combine, toFirst, last);
}

Value WideTile::vote(Value predicate, bool isAll) {
  auto combine = [&](Value lhs, Value rhs) {
    return createKindOp(b, loc, isAll ? Kind::andi : Kind::ori, lhs, rhs);
  };
  auto inSubgroup = [&](Value p, int32_t n) { return buildVote(b, loc, shape, isAll, p, n); };
  return combineSubgroups(inSubgroup(predicate, shape.subgroupSize), lanes, combine, inSubgroup, inSubgroup);
}

bool hasWideTileExpansion(Operation *op) {
  return isa<ReduceOp, ReduceAllOp, ShuffleOp, ShuffleUpOp, ShuffleDownOp, ShuffleXorOp, BroadcastOp, BroadcastFirstOp,
             AllOp, AnyOp>(op);
}

Values expandWideTile(Operation *op, int32_t lanes, OpBuilder &builder, const BlockShape &shape, Staging &staging) {
  WideTile wide(op, lanes, builder, shape, staging);
  return TypeSwitch<Operation *, Values>(op)
      .Case([&](ReduceOp reduce) { return wide.reduce(reduce.getValues()[0], *reduce.getKind(), /*toAll=*/false); })
      .Case([&](ReduceAllOp reduce) { return wide.reduce(reduce.getValues()[0], *reduce.getKind(), /*toAll=*/true); })
      .Case([&](ShuffleOp shuffle) { return wide.shuffle(shuffle.getValue(), wide.lane(shuffle)); })
      .Case([&](ShuffleUpOp shuffle) { return wide.shuffleUp(shuffle.getValue(), wide.lane(shuffle)); })
      .Case([&](ShuffleDownOp shuffle) { return wide.shuffleDown(shuffle.getValue(), wide.lane(shuffle)); })
      .Case([&](ShuffleXorOp shuffle) { return wide.shuffleXor(shuffle.getValue(), wide.lane(shuffle)); })
      .Case([&](BroadcastFirstOp broadcast) { return wide.broadcast(broadcast.getValue(), 0); })
      .Case([&](BroadcastOp broadcast) {
        if (std::optional<int32_t> lane = broadcast.getConstantLane())
          return wide.broadcast(broadcast.getValue(), *lane);
        return wide.shuffle(broadcast.getValue(), broadcast.getLane());
      })
      .Case([&](AllOp vote) { return wide.vote(vote.getPredicate(), /*isAll=*/true); })
      .Case([&](AnyOp vote) { return wide.vote(vote.getPredicate(), /*isAll=*/false); })
      .Default([](Operation *) { return Values(); });
}

} // namespace qd
