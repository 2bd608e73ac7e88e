//===- ShuffleGuardTest.cpp - selects that a shuffle's predicate may decide, and those that it may not ---===//

#include "LoweredKernel.h"

using namespace llvm;

namespace qd::test {
namespace {

struct Case {
  const char *shuffle;   ///< of %v
  const char *condition; ///< on %lane (of the subgroup), %index (of the thread) or %l (of a tile of 8)
  bool (*takes)(int lane);
  int offset;
};

/// Each case selects between the sum with the shuffled value, and the own value; the source is known where it takes.
constexpr Case cases[] = {
    // Those that a scan has.
    {"shuffle_up %v, 4", "uge, %lane, %four", [](int lane) { return lane >= 4; }, -4},
    {"shuffle_up %v, 4", "ult, %lane, %four", [](int lane) { return lane < 4; }, 0},
    {"shuffle_up %v, 1", "ne, %lane, %zero", [](int lane) { return lane != 0; }, -1},
    {"shuffle_up %v, 4 tile(8)", "sge, %l, %four", [](int lane) { return lane % 8 >= 4; }, -4},
    {"shuffle_down %v, 4 tile(8)", "ult, %l, %four", [](int lane) { return lane % 8 < 4; }, 4},
    // Another distance, another tile, one lane too many or too few.
    {"shuffle_up %v, 1", "uge, %lane, %four", [](int lane) { return lane >= 4; }, -1},
    {"shuffle_up %v, 1", "eq, %lane, %four", [](int lane) { return lane == 4; }, -1},
    {"shuffle_up %v, 4", "ugt, %lane, %four", [](int lane) { return lane > 4; }, -4},
    {"shuffle_up %v, 4", "sge, %l, %four", [](int lane) { return lane % 8 >= 4; }, -4},
    {"shuffle_down %v, 4", "ult, %l, %four", [](int lane) { return lane % 8 < 4; }, 4},
    {"shuffle_up %v, 4", "uge, %index, %four", [](int) { return true; }, -4},
};

class Guards : public testing::TestWithParam<unsigned> {};

TEST_P(Guards, OnlyTheShufflesOwnIsReplaced) {
  for (const Case &c : cases)
    for (const char *type : {"i32", "f32", "i64", "i8"}) {
      bool isFloat = StringRef(type) == "f32";
      std::string text = formatv(R"(
qd.kernel @k(%x: !qd.buffer<{0}>, %y: !qd.buffer<{0}>) block(64) {{
  %index = qd.thread_index : i32
  %lane = qd.subgroup.lane_id : i32
  %zero = arith.constant 0 : i32
  %four = arith.constant 4 : i32
  %seven = arith.constant 7 : i32
  %l = arith.andi %index, %seven : i32
  %v = qd.load %x[%index] : !qd.buffer<{0}>
  %s = qd.subgroup.{1} : {0}
  %a = arith.{2} %s, %v : {0}
  %c = arith.cmpi {3} : i32
  %r = arith.select %c, %a, %v : {0}
  qd.store %r, %y[%index] : !qd.buffer<{0}>
  qd.return
}
)",
                                 type, c.shuffle, isFloat ? "addf" : "addi", c.condition);
      SCOPED_TRACE(text);
      LoweredKernel kernel(text, cantFail(findTarget("nvptx:sm_80")), GetParam());
      auto check = [&](auto zero) {
        using T = decltype(zero);
        std::vector<T> x(64), y(64);
        for (int i = 0; i < 64; ++i)
          x[i] = T(i + 1);
        ASSERT_EQ(kernel.run(64, x, y), "");
        for (int i = 0; i < 64; ++i) {
          bool takes = StringRef(c.condition).contains("%index") ? i >= 4 : c.takes(i % 32);
          int source = i + c.offset;
          // Past the edge a lane reads itself.
          int tile = StringRef(c.shuffle).contains("tile") ? 8 : 32;
          if (source / tile != i / tile || source < 0 || c.offset == 0)
            source = i;
          EXPECT_EQ(y[i], takes ? T(x[i] + x[source]) : x[i]) << i;
        }
      };
      if (isFloat)
        check(0.0f);
      else if (StringRef(type) == "i8")
        check(uint8_t(0));
      else if (StringRef(type) == "i64")
        check(int64_t(0));
      else
        check(int32_t(0));
    }
}

INSTANTIATE_TEST_SUITE_P(OptLevels, Guards, testing::Values(0u, 2u, 3u));

} // namespace
} // namespace qd::test
