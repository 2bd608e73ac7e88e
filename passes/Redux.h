//===- Redux.h - reductions and scans that a target has itself ------------------------===//
//
// Purpose: forms of reductions and scans of a whole subgroup by the instructions that some targets have for it.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_REDUX_H
#define QD_PASSES_REDUX_H

#include "passes/Combiner.h"
#include "passes/LaneBuilder.h"

namespace qd {

/// The reduction of each aligned group of `lanes` lanes in every lane; null where shuffles are the way.
mlir::Value buildNativeReduce(const LaneBuilder &builder, const Combiner &combiner, mlir::ValueRange values,
                              int32_t lanes);

/// Whether `buildNativeReduce` has a way.
bool hasNativeReduce(const BlockShape &shape, const Combiner &combiner, mlir::ValueRange values, int32_t lanes);

/// Whether the target reduces and scans 32-bit integers by `kind`; multiplication only in group arithmetic.
bool hasGroupKind(const BlockShape &shape, const Combiner &combiner, mlir::ValueRange values, int32_t lanes);

/// Whether the target reduces and scans each aligned group of `lanes` lanes by `kind` in instructions that move values
/// and combine them, so that its lowering takes the op whole; of scans below a row, only some.
bool hasRowKind(const BlockShape &shape, const Combiner &combiner, mlir::ValueRange values, int32_t lanes);

/// A scan of a whole subgroup as one op; null where the target has none.
template <typename Op>
mlir::Value buildGroupScan(const LaneBuilder &builder, const Combiner &combiner, mlir::ValueRange values,
                           int32_t lanes) {
  if (!hasGroupKind(builder.shape, combiner, values, lanes))
    return {};
  return Op::create(builder.b, builder.loc, *combiner.getKind(), values.front())->getResult(0);
}

} // namespace qd

#endif
