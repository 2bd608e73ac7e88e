//===- Reports.h - what threads of a launch on the cpu device print, and what ends it early ---------------===//
//
// Purpose: generated code calls these. A failed assert leaves the worker's blocks by a long jump: nothing behind it
// runs. Code in loops that may not end asks every now and then whether the launch has to (Checks.cpp), and leaves so,
// too.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_CPU_REPORTS_H
#define QD_CODEGEN_CPU_REPORTS_H

#include "codegen/LaunchWatch.h"
#include "codegen/PrintText.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include <atomic>

namespace qd::cpu {

/// Of one launch.
class Reports {
public:
  explicit Reports(LaunchWatch &watch) : watch(watch) {}

  /// Runs blocks, not or not to their end where the launch is over.
  void run(llvm::function_ref<void()> blocks);

  bool hasFailed() const { return failed; }
  /// Whether an assert has failed or the launch has to end; takes a look at the clock.
  bool isOver() const { return failed || watch.mustEnd(); }
  /// Of the failed asserts that were reached, the one with the lowest block and thread.
  const char *message = nullptr;
  uint64_t block = 0;
  unsigned thread = 0;

  PrintLog prints;
  void fail(const char *message, uint64_t block, unsigned thread);

private:
  LaunchWatch &watch;
  std::mutex mutex;
  std::atomic<bool> failed{false};
};

// The names that generated code has for them are in KernelEmitter.h.
void reportPrint(Reports *reports, const char *text, const uint8_t *values, uint64_t block);
[[noreturn]] void reportFailure(Reports *reports, const char *message, uint64_t block, uint32_t thread);
/// Leaves the worker's blocks where the launch is over.
void leaveIfOver(Reports *reports);
/// Lets other threads of the machine run.
void yieldProcessor();

} // namespace qd::cpu

#endif
