//===- HostTest.cpp - launches that are ended early, and modules that another process makes first -----------------===//

#include "Kernels.h"

#include "compiler/qdc.h"

#include <atomic>
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
    EXPECT_EQ(host.launch("wait", 1, UINT32_MAX), "the launch takes longer than its limit of 200 ms") << device;
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

/// Blocks that do not end by themselves: loops whose lanes stay together or not, with and without memory, loops whose
/// bounds are far away, subgroups that wait for each other between barriers, blocks that wait for earlier ones, and all
/// blocks of a grid.
static constexpr const char *endlessKernels = R"(
qd.kernel @together(%x: !qd.buffer<i32>) block(64) {
  %yes = arith.constant true
  scf.while : () -> () {
    scf.condition(%yes)
  } do {
    scf.yield
  }
  qd.return
}
qd.kernel @divergent(%x: !qd.buffer<i32>) block(64) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %t = qd.thread_index : i32
  %r = scf.while (%v = %t) : (i32) -> i32 {
    %go = arith.cmpi ne, %v, %zero : i32
    scf.condition(%go) %v : i32
  } do {
  ^bb0(%v: i32):
    %half = arith.shrui %v, %one : i32
    %isOne = arith.cmpi eq, %v, %one : i32
    %next = arith.select %isOne, %v, %half : i32
    scf.yield %next : i32
  }
  qd.store %r, %x[0] : !qd.buffer<i32>
  qd.return
}
qd.kernel @nested(%x: !qd.buffer<i32>) block(64) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %many = arith.constant 2147483647 : i32
  %v0 = qd.load %x[0] : !qd.buffer<i32>
  %r = scf.for %i = %zero to %many step %one iter_args(%a = %v0) -> (i32) : i32 {
    %s = scf.for %j = %zero to %many step %one iter_args(%b = %a) -> (i32) : i32 {
      %c = arith.xori %b, %j : i32
      %d = arith.muli %c, %many : i32
      scf.yield %d : i32
    }
    scf.yield %s : i32
  }
  qd.store %r, %x[0] : !qd.buffer<i32>
  qd.return
}
qd.kernel @far(%x: !qd.buffer<i32>) block(64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %many = arith.constant 4611686018427387904 : i64
  %t = qd.thread_index : i32
  %wide = arith.extui %t : i32 to i64
  %end = arith.subi %many, %wide : i64
  %r = scf.for %i = %zero to %end step %one iter_args(%a = %t) -> (i32) : i64 {
    %j = arith.trunci %i : i64 to i32
    %b = arith.xori %a, %j : i32
    %c = arith.muli %b, %b : i32
    scf.yield %c : i32
  }
  qd.store %r, %x[0] : !qd.buffer<i32>
  qd.return
}
qd.kernel @barriers(%x: !qd.buffer<i32>) block(128) {
  %zero = arith.constant 0 : i32
  %flag = qd.shared.alloc : !qd.shared<1xi32>
  %t = qd.thread_index : i32
  %first = arith.cmpi eq, %t, %zero : i32
  qd.store %zero, %flag[0] if %first : !qd.shared<1xi32>
  qd.block.sync
  scf.if %first {
    scf.while : () -> () {
      %v = qd.atomic_load %flag[0] acquire : !qd.shared<1xi32>
      %go = arith.cmpi eq, %v, %zero : i32
      scf.condition(%go)
    } do {
      scf.yield
    }
  }
  qd.block.sync
  qd.store %zero, %x[0] if %first : !qd.buffer<i32>
  qd.return
}
qd.kernel @entered(%x: !qd.buffer<i32>) block(128) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %many = arith.constant 2147483647 : i32
  %s = qd.shared.alloc : !qd.shared<128xi32>
  %t = qd.thread_index : i32
  scf.for %i = %zero to %many step %one : i32 {
    qd.store %i, %s[%t] : !qd.shared<128xi32>
    qd.block.sync
    %u = arith.subi %many, %t : i32
    %at = arith.andi %u, %one : i32
    %v = qd.load %s[%at] : !qd.shared<128xi32>
    qd.store %v, %x[0] : !qd.buffer<i32>
    qd.block.sync
  }
  qd.return
}
qd.kernel @sleeping(%x: !qd.buffer<i32>) block(64) {
  %zero = arith.constant 0 : i32
  scf.while : () -> () {
    %v = qd.atomic_load %x[0] acquire : !qd.buffer<i32>
    %go = arith.cmpi eq, %v, %zero : i32
    scf.condition(%go)
  } do {
    qd.sleep 100
    scf.yield
  }
  qd.return
}
qd.kernel @grid(%x: !qd.buffer<i32>) block(64) {
  %zero = arith.constant 0 : i32
  %b = qd.block_id x : i32
  %waits = arith.cmpi eq, %b, %zero : i32
  scf.if %waits {
    scf.while : () -> () {
      %v = qd.atomic_load %x[0] acquire : !qd.buffer<i32>
      %go = arith.cmpi eq, %v, %zero : i32
      scf.condition(%go)
    } do {
      scf.yield
    }
  }
  qd.grid.sync
  qd.store %b, %x[0] : !qd.buffer<i32>
  qd.return
}
qd.kernel @count(%x: !qd.buffer<i32>) block(64) {
  %one = arith.constant 1 : i32
  %old = qd.atomic_rmw add %one, %x[0] : !qd.buffer<i32>
  qd.return
}
)";

