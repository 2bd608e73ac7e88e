//===- Atomic.cpp - atomic and volatile accesses of a whole subgroup ----------------------------------===//
//
// The active lanes take their turns, lowest first, each with one scalar access: other workers run other blocks at the
// same time. Operands and results pass through memory, for the lane is known only when the code runs. A block's shared
// memory belongs to one worker at a time: there, read-modify-writes are plain accesses, one after the other for all lanes
// where all are active.
//
//===----------------------------------------------------------------------===//

#include "codegen/AtomicAccess.h"
#include "codegen/cpu/KernelEmitter.h"
#include "codegen/lower/Elementwise.h"
#include "ir/Arrays.h"

#include "llvm/Transforms/Utils/LowerAtomic.h"

using namespace mlir;
using llvm::AtomicOrdering;
using llvm::AtomicRMWInst;

namespace qd {

//===----------------------------------------------------------------------===//
// One lane after the other
//===----------------------------------------------------------------------===//

static const llvm::Align tableAlign(64);

llvm::AllocaInst *KernelEmitter::createLaneTable(llvm::Type *element) {
  llvm::BasicBlock &entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> atEntry(&entry, entry.begin());
  llvm::AllocaInst *table = atEntry.CreateAlloca(llvm::ArrayType::get(element, lanes));
  table->setAlignment(tableAlign);
  b.CreateLifetimeStart(table);
  return table;
}

KernelEmitter::LaneOperand KernelEmitter::spill(llvm::Value *value) {
  if (!value->getType()->isVectorTy())
    return {value, nullptr};
  llvm::Type *element = value->getType()->getScalarType();
  llvm::AllocaInst *table = createLaneTable(element);
  // Volatile: what is stored as a vector is to be loaded by elements, which takes less than to extract them. In pieces
  // whose elements processors hand to loads before the store is done; they are slower with wider ones.
  constexpr unsigned pieceBytes = 32;
  unsigned elementBytes = module.getDataLayout().getTypeStoreSize(element), count = std::min(lanes, pieceBytes / elementBytes);
  for (unsigned first = 0; first < lanes; first += count) {
    llvm::Value *piece = count == lanes ? value : b.CreateShuffleVector(value, llvm::to_vector(llvm::seq<int>(first, first + count)));
    b.CreateAlignedStore(piece, b.CreateConstGEP1_64(element, table, first), llvm::Align(count * elementBytes),
                         /*isVolatile=*/true);
  }
  return {nullptr, table};
}

llvm::Value *KernelEmitter::getLane(const LaneOperand &operand, llvm::Value *lane) {
  if (operand.uniform)
    return operand.uniform;
  llvm::Type *element = cast<llvm::ArrayType>(operand.table->getAllocatedType())->getElementType();
  return b.CreateLoad(element, b.CreateGEP(element, operand.table, lane), /*isVolatile=*/true);
}

/// Whether one lane's value takes a few scalar instructions at `user`: on a path of plain arithmetic from consecutive
/// elements that nothing has changed since.
bool KernelEmitter::isCheapByLane(Value value, Operation *user, unsigned depth) {
  constexpr unsigned maxDepth = 3;
  if (!analysis.getShape(value).isVarying())
    return true;
  Operation *definition = value.getDefiningOp();
  if (!definition || depth == maxDepth || definition->getBlock() != user->getBlock())
    return false;
  if (auto load = dyn_cast<LoadOp>(definition)) {
    if (load.getIsVolatile() || load.getPredicate() || isa<PrivateType>(load.getArray().getType()) ||
        load.getIndices().size() != 1 || !isContiguous(analysis.getShape(load.getIndices().front()).offsets))
      return false;
    for (Operation *op = load->getNextNode(); op != user; op = op->getNextNode())
      if (!isElementwise(op->getName()) && !isa<LoadOp>(op))
        return false;
    return true;
  }
  return isa<arith::AndIOp, arith::ShRUIOp, arith::ShRSIOp, arith::ExtUIOp, arith::ExtSIOp, arith::TruncIOp, arith::AddIOp,
             arith::ShLIOp>(definition) &&
         llvm::all_of(definition->getOperands(), [&](Value operand) { return isCheapByLane(operand, user, depth + 1); });
}

llvm::Value *KernelEmitter::emitByLane(Value value, unsigned lane) {
  LaneShape shape = analysis.getShape(value);
  if (!shape.isVarying()) {
    llvm::Value *base = getBase(value);
    return shape.offsets ? b.CreateAdd(base, llvm::ConstantInt::get(base->getType(), (*shape.offsets)[lane], true)) : base;
  }
  Operation *definition = value.getDefiningOp();
  if (auto load = dyn_cast<LoadOp>(definition)) {
    llvm::Type *element = getStorageType(load.getType());
    Address address = locate(load.getArray(), load.getIndices(), load.getStaticIndices(), element);
    llvm::LoadInst *loaded =
        b.CreateAlignedLoad(element, lanePointer(address, element, lane), llvm::Align(getStorageBytes(load.getType())));
    annotate(loaded, load.getArray());
    return fromStorage(loaded, scalarType(load.getType()));
  }
  SmallVector<llvm::Value *> operands, results;
  for (Value operand : definition->getOperands())
    operands.push_back(emitByLane(operand, lane));
  lowerElementwise(b, definition, operands, results);
  return results.front();
}

void KernelEmitter::forEachLane(llvm::Value *active, bool isCheap, llvm::function_ref<void(llvm::Value *lane)> body) {
  if (isCheap && !active) {
    for (unsigned lane = 0; lane < lanes; ++lane)
      body(b.getInt64(lane));
    return;
  }
  llvm::Function *function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock *before = b.GetInsertBlock();
  auto *header = llvm::BasicBlock::Create(context, "lanes", function);
  auto *turn = llvm::BasicBlock::Create(context, "lane", function);
  auto *end = llvm::BasicBlock::Create(context, "lanes.end", function);
  llvm::Value *all = b.CreateZExt(bits(activeLanes(active)), b.getInt64Ty());
  b.CreateBr(header);

  b.SetInsertPoint(header);
  llvm::PHINode *left = b.CreatePHI(b.getInt64Ty(), 2);
  left->addIncoming(all, before);
  b.CreateCondBr(b.CreateICmpNE(left, b.getInt64(0)), turn, end);

  b.SetInsertPoint(turn);
  body(b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, b.getTrue()));
  llvm::Value *rest = b.CreateAnd(left, b.CreateSub(left, b.getInt64(1)));
  left->addIncoming(rest, b.GetInsertBlock());
  b.CreateBr(header);
  b.SetInsertPoint(end);
}

