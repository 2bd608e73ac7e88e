//===- BasicTest.cpp - whole kernels, with results computed here -------------------------===//

#include "TestKernel.h"

#include <numeric>

using namespace qd;
using namespace qd::test;

class Lanes : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(All, Lanes, testing::ValuesIn(allLanes));

TEST_P(Lanes, SaxpyWithTail) {
  const char *text = R"(
    qd.kernel @k(%n: i32, %a: f32, %x: !qd.buffer<f32> readonly, %y: !qd.buffer<f32>) block(96) {
      %zero = arith.constant 0.0 : f32
      %i = qd.global_thread_id x : i32
      %in = arith.cmpi slt, %i, %n : i32
      %u = qd.load %x[%i] if %in else %zero : !qd.buffer<f32>
      %v = qd.load %y[%i] if %in else %zero : !qd.buffer<f32>
      %p = arith.mulf %a, %u : f32
      %s = arith.addf %p, %v : f32
      qd.store %s, %y[%i] if %in : !qd.buffer<f32>
      qd.return
    })";
  constexpr int n = 1000;
  std::vector<float> x(n), y(n), expected(n);
  for (int i = 0; i < n; ++i) {
    x[i] = float(i) * 0.25f;
    y[i] = float(n - i);
    expected[i] = 3.0f * x[i] + y[i];
  }
  run(text, GetParam(), {11, 1, 1}, {scalar(n), scalar(3.0f), buffer(x), buffer(y)});
  EXPECT_EQ(y, expected);
}

TEST_P(Lanes, DivergentIfWithResultsAndStores) {
  const char *text = R"(
    qd.kernel @k(%x: !qd.buffer<i32>, %y: !qd.buffer<i32>) block(80) {
      %c3 = arith.constant 3 : i32
      %c0 = arith.constant 0 : i32
      %i = qd.global_thread_id x : i32
      %v = qd.load %x[%i] : !qd.buffer<i32>
      %m = arith.remsi %v, %c3 : i32
      %is = arith.cmpi eq, %m, %c0 : i32
      %r = scf.if %is -> i32 {
        %w = qd.load %x[%v] : !qd.buffer<i32>
        %s = arith.addi %w, %c3 : i32
        scf.yield %s : i32
      } else {
        %s = arith.subi %v, %c3 : i32
        scf.yield %s : i32
      }
      scf.if %is {
        %t = arith.muli %r, %c3 : i32
        qd.store %t, %x[%i] : !qd.buffer<i32>
      }
      qd.store %r, %y[%i] : !qd.buffer<i32>
      qd.return
    })";
  constexpr int n = 160;
  std::vector<int> x(n), y(n, -1), expected(n);
  // Within a subgroup loads come before stores: values stay in the own block's range and point at odd multiples.
  std::iota(x.begin(), x.end(), 0);
  std::vector<int> expectedX = x;
  for (int i = 0; i < n; ++i) {
    expected[i] = i % 3 == 0 ? i + 3 : i - 3;
    if (i % 3 == 0)
      expectedX[i] = expected[i] * 3;
  }
  run(text, GetParam(), {2, 1, 1}, {buffer(x), buffer(y)});
  EXPECT_EQ(y, expected);
  EXPECT_EQ(x, expectedX);
}

TEST_P(Lanes, TransposesThroughSharedMemory) {
  const char *text = R"(
    qd.kernel @k(%x: !qd.buffer<i32>, %y: !qd.buffer<i32>) block(16, 16) {
      %t = qd.shared.alloc : !qd.shared<16x17xi32>
      %c256 = arith.constant 256 : i32
      %i = qd.thread_id x : i32
      %j = qd.thread_id y : i32
      %k = qd.thread_index : i32
      %b = qd.block_id x : i32
      %base = arith.muli %b, %c256 : i32
      %at = arith.addi %base, %k : i32
      %v = qd.load %x[%at] : !qd.buffer<i32>
      qd.store %v, %t[%j, %i] : !qd.shared<16x17xi32>
      qd.block.sync
      %w = qd.load %t[%i, %j] : !qd.shared<16x17xi32>
      qd.store %w, %y[%at] : !qd.buffer<i32>
      qd.return
    })";
  constexpr int blocks = 37, n = 256 * blocks;
  std::vector<int> x(n), y(n), expected(n);
  std::iota(x.begin(), x.end(), 7);
  for (int b = 0; b < blocks; ++b)
    for (int j = 0; j < 16; ++j)
      for (int i = 0; i < 16; ++i)
        expected[b * 256 + j * 16 + i] = x[b * 256 + i * 16 + j];
  run(text, GetParam(), {blocks, 1, 1}, {buffer(x), buffer(y)});
  EXPECT_EQ(y, expected);
}

