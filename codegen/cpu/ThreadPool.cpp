//===- ThreadPool.cpp --------------------------------------------------------------------------------------------===//

#include "codegen/cpu/ThreadPool.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <bitset>
#include <chrono>
#ifdef __linux__
#include <sched.h>
#endif

namespace qd::cpu {

/// More threads than this serve no machine, and a process may not be able to start them.
static constexpr unsigned maxThreads = 256;
/// How long a thread looks out before it sleeps: a few times what waking it takes.
static constexpr std::chrono::microseconds patience(50);
/// A part is taken in so many pieces.
static constexpr unsigned piecesOfPart = 8;
/// A part that its thread will have finished earlier is left to it.
static constexpr std::chrono::microseconds worthHelping(10);
/// A run that lasts no longer has no pieces: a thread that falls behind costs about as much as helping it.
static constexpr std::chrono::microseconds shortRun(20);
/// Between two looks of a caller that waits.
static constexpr std::chrono::milliseconds lookPause(20);
/// So much later than its caller an awake thread begins with a run, and is seen to have ended.
static constexpr std::chrono::nanoseconds arrival(400);

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

/// The processor that the thread is on; -1 where that is not known.
static int getProcessor() {
#ifdef __linux__
  return sched_getcpu();
#else
  return -1;
#endif
}

/// Takes the thread to another one of its processors if it is on this one. Linux in a virtual machine wakes a thread on the
/// processor of who wakes it though another one is idle: such a machine's idle processors look as if they were taken away.
static void leaveProcessor([[maybe_unused]] int processor) {
#ifdef __linux__
  cpu_set_t allowed;
  if (processor < 0 || sched_getcpu() != processor || sched_getaffinity(0, sizeof allowed, &allowed))
    return;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) && !sched_setaffinity(0, sizeof others, &others))
    sched_setaffinity(0, sizeof allowed, &allowed);
#endif
}

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

/// One run that was interrupted says nothing of the next one.
bool ThreadPool::Pace::isShort(uint64_t count) const {
  float each = std::min(last.load(std::memory_order_relaxed), before.load(std::memory_order_relaxed));
  return each > 0 && each * float(count) < float(std::chrono::nanoseconds(shortRun).count());
}

uint64_t ThreadPool::Pace::getLead(uint64_t count, unsigned threads) const {
  float each = fastest.load(std::memory_order_relaxed) * float(threads);
  float lead = float(std::chrono::nanoseconds(arrival).count()) / std::max(each, 1e-3f);
  return std::min<uint64_t>(lead, count / (2 * threads));
}

