//===- ThreadPool.cpp --------------------------------------------------------------------------------------------===//

#include "codegen/cpu/ThreadPool.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <chrono>

namespace qd::cpu {

/// More threads than this serve no machine, and a process may not be able to start them.
static constexpr unsigned maxThreads = 256;
/// How long a thread looks out before it sleeps: a few times what waking it takes.
static constexpr std::chrono::microseconds patience(50);

static void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits for `isDone` for a while; whether it came true.
static bool lookOut(llvm::function_ref<bool()> isDone) {
  constexpr unsigned roundsPerLook = 64;
  auto start = std::chrono::steady_clock::now();
  do
    for (unsigned round = 0; round < roundsPerLook; ++round) {
      if (isDone())
        return true;
      pause();
    }
  while (std::chrono::steady_clock::now() - start < patience);
  return isDone();
}

ThreadPool::ThreadPool(unsigned threads) {
  for (unsigned worker = 1; worker < std::min(threads, maxThreads); ++worker)
    workers.emplace_back([this, worker] { serve(worker); });
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

ThreadPool::Run::Run(uint64_t count, Order order, unsigned threads, Body body)
    : body(body), numParts(order == Order::Parts ? threads : 1) {
  if (numParts > fewParts)
    many = std::vector<Part>(numParts);
  parts = numParts > fewParts ? many.data() : few;
  // Pieces small enough to even out, large enough that taking one costs nothing.
  piece = std::clamp<uint64_t>(count / (uint64_t(threads) * 8), 1, 1024);
  helpers = std::min<uint64_t>(threads - 1, (count - 1) / piece);
  for (unsigned part = 0; part < numParts; ++part) {
    parts[part].next = count / numParts * part + std::min<uint64_t>(part, count % numParts);
    parts[part].end = count / numParts * (part + 1) + std::min<uint64_t>(part + 1, count % numParts);
  }
}

void ThreadPool::Run::work(unsigned worker) {
  for (unsigned turn = 0; turn < numParts; ++turn) {
    Part &part = parts[(worker + turn) % numParts];
    while (part.next.load(std::memory_order_relaxed) < part.end) {
      uint64_t begin = part.next.fetch_add(piece, std::memory_order_relaxed);
      if (begin >= part.end)
        break;
      body(begin, std::min(begin + piece, part.end), worker);
    }
  }
}

void ThreadPool::serve(unsigned worker) {
  std::unique_lock<std::mutex> lock(mutex, std::defer_lock);
  auto isWanted = [&] { return stopping || waiting.load(std::memory_order_relaxed); };
  while (true) {
    lookOut([&] { return waiting.load(std::memory_order_relaxed) != 0; });
    lock.lock();
    if (!isWanted()) {
      ++asleep;
      wake.wait(lock, isWanted);
      --asleep;
    }
    if (stopping)
      return;
    Run *run = runs.front();
    run->working.fetch_add(1, std::memory_order_relaxed);
    if (++run->joined == run->helpers) {
      runs.pop_front();
      waiting.store(runs.size(), std::memory_order_relaxed);
    }
    lock.unlock();
    run->work(worker);
    lock.lock();
    if (run->working.fetch_sub(1, std::memory_order_release) == 1)
      left.notify_all();
    lock.unlock();
  }
}

void ThreadPool::run(uint64_t count, Order order, Body body) {
  if (!count)
    return;
  Run run(count, order, getNumThreads(), body);
  if (!run.helpers)
    return run.work(0);
  {
    std::lock_guard<std::mutex> lock(mutex);
    runs.push_back(&run);
    waiting.store(runs.size(), std::memory_order_relaxed);
    for (unsigned i = 0; i < std::min(asleep, run.helpers); ++i)
      wake.notify_one();
  }
  run.work(0);
  {
    std::lock_guard<std::mutex> lock(mutex);
    llvm::erase(runs, &run);
    waiting.store(runs.size(), std::memory_order_relaxed);
  }
  auto haveLeft = [&] { return run.working.load(std::memory_order_acquire) == 0; };
  if (lookOut(haveLeft))
    return;
  std::unique_lock<std::mutex> lock(mutex);
  left.wait(lock, haveLeft);
}

} // namespace qd::cpu