/// A tree in shared memory: barriers inside a loop.
TEST_P(Lanes, SumsABlockOfAnySize) {
  for (int threads : {1, 3, 32, 100, 257, 1024}) {
    std::string text = fill(R"(
      qd.kernel @k(%x: !qd.buffer<i32>, %y: !qd.buffer<i32>) block({threads}) {
        %t = qd.shared.alloc : !qd.shared<1024xi32>
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c10 = arith.constant 10 : i32
        %n = arith.constant {threads} : i32
        %i = qd.thread_index : i32
        %g = qd.global_thread_id x : i32
        %v = qd.load %x[%g] : !qd.buffer<i32>
        qd.store %v, %t[%i] : !qd.shared<1024xi32>
        qd.block.sync
        scf.for %step = %c0 to %c10 step %c1 : i32 {
          %d = arith.shli %c1, %step : i32
          %j = arith.addi %i, %d : i32
          %d2 = arith.addi %d, %d : i32
          %m = arith.remsi %i, %d2 : i32
          %first = arith.cmpi eq, %m, %c0 : i32
          %in = arith.cmpi slt, %j, %n : i32
          %both = arith.andi %first, %in : i1
          scf.if %both {
            %a = qd.load %t[%i] : !qd.shared<1024xi32>
            %b = qd.load %t[%j] : !qd.shared<1024xi32>
            %s = arith.addi %a, %b : i32
            qd.store %s, %t[%i] : !qd.shared<1024xi32>
          }
          qd.block.sync
        }
        %sum = qd.load %t[0] : !qd.shared<1024xi32>
        %w = arith.addi %sum, %i : i32
        qd.store %w, %y[%g] : !qd.buffer<i32>
        qd.return
      })", {{"threads", std::to_string(threads)}});
    int blocks = 5, n = blocks * threads;
    std::vector<int> x(n), y(n), expected(n);
    std::iota(x.begin(), x.end(), -20);
    for (int i = 0; i < n; ++i) {
      auto first = x.begin() + i / threads * threads;
      expected[i] = std::accumulate(first, first + threads, 0) + i % threads;
    }
    run(text, GetParam(), {5, 1, 1}, {buffer(x), buffer(y)});
    EXPECT_EQ(y, expected) << threads;
  }
}

TEST_P(Lanes, NumbersThreadsOfThreeDimensions) {
  std::array<unsigned, 3> shapes[] = {{64, 2, 2}, {16, 4, 2}, {5, 3, 7}, {1, 1, 64}, {3, 1, 1}, {7, 64, 2}, {2, 2, 2}};
  for (auto [bx, by, bz] : shapes) {
    std::string text = fill(R"(
      qd.kernel @k(%o: !qd.buffer<i32>, %o64: !qd.buffer<i64>) block({x}, {y}, {z}) {
        %tx = qd.thread_id x : i32
        %ty = qd.thread_id y : i32
        %tz = qd.thread_id z : i32
        %gx = qd.global_thread_id x : i64
        %gy = qd.global_thread_id y : i64
        %gz = qd.global_thread_id z : i64
        %dx = qd.grid_dim x : i32
        %dy = qd.grid_dim y : i32
        %bx = qd.block_id x : i32
        %by = qd.block_id y : i32
        %bz = qd.block_id z : i32
        %size = qd.block_dim x : i32
        %threads = arith.constant {threads} : i32
        %r0 = arith.muli %bz, %dy : i32
        %r1 = arith.addi %r0, %by : i32
        %r2 = arith.muli %r1, %dx : i32
        %r3 = arith.addi %r2, %bx : i32
        %r4 = arith.muli %r3, %threads : i32
        %i = qd.thread_index : i32
        %at = arith.addi %r4, %i : i32
        %c8 = arith.constant 1000 : i32
        %s0 = arith.muli %tz, %c8 : i32
        %s1 = arith.addi %s0, %ty : i32
        %s2 = arith.muli %s1, %c8 : i32
        %s3 = arith.addi %s2, %tx : i32
        qd.store %s3, %o[%at] : !qd.buffer<i32>
        %k = arith.constant 1000000 : i64
        %u0 = arith.muli %gz, %k : i64
        %u1 = arith.addi %u0, %gy : i64
        %u2 = arith.muli %u1, %k : i64
        %u3 = arith.addi %u2, %gx : i64
        qd.store %u3, %o64[%at] : !qd.buffer<i64>
        qd.return
      })", {{"x", std::to_string(bx)}, {"y", std::to_string(by)}, {"z", std::to_string(bz)},
            {"threads", std::to_string(bx * by * bz)}});
    std::array<uint32_t, 3> grid = {3, 2, 2};
    std::vector<int> out, expected;
    std::vector<int64_t> out64, expected64;
    for (unsigned b = 0; b < 12; ++b)
      for (unsigned t = 0; t < bx * by * bz; ++t) {
        unsigned x = t % bx, y = t / bx % by, z = t / bx / by;
        expected.push_back((z * 1000 + y) * 1000 + x);
        expected64.push_back(((b / 6 * bz + z) * int64_t(1000000) + b / 3 % 2 * by + y) * 1000000 + b % 3 * bx + x);
      }
    out.resize(expected.size());
    out64.resize(expected.size());
    run(text, GetParam(), grid, {buffer(out), buffer(out64)});
    EXPECT_EQ(out, expected) << bx << " " << by << " " << bz;
    EXPECT_EQ(out64, expected64) << bx << " " << by << " " << bz;
  }
}

TEST(Program, ReportsWhatItDoesNotSupport) {
  Module module(R"(
    qd.kernel @k(%x: !qd.buffer<f32>) block(32) {
      %i = qd.thread_index : i32
      %v = qd.load %x[%i] : !qd.buffer<f32>
      %s = qd.subgroup.reduce add %v : f32
      qd.store %s, %x[0] : !qd.buffer<f32>
      qd.return
    })");
  EXPECT_FALSE(module.createProgram(Backend::CPU, 16));
  EXPECT_NE(module.takeDiagnostics().find("'qd.subgroup.reduce' is not supported on cpu (16 lanes)"),
            std::string::npos);
}
