//===- MembersTest.cpp - members of divergent flow, on every GPU and optimisation level --------------===//
//
// The optimiser may neither move nor merge nor copy what lanes do together; the numbers here tell each of them.
//
//===----------------------------------------------------------------------===//

#include "LoweredKernel.h"

using namespace llvm;

namespace qd::test {
namespace {

constexpr unsigned threads = 64; // one or two whole subgroups

class Members : public testing::TestWithParam<Target> {
protected:
  unsigned getSize() const { return GetParam().subgroupSize; }
  /// The bits of the subgroup's lanes for which `holds` is true.
  template <typename F> uint64_t getMask(F holds) const {
    uint64_t mask = 0;
    for (unsigned lane = 0; lane < getSize(); ++lane)
      mask |= uint64_t(holds(lane)) << lane;
    return mask;
  }
};

TEST_P(Members, BothSidesOfABranch) {
  const char *text = R"(
qd.kernel @k(%x: !qd.buffer<i32> readonly, %bits: !qd.buffer<i64>, %moved: !qd.buffer<i32>) block(64) {
  %i = qd.thread_index : i32
  %lane = qd.subgroup.lane_id : i32
  %v = qd.load %x[%i] : !qd.buffer<i32>
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ten = arith.constant 10 : i32
  %bit = arith.andi %v, %one : i32
  %odd = arith.cmpi ne, %bit, %zero : i32
  %low = arith.cmpi slt, %lane, %ten : i32
  %b, %w = scf.if %low -> (i64, i32) {
    %m = qd.subgroup.active_mask : i64
    %b = qd.subgroup.ballot %odd members(%m) : i64
    %w = qd.subgroup.shuffle %v, 3 members(%m) : i32
    scf.yield %b, %w : i64, i32
  } else {
    %m = qd.subgroup.active_mask : i64
    %b = qd.subgroup.ballot %odd members(%m) : i64
    %other = arith.xori %lane, %one : i32
    %w = qd.subgroup.shuffle %v, %other members(%m) : i32
    scf.yield %b, %w : i64, i32
  }
  qd.store %b, %bits[%i] : !qd.buffer<i64>
  qd.store %w, %moved[%i] : !qd.buffer<i32>
  qd.return
}
)";
  uint64_t low = 0x2aa, high = getMask([](unsigned lane) { return lane >= 10 && lane % 2; });
  for (unsigned optLevel = 0; optLevel <= 3; ++optLevel) {
    LoweredKernel kernel(text, GetParam(), optLevel);
    std::vector<int32_t> x(threads), moved(threads);
    std::vector<uint64_t> bits(threads);
    for (unsigned i = 0; i < threads; ++i)
      x[i] = int32_t(1000 + i);
    ASSERT_EQ(kernel.run(threads, x, bits, moved), "") << optLevel;
    for (unsigned i = 0; i < threads; ++i) {
      unsigned lane = i % getSize(), base = i - lane;
      EXPECT_EQ(bits[i], lane < 10 ? low : high) << i << " at " << optLevel;
      EXPECT_EQ(moved[i], x[base + (lane < 10 ? 3 : lane ^ 1)]) << i << " at " << optLevel;
    }
  }
}

/// Lanes leave one by one; each round the lowest lane that is left gives its number to the others.
TEST_P(Members, LoopThatLanesLeave) {
  const char *text = R"(
qd.kernel @k(%x: !qd.buffer<i32> readonly, %sums: !qd.buffer<i64>, %firsts: !qd.buffer<i32>) block(64) {
  %i = qd.thread_index : i32
  %lane = qd.subgroup.lane_id : i32
  %trips = qd.load %x[%i] : !qd.buffer<i32>
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant 0 : i64
  %ones = arith.constant true
  %sum, %first, %n = scf.while (%sum = %none, %first = %zero, %n = %zero) : (i64, i32, i32) -> (i64, i32, i32) {
    %more = arith.cmpi slt, %n, %trips : i32
    scf.condition(%more) %sum, %first, %n : i64, i32, i32
  } do {
  ^bb0(%sum: i64, %first: i32, %n: i32):
    %m = qd.subgroup.active_mask : i64
    %b = qd.subgroup.ballot %ones members(%m) : i64
    %at = math.cttz %m : i64
    %lowest = arith.trunci %at : i64 to i32
    %f = qd.subgroup.shuffle %lane, %lowest members(%m) : i32
    %nextSum = arith.addi %sum, %b : i64
    %nextFirst = arith.addi %first, %f : i32
    %nextN = arith.addi %n, %one : i32
    scf.yield %nextSum, %nextFirst, %nextN : i64, i32, i32
  }
  qd.store %sum, %sums[%i] : !qd.buffer<i64>
  qd.store %first, %firsts[%i] : !qd.buffer<i32>
  qd.return
}
)";
  std::vector<int32_t> trips(threads);
  for (unsigned i = 0; i < threads; ++i)
    trips[i] = int32_t(i % getSize() * 7 % 5);
  for (unsigned optLevel = 0; optLevel <= 3; ++optLevel) {
    LoweredKernel kernel(text, GetParam(), optLevel);
    std::vector<uint64_t> sums(threads);
    std::vector<int32_t> firsts(threads);
    ASSERT_EQ(kernel.run(threads, trips, sums, firsts), "") << optLevel;
    for (unsigned i = 0; i < threads; ++i) {
      uint64_t sum = 0;
      int32_t first = 0;
      for (int32_t n = 0; n < trips[i]; ++n) {
        uint64_t here = getMask([&](unsigned lane) { return trips[lane] > n; });
        sum += here;
        first += countr_zero(here);
      }
      EXPECT_EQ(sums[i], sum) << i << " at " << optLevel;
      EXPECT_EQ(firsts[i], first) << i << " at " << optLevel;
    }
  }
}

