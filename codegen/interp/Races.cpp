//===- Races.cpp - finds accesses that nothing puts in order ---------------------------------===//

#include "codegen/interp/Races.h"

#include "codegen/interp/Machine.h"

using namespace mlir;

namespace qd::interp {

RaceDetector::Access RaceDetector::describe(const Thread &thread) {
  return {&thread.instruction,          thread.block().number(),      thread.index(), thread.block().barriers,
          thread.subgroup.firstThread, thread.subgroup.syncs};
}

bool RaceDetector::isOrdered(const Access &earlier, const Access &later) {
  if (!earlier.instruction)
    return true;
  if (earlier.block != later.block)
    return false;
  if (earlier.thread == later.thread || earlier.barriers < later.barriers)
    return true;
  return earlier.firstOfSubgroup == later.firstOfSubgroup && earlier.syncs < later.syncs;
}

bool RaceDetector::report(const Thread &thread, const Array &array, int64_t element, const Access &earlier,
                          const char *verb) {
  Launch &launch = thread.block().launch;
  std::string place = launch.printPlace(earlier.block, earlier.thread);
  thread.fail("races on element " + llvm::Twine(element) + " of " + array.name + ": " + place + " " + verb + " it at " +
              printLocation(earlier.instruction->op->getLoc()) + ", with no barrier of both in between");
  return false;
}

static const uint8_t *getAddress(const Array &array, int64_t element) {
  return array.data + element * getStorageBytes(array.element);
}

bool RaceDetector::checkRead(const Thread &thread, const Array &array, int64_t element) {
  History &history = memory[getAddress(array, element)];
  Access access = describe(thread);
  if (!isOrdered(history.write, access))
    return report(thread, array, element, history.write, "writes");
  if (isOrdered(history.reads[0], access))
    history.reads[0] = access;
  else
    history.reads[1] = access;
  return true;
}

bool RaceDetector::checkWrite(const Thread &thread, const Array &array, int64_t element, uint64_t bits) {
  History &history = memory[getAddress(array, element)];
  Access access = describe(thread);
  if (!isOrdered(history.write, access) && history.bits != bits)
    return report(thread, array, element, history.write, "writes");
  for (const Access &read : history.reads)
    if (!isOrdered(read, access))
      return report(thread, array, element, read, "reads");
  history = {access, bits, {}};
  return true;
}

void RaceDetector::forget(const Block &block) {
  for (const Array &array : block.arrays)
    if (array.isShared())
      for (int64_t element = 0; element < array.count; ++element)
        memory.erase(getAddress(array, element));
}

} // namespace qd::interp
