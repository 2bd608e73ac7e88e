//===- MemoryTest.cpp - memory returns after compiles -------------------------------------------------------------------===//

#include "Kernels.h"

#include "compiler/qdc.h"

#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
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
