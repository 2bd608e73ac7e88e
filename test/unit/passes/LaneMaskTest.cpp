//===- LaneMaskTest.cpp - matches, ballots and masks against the definition -------------------===//
//
// Purpose: ops about which lane holds what, in every shape, expanded and run, against results computed here from the
// ops' descriptions; and what the expansions cost.
//
//===----------------------------------------------------------------------===//

#include "ExpandedKernel.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>
#include <random>

using namespace qd;
using namespace qd::test;

namespace {

const char *const types[] = {"i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"};
const unsigned sizes[] = {4, 8, 16, 32, 64};
const unsigned odd[] = {1, 2, 3, 5, 8, 12, 24, 31, 33, 48, 72, 100};

bool isFloat(const std::string &type) { return type.find('f') != std::string::npos; }

uint64_t encode(const std::string &type, double value) {
  if (!isFloat(type))
    return uint64_t(int64_t(value)) & llvm::maskTrailingOnes<uint64_t>(test::getBits(type));
  llvm::APFloat number(value);
  bool losesInfo;
  number.convert(type == "f16"    ? llvm::APFloat::IEEEhalf()
                 : type == "bf16" ? llvm::APFloat::BFloat()
                 : type == "f32"  ? llvm::APFloat::IEEEsingle()
                                  : llvm::APFloat::IEEEdouble(),
                 llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return number.bitcastToAPInt().getZExtValue();
}

/// `==` of the type's values.
bool isEqual(const std::string &type, uint64_t a, uint64_t b) {
  uint64_t infinity = isFloat(type) ? encode(type, INFINITY) : 0, sign = uint64_t(1) << (test::getBits(type) - 1);
  if (!isFloat(type))
    return a == b;
  auto isNaN = [&](uint64_t bits) { return (bits & ~sign) > infinity; };
  return !isNaN(a) && !isNaN(b) && (a == b || ((a | b) & ~sign) == 0);
}

/// Values of which lanes hold few different ones; `spread` 1 is for the same one everywhere, 2 for zeros of both signs.
Buffer makeValues(const std::string &type, unsigned count, unsigned spread, std::mt19937 &random) {
  const double values[] = {0, -0.0, 1, -1, NAN, 2};
  double first = values[random() % std::size(values)];
  Buffer buffer{type, {}};
  for (unsigned n = 0; n < count; ++n) {
    double value = spread == 1 ? first : spread == 2 ? values[random() % 2] : values[random() % std::size(values)];
    // NaN is no integer.
    buffer.elements.push_back(encode(type, isFloat(type) || value == value ? value : 3));
  }
  return buffer;
}

/// Calls `visit` for each thread with its group: the threads from `start` to `end`.
void forGroups(unsigned threads, unsigned lanes,
               llvm::function_ref<void(unsigned thread, unsigned start, unsigned end)> visit) {
  for (unsigned thread = 0; thread < threads; ++thread) {
    unsigned start = thread / lanes * lanes;
    visit(thread, start, std::min(threads, start + lanes));
  }
}

std::string clause(unsigned tile) { return tile ? llvm::formatv("tile({0})", tile).str() : ""; }

std::vector<unsigned> getTiles(unsigned threads, unsigned most) {
  std::vector<unsigned> tiles = {0};
  for (unsigned tile = 1; tile <= std::min(threads, most) && threads % tile == 0; tile *= 2)
    tiles.push_back(tile);
  return tiles;
}

/// Runs `op`, which makes the values that `stores` names, and compares all outputs.
void check(const std::string &op, const std::vector<Buffer> &inputs,
           const std::vector<std::pair<std::string, std::string>> &stores, const std::vector<Buffer> &expected,
           const std::string &target, Backend device = Backend::Interp) {
  unsigned threads = expected[0].elements.size();
  ExpandedKernel kernel(makeKernel(threads, inputs, op, stores), target);
  ASSERT_TRUE(kernel.isLegal());
  std::vector<std::string> outputTypes;
  for (auto &store : stores)
    outputTypes.push_back(store.second);
  std::vector<Buffer> found = kernel.run(inputs, outputTypes, device);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t b = 0; b < expected.size(); ++b)
    ASSERT_EQ(found[b].elements, expected[b].elements)
        << target << ", " << threads << " threads, output " << b << " of " << op << "\n"
        << kernel.str();
}

/// all_equal, match_any, match_all and ballot of one kernel.
void checkComparisons(const std::string &type, unsigned threads, unsigned size, unsigned tile,
                      const std::string &target, Backend device = Backend::Interp) {
  std::mt19937 random(threads + tile);
  for (unsigned spread : {1, 2, 6}) {
    Buffer values = makeValues(type, threads, spread, random), predicates = makeValues("i1", threads, spread, random);
    unsigned lanes = tile ? tile : size;
    Buffer equal{"i1", {}}, any{"i64", {}}, all{"i64", {}}, same{"i1", {}}, ballot{"i64", {}};
    forGroups(threads, lanes, [&](unsigned thread, unsigned start, unsigned end) {
      bool allEqual = true, allSame = true;
      uint64_t matches = 0, present = 0, votes = 0;
      for (unsigned other = start; other < end; ++other) {
        allEqual &= isEqual(type, values.elements[start], values.elements[other]);
        allSame &= values.elements[start] == values.elements[other];
        matches |= uint64_t(values.elements[thread] == values.elements[other]) << (other - start);
        present |= uint64_t(1) << (other - start);
        votes |= predicates.elements[other] << (other - start);
      }
      equal.elements.push_back(allEqual);
      any.elements.push_back(matches);
      all.elements.push_back(allSame ? present : 0);
      same.elements.push_back(allSame);
      ballot.elements.push_back(votes);
    });
    std::string op = llvm::formatv("%e = qd.subgroup.all_equal %v0 {0} : {1}\n"
                                   "  %m = qd.subgroup.match_any %v0 {0} : {1}\n"
                                   "  %a, %s = qd.subgroup.match_all %v0 {0} : {1}\n"
                                   "  %b = qd.subgroup.ballot %v1 {0} : i64",
                                   clause(tile), type);
    check(op, {values, predicates}, {{"%e", "i1"}, {"%m", "i64"}, {"%a", "i64"}, {"%s", "i1"}, {"%b", "i64"}},
          {equal, any, all, same, ballot}, target, device);
  }
}

} // namespace