TEST(Host, BlocksOfTheCPUDeviceEnd) {
  static std::atomic<int> asked;
  asked = 0;
  for (bool byCaller : {false, true})
    for (uint32_t threads : {1, 2})
      for (uint32_t level : {0, 2}) {
        qdcHostOptions options = makeOptions();
        options.threads = threads;
        options.optLevel = level;
        if (byCaller)
          options.interrupt = [](void *) { return int(++asked % 2 == 0); };
        else
          options.launchTimeLimit = 50;
        Host host("cpu", options, endlessKernels);
        ASSERT_NE(host.module, nullptr) << host.diagnostics;
        for (const char *kernel :
             {"together", "divergent", "nested", "far", "barriers", "entered", "sleeping", "grid"}) {
          host.value = 0;
          EXPECT_EQ(host.launch(kernel, 2 * threads - 1), byCaller ? "the launch was interrupted by its caller"
                                                                   : "the launch takes longer than its limit of 50 ms")
              << kernel << " on " << threads << " threads at -O" << level;
          EXPECT_LT(host.seconds, patience) << kernel;
        }
        // The module works on.
        asked = 0;
        host.value = 0;
        EXPECT_EQ(host.launch("count", 3), "");
        EXPECT_EQ(host.value, 192);
      }
}

/// The thread that launches has ended its own blocks, and waits for one that does not end.
TEST(Host, CallersAreAskedWhileTheyWait) {
  static constexpr const char *kernel = R"(
qd.kernel @last(%x: !qd.buffer<i32>) block(64) {
  %b = qd.block_id x : i32
  %n = qd.grid_dim x : i32
  %one = arith.constant 1 : i32
  %end = arith.subi %n, %one : i32
  %stays = arith.cmpi eq, %b, %end : i32
  scf.while : () -> () {
    scf.condition(%stays)
  } do {
    scf.yield
  }
  qd.return
}
)";
  static std::atomic<int> asked;
  asked = 0;
  qdcHostOptions options = makeOptions();
  options.threads = 2;
  options.interrupt = [](void *) { return int(++asked >= 3); };
  Host host("cpu", options, kernel);
  ASSERT_NE(host.module, nullptr) << host.diagnostics;
  EXPECT_EQ(host.launch("last", 2), "the launch was interrupted by its caller");
  EXPECT_EQ(asked, 3);
  EXPECT_LT(host.seconds, patience);
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
