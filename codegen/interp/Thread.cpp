//===- Thread.cpp - packed bits, prints, asserts and pauses --------------------------------------===//

#include "codegen/interp/Machine.h"

#include "ir/PrintFormat.h"

using namespace mlir;

namespace qd::interp {

static void runPackBits(Thread &thread) {
  uint64_t word = 0;
  for (auto [i, bit] : llvm::enumerate(thread.in))
    word |= uint64_t(bit.bits & 1) << i;
  thread.out[0] = LaneValue::of(word);
}

static void runUnpackBits(Thread &thread) {
  for (auto [i, bit] : llvm::enumerate(thread.out))
    bit = LaneValue::of(thread.in[0].bits >> i & 1);
}

/// A value as every executor prints it; poison by that word.
static std::string printOperand(LaneValue value, Type type) {
  if (value.poison)
    return "poison";
  if (isa<IntegerType>(type)) {
    APInt bits = toInt(value.bits, type);
    return std::to_string(type.isInteger(1) ? int64_t(bits.getZExtValue()) : bits.getSExtValue());
  }
  APFloat number = toFloat(value.bits, type);
  bool isInexact;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &isInexact);
  double wide = number.convertToDouble();
  return formatPrintf("%." + std::to_string(getPrintDigits(type)) + "g", reinterpret_cast<const uint8_t *>(&wide));
}

static void runPrint(Thread &thread) {
  auto op = thread.op<PrintOp>();
  TypeRange types = op.getValues().getTypes();
  std::vector<std::string> pieces = llvm::cantFail(splitPrintFormat(spreadPrintFormat(op.getFormat(), types)));
  unsigned numScalars = pieces.size() - 1;
  if (op.getPredicate()) {
    LaneValue predicate = thread.in[numScalars];
    if (predicate.poison && thread.block().launch.checks.poison)
      return thread.fail("is predicated by poison", numScalars);
    if (!predicate.bits)
      return;
  }
  std::string line = pieces[0];
  for (unsigned i = 0; i < numScalars; ++i)
    line += printOperand(thread.in[i], thread.inType(i)) + pieces[i + 1];
  thread.block().launch.prints.add(thread.block().number(), line + "\n");
}

static void runAssert(Thread &thread) {
  if (thread.in[0].poison && thread.block().launch.checks.poison)
    return thread.fail("has poison as its condition", 0);
  if (!thread.in[0].bits)
    thread.fail("fails: " + thread.op<AssertOp>().getMessage(), 0);
}

/// Subgroups take turns anyway.
static void runSleep(Thread &thread) {
  auto op = thread.op<SleepOp>();
  if (op.getDuration() && thread.in[0].poison && thread.block().launch.checks.poison)
    thread.fail("sleeps for poison", 0);
}

void addThreadRules(RuleTable &table) {
  table.addStrict<PackBitsOp>(runPackBits);
  table.addStrict<UnpackBitsOp>(runUnpackBits);
  table.addThread<PrintOp>(runPrint);
  table.addThread<AssertOp>(runAssert);
  table.addThread<SleepOp>(runSleep);
}

} // namespace qd::interp
