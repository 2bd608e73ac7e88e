//===- Segments.h - a kernel's body between its barriers ------------------------------------===//
//
// Purpose: where all barriers stand at the top level of the body, no subgroup needs to be suspended: the block runs
// the part before a barrier for all its subgroups, then the next part. Each part is a plain loop that the optimiser
// knows well, which costs a fraction of resuming coroutines.
// A value that a later part needs is computed again there if it follows from arguments and thread ids by integer
// arithmetic alone; otherwise it is kept in memory, one slot a subgroup.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_CPU_SEGMENTS_H
#define QD_CODEGEN_CPU_SEGMENTS_H

#include "ir/Dialect.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

namespace qd {

struct Segment {
  llvm::SmallVector<mlir::Operation *> again; ///< ops of earlier segments to emit anew, in order
  llvm::SmallVector<mlir::Operation *> ops;   ///< its own
  llvm::SmallVector<mlir::Value> kept;        ///< values of earlier segments to read from memory
};

class Segments {
public:
  /// Without `split` the body is one segment.
  Segments(KernelOp kernel, bool split);

  /// Whether every barrier stands at the top level.
  bool areTopLevel() const { return topLevel; }
  llvm::ArrayRef<Segment> get() const { return segments; }
  /// All values that some segment keeps in memory for a later one.
  llvm::ArrayRef<mlir::Value> getKept() const { return kept; }

private:
  bool topLevel = true;
  llvm::SmallVector<Segment> segments;
  llvm::SmallVector<mlir::Value> kept;
};

} // namespace qd

#endif
