//===- Segments.h - a kernel's body between its barriers ------------------------------------===//
//
// Purpose: where all threads of a block provably take the same way to each barrier, no subgroup needs to be suspended:
// the block runs the part before a barrier for all its subgroups, then the next part, and enters what holds barriers
// (scf.if, scf.for) as a whole. Each part is a plain loop over subgroups that the optimiser knows well, which costs a
// fraction of resuming coroutines.
// A loop whose turns read neighbouring elements in all subgroups is entered as a whole too: so the block walks through
// memory in order, where one subgroup after the other would leap.
// A value that a later part needs is computed again there if it follows from arguments and thread ids by integer
// arithmetic alone; otherwise it is kept in memory, one slot a subgroup.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_CPU_SEGMENTS_H
#define QD_CODEGEN_CPU_SEGMENTS_H

#include "codegen/cpu/LaneShape.h"
#include "ir/Dialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

namespace qd {

/// Ops from one barrier to the next. The last one may be an op that the block enters as a whole, of which the segment
/// only evaluates the operands, or the terminator of such an op's region.
struct Segment {
  llvm::SmallVector<mlir::Operation *> again; ///< ops of other segments to emit anew, in order
  llvm::SmallVector<mlir::Operation *> ops;   ///< its own
  llvm::SmallVector<mlir::Value> kept;        ///< values of other segments to read from memory
};

class Segments {
public:
  /// A segment, and what the block enters behind it; null for nothing.
  struct Step {
    unsigned segment;
    mlir::Operation *entered = nullptr;
  };

  /// Without `split` the body is one segment.
  Segments(KernelOp kernel, const LaneAnalysis &analysis, bool split);

  /// Whether the block can take all ways to its barriers as a whole.
  bool areSplit() const { return splits; }
  bool hasBarriers() const { return segments.size() > 1; }
  bool isEntered(mlir::Operation *op) const { return entered.contains(op); }
  const Segment &get(unsigned number) const { return segments[number]; }
  /// Of the body, or of a region of an op that is entered.
  llvm::ArrayRef<Step> getSteps(mlir::Block &block) const { return steps.find(&block)->second; }
  /// All values that some segment keeps in memory for another one, or for its own next turn.
  llvm::ArrayRef<mlir::Value> getKept() const { return kept; }

private:
  const LaneAnalysis &analysis;
  bool splits = true;
  llvm::SmallVector<Segment> segments;
  llvm::DenseMap<mlir::Block *, llvm::SmallVector<Step, 4>> steps;
  llvm::DenseSet<mlir::Operation *> entered;
  llvm::DenseMap<mlir::Operation *, unsigned> home;
  llvm::SmallVector<mlir::Value> kept;
  llvm::DenseSet<mlir::Value> shared; ///< that all threads of the block have alike

  void findShared(KernelOp kernel);
  bool isShared(mlir::Value value) const { return shared.contains(value); }
  bool canEnter(mlir::Operation &op) const;
  bool walksTogether(mlir::Operation &op) const;
  void collect(mlir::Block &block);
  void connect();
};

} // namespace qd

#endif
