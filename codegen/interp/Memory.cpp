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
  unsigned bytes = getStorageBytes(array.scalar);
  uint64_t bits = 0;
  memcpy(&bits, array.data + element * bytes, bytes);
  return bits;
}

void writeElement(Launch &launch, Array &array, int64_t element, uint64_t bits) {
  if (readElement(array, element) != bits)
    ++launch.memoryVersion;
  unsigned bytes = getStorageBytes(array.scalar);
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
  llvm::interleave(array.extents, stream, "x");
  stream << (array.count() == 1 ? " element" : " elements");
  return text;
}

std::optional<int64_t> readNumber(Thread &thread, int64_t literal, unsigned &nextOperand, StringRef what) {
  if (!ShapedType::isDynamic(literal))
    return literal;
  unsigned operand = nextOperand++;
  LaneValue value = thread.in[operand];
  if (!value.poison)
    return toInt(value.bits, thread.inType(operand)).getSExtValue();
  thread.fail("uses poison as a " + what, operand);
  return std::nullopt;
}

/// The number of an access's i-th scalar.
static int64_t getScalar(const Array &array, int64_t first, unsigned i) {
  return array.perElement > 1 ? first + i : first + i * array.strides.back();
}

std::optional<int64_t> findElement(Thread &thread, const Array &array, unsigned firstSubscript,
                                   ArrayRef<int64_t> literals, unsigned scalars) {
  int64_t found = 0;
  unsigned next = firstSubscript;
  for (auto [dim, literal] : llvm::enumerate(literals)) {
    unsigned operand = next;
    std::optional<int64_t> subscript = readNumber(thread, literal, next, "subscript");
    if (!subscript)
      return std::nullopt;
    int64_t extent = array.extents[dim], more = dim + 1 == literals.size() ? scalars / array.perElement - 1 : 0;
    if (*subscript < 0 || *subscript >= extent || more >= extent - *subscript) {
      std::string text = "subscript " + std::to_string(*subscript) + " is";
      if (more)
        text = "subscripts " + std::to_string(*subscript) + " to " + std::to_string(*subscript + more) + " are";
      thread.fail(text + " out of bounds of " + countElements(array),
                  llvm::to_vector<1>(llvm::seq(operand, next)));
      return std::nullopt;
    }
    found += *subscript * array.strides[dim];
  }
  for (unsigned i = 0; i < scalars; ++i)
    if (!checkArrived(thread, array, getScalar(array, found, i)))
      return std::nullopt;
  return found;
}

bool checkArrived(Thread &thread, const Array &array, int64_t element) {
  auto arrival = array.arriving.find(element);
  if (arrival == array.arriving.end())
    return true;
  const auto &[instruction, from] = arrival->second;
  thread.fail("accesses element " + llvm::Twine(element / array.perElement) + " of " + array.name +
              ", which the copy at " + printLocation(instruction->op->getLoc()) +
              " has yet to write: " + thread.block().launch.printThread(from) + " has not waited for it");
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
    thread.fail("reads element " + llvm::Twine(element / array.perElement) + " of " + array.name +
                    " before it is written",
                llvm::to_vector(llvm::seq(firstSubscript, end)));
  return false;
}

LaneValue readValue(Thread &thread, const Array &array, int64_t element) {
  uint64_t bits = readElement(array, element);
  if (array.scalar.isInteger(1) && bits > 1) {
    thread.fail("reads a byte of " + llvm::Twine(bits) + " as i1 from " + array.name + ", expected 0 or 1");
    return {};
  }
  return LaneValue::of(bits);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Reports an address that is not aligned as the access promises. A shared array begins at a multiple of all that can
/// be promised.
static bool checkAlign(Thread &thread, const Array &array, int64_t scalar, std::optional<uint32_t> align) {
  if (!align || !thread.block().launch.checks.promises)
    return true;
  uint64_t address = scalar * getStorageBytes(array.scalar);
  if (!array.isStatic())
    address += reinterpret_cast<uintptr_t>(array.data);
  if (address % *align == 0)
    return true;
  thread.fail("promises an address that is a multiple of " + llvm::Twine(*align) + ", element " +
              llvm::Twine(scalar / array.perElement) + " of " + array.name + " lies " +
              llvm::Twine(address % *align) + " bytes past one");
  return false;
}

static void runLoad(Thread &thread) {
  auto op = thread.op<LoadOp>();
  unsigned predicate = 1 + op.getIndices().size(), scalars = thread.out.size();
  if (!isEnabled(thread, op.getPredicate(), predicate)) {
    for (unsigned i = 0; i < scalars; ++i)
      thread.out[i] = thread.in[predicate + 1 + i];
    return;
  }
  Array *array = findArray(thread, 0);
  if (!array)
    return;
  if (array->access & KernelOp::WriteOnly)
    return thread.fail("reads " + array->name + ", which is writeonly");
  std::optional<int64_t> first = findElement(thread, *array, 1, op.getStaticIndices(), scalars);
  if (!first || !checkAlign(thread, *array, *first, op.getAlign()))
    return;
  Launch &launch = thread.block().launch;
  for (unsigned i = 0; i < scalars; ++i) {
    int64_t scalar = getScalar(*array, *first, i);
    if (!checkWritten(thread, *array, scalar, 1, predicate))
      continue;
    if (array->isSeenByAll && launch.checks.races && !launch.races.checkRead(thread, *array, scalar))
      return;
    thread.out[i] = readValue(thread, *array, scalar);
  }
}

static void runStore(Thread &thread) {
  auto op = thread.op<StoreOp>();
  unsigned scalars = getNumScalars(op.getValue().getType());
  if (!isEnabled(thread, op.getPredicate(), scalars + 1 + op.getIndices().size()))
    return;
  Array *array = findArray(thread, scalars);
  if (!array)
    return;
  if (array->access & KernelOp::ReadOnly)
    return thread.fail("writes " + array->name + ", which is readonly");
  std::optional<int64_t> first = findElement(thread, *array, scalars + 1, op.getStaticIndices(), scalars);
  if (!first || !checkAlign(thread, *array, *first, op.getAlign()))
    return;
  Launch &launch = thread.block().launch;
  for (unsigned i = 0; i < scalars; ++i) {
    int64_t scalar = getScalar(*array, *first, i);
    if (thread.in[i].poison && launch.checks.poison)
      return thread.fail("stores poison to element " + llvm::Twine(scalar / array->perElement) + " of " + array->name,
                         i);
    if (array->isSeenByAll && launch.checks.races &&
        !launch.races.checkWrite(thread, *array, scalar, thread.in[i].bits))
      return;
    writeElement(launch, *array, scalar, thread.in[i].bits);
  }
}

static void runSize(Thread &thread) {
  std::optional<uint32_t> dim = thread.op<SizeOp>().getDim();
  if (Array *array = findArray(thread, 0))
    thread.out[0] = LaneValue::of(toInt(dim ? array->extents[*dim] : array->count(), thread.outType()));
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
  block.arrays[number].written.assign(block.arrays[number].written.size(), false);
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
