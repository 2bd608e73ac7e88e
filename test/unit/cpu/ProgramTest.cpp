//===- ProgramTest.cpp - launching: errors, threads, memory and the state of the machine ---------===//

#include "Differential.h"

#include <cfenv>
#include <fstream>
#include <numeric>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

using namespace qd;
using namespace qd::test;

static const char *addOne = R"(
  qd.kernel @k(%x: !qd.buffer<i32>) block(64) {
    %one = arith.constant 1 : i32
    %i = qd.global_thread_id x : i32
    %v = qd.load %x[%i] : !qd.buffer<i32>
    %w = arith.addi %v, %one : i32
    qd.store %w, %x[%i] : !qd.buffer<i32>
    qd.return
  })";

static std::string launchError(HostProgram &program, const char *kernel, std::array<uint32_t, 3> grid,
                               llvm::ArrayRef<HostArg> args) {
  return llvm::toString(program.launch(kernel, grid, args));
}

TEST(Launch, ReportsErrors) {
  Module module(addOne);
  std::unique_ptr<HostProgram> program = module.createProgram(Backend::CPU, 16);
  ASSERT_TRUE(program);
  std::vector<int> x(64);
  EXPECT_EQ(launchError(*program, "other", {1, 1, 1}, {buffer(x)}), "no kernel 'other'");
  EXPECT_EQ(launchError(*program, "k", {1, 1, 1}, {}), "kernel 'k' takes 1 arguments, found 0");
  EXPECT_EQ(launchError(*program, "k", {1, 1, 1}, {scalar(1)}),
            "kernel 'k': a buffer stands for a scalar or the reverse");
  EXPECT_EQ(launchError(*program, "k", {1u << 26, 1, 1}, {buffer(x)}),
            "kernel 'k': 4294967296 threads along x exceed what an i32 numbers, 2147483648");
  EXPECT_EQ(launchError(*program, "k", {1, 0xffffffff, 1}, {buffer(x)}),
            "kernel 'k': 4294967295 blocks along y exceed what an i32 numbers, 2147483648");
  EXPECT_EQ(launchError(*program, "k", {0, 1, 1}, {buffer(x)}), "");
  EXPECT_EQ(launchError(*program, "k", {1, 1, 1}, {buffer(x)}), "");
  EXPECT_EQ(x, std::vector<int>(64, 1));
}

