//===- TallyTest.cpp - additions of all blocks to the same elements ------------------------------------------===//

#include "TestKernel.h"

using namespace qd;
using namespace qd::test;

/// Runs with one worker and several, repeatedly, and compares what has been added to `before`.
template <typename T>
static void expectSums(llvm::StringRef text, unsigned lanes, std::array<uint32_t, 3> grid, std::vector<T> before,
                       const std::vector<T> &added, std::vector<HostArg> others, llvm::StringRef cpu = "") {
  Module module(text);
  ASSERT_NE(module.emitText(lanes, CPUText::LLVM, 2, cpu).find("%tally"), std::string::npos);
  for (unsigned threads : {1u, 2u, 5u}) {
    std::unique_ptr<HostProgram> program = module.createProgram(Backend::CPU, lanes, threads, 2, cpu);
    ASSERT_TRUE(program) << module.takeDiagnostics();
    std::vector<T> found = before, expected = before;
    others.back() = buffer(found);
    constexpr int launches = 3;
    for (int launch = 0; launch < launches; ++launch) {
      llvm::Error error = program->launch("k", grid, others);
      EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
      for (size_t i = 0; i < expected.size(); ++i)
        expected[i] = T(std::make_unsigned_t<T>(expected[i]) + std::make_unsigned_t<T>(added[i]));
    }
    EXPECT_EQ(found, expected) << lanes << " lanes, " << threads << " threads, " << grid[0] << " blocks " << cpu.str();
  }
}

template <typename T> static std::vector<T> makeValues(size_t count) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = T((i * 0x9E3779B97F4A7C15ull) >> 20) - 7;
  return values;
}

template <typename T> static void addTo(T &sum, T value) {
  sum = T(std::make_unsigned_t<T>(sum) + std::make_unsigned_t<T>(value));
}

/// Each thread has its element, the last subgroup is a part of one, and sums wrap.
template <typename T> static void expectCounts(llvm::StringRef type) {
  std::string text = fill(R"(
    qd.kernel @k(%x: !qd.buffer<{t}> readonly noalias, %bins: !qd.buffer<{t}> noalias) block(70) {
      %t = qd.thread_id x : i32
      %i = qd.global_thread_id x : i32
      %v = qd.load %x[%i] : !qd.buffer<{t}>
      %old = qd.atomic_rmw add %v, %bins[%t] : !qd.buffer<{t}>
      qd.return
    })", {{"t", type.str()}});
  for (const std::string &cpu : getProcessors())
    for (unsigned lanes : allLanes)
      for (uint32_t blocks : {1u, 37u}) {
        std::vector<T> x = makeValues<T>(70 * blocks), added(70);
        for (size_t i = 0; i < x.size(); ++i)
          addTo(added[i % 70], x[i]);
        expectSums(text, lanes, {blocks, 1, 1}, makeValues<T>(70), added, {buffer(x), {}}, cpu);
      }
}
TEST(Tally, EachThreadHasItsElement32) { expectCounts<int32_t>("i32"); }
TEST(Tally, EachThreadHasItsElement64) { expectCounts<int64_t>("i64"); }

/// Threads that add nothing touch nothing: what they would name lies far outside the buffer.
TEST(Tally, ThreadsThatAreOffTouchNothing) {
  const char *text = R"(
    qd.kernel @k(%x: !qd.buffer<i32> readonly noalias, %n: i32, %bins: !qd.buffer<i32> noalias) block(96) {
      %far = arith.constant 16777216 : i32
      %t = qd.thread_id x : i32
      %i = qd.global_thread_id x : i32
      %v = qd.load %x[%i] : !qd.buffer<i32>
      %in = arith.cmpi slt, %t, %n : i32
      %outside = arith.muli %t, %far : i32
      %place = arith.select %in, %t, %outside : i32
      %a = qd.atomic_rmw add %v, %bins[%place] if %in : !qd.buffer<i32>
      scf.if %in {
        %b = qd.atomic_rmw add %t, %bins[%place] : !qd.buffer<i32>
      }
      qd.return
    })";
  for (unsigned lanes : allLanes)
    for (int n : {0, 1, 33, 96}) {
      std::vector<int32_t> x = makeValues<int32_t>(96 * 9), added(96);
      for (int i = 0; i < 96 * 9; ++i)
        if (i % 96 < n)
          addTo(added[i % 96], x[i] + i % 96);
      expectSums(text, lanes, {9, 1, 1}, makeValues<int32_t>(96), added, {buffer(x), scalar(n), {}});
    }
}

/// One element for a subgroup or for all, by all threads and by one; a loop whose turns differ.
TEST(Tally, ThreadsShareElements) {
  const char *text = R"(
    qd.kernel @k(%place: i32, %sums: !qd.buffer<i64> noalias) block(32, 4) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %three = arith.constant 3 : i32
      %c5 = arith.constant 5 : i64
      %x = qd.thread_id x : i32
      %y = qd.thread_id y : i32
      %t = qd.thread_index : i32
      %wide = arith.extsi %t : i32 to i64
      %b = qd.block_id y : i32
      %block = arith.extsi %b : i32 to i64
      %a = qd.atomic_rmw add %block, %sums[%place] : !qd.buffer<i64>
      %first = arith.cmpi eq, %t, %zero : i32
      %c = qd.atomic_rmw add %c5, %sums[4] if %first : !qd.buffer<i64>
      %d = qd.atomic_rmw add %wide, %sums[%y] : !qd.buffer<i64>
      %turns = arith.andi %x, %three : i32
      scf.for %k = %zero to %turns step %one : i32 {
        %odd = arith.remui %x, %three : i32
        %e = qd.atomic_rmw add %wide, %sums[%odd] : !qd.buffer<i64>
      }
      qd.return
    })";
  for (unsigned lanes : allLanes)
    for (int place : {0, 5}) {
      std::vector<int64_t> added(6);
      for (int block = 0; block < 12; ++block)
        for (int t = 0; t < 128; ++t) {
          added[place] += block / 3;
          added[4] += t ? 0 : 5;
          added[t / 32] += t;
          added[t % 32 % 3] += (t & 3) * t;
        }
      expectSums(text, lanes, {3, 4, 1}, makeValues<int64_t>(6), added, {scalar(place), {}});
    }
}