class LaneMaskTypes : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(All, LaneMaskTypes, testing::ValuesIn(types),
                         [](const auto &info) { return std::string(info.param); });

TEST_P(LaneMaskTypes, Comparisons) {
  for (unsigned size : sizes) {
    std::string target = "interp@" + std::to_string(size);
    for (unsigned tile : getTiles(128, 64))
      checkComparisons(GetParam(), 128, size, tile, target);
    for (unsigned threads : {3, 20, 72})
      checkComparisons(GetParam(), threads, size, 0, target);
  }
  for (unsigned tile : getTiles(64, 64))
    checkComparisons(GetParam(), 64, 32, tile, "nvptx:sm_90");
  for (unsigned threads : {20, 72})
    checkComparisons(GetParam(), threads, 32, 0, "nvptx:sm_90");
}

TEST(LaneMask, ComparisonsInOddBlocks) {
  for (unsigned threads : odd)
    for (unsigned size : sizes)
      for (unsigned tile : getTiles(threads, 64))
        for (const char *type : {"i1", "i16", "f32"})
          checkComparisons(type, threads, size, tile, "interp@" + std::to_string(size));
}

TEST(LaneMask, ComparisonsOnCpuDevice) {
  for (const char *type : {"i1", "bf16", "f32"})
    for (unsigned size : {8, 32})
      for (unsigned tile : {0, 4, 16})
        checkComparisons(type, 64, size, tile, "cpu@" + std::to_string(size), Backend::CPU);
}

TEST(LaneMask, BallotsOfTheFirstLanes) {
  for (unsigned size : sizes)
    for (unsigned threads : {128, 20, 3})
      for (unsigned n : {1, 3, 8, 31, 32}) {
        std::mt19937 random(n);
        Buffer predicates = makeValues("i1", threads, 6, random), ballot{"i32", {}};
        forGroups(threads, size, [&](unsigned, unsigned start, unsigned end) {
          uint64_t votes = 0;
          for (unsigned other = start; other < std::min(end, start + n); ++other)
            votes |= predicates.elements[other] << (other - start);
          ballot.elements.push_back(votes);
        });
        check(llvm::formatv("%b = qd.subgroup.ballot_first_n %v0, {0} : i32", n), {predicates}, {{"%b", "i32"}},
              {ballot}, "interp@" + std::to_string(size));
      }
}

