//===- WideTiles.h - tiles wider than the subgroup ------------------------------------===//
//
// Purpose: carries out subgroup ops whose tile is wider than the subgroup through shared memory and barriers.
//
// Input invariant: the block is a multiple of the tile, and all its threads reach the op together.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_WIDETILES_H
#define QD_PASSES_WIDETILES_H

#include "ir/Dialect.h"
#include "ir/Targets.h"
#include "passes/LaneTree.h"

#include "llvm/ADT/SmallPtrSet.h"

namespace qd {

/// Bytes of a kernel's shared arrays in the order in which they stand.
int64_t getSharedBytes(KernelOp kernel);

/// The shared arrays through which values travel, and which of them may still be read. A barrier separates the
/// reads of an array from the writes of its next use, in loops as well; a kernel's walk keeps the state current.
class Staging {
public:
  Staging(KernelOp kernel, const Target &target)
      : bytes(getSharedBytes(kernel)), kernel(kernel), target(target) {}

  int64_t bytes; ///< of all the kernel's shared arrays

  /// What may be unread at a point of the program.
  struct State {
    bool all = false; ///< any array, also one that the loop around will only get to know
    llvm::SmallPtrSet<mlir::Operation *, 4> arrays;
  };
  State state;

  void enterLoop() { state.all = true; }
  void merge(const State &other);

  /// An array of `count` elements of each type, which may be written at the builder's place: one that is read no
  /// more, if need be after a barrier. None, diagnosed at `user`, where the chip has not enough shared memory.
  Values acquire(mlir::OpBuilder &builder, mlir::Operation *user, mlir::TypeRange elements, int64_t count);
  /// The barrier between the writes of arrays and their reads.
  void publish(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange arrays);
  void noteSync() { state = {}; }

  /// Each thread's values, read by others: those of `source`. Empty after a diagnostic.
  Values exchange(const LaneBuilder &at, mlir::Operation *user, mlir::ValueRange values, mlir::Value thread,
                  mlir::Value source);

  unsigned numUses = 0, numSyncs = 0;

private:
  SharedAllocOp allocate(mlir::OpBuilder &builder, mlir::Location loc, SharedType type);
  SharedAllocOp find(mlir::OpBuilder &builder, mlir::Location loc, SharedType type, size_t maxArrays,
                     mlir::ValueRange taken);
  void sync(mlir::OpBuilder &builder, mlir::Location loc);

  KernelOp kernel;
  const Target &target;
  llvm::SmallVector<SharedAllocOp> arrays;
};

/// Writes each value to element `index` of its array where `predicate`, if given, holds.
void storeAll(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange values, mlir::ValueRange arrays,
              mlir::Value index, mlir::Value predicate);

/// Whether `expandWideTile` knows the op.
bool hasWideTileExpansion(mlir::Operation *op);

/// The results of an op with a tile of `lanes` lanes, more than the subgroup has. Empty after a diagnostic.
Values expandWideTile(mlir::Operation *op, int32_t lanes, mlir::OpBuilder &builder, const BlockShape &shape,
                      Staging &staging);

} // namespace qd

#endif