/// Memory for the stacks of some threads alone.
TEST(Launch, TheProcessMayStartFewThreads) {
  Module module(addOne);
  std::unique_ptr<HostProgram> program = module.createProgram(Backend::CPU, 16, 200);
  ASSERT_TRUE(program);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (!child) {
    alarm(60);
    constexpr rlim_t stacks = 200 << 20;
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = {pages * getpagesize() + stacks, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    std::vector<int> x(1000 * 64);
    bool isRight = launchError(*program, "k", {1000, 1, 1}, {buffer(x)}).empty() && x == std::vector<int>(1000 * 64, 1);
    _exit(!isRight);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Launch, RunsEveryBlockOnceWithAnyNumberOfThreads) {
  for (unsigned threads : {1u, 2u, 3u, 8u}) {
    Module module(addOne);
    std::unique_ptr<HostProgram> program = module.createProgram(Backend::CPU, 16, threads);
    ASSERT_TRUE(program);
    for (uint32_t blocks : {1u, 2u, 7u, 1000u}) {
      std::vector<int> x(blocks * 64);
      for (int repeat = 0; repeat < 20; ++repeat)
        EXPECT_EQ(launchError(*program, "k", {blocks, 1, 1}, {buffer(x)}), "");
      EXPECT_EQ(x, std::vector<int>(blocks * 64, 20)) << threads << " threads, " << blocks << " blocks";
    }
  }
}

/// Several host threads launch at once, of one program and of several.
TEST(Launch, MayRunAtTheSameTime) {
  Module module(addOne);
  std::unique_ptr<HostProgram> programs[] = {module.createProgram(Backend::CPU, 16, 4),
                                             module.createProgram(Backend::CPU, 32, 4)};
  std::vector<std::vector<int>> data(8, std::vector<int>(6400));
  std::vector<std::thread> callers;
  for (unsigned i = 0; i < 8; ++i)
    callers.emplace_back([&, i] {
      for (int repeat = 0; repeat < 50; ++repeat)
        llvm::consumeError(programs[i % 2]->launch("k", {100, 1, 1}, {buffer(data[i])}));
    });
  for (std::thread &caller : callers)
    caller.join();
  for (const std::vector<int> &x : data)
    EXPECT_EQ(x, std::vector<int>(6400, 50));
}

TEST(Launch, KernelsMayBeNamedLikeLibraryFunctions) {
  std::string text = addOne;
  text.replace(text.find("@k"), 2, "@memcpy");
  Module module(text);
  std::unique_ptr<HostProgram> program = module.createProgram(Backend::CPU, 16);
  std::vector<int> x(64);
  EXPECT_EQ(launchError(*program, "memcpy", {1, 1, 1}, {buffer(x)}), "");
  EXPECT_EQ(x, std::vector<int>(64, 1));
}

/// Whatever the caller has set, kernels round to nearest and keep subnormals; and the caller's state comes back.
TEST(Launch, FloatingPointIsStrict) {
  const char *text = R"(
    qd.kernel @k(%x: !qd.buffer<f32>) block(64) {
      %half = arith.constant 0.5 : f32
      %third = arith.constant 3.0 : f32
      %i = qd.thread_index : i32
      %v = qd.load %x[%i] : !qd.buffer<f32>
      %w = arith.mulf %v, %half : f32
      %u = arith.divf %w, %third : f32
      qd.store %u, %x[%i] : !qd.buffer<f32>
      qd.return
    })";
  Module module(text);
  std::unique_ptr<HostProgram> program = module.createProgram(Backend::CPU, 16);
  std::vector<float> x(64), expected(64);
  for (int i = 0; i < 64; ++i) {
    x[i] = 1.1754944e-38f * float(i + 1);
    expected[i] = x[i] * 0.5f / 3.0f;
  }
#if defined(__SSE2__)
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040); // flush results, take subnormals as zero
#endif
  std::fesetround(FE_UPWARD);
  std::string error = launchError(*program, "k", {1, 1, 1}, {buffer(x)});
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
#if defined(__SSE2__)
  EXPECT_EQ(_mm_getcsr() & 0x8040, 0x8040u);
  _mm_setcsr(before);
#endif
  EXPECT_EQ(error, "");
  EXPECT_EQ(x, expected);
}

/// Division by zero is poison, but takes no process down; nor does it in lanes that are off.
TEST(Launch, DivisionNeverTraps) {
  for (const char *type : {"i8", "i16", "i32", "i64"})
    for (const char *op : {"divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui"})
      for (bool uniform : {false, true}) {
        std::string text = fill(R"(
          qd.kernel @k(%x: !qd.buffer<{T}>, %d: !qd.buffer<{T}>, %o: !qd.buffer<{T}>, %m: {T}, %z: {T}) block(33) {
            %zero = arith.constant 0 : {T}
            %i = qd.thread_index : i32
            %a = qd.load %x[%i] : !qd.buffer<{T}>
            %b = qd.load %d[%i] : !qd.buffer<{T}>
            %safe = arith.cmpi ne, %b, %zero : {T}
            %q = arith.{op} {operands} : {T}
            %r = arith.select %safe, %q, %zero : {T}
            qd.store %r, %o[%i] : !qd.buffer<{T}>
            qd.return
          })", {{"T", type}, {"op", op}, {"operands", uniform ? "%m, %z" : "%a, %b"}});
        Array x = makeArray(type, 33, Values::Any), d = x, o = x;
        std::fill(d.bytes.begin(), d.bytes.end(), 0);
        run(text, 16, {1, 1, 1},
            {HostArg{true, x.bytes.data(), 33, 0}, HostArg{true, d.bytes.data(), 33, 0},
             HostArg{true, o.bytes.data(), 33, 0}, scalar(int64_t(1) << (getBits(type) - 1)), scalar(int64_t(0))});
        run(text, 16, {1, 1, 1},
            {HostArg{true, x.bytes.data(), 33, 0}, HostArg{true, d.bytes.data(), 33, 0},
             HostArg{true, o.bytes.data(), 33, 0}, scalar(int64_t(1) << (getBits(type) - 1)), scalar(int64_t(-1))});
      }
}

