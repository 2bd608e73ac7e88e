//===- SubgroupTest.cpp - shuffles and votes, with results computed here ----------------------===//

#include "Differential.h"

using namespace qd;
using namespace qd::test;

namespace {
/// The lane that `lane` reads, by the language's definition.
unsigned sourceOf(llvm::StringRef op, unsigned lane, uint32_t operand, unsigned tile) {
  unsigned inTile = lane % tile, first = lane - inTile;
  if (op == "shuffle" || op == "broadcast")
    return first + operand % tile;
  if (op == "shuffle_xor")
    return first + (inTile ^ (operand % tile));
  if (op == "shuffle_up")
    return operand <= inTile ? lane - operand : lane;
  return operand < tile - inTile ? lane + operand : lane;
}

constexpr const char *ops[] = {"shuffle", "broadcast", "shuffle_xor", "shuffle_up", "shuffle_down"};
} // namespace

class SubgroupTypes : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(All, SubgroupTypes,
                         testing::Values("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"),
                         [](const auto &info) { return std::string(info.param); });

/// All ops in all tiles: by a literal, by a uniform value and by one that varies between lanes.
TEST_P(SubgroupTypes, Shuffles) {
  std::string type = GetParam();
  unsigned size = getBytes(type);
  for (unsigned lanes : allLanes) {
    std::string text = fill("qd.kernel @k(%x: !qd.buffer<{T}>, %n: !qd.buffer<i32>, %u: i32, %o: !qd.buffer<{T}>) "
                            "block({lanes}) {\n  %i = qd.thread_index : i32\n  %v = qd.load %x[%i] : !qd.buffer<{T}>\n"
                            "  %l = qd.load %n[%i] : !qd.buffer<i32>\n",
                            {{"T", type}, {"lanes", std::to_string(lanes)}});
    Array x = makeArray(type, lanes, Values::Any);
    std::vector<int> n(lanes);
    std::mt19937 random(lanes);
    for (int &value : n)
      value = random() % (2 * lanes);
    std::vector<unsigned> sources;
    uint32_t uniform = 1;
    auto add = [&](const char *op, const std::string &operand, unsigned tile, auto value) {
      std::string row = std::to_string(sources.size() / lanes), at = std::to_string(sources.size());
      std::string clause = tile == lanes ? "" : " tile(" + std::to_string(tile) + ")";
      text += "  %r" + row + " = qd.subgroup." + op + " %v, " + operand + clause + " : " + type + "\n  %c" + row +
              " = arith.constant " + at + " : i32\n  %at" + row + " = arith.addi %i, %c" + row + " : i32\n" +
              "  qd.store %r" + row + ", %o[%at" + row + "] : !qd.buffer<" + type + ">\n";
      for (unsigned lane = 0; lane < lanes; ++lane)
        sources.push_back(sourceOf(op, lane, value(lane), tile));
    };
    for (const char *op : ops)
      for (unsigned tile = 1; tile <= lanes; tile *= 2) {
        for (uint32_t literal : {0u, 1u, tile / 2, tile - 1, 3 * tile + 1})
          if (op != llvm::StringRef("shuffle_xor") || literal < tile)
            add(op, std::to_string(literal), tile, [&](unsigned) { return literal; });
        add(op, "%u", tile, [&](unsigned) { return uniform; });
        add(op, "%l", tile, [&](unsigned lane) { return uint32_t(n[lane]); });
      }
    text += "  qd.return\n}\n";
    std::vector<uint8_t> out(sources.size() * size), expected(sources.size() * size);
    for (size_t i = 0; i < sources.size(); ++i)
      std::memcpy(&expected[i * size], &x.bytes[sources[i] * size], size);
    run(text, lanes, {1, 1, 1},
        {HostArg{true, x.bytes.data(), lanes, 0}, buffer(n), scalar(uniform),
         HostArg{true, out.data(), int64_t(sources.size()), 0}});
    for (size_t i = 0; i < sources.size(); ++i)
      ASSERT_EQ(std::vector<uint8_t>(&out[i * size], &out[i * size + size]),
                std::vector<uint8_t>(&expected[i * size], &expected[i * size + size]))
          << lanes << " lanes, row " << i / lanes << ", lane " << i % lanes;
  }
}

