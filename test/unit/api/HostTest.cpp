//===- HostTest.cpp - launches that are ended early, and modules that another process makes first -------------------------===//

#include "Kernels.h"

#include "compiler/qdc.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

using namespace qd;

namespace {

/// `count` adds 1 in each thread; `wait` counts up until it finds `stop`.
constexpr const char *kernels = R"(
qd.kernel @count(%x: !qd.buffer<i32>) block(64) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %old = qd.atomic_rmw add %one, %x[%zero] : !qd.buffer<i32>
  qd.return
}
qd.kernel @wait(%x: !qd.buffer<i32>, %stop: i32) block(64) {
  %zero = arith.constant 0 : i32
  scf.while : () -> () {
    %one = arith.constant 1 : i32
    %v = qd.atomic_rmw add %one, %x[%zero] : !qd.buffer<i32>
    %go = arith.cmpi ne, %v, %stop : i32
    scf.condition(%go)
  } do {
    scf.yield
  }
  qd.return
}
)";

struct Host {
  Host(const char *device, const qdcHostOptions &with, const char *qir = kernels) {
    qdcHostOptions options = with;
    options.device = device;
    qdcResult result;
    module = qdcHostCompile(qir, strlen(qir), "test.qir", &options, &result);
    diagnostics = qdcResultDiagnostics(result);
    qdcResultFree(result);
  }
  ~Host() { qdcHostUnload(module); }

  /// What a launch says; "" where it ends as it should.
  std::string launch(const char *kernel, uint32_t blocks, uint32_t stop = 0) {
    qdcHostArg args[] = {{QDC_ARG_BUFFER, &value, 1, 0, {}}, {QDC_ARG_SCALAR, nullptr, 0, stop, {}}};
    const uint32_t grid[3] = {blocks, 1, 1};
    char *said = nullptr;
    auto start = std::chrono::steady_clock::now();
    int failed = qdcHostLaunch(module, kernel, grid, args, strcmp(kernel, "wait") ? 1 : 2, &said);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::string text = said ? said : "";
    EXPECT_EQ(failed != 0, !text.empty());
    qdcFreeString(said);
    return text;
  }

  qdcHostModule module = nullptr;
  std::string diagnostics;
  int32_t value = 0;
  double seconds = 0;
};

qdcHostOptions makeOptions() {
  qdcHostOptions options;
  qdcInitHostOptions(&options);
  options.cache = QDC_CACHE_OFF;
  return options;
}

constexpr const char *devices[] = {"cpu", "interp", "sim:sm_80", "sim:gfx90a"};
constexpr uint32_t endless = 1u << 31;
/// What a loaded machine may add to a limit.
constexpr double patience = 20;

} // namespace

TEST(Host, LaunchesEndAtTheirLimit) {
  qdcHostOptions options = makeOptions();
  options.launchTimeLimit = 200;
  for (const char *device : devices) {
    Host host(device, options);
    ASSERT_NE(host.module, nullptr) << host.diagnostics;
    EXPECT_EQ(host.launch("count", endless), "the launch takes longer than its limit of 200 ms") << device;
    EXPECT_GE(host.seconds, 0.2) << device;
    EXPECT_LT(host.seconds, patience) << device;
    EXPECT_GT(host.value, 0) << "some blocks have run on " << device;
    // The module works on.
    host.value = 0;
    EXPECT_EQ(host.launch("count", 3), "") << device;
    EXPECT_EQ(host.value, 192) << device;
    // A block that does not end is one that the cpu device does not end.
    if (strcmp(device, "cpu")) {
      EXPECT_EQ(host.launch("wait", 1, UINT32_MAX), "the launch takes longer than its limit of 200 ms") << device;
    }
  }
}

TEST(Host, LaunchesEndForTheirCaller) {
  struct State {
    int asked = 0, most = 2;
  };
  qdcHostOptions options = makeOptions();
  State state;
  options.interrupt = [](void *context) {
    auto *state = static_cast<State *>(context);
    return int(++state->asked >= state->most);
  };
  options.interruptContext = &state;
  for (const char *device : devices) {
    Host host(device, options);
    ASSERT_NE(host.module, nullptr) << host.diagnostics;
    state = {};
    EXPECT_EQ(host.launch("count", endless), "the launch was interrupted by its caller") << device;
    EXPECT_EQ(state.asked, state.most) << device;
    EXPECT_LT(host.seconds, patience) << device;
    state = {0, 1000000};
    host.value = 0;
    EXPECT_EQ(host.launch("count", 100), "") << device;
    EXPECT_EQ(host.value, 6400) << device;
  }
}

/// The worker makes the code, and finds what is wrong; what it hands over runs.
TEST(Host, IsolatedModules) {
  qdcHostOptions options = makeOptions();
  options.isolate = 1;
  for (const char *device : devices) {
    Host host(device, options);
    ASSERT_NE(host.module, nullptr) << host.diagnostics;
    EXPECT_EQ(host.launch("count", 3), "") << device;
    EXPECT_EQ(host.value, 192) << device;
    Host bad(device, options, "qd.kernel @k() block(8) {\n  nonsense\n}\n");
    EXPECT_EQ(bad.module, nullptr);
    EXPECT_NE(bad.diagnostics.find("test.qir:2:"), std::string::npos) << bad.diagnostics;
  }
  options.timeLimit = 1;
  Host late("cpu", options);
  EXPECT_EQ(late.module, nullptr);
  EXPECT_EQ(late.diagnostics, "error: test.qir: the compile takes longer than its limit of 1 ms\n");
  options.timeLimit = 0;
  options.memoryLimit = 1;
  Host large("cpu", options);
  EXPECT_EQ(large.module, nullptr);
  EXPECT_NE(large.diagnostics.find("limit of 1 MiB"), std::string::npos) << large.diagnostics;
}

TEST(Host, IsolatedCodeIsCached) {
  unsetenv("QDC_CACHE");
  std::string folder = testing::TempDir() + "qdc-host-test-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  qdcHostOptions options = makeOptions();
  options.cache = QDC_CACHE_DISK;
  options.cacheFolder = folder.c_str();
  for (uint32_t isolate : {1, 0}) {
    options.isolate = isolate;
    Host host("cpu", options);
    ASSERT_NE(host.module, nullptr) << host.diagnostics;
    EXPECT_EQ(host.launch("count", 1), "");
    EXPECT_EQ(host.value, 64);
  }
  qdcCompileOptions where;
  qdcInitCompileOptions(&where);
  where.cache = QDC_CACHE_DISK;
  where.cacheFolder = folder.c_str();
  char *text = qdcDescribeCache(&where);
  EXPECT_NE(std::string(text).find("hits       1\n"), std::string::npos) << text;
  qdcFreeString(text);
  std::filesystem::remove_all(folder);
}
