//===- Uniformity.h - which values are the same in all threads -------------------------===//
//
// Purpose: divergence analysis over structured control flow, for checks and for lowerings that are cheaper on
// uniform values.
//
// Input: a verified kernel without calls. The answers hold until the kernel changes; a value that it did not hold
// when it was analysed is varying.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_UNIFORMITY_H
#define QD_PASSES_UNIFORMITY_H

#include "ir/Dialect.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace qd {

/// In rising order: the worst operand decides. Undecided comes from memory: only the program's author knows.
enum class Divergence : uint8_t { Uniform, Undecided, Varying };

class UniformityAnalysis {
public:
  /// A `subgroupSize` of 0 stands for any: what is then proven holds for all of 4 to 64. With `groupLanes`, each
  /// aligned group of that many threads stands in for the subgroup in all answers, be it part of one or several.
  explicit UniformityAnalysis(KernelOp kernel, unsigned subgroupSize = 0, unsigned groupLanes = 0);

  /// How `value` may differ between those threads of one `scope` that compute it together.
  Divergence getDivergence(mlir::Value value, Scope scope) const;
  bool isUniform(mlir::Value value, Scope scope) const { return getDivergence(value, scope) == Divergence::Uniform; }

  /// The worst of the conditions that decide whether a thread reaches an op.
  struct Control {
    Divergence divergence = Divergence::Uniform;
    mlir::Operation *branch = nullptr; ///< the op with the condition; null where all threads get there
    mlir::Value condition;             ///< null where `branch` is an op that the analysis does not know
  };
  Control getControl(mlir::Operation *op, Scope scope) const;

  /// The scope whose threads must reach a collective op together.
  Scope getRequiredScope(mlir::Operation *collective) const;

  /// The op that makes `value` differ: a thread id, a load. Null where none is found.
  mlir::Operation *findSource(mlir::Value value, Scope scope) const;

  /// The op by which blocks may differ in whether they reach `op`: one that numbers blocks or their threads. Null where
  /// no condition is computed from such a number.
  mlir::Operation *findBlockSource(mlir::Operation *op) const;

private:
  struct State {
    Divergence subgroup = Divergence::Uniform;
    Divergence block = Divergence::Uniform;

    Divergence &operator[](Scope scope) { return scope == Scope::subgroup ? subgroup : block; }
    Divergence operator[](Scope scope) const { return scope == Scope::subgroup ? subgroup : block; }
    State operator|(State other) const { return {std::max(subgroup, other.subgroup), std::max(block, other.block)}; }
  };
  static constexpr State varying = {Divergence::Varying, Divergence::Varying};
  static constexpr State undecided = {Divergence::Undecided, Divergence::Undecided};

  void visit(mlir::Operation *op);
  void visitIf(mlir::Operation *op);
  void visitFor(mlir::Operation *op);
  void visitWhile(mlir::Operation *op);
  void visitCombine(mlir::Operation *op);
  void raise(mlir::Value value, State state);
  void enqueueUsers(mlir::Value value);

  State get(mlir::Value value) const;
  State joinOperands(mlir::Operation *op) const;
  State getResultState(mlir::OpResult result) const;
  State getIndexState(mlir::Operation *op) const;
  State getLoadState(mlir::Operation *op) const;
  Divergence getCollectiveDivergence(mlir::OpResult result, Scope scope) const;
  State getCompareState(mlir::Operation *op) const;
  State getTripState(mlir::Operation *loop) const;
  State getConditionState(mlir::Operation *branch, mlir::Value &condition, Scope scope) const;

  bool coversScope(mlir::Operation *collective, Scope scope) const;
  bool crossesScope(mlir::Operation *collective, Scope scope) const;
  bool groupsAreWhole(mlir::Operation *collective) const;
  bool isLanePattern(mlir::Value value, unsigned depth = 0) const;
  /// Lanes of the largest and smallest subgroup that there may be, and of the largest group that answers are about.
  int64_t getLargestSubgroup() const { return subgroupSize ? subgroupSize : 64; }
  int64_t getSmallestSubgroup() const { return subgroupSize ? subgroupSize : 4; }
  int64_t getAlignment() const { return groupLanes ? groupLanes : getLargestSubgroup(); }
  bool groupsSpanSubgroups() const { return groupLanes > getSmallestSubgroup(); }

  unsigned subgroupSize, groupLanes;
  bool hasCombiners = false;
  int64_t blockThreads;
  int64_t blockDims[3];
  llvm::DenseMap<mlir::Value, State> states;
  llvm::SetVector<mlir::Operation *> worklist;
};

/// The values from around it that a combine region uses; none where `op` has no such region.
llvm::SetVector<mlir::Value> getCaptured(mlir::Operation *op);

} // namespace qd

#endif
