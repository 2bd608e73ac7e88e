//===- Index.cpp - where a thread stands ------------------------------------------------------===//

#include "codegen/interp/Machine.h"

using namespace mlir;

namespace qd::interp {

static KernelOp getKernel(Thread &thread) { return thread.block().launch.code.kernel; }

static uint64_t getThreadId(Thread &thread, Dim dim) {
  uint64_t x = getKernel(thread).getBlockDim(0), y = getKernel(thread).getBlockDim(1);
  switch (dim) {
  case Dim::x:
    return thread.index() % x;
  case Dim::y:
    return thread.index() / x % y;
  case Dim::z:
    return thread.index() / x / y;
  }
  llvm_unreachable("all dimensions are handled");
}

static uint64_t getBlockId(Thread &thread, Dim dim) { return thread.block().id[unsigned(dim)]; }
static uint64_t getBlockDim(Thread &thread, Dim dim) { return getKernel(thread).getBlockDim(unsigned(dim)); }
static uint64_t getGridDim(Thread &thread, Dim dim) { return thread.block().launch.grid[unsigned(dim)]; }
static uint64_t getGlobalThreadId(Thread &thread, Dim dim) {
  return getBlockId(thread, dim) * getBlockDim(thread, dim) + getThreadId(thread, dim);
}

template <typename Op, uint64_t (*get)(Thread &, Dim)> static void addDim(RuleTable &table) {
  table.addStrict<Op>([](Thread &thread) {
    uint64_t value = get(thread, thread.op<Op>().getDim());
    thread.out[0] = LaneValue::of(toInt(value, thread.outType()));
  });
}

static void runThreadIndex(Thread &thread) { thread.out[0] = LaneValue::of(thread.index()); }
static void runLaneId(Thread &thread) { thread.out[0] = LaneValue::of(thread.lane); }
static void runSubgroupSize(Thread &thread) { thread.out[0] = LaneValue::of(thread.subgroup.size); }

static void runElect(Thread &thread) {
  std::optional<int32_t> tile = thread.op<ElectOp>().getTile();
  thread.out[0] = LaneValue::of(thread.index() % (tile ? *tile : thread.subgroup.size) == 0);
}

void addIndexRules(RuleTable &table) {
  addDim<ThreadIdOp, getThreadId>(table);
  addDim<BlockIdOp, getBlockId>(table);
  addDim<BlockDimOp, getBlockDim>(table);
  addDim<GridDimOp, getGridDim>(table);
  addDim<GlobalThreadIdOp, getGlobalThreadId>(table);
  table.addStrict<ThreadIndexOp>(runThreadIndex);
  table.addStrict<LaneIdOp>(runLaneId);
  table.addStrict<SubgroupSizeOp>(runSubgroupSize);
  table.addStrict<ElectOp>(runElect);
}

} // namespace qd::interp
