//===- LongLoopTest.cpp - loops that go in parts, with results computed here ---------------------===//

#include "TestKernel.h"

#include <climits>

using namespace qd;
using namespace qd::test;

/// Around the 4096 turns of a part and where bounds are those of the type: what a loop sees, and how often. In one
/// kernel all lanes have one bound, in the other each its own.
TEST(LongLoops, PartsAreTheWhole) {
  constexpr const char *kernel = R"(
    qd.kernel @k(%lower: i32, %upper: i32, %x: !qd.buffer<i64>) block({threads}) {
      %zero = arith.constant 0 : i64
      %factor = arith.constant 31 : i64
      %step = arith.constant {step} : i32
      %apart = arith.constant {apart} : i32
      %t = qd.thread_index : i32
      %less = arith.muli %t, %apart : i32
      %end = arith.subi %upper, %less : i32
      %r = scf.for %i = %lower to %end step %step iter_args(%a = %zero) -> i64 : i32 {
        %wide = arith.extsi %i : i32 to i64
        %b = arith.muli %a, %factor : i64
        %c = arith.addi %b, %wide : i64
        scf.yield %c : i64
      }
      qd.store %r, %x[%t] : !qd.buffer<i64>
      qd.return
    })";
  struct Range {
    int lower, upper, step;
  };
  constexpr Range ranges[] = {
      {0, 4095, 1},
      {0, 4096, 1},
      {0, 4097, 1},
      {0, 8193, 1},
      {-5000, 5000, 1},
      {10, 3, 1},
      {0, 0, 1},
      {0, 12288, 3},
      {0, 12289, 3},
      {7, 20000, 3},
      {INT_MAX - 7000, INT_MAX, 1},
      {INT_MIN, INT_MIN + 9000, 1},
      {INT_MAX - 14000, INT_MAX, 3},
      {INT_MIN, INT_MAX, 500003},
      {INT_MIN, INT_MAX, 2000003},
      {0, INT_MAX, INT_MAX},
  };
  for (unsigned threads : {8u, 24u})
    for (unsigned optLevel : {0u, 2u})
      for (int apart : {0, 97})
        for (Range range : ranges) {
          Module module(fill(kernel, {{"threads", std::to_string(threads)},
                                      {"step", std::to_string(range.step)},
                                      {"apart", std::to_string(apart)}}));
          std::unique_ptr<HostProgram> program = module.createProgram(Backend::CPU, 16, 1, optLevel);
          ASSERT_TRUE(program) << module.takeDiagnostics();
          std::vector<int64_t> x(threads), expected(threads);
          for (unsigned thread = 0; thread < threads; ++thread)
            for (int64_t i = range.lower; i < range.upper - int64_t(apart) * thread; i += range.step)
              expected[thread] = int64_t(uint64_t(expected[thread]) * 31 + uint64_t(i));
          EXPECT_EQ(
              llvm::toString(program->launch("k", {1, 1, 1}, {scalar(range.lower), scalar(range.upper), buffer(x)})),
              "");
          EXPECT_EQ(x, expected) << range.lower << " to " << range.upper << " step " << range.step << ", bounds "
                                 << apart << " apart, -O" << optLevel;
        }
}
