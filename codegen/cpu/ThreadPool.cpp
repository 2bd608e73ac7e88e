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
/// A part is taken in so many pieces.
static constexpr unsigned piecesOfPart = 8;
/// A part that its thread will have finished earlier is left to it.
static constexpr std::chrono::microseconds worthHelping(10);

static void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits for `isDone` for a while; whether it came true.
static bool lookOut(Clock::duration patience, unsigned roundsPerLook, llvm::function_ref<bool()> isDone) {
  auto start = Clock::now();
  do
    for (unsigned round = 0; round < roundsPerLook; ++round) {
      if (isDone())
        return true;
      pause();
    }
  while (Clock::now() - start < patience);
  return isDone();
}
static bool lookOut(llvm::function_ref<bool()> isDone) { return lookOut(patience, /*roundsPerLook=*/64, isDone); }

ThreadPool::ThreadPool(unsigned threads) : seats(std::min(std::max(threads, 1u), maxThreads) - 1) {
  auto enter = [](void *pool) -> void * {
    auto *entered = static_cast<ThreadPool *>(pool);
    entered->serve(++entered->begun);
    return nullptr;
  };
  // Where the process may start no more threads, those that there are do the work; a std::thread would end it.
  for (unsigned worker = 1; worker <= seats.size(); ++worker) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, enter, this))
      break;
    workers.push_back(thread);
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  wake.notify_all();
  for (pthread_t worker : workers)
    pthread_join(worker, nullptr);
}

ThreadPool::Run::Run(uint64_t count, Order order, unsigned threads, Body body)
    : body(body), numParts(order == Order::Parts ? threads : 1) {
  if (numParts > fewParts)
    many = std::vector<Part>(numParts);
  parts = numParts > fewParts ? many.data() : few;
  // Pieces small enough to even out, large enough that taking one costs nothing.
  piece = std::clamp<uint64_t>(count / (uint64_t(threads) * piecesOfPart), 1, 1024);
  helpers = std::min<uint64_t>(threads - 1, (count - 1) / piece);
  for (unsigned part = 0; part < numParts; ++part) {
    parts[part].next = count / numParts * part + std::min<uint64_t>(part, count % numParts);
    parts[part].end = count / numParts * (part + 1) + std::min<uint64_t>(part + 1, count % numParts);
  }
}

void ThreadPool::Run::carryOut(uint64_t begin, uint64_t end, unsigned worker) {
  if (body(begin, end, worker))
    return;
  for (unsigned part = 0; part < numParts; ++part)
    parts[part].next = parts[part].end;
}

void ThreadPool::Run::help(Part &part, unsigned worker) {
  while (part.getLeft()) {
    uint64_t begin = part.next.fetch_add(piece, std::memory_order_relaxed);
    if (begin < part.end)
      carryOut(begin, std::min(begin + piece, part.end), worker);
  }
}

/// Taking a piece waits for all stores of the one before, which a short piece is not worth: then the rest is one.
Clock::duration ThreadPool::Run::attend(Part &part, unsigned worker) {
  part.isAttended.store(true, std::memory_order_relaxed);
  auto start = Clock::now(), before = start;
  for (uint64_t size = piece; part.getLeft();) {
    uint64_t begin = part.next.fetch_add(size, std::memory_order_relaxed);
    if (begin >= part.end)
      break;
    carryOut(begin, std::min(begin + size, part.end), worker);
    auto now = Clock::now();
    if (now - before < worthHelping / piecesOfPart)
      size = piece * piecesOfPart;
    before = now;
  }
  return before - start;
}

void ThreadPool::Run::work(unsigned worker) {
  if (numParts == 1)
    return help(parts[0], worker);
  Part &own = parts[worker];
  uint64_t share = own.getLeft();
  Clock::duration spent = attend(own, worker);
  for (unsigned turn = 1; turn < numParts; ++turn) {
    Part &part = parts[(worker + turn) % numParts];
    // How long its thread will take, if it is as fast and still at work.
    uint64_t left = part.getLeft();
    std::chrono::duration<double> expected = spent * (double(left) / double(std::max<uint64_t>(share, 1)));
    if (left && expected < worthHelping && part.isAttended.load(std::memory_order_relaxed) &&
        lookOut(std::chrono::duration_cast<Clock::duration>(2 * expected), /*roundsPerLook=*/4,
                [&] { return !part.getLeft(); }))
      continue;
    help(part, worker);
  }
}

/// What a seat holds while its worker is busy.
static constexpr uintptr_t busy = 1;

/// The run that was put before the worker, or one that wants more helpers; null for none.
ThreadPool::Run *ThreadPool::take(Seat &seat) {
  Run *const atWork = reinterpret_cast<Run *>(busy);
  Run *run = seat.run.load();
  if (run)
    return seat.run.compare_exchange_strong(run, atWork) ? run : nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  if (runs.empty() || !seat.run.compare_exchange_strong(run, atWork))
    return nullptr;
  run = runs.front();
  runs.pop_front();
  waiting = runs.size();
  run->working.fetch_add(1);
  return run;
}

void ThreadPool::serve(unsigned worker) {
  Seat &seat = seats[worker - 1];
  auto isWanted = [&] { return seat.run.load() || waiting.load() || stopping.load(); };
  while (true) {
    if (!lookOut(isWanted)) {
      std::unique_lock<std::mutex> lock(mutex);
      seat.isAsleep = true;
      wake.wait(lock, isWanted);
      seat.isAsleep = false;
    }
    if (stopping)
      return;
    Run *run = take(seat);
    if (!run)
      continue;
    run->work(worker);
    // The seat first: once the caller knows that the worker has left, the run is gone and the next one may be here.
    seat.run = nullptr;
    if (run->working.fetch_sub(1) == 1 && awaiting.load()) {
      { std::lock_guard<std::mutex> lock(mutex); }
      left.notify_all();
    }
  }
}

void ThreadPool::run(uint64_t count, Order order, Body body) {
  if (!count)
    return;
  Run run(count, order, getNumThreads(), body);
  if (!run.helpers)
    return run.work(0);
  run.working.store(run.helpers, std::memory_order_relaxed);
  int sent = 0;
  bool areAsleep = false;
  for (Seat &seat : seats) {
    Run *none = nullptr;
    if (!seat.run.compare_exchange_strong(none, &run))
      continue;
    areAsleep |= seat.isAsleep.load();
    if (++sent == int(run.helpers))
      break;
  }
  bool wantsMore = sent < int(run.helpers);
  if (wantsMore)
    run.working.fetch_sub(run.helpers - sent);
  if (areAsleep || wantsMore) {
    std::lock_guard<std::mutex> lock(mutex);
    if (wantsMore) {
      runs.push_back(&run);
      waiting = runs.size();
    }
  }
  if (areAsleep)
    wake.notify_all();

  run.work(0);
  if (wantsMore) {
    std::lock_guard<std::mutex> lock(mutex);
    llvm::erase(runs, &run);
    waiting = runs.size();
  }
  auto haveLeft = [&] { return run.working.load() == 0; };
  if (haveLeft())
    return;
  // Who has not even begun is not waited for.
  for (Seat &seat : seats) {
    Run *mine = &run;
    if (seat.run.load() == mine && seat.run.compare_exchange_strong(mine, nullptr))
      run.working.fetch_sub(1);
  }
  if (lookOut(haveLeft))
    return;
  std::unique_lock<std::mutex> lock(mutex);
  ++awaiting;
  left.wait(lock, haveLeft);
  --awaiting;
}

} // namespace qd::cpu
