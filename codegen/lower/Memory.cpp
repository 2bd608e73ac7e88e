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

/// Of a scalar, or of a vector that is accessed as a whole.
static llvm::Type *getAccessType(GPUEmitter &e, Type value) {
  llvm::Type *scalar = getStorageType(e, getScalarOf(value));
  return isVectorType(value) ? llvm::FixedVectorType::get(scalar, getNumScalars(value)) : scalar;
}

static llvm::Align getAccessAlign(Type value, std::optional<uint32_t> promised) {
  return llvm::Align(std::max(getStorageBytes(getScalarOf(value)), promised.value_or(1)));
}

static void lowerLoad(GPUEmitter &e, Operation *op) {
  auto load = cast<LoadOp>(op);
  Type type = load.getType(), scalar = getScalarOf(type);
  auto emit = [&]() -> llvm::Value * {
    llvm::Value *value = e.b.CreateAlignedLoad(getAccessType(e, type), getAddress(e, load, scalar),
                                               getAccessAlign(type, load.getAlign()), load.getIsVolatile());
    return scalar.isInteger(1) ? e.b.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType())) : value;
  };
  e.set(load, load.getPredicate() ? e.emitIf(e.get(load.getPredicate()), emit, e.get(load.getOtherwise())) : emit());
}

static void lowerStore(GPUEmitter &e, Operation *op) {
  auto store = cast<StoreOp>(op);
  Type type = store.getValue().getType(), scalar = getScalarOf(type);
  auto emit = [&]() -> llvm::Value * {
    llvm::Value *value = e.get(store.getValue());
    if (scalar.isInteger(1))
      value = e.b.CreateZExt(value, getAccessType(e, type));
    e.b.CreateAlignedStore(value, getAddress(e, store, scalar), getAccessAlign(type, store.getAlign()),
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
  llvm::Value *count = e.getExtent(size.getBuffer(), size.getDim().value_or(0));
  e.set(size, size.getType().isInteger(64) ? count : e.b.CreateTrunc(count, e.b.getInt32Ty()));
}

static void lowerReinterpret(GPUEmitter &e, Operation *op) { e.set(op->getResult(0), e.get(op->getOperand(0))); }

static void lowerToElements(GPUEmitter &e, Operation *op) {
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    e.set(result, e.b.CreateExtractElement(e.get(op->getOperand(0)), uint64_t(i)));
}

static void lowerFromElements(GPUEmitter &e, Operation *op) {
  llvm::Value *first = e.get(op->getOperand(0));
  llvm::Value *vector =
      llvm::PoisonValue::get(llvm::FixedVectorType::get(first->getType(), op->getNumOperands()));
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    vector = e.b.CreateInsertElement(vector, e.get(operand), uint64_t(i));
  e.set(op->getResult(0), vector);
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
      {"qd.reinterpret", lowerReinterpret, lowerReinterpret},
      {"vector.to_elements", lowerToElements, lowerToElements},
      {"vector.from_elements", lowerFromElements, lowerFromElements},
  };
  return rows;
}

} // namespace qd
