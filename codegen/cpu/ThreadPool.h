//===- ThreadPool.h - workers that share the blocks of a launch -------------------------------------------------===//
//
// Purpose: runs the numbers [0, count) on several threads, in ascending pieces, the caller among them. Pieces are
// handed out in order and a thread finishes one before it takes the next, so a block may wait for blocks of lower
// numbers that have started. Several callers may run at once.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_CPU_THREADPOOL_H
#define QD_CODEGEN_CPU_THREADPOOL_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace qd::cpu {

class ThreadPool {
public:
  /// `threads` counts the caller; 1 starts none.
  explicit ThreadPool(unsigned threads);
  ~ThreadPool();

  unsigned getNumThreads() const { return workers.size() + 1; }

  /// Calls `body(begin, end, worker)`; workers of one run have different numbers below getNumThreads().
  using Body = llvm::function_ref<void(uint64_t begin, uint64_t end, unsigned worker)>;
  void run(uint64_t count, uint64_t piece, Body body);

private:
  struct Run {
    uint64_t count, piece;
    Body body;
    std::atomic<uint64_t> next{0};
    unsigned helpers = 0; ///< workers that have joined; guarded by the pool's mutex
    unsigned working = 0; ///< those that have not left
  };
  static void work(Run &run, unsigned worker);
  void serve();

  std::mutex mutex;
  std::condition_variable wake, left;
  std::deque<Run *> runs;
  bool stopping = false;
  std::vector<std::thread> workers;
};

} // namespace qd::cpu

#endif
