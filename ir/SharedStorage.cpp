//===- SharedStorage.cpp - where a block's shared arrays lie --------------------------------===//

#include "ir/SharedStorage.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

bool hasAtomicAccesses(Value array) {
  return llvm::any_of(array.getUsers(), llvm::IsaPred<AtomicRMWOp, AtomicCASOp, AtomicLoadOp, AtomicStoreOp>);
}

bool isArrayOfWords(SharedAllocOp alloc, const Target &target) {
  return target.getBackend() == Backend::SPIRV &&
         (alloc.getType().getElementType().isInteger(1) || hasAtomicAccesses(alloc));
}

uint64_t getArrayBytes(SharedAllocOp alloc, const Target &target) {
  unsigned elementBytes = getStorageBytes(alloc.getType().getElementType());
  return alloc.getType().getNumElements() * std::max(elementBytes, isArrayOfWords(alloc, target) ? 4u : 1u);
}

SharedStorage::SharedStorage(KernelOp kernel, const Target &target) {
  llvm::DenseMap<int64_t, unsigned> numbered;
  kernel.getBody().walk([&](SharedAllocOp alloc) {
    unsigned number = pieces.size();
    uint64_t offset = 0;
    if (auto place = alloc->getAttrOfType<DenseI64ArrayAttr>(storageAttribute)) {
      number = numbered.try_emplace(place[0], number).first->second;
      offset = place[1];
    }
    if (number == pieces.size())
      pieces.emplace_back();
    Piece &piece = pieces[number];
    piece.arrays.push_back(alloc);
    piece.bytes = std::max(piece.bytes, offset + getArrayBytes(alloc, target));
    places[alloc] = {number, offset};
  });
  for (Piece &piece : pieces) {
    piece.offset = llvm::alignTo(bytes, sharedArrayAlignment);
    bytes = piece.offset + piece.bytes;
  }
}

} // namespace qd