llvm::Value *KernelEmitter::accessEachLane(const LaneAccess &access, ArrayRef<llvm::Value *> operands, Value otherwise,
                                           llvm::Type *resultType, LaneAccessBody body) {
  llvm::Type *element = getStorageType(access.element);
  Address address = locate(access.array, access.indices, access.literals, element);
  bool isPlain = isa<SharedType>(access.array.getType());
  llvm::Value *active = access.predicate ? both(mask, freeze(getVector(access.predicate))) : mask;
  // Subscripts are extended lane by lane, where that is part of the load.
  llvm::Value *subscripts = address.elements;
  if (auto *extended = dyn_cast_or_null<llvm::SExtInst>(subscripts))
    subscripts = extended->getOperand(0);
  bool isByLane = isPlain && !active && !address.isKnown && access.indices.size() == 1 &&
                  isCheapByLane(access.indices.front(), access.op);
  LaneOperand places = address.isKnown || isByLane ? LaneOperand() : spill(subscripts);
  LaneOperand offsets = address.offsets ? spill(offsetsVector(*address.offsets, b.getInt32Ty())) : LaneOperand();
  auto getPlace = [&](llvm::Value *lane) -> llvm::Value * {
    if (address.isKnown && !address.offsets)
      return address.pointer;
    auto *constant = dyn_cast<llvm::ConstantInt>(lane);
    if (isByLane) {
      llvm::Value *subscript = b.CreateSExt(emitByLane(access.indices.front(), constant->getZExtValue()), b.getInt64Ty());
      return b.CreateGEP(element, address.pointer, b.CreateMul(subscript, b.getInt64(address.stride)));
    }
    if (address.isKnown && constant)
      return lanePointer(address, element, constant->getZExtValue());
    llvm::Value *subscript = getLane(address.isKnown ? offsets : places, lane);
    return b.CreateGEP(element, address.pointer, b.CreateSExt(subscript, b.getInt64Ty()));
  };
  SmallVector<LaneOperand> spilled;
  for (llvm::Value *operand : operands)
    spilled.push_back(spill(operand));
  llvm::AllocaInst *results = resultType ? createLaneTable(resultType) : nullptr;
  if (results && otherwise)
    b.CreateAlignedStore(toStorage(getVector(otherwise), resultType), results, tableAlign, /*isVolatile=*/true);

  forEachLane(active, isPlain, [&](llvm::Value *lane) {
    SmallVector<llvm::Value *> values;
    for (const LaneOperand &operand : spilled)
      values.push_back(getLane(operand, lane));
    if (llvm::Value *result = body(getPlace(lane), values))
      b.CreateStore(result, b.CreateGEP(resultType, results, lane), /*isVolatile=*/true);
  });
  llvm::Value *result =
      results ? b.CreateAlignedLoad(vectorOf(resultType), results, tableAlign, /*isVolatile=*/true) : nullptr;
  spilled.append({places, offsets, {nullptr, results}});
  for (const LaneOperand &operand : spilled)
    if (operand.table)
      b.CreateLifetimeEnd(operand.table);
  return result;
}