/// A histogram: barriers, and shared memory that the sums come from.
TEST(Tally, BlocksCountInSharedMemory) {
  const char *text = R"(
    qd.kernel @k(%x: !qd.buffer<i32> readonly noalias, %bins: !qd.buffer<i32> noalias) block(64) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %mask = arith.constant 63 : i32
      %counts = qd.shared.alloc : !qd.shared<64xi32>
      %t = qd.thread_id x : i32
      %i = qd.global_thread_id x : i32
      qd.store %zero, %counts[%t] : !qd.shared<64xi32>
      qd.block.sync
      %v = qd.load %x[%i] : !qd.buffer<i32>
      %digit = arith.andi %v, %mask : i32
      %a = qd.atomic_rmw add %one, %counts[%digit] : !qd.shared<64xi32>
      qd.block.sync
      %count = qd.load %counts[%t] : !qd.shared<64xi32>
      %b = qd.atomic_rmw add %count, %bins[%t] : !qd.buffer<i32>
      qd.return
    })";
  for (unsigned lanes : allLanes)
    for (uint32_t blocks : {1u, 3u, 1000u}) {
      std::vector<int32_t> x = makeValues<int32_t>(64 * blocks), added(64);
      for (int32_t value : x)
        ++added[value & 63];
      expectSums(text, lanes, {blocks, 1, 1}, std::vector<int32_t>(64), added, {buffer(x), {}});
    }
}

/// Where somebody could tell, or might: each addition goes to memory.
TEST(Tally, WhatMayBeSeenIsNoTally) {
  const char *kernel = R"(
    qd.kernel @k(%x: !qd.buffer<{t}> noalias, %s: !qd.buffer<{t}> {noalias}, %n: i32) block(64) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %t = qd.thread_id x : i32
      %b = qd.block_id x : i32
      %v = qd.load %x[%t] : !qd.buffer<{t}>
      {more}
      %old = qd.atomic_rmw {add} %v, %s[{place}] {order} : !qd.buffer<{t}>
      {behind}
      qd.return
    })";
  using Values = std::vector<std::pair<llvm::StringRef, std::string>>;
  auto hasTally = [&](const Values &changed) {
    Values values = changed, defaults = {{"t", "i32"},    {"noalias", "noalias"}, {"more", ""},  {"add", "add"},
                                         {"place", "%t"}, {"order", ""},          {"behind", ""}};
    values.insert(values.end(), defaults.begin(), defaults.end());
    Module module(qd::test::fill(kernel, values));
    std::string text = module.emitText(16, CPUText::LLVM);
    EXPECT_NE(text.find("define void @kernel.k("), std::string::npos) << text;
    return text.find("%tally") != std::string::npos;
  };
  EXPECT_TRUE(hasTally({}));
  EXPECT_TRUE(hasTally({{"t", "i64"}}));
  EXPECT_TRUE(hasTally({{"behind", "%m = qd.size %s : !qd.buffer<i32> -> i64"}}));
  // Floats have an order; narrow integers are loops.
  for (const char *type : {"f32", "f64", "i16"})
    EXPECT_FALSE(hasTally({{"t", type}})) << type;
  // Another buffer may be the same memory.
  EXPECT_FALSE(hasTally({{"noalias", ""}}));
  EXPECT_FALSE(hasTally({{"add", "maxsi"}}));
  EXPECT_FALSE(hasTally({{"order", "release"}}));
  EXPECT_FALSE(hasTally({{"order", "acq_rel"}}));
  // An element that depends on the block or on memory.
  EXPECT_FALSE(hasTally({{"place", "%b"}}));
  EXPECT_FALSE(hasTally({{"place", "%v"}}));
  EXPECT_FALSE(hasTally({{"more", "%i = qd.global_thread_id x : i32"}, {"place", "%i"}}));
  EXPECT_FALSE(hasTally({{"more", "%i = arith.addi %b, %t : i32"}, {"place", "%i"}}));
  for (const char *behind : {
           "qd.store %old, %x[%t] : !qd.buffer<i32>",
           "%w = qd.load %s[%t] : !qd.buffer<i32>\n qd.store %w, %x[%t] : !qd.buffer<i32>",
           "%w = qd.atomic_load %s[%t] : !qd.buffer<i32>\n qd.store %w, %x[%t] : !qd.buffer<i32>",
           "%w = qd.atomic_rmw maxsi %v, %s[%t] : !qd.buffer<i32>",
           "qd.store %one, %s[%t] : !qd.buffer<i32>",
           "%in = arith.cmpi slt, %v, %n : i32\n qd.assert %in, \"less\"",
           // Waits for another block.
           "scf.while : () -> () {\n %w = qd.load volatile %x[%t] : !qd.buffer<i32>\n"
           " %go = arith.cmpi eq, %w, %zero : i32\n scf.condition(%go)\n } do {\n scf.yield\n }",
           "qd.grid.sync",
       })
    EXPECT_FALSE(hasTally({{"behind", behind}})) << behind;
}
