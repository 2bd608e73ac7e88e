//===- BlockSort.cpp - sorting networks of a whole block -------------------------------------===//
//
// Purpose: the bitonic network over a block of any size. It is that of the next power of two: the threads that do not
// exist lie at the upper end and act as the elements that come last, of which nobody needs to know. Steps between
// subgroups are exchanges through shared memory, with a barrier each:
//
//   %r = qd.block.bitonic_sort %k : i32        a step at the distance of 32 threads
//     ->
//   qd.store %k, %s[%t]   qd.block.sync   %o = qd.load %s[%t ^ 32]   %r = %t & 32 ? max(%k, %o) : min(%k, %o)
//
//===----------------------------------------------------------------------===//

#include "passes/BlockSort.h"

#include "passes/IntegerBuilder.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

Values buildBlockSort(const LaneBuilder &at, Operation *op, const SortOrder &order, Staging &staging) {
  IntegerBuilder i(at);
  auto exchange = [&](ValueRange words, int32_t mask, Value hasPartner) {
    Value thread = ThreadIndexOp::create(i.b, i.loc, i.i32);
    Value partner = i.bitXor(thread, mask);
    if (hasPartner)
      partner = i.select(hasPartner, partner, thread);
    return staging.exchange(at, op, words, thread, partner);
  };
  return buildSort(at, order, int32_t(llvm::PowerOf2Ceil(at.shape.threads)), exchange);
}

} // namespace qd