/// A loop all lanes go round together, with a branch in it whose sides do the same.
TEST_P(Members, SidesOfABranchInALoopStayApart) {
  const char *text = R"(
qd.kernel @k(%x: !qd.buffer<i32> readonly, %sums: !qd.buffer<i64>) block(64) {
  %i = qd.thread_index : i32
  %v = qd.load %x[%i] : !qd.buffer<i32>
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %none = arith.constant 0 : i64
  %always = arith.constant true
  %sum = scf.for %n = %zero to %four step %one iter_args(%acc = %none) -> i64 : i32 {
    %shifted = arith.shrui %v, %n : i32
    %bit = arith.andi %shifted, %one : i32
    %side = arith.cmpi ne, %bit, %zero : i32
    %b = scf.if %side -> i64 {
      %m = qd.subgroup.active_mask : i64
      %b = qd.subgroup.ballot %always members(%m) : i64
      scf.yield %b : i64
    } else {
      %m = qd.subgroup.active_mask : i64
      %b = qd.subgroup.ballot %always members(%m) : i64
      scf.yield %b : i64
    }
    %next = arith.addi %acc, %b : i64
    scf.yield %next : i64
  }
  qd.store %sum, %sums[%i] : !qd.buffer<i64>
  qd.return
}
)";
  std::vector<int32_t> x(threads);
  for (unsigned i = 0; i < threads; ++i)
    x[i] = int32_t(i % getSize() * 11);
  for (unsigned optLevel = 0; optLevel <= 3; ++optLevel) {
    LoweredKernel kernel(text, GetParam(), optLevel);
    std::vector<uint64_t> sums(threads);
    ASSERT_EQ(kernel.run(threads, x, sums), "") << optLevel;
    for (unsigned i = 0; i < threads; ++i) {
      uint64_t sum = 0;
      for (unsigned n = 0; n < 4; ++n)
        sum += getMask([&](unsigned lane) { return ((x[lane] ^ x[i]) >> n & 1) == 0; });
      EXPECT_EQ(sums[i], sum) << i << " at " << optLevel;
    }
  }
}

/// Lanes of two masks reach one op side by side and do not meet; 64-bit values keep both halves.
TEST_P(Members, GroupsSideBySide) {
  const char *text = R"(
qd.kernel @k(%x: !qd.buffer<i64> readonly, %bits: !qd.buffer<i64>, %moved: !qd.buffer<i64>) block(64) {
  %i = qd.thread_index : i32
  %lane = qd.subgroup.lane_id : i32
  %v = qd.load %x[%i] : !qd.buffer<i64>
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %zero = arith.constant 0 : i32
  %evens = arith.constant 0x5555555555555555 : i64
  %odds = arith.constant 0xaaaaaaaaaaaaaaaa : i64
  %bit = arith.andi %lane, %one : i32
  %odd = arith.cmpi ne, %bit, %zero : i32
  %m = arith.select %odd, %odds, %evens : i64
  %twos = arith.andi %lane, %two : i32
  %p = arith.cmpi ne, %twos, %zero : i32
  %b = qd.subgroup.ballot %p members(%m) : i64
  qd.store %b, %bits[%i] : !qd.buffer<i64>
  %partner = arith.xori %lane, %two : i32
  %w = qd.subgroup.shuffle %v, %partner members(%m) : i64
  qd.store %w, %moved[%i] : !qd.buffer<i64>
  qd.return
}
)";
  std::vector<uint64_t> x(threads);
  for (unsigned i = 0; i < threads; ++i)
    x[i] = uint64_t(i + 1) << 32 | (100 + i);
  for (unsigned optLevel : {0u, 3u}) {
    LoweredKernel kernel(text, GetParam(), optLevel);
    std::vector<uint64_t> bits(threads), moved(threads);
    ASSERT_EQ(kernel.run(threads, x, bits, moved), "") << optLevel;
    uint64_t all = getSize() == 64 ? ~uint64_t(0) : 0xffffffff;
    for (unsigned i = 0; i < threads; ++i) {
      EXPECT_EQ(bits[i], (i % 2 ? 0x8888888888888888 : 0x4444444444444444) & all) << i;
      EXPECT_EQ(moved[i], x[i ^ 2]) << i;
    }
  }
}

