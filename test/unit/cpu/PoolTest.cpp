//===- PoolTest.cpp - the processors that the pool's workers run on ------------------------------------------===//

#include "codegen/cpu/ThreadPool.h"

#include <gtest/gtest.h>
#include <thread>
#ifdef __linux__
#include <sched.h>

using namespace qd::cpu;

namespace {
cpu_set_t getProcessors() {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  EXPECT_EQ(sched_getaffinity(0, sizeof processors, &processors), 0);
  return processors;
}
void setProcessors(const cpu_set_t &processors) { ASSERT_EQ(sched_setaffinity(0, sizeof processors, &processors), 0); }
cpu_set_t only(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  return one;
}

/// Where a worker finds itself; nothing if the caller has done all.
struct Place {
  int processor = -1;
  cpu_set_t allowed;
};
} // namespace

/// Each of both threads gets one number, and the caller ends when the worker has its own.
static Place findWorker(ThreadPool &pool) {
  Place place;
  ThreadPool::Pace pace;
  std::atomic<bool> hasCome{false};
  pool.run(2, ThreadPool::Order::Ascending, pace, [&](uint64_t, uint64_t, unsigned worker) {
    if (worker) {
      place = {sched_getcpu(), getProcessors()};
      hasCome = true;
    } else {
      while (!hasCome) {
      }
    }
    return true;
  });
  return place;
}

/// A worker that slept is put on the caller's processor, as Linux may do by itself.
TEST(Pool, WorkersLeaveTheCallersProcessor) {
  cpu_set_t all = getProcessors();
  ThreadPool pool(2);
  int left = 0;
  constexpr int repeats = 20;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    // The worker sleeps, and last ran where the caller will be.
    ThreadPool::Pace pace;
    std::atomic<int> processor{-1};
    pool.run(2, ThreadPool::Order::Ascending, pace, [&](uint64_t, uint64_t, unsigned worker) {
      if (worker) {
        int here = sched_getcpu();
        setProcessors(only(here));
        setProcessors(all);
        processor = here;
      } else {
        while (processor < 0) {
        }
      }
      return true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    setProcessors(only(processor));
    Place place = findWorker(pool);
    setProcessors(all);
    left += place.processor != processor;
    EXPECT_TRUE(CPU_EQUAL(&place.allowed, &all));
  }
  // Where there is only one it stays.
  EXPECT_GE(left, CPU_COUNT(&all) > 1 ? repeats / 2 : 0);
}

TEST(Pool, WorkersKeepToTheOnlyProcessor) {
  cpu_set_t all = getProcessors(), one = only(sched_getcpu());
  setProcessors(one);
  {
    ThreadPool pool(2);
    for (int repeat = 0; repeat < 5; ++repeat) {
      Place place = findWorker(pool);
      EXPECT_TRUE(CPU_ISSET(place.processor, &one));
      EXPECT_TRUE(CPU_EQUAL(&place.allowed, &one));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  setProcessors(all);
}
#endif
