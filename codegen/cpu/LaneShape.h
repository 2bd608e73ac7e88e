//===- LaneShape.h - how values differ between the lanes of a subgroup ----------------===//
//
// Purpose: decides which values stay scalar when a subgroup becomes a vector, and which subscripts are contiguous.
// A value of known shape is one scalar, lane 0's, plus a constant a lane: no offsets is a uniform value, offsets
// 0, 1, 2, .. a unit-stride subscript. The shape holds among the lanes that are active where the value is defined.
// Input: a verified kernel after the expansions. Output: a shape for each SSA value, the least fixpoint over loops.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_CPU_LANESHAPE_H
#define QD_CODEGEN_CPU_LANESHAPE_H

#include "ir/Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include <set>
#include <vector>

namespace qd {

/// value(lane) - value(lane 0), modulo 2^width and sign-extended.
using LaneOffsets = std::vector<int64_t>;

struct LaneShape {
  enum Kind : uint8_t { Unreached, Known, Varying };
  Kind kind = Unreached;
  /// Known: the value of no lane lies past the signed wrap from lane 0's, so sign extension keeps the offsets.
  bool steady = false;
  /// Known: no lane's value is negative.
  bool natural = false;
  /// Known: lane 0's value is a multiple of 2^aligned.
  uint8_t aligned = 0;
  /// Known: null where all lanes agree.
  const LaneOffsets *offsets = nullptr;

  bool isUniform() const { return kind == Known && !offsets; }
  bool isVarying() const { return kind != Known; }
  bool operator==(const LaneShape &other) const {
    return kind == other.kind && steady == other.steady && natural == other.natural && aligned == other.aligned &&
           offsets == other.offsets;
  }
};

/// Where the threads of one dimension stand: lane 0's position is computed from the subgroup's first thread.
struct ThreadPositions {
  LaneShape shape;
  unsigned divisor = 1, modulus = 1; ///< position = (thread / divisor) % modulus
};

class LaneAnalysis {
public:
  LaneAnalysis(KernelOp kernel, unsigned lanes);

  LaneShape getShape(mlir::Value value) const { return shapes.lookup(value); }
  bool isUniform(mlir::Value value) const { return getShape(value).isUniform(); }
  /// Whether neighbouring lanes have neighbouring numbers.
  bool isUnitStride(mlir::Value value) const;
  bool isDivergent(mlir::scf::ForOp op) const;
  const ThreadPositions &getPositions(unsigned dim) const { return positions[dim]; }
  /// Dimensions along which the kernel numbers all threads in i32. They must be fewer than 2^31 + 1: the shapes of such
  /// numbers are those of natural ones.
  llvm::ArrayRef<bool> getNarrowDims() const { return narrow; }

  /// The one object for these offsets; null for zeros.
  const LaneOffsets *intern(LaneOffsets offsets);

private:
  KernelOp kernel;
  unsigned lanes;
  bool changed = false;
  llvm::DenseMap<mlir::Value, LaneShape> shapes;
  std::set<LaneOffsets> pool;
  ThreadPositions positions[3];
  bool narrow[3] = {};

  void computePositions();
  void raise(mlir::Value value, LaneShape shape);
  std::optional<unsigned> matchGlobalThreadId(mlir::arith::AddIOp op);
  LaneShape getGlobalThreadId(unsigned dim, mlir::Type type);
  LaneShape join(LaneShape a, LaneShape b) const;
  LaneShape makeKnown(LaneOffsets offsets, bool steady);
  LaneShape makeNatural(LaneOffsets offsets, uint8_t aligned);
  LaneShape allUniform(mlir::ValueRange operands) const;

  void visit(mlir::Block &block);
  void visit(mlir::Operation &op);
  void visitIf(mlir::scf::IfOp op);
  void visitFor(mlir::scf::ForOp op);
  void visitWhile(mlir::scf::WhileOp op);
  LaneShape getElementwise(mlir::Operation &op);
  LaneShape combine(LaneShape a, LaneShape b, int64_t sign, unsigned width, bool steady);
  LaneShape scale(LaneShape a, int64_t factor, unsigned width);
  LaneShape mapOffsets(LaneShape a, llvm::function_ref<int64_t(int64_t)> map, uint8_t aligned);
  bool comparesWhole(mlir::arith::CmpIPredicate predicate, LaneShape a, LaneShape b) const;
  LaneShape divide(mlir::Operation &op, LaneShape a, const llvm::APInt &divisor);
};

} // namespace qd

#endif
