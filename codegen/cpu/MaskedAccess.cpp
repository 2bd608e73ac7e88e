//===- MaskedAccess.cpp - accesses under a mask without instructions for them ----------------------------------===//
//
// Purpose: LLVM takes masked accesses that a processor lacks apart into a branch for each lane. Here consecutive
// elements are a plain vector where all lanes are active, which is nearly always, and a loop over the active lanes
// otherwise; at other places the lanes that are off access a place of the stack.
// Input: an address and a mask that is not known here. Output: the same accesses, none for a lane that is off.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/KernelEmitter.h"

using namespace mlir;

namespace qd {

/// x86 before AVX-512 has masked accesses of 32 and 64 bits alone, or none.
bool KernelEmitter::hasMaskedAccess(llvm::Type *element) {
  return features.avx512 || (features.avx2 && element->getPrimitiveSizeInBits() >= 32);
}

/// A branch: what is emitted by `whole` runs where all lanes are active, what is by `some` where they are not.
void KernelEmitter::emitWholeOrSome(llvm::Value *active, llvm::function_ref<void()> whole,
                                    llvm::function_ref<void()> some) {
  llvm::Function *function = b.GetInsertBlock()->getParent();
  auto *wholeBlock = llvm::BasicBlock::Create(context, "whole", function);
  auto *someBlock = llvm::BasicBlock::Create(context, "some", function);
  auto *merge = llvm::BasicBlock::Create(context, "access.end", function);
  llvm::Value *set = bits(active);
  b.CreateCondBr(b.CreateICmpEQ(set, llvm::Constant::getAllOnesValue(set->getType())), wholeBlock, someBlock);
  b.SetInsertPoint(wholeBlock);
  whole();
  b.CreateBr(merge);
  b.SetInsertPoint(someBlock);
  some();
  b.CreateBr(merge);
  b.SetInsertPoint(merge);
}

llvm::Value *KernelEmitter::loadConsecutive(const Address &address, llvm::Type *element, llvm::Value *active,
                                            llvm::Value *otherwise, Value array) {
  llvm::Type *type = vectorOf(element);
  llvm::Align alignment(element->getPrimitiveSizeInBits() / 8);
  SmallVector<std::pair<llvm::Value *, llvm::BasicBlock *>> incoming;
  emitWholeOrSome(
      active,
      [&] {
        llvm::Instruction *loaded = b.CreateAlignedLoad(type, address.pointer, alignment);
        annotate(loaded, array);
        incoming.push_back({loaded, b.GetInsertBlock()});
      },
      [&] {
        llvm::AllocaInst *table = createLaneTable(element);
        b.CreateStore(otherwise ? otherwise : llvm::Constant::getNullValue(type), table);
        forEachLane(active, /*isCheap=*/false, [&](llvm::Value *lane) {
          llvm::Instruction *loaded =
              b.CreateAlignedLoad(element, b.CreateGEP(element, address.pointer, lane), alignment);
          annotate(loaded, array);
          b.CreateStore(loaded, b.CreateGEP(element, table, lane));
        });
        llvm::Value *loaded = b.CreateLoad(type, table);
        b.CreateLifetimeEnd(table);
        incoming.push_back({loaded, b.GetInsertBlock()});
      });
  llvm::PHINode *result = b.CreatePHI(type, 2);
  for (auto [value, block] : incoming)
    result->addIncoming(value, block);
  return result;
}

void KernelEmitter::storeConsecutive(const Address &address, llvm::Value *vector, llvm::Value *active, Value array) {
  llvm::Type *element = vector->getType()->getScalarType();
  llvm::Align alignment(element->getPrimitiveSizeInBits() / 8);
  emitWholeOrSome(
      active, [&] { annotate(b.CreateAlignedStore(vector, address.pointer, alignment), array); },
      [&] {
        LaneOperand table = spill(vector);
        forEachLane(active, /*isCheap=*/false, [&](llvm::Value *lane) {
          annotate(b.CreateAlignedStore(getLane(table, lane), b.CreateGEP(element, address.pointer, lane), alignment),
                   array);
        });
        b.CreateLifetimeEnd(table.table);
      });
}

/// The lanes' pointers, those of lanes that are off to a place of their own.
llvm::Value *KernelEmitter::divertPointers(llvm::Value *pointers, llvm::Value *active) {
  llvm::BasicBlock &entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::AllocaInst *place = llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(b.getInt64Ty());
  return b.CreateSelect(active, pointers, splat(place));
}

} // namespace qd
