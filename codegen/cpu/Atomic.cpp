//===- Atomic.cpp - atomic and volatile accesses of a whole subgroup ----------------------------------===//
//
// The active lanes take their turns, lowest first, each with one scalar access: other workers run other blocks at the
// same time. Operands and results pass through memory, for the lane is known only when the code runs.
//
//===----------------------------------------------------------------------===//

#include "codegen/AtomicAccess.h"
#include "codegen/cpu/KernelEmitter.h"

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
  llvm::AllocaInst *table = createLaneTable(value->getType()->getScalarType());
  b.CreateAlignedStore(value, table, tableAlign);
  return {nullptr, table};
}

llvm::Value *KernelEmitter::getLane(const LaneOperand &operand, llvm::Value *lane) {
  if (operand.uniform)
    return operand.uniform;
  llvm::Type *element = cast<llvm::ArrayType>(operand.table->getAllocatedType())->getElementType();
  return b.CreateLoad(element, b.CreateGEP(element, operand.table, lane));
}

void KernelEmitter::forEachLane(llvm::Value *active, llvm::function_ref<void(llvm::Value *lane)> body) {
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
  llvm::Value *pointers = address.isKnown && !address.offsets ? address.pointer : lanePointers(address, element);
  llvm::Value *active = access.predicate ? both(mask, freeze(getVector(access.predicate))) : mask;
  LaneOperand places = spill(pointers);
  SmallVector<LaneOperand> spilled;
  for (llvm::Value *operand : operands)
    spilled.push_back(spill(operand));
  llvm::AllocaInst *results = resultType ? createLaneTable(resultType) : nullptr;
  if (results && otherwise)
    b.CreateAlignedStore(toStorage(getVector(otherwise), resultType), results, tableAlign);

  forEachLane(active, [&](llvm::Value *lane) {
    SmallVector<llvm::Value *> values;
    for (const LaneOperand &operand : spilled)
      values.push_back(getLane(operand, lane));
    if (llvm::Value *result = body(getLane(places, lane), values))
      b.CreateStore(result, b.CreateGEP(resultType, results, lane));
  });
  llvm::Value *result = results ? b.CreateAlignedLoad(vectorOf(resultType), results, tableAlign) : nullptr;
  spilled.append({places, {nullptr, results}});
  for (const LaneOperand &operand : spilled)
    if (operand.table)
      b.CreateLifetimeEnd(operand.table);
  return result;
}

template <typename Op> static KernelEmitter::LaneAccess describe(Op op, Type element) {
  return {op.getArray(), op.getIndices(), op.getStaticIndices(), op.getPredicate(), element};
}

/// An operand in memory's type, scalar where all lanes share it.
llvm::Value *KernelEmitter::getStored(Value value, llvm::Type *storage) {
  return toStorage(analysis.isUniform(value) ? getBase(value) : getVector(value), storage);
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

void KernelEmitter::emitAtomicRMW(AtomicRMWOp op) {
  Type type = op.getType();
  llvm::Type *element = getStorageType(type);
  bool isFloat = element->isFloatingPointTy();
  auto access = [&](llvm::Value *pointer, ArrayRef<llvm::Value *> operands) -> llvm::Value * {
    AtomicRMWInst *old = b.CreateAtomicRMW(getAtomicOperation(op.getKind(), isFloat), pointer, operands[0],
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
  auto access = [&](llvm::Value *pointer, ArrayRef<llvm::Value *> values) -> llvm::Value * {
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
