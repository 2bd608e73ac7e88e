//===- Memory.cpp - buffers, arrays and tables -----------------------------------------------===//

#include "codegen/interp/Memory.h"

#include "mlir/IR/BuiltinTypes.h"
#include <cstring>

using namespace mlir;

namespace qd::interp {

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

uint64_t readElement(const Array &array, int64_t element) {
  unsigned bytes = getStorageBytes(array.element);
  uint64_t bits = 0;
  memcpy(&bits, array.data + element * bytes, bytes);
  return bits;
}

void writeElement(Launch &launch, Array &array, int64_t element, uint64_t bits) {
  if (readElement(array, element) != bits)
    ++launch.memoryVersion;
  unsigned bytes = getStorageBytes(array.element);
  memcpy(array.data + element * bytes, &bits, bytes);
  if (array.isStatic())
    array.written[element] = true;
}

Array *findArray(Thread &thread, unsigned operand) {
  if (thread.in[operand].poison) {
    thread.fail("uses poison as an array", operand);
    return nullptr;
  }
  return &thread.block().arrays[thread.in[operand].bits];
}

static std::string countElements(const Array &array) {
  std::string text = array.name + ", which has ";
  llvm::raw_string_ostream stream(text);
  llvm::interleave(array.shape, stream, "x");
  if (!array.isStatic())
    stream << array.count;
  stream << (array.count == 1 ? " element" : " elements");
  return text;
}

std::optional<int64_t> findElement(Thread &thread, const Array &array, unsigned firstSubscript,
                                   ArrayRef<int64_t> literals) {
  ArrayRef<int64_t> extents = array.isStatic() ? array.shape : ArrayRef(array.count);
  int64_t element = 0;
  for (auto [literal, extent] : llvm::zip_equal(literals, extents)) {
    int64_t subscript = literal;
    SmallVector<unsigned, 1> operands;
    if (ShapedType::isDynamic(literal)) {
      LaneValue value = thread.in[firstSubscript];
      if (value.poison) {
        thread.fail("uses poison as a subscript", firstSubscript);
        return std::nullopt;
      }
      subscript = toInt(value.bits, thread.inType(firstSubscript)).getSExtValue();
      operands.push_back(firstSubscript++);
    }
    if (subscript < 0 || subscript >= extent) {
      thread.fail("subscript " + llvm::Twine(subscript) + " is out of bounds of " + countElements(array),
                  operands);
      return std::nullopt;
    }
    element = element * extent + subscript;
  }
  if (!checkArrived(thread, array, element))
    return std::nullopt;
  return element;
}

bool checkArrived(Thread &thread, const Array &array, int64_t element) {
  auto arrival = array.arriving.find(element);
  if (arrival == array.arriving.end())
    return true;
  const auto &[instruction, from] = arrival->second;
  thread.fail("accesses element " + llvm::Twine(element) + " of " + array.name + ", which the copy at " +
              printLocation(instruction->op->getLoc()) + " has yet to write: " +
              thread.block().launch.printThread(from) + " has not waited for it");
  return false;
}

bool isEnabled(Thread &thread, Value predicate, unsigned operand) {
  if (!predicate)
    return true;
  LaneValue value = thread.in[operand];
  if (value.poison && thread.block().launch.checks.poison) {
    thread.fail("is predicated by poison", operand);
    return false;
  }
  return value.bits;
}

bool checkWritten(Thread &thread, const Array &array, int64_t element, unsigned firstSubscript, unsigned end) {
  if (!array.isStatic() || array.written[element])
    return true;
  if (thread.block().launch.checks.uninitialized)
    thread.fail("reads element " + llvm::Twine(element) + " of " + array.name + " before it is written",
                llvm::to_vector(llvm::seq(firstSubscript, end)));
  return false;
}

LaneValue readValue(Thread &thread, const Array &array, int64_t element) {
  uint64_t bits = readElement(array, element);
  if (array.element.isInteger(1) && bits > 1) {
    thread.fail("reads a byte of " + llvm::Twine(bits) + " as i1 from " + array.name + ", expected 0 or 1");
    return {};
  }
  return LaneValue::of(bits);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static void runLoad(Thread &thread) {
  auto op = thread.op<LoadOp>();
  unsigned predicate = 1 + op.getIndices().size();
  if (!isEnabled(thread, op.getPredicate(), predicate)) {
    thread.out[0] = thread.in[predicate + 1];
    return;
  }
  Array *array = findArray(thread, 0);
  if (!array)
    return;
  if (array->access & KernelOp::WriteOnly)
    return thread.fail("reads " + array->name + ", which is writeonly");
  std::optional<int64_t> element = findElement(thread, *array, 1, op.getStaticIndices());
  if (!element)
    return;
  if (!checkWritten(thread, *array, *element, 1, predicate))
    return;
  Launch &launch = thread.block().launch;
  if (array->isSeenByAll && launch.checks.races && !launch.races.checkRead(thread, *array, *element))
    return;
  thread.out[0] = readValue(thread, *array, *element);
}

static void runStore(Thread &thread) {
  auto op = thread.op<StoreOp>();
  if (!isEnabled(thread, op.getPredicate(), 2 + op.getIndices().size()))
    return;
  Array *array = findArray(thread, 1);
  if (!array)
    return;
  if (array->access & KernelOp::ReadOnly)
    return thread.fail("writes " + array->name + ", which is readonly");
  std::optional<int64_t> element = findElement(thread, *array, 2, op.getStaticIndices());
  if (!element)
    return;
  Launch &launch = thread.block().launch;
  if (thread.in[0].poison && launch.checks.poison)
    return thread.fail("stores poison to element " + llvm::Twine(*element) + " of " + array->name, 0);
  if (array->isSeenByAll && launch.checks.races &&
      !launch.races.checkWrite(thread, *array, *element, thread.in[0].bits))
    return;
  writeElement(launch, *array, *element, thread.in[0].bits);
}

static void runSize(Thread &thread) {
  if (Array *array = findArray(thread, 0))
    thread.out[0] = LaneValue::of(toInt(array->count, thread.outType()));
}

static void runSharedAlloc(Thread &thread) {
  const Code &code = thread.block().launch.code;
  auto position = llvm::find(code.shared, thread.op<SharedAllocOp>());
  thread.out[0] = LaneValue::of(thread.block().launch.buffers.size() + (position - code.shared.begin()));
}

static void runConstantGet(Thread &thread) {
  const Code &code = thread.block().launch.code;
  auto position = llvm::find(code.tables, thread.op<ConstantGetOp>());
  thread.out[0] =
      LaneValue::of(thread.block().launch.buffers.size() + code.shared.size() + (position - code.tables.begin()));
}

/// Each time it is reached, the array holds nothing.
static void runPrivateAlloc(Thread &thread) {
  Block &block = thread.block();
  const Code &code = block.launch.code;
  size_t position = llvm::find(code.privates, thread.op<PrivateAllocOp>()) - code.privates.begin();
  size_t number = block.launch.buffers.size() + code.shared.size() + code.tables.size() +
                  position * block.numThreads() + thread.index();
  block.arrays[number].written.assign(block.arrays[number].count, false);
  thread.out[0] = LaneValue::of(number);
}

void addMemoryRules(RuleTable &table) {
  table.addThread<LoadOp>(runLoad);
  table.addThread<StoreOp>(runStore);
  table.addThread<SizeOp>(runSize);
  table.addThread<SharedAllocOp>(runSharedAlloc);
  table.addThread<ConstantGetOp>(runConstantGet);
  table.addThread<PrivateAllocOp>(runPrivateAlloc);
}

} // namespace qd::interp
