//===- Memory.cpp - buffers, shared arrays and barriers, on SPIR-V ---------------------===//

#include "codegen/spirv/KernelLowering.h"

using namespace mlir;
using namespace spv;

namespace qd::spirv {

namespace {
/// An array as its accesses see it.
struct ArrayInfo {
  Id variable;
  StorageClass storage;
  Type element;
  ArrayRef<int64_t> shape; ///< of a shared array

  ArrayInfo(KernelLowering &l, Value array) : variable(l.getArray(array)) {
    if (auto shared = dyn_cast<SharedType>(array.getType())) {
      storage = StorageClass::Workgroup;
      element = shared.getElementType();
      shape = shared.getShape();
    } else {
      storage = StorageClass::StorageBuffer;
      element = cast<BufferType>(array.getType()).getElementType();
    }
  }

  bool isShared() const { return storage == StorageClass::Workgroup; }
  /// The element's type in memory.
  Id getMemoryType(KernelLowering &l) const {
    if (!element.isInteger(1))
      return l.getType(element);
    return isShared() ? l.getU32Type() : l.b.getIntType(8);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Subscripts
//===----------------------------------------------------------------------===//

/// The position of the subscripts' element in a row-major array, as 32 bits.
static Id getSharedIndex(KernelLowering &l, const ArrayInfo &array, ArrayRef<Id> subscripts) {
  Id index = subscripts.front();
  for (auto [extent, subscript] : llvm::zip(array.shape.drop_front(), subscripts.drop_front())) {
    Id row = l.emitU32(Op::OpIMul, {index, l.getU32(extent)});
    index = l.emitU32(Op::OpIAdd, {row, subscript});
  }
  return index;
}

static Id getElementPointer(KernelLowering &l, Value arrayValue, ValueRange operands, ArrayRef<int64_t> literals) {
  ArrayInfo array(l, arrayValue);
  // A storage buffer is smaller than 4 GiB: unless elements are bytes, their positions fit in 31 bits.
  bool is64Bit = !array.isShared() && getStorageBytes(array.element) == 1;
  SmallVector<Id> subscripts;
  for (int64_t literal : literals) {
    if (literal != ShapedType::kDynamic) {
      bool fits = literal <= INT32_MAX;
      if (is64Bit && !fits)
        l.b.require(Capability::Int64);
      subscripts.push_back(l.b.getInt(is64Bit && !fits ? 64 : 32, literal));
      continue;
    }
    Value operand = operands.front();
    operands = operands.drop_front();
    unsigned width = operand.getType().getIntOrFloatBitWidth();
    subscripts.push_back(l.resize(l.get(operand), width, is64Bit ? width : 32));
  }
  Id type = l.b.getPointerType(array.storage, array.getMemoryType(l));
  if (array.isShared())
    return l.emit(Op::OpAccessChain, type, {array.variable, getSharedIndex(l, array, subscripts)});
  return l.emit(Op::OpAccessChain, type, {array.variable, l.getU32(0), subscripts.front()});
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static Id emitLoad(KernelLowering &l, LoadOp op) {
  ArrayInfo array(l, op.getArray());
  Id pointer = getElementPointer(l, op.getArray(), op.getIndices(), op.getStaticIndices());
  Id value = l.emit(Op::OpLoad, array.getMemoryType(l), pointer);
  if (!array.element.isInteger(1))
    return value;
  return l.emitBool(Op::OpINotEqual, {l.resize(value, array.isShared() ? 32 : 8, 32), l.getU32(0)});
}

static void emitStore(KernelLowering &l, StoreOp op) {
  ArrayInfo array(l, op.getArray());
  Id pointer = getElementPointer(l, op.getArray(), op.getIndices(), op.getStaticIndices());
  Id value = l.get(op.getValue());
  if (array.element.isInteger(1))
    value = l.resize(l.select(l.getU32Type(), value, l.getU32(1), l.getU32(0)), 32, array.isShared() ? 32 : 8);
  l.b.emitVoid(Op::OpStore, {pointer, value});
}

/// Runs `generate` where `condition` holds. Returns the block that control comes from where it does not, and the
/// last block of the other path.
static std::pair<Id, Id> emitIf(KernelLowering &l, Id condition, llvm::function_ref<void()> generate) {
  Id from = l.b.getBlock(), then = l.b.createId(), merge = l.b.createId();
  l.b.emitVoid(Op::OpSelectionMerge, {merge, uint32_t(SelectionControlMask::MaskNone)});
  l.b.emitVoid(Op::OpBranchConditional, {condition, then, merge});
  l.b.startBlock(then);
  generate();
  Id last = l.b.getBlock();
  l.b.emitVoid(Op::OpBranch, merge);
  l.b.startBlock(merge);
  return {from, last};
}

static LogicalResult lowerLoad(KernelLowering &l, Operation *op, const OpRow &) {
  auto load = cast<LoadOp>(op);
  if (!l.getArray(load.getArray()))
    return l.unsupported(op, load.getArray().getType());
  if (!load.getPredicate())
    return l.setResult(op, emitLoad(l, load));
  Id value = 0;
  auto [from, last] = emitIf(l, l.get(load.getPredicate()), [&] { value = emitLoad(l, load); });
  return l.setResult(op, l.b.emitPhi(l.getType(load.getType()), {{l.get(load.getOtherwise()), from}, {value, last}}));
}

static LogicalResult lowerStore(KernelLowering &l, Operation *op, const OpRow &) {
  auto store = cast<StoreOp>(op);
  if (!l.getArray(store.getArray()))
    return l.unsupported(op, store.getArray().getType());
  if (store.getPredicate())
    emitIf(l, l.get(store.getPredicate()), [&] { emitStore(l, store); });
  else
    emitStore(l, store);
  return success();
}

static LogicalResult lowerSize(KernelLowering &l, Operation *op, const OpRow &) {
  auto buffer = dyn_cast<BlockArgument>(cast<SizeOp>(op).getBuffer());
  if (!buffer || buffer.getOwner() != &l.kernel.getBodyBlock())
    return l.unsupported(op, cast<SizeOp>(op).getBuffer().getType());
  Id halves = l.getSizeHalves(buffer);
  Type type = op->getResult(0).getType();
  return l.setResult(op, type.isInteger(64) ? l.fromHalves(halves, type) : l.getHalf(halves, 0));
}

/// Shared arrays are declared before the body.
static LogicalResult lowerSharedAlloc(KernelLowering &, Operation *, const OpRow &) { return success(); }

static LogicalResult lowerBlockSync(KernelLowering &l, Operation *, const OpRow &) {
  Id workgroup = l.getU32(unsigned(spv::Scope::Workgroup));
  auto semantics =
      MemorySemanticsMask::AcquireRelease | MemorySemanticsMask::UniformMemory | MemorySemanticsMask::WorkgroupMemory;
  l.b.emitVoid(Op::OpControlBarrier, {workgroup, workgroup, l.getU32(unsigned(semantics))});
  return success();
}

ArrayRef<OpRow> getMemoryRows() {
  static const OpRow rows[] = {
      makeRow<LoadOp>(lowerLoad),
      makeRow<StoreOp>(lowerStore),
      makeRow<SizeOp>(lowerSize),
      makeRow<SharedAllocOp>(lowerSharedAlloc),
      makeRow<BlockSyncOp>(lowerBlockSync),
  };
  return rows;
}

} // namespace qd::spirv