TEST(LaneMask, Rotations) {
  for (unsigned size : sizes)
    for (unsigned tile : getTiles(128, 128))
      for (const char *type : {"i1", "f16", "i32", "f64"}) {
        unsigned lanes = tile ? tile : size;
        std::mt19937 random(tile);
        Buffer values = makeValues(type, 128, 6, random), offsets{"i32", {}}, uniform{type, {}};
        for (unsigned thread = 0; thread < 128; ++thread) {
          values.elements[thread] = encode(type, thread);
          offsets.elements.push_back(uint32_t(int(random() % 300) - 150));
        }
        auto rotate = [&](auto getOffset) {
          Buffer rotated{type, {}};
          forGroups(128, lanes, [&](unsigned thread, unsigned start, unsigned) {
            int lane = int(thread - start) + int32_t(getOffset(thread));
            rotated.elements.push_back(values.elements[start + ((lane % int(lanes)) + lanes) % lanes]);
          });
          return rotated;
        };
        std::string target = "interp@" + std::to_string(size);
        for (int offset : {0, 1, -1, 2, 3, 16, -70, 131})
          check(llvm::formatv("%r = qd.subgroup.rotate %v0, {0} {1} : {2}", offset, clause(tile), type), {values},
                {{"%r", type}}, {rotate([&](unsigned) { return offset; })}, target);
        check(llvm::formatv("%r = qd.subgroup.rotate %v0, %v1 {0} : {1}", clause(tile), type), {values, offsets},
              {{"%r", type}}, {rotate([&](unsigned thread) { return offsets.elements[thread]; })}, target);
      }
}

/// Bit i of a mask compares i with the lane: operands, the own lane and that in a tile, where it fits.
TEST(LaneMask, Masks) {
  const std::pair<const char *, bool (*)(unsigned, unsigned)> relations[] = {
      {"lt", [](unsigned bit, unsigned lane) { return bit < lane; }},
      {"le", [](unsigned bit, unsigned lane) { return bit <= lane; }},
      {"eq", [](unsigned bit, unsigned lane) { return bit == lane; }},
      {"ge", [](unsigned bit, unsigned lane) { return bit >= lane; }},
      {"gt", [](unsigned bit, unsigned lane) { return bit > lane; }},
  };
  auto run = [&](const std::string &target, unsigned size, unsigned threads) {
    for (auto [name, relation] : relations)
      for (unsigned bits : {32, 64}) {
        std::string type = "i" + std::to_string(bits);
        auto getMasks = [&, relation = relation](auto getLane) {
          Buffer masks{type, {}};
          for (unsigned thread = 0; thread < threads; ++thread) {
            uint64_t mask = 0;
            for (unsigned bit = 0; bit < bits; ++bit)
              mask |= uint64_t(relation(bit, getLane(thread))) << bit;
            masks.elements.push_back(mask);
          }
          return masks;
        };
        Buffer lanes{"i32", {}};
        for (unsigned thread = 0; thread < threads; ++thread)
          lanes.elements.push_back((thread * 7 + 31) % bits);
        check(llvm::formatv("%m = qd.subgroup.lanemask_{0} %v0 : {1}", name, type), {lanes}, {{"%m", type}},
              {getMasks([&](unsigned thread) { return lanes.elements[thread]; })}, target);
        for (unsigned tile : getTiles(threads, bits))
          if (tile || size <= bits)
            check(llvm::formatv("%m = qd.subgroup.lanemask_{0} {1} : {2}", name, clause(tile), type), {},
                  {{"%m", type}}, {getMasks([&](unsigned thread) { return thread % (tile ? tile : size); })}, target);
      }
  };
  for (unsigned size : sizes)
    for (unsigned threads : {128, 20})
      run("interp@" + std::to_string(size), size, threads);
  run("nvptx:sm_90", 32, 64);
  run("nvptx:sm_90", 32, 16);
}

TEST(LaneMask, Numbers) {
  for (unsigned size : sizes)
    for (unsigned threads : {1, 8, 20, 100, 128}) {
      Buffer ids{"i32", {}}, counts{"i32", {}}, logs{"i32", {}};
      for (unsigned thread = 0; thread < threads; ++thread) {
        ids.elements.push_back(thread / size);
        counts.elements.push_back((threads + size - 1) / size);
        logs.elements.push_back(llvm::Log2_32(size));
      }
      check("%a = qd.subgroup.subgroup_id : i32\n  %b = qd.subgroup.num_subgroups : i32\n"
            "  %c = qd.subgroup.log2_size : i32",
            {}, {{"%a", "i32"}, {"%b", "i32"}, {"%c", "i32"}}, {ids, counts, logs}, "interp@" + std::to_string(size));
    }
}