/// Lanes whose predicate is off touch no memory: the buffers end where the block goes on.
TEST(Launch, MaskedLanesTouchNoMemory) {
  for (unsigned lanes : allLanes)
    for (const char *index : {"%i", "%u", "%s", "%r"}) {
      std::string text = fill(R"(
        qd.kernel @k(%x: !qd.buffer<i32>, %y: !qd.buffer<i32>, %p: i1) block(100) {
          %seven = arith.constant 7 : i32
          %far = arith.constant 1000000000 : i32
          %i = qd.thread_index : i32
          %never = arith.cmpi slt, %i, %far : i32
          %true = arith.constant true
          %off = arith.xori %never, %true : i1
          %u = arith.addi %far, %seven : i32
          %s = arith.muli %i, %far : i32
          %r = arith.xori %i, %far : i32
          %v = qd.load %x[{index}] if %off else %seven : !qd.buffer<i32>
          %w = qd.load %x[{index}] if %p else %seven : !qd.buffer<i32>
          qd.store %seven, %x[{index}] if %off : !qd.buffer<i32>
          qd.store %i, %x[{index}] if %p : !qd.buffer<i32>
          scf.if %off {
            %t = qd.load %x[{index}] : !qd.buffer<i32>
            qd.store %t, %x[{index}] : !qd.buffer<i32>
          }
          %sum = arith.addi %v, %w : i32
          qd.store %sum, %y[%i] : !qd.buffer<i32>
          qd.return
        })", {{"index", index}});
      std::vector<int> y(100);
      run(text, lanes, {1, 1, 1}, {HostArg{true, nullptr, 0, 0}, buffer(y), scalar(uint8_t(0))});
      EXPECT_EQ(y, std::vector<int>(100, 14)) << lanes << index;
    }
}

/// Of lanes that write one element the last one's value stays; and a bool is one byte.
TEST(Launch, StoresToOneElement) {
  for (unsigned lanes : allLanes) {
    const char *text = R"(
      qd.kernel @k(%x: !qd.buffer<i1>, %y: !qd.buffer<i32>, %n: !qd.buffer<i64>) block(70) {
        %i = qd.thread_index : i32
        %c60 = arith.constant 60 : i32
        %p = qd.load %x[%i] : !qd.buffer<i1>
        qd.store %i, %y[0] : !qd.buffer<i32>
        qd.store %i, %y[1] if %p : !qd.buffer<i32>
        %in = arith.cmpi slt, %i, %c60 : i32
        %both = arith.andi %in, %p : i1
        scf.if %both {
          qd.store %i, %y[2] : !qd.buffer<i32>
        }
        qd.store %in, %x[%i] : !qd.buffer<i1>
        %size = qd.size %x : !qd.buffer<i1> -> i64
        qd.store %size, %n[0] : !qd.buffer<i64>
        qd.return
      })";
    std::vector<uint8_t> x(70), expected(70);
    for (int i = 0; i < 70; ++i) {
      x[i] = i % 3 == 1;
      expected[i] = i < 60;
    }
    std::vector<int> y(3, -1);
    std::vector<int64_t> n(1);
    run(text, lanes, {1, 1, 1}, {buffer(x), buffer(y), buffer(n)});
    EXPECT_EQ(y, (std::vector<int>{69, 67, 58}));
    EXPECT_EQ(x, expected);
    EXPECT_EQ(n[0], 70);
  }
}

/// A loop's value is read before the same iteration overwrites it, and is kept for lanes that leave.
TEST(Launch, LoadsStayBeforeLaterStores) {
  const char *text = R"(
    qd.kernel @k(%y: !qd.buffer<i32>, %o: !qd.buffer<i32>) block(64) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c7 = arith.constant 7 : i32
      %i = qd.thread_index : i32
      %n = arith.andi %i, %c7 : i32
      %r = scf.for %k = %c0 to %n step %c1 iter_args(%a = %i) -> (i32) : i32 {
        %v = qd.load %y[%i] : !qd.buffer<i32>
        qd.store %k, %y[%i] : !qd.buffer<i32>
        scf.yield %v : i32
      }
      qd.store %r, %o[%i] : !qd.buffer<i32>
      qd.return
    })";
  for (unsigned lanes : allLanes) {
    std::vector<int> y(64), o(64), expectedY(64), expectedO(64);
    for (int i = 0; i < 64; ++i) {
      int n = i & 7;
      y[i] = 100 + i;
      expectedY[i] = n ? n - 1 : y[i];
      expectedO[i] = n == 0 ? i : n == 1 ? y[i] : n - 2;
    }
    run(text, lanes, {1, 1, 1}, {buffer(y), buffer(o)});
    EXPECT_EQ(y, expectedY) << lanes;
    EXPECT_EQ(o, expectedO) << lanes;
  }
}