template <typename Op> static KernelEmitter::LaneAccess describe(Op op, Type element) {
  return {op, op.getArray(), op.getIndices(), op.getStaticIndices(), op.getPredicate(), element};
}

/// An operand in memory's type, scalar where all lanes share it.
llvm::Value *KernelEmitter::getStored(Value value, llvm::Type *storage) {
  return toStorage(analysis.isUniform(value) ? getBase(value) : getVector(value), storage);
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

void KernelEmitter::emitAtomicRMW(AtomicRMWOp op) {
  if (emitTally(op))
    return;
  Type type = op.getType();
  llvm::Type *element = getStorageType(type);
  bool isFloat = element->isFloatingPointTy();
  AtomicRMWInst::BinOp operation = getAtomicOperation(op.getKind(), isFloat);
  bool isPlain = isa<SharedType>(op.getArray().getType());
  auto access = [&](llvm::Value *pointer, ArrayRef<llvm::Value *> operands) -> llvm::Value * {
    if (isPlain) {
      llvm::Align alignment(getStorageBytes(type));
      llvm::LoadInst *old = b.CreateAlignedLoad(element, pointer, alignment);
      annotate(old, op.getArray());
      llvm::Value *changed = llvm::buildAtomicRMWValue(operation, b, old, operands[0]);
      annotate(b.CreateAlignedStore(changed, pointer, alignment), op.getArray());
      return op.use_empty() ? nullptr : old;
    }
    AtomicRMWInst *old = b.CreateAtomicRMW(operation, pointer, operands[0],
                                           llvm::Align(getStorageBytes(type)), getOrdering(op.getOrder()));
    annotate(old, op.getArray());
    return op.use_empty() ? nullptr : old;
  };
  llvm::Value *old = accessEachLane(describe(op, type), getStored(op.getValue(), element), Value(),
                                    op.use_empty() ? nullptr : element, access);
  if (old)
    define(op.getResult(), fromStorage(old, scalarType(type)));
}

void KernelEmitter::emitAtomicCAS(AtomicCASOp op) {
  Type type = op.getExpected().getType();
  llvm::Type *element = getStorageType(type), *bitsType = b.getIntNTy(8 * getStorageBytes(type));
  AtomicOrdering order = getOrdering(op.getOrder());
  auto toBits = [&](Value value) {
    llvm::Value *stored = getStored(value, element);
    return b.CreateBitCast(stored, stored->getType()->getWithNewType(bitsType));
  };
  llvm::Value *operands[] = {toBits(op.getExpected()), toBits(op.getDesired())};
  bool isPlain = isa<SharedType>(op.getArray().getType());
  auto access = [&](llvm::Value *pointer, ArrayRef<llvm::Value *> values) -> llvm::Value * {
    if (isPlain) {
      llvm::Align alignment(getStorageBytes(type));
      llvm::LoadInst *old = b.CreateAlignedLoad(bitsType, pointer, alignment);
      annotate(old, op.getArray());
      llvm::Value *chosen = b.CreateSelect(b.CreateICmpEQ(old, values[0]), values[1], old);
      annotate(b.CreateAlignedStore(chosen, pointer, alignment), op.getArray());
      return old;
    }
    llvm::AtomicCmpXchgInst *swap =
        b.CreateAtomicCmpXchg(pointer, values[0], values[1], llvm::Align(getStorageBytes(type)), order,
                              llvm::AtomicCmpXchgInst::getStrongestFailureOrdering(order));
    annotate(swap, op.getArray());
    return b.CreateExtractValue(swap, 0);
  };
  llvm::Value *old = accessEachLane(describe(op, type), operands, Value(), bitsType, access);
  llvm::Value *expected = operands[0]->getType()->isVectorTy() ? operands[0] : splat(operands[0]);
  define(op.getSuccess(), b.CreateICmpEQ(old, expected));
  define(op.getOld(), fromStorage(b.CreateBitCast(old, vectorOf(element)), scalarType(type)));
}

/// `order` is NotAtomic for a volatile load.
template <typename Op> void KernelEmitter::emitLaneLoad(Op op, AtomicOrdering order, bool isVolatile) {
  Type type = op.getType();
  llvm::Type *element = getStorageType(type);
  auto access = [&](llvm::Value *pointer, ArrayRef<llvm::Value *>) -> llvm::Value * {
    llvm::LoadInst *load = b.CreateAlignedLoad(element, pointer, llvm::Align(getStorageBytes(type)), isVolatile);
    if (order != AtomicOrdering::NotAtomic)
      load->setAtomic(order);
    annotate(load, op.getArray());
    return load;
  };
  llvm::Value *loaded = accessEachLane(describe(op, type), {}, op.getOtherwise(), element, access);
  define(op.getResult(), fromStorage(loaded, scalarType(type)));
}

template <typename Op> void KernelEmitter::emitLaneStore(Op op, AtomicOrdering order, bool isVolatile) {
  Type type = op.getValue().getType();
  auto access = [&](llvm::Value *pointer, ArrayRef<llvm::Value *> operands) -> llvm::Value * {
    llvm::StoreInst *store =
        b.CreateAlignedStore(operands[0], pointer, llvm::Align(getStorageBytes(type)), isVolatile);
    if (order != AtomicOrdering::NotAtomic)
      store->setAtomic(order);
    annotate(store, op.getArray());
    return nullptr;
  };
  accessEachLane(describe(op, type), getStored(op.getValue(), getStorageType(type)), Value(), nullptr, access);
}

bool KernelEmitter::emitAtomicOp(Operation &op) {
  if (auto rmw = dyn_cast<AtomicRMWOp>(op))
    emitAtomicRMW(rmw);
  else if (auto cas = dyn_cast<AtomicCASOp>(op))
    emitAtomicCAS(cas);
  else if (auto load = dyn_cast<AtomicLoadOp>(op))
    emitLaneLoad(load, getOrdering(load.getOrder()), /*isVolatile=*/false);
  else if (auto store = dyn_cast<AtomicStoreOp>(op))
    emitLaneStore(store, getOrdering(store.getOrder()), /*isVolatile=*/false);
  else if (auto load = dyn_cast<LoadOp>(op); load && load.getIsVolatile())
    emitLaneLoad(load, AtomicOrdering::NotAtomic, /*isVolatile=*/true);
  else if (auto store = dyn_cast<StoreOp>(op); store && store.getIsVolatile())
    emitLaneStore(store, AtomicOrdering::NotAtomic, /*isVolatile=*/true);
  else if (isa<BlockMemFenceOp, GridMemFenceOp, SubgroupMemFenceOp>(op))
    b.CreateFence(AtomicOrdering::AcquireRelease);
  else
    return false;
  return true;
}

} // namespace qd
