//===- Reports.cpp - prints and failed asserts of a launch ----------------------------------------------===//

#include "codegen/cpu/Reports.h"

#include <csetjmp>
#include <thread>

namespace qd::cpu {

/// Where this worker goes on after an assert.
static thread_local std::jmp_buf *escape = nullptr;

void Reports::run(llvm::function_ref<void()> blocks) {
  if (failed)
    return;
  std::jmp_buf here;
  escape = &here;
  if (setjmp(here) == 0)
    blocks();
  escape = nullptr;
}

void Reports::fail(const char *text, uint64_t inBlock, unsigned inThread) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!message || std::pair(inBlock, inThread) < std::pair(block, thread)) {
    message = text;
    block = inBlock;
    thread = inThread;
  }
  failed = true;
}

void reportPrint(Reports *reports, const char *text, const uint8_t *values, uint64_t block) {
  reports->prints.add(block, formatPrintf(text, values));
}

void reportFailure(Reports *reports, const char *message, uint64_t block, uint32_t thread) {
  reports->fail(message, block, thread);
  std::longjmp(*escape, 1);
}

void leaveIfOver(Reports *reports) {
  if (reports->isOver())
    std::longjmp(*escape, 1);
}

void yieldProcessor() { std::this_thread::yield(); }

} // namespace qd::cpu
