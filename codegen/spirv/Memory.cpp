//===- Memory.cpp - buffers, shared arrays and barriers, on SPIR-V ---------------------===//

#include "codegen/spirv/Memory.h"

using namespace mlir;
using namespace spv;

namespace qd::spirv {

ArrayInfo::ArrayInfo(KernelLowering &l, Value array) : variable(l.getArray(array)) {
  if (auto shared = dyn_cast<SharedType>(array.getType())) {
    storage = StorageClass::Workgroup;
    element = shared.getElementType();
    shape = shared.getShape();
    isWords = l.isArrayOfWords(array);
  } else if (!isa<BufferType>(array.getType())) {
    storage = isa<PrivateType>(array.getType()) ? StorageClass::Function : StorageClass::Private;
    element = getElementType(array.getType());
    shape = getStaticShape(array.getType());
    isWords = element.isInteger(1);
  } else {
    storage = StorageClass::StorageBuffer;
    element = cast<BufferType>(array.getType()).getElementType();
  }
}

Id ArrayInfo::getMemoryType(KernelLowering &l) const {
  if (isWords)
    return l.b.getIntType(getWordBits());
  return element.isInteger(1) ? l.b.getIntType(8) : l.getType(element);
}

//===----------------------------------------------------------------------===//
// Subscripts
//===----------------------------------------------------------------------===//

/// The position of the subscripts' element in a row-major array, as 32 bits.
Id getStaticIndex(KernelLowering &l, const ArrayInfo &array, ArrayRef<Id> subscripts) {
  Id index = subscripts.front();
  for (auto [extent, subscript] : llvm::zip(array.shape.drop_front(), subscripts.drop_front())) {
    Id row = l.emitU32(Op::OpIMul, {index, l.getU32(extent)});
    index = l.emitU32(Op::OpIAdd, {row, subscript});
  }
  return index;
}

Subscript getSubscript(KernelLowering &l, const ArrayInfo &array, ValueRange operands, ArrayRef<int64_t> literals) {
  // A storage buffer is smaller than 4 GiB: unless elements are bytes, their positions fit in 31 bits.
  bool is64Bit = !array.isStatic() && getStorageBytes(array.element) == 1;
  SmallVector<Id> subscripts;
  unsigned bits = 32;
  for (int64_t literal : literals) {
    if (literal != ShapedType::kDynamic) {
      bool fits = literal <= INT32_MAX;
      if (is64Bit && !fits)
        l.b.require(Capability::Int64);
      bits = is64Bit && !fits ? 64 : 32;
      subscripts.push_back(l.b.getInt(bits, literal));
      continue;
    }
    Value operand = operands.front();
    operands = operands.drop_front();
    unsigned width = operand.getType().getIntOrFloatBitWidth();
    bits = is64Bit ? width : 32;
    subscripts.push_back(l.resize(l.get(operand), width, bits));
  }
  return {array.isStatic() ? getStaticIndex(l, array, subscripts) : subscripts.front(), bits};
}

static Id getElementPointer(KernelLowering &l, const ArrayInfo &array, ValueRange operands,
                            ArrayRef<int64_t> literals) {
  Id type = l.b.getPointerType(array.storage, array.getMemoryType(l));
  Id subscript = getSubscript(l, array, operands, literals).id;
  if (array.isStatic())
    return l.emit(Op::OpAccessChain, type, {array.variable, subscript});
  return l.emit(Op::OpAccessChain, type, {array.variable, l.getU32(0), subscript});
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Id fromWord(KernelLowering &l, Id word, Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  if (element.isInteger(1))
    return l.emitBool(Op::OpINotEqual, {word, l.getU32(0)});
  if (element.isF16()) {
    // A cast to a vector needs no 16-bit integers of the device.
    Id half = l.getType(element), pair = l.emit(Op::OpBitcast, l.b.getVectorType(half, 2), word);
    return l.emit(Op::OpCompositeExtract, half, {pair, 0});
  }
  if (width < 32)
    return l.emit(Op::OpUConvert, l.getType(element), word);
  return isa<FloatType>(element) ? l.emit(Op::OpBitcast, l.getType(element), word) : word;
}

Id toWord(KernelLowering &l, Id value, Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  if (element.isInteger(1))
    return l.select(l.getU32Type(), value, l.getU32(1), l.getU32(0));
  if (element.isF16()) {
    Id half = l.getType(element), zero = l.b.getFloat(16, 0);
    return l.emitU32(Op::OpBitcast, l.emit(Op::OpCompositeConstruct, l.b.getVectorType(half, 2), {value, zero}));
  }
  if (width < 32)
    return l.emitU32(Op::OpUConvert, value);
  return isa<FloatType>(element) ? l.emit(Op::OpBitcast, l.b.getIntType(width), value) : value;
}

/// The operand that makes an access volatile.
static SmallVector<uint32_t> withVolatile(std::initializer_list<uint32_t> operands, bool isVolatile) {
  SmallVector<uint32_t> result(operands);
  if (isVolatile)
    result.push_back(uint32_t(MemoryAccessMask::Volatile));
  return result;
}

static Id emitLoad(KernelLowering &l, LoadOp op) {
  ArrayInfo array(l, op.getArray());
  Id pointer = getElementPointer(l, array, op.getIndices(), op.getStaticIndices());
  Id value = l.emit(Op::OpLoad, array.getMemoryType(l), withVolatile({pointer}, op.getIsVolatile()));
  if (array.isWords)
    return fromWord(l, value, array.element);
  if (!array.element.isInteger(1))
    return value;
  return l.emitBool(Op::OpINotEqual, {l.resize(value, 8, 32), l.getU32(0)});
}

static void emitStore(KernelLowering &l, StoreOp op) {
  ArrayInfo array(l, op.getArray());
  Id pointer = getElementPointer(l, array, op.getIndices(), op.getStaticIndices());
  Id value = l.get(op.getValue());
  if (array.isWords)
    value = toWord(l, value, array.element);
  else if (array.element.isInteger(1))
    value = l.resize(l.select(l.getU32Type(), value, l.getU32(1), l.getU32(0)), 32, 8);
  l.b.emitVoid(Op::OpStore, withVolatile({pointer, value}, op.getIsVolatile()));
}

std::pair<Id, Id> emitIf(KernelLowering &l, Id condition, llvm::function_ref<void()> generate) {
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
  Id halves = l.getSizeHalves(buffer, cast<SizeOp>(op).getDim().value_or(0));
  Type type = op->getResult(0).getType();
  return l.setResult(op, type.isInteger(64) ? l.fromHalves(halves, type) : l.getHalf(halves, 0));
}

/// Shared arrays are declared before the body.
static LogicalResult lowerSharedAlloc(KernelLowering &, Operation *, const OpRow &) { return success(); }

/// So are the variables of each type of elements.
static LogicalResult lowerReinterpret(KernelLowering &, Operation *, const OpRow &) { return success(); }

/// Declared before the body too, as are tables.
static LogicalResult lowerPrivateAlloc(KernelLowering &, Operation *, const OpRow &) { return success(); }

static LogicalResult lowerConstantGet(KernelLowering &l, Operation *op, const OpRow &) {
  // An instruction has at most 65535 words, and one makes a table.
  constexpr int64_t maxElements = 65532;
  ConstantOp table = cast<ConstantGetOp>(op).getConstant();
  if (int64_t elements = table.getArrayType().getNumElements(); elements > maxElements)
    return op->emitOpError() << "table '" << table.getSymName() << "' has " << elements << " elements, "
                             << l.target.str() << " takes at most " << maxElements;
  return l.setResult(op, l.getTable(table));
}

static LogicalResult lowerBlockSync(KernelLowering &l, Operation *op, const OpRow &) {
  Id workgroup = l.getU32(unsigned(spv::Scope::Workgroup));
  auto semantics = MemorySemanticsMask::AcquireRelease | MemorySemanticsMask::WorkgroupMemory;
  if (isa<BlockSyncOp>(op))
    semantics = semantics | MemorySemanticsMask::UniformMemory;
  l.b.emitVoid(Op::OpControlBarrier, {workgroup, workgroup, l.getU32(unsigned(semantics))});
  return success();
}

ArrayRef<OpRow> getMemoryRows() {
  static const OpRow rows[] = {
      makeRow<LoadOp>(lowerLoad),
      makeRow<StoreOp>(lowerStore),
      makeRow<SizeOp>(lowerSize),
      makeRow<SharedAllocOp>(lowerSharedAlloc),
      makeRow<PrivateAllocOp>(lowerPrivateAlloc),
      makeRow<ConstantGetOp>(lowerConstantGet),
      makeRow<ReinterpretOp>(lowerReinterpret),
      makeRow<BlockSyncOp>(lowerBlockSync),
      makeRow<BlockSyncSharedOp>(lowerBlockSync),
  };
  return rows;
}

} // namespace qd::spirv
