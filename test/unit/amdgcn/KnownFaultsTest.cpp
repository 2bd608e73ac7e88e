//===- KnownFaultsTest.cpp - mistakes that compilers for AMD's chips have made ---------------------===//
//
// Each test is named for one; the numbers are those that came out wrong elsewhere.
//
//===----------------------------------------------------------------------===//

#include "QirModule.h"

#include "codegen/sim/Sim.h"

#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <limits>

using namespace llvm;

namespace qd::test {
namespace {

/// Runs @k on one block of 64 threads; `text` is the body after %i and %lane, the subgroup's.
class KnownFaults : public testing::TestWithParam<Target> {
protected:
  unsigned getSize() const { return GetParam().subgroupSize; }

  template <typename T> std::vector<T> run(StringRef type, StringRef body, std::vector<T> x = {}) const {
    std::string text = formatv(R"(
qd.kernel @k(%x: !qd.buffer<{0}> readonly, %y: !qd.buffer<{0}>) block(64) {{
  %i = qd.thread_index : i32
  %lane = qd.subgroup.lane_id : i32
{1}
  qd.return
}
)",
                               type, body);
    QirModule module(text, GetParam());
    EXPECT_TRUE(module.lowered) << module.errors;
    std::vector<T> y(64);
    if (!module.lowered)
      return y;
    SimOptions options;
    options.chip = GetParam().chip->name.str();
    options.waveSize = getSize();
    Expected<std::unique_ptr<SimProgram>> program = SimProgram::create(*module.lowered, options);
    EXPECT_TRUE(bool(program)) << toString(program.takeError());
    if (!program)
      return y;
    x.resize(64);
    Error error = (*program)->run("k", {1, 1, 1}, {64, 1, 1},
                                  {SimArg::buffer(x.data(), 64 * sizeof(T)), SimArg::buffer(y.data(), 64 * sizeof(T))});
    EXPECT_FALSE(bool(error)) << toString(std::move(error));
    return y;
  }
};

/// A row broadcast that reaches only the next row leaves each tile the sum of a half of it.
TEST_P(KnownFaults, TileSumsCountEveryRow) {
  std::vector<int32_t> sums = run<int32_t>("i32", R"(
  %s = qd.subgroup.reduce_all add %i tile(32) : i32
  qd.store %s, %y[%i] : !qd.buffer<i32>)");
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(sums[i], i < 32 ? 496 : 1520) << i;
  std::vector<int32_t> firsts = run<int32_t>("i32", R"(
  %s = qd.subgroup.reduce add %i tile(32) : i32
  %first = qd.subgroup.elect tile(32)
  qd.store %s, %y[%i] if %first : !qd.buffer<i32>)");
  EXPECT_EQ(firsts[0], 496);
  EXPECT_EQ(firsts[32], 1520);
}

/// Sums that cancel are +0.0, and only sums of nothing but -0.0 are -0.0, whatever fills lanes without a source.
template <typename T> static void expectSigns(const std::vector<T> &x, const std::vector<T> &sums, unsigned tile) {
  T sum = 0;
  for (unsigned i = 0; i < x.size(); ++i) {
    sum = i % tile == 0 ? x[i] : sum + x[i];
    EXPECT_EQ(sums[i], sum) << "tile " << tile << ", lane " << i;
    EXPECT_EQ(std::signbit(sums[i]), std::signbit(sum)) << "tile " << tile << ", lane " << i;
  }
}

TEST_P(KnownFaults, ScansKeepZerosSigns) {
  std::vector<double> x(64, -0.0);
  for (unsigned i = 1; i < 64; i += i % 7 + 1) {
    x[i - 1] = i;
    x[i] = i % 3 == 0 ? 0.0 : -double(i);
  }
  std::fill(x.begin() + 40, x.begin() + 52, -0.0);
  x[33] = 0.0;
  for (unsigned tile = 2; tile <= getSize(); tile *= 2) {
    std::string clause = tile == getSize() ? "" : formatv(" tile({0})", tile).str();
    auto scan = [&](StringRef type) {
      return formatv("  %v = qd.load %x[%i] : !qd.buffer<{0}>\n  %s = qd.subgroup.inclusive_scan add %v{1} : {0}\n"
                     "  qd.store %s, %y[%i] : !qd.buffer<{0}>",
                     type, clause)
          .str();
    };
    expectSigns(x, run<double>("f64", scan("f64"), x), tile);
    std::vector<float> narrow(x.begin(), x.end());
    expectSigns(narrow, run<float>("f32", scan("f32"), narrow), tile);
  }
}

/// What a lane adds that has no lower one in its tile may not be seen, where that is a product or a masked value.
template <typename T> static void expectEqual(const std::vector<T> &x, const std::vector<T> &sums, unsigned tile) {
  T sum = 0;
  for (unsigned i = 0; i < x.size(); ++i) {
    sum = i % tile == 0 ? x[i] : sum + x[i];
    if (std::isnan(sum))
      EXPECT_TRUE(std::isnan(sums[i])) << "tile " << tile << ", lane " << i;
    else
      EXPECT_EQ(sums[i], sum) << "tile " << tile << ", lane " << i;
  }
}

TEST_P(KnownFaults, ScansKeepExtremesInTheirTiles) {
  // Sums of these do not round, in whatever order.
  auto fill = [](auto &x) {
    using Limits = std::numeric_limits<std::decay_t<decltype(x[0])>>;
    for (unsigned i = 0; i < x.size(); ++i)
      x[i] = i < 32 ? i % 5 : 0;
    x[4] = Limits::infinity();
    x[7] = -Limits::infinity();
    x[8] = Limits::max();
    x[15] = Limits::quiet_NaN();
    x[16] = -Limits::infinity();
    x[23] = x[24] = Limits::quiet_NaN();
    for (unsigned i = 32; i < 48; ++i)
      x[i] = i % 3 * Limits::denorm_min();
    x[48] = x[55] = -Limits::max();
  };
  std::vector<double> x(64);
  std::vector<float> narrow(64);
  fill(x);
  fill(narrow);
  for (unsigned tile : {2, 4, 8}) {
    auto scan = [&](StringRef type) {
      return formatv("  %v = qd.load %x[%i] : !qd.buffer<{0}>\n"
                     "  %s = qd.subgroup.inclusive_scan add %v tile({1}) : {0}\n"
                     "  qd.store %s, %y[%i] : !qd.buffer<{0}>",
                     type, tile)
          .str();
    };
    expectEqual(x, run<double>("f64", scan("f64"), x), tile);
    expectEqual(narrow, run<float>("f32", scan("f32"), narrow), tile);
  }
}

/// A ballot kept in 32 bits loses the upper half of a wave.
TEST_P(KnownFaults, BallotsHaveTheUpperHalf) {
  std::vector<uint64_t> bits = run<uint64_t>("i64", R"(
  %three = arith.constant 3 : i32
  %zero = arith.constant 0 : i32
  %rest = arith.remui %lane, %three : i32
  %p = arith.cmpi eq, %rest, %zero : i32
  %b = qd.subgroup.ballot %p : i64
  qd.store %b, %y[%i] : !qd.buffer<i64>)");
  uint64_t expected = getSize() == 64 ? 0x9249249249249249 : 0x49249249;
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(bits[i], expected) << i;
}

/// Those of waves of 64 lanes.
class KnownFaultsOfHalves : public KnownFaults {};

/// ds_bpermute reaches its own half alone on some chips.
TEST_P(KnownFaultsOfHalves, ShufflesCrossTheHalves) {
  std::vector<int32_t> constant = run<int32_t>("i32", R"(
  %r = qd.subgroup.shuffle_xor %i, 32 : i32
  qd.store %r, %y[%i] : !qd.buffer<i32>)");
  std::vector<int32_t> lanes(64);
  for (int i = 0; i < 64; ++i)
    lanes[i] = i ^ 32;
  std::vector<int32_t> varying = run<int32_t>("i32", R"(
  %l = qd.load %x[%i] : !qd.buffer<i32>
  %r = qd.subgroup.shuffle %i, %l : i32
  qd.store %r, %y[%i] : !qd.buffer<i32>)",
                                              lanes);
  std::vector<int32_t> members = run<int32_t>("i32", R"(
  %l = qd.load %x[%i] : !qd.buffer<i32>
  %m = qd.subgroup.active_mask : i64
  %r = qd.subgroup.shuffle %i, %l members(%m) : i32
  qd.store %r, %y[%i] : !qd.buffer<i32>)",
                                              lanes);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(constant[i], i ^ 32);
    EXPECT_EQ(varying[i], i ^ 32);
    EXPECT_EQ(members[i], i ^ 32);
  }
}

