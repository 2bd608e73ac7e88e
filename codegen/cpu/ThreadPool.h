//===- ThreadPool.h - workers that share the blocks of a launch -------------------------------------------------===//
//
// Purpose: runs the numbers [0, count) on several threads, the caller among them. Each thread has a part of its own, the
// same one in each run of a count, so that what it wrote is still in its caches; it takes that part in ascending pieces
// and then helps the others with theirs, unless they are about to finish: what moves to other caches costs more than
// such a wait, in this run and in the next one. In order, all share one part: pieces are handed out in ascending order and a
// thread finishes one before it takes the next, so a number may wait for lower ones, which have started.
//
// A launch is often shorter than a system call: threads that have run out of work look for more for a while before they
// sleep, and a caller for those that still work. A run is put before each idle thread, in a cache line of its own, so
// that both sides touch few lines of each other. Several callers may run at once: who is busy joins later.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_CPU_THREADPOOL_H
#define QD_CODEGEN_CPU_THREADPOOL_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <pthread.h>
#include <vector>

namespace qd::cpu {

using Clock = std::chrono::steady_clock;

class ThreadPool {
public:
  /// `threads` counts the caller; 1 starts none.
  explicit ThreadPool(unsigned threads);
  ~ThreadPool();

  unsigned getNumThreads() const { return workers.size() + 1; }

  enum class Order { Parts, Ascending };
  /// Calls `body(begin, end, worker)`; workers of one run have different numbers below getNumThreads(). Where it returns
  /// false no further pieces are handed out.
  using Body = llvm::function_ref<bool(uint64_t begin, uint64_t end, unsigned worker)>;
  void run(uint64_t count, Order order, Body body);

private:
  /// Numbers that are handed out in pieces; alone in its cache line.
  struct alignas(64) Part {
    std::atomic<uint64_t> next{0};
    uint64_t end = 0;
    std::atomic<bool> isAttended{false}; ///< its own thread has come

    uint64_t getLeft() const {
      uint64_t from = next.load(std::memory_order_relaxed);
      return from < end ? end - from : 0;
    }
  };
  struct Run {
    Run(uint64_t count, Order order, unsigned threads, Body body);
    void work(unsigned worker);
    Clock::duration attend(Part &part, unsigned worker);
    void help(Part &part, unsigned worker);
    /// Calls the body, and leaves nothing to take where it returns false.
    void carryOut(uint64_t begin, uint64_t end, unsigned worker);

    uint64_t piece;
    unsigned helpers; ///< workers beside the caller that it has use for
    Body body;
    unsigned numParts;
    Part *parts;
    /// The first ones need no memory of the heap.
    static constexpr unsigned fewParts = 8;
    Part few[fewParts];
    std::vector<Part> many;
    alignas(64) std::atomic<int> working{0}; ///< workers that were sent here less those that have left
  };
  struct alignas(64) Seat {
    std::atomic<Run *> run{nullptr}; ///< what its worker shall take; a mark while it is at one
    std::atomic<bool> isAsleep{false};
  };
  void serve(unsigned worker);
  Run *take(Seat &seat);

  std::mutex mutex;
  std::condition_variable wake, left;
  std::deque<Run *> runs;           ///< that want more helpers; guarded by the mutex
  std::atomic<unsigned> waiting{0}; ///< their number
  std::atomic<unsigned> awaiting{0}; ///< callers that sleep until their helpers have left
  std::atomic<bool> stopping{false};
  std::vector<Seat> seats;
  std::vector<pthread_t> workers;
  std::atomic<unsigned> begun{0}; ///< workers that have numbers
};

} // namespace qd::cpu

#endif
