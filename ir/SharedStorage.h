//===- SharedStorage.h - where a block's shared arrays lie ----------------------------------===//
//
// Purpose: the layout of a kernel's shared memory, in one place for limits, interfaces and all backends. An array has a
// piece of its own, unless the attribute `qd.storage`, which the pass share-storage sets, puts several into one piece:
// array<i64: piece, offset>, the offset in bytes. Arrays of one piece may overlap.
//
//===----------------------------------------------------------------------===//

#ifndef QD_IR_SHAREDSTORAGE_H
#define QD_IR_SHAREDSTORAGE_H

#include "ir/Dialect.h"
#include "ir/Targets.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace qd {

constexpr llvm::StringLiteral storageAttribute = "qd.storage";

/// Alignment of a shared array: that of the widest access.
constexpr unsigned sharedArrayAlignment = 16;

/// Whether the kernel accesses a buffer or shared array by atomic_* ops.
bool hasAtomicAccesses(mlir::Value array);

/// Whether each element of a shared array takes a word: SPIR-V knows no i1 in memory, and devices only promise atomic
/// accesses of words.
bool isArrayOfWords(SharedAllocOp alloc, const Target &target);

/// Bytes that an array takes on a target.
uint64_t getArrayBytes(SharedAllocOp alloc, const Target &target);

class SharedStorage {
public:
  SharedStorage(KernelOp kernel, const Target &target);

  struct Piece {
    llvm::SmallVector<SharedAllocOp, 1> arrays;
    uint64_t offset = 0; ///< in the block's shared memory
    uint64_t bytes = 0;
  };
  llvm::ArrayRef<Piece> getPieces() const { return pieces; }
  uint64_t getBytes() const { return bytes; }
  /// The number of the array's piece, and the array's offset in it.
  unsigned getPiece(SharedAllocOp alloc) const { return places.lookup(alloc).first; }
  uint64_t getOffset(SharedAllocOp alloc) const { return places.lookup(alloc).second; }

private:
  llvm::SmallVector<Piece> pieces;
  llvm::DenseMap<mlir::Operation *, std::pair<unsigned, uint64_t>> places;
  uint64_t bytes = 0;
};

} // namespace qd

#endif