/// 64-bit values go as two words, and neither may be lost, swapped or extended from the other.
TEST_P(KnownFaults, WideValuesKeepBothWords) {
  std::vector<uint64_t> x(64);
  for (uint64_t i = 0; i < 64; ++i)
    x[i] = (0xf0000000 + i) << 32 | (0x80000000 + 3 * i);
  for (const char *op :
       {"shuffle_xor %v, 1", "shuffle_xor %v, 16", "shuffle %v, %other", "shuffle_down %v, 1 tile(2)"}) {
    std::vector<uint64_t> moved = run<uint64_t>("i64", formatv(R"(
  %v = qd.load %x[%i] : !qd.buffer<i64>
  %one = arith.constant 1 : i32
  %other = arith.xori %lane, %one : i32
  %r = qd.subgroup.{0} : i64
  qd.store %r, %y[%i] : !qd.buffer<i64>)",
                                                               op)
                                                           .str(),
                                                x);
    bool isFar = StringRef(op).contains("16"), isDown = StringRef(op).contains("down");
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(moved[i], x[isFar ? i ^ 16 : isDown ? i | 1 : i ^ 1]) << op << " on " << i;
  }
}

/// A shuffle whose result only some lanes use takes place before they part: all lanes give their values.
TEST_P(KnownFaults, ShufflesStayOutsideBranches) {
  for (const char *op : {"shuffle_xor %v, 1", "shuffle_xor %v, 16", "shuffle %v, %other", "broadcast %v, 1"}) {
    std::vector<int32_t> x(64), moved;
    for (int i = 0; i < 64; ++i)
      x[i] = 100 + i;
    moved = run<int32_t>("i32", formatv(R"(
  %v = qd.load %x[%i] : !qd.buffer<i32>
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  %other = arith.xori %lane, %one : i32
  %r = qd.subgroup.{0} : i32
  %bit = arith.andi %lane, %one : i32
  %even = arith.cmpi eq, %bit, %zero : i32
  scf.if %even {{
    qd.store %r, %y[%i] : !qd.buffer<i32>
  })",
                                        op)
                                    .str(),
                         x);
    StringRef name = op;
    for (int i = 0; i < 64; ++i) {
      int base = i & -int(getSize());
      int source = name.contains("broadcast") ? base + 1 : name.contains("16") ? i ^ 16 : i ^ 1;
      EXPECT_EQ(moved[i], i % 2 ? 0 : x[source]) << op << " on " << i;
    }
  }
}

static std::vector<Target> getTargetsOf64() {
  std::vector<Target> targets = getTargets();
  llvm::erase_if(targets, [](const Target &t) { return t.subgroupSize != 64; });
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Chips, KnownFaultsOfHalves, testing::ValuesIn(getTargetsOf64()),
                         [](const auto &info) { return info.param.chip->name.str(); });

INSTANTIATE_TEST_SUITE_P(Chips, KnownFaults, testing::ValuesIn(getTargets()), [](const auto &info) {
  return info.param.chip->name.str() + "_" + std::to_string(info.param.subgroupSize);
});

} // namespace
} // namespace qd::test
