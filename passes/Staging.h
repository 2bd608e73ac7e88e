//===- Staging.h - shared memory through which values travel -----------------------------===//
//
// Purpose: gives expansions the shared arrays through which threads tell each other values, and places the barriers
// between the reads of one use and the writes of the next that needs the same memory, in loops as well.
//
// Input invariant: all threads of the block reach each use together; a kernel's walk keeps `state` current.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_STAGING_H
#define QD_PASSES_STAGING_H

#include "ir/Dialect.h"
#include "ir/Targets.h"
#include "passes/LaneBuilder.h"

#include "llvm/ADT/SmallPtrSet.h"

namespace qd {

/// Bytes of a kernel's shared arrays in the order in which they stand.
int64_t getSharedBytes(KernelOp kernel, const Target &target);

/// What one use of staging memory has got: an array for each of its values.
struct Stage {
  Values arrays;
  mlir::Value start; ///< the first of the use's elements; null for 0

  explicit operator bool() const { return !arrays.empty(); }

  /// Writes each value to element `index` of its array where `predicate`, if given, holds.
  void store(const LaneBuilder &at, mlir::ValueRange values, mlir::Value index, mlir::Value predicate = {}) const;
  Values load(const LaneBuilder &at, mlir::Value index) const;
  /// As `load` where `predicate` holds, `otherwise` elsewhere.
  Values loadWhere(const LaneBuilder &at, mlir::Value index, mlir::Value predicate, mlir::ValueRange otherwise) const;
  /// Of the first array.
  mlir::Value getElement(const LaneBuilder &at, mlir::Value index) const;
};

/// A use is an `acquire`, stores, `publish` and loads, before the next one begins. In a loop it takes one of two halves
/// of its arrays in turn with its use in the round before: the barrier of the round between keeps them apart.
class Staging {
public:
  Staging(KernelOp kernel, const Target &target)
      : bytes(getSharedBytes(kernel, target)), kernel(kernel), target(target) {}

  int64_t bytes; ///< of all the kernel's shared arrays
  /// Whether barriers order more than the block's shared memory: those that a kernel asked for do.
  bool ordersAllMemory = false;

  /// What may be unread at a point of the program.
  struct State {
    bool all = false; ///< any array, also one that the loop around will only get to know
    llvm::SmallPtrSet<mlir::Operation *, 4> arrays;
  };
  State state;

  void enterLoop() { state.all = true; }
  void merge(const State &other);
  /// What the end of a region adds to the state behind its loop, whose uses are those from `firstUse` on.
  State getStateBehind(size_t firstUse) const;

  /// `count` elements of each type, which may be written at the builder's place: those of arrays that are read no
  /// more, if need be after a barrier. None, diagnosed at `user`, where the chip has not enough shared memory.
  Stage acquire(const LaneBuilder &at, mlir::Operation *user, mlir::TypeRange elements, int64_t count);
  /// Rows of elements, one for each subgroup, which alone touches it from the last barrier of one use to the first of
  /// the next: such uses need no barrier between them. Nothing where no use had such rows yet.
  Values findRows(mlir::Type element, int32_t rows, int32_t length) const;
  /// The same, made where there is none. Nothing, diagnosed at `user`, where there is no room.
  Values acquireRows(const LaneBuilder &at, mlir::Operation *user, mlir::Type element, int32_t rows, int32_t length);

  /// What an element takes in an array of the target, where i1 may be a word.
  int64_t getElementBytes(mlir::Type element) const;

  /// Shared memory to go without a barrier or a turn for. Vulkan's devices differ, and a kernel that needs more than
  /// one has does not run there: what is not needed stays within what they commonly have.
  int64_t getCertainBytes() const;

  /// Whether arrays of `count` elements of each type are there or can be made within that.
  bool hasRoom(mlir::TypeRange elements, int64_t count) const;

  /// The barrier between the writes of a stage and their reads.
  void publish(const LaneBuilder &at, const Stage &stage);
  void sync(const LaneBuilder &at);
  void noteSync() { state = {}; }

  /// Each thread's values, read by others: those of `source`. Empty after a diagnostic.
  Values exchange(const LaneBuilder &at, mlir::Operation *user, mlir::ValueRange values, mlir::Value thread,
                  mlir::Value source);

  /// Once all uses are there: carries along through loops and branches which half's turn it is.
  void finish();

  size_t getNumUses() const { return used.size(); }
  unsigned numSyncs = 0;

private:
  /// A use of arrays of two halves.
  struct Turn {
    mlir::Operation *start;              ///< stands for the first element of its half
    mlir::Operation *lastSync = nullptr; ///< of its own barriers
  };
  /// Arrays of two halves, whose uses take turns.
  struct Turning {
    llvm::SmallVector<mlir::Type, 2> elements;
    int64_t count; ///< of a half
    Values arrays;
    llvm::SmallVector<Turn, 2> turns;
  };

  /// An array in rows of subgroups.
  struct Rows {
    int32_t rows, length;
    mlir::Value array;
  };

  Stage takeTurn(const LaneBuilder &at, mlir::TypeRange elements, int64_t count);
  SharedAllocOp allocate(mlir::OpBuilder &builder, mlir::Location loc, SharedType type, int64_t maxBytes);
  SharedAllocOp find(mlir::OpBuilder &builder, mlir::Location loc, SharedType type, size_t needed,
                     mlir::ValueRange taken);
  /// Whether any use may have the array.
  bool isOfAll(SharedAllocOp array) const;
  void diagnose(mlir::Operation *user, int64_t bytesNeeded) const;

  KernelOp kernel;
  const Target &target;
  llvm::SmallVector<SharedAllocOp> arrays;
  llvm::SmallVector<Turning> turnings;
  llvm::SmallVector<Rows> allRows;
  llvm::SmallVector<Values> used; ///< the arrays of each use so far
  std::optional<size_t> taking;   ///< the turning arrays of the use at work, whose turn is their last
};

} // namespace qd

#endif