/// Votes and ballots in whole and partial subgroups, of uniform predicates and of ones that vary.
TEST(Subgroup, Votes) {
  for (unsigned lanes : allLanes)
    for (unsigned threads : {lanes, 3 * lanes, lanes - 1, lanes + 3, 2 * lanes + lanes / 2, 1u}) {
      std::string text = fill("qd.kernel @k(%x: !qd.buffer<i1>, %u: i1, %b: !qd.buffer<i64>, %bu: !qd.buffer<i64>, "
                              "%o: !qd.buffer<i1>) block({threads}) {\n  %i = qd.thread_index : i32\n"
                              "  %p = qd.load %x[%i] : !qd.buffer<i1>\n  %r = qd.subgroup.ballot %p : i64\n"
                              "  qd.store %r, %b[%i] : !qd.buffer<i64>\n  %ru = qd.subgroup.ballot %u : i64\n"
                              "  qd.store %ru, %bu[%i] : !qd.buffer<i64>\n",
                              {{"threads", std::to_string(threads)}});
      std::vector<std::vector<uint8_t>> inputs;
      for (unsigned seed = 0; seed < 4; ++seed) {
        std::mt19937 random(seed);
        std::vector<uint8_t> x(threads);
        for (uint8_t &value : x)
          value = seed == 0 ? 0 : seed == 1 ? 1 : seed == 2 ? random() % 2 : random() % 8 != 0;
        inputs.push_back(x);
      }
      unsigned rows = 0;
      // A smaller tile must not straddle the block's end.
      auto isLegal = [&](unsigned tile) { return tile == lanes || threads % tile == 0; };
      for (unsigned tile = 1; tile <= lanes; tile *= 2)
        for (const char *op : {"all %p", "any %p", "all %u", "any %u", "elect"}) {
          if (!isLegal(tile))
            continue;
          std::string row = std::to_string(rows), at = std::to_string(rows++ * threads);
          std::string clause = tile == lanes ? "" : " tile(" + std::to_string(tile) + ")";
          text += "  %v" + row + " = qd.subgroup." + op + clause + "\n  %c" + row + " = arith.constant " + at +
                  " : i32\n  %at" + row + " = arith.addi %i, %c" + row + " : i32\n  qd.store %v" + row + ", %o[%at" +
                  row + "] : !qd.buffer<i1>\n";
        }
      text += "  qd.return\n}\n";
      for (std::vector<uint8_t> &x : inputs) {
        std::vector<uint64_t> ballots(threads), expectedBallots(threads), uniform(threads), expectedUniform(threads);
        std::vector<uint8_t> out(rows * threads), expected;
        for (unsigned t = 0; t < threads; ++t)
          for (unsigned other = t / lanes * lanes; other < std::min(threads, (t / lanes + 1) * lanes); ++other) {
            expectedBallots[t] |= uint64_t(x[other]) << other % lanes;
            expectedUniform[t] |= uint64_t(1) << other % lanes;
          }
        for (unsigned tile = 1; tile <= lanes; tile *= 2)
          for (unsigned op = 0; op < 5; ++op)
            for (unsigned t = 0; t < threads && isLegal(tile); ++t) {
              bool all = true, any = false;
              for (unsigned other = t / tile * tile; other < std::min(threads, (t / tile + 1) * tile); ++other) {
                all &= x[other];
                any |= x[other];
              }
              expected.push_back(op == 0 ? all : op == 1 ? any : op == 4 ? t % tile == 0 : true);
            }
        run(text, lanes, {1, 1, 1},
            {buffer(x), scalar(uint8_t(1)), buffer(ballots), buffer(uniform), buffer(out)});
        EXPECT_EQ(ballots, expectedBallots) << lanes << " " << threads;
        EXPECT_EQ(uniform, expectedUniform) << lanes << " " << threads;
        EXPECT_EQ(out, expected) << lanes << " " << threads;
      }
    }
}

/// Every kind of butterfly tree that the expansions make, against a plain sum.
TEST(Subgroup, ReducesByTrees) {
  for (unsigned lanes : allLanes)
    for (unsigned tile = 2; tile <= lanes; tile *= 2) {
      std::string text =
          fill("qd.kernel @k(%x: !qd.buffer<i32>, %y: !qd.buffer<i32>, %z: !qd.buffer<i32>) block(192) {\n"
               "  %i = qd.global_thread_id x : i32\n  %v0 = qd.load %x[%i] : !qd.buffer<i32>\n"
               "  %w0 = qd.load %x[%i] : !qd.buffer<i32>\n",
               {});
      unsigned step = 0;
      for (unsigned distance = tile / 2; distance; distance /= 2, ++step)
        text += fill("  %s{n} = qd.subgroup.shuffle_down %v{n}, {d} tile({tile}) poison_edge : i32\n"
                     "  %v{m} = arith.addi %v{n}, %s{n} : i32\n"
                     "  %t{n} = qd.subgroup.shuffle_xor %w{n}, {d} tile({tile}) : i32\n"
                     "  %w{m} = arith.addi %w{n}, %t{n} : i32\n",
                     {{"n", std::to_string(step)}, {"m", std::to_string(step + 1)}, {"d", std::to_string(distance)},
                      {"tile", std::to_string(tile)}});
      text += fill("  %lead = qd.subgroup.elect tile({tile})\n  qd.store %v{n}, %y[%i] if %lead : !qd.buffer<i32>\n"
                   "  qd.store %w{n}, %z[%i] : !qd.buffer<i32>\n  qd.return\n}\n",
                   {{"n", std::to_string(step)}, {"tile", std::to_string(tile)}});
      std::vector<int> x(384), y(384), z(384), expectedY(384), expectedZ(384);
      for (unsigned i = 0; i < 384; ++i) {
        x[i] = i * i;
        expectedY[i / tile * tile] += i * i;
      }
      for (unsigned i = 0; i < 384; ++i)
        expectedZ[i] = expectedY[i / tile * tile];
      run(text, lanes, {2, 1, 1}, {buffer(x), buffer(y), buffer(z)});
      EXPECT_EQ(y, expectedY) << lanes << " " << tile;
      EXPECT_EQ(z, expectedZ) << lanes << " " << tile;
    }
}
