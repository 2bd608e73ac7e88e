//===- Async.cpp - copies that run beside the thread ---------------------------------------------===//
//
// A copy reads its source when it starts and writes its target when it is waited for: the latest time that is allowed.
// In between, nobody may access what it writes, nor change what it has read.
//
//===----------------------------------------------------------------------===//

#include "codegen/interp/Memory.h"

using namespace mlir;

namespace qd::interp {

/// The first of the scalars that a copy's end names; nothing, and a report, where they are not all there or are not
/// aligned. Its subscripts are the operands from `firstSubscript` on.
static std::optional<int64_t> findElements(Thread &thread, const Array &array, unsigned firstSubscript,
                                           ArrayRef<int64_t> literals, int64_t count) {
  // Elements of a static array are neighbours across its rows.
  int64_t scalars = count * array.perElement;
  bool isRow = !array.isStatic() && array.extents.size() > 1;
  std::optional<int64_t> first = findElement(thread, array, firstSubscript, literals, isRow ? scalars : 1);
  if (!first)
    return std::nullopt;
  SmallVector<unsigned, 2> operands;
  for (unsigned i = 0; i < llvm::count(literals, ShapedType::kDynamic); ++i)
    operands.push_back(firstSubscript + i);
  int64_t element = *first / array.perElement;
  uint64_t address = *first * getStorageBytes(array.scalar);
  if (!array.isStatic())
    address += reinterpret_cast<uintptr_t>(array.data);
  if (count > 1 && array.strides.back() != int64_t(array.perElement)) {
    thread.fail("copies neighbours of " + array.name + ", which has strides");
    return std::nullopt;
  }
  if (address % (scalars * getStorageBytes(array.scalar)) != 0) {
    thread.fail("copies " + llvm::Twine(count) + " elements from or to element " + llvm::Twine(element) + " of " +
                    array.name + ", expected a multiple of " + llvm::Twine(count),
                operands);
    return std::nullopt;
  }
  if (element + count > array.count()) {
    thread.fail("copies " + llvm::Twine(count) + " elements from or to element " + llvm::Twine(element) + " of " +
                    array.name + ", which has " + llvm::Twine(array.count()),
                operands);
    return std::nullopt;
  }
  return first;
}

static void runAsyncCopy(Thread &thread) {
  auto op = thread.op<AsyncCopyOp>();
  Block &block = thread.block();
  Launch &launch = block.launch;
  int64_t count = op.getElements();
  unsigned target = 1 + op.getSourceIndices().size(), predicate = target + 1 + op.getTargetIndices().size();
  Array *to = findArray(thread, target);
  if (!to)
    return;
  std::optional<int64_t> firstOfTarget = findElements(thread, *to, target + 1, op.getStaticTarget(), count);
  if (!firstOfTarget)
    return;
  int64_t scalars = count * to->perElement;
  for (int64_t i = 1; i < scalars; ++i)
    if (!checkArrived(thread, *to, *firstOfTarget + i))
      return;
  AsyncTransfer transfer{&thread.instruction, nullptr, 0, to, *firstOfTarget, {}};
  transfer.bits.assign(scalars, 0);
  if (isEnabled(thread, op.getPredicate(), predicate)) {
    Array *from = findArray(thread, 0);
    if (!from)
      return;
    if (from->access & KernelOp::WriteOnly)
      return thread.fail("reads " + from->name + ", which is writeonly");
    std::optional<int64_t> first = findElements(thread, *from, 1, op.getStaticSource(), count);
    if (!first)
      return;
    transfer.source = from;
    transfer.firstOfSource = *first;
    for (int64_t i = 0; i < scalars; ++i) {
      if (launch.checks.races && !launch.races.checkRead(thread, *from, *first + i))
        return;
      transfer.bits[i] = readElement(*from, *first + i);
    }
  } else if (launch.failed()) {
    return;
  }
  for (int64_t i = 0; i < scalars; ++i)
    to->arriving[*firstOfTarget + i] = {&thread.instruction, thread.index()};
  block.async[thread.index()].open.push_back(std::move(transfer));
}

static void runAsyncCommit(Thread &thread) {
  AsyncQueue &queue = thread.block().async[thread.index()];
  queue.groups.push_back(std::move(queue.open));
  queue.open.clear();
}

/// The copy's writes, as accesses of the copy itself.
static void finish(Thread &thread, const AsyncTransfer &transfer) {
  Launch &launch = thread.block().launch;
  Thread copier{thread.subgroup, *transfer.instruction, thread.lane, {}, {}};
  for (auto [i, bits] : llvm::enumerate(transfer.bits)) {
    if (transfer.source && readElement(*transfer.source, transfer.firstOfSource + i) != bits)
      return thread.fail("finds element " + llvm::Twine(transfer.firstOfSource + i) + " of " + transfer.source->name +
                         " changed under the copy at " + printLocation(transfer.instruction->op->getLoc()));
    int64_t element = transfer.firstOfTarget + i;
    transfer.target->arriving.erase(element);
    if (launch.checks.races && !launch.races.checkWrite(copier, *transfer.target, element, bits))
      return;
    writeElement(launch, *transfer.target, element, bits);
  }
}

static void runAsyncWait(Thread &thread) {
  AsyncQueue &queue = thread.block().async[thread.index()];
  for (; queue.groups.size() > thread.op<AsyncWaitOp>().getGroups(); queue.groups.pop_front())
    for (const AsyncTransfer &transfer : queue.groups.front()) {
      finish(thread, transfer);
      if (thread.block().launch.failed())
        return;
    }
}

void addAsyncRules(RuleTable &table) {
  table.addThread<AsyncCopyOp>(runAsyncCopy);
  table.addThread<AsyncCommitOp>(runAsyncCommit);
  table.addThread<AsyncWaitOp>(runAsyncWait);
}

} // namespace qd::interp