/// Lanes of a subgroup in branches of their own.
TEST(LaneMask, Members) {
  for (const char *type : types)
    for (const char *target : {"interp@8", "interp@64", "nvptx:sm_90"})
      for (unsigned spread : {1, 6}) {
        unsigned size = std::string(target) == "interp@8" ? 8 : std::string(target) == "interp@64" ? 64 : 32;
        std::mt19937 random(size);
        Buffer values = makeValues(type, 64, spread, random), any{"i64", {}}, all{"i64", {}}, same{"i1", {}};
        forGroups(64, size, [&](unsigned thread, unsigned start, unsigned end) {
          uint64_t members = 0, matches = 0;
          for (unsigned other = start; other < end; ++other)
            if (other % 3 == thread % 3 || (other % 3 && thread % 3)) {
              members |= uint64_t(1) << (other - start);
              matches |= uint64_t(values.elements[other] == values.elements[thread]) << (other - start);
            }
          any.elements.push_back(matches);
          all.elements.push_back(matches == members ? members : 0);
          same.elements.push_back(matches == members);
        });
        // The members all match if one's matches are all members.
        std::string op = llvm::formatv(R"(
  %three = arith.constant 3 : i32
  %zero = arith.constant 0 : i32
  %rest = arith.remui %i, %three : i32
  %p = arith.cmpi eq, %rest, %zero : i32
  %b = qd.subgroup.ballot %p : i64
  %a, %m, %s = scf.if %p -> (i64, i64, i1) {{
    %x = qd.subgroup.match_any %v0 members(%b) : {0}
    %y, %z = qd.subgroup.match_all %v0 members(%b) : {0}
    scf.yield %x, %y, %z : i64, i64, i1
  } else {{
    %here = qd.subgroup.active_mask : i64
    %x = qd.subgroup.match_any %v0 members(%here) : {0}
    %y, %z = qd.subgroup.match_all %v0 members(%here) : {0}
    scf.yield %x, %y, %z : i64, i64, i1
  })",
                                       type);
        check(op, {values}, {{"%a", "i64"}, {"%m", "i64"}, {"%s", "i1"}}, {any, all, same}, target);
      }
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

namespace {
ExpandedKernel expand(const std::string &op, const std::string &type, const std::string &store,
                      const std::string &target) {
  return ExpandedKernel(makeKernel(64, {{type, {}}}, op, {{store, "i64"}}), target);
}
} // namespace

TEST(LaneMask, Costs) {
  for (const char *target : {"spirv:vulkan1.3@8", "amdgcn:gfx942", "cpu@32"})
    for (unsigned tile : {0, 4, 8})
      for (const char *type : types) {
        unsigned bits = test::getBits(type), words = bits == 64 ? 2 : 1;
        ExpandedKernel any = expand(llvm::formatv("%m = qd.subgroup.match_any %v0 {0} : {1}", clause(tile), type), type,
                                    "%m", target);
        EXPECT_TRUE(any.isPlain());
        EXPECT_EQ(any.countShuffles(), 0u);
        EXPECT_EQ(any.count("qd.subgroup.ballot"), bits);
        ExpandedKernel all = expand(llvm::formatv("%m, %s = qd.subgroup.match_all %v0 {0} : {1}", clause(tile), type),
                                    type, "%m", target);
        EXPECT_TRUE(all.isPlain());
        EXPECT_EQ(all.countShuffles(), bits == 1 ? 0 : words);
        EXPECT_EQ(all.count("qd.subgroup.ballot") + all.count("qd.subgroup.all"), 1u);
      }
  ExpandedKernel kept = expand("%m = qd.subgroup.match_any %v0 : i32", "i32", "%m", "nvptx:sm_70");
  EXPECT_EQ(kept.count("qd.subgroup.match_any"), 1u);
  EXPECT_EQ(kept.count("qd.subgroup.ballot"), 0u);
  ExpandedKernel narrow = expand("%m = qd.subgroup.match_any %v0 tile(8) : f16", "f16", "%m", "nvptx:sm_70");
  EXPECT_EQ(narrow.count("qd.subgroup.match_any"), 1u);
  ExpandedKernel ballot = expand("%m = qd.subgroup.ballot %v0 tile(4) : i64", "i1", "%m", "nvptx:sm_90");
  EXPECT_EQ(ballot.count("qd.subgroup.ballot"), 1u);
  EXPECT_TRUE(ballot.isPlain());
}

TEST(LaneMask, AllEqualCosts) {
  for (const char *type : types) {
    std::string op = llvm::formatv("%e = qd.subgroup.all_equal %v0 : {0}", type);
    bool isBit = type == std::string("i1");
    for (const char *target : {"nvptx:sm_90", "amdgcn:gfx1100", "spirv@8"}) {
      ExpandedKernel kernel(makeKernel(64, {{type, {}}}, op, {{"%e", "i1"}}), target);
      EXPECT_TRUE(kernel.isPlain());
      EXPECT_EQ(kernel.count("qd.subgroup.broadcast"), isBit ? 0u : 1u);
      bool isKept = isBit && target == std::string("nvptx:sm_90");
      EXPECT_EQ(kernel.count("qd.subgroup.all_equal"), isKept ? 1u : 0u);
      EXPECT_EQ(kernel.count("qd.subgroup.all"), isKept ? 0u : 1u);
      EXPECT_EQ(kernel.count("qd.subgroup.any"), isBit && !isKept ? 1u : 0u);
    }
  }
}