/// Lanes that a partial last subgroup lacks have no bit.
TEST_P(Members, ActiveMaskOfAPartialSubgroup) {
  const char *text = R"(
qd.kernel @k(%masks: !qd.buffer<i64>) block(76) {
  %i = qd.thread_index : i32
  %m = qd.subgroup.active_mask : i64
  qd.store %m, %masks[%i] : !qd.buffer<i64>
  qd.return
}
)";
  LoweredKernel kernel(text, GetParam(), 2);
  std::vector<uint64_t> masks(76);
  ASSERT_EQ(kernel.run(76, masks), "");
  for (unsigned i = 0; i < 76; ++i)
    EXPECT_EQ(masks[i], i >= 64 ? 0xfff : getSize() == 64 ? ~uint64_t(0) : 0xffffffff) << i;
}

/// Whatever a chip's instruction delivers for a lane that does not exist, its use is reported.
TEST_P(Members, ReadsOfMissingLanes) {
  struct Case {
    const char *move;
    unsigned thread; ///< the first that reads past the block's 40
  };
  for (Case c : {Case{"shuffle_down %i, 1", 39}, Case{"shuffle_xor %i, 16", 32}, Case{"shuffle %i, 9", 32}}) {
    std::string text = formatv(R"(
qd.kernel @k(%y: !qd.buffer<i32>) block(40) {{
  %i = qd.thread_index : i32
  %r = qd.subgroup.{0} : i32
  qd.store %r, %y[%i] : !qd.buffer<i32>
  qd.return
}
)",
                               c.move);
    bool readsInside = getSize() == 64 && StringRef(c.move).contains(", 9");
    for (unsigned optLevel = 0; optLevel <= 3; ++optLevel) {
      LoweredKernel kernel(text, GetParam(), optLevel);
      std::vector<int32_t> y(40);
      std::string error = kernel.run(40, y);
      std::string fault = formatv("poison stored in kernel 'k', block (0, 0, 0), thread ({0}, 0, 0)", c.thread);
      EXPECT_EQ(error.find(fault) != std::string::npos, !readsInside) << c.move << " at " << optLevel << error;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, Members, testing::ValuesIn(getGPUTargets()), getTargetName);

//===----------------------------------------------------------------------===//
// What members must do, where the chip's instructions name them
//===----------------------------------------------------------------------===//

std::string runWrong(const char *mask, const char *guard) {
  std::string text = formatv(R"(
qd.kernel @k(%bits: !qd.buffer<i64>) block(32) {{
  %i = qd.thread_index : i32
  %n = arith.constant 16 : i32
  %low = arith.cmpi slt, %i, %n : i32
  %always = arith.constant true
  %p = arith.{1}
  scf.if %p {{
    %m = arith.constant {0} : i64
    %b = qd.subgroup.ballot %low members(%m) : i64
    qd.store %b, %bits[%i] : !qd.buffer<i64>
  }
  qd.return
}
)",
                             mask, guard);
  LoweredKernel kernel(text, cantFail(findTarget("nvptx:sm_80")), 2);
  std::vector<uint64_t> bits(32);
  return kernel.run(32, bits);
}

TEST(WrongMembers, LaneOutsideItsMask) {
  std::string error = runWrong("255", "ori %low, %always : i1");
  EXPECT_NE(error.find("lane 8 is not in its own member mask 0xff"), std::string::npos) << error;
}

TEST(WrongMembers, MemberThatNeverArrives) {
  std::string error = runWrong("0x1ffff", "andi %low, %always : i1");
  EXPECT_NE(error.find("lane 16 of member mask 0x1ffff has left the kernel"), std::string::npos) << error;
  EXPECT_EQ(runWrong("0xffff", "andi %low, %always : i1"), "");
}

} // namespace
} // namespace qd::test
