//===- Memory.cpp - loads and stores of a whole subgroup ---------------------------------------------===//
//
// The subscript's shape chooses the instruction: one scalar access where all lanes name one element, one vector access
// where they name consecutive ones, a gather or scatter otherwise. Where a mask is on, the access is masked, and lanes
// outside it touch no memory. Elements travel as integers of their storage size: an i1 as a byte, f16 and bf16 as i16.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/KernelEmitter.h"
#include "ir/Arrays.h"

#include "llvm/IR/MDBuilder.h"

using namespace mlir;

namespace qd {

llvm::Type *KernelEmitter::getStorageType(Type element) {
  if (element.isF32())
    return b.getFloatTy();
  if (element.isF64())
    return b.getDoubleTy();
  return b.getIntNTy(8 * getStorageBytes(element));
}

llvm::Value *KernelEmitter::fromStorage(llvm::Value *stored, llvm::Type *scalar) {
  llvm::Type *type = stored->getType()->getWithNewType(scalar);
  if (scalar->isIntegerTy(1))
    return b.CreateICmpNE(stored, llvm::Constant::getNullValue(stored->getType()));
  return b.CreateBitCast(stored, type);
}

llvm::Value *KernelEmitter::toStorage(llvm::Value *value, llvm::Type *storage) {
  llvm::Type *type = value->getType()->getWithNewType(storage);
  return value->getType()->getScalarType()->isIntegerTy(1) ? b.CreateZExt(value, type) : b.CreateBitCast(value, type);
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

void KernelEmitter::createAliasScopes() {
  llvm::MDBuilder metadata(context);
  llvm::MDNode *domain = metadata.createAnonymousAliasScopeDomain(kernel.getSymName());
  auto add = [&](Value array) { aliasScopes[array] = metadata.createAnonymousAliasScope(domain); };
  for (unsigned i = 0; i < kernel.getNumArgs(); ++i)
    if (kernel.getAccess(i) & KernelOp::NoAlias)
      add(kernel.getArg(i));
  for (const SharedStorage::Piece &piece : storage.getPieces())
    if (piece.arrays.size() == 1)
      add(SharedAllocOp(piece.arrays.front()));
  kernel.getBody().walk([&](Operation *op) {
    if (isa<PrivateAllocOp, ConstantGetOp>(op))
      add(op->getResult(0));
  });
}

void KernelEmitter::annotate(llvm::Instruction *access, Value array) {
  array = getRootArray(array);
  SmallVector<llvm::Metadata *> others;
  for (auto [other, scope] : aliasScopes)
    if (other != array)
      others.push_back(scope);
  if (!others.empty())
    access->setMetadata(llvm::LLVMContext::MD_noalias, llvm::MDNode::get(context, others));
  if (llvm::MDNode *own = aliasScopes.lookup(array))
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, llvm::MDNode::get(context, {own}));
}

llvm::Value *KernelEmitter::arrayPointer(Value array) {
  array = getRootArray(array);
  if (auto alloc = array.getDefiningOp<SharedAllocOp>()) {
    if (auto place = localArrays.find(alloc); place != localArrays.end())
      return b.CreateConstGEP1_64(b.getInt8Ty(), place->second.first, place->second.second);
    return b.CreateConstGEP1_64(b.getInt8Ty(), frame.shared, sharedOffsets.lookup(alloc));
  }
  if (auto alloc = array.getDefiningOp<PrivateAllocOp>()) {
    // Behind the shared arrays, a subgroup's after another's.
    llvm::Value *subgroup = b.CreateZExt(b.CreateUDiv(frame.firstThread, b.getInt32(lanes)), b.getInt64Ty());
    llvm::Value *offset = b.CreateMul(subgroup, b.getInt64(privateBytes));
    offset = b.CreateAdd(offset, b.getInt64(privateStart + privateOffsets.lookup(alloc)));
    return b.CreateGEP(b.getInt8Ty(), frame.shared, offset);
  }
  if (auto get = array.getDefiningOp<ConstantGetOp>())
    return getTable(get.getConstant());
  return getBase(array);
}

/// One global a table.
llvm::Constant *KernelEmitter::getTable(ConstantOp table) {
  std::string name = ("table." + table.getSymName()).str();
  if (llvm::GlobalVariable *global = module.getNamedGlobal(name))
    return global;
  std::vector<uint8_t> bytes = table.getBytes();
  StringRef data(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  llvm::Constant *elements = llvm::ConstantDataArray::getRaw(data, table.getArrayType().getNumElements(),
                                                             getStorageType(table.getArrayType().getElementType()));
  auto *global = new llvm::GlobalVariable(module, elements->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::PrivateLinkage, elements, name);
  global->setAlignment(llvm::Align(16));
  return global;
}

/// Row-major: ((i0 * extent 1 + i1) * extent 2 + i2) ..
KernelEmitter::Address KernelEmitter::locate(Value array, OperandRange indices, ArrayRef<int64_t> literals,
                                             llvm::Type *element) {
  // Of a private array, all lanes' elements of one subscript stand side by side.
  bool isPrivate = isa<PrivateType>(array.getType());
  SmallVector<int64_t> strides(literals.size(), isPrivate ? lanes : 1);
  if (ArrayRef<int64_t> shape = getStaticShape(array.getType()); !shape.empty())
    for (int i = int(literals.size()) - 2; i >= 0; --i)
      strides[i] = strides[i + 1] * shape[i + 1];

  bool known = llvm::none_of(indices, [&](Value index) { return analysis.getShape(index).isVarying(); });
  // An array of static shape has fewer than 2^31 elements, so the sum of i32 subscripts in bounds stays in i32, which
  // gathers take as it is.
  llvm::Value *sum = nullptr, *uniformSum = b.getInt64(0);
  LaneOffsets offsets(lanes, 0);
  auto operand = indices.begin();
  auto add = [&](llvm::Value *&to, llvm::Value *term, int64_t stride) {
    if (stride != 1)
      term = b.CreateMul(term, llvm::ConstantInt::get(term->getType(), stride));
    to = to ? b.CreateAdd(to, term) : term;
  };
  for (auto [literal, stride] : llvm::zip_equal(literals, strides)) {
    if (literal != ShapedType::kDynamic) {
      add(uniformSum, b.getInt64(literal), stride);
      continue;
    }
    Value index = *operand++;
    LaneShape shape = analysis.getShape(index);
    if (shape.isUniform() || known) {
      add(uniformSum, b.CreateSExt(getBase(index), b.getInt64Ty()), stride);
      for (unsigned lane = 0; shape.offsets && lane < lanes; ++lane)
        offsets[lane] += (*shape.offsets)[lane] * stride;
    } else {
      add(sum, getVector(index), stride);
    }
  }
  if (isPrivate) {
    for (unsigned lane = 0; lane < lanes; ++lane)
      offsets[lane] += lane;
    if (sum)
      sum = b.CreateAdd(sum, lanesVector([](unsigned lane) { return lane; }, sum->getType()->getScalarType()));
  }
  Address address;
  address.pointer = b.CreateGEP(element, arrayPointer(array), uniformSum);
  address.isKnown = known;
  address.offsets = known ? analysis.intern(std::move(offsets)) : nullptr;
  address.elements = sum;
  address.stride = strides.empty() ? 1 : strides.back();
  return address;
}

bool KernelEmitter::isContiguous(const LaneOffsets *offsets) {
  if (!offsets)
    return false;
  for (unsigned lane = 0; lane < lanes; ++lane)
    if ((*offsets)[lane] != int64_t(lane))
      return false;
  return true;
}

llvm::Value *KernelEmitter::lanePointers(const Address &address, llvm::Type *element) {
  llvm::Value *elements = address.elements;
  if (address.isKnown)
    elements = address.offsets ? offsetsVector(*address.offsets, b.getInt64Ty())
                               : llvm::Constant::getNullValue(vectorOf(b.getInt64Ty()));
  return b.CreateGEP(element, address.pointer, elements);
}

llvm::Value *KernelEmitter::lanePointer(const Address &address, llvm::Type *element, unsigned lane) {
  if (!address.isKnown)
    return b.CreateGEP(element, address.pointer, b.CreateExtractElement(address.elements, uint64_t(lane)));
  return b.CreateConstGEP1_64(element, address.pointer, address.offsets ? (*address.offsets)[lane] : 0);
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

namespace {
/// Neighbouring lanes.
struct LaneRun {
  unsigned first, count;
};
} // namespace

/// The lanes of a mask that is known here, where they are neighbours whose number makes a vector.
static std::optional<LaneRun> getRun(std::optional<uint64_t> known) {
  if (!known || !*known)
    return std::nullopt;
  unsigned first = llvm::countr_zero(*known), count = llvm::popcount(*known);
  bool isRun = llvm::countr_one(*known >> first) == int(count);
  return isRun && llvm::isPowerOf2_32(count) ? std::optional(LaneRun{first, count}) : std::nullopt;
}

/// One vector, of storage elements; `active` null for all lanes.
llvm::Instruction *KernelEmitter::emitVectorLoad(const Address &address, llvm::Type *element, llvm::Value *active,
                                                 llvm::Value *otherwise) {
  llvm::Type *type = vectorOf(element);
  llvm::Align alignment(element->getPrimitiveSizeInBits() / 8);
  if (address.isKnown && isContiguous(address.offsets)) {
    if (!active)
      return b.CreateAlignedLoad(type, address.pointer, alignment);
    if (std::optional<LaneRun> run = otherwise ? std::nullopt : getRun(constantBits(active))) {
      llvm::Value *pointer = b.CreateConstGEP1_64(element, address.pointer, run->first);
      if (run->count == 1)
        return b.CreateAlignedLoad(element, pointer, alignment);
      return b.CreateAlignedLoad(llvm::FixedVectorType::get(element, run->count), pointer, alignment);
    }
    return b.CreateMaskedLoad(type, address.pointer, alignment, active, otherwise);
  }
  llvm::Value *pointers = lanePointers(address, element);
  if (active && !features.avx2)
    return b.CreateMaskedGather(type, divertPointers(pointers, active), alignment, allLanes());
  return b.CreateMaskedGather(type, pointers, alignment, activeLanes(active), otherwise);
}

void KernelEmitter::emitLoad(LoadOp op) {
  llvm::Type *scalar = scalarType(op.getType()), *element = getStorageType(op.getType());
  Address address = locate(op.getArray(), op.getIndices(), op.getStaticIndices(), element);
  Value predicate = op.getPredicate();
  llvm::Align alignment(element->getPrimitiveSizeInBits() / 8);
  bool oneElement = address.isKnown && !address.offsets;

  if (!oneElement) {
    llvm::Value *active = mask, *otherwise = nullptr;
    if (predicate) {
      active = both(mask, freeze(getVector(predicate)));
      otherwise = toStorage(getVector(op.getOtherwise()), element);
    }
    bool isConsecutive = address.isKnown && isContiguous(address.offsets);
    if (isConsecutive && active && !hasMaskedAccess(element) && (otherwise || !getRun(constantBits(active))))
      return define(op.getResult(),
                    fromStorage(loadConsecutive(address, element, active, otherwise, op.getArray()), scalar));
    bool isDiverted = !isConsecutive && active && !features.avx2;
    llvm::Instruction *loaded = emitVectorLoad(address, element, active, isDiverted ? nullptr : otherwise);
    annotate(loaded, op.getArray());
    if (isConsecutive && !active)
      readAhead(op, address.pointer);
    if (loaded->getType() != vectorOf(element)) {
      LaneRun run = *getRun(constantBits(active));
      SmallVector<int> places(lanes, llvm::PoisonMaskElem);
      if (run.count == 1) {
        llvm::Value *vector = llvm::PoisonValue::get(vectorOf(element));
        return define(op.getResult(), fromStorage(b.CreateInsertElement(vector, loaded, uint64_t(run.first)), scalar));
      }
      for (unsigned i = 0; i < run.count; ++i)
        places[run.first + i] = i;
      return define(op.getResult(), fromStorage(b.CreateShuffleVector(loaded, places), scalar));
    }
    // LLVM 22 merges a masked load into a select by the same mask where the select stands, past stores in between; a
    // freeze keeps the two apart.
    llvm::Value *kept = active ? b.CreateFreeze(loaded) : loaded;
    if (isDiverted && otherwise)
      kept = b.CreateSelect(active, kept, otherwise);
    return define(op.getResult(), fromStorage(kept, scalar));
  }

  // One element for all lanes. Lanes whose predicate is off have their own value.
  auto load = [&] {
    llvm::Instruction *loaded = b.CreateAlignedLoad(element, address.pointer, alignment);
    annotate(loaded, op.getArray());
    return fromStorage(loaded, scalar);
  };
  if (!predicate)
    return define(op.getResult(), load());
  bool uniform = analysis.isUniform(predicate);
  llvm::Value *wanted = uniform ? getBase(predicate) : anyLane(both(mask, freeze(getVector(predicate))));
  llvm::Function *function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock *before = b.GetInsertBlock();
  auto *access = llvm::BasicBlock::Create(context, "load", function);
  auto *merge = llvm::BasicBlock::Create(context, "load.end", function);
  b.CreateCondBr(wanted, access, merge);
  b.SetInsertPoint(access);
  llvm::Value *loaded = load();
  b.CreateBr(merge);
  b.SetInsertPoint(merge);
  llvm::PHINode *phi = b.CreatePHI(scalar, 2);
  phi->addIncoming(loaded, access);
  phi->addIncoming(llvm::PoisonValue::get(scalar), before);
  if (!analysis.getShape(op.getResult()).isVarying())
    return define(op.getResult(), b.CreateSelect(wanted, phi, getBase(op.getOtherwise())));
  define(op.getResult(), b.CreateSelect(getVector(predicate), splat(phi), getVector(op.getOtherwise())));
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

void KernelEmitter::emitStore(StoreOp op) {
  if (!postponed.contains(op))
    storeValue(op, nullptr);
}

/// Consecutive elements, or those at any place.
void KernelEmitter::storeVector(const Address &address, llvm::Value *vector, llvm::Value *active, Value array) {
  llvm::Type *element = vector->getType()->getScalarType();
  llvm::Align alignment(element->getPrimitiveSizeInBits() / 8);
  llvm::Instruction *store;
  std::optional<LaneRun> run = active ? getRun(constantBits(active)) : std::nullopt;
  bool isConsecutive = address.isKnown && isContiguous(address.offsets);
  if (isConsecutive && active && !run && !hasMaskedAccess(element))
    return storeConsecutive(address, vector, active, array);
  if (!isConsecutive && active && !features.avx2)
    store =
        b.CreateMaskedScatter(vector, divertPointers(lanePointers(address, element), active), alignment, allLanes());
  else if (!isConsecutive)
    store = b.CreateMaskedScatter(vector, lanePointers(address, element), alignment, activeLanes(active));
  else if (run)
    store = b.CreateAlignedStore(
        b.CreateShuffleVector(vector, llvm::to_vector(llvm::seq<int>(run->first, run->first + run->count))),
        b.CreateConstGEP1_64(element, address.pointer, run->first), alignment);
  else if (active)
    store = b.CreateMaskedStore(vector, address.pointer, alignment, active);
  else
    store = b.CreateAlignedStore(vector, address.pointer, alignment);
  annotate(store, array);
}

/// `given`, if not null, is what the lanes store instead of the op's operand.
void KernelEmitter::storeValue(StoreOp op, llvm::Value *given) {
  Type type = getElementType(op.getArray().getType());
  llvm::Type *element = getStorageType(type);
  Address address = locate(op.getArray(), op.getIndices(), op.getStaticIndices(), element);
  llvm::Align alignment(element->getPrimitiveSizeInBits() / 8);
  Value predicate = op.getPredicate(), value = op.getValue();
  bool oneElement = address.isKnown && !address.offsets, isUniform = !given && analysis.isUniform(value);

  llvm::Value *active = mask;
  if (predicate)
    active = both(mask, freeze(getVector(predicate)));
  auto storeLane = [&](llvm::Value *lane, llvm::Value *pointer) {
    llvm::Value *scalar = isUniform ? getBase(value) : extractLane(given ? given : getVector(value), lane);
    annotate(b.CreateAlignedStore(toStorage(scalar, element), pointer, alignment), op.getArray());
  };

  // A mask known here with few lanes, as of a tile's first lanes: one scalar store each.
  constexpr int fewLanes = 4;
  if (std::optional<uint64_t> known = active ? constantBits(active) : std::nullopt) {
    if (!*known)
      return;
    bool isVector = !oneElement && address.isKnown && isContiguous(address.offsets) && getRun(known);
    if (llvm::popcount(*known) <= fewLanes && !(isVector && llvm::popcount(*known) > 1)) {
      unsigned last = 63 - llvm::countl_zero(*known);
      for (unsigned lane = 0; lane <= last; ++lane)
        if (*known >> lane & 1 && (!oneElement || lane == last))
          storeLane(b.getInt64(lane), lanePointer(address, element, lane));
      return;
    }
  }
  // Of lanes that write one element, the last one's value stays.
  if (oneElement && !active)
    return storeLane(b.getInt64(lanes - 1), address.pointer);
  if (oneElement) {
    llvm::Function *function = b.GetInsertBlock()->getParent();
    auto *access = llvm::BasicBlock::Create(context, "store", function);
    auto *merge = llvm::BasicBlock::Create(context, "store.end", function);
    b.CreateCondBr(anyLane(active), access, merge);
    b.SetInsertPoint(access);
    if (isUniform) {
      storeLane(nullptr, address.pointer);
    } else {
      // Through memory: LLVM would extract the element ahead of the branch, where no lane is active, from memory that
      // is not the vector's.
      LaneOperand table = spill(toStorage(given ? given : getVector(value), element));
      llvm::Value *above = b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, bits(active), b.getFalse());
      llvm::Value *last = b.CreateZExt(b.CreateSub(b.getIntN(lanes, lanes - 1), above), b.getInt64Ty());
      annotate(b.CreateAlignedStore(getLane(table, last), address.pointer, alignment), op.getArray());
      b.CreateLifetimeEnd(table.table);
    }
    b.CreateBr(merge);
    return b.SetInsertPoint(merge);
  }
  storeVector(address, toStorage(given ? given : getVector(value), element), active, op.getArray());
}

} // namespace qd
