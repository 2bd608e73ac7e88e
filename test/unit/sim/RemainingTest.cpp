//===- RemainingTest.cpp - what only some chips keep after the expansion, and order, on every GPU ------===//

#include "LoweredKernel.h"

using namespace llvm;

namespace qd::test {
namespace {

class Remaining : public testing::TestWithParam<Target> {
protected:
  unsigned getSize() const { return GetParam().subgroupSize; }
  /// The threads of a block of 40 or 80: one whole subgroup at least, and a partial one of 8 or 16 lanes.
  unsigned getThreads() const { return getSize() == 64 ? 80 : 40; }
  std::string formatKernel(const char *parameters, const std::string &body, unsigned threads = 0) const {
    return formatv("qd.kernel @k({0}) block({1}) {{\n  %i = qd.thread_index : i32\n{2}  qd.return\n}\n", parameters,
                   threads ? threads : getThreads(), body);
  }
  /// Where the chip lacks the capability the op is refused; true where it has it.
  bool checkRefusal(Capability capability, const std::string &text, const char *op) const {
    if (GetParam().has(capability))
      return true;
    LoweredKernel kernel(text, GetParam(), 2);
    std::string error = kernel.run(getThreads());
    EXPECT_NE(error.find(formatv("'{0}' op is not supported on {1}", op, GetParam().str())), std::string::npos)
        << error;
    return false;
  }
};

TEST_P(Remaining, Redux) {
  struct Case {
    const char *kind;
    uint32_t (*combine)(uint32_t, uint32_t);
  };
  static constexpr Case cases[] = {
      {"add", [](uint32_t a, uint32_t b) { return a + b; }},
      {"minsi", [](uint32_t a, uint32_t b) { return uint32_t(std::min(int32_t(a), int32_t(b))); }},
      {"minui", [](uint32_t a, uint32_t b) { return std::min(a, b); }},
      {"maxsi", [](uint32_t a, uint32_t b) { return uint32_t(std::max(int32_t(a), int32_t(b))); }},
      {"maxui", [](uint32_t a, uint32_t b) { return std::max(a, b); }},
      {"andi", [](uint32_t a, uint32_t b) { return a & b; }},
      {"ori", [](uint32_t a, uint32_t b) { return a | b; }},
      {"xori", [](uint32_t a, uint32_t b) { return a ^ b; }},
  };
  // On AMD's chips the op remains for whole subgroups alone.
  bool isNVPTX = GetParam().getBackend() == Backend::NVPTX;
  unsigned size = getSize(), threads = isNVPTX ? getThreads() : 2 * size;
  for (const Case &c : cases) {
    std::string text = formatKernel("%x: !qd.buffer<i32>, %y: !qd.buffer<i32>",
                                    formatv(R"(  %v = qd.load %x[%i] : !qd.buffer<i32>
  %r = qd.subgroup.reduce_all {0} %v : i32
  qd.store %r, %y[%i] : !qd.buffer<i32>
)",
                                            c.kind),
                                    threads);
    if (isNVPTX && !checkRefusal(ReduxSync, text, "qd.subgroup.reduce_all"))
      return;
    LoweredKernel kernel(text, GetParam(), 2);
    std::vector<uint32_t> x(threads), y(threads);
    for (unsigned i = 0; i < threads; ++i)
      x[i] = 0x9e3779b9 * (i + 1);
    ASSERT_EQ(kernel.run(threads, x, y), "") << c.kind;
    for (unsigned i = 0; i < threads; ++i) {
      unsigned base = i / size * size, end = std::min(base + size, threads);
      uint32_t expected = x[base];
      for (unsigned j = base + 1; j < end; ++j)
        expected = c.combine(expected, x[j]);
      EXPECT_EQ(y[i], expected) << c.kind << " on " << i;
    }
  }
}

TEST_P(Remaining, Match) {
  for (const char *type : {"i32", "i64"}) {
    std::string text = formatKernel(
        "%x: !qd.buffer<i64>, %any: !qd.buffer<i64>, %own: !qd.buffer<i64>, %all: !qd.buffer<i64>, "
        "%same: !qd.buffer<i1>, %group: !qd.buffer<i64>",
        formatv(R"(  %wide = qd.load %x[%i] : !qd.buffer<i64>
  %v = {0}
  %a = qd.subgroup.match_any %v : {1}
  qd.store %a, %any[%i] : !qd.buffer<i64>
  %evens = arith.constant 0x5555555555555555 : i64
  %odds = arith.constant 0xaaaaaaaaaaaaaaaa : i64
  %one = arith.constant 1 : i32
  %bit = arith.andi %i, %one : i32
  %odd = arith.trunci %bit : i32 to i1
  %side = arith.select %odd, %odds, %evens : i64
  %here = qd.subgroup.active_mask : i64
  %m = arith.andi %side, %here : i64
  %o = qd.subgroup.match_any %v members(%m) : {1}
  qd.store %o, %own[%i] : !qd.buffer<i64>
  %b, %s = qd.subgroup.match_all %v : {1}
  qd.store %b, %all[%i] : !qd.buffer<i64>
  qd.store %s, %same[%i] : !qd.buffer<i1>
  %g, %t = qd.subgroup.match_all %bit members(%m) : i32
  qd.store %g, %group[%i] : !qd.buffer<i64>
)",
                StringRef(type) == "i32" ? "arith.trunci %wide : i64 to i32" : "arith.addi %wide, %wide : i64", type));
    if (!checkRefusal(MatchSync, text, "qd.subgroup.match_any"))
      return;
    LoweredKernel kernel(text, GetParam(), 2);
    std::vector<uint64_t> x(40), any(40), own(40), all(40), group(40);
    std::vector<uint8_t> same(40);
    // Lanes of the first subgroup differ in the upper half alone; those of the second do not differ.
    for (unsigned i = 0; i < 40; ++i)
      x[i] = i < 32 ? 7 | uint64_t(i % 3) << 32 : 9;
    ASSERT_EQ(kernel.run(40, x, any, own, all, same, group), "") << type;
    bool isWide = StringRef(type) == "i64";
    for (unsigned i = 0; i < 40; ++i) {
      uint64_t equal = i >= 32 ? 0xff : isWide ? (0x49249249ull << i % 3) & 0xffffffff : 0xffffffff;
      uint64_t parity = (i % 2 ? 0xaaaaaaaaull : 0x55555555ull) & (i >= 32 ? 0xff : 0xffffffff);
      bool allSame = i >= 32 || !isWide;
      EXPECT_EQ(any[i], equal) << i << type;
      EXPECT_EQ(own[i], equal & parity) << i << type;
      EXPECT_EQ(all[i], allSame ? equal : 0) << i << type;
      EXPECT_EQ(same[i], allSame) << i << type;
      EXPECT_EQ(group[i], parity) << i << type;
    }
  }
}

