//===- MemoryTest.cpp - memory returns after compiles, signals stay -----------------------------------------------===//

#include "Kernels.h"

#include "compiler/qdc.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <malloc.h>
#include <string>
#include <thread>
#include <unistd.h>

using namespace qd;

static double measureMiB() {
  long pages = 0;
  if (FILE *file = fopen("/proc/self/statm", "r")) {
    if (fscanf(file, "%*d %ld", &pages) != 1)
      pages = 0;
    fclose(file);
  }
  return double(pages) * sysconf(_SC_PAGESIZE) / (1 << 20);
}

/// Compiles `count` kernels that differ; one in ten does not compile.
static void compileMany(const char *target, unsigned first, unsigned count) {
  for (unsigned i = first; i < first + count; ++i) {
    CompileOptions options;
    options.targets = {target};
    options.cache = CachePolicy::Off;
    std::string text = std::string(sumKernel) + "// " + std::to_string(i) + (i % 10 ? "\n" : "\nnonsense");
    EXPECT_EQ(compile(text, "test.qir", options).ok, i % 10 != 0);
  }
}

TEST(Memory, OfCompiles) {
  for (auto [target, count] : {std::pair("nvptx", 200u), std::pair("amdgcn", 60u), std::pair("spirv", 400u)}) {
    compileMany(target, 0, count / 4);
    double before = measureMiB();
    compileMany(target, 1000, count);
    EXPECT_LT(measureMiB(), before * 1.1) << target;
  }
}

/// What is allocated and not freed: a compile that leaves even a few bytes behind would add up in a host that lives
/// long.
TEST(Memory, NothingStaysAllocated) {
  constexpr size_t most = 1 << 10;
  for (const char *target : {"nvptx", "amdgcn", "spirv", "cpu"}) {
    // What the allocator holds for a thread counts as allocated until the thread ends.
    std::thread(compileMany, target, 0, 30).join();
    size_t before = mallinfo2().uordblks;
    std::thread(compileMany, target, 1000, 60).join();
    EXPECT_LT(mallinfo2().uordblks, before + most) << target;
  }
}

/// The host's signals are its own, also after a link, for which LLVM would install handlers.
TEST(Memory, SignalsStayTheHosts) {
  compileMany("amdgcn", 1, 1);
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) == 0) {
      // A program that starts this one may have it ignore some.
      EXPECT_TRUE(action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) << strsignal(signal);
    }
  }
}

TEST(Memory, OfHostModules) {
  for (const char *device : {"cpu", "interp", "sim:sm_80"}) {
    auto loadMany = [&](unsigned count) {
      for (unsigned i = 0; i < count; ++i) {
        qdcHostOptions options;
        qdcInitHostOptions(&options);
        options.device = device;
        options.threads = 1;
        qdcHostModule module = qdcHostLoad(sumKernel, strlen(sumKernel), "test.qir", &options, nullptr);
        ASSERT_NE(module, nullptr);
        float x[64] = {}, y[64];
        qdcHostArg args[] = {{QDC_ARG_BUFFER, x, 64, 0, {}}, {QDC_ARG_BUFFER, y, 64, 0, {}}};
        uint32_t grid[3] = {1, 1, 1};
        EXPECT_EQ(qdcHostLaunch(module, "sum", grid, args, 2, nullptr), 0);
        qdcHostUnload(module);
      }
    };
    loadMany(30);
    double before = measureMiB();
    loadMany(100);
    EXPECT_LT(measureMiB(), before * 1.1) << device;
  }
}
