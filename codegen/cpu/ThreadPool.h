//===- ThreadPool.h - workers that share the blocks of a launch -------------------------------------------------===//
//
// Purpose: runs the numbers [0, count) on several threads, the caller among them. Each thread has a part of its own, the
// same one in each run of a count, so that what it wrote is still in its caches; it takes that part in ascending pieces
// and then helps the others with theirs, unless they are about to finish: what moves to other caches costs more than
// such a wait, in this run and in the next one. In order, all share one part: pieces are handed out in ascending order and a
// thread finishes one before it takes the next, so a number may wait for lower ones, which have started.
//
// A launch is often shorter than a system call: threads that have run out of work look for more for a while before they
// sleep, and a caller for those that still work. What a thread shall do is put before it in a cache line of its own, its
// seat, for each line that moves from one core to another takes a tenth of a microsecond. Of a run that will be over
// before help arrives a seat gets its whole part; of another one, the run, whose parts it then takes piece by piece.
// Several callers may run at once: who is busy joins longer runs later.
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

  /// How long runs of one kind take; their callers keep it from one to the next.
  class Pace {
  public:
    /// Whether a run of as many numbers is expected to be over before it would be worth helping with.
    bool isShort(uint64_t count) const;
    /// How many numbers of such a run the caller gets more than each of the other threads, who come later.
    uint64_t getLead(uint64_t count, unsigned threads) const;
    /// How many numbers a thread does in a while; 1 where that is not known.
    uint64_t getCount(Clock::duration duration, unsigned threads) const;
    void note(uint64_t count, Clock::duration taken);

  private:
    /// Nanoseconds of a run, over its numbers: the last one's, the one's before, about the fastest one's; 0 for not known.
    std::atomic<float> last{0}, before{0}, fastest{0};
  };

  enum class Order { Parts, Ascending };
  /// Calls `body(begin, end, worker)`; workers of one run have different numbers below getNumThreads(). Where it returns
  /// false no further pieces are handed out. Pieces last at least as long as given, if a thread's part does.
  using Body = llvm::function_ref<bool(uint64_t begin, uint64_t end, unsigned worker)>;
  /// Called some times a second while the caller waits for others.
  using Look = llvm::function_ref<void()>;
  void run(uint64_t count, Order order, Pace &pace, Body body, Look look = [] {}, Clock::duration leastPiece = {});

private:
  struct Range {
    uint64_t begin, end;
  };
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
    Run(uint64_t count, uint64_t leastPiece, Order order, unsigned threads, Body body, uintptr_t token);
    void work(unsigned worker);
    Clock::duration attend(Part &part, unsigned worker);
    void help(Part &part, unsigned worker);
    /// Calls the body, and leaves nothing to take where it returns false.
    void carryOut(uint64_t begin, uint64_t end, unsigned worker);

    uint64_t piece;
    unsigned helpers; ///< workers beside the caller that it has use for
    Body body;
    uintptr_t token;
    unsigned numParts;
    Part *parts;
    /// The first ones need no memory of the heap.
    static constexpr unsigned fewParts = 8;
    Part few[fewParts];
    std::vector<Part> many;
  };

  /// The state is `idle`, or the token of a run (an address) and what it has to do with the seat:
  ///   idle -> claimed -> offered   by the run's caller, who writes the members below in between
  ///   offered -> idle              by the caller, who carries it out instead
  ///   offered or idle -> taken     by the worker, who may read them from then on
  ///   taken -> idle                by the worker, who has then no more to do with the run
  /// All are sequentially consistent. A claim sees what was done before the worker's last `idle`, and taking sees what was
  /// written before the offer. Whoever goes to sleep says so (`isAsleep`, `awaiting`) and then looks at the state once more,
  /// and who changes the state looks whether anybody sleeps afterwards: one of the two sees the other. A token may stand
  /// for a later run of the same caller, but then no worker is at the earlier one.
  struct alignas(64) Seat {
    std::atomic<uintptr_t> state{idle};
    std::atomic<bool> isAsleep{false};
    Run *run = nullptr; ///< null where only [begin, end) is offered
    Body body;
    uint64_t begin = 0, end = 0;
  };
  static constexpr uintptr_t idle = 0, claimed = 1, offered = 2, taken = 3, actions = 3;

  static Range getPart(uint64_t count, unsigned part, unsigned numParts);
  bool offer(Seat &seat, uintptr_t token, Run *run, Body body, Range range);
  bool withdraw(Seat &seat, uintptr_t token);
  void wakeAll();
  void awaitAll(uintptr_t token, Look look);
  void runShort(uint64_t count, uint64_t lead, Body body, uintptr_t token, Look look);
  void runLong(Run &run, Look look);
  void serve(unsigned worker);
  bool take(Seat &seat);
  void carryOut(Seat &seat, unsigned worker);

  std::mutex mutex;
  std::condition_variable wake, left;
  std::atomic<int> wakers{-1}; ///< the processor of who woke workers last
  std::deque<Run *> runs; ///< that want more helpers; guarded by the mutex
  /// What those look at who wait.
  alignas(64) std::atomic<unsigned> waiting{0}; ///< how many runs want more helpers
  std::atomic<unsigned> awaiting{0};            ///< callers that sleep until their helpers have left
  std::atomic<bool> stopping{false};
  std::vector<Seat> seats;
  std::vector<pthread_t> workers;
  std::atomic<unsigned> begun{0}; ///< workers that have numbers
};

} // namespace qd::cpu

#endif
