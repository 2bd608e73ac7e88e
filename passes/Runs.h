//===- Runs.h - rows of values in shared memory -------------------------------------------===//
//
// Purpose: how the lanes of a subgroup share the work on a row of values that lies in shared memory, be it longer than
// the subgroup: each lane takes a run of neighbours.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_RUNS_H
#define QD_PASSES_RUNS_H

#include "passes/Combiner.h"
#include "passes/Staging.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

namespace qd {

struct Runs {
  /// Of `count` values for `lanes` lanes.
  Runs(int32_t count, int32_t lanes)
      : count(count), length(llvm::divideCeil(count, lanes)), lanes(llvm::divideCeil(count, length)) {}

  int32_t count;
  int32_t length; ///< of a run; the last one may be shorter
  int32_t lanes;  ///< that have a run

  /// Elements that the lanes read: those behind the values may hold anything.
  int32_t getElements() const { return length * lanes; }

  /// Where the own lane's run starts; lanes without one take the last.
  mlir::Value getStart(const LaneBuilder &at) const {
    mlir::Value lane = LaneIdOp::create(at.b, at.loc, at.i32);
    if (lanes < at.shape.subgroupSize)
      lane = at.create<mlir::arith::MinUIOp>(lane, int64_t(lanes - 1));
    return length == 1 ? lane : at.create<mlir::arith::MulIOp>(lane, int64_t(length));
  }

  /// Goes along the run from its second value on: `step` makes of a value's place and of what was carried to it what
  /// is carried on. Few steps are written out, more are a loop.
  template <typename Step>
  Values walk(const LaneBuilder &at, mlir::Value start, Values carried, Step step) const {
    constexpr int32_t fewSteps = 3;
    if (length - 1 <= fewSteps) {
      for (int32_t i = 1; i < length; ++i)
        carried = step(at.create<mlir::arith::AddIOp>(start, int64_t(i)), carried);
      return carried;
    }
    auto loop = mlir::scf::ForOp::create(
        at.b, at.loc, at.constant(1), at.constant(length), at.constant(1), carried,
        [&](mlir::OpBuilder &, mlir::Location, mlir::Value i, mlir::ValueRange values) {
          mlir::scf::YieldOp::create(at.b, at.loc, step(at.create<mlir::arith::AddIOp>(start, i), Values(values)));
        });
    return loop.getResults();
  }
};

/// Combines values that each lane has: neighbours first, as in a tree.
inline Values combineRow(const LaneBuilder &at, const Combiner &combiner, llvm::SmallVector<Values> values) {
  while (values.size() > 1) {
    llvm::SmallVector<Values> pairs;
    for (size_t i = 0; i + 1 < values.size(); i += 2)
      pairs.push_back(combiner.combine(at.b, at.loc, values[i], values[i + 1]));
    if (values.size() % 2)
      pairs.push_back(values.back());
    values = std::move(pairs);
  }
  return values.front();
}

} // namespace qd

#endif