TEST_P(Remaining, AllEqual) {
  std::string text = formatKernel("%x: !qd.buffer<i1>, %y: !qd.buffer<i1>", R"(  %v = qd.load %x[%i] : !qd.buffer<i1>
  %r = qd.subgroup.all_equal %v : i1
  qd.store %r, %y[%i] : !qd.buffer<i1>
)");
  if (!checkRefusal(VoteUni, text, "qd.subgroup.all_equal"))
    return;
  LoweredKernel kernel(text, GetParam(), 2);
  std::vector<uint8_t> x(40), y(40);
  for (unsigned other : {99u, 5u, 39u}) {
    for (unsigned i = 0; i < 40; ++i)
      x[i] = (i >= 32) != (i == other);
    ASSERT_EQ(kernel.run(40, x, y), "");
    for (unsigned i = 0; i < 40; ++i)
      EXPECT_EQ(y[i], other / 32 != i / 32) << i << " beside " << other;
  }
}

TEST_P(Remaining, LaneMaskRegisters) {
  struct Case {
    const char *op;
    uint32_t (*mask)(unsigned lane);
  };
  static constexpr Case cases[] = {
      {"lt", [](unsigned lane) { return (1u << lane) - 1; }},
      {"le", [](unsigned lane) { return (2u << lane) - 1; }},
      {"eq", [](unsigned lane) { return 1u << lane; }},
      {"ge", [](unsigned lane) { return ~0u << lane; }},
      {"gt", [](unsigned lane) { return ~1u << lane; }},
  };
  for (const Case &c : cases) {
    std::string text = formatKernel("%y: !qd.buffer<i32>", formatv(R"(  %r = qd.subgroup.lanemask_{0} : i32
  qd.store %r, %y[%i] : !qd.buffer<i32>
)",
                                                                   c.op));
    if (!checkRefusal(LaneMaskRegister, text, formatv("qd.subgroup.lanemask_{0}", c.op).str().c_str()))
      return;
    LoweredKernel kernel(text, GetParam(), 2);
    std::vector<uint32_t> y(40);
    ASSERT_EQ(kernel.run(40, y), "");
    for (unsigned i = 0; i < 40; ++i)
      EXPECT_EQ(y[i], c.mask(i % 32)) << c.op << " on " << i;
  }
}

/// Lanes hand values on through memory; a promise changes nothing.
TEST_P(Remaining, OrderAndPromises) {
  std::string text = formatKernel(
      "%x: !qd.buffer<i32>, %p: !qd.buffer<i1>, %y: !qd.buffer<i32>, %z: !qd.buffer<i64>", R"(
  %v = qd.load %x[%i] : !qd.buffer<i32>
  %q = qd.load %p[%i] : !qd.buffer<i1>
  %one = arith.constant 1 : i32
  %partner = arith.xori %i, %one : i32
  %s = qd.shared.alloc : !qd.shared<80xi32>
  qd.store %i, %s[%i] : !qd.shared<80xi32>
  qd.subgroup.sync
  %read = qd.load %s[%partner] : !qd.shared<80xi32>
  qd.subgroup.mem_fence
  %n = qd.assume_uniform %v, subgroup : i32
  %sum = arith.addi %read, %n : i32
  %w = arith.extui %v : i32 to i64
  %wide = qd.assume_uniform %w, subgroup : i64
  qd.store %wide, %z[%i] : !qd.buffer<i64>
  %c = qd.assume_uniform %q, subgroup : i1
  scf.if %c {
    qd.store %sum, %y[%i] : !qd.buffer<i32>
  }
)");
  unsigned threads = getThreads();
  for (unsigned optLevel = 0; optLevel <= 3; ++optLevel) {
    LoweredKernel kernel(text, GetParam(), optLevel);
    std::vector<int32_t> x(threads), y(threads, -1);
    std::vector<int64_t> z(threads);
    std::vector<uint8_t> p(threads);
    for (unsigned i = 0; i < threads; ++i) {
      x[i] = 1000 * (1 + i / getSize());
      p[i] = i < getSize();
    }
    ASSERT_EQ(kernel.run(threads, x, p, y, z), "") << optLevel;
    for (unsigned i = 0; i < threads; ++i) {
      EXPECT_EQ(y[i], i < getSize() ? int32_t(i ^ 1) + 1000 : -1) << i;
      EXPECT_EQ(z[i], x[i]) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, Remaining, testing::ValuesIn(getGPUTargets()), getTargetName);

} // namespace
} // namespace qd::test
