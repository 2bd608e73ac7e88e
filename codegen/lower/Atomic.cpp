//===- Atomic.cpp - atomic accesses and fences on NVPTX and AMDGCN --------------------------===//
//
// Input: accesses that the chip has instructions for (ir/Atomics.h). LLVM's atomics carry order and scope.
//
//===----------------------------------------------------------------------===//

#include "codegen/lower/Memory.h"

#include "codegen/AtomicAccess.h"
#include "codegen/lower/Elementwise.h"

#include "llvm/IR/Metadata.h"

using namespace mlir;
using llvm::AtomicOrdering;
using llvm::AtomicRMWInst;

namespace qd {

//===----------------------------------------------------------------------===//
// Scopes and orders
//===----------------------------------------------------------------------===//

/// PTX has no scope below the block's.
static llvm::SyncScope::ID getSyncScope(GPUEmitter &e, Scope scope) {
  static constexpr const char *nvptx[] = {"block", "block", "device"};
  static constexpr const char *amdgcn[] = {"wavefront", "workgroup", "agent"};
  return e.module.getContext().getOrInsertSyncScopeID((e.isNVPTX() ? nvptx : amdgcn)[unsigned(scope)]);
}

static void emitFence(GPUEmitter &e, Scope scope) {
  e.b.CreateFence(AtomicOrdering::AcquireRelease, getSyncScope(e, scope));
}

//===----------------------------------------------------------------------===//
// Values in memory
//===----------------------------------------------------------------------===//

/// The integer that an element is in memory; compare-and-swap knows no other values.
static llvm::Type *getBitsType(GPUEmitter &e, Type element) { return e.b.getIntNTy(8 * getStorageBytes(element)); }

static llvm::Value *toBits(GPUEmitter &e, llvm::Value *value, Type element) {
  llvm::Type *type = getBitsType(e, element);
  return element.isInteger(1) ? e.b.CreateZExt(value, type) : e.b.CreateBitCast(value, type);
}

static llvm::Value *fromBits(GPUEmitter &e, llvm::Value *bits, Type element) {
  if (element.isInteger(1))
    return e.b.CreateICmpNE(bits, e.b.getInt8(0));
  return e.b.CreateBitCast(bits, getStorageType(e, element));
}

static llvm::Type *getValueType(GPUEmitter &e, Type element) {
  return convertScalarType(e.module.getContext(), element);
}

static llvm::Align getAlign(Type element) { return llvm::Align(getStorageBytes(element)); }

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// Tells the AMDGPU backend what holds for a kernel's buffers: they lie in the device's own memory, in pages that its
/// atomic units work on. Without that it makes loops of most atomics.
static void annotate(GPUEmitter &e, AtomicRMWInst *access) {
  if (e.isNVPTX())
    return;
  llvm::MDNode *yes = llvm::MDNode::get(e.module.getContext(), {});
  access->setMetadata("amdgpu.no.fine.grained.memory", yes);
  access->setMetadata("amdgpu.no.remote.memory", yes);
  if (access->isFloatingPointOperation())
    access->setMetadata("amdgpu.ignore.denormal.mode", yes);
}

/// `emit` where the access's predicate holds.
template <typename Op> static llvm::Value *emitPredicated(GPUEmitter &e, Op op, llvm::Value *otherwise,
                                                          llvm::function_ref<llvm::Value *()> emit) {
  return op.getPredicate() ? e.emitIf(e.get(op.getPredicate()), emit, otherwise) : emit();
}

static void lowerAtomicRMW(GPUEmitter &e, Operation *op) {
  auto rmw = cast<AtomicRMWOp>(op);
  Type element = rmw.getType();
  bool isFloat = isa<FloatType>(element), isUsed = !rmw.use_empty();
  llvm::Value *old = emitPredicated(
      e, rmw, isUsed ? llvm::PoisonValue::get(getValueType(e, element)) : nullptr, [&]() -> llvm::Value * {
        llvm::Value *value = e.get(rmw.getValue());
        AtomicKind kind = rmw.getKind();
        // old - x is old + -x, bit for bit but for a NaN's sign.
        if (isFloat && kind == AtomicKind::sub) {
          value = e.b.CreateFNeg(value);
          kind = AtomicKind::add;
        }
        if (element.isInteger(1))
          value = e.b.CreateZExt(value, e.b.getInt8Ty());
        AtomicRMWInst *access = e.b.CreateAtomicRMW(getAtomicOperation(kind, isFloat), getAddress(e, rmw, element),
                                                    value, getAlign(element), getOrdering(rmw.getOrder()),
                                                    getSyncScope(e, rmw.getEffectiveScope()));
        annotate(e, access);
        if (!isUsed)
          return nullptr;
        return element.isInteger(1) ? e.b.CreateICmpNE(access, e.b.getInt8(0)) : access;
      });
  e.set(rmw, old);
}

static void lowerAtomicCAS(GPUEmitter &e, Operation *op) {
  auto cas = cast<AtomicCASOp>(op);
  Type element = cas.getExpected().getType();
  AtomicOrdering order = getOrdering(cas.getOrder());
  auto *pair = llvm::StructType::get(getBitsType(e, element), e.b.getInt1Ty());
  llvm::Value *result = emitPredicated(e, cas, llvm::PoisonValue::get(pair), [&]() -> llvm::Value * {
    return e.b.CreateAtomicCmpXchg(getAddress(e, cas, element), toBits(e, e.get(cas.getExpected()), element),
                                   toBits(e, e.get(cas.getDesired()), element), getAlign(element), order,
                                   llvm::AtomicCmpXchgInst::getStrongestFailureOrdering(order),
                                   getSyncScope(e, cas.getEffectiveScope()));
  });
  e.set(cas.getOld(), fromBits(e, e.b.CreateExtractValue(result, 0), element));
  e.set(cas.getSuccess(), e.b.CreateExtractValue(result, 1));
}

static void lowerAtomicLoad(GPUEmitter &e, Operation *op) {
  auto load = cast<AtomicLoadOp>(op);
  Type element = load.getType();
  llvm::Value *otherwise = load.getOtherwise() ? e.get(load.getOtherwise()) : nullptr;
  e.set(load, emitPredicated(e, load, otherwise, [&]() -> llvm::Value * {
          llvm::LoadInst *bits =
              e.b.CreateAlignedLoad(getBitsType(e, element), getAddress(e, load, element), getAlign(element));
          bits->setAtomic(getOrdering(load.getOrder()), getSyncScope(e, load.getEffectiveScope()));
          return fromBits(e, bits, element);
        }));
}

static void lowerAtomicStore(GPUEmitter &e, Operation *op) {
  auto store = cast<AtomicStoreOp>(op);
  Type element = store.getValue().getType();
  emitPredicated(e, store, nullptr, [&]() -> llvm::Value * {
    llvm::StoreInst *access = e.b.CreateAlignedStore(toBits(e, e.get(store.getValue()), element),
                                                     getAddress(e, store, element), getAlign(element));
    access->setAtomic(getOrdering(store.getOrder()), getSyncScope(e, store.getEffectiveScope()));
    return nullptr;
  });
}

//===----------------------------------------------------------------------===//
// Fences
//===----------------------------------------------------------------------===//

static void lowerBlockFence(GPUEmitter &e, Operation *) { emitFence(e, Scope::block); }
static void lowerGridFence(GPUEmitter &e, Operation *) { emitFence(e, Scope::device); }

llvm::ArrayRef<LoweringRow> getAtomicLowerings() {
  static constexpr LoweringRow rows[] = {
      // op, nvptx, amdgcn
      {"qd.atomic_rmw", lowerAtomicRMW, lowerAtomicRMW},
      {"qd.atomic_cas", lowerAtomicCAS, lowerAtomicCAS},
      {"qd.atomic_load", lowerAtomicLoad, lowerAtomicLoad},
      {"qd.atomic_store", lowerAtomicStore, lowerAtomicStore},
      {"qd.block.mem_fence", lowerBlockFence, lowerBlockFence},
      {"qd.grid.mem_fence", lowerGridFence, lowerGridFence},
  };
  return rows;
}

} // namespace qd
