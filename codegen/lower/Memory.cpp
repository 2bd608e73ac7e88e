//===- Memory.cpp - buffers, arrays and tables on NVPTX and AMDGCN -----------------------===//

#include "codegen/lower/Memory.h"

#include "codegen/lower/Elementwise.h"

using namespace mlir;

namespace qd {

llvm::Type *getStorageType(GPUEmitter &e, Type element) {
  return element.isInteger(1) ? e.b.getInt8Ty() : convertScalarType(e.module.getContext(), element);
}

llvm::Value *emitAddress(GPUEmitter &e, Value array, OperandRange indices, ArrayRef<int64_t> literals, Type element) {
  ArrayRef<int64_t> shape = getStaticShape(array.getType());
  // An array of static shape is smaller than 2 GiB; a buffer may not be.
  llvm::Type *indexType = shape.empty() ? e.b.getInt64Ty() : e.b.getInt32Ty();
  auto next = indices.begin();
  llvm::Value *offset = nullptr;
  for (auto [i, literal] : llvm::enumerate(literals)) {
    llvm::Value *index = ShapedType::isDynamic(literal) ? e.b.CreateSExtOrTrunc(e.get(*next++), indexType)
                                                        : llvm::ConstantInt::get(indexType, literal);
    offset = offset ? e.b.CreateAdd(e.b.CreateMul(offset, llvm::ConstantInt::get(indexType, shape[i])), index) : index;
  }
  return e.b.CreateInBoundsGEP(getStorageType(e, element), e.get(array), offset);
}

static void lowerLoad(GPUEmitter &e, Operation *op) {
  auto load = cast<LoadOp>(op);
  Type element = load.getType();
  auto emit = [&]() -> llvm::Value * {
    llvm::Value *value = e.b.CreateAlignedLoad(getStorageType(e, element), getAddress(e, load, element),
                                               llvm::Align(getStorageBytes(element)), load.getIsVolatile());
    return element.isInteger(1) ? e.b.CreateICmpNE(value, e.b.getInt8(0)) : value;
  };
  e.set(load, load.getPredicate() ? e.emitIf(e.get(load.getPredicate()), emit, e.get(load.getOtherwise())) : emit());
}

static void lowerStore(GPUEmitter &e, Operation *op) {
  auto store = cast<StoreOp>(op);
  Type element = store.getValue().getType();
  auto emit = [&]() -> llvm::Value * {
    llvm::Value *value = e.get(store.getValue());
    if (element.isInteger(1))
      value = e.b.CreateZExt(value, e.b.getInt8Ty());
    e.b.CreateAlignedStore(value, getAddress(e, store, element), llvm::Align(getStorageBytes(element)),
                           store.getIsVolatile());
    return nullptr;
  };
  if (store.getPredicate())
    e.emitIf(e.get(store.getPredicate()), emit, nullptr);
  else
    emit();
}

static void lowerSharedAlloc(GPUEmitter &e, Operation *op) {
  e.set(op->getResult(0), e.getSharedArray(cast<SharedAllocOp>(op)));
}

/// A slot of the thread's stack, which LLVM keeps in registers where all subscripts are constants.
static void lowerPrivateAlloc(GPUEmitter &e, Operation *op) {
  PrivateType type = cast<PrivateAllocOp>(op).getType();
  auto *arrayType = llvm::ArrayType::get(getStorageType(e, type.getElementType()), type.getNumElements());
  llvm::BasicBlock &entry = e.getFunction()->getEntryBlock();
  llvm::IRBuilder<> atStart(&entry, entry.begin());
  llvm::AllocaInst *slot =
      atStart.CreateAlloca(arrayType, e.module.getDataLayout().getAllocaAddrSpace(), /*ArraySize=*/nullptr);
  slot->setAlignment(llvm::Align(16));
  e.set(op->getResult(0), slot);
}

/// One global a table. NVIDIA's constant space serves one address a time, so tables stand in global memory there.
static void lowerConstantGet(GPUEmitter &e, Operation *op) {
  ConstantOp table = cast<ConstantGetOp>(op).getConstant();
  std::string name = ("table." + table.getSymName()).str();
  llvm::GlobalVariable *global = e.module.getNamedGlobal(name);
  if (!global) {
    llvm::Type *element = getStorageType(e, table.getArrayType().getElementType());
    std::vector<uint8_t> bytes = table.getBytes();
    StringRef data(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    llvm::Constant *elements =
        llvm::ConstantDataArray::getRaw(data, table.getArrayType().getNumElements(), element);
    constexpr unsigned globalSpace = 1, constantSpace = 4;
    global = new llvm::GlobalVariable(e.module, elements->getType(), /*isConstant=*/true,
                                      llvm::GlobalValue::InternalLinkage, elements, name, /*InsertBefore=*/nullptr,
                                      llvm::GlobalValue::NotThreadLocal, e.isNVPTX() ? globalSpace : constantSpace);
    global->setAlignment(llvm::Align(16));
  }
  e.set(op->getResult(0), global);
}

static void lowerSize(GPUEmitter &e, Operation *op) {
  auto size = cast<SizeOp>(op);
  llvm::Value *count = e.getCount(size.getBuffer());
  e.set(size, size.getType().isInteger(64) ? count : e.b.CreateTrunc(count, e.b.getInt32Ty()));
}

llvm::ArrayRef<LoweringRow> getMemoryLowerings() {
  static constexpr LoweringRow rows[] = {
      // op, nvptx, amdgcn
      {"qd.load", lowerLoad, lowerLoad},
      {"qd.store", lowerStore, lowerStore},
      {"qd.shared.alloc", lowerSharedAlloc, lowerSharedAlloc},
      {"qd.private.alloc", lowerPrivateAlloc, lowerPrivateAlloc},
      {"qd.constant.get", lowerConstantGet, lowerConstantGet},
      {"qd.size", lowerSize, lowerSize},
  };
  return rows;
}

} // namespace qd