uint64_t ThreadPool::Pace::getCount(Clock::duration duration, unsigned threads) const {
  float each = fastest.load(std::memory_order_relaxed) * float(threads);
  float wanted = float(std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
  return each > 0 ? uint64_t(std::clamp(wanted / each, 1.0f, 1e9f)) : 1;
}

/// Parts depend on the fastest run: what moves from one part to another takes longer than any of them.
void ThreadPool::Pace::note(uint64_t count, Clock::duration taken) {
  float all = float(std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count());
  float now = std::max(all, 1.0f) / float(count), known = fastest.load(std::memory_order_relaxed);
  before.store(last.load(std::memory_order_relaxed), std::memory_order_relaxed);
  last.store(now, std::memory_order_relaxed);
  if (!known || now < 0.75f * known)
    fastest.store(now, std::memory_order_relaxed);
}

ThreadPool::Range ThreadPool::getPart(uint64_t count, unsigned part, unsigned numParts) {
  uint64_t each = count / numParts, more = count % numParts;
  return {each * part + std::min<uint64_t>(part, more), each * (part + 1) + std::min<uint64_t>(part + 1, more)};
}

ThreadPool::Run::Run(uint64_t count, uint64_t leastPiece, Order order, unsigned threads, Body body, uintptr_t token)
    : body(body), token(token), numParts(order == Order::Parts ? threads : 1) {
  if (numParts > fewParts)
    many = std::vector<Part>(numParts);
  parts = numParts > fewParts ? many.data() : few;
  // Pieces small enough to even out, large enough that taking one costs nothing.
  piece = std::clamp<uint64_t>(count / (uint64_t(threads) * piecesOfPart), 1, 1024);
  piece = std::max(piece, std::min(leastPiece, count / threads));
  helpers = std::min<uint64_t>(threads - 1, (count - 1) / piece);
  for (unsigned part = 0; part < numParts; ++part) {
    Range range = getPart(count, part, numParts);
    parts[part].next.store(range.begin, std::memory_order_relaxed);
    parts[part].end = range.end;
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

/// Takes what is put before the worker, or a run that wants more helpers; whether there was either.
bool ThreadPool::take(Seat &seat) {
  uintptr_t seen = seat.state.load();
  if ((seen & actions) == offered)
    return seat.state.compare_exchange_strong(seen, seen | taken);
  std::lock_guard<std::mutex> lock(mutex);
  // Its caller waits for all who are at the run once it has taken it from here.
  if (seen != idle || runs.empty() || !seat.state.compare_exchange_strong(seen, runs.front()->token | taken))
    return false;
  seat.run = runs.front();
  runs.pop_front();
  waiting = runs.size();
  return true;
}

void ThreadPool::carryOut(Seat &seat, unsigned worker) {
  if (seat.run)
    seat.run->work(worker);
  else
    seat.body(seat.begin, seat.end, worker);
}

void ThreadPool::serve(unsigned worker) {
  Seat &seat = seats[worker - 1];
  auto isWanted = [&] { return (seat.state.load() & actions) == offered || waiting.load() || stopping.load(); };
  while (true) {
    if (!lookOut(isWanted)) {
      std::unique_lock<std::mutex> lock(mutex);
      seat.isAsleep = true;
      wake.wait(lock, isWanted);
      seat.isAsleep = false;
      lock.unlock();
      leaveProcessor(wakers.load(std::memory_order_relaxed));
    }
    if (stopping)
      return;
    if (!take(seat))
      continue;
    carryOut(seat, worker);
    // The run is gone from here on. Either its caller sees that, or it is seen to sleep.
    seat.state = idle;
    if (awaiting.load()) {
      { std::lock_guard<std::mutex> lock(mutex); }
      left.notify_all();
    }
  }
}

/// Puts a run or a range before a worker that has nothing to do; whether it has not.
bool ThreadPool::offer(Seat &seat, uintptr_t token, Run *run, Body body, Range range) {
  uintptr_t none = idle;
  if (!seat.state.compare_exchange_strong(none, token | claimed))
    return false;
  seat.run = run;
  seat.body = body;
  seat.begin = range.begin;
  seat.end = range.end;
  // Either the worker sees this before it sleeps, or it is seen to sleep.
  seat.state = token | offered;
  return true;
}

/// Takes back what its worker has not begun with; whether there was anything.
bool ThreadPool::withdraw(Seat &seat, uintptr_t token) {
  uintptr_t mine = token | offered;
  return seat.state.load(std::memory_order_relaxed) == mine && seat.state.compare_exchange_strong(mine, idle);
}

void ThreadPool::wakeAll() {
  wakers.store(getProcessor(), std::memory_order_relaxed);
  { std::lock_guard<std::mutex> lock(mutex); }
  wake.notify_all();
}

/// Waits until no worker is at the run. Nobody comes to it any more, so who has left need not be looked at again.
void ThreadPool::awaitAll(uintptr_t token, Look look) {
  auto seat = seats.begin();
  auto haveLeft = [&] {
    while (seat != seats.end() && (seat->state.load() & ~actions) != token)
      ++seat;
    return seat == seats.end();
  };
  if (lookOut(haveLeft))
    return;
  std::unique_lock<std::mutex> lock(mutex);
  ++awaiting;
  while (!left.wait_for(lock, lookPause, haveLeft)) {
    lock.unlock();
    look();
    lock.lock();
  }
  --awaiting;
}

/// Each thread has its part as a whole; the caller carries out those whose threads have not come when it has done its own.
void ThreadPool::runShort(uint64_t count, uint64_t lead, Body body, uintptr_t token, Look look) {
  unsigned numParts = std::min<uint64_t>(getNumThreads(), count);
  auto getRange = [&](unsigned part) -> Range {
    Range range = getPart(count - lead, part, numParts);
    return {part ? range.begin + lead : 0, range.end + lead};
  };
  std::bitset<maxThreads> isOffered;
  bool areAsleep = false;
  for (unsigned part = 1; part < numParts; ++part) {
    Seat &seat = seats[part - 1];
    if (!offer(seat, token, nullptr, body, getRange(part)))
      continue;
    isOffered.set(part);
    areAsleep |= seat.isAsleep.load();
  }
  if (areAsleep)
    wakeAll();
  bool goesOn = true;
  auto carryOut = [&](unsigned part) {
    Range range = getRange(part);
    goesOn = goesOn && body(range.begin, range.end, 0);
  };
  carryOut(0);
  for (unsigned part = 1; part < numParts; ++part)
    if (!isOffered[part] || withdraw(seats[part - 1], token))
      carryOut(part);
  awaitAll(token, look);
}

void ThreadPool::runLong(Run &run, Look look) {
  unsigned sent = 0;
  bool areAsleep = false;
  for (Seat &seat : seats) {
    if (sent == run.helpers)
      break;
    if (!offer(seat, run.token, &run, run.body, {}))
      continue;
    areAsleep |= seat.isAsleep.load();
    ++sent;
  }
  bool wantsMore = sent < run.helpers;
  if (wantsMore) {
    std::lock_guard<std::mutex> lock(mutex);
    runs.push_back(&run);
    waiting = runs.size();
  }
  if (areAsleep)
    wakeAll();
  run.work(0);
  if (wantsMore) {
    std::lock_guard<std::mutex> lock(mutex);
    llvm::erase(runs, &run);
    waiting = runs.size();
  }
  for (Seat &seat : seats)
    withdraw(seat, run.token);
  awaitAll(run.token, look);
}

void ThreadPool::run(uint64_t count, Order order, Pace &pace, Body body, Look look, Clock::duration leastPiece) {
  if (!count)
    return;
  if (workers.empty() || count == 1) {
    body(0, count, 0);
    return;
  }
  uintptr_t token = reinterpret_cast<uintptr_t>(&body);
  auto start = Clock::now();
  if (order == Order::Parts && pace.isShort(count)) {
    runShort(count, pace.getLead(count, getNumThreads()), body, token, look);
  } else {
    Run run(count, pace.getCount(leastPiece, getNumThreads()), order, getNumThreads(), body, token);
    runLong(run, look);
  }
  pace.note(count, Clock::now() - start);
}

} // namespace qd::cpu
