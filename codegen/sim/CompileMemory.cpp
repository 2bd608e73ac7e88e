//===----------------------------------------------------------------------===//
// Compiles addresses, loads, stores, atomics, stack slots and memory intrinsics.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Compile.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"

using namespace llvm;

namespace qd::sim {

namespace {
constexpr uint32_t mostPrivateBytes = 1 << 20;
}

void FunctionCompiler::addressPlus(Ref dst, Ref base, Ref index, unsigned indexBits, int64_t scale,
                                   unsigned addressBits) {
  Op &op = emit(memoryHandlers.addIndex, dst, base, index);
  op.bits = addressBits;
  op.bits2 = indexBits;
  op.imm = scale;
}

Error FunctionCompiler::compileGEP(const GetElementPtrInst &gep) {
  unsigned bits = scalarBits(gep.getType()), count = elements(gep.getType());
  Refs result;
  for (unsigned e = 0; e < count; ++e) {
    const Value *base = gep.getPointerOperand();
    Ref address = ref(base, base->getType()->isVectorTy() ? e : 0);
    int64_t offset = 0;
    for (auto step = gep_type_begin(gep), end = gep_type_end(gep); step != end; ++step) {
      const Value *index = step.getOperand();
      if (StructType *type = step.getStructTypeOrNull()) {
        const auto *constant = cast<Constant>(index);
        if (index->getType()->isVectorTy())
          constant = constant->getAggregateElement(e);
        offset += layout.getStructLayout(type)->getElementOffset(cast<ConstantInt>(constant)->getZExtValue());
        continue;
      }
      int64_t stride = step.getSequentialElementStride(layout).getFixedValue();
      if (auto *number = dyn_cast<ConstantInt>(index)) {
        offset += number->getValue().sextOrTrunc(64).getSExtValue() * stride;
        continue;
      }
      unsigned indexBits = scalarBits(index->getType());
      if (indexBits > 64)
        return unsupported(gep, "indices wider than 64 bits are not supported");
      Ref next = temp();
      addressPlus(next, address, ref(index, index->getType()->isVectorTy() ? e : 0), indexBits, stride, bits);
      address = next;
    }
    if (offset) {
      Ref next = temp();
      addressPlus(next, address, word(uint64_t(offset)), 64, 1, bits);
      address = next;
    }
    result.push_back(address);
  }
  alias(gep, std::move(result));
  return Error::success();
}

Error FunctionCompiler::compileLoadStore(const Instruction &instruction) {
  bool isLoad = isa<LoadInst>(instruction);
  Type *type = isLoad ? instruction.getType() : instruction.getOperand(0)->getType();
  const Value *pointer = getLoadStorePointerOperand(&instruction);
  Ref address = ref(pointer);
  SmallVector<Leaf> leaves;
  if (Error error = parent.leaves(type, leaves))
    return unsupported(instruction, toString(std::move(error)));
  uint32_t align = getLoadStoreAlignment(&instruction).value();
  unsigned space = pointer->getType()->getPointerAddressSpace();
  auto access = [&](Ref word, unsigned bits, uint64_t offset) {
    unsigned bytes = divideCeil(bits, 8);
    Op &op = emit(isLoad ? loadHandler(bytes) : storeHandler(bytes), isLoad ? word : 0, address,
                  isLoad ? 0 : word);
    op.bits = bits;
    op.bytes = bytes;
    op.imm = offset;
    op.align = offset ? 1 : align; // the whole access is aligned
    op.flags = instruction.isAtomic() || instruction.isVolatile() ? FlagOrdered : 0;
    op.space = space;
  };

  unsigned bits = scalarBits(type->isVectorTy() ? type : Type::getInt8Ty(type->getContext()));
  if (type->isVectorTy() && bits % 8) {
    // Elements that are not whole bytes lie packed.
    unsigned count = elements(type), total = bits * count;
    if (total > 64)
      return unsupported(instruction, "packed vectors of more than 64 bits are not supported");
    Ref packed = temp();
    if (isLoad) {
      access(packed, total, 0);
      Ref dst = define(instruction);
      for (unsigned e = 0; e < count; ++e) {
        Op &op = emit(extractBits(), dst + e, packed);
        op.bits = bits;
        op.imm = e * bits;
      }
      return Error::success();
    }
    Op &op = emit(packBits(), packed);
    op.bits2 = bits;
    setArgs(op, refs(instruction.getOperand(0)));
    access(packed, total, 0);
    return Error::success();
  }

  Ref next = isLoad ? define(instruction) : 0;
  unsigned word = 0;
  for (const Leaf &leaf : leaves)
    for (unsigned i = 0; i < leaf.words; ++i, ++word)
      access(isLoad ? next + word : ref(instruction.getOperand(0), word), std::min(64u, leaf.bits - 64 * i),
             leaf.offset + 8 * i);
  return Error::success();
}

Error FunctionCompiler::compileMemory(const Instruction &instruction) {
  if (auto *gep = dyn_cast<GetElementPtrInst>(&instruction))
    return compileGEP(*gep);
  if (isa<LoadInst, StoreInst>(instruction))
    return compileLoadStore(instruction);
  if (isa<FenceInst>(instruction))
    return Error::success(); // waves run interleaved and see memory in order
  if (auto *cast = dyn_cast<AddrSpaceCastInst>(&instruction)) {
    Ref dst = define(instruction);
    for (unsigned e = 0, count = elements(cast->getType()); e < count; ++e) {
      Op &op = emit(memoryHandlers.convertAddress, dst + e, ref(cast->getOperand(0), e));
      op.sub = cast->getSrcAddressSpace();
      op.space = cast->getDestAddressSpace();
    }
    return Error::success();
  }
  if (auto *alloca = dyn_cast<AllocaInst>(&instruction)) {
    auto size = alloca->getAllocationSize(layout);
    if (!size || size->isScalable() || !alloca->isStaticAlloca())
      return unsupported(instruction, "stack slots of variable size are not supported");
    uint64_t at = alignTo(code.privateBytes, std::max<uint64_t>(16, alloca->getAlign().value()));
    if (!at)
      at = 64; // no object lies at the null address
    if (at + size->getFixedValue() > mostPrivateBytes)
      return unsupported(instruction, "the stack exceeds " + Twine(mostPrivateBytes) + " bytes a thread");
    Op &op = emit(memoryHandlers.allocate, define(instruction));
    op.imm = at;
    op.flags = size->getFixedValue();
    op.space = alloca->getAddressSpace();
    code.privateBytes = alignTo(at + size->getFixedValue(), 256);
    return Error::success();
  }
  if (auto *rmw = dyn_cast<AtomicRMWInst>(&instruction)) {
    Type *type = rmw->getType();
    unsigned bits = scalarBits(type);
    auto kind = format(type);
    if (type->isVectorTy() || bits > 64 || bits % 8 || rmw->getOperation() > AtomicRMWInst::USubSat)
      return unsupported(instruction, "this atomic operation is not supported");
    Op &op = emit(memoryHandlers.atomicRMW, define(instruction), ref(rmw->getPointerOperand()),
                  ref(rmw->getValOperand()));
    op.sub = rmw->getOperation();
    op.flags = kind ? unsigned(*kind) : 0;
    op.bits = bits;
    op.bytes = bits / 8;
    op.align = std::max<uint64_t>(rmw->getAlign().value(), bits / 8);
    op.space = rmw->getPointerAddressSpace();
    return Error::success();
  }
  if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&instruction)) {
    unsigned bits = scalarBits(exchange->getCompareOperand()->getType());
    if (bits > 64 || bits % 8)
      return unsupported(instruction, "this atomic operation is not supported");
    Op &op = emit(memoryHandlers.compareExchange, define(instruction), ref(exchange->getPointerOperand()),
                  ref(exchange->getCompareOperand()), ref(exchange->getNewValOperand()));
    op.bytes = bits / 8;
    op.align = std::max<uint64_t>(exchange->getAlign().value(), bits / 8);
    op.space = exchange->getPointerAddressSpace();
    return Error::success();
  }
  return unsupported(instruction,
                     "instruction '" + Twine(instruction.getOpcodeName()) + "' is not supported");
}

} // namespace qd::sim
