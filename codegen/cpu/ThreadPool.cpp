//===- ThreadPool.cpp --------------------------------------------------------------------------------------------===//

#include "codegen/cpu/ThreadPool.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace qd::cpu {

/// More threads than this serve no machine, and a process may not be able to start them.
static constexpr unsigned maxThreads = 256;

ThreadPool::ThreadPool(unsigned threads) {
  for (unsigned i = 1; i < std::min(threads, maxThreads); ++i)
    workers.emplace_back([this] { serve(); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  wake.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::work(Run &run, unsigned worker) {
  while (true) {
    uint64_t begin = run.next.fetch_add(run.piece, std::memory_order_relaxed);
    if (begin >= run.count)
      return;
    run.body(begin, std::min(begin + run.piece, run.count), worker);
  }
}

void ThreadPool::serve() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    wake.wait(lock, [&] { return stopping || !runs.empty(); });
    if (stopping)
      return;
    Run *run = runs.front();
    unsigned worker = ++run->helpers;
    ++run->working;
    // A run needs no more helpers than pieces beside the caller's.
    if (run->helpers >= std::min<uint64_t>(workers.size(), (run->count - 1) / run->piece))
      runs.pop_front();
    lock.unlock();
    work(*run, worker);
    lock.lock();
    if (--run->working == 0)
      left.notify_all();
  }
}

void ThreadPool::run(uint64_t count, uint64_t piece, Body body) {
  Run run{count, piece, body};
  bool shared = !workers.empty() && count > piece;
  if (shared) {
    std::lock_guard<std::mutex> lock(mutex);
    runs.push_back(&run);
    uint64_t wanted = (count - 1) / piece;
    if (wanted < workers.size())
      for (uint64_t i = 0; i < wanted; ++i)
        wake.notify_one();
    else
      wake.notify_all();
  }
  work(run, 0);
  if (!shared)
    return;
  std::unique_lock<std::mutex> lock(mutex);
  llvm::erase(runs, &run);
  left.wait(lock, [&] { return run.working == 0; });
}

} // namespace qd::cpu
