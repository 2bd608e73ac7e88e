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

static void runLog2Size(Thread &thread) { thread.out[0] = LaneValue::of(llvm::Log2_32(thread.subgroup.size)); }
static void runSubgroupId(Thread &thread) { thread.out[0] = LaneValue::of(thread.index() / thread.subgroup.size); }
static void runNumSubgroups(Thread &thread) { thread.out[0] = LaneValue::of(thread.block().subgroups.size()); }
static void runActiveMask(Thread &thread) { thread.out[0] = LaneValue::of(thread.subgroup.frame().active); }

static void runElect(Thread &thread) {
  std::optional<int32_t> tile = thread.op<ElectOp>().getTile();
  thread.out[0] = LaneValue::of(thread.index() % (tile ? *tile : thread.subgroup.size) == 0);
}

//===----------------------------------------------------------------------===//
// Lane masks
//===----------------------------------------------------------------------===//

/// Bit i says whether `relation` holds between i and a lane. A lane that is no bit of the result gives poison.
template <typename Op> static void runLaneMask(Thread &thread, bool (*relation)(uint64_t bit, uint64_t lane)) {
  auto op = thread.op<Op>();
  unsigned bits = thread.outType().getIntOrFloatBitWidth();
  uint64_t lane = thread.index() % op.getTile().value_or(thread.subgroup.size);
  if (op.getLane())
    lane = thread.in[0].bits;
  if (lane >= bits)
    return;
  uint64_t mask = 0;
  for (unsigned bit = 0; bit < bits; ++bit)
    mask |= uint64_t(relation(bit, lane)) << bit;
  thread.out[0] = LaneValue::of(mask);
}

static void runLaneMaskLt(Thread &thread) {
  runLaneMask<LaneMaskLtOp>(thread, [](uint64_t bit, uint64_t lane) { return bit < lane; });
}
static void runLaneMaskLe(Thread &thread) {
  runLaneMask<LaneMaskLeOp>(thread, [](uint64_t bit, uint64_t lane) { return bit <= lane; });
}
static void runLaneMaskEq(Thread &thread) {
  runLaneMask<LaneMaskEqOp>(thread, [](uint64_t bit, uint64_t lane) { return bit == lane; });
}
static void runLaneMaskGe(Thread &thread) {
  runLaneMask<LaneMaskGeOp>(thread, [](uint64_t bit, uint64_t lane) { return bit >= lane; });
}
static void runLaneMaskGt(Thread &thread) {
  runLaneMask<LaneMaskGtOp>(thread, [](uint64_t bit, uint64_t lane) { return bit > lane; });
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
  table.addStrict<Log2SizeOp>(runLog2Size);
  table.addStrict<SubgroupIdOp>(runSubgroupId);
  table.addStrict<NumSubgroupsOp>(runNumSubgroups);
  table.addStrict<ElectOp>(runElect);
  table.addStrict<ActiveMaskOp>(runActiveMask);
  table.addStrict<LaneMaskLtOp>(runLaneMaskLt);
  table.addStrict<LaneMaskLeOp>(runLaneMaskLe);
  table.addStrict<LaneMaskEqOp>(runLaneMaskEq);
  table.addStrict<LaneMaskGeOp>(runLaneMaskGe);
  table.addStrict<LaneMaskGtOp>(runLaneMaskGt);
}

} // namespace qd::interp
