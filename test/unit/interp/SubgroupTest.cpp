//===- SubgroupTest.cpp - subgroup ops on the interpreter -----------------------------------===//

#include "Program.h"

#include <cmath>

using namespace qd::test;

namespace {

/// A kernel of `threads` threads that stores what `op` makes of %v, an i32 that is the thread's element of x.
std::string makeKernel(const std::string &op, unsigned threads) {
  return "qd.kernel @k(%x: !qd.buffer<i32>, %y: !qd.buffer<i32>) block(" + std::to_string(threads) + ") {\n"
         "  %i = qd.thread_id x : i32\n"
         "  %v = qd.load %x[%i] : !qd.buffer<i32>\n" + op +
         "  qd.store %r, %y[%i] : !qd.buffer<i32>\n  qd.return\n}\n";
}

std::vector<int32_t> apply(const std::string &op, unsigned threads, unsigned subgroupSize) {
  std::vector<int32_t> x = iota<int32_t>(threads), y(threads, -1);
  for (int32_t &value : x)
    value += 100;
  EXPECT_EQ(Program(makeKernel(op, threads), subgroupSize).buffer(x).buffer(y).run(), "") << op;
  return y;
}

TEST(Subgroup, moves) {
  for (unsigned n : {4, 8, 16, 32, 64}) {
    std::vector<int32_t> shuffle = apply("%three = arith.constant 3 : i32\n %l = arith.muli %i, %three : i32\n"
                                         "%r = qd.subgroup.shuffle %v, %l : i32\n", 64, n);
    std::vector<int32_t> up = apply("%r = qd.subgroup.shuffle_up %v, 3 : i32\n", 64, n);
    std::vector<int32_t> down = apply("%r = qd.subgroup.shuffle_down %v, 1 : i32\n", 64, n);
    std::vector<int32_t> xored = apply("%r = qd.subgroup.shuffle_xor %v, 2 : i32\n", 64, n);
    std::vector<int32_t> first = apply("%r = qd.subgroup.broadcast_first %v : i32\n", 64, n);
    std::vector<int32_t> third = apply("%r = qd.subgroup.broadcast %v, 3 : i32\n", 64, n);
    for (unsigned i = 0; i < 64; ++i) {
      unsigned base = i / n * n, lane = i % n;
      EXPECT_EQ(shuffle[i], int(100 + base + i * 3 % n));
      EXPECT_EQ(up[i], int(100 + (lane < 3 ? i : i - 3)));
      EXPECT_EQ(down[i], int(100 + (lane + 1 == n ? i : i + 1)));
      EXPECT_EQ(xored[i], int(100 + (i ^ 2)));
      EXPECT_EQ(first[i], int(100 + base));
      EXPECT_EQ(third[i], int(100 + base + 3));
    }
  }
}

TEST(Subgroup, tilesOfAnyWidth) {
  // Tiles from one lane to the block, on subgroups narrower and wider than the tile.
  for (unsigned n : {4, 16, 64})
    for (unsigned tile = 1; tile <= 128; tile *= 2) {
      std::string clause = " tile(" + std::to_string(tile) + ") : i32\n";
      std::vector<int32_t> sum = apply("%r = qd.subgroup.reduce_all add %v" + clause, 128, n);
      std::vector<int32_t> down = apply("%r = qd.subgroup.shuffle_down %v, 1" + clause, 128, n);
      for (unsigned i = 0; i < 128; ++i) {
        unsigned base = i / tile * tile;
        EXPECT_EQ(sum[i], int(tile * (100 + base) + tile * (tile - 1) / 2));
        EXPECT_EQ(down[i], int(100 + (i % tile == tile - 1 ? i : i + 1)));
      }
    }
}

TEST(Subgroup, votes) {
  std::string predicate = "%c = arith.constant 105 : i32\n %p = arith.cmpi slt, %v, %c : i32\n";
  std::string extend = "%r = arith.extui %b : i1 to i32\n";
  std::vector<int32_t> all = apply(predicate + "%b = qd.subgroup.all %p\n" + extend, 16, 4);
  std::vector<int32_t> any = apply(predicate + "%b = qd.subgroup.any %p\n" + extend, 16, 4);
  std::vector<int32_t> elect = apply("%b = qd.subgroup.elect tile(8)\n" + extend, 16, 4);
  std::vector<int32_t> ballot =
      apply(predicate + "%m = qd.subgroup.ballot %p : i64\n %r = arith.trunci %m : i64 to i32\n", 16, 4);
  for (unsigned i = 0; i < 16; ++i) {
    EXPECT_EQ(all[i], i < 4);
    EXPECT_EQ(any[i], i < 8);
    EXPECT_EQ(elect[i], i % 8 == 0);
    EXPECT_EQ(ballot[i], i < 4 ? 15 : i < 8 ? 1 : 0);
  }
}

TEST(Subgroup, partialLastSubgroup) {
  std::vector<int32_t> sum = apply("%r = qd.subgroup.reduce_all add %v : i32\n", 40, 32);
  EXPECT_EQ(sum[0], 100 * 32 + 31 * 16);
  EXPECT_EQ(sum[39], 100 * 8 + 36 * 8 - 4);
  std::vector<int32_t> ballot = apply("%t = arith.constant true\n %m = qd.subgroup.ballot %t : i64\n"
                                      "%r = arith.trunci %m : i64 to i32\n", 40, 32);
  EXPECT_EQ(ballot[0], -1);
  EXPECT_EQ(ballot[32], 255);

  std::vector<int32_t> x(40), y(40);
  std::string missing = makeKernel("%r = qd.subgroup.shuffle %v, 9 : i32\n", 40);
  EXPECT_EQ(
      Program(missing).buffer(x).buffer(y).run(),
      "test.qir:5:3: 'qd.store' op stores poison to element 32 of %y (kernel 'k', block (0, 0, 0), thread (32, 0, 0))");
}

TEST(Subgroup, reduceLeavesPoisonElsewhere) {
  std::vector<int32_t> x(32), y(32);
  std::string text = makeKernel("%r = qd.subgroup.reduce add %v : i32\n", 32);
  EXPECT_EQ(
      Program(text).buffer(x).buffer(y).run(),
      "test.qir:5:3: 'qd.store' op stores poison to element 1 of %y (kernel 'k', block (0, 0, 0), thread (1, 0, 0))");
  EXPECT_EQ(Program(text, 32, "none").buffer(x).buffer(y).run(), "");
}

TEST(Subgroup, kinds) {
  auto reduce = [](const char *kind) {
    return apply(std::string("%r = qd.subgroup.reduce_all ") + kind + " %v tile(4) : i32\n", 8, 8)[5];
  };
  EXPECT_EQ(reduce("add"), 104 + 105 + 106 + 107);
  EXPECT_EQ(reduce("mul"), 104 * 105 * 106 * 107);
  EXPECT_EQ(reduce("minsi"), 104);
  EXPECT_EQ(reduce("maxui"), 107);
  EXPECT_EQ(reduce("andi"), 104 & 105 & 106 & 107);
  EXPECT_EQ(reduce("ori"), 104 | 105 | 106 | 107);
  EXPECT_EQ(reduce("xori"), 104 ^ 105 ^ 106 ^ 107);
}

TEST(Subgroup, floatKinds) {
  std::string text = R"(qd.kernel @k(%x: !qd.buffer<f32>, %y: !qd.buffer<f32>) block(4) {
    %i = qd.thread_id x : i32
    %v = qd.load %x[%i] : !qd.buffer<f32>
    %a = qd.subgroup.reduce_all minnumf %v : f32
    %b = qd.subgroup.reduce_all minimumf %v : f32
    %c = qd.subgroup.reduce_all maxnumf %v : f32
    %d = qd.subgroup.reduce_all add %v : f32
    qd.store %a, %y[0] : !qd.buffer<f32>
    qd.store %b, %y[1] : !qd.buffer<f32>
    qd.store %c, %y[2] : !qd.buffer<f32>
    qd.store %d, %y[3] : !qd.buffer<f32>
    qd.return
  })";
  std::vector<float> x = {2, NAN, -1, 7}, y(4);
  EXPECT_EQ(Program(text, 4).buffer(x).buffer(y).run(), "");
  EXPECT_EQ(y[0], -1);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], 7);
  EXPECT_TRUE(std::isnan(y[3]));
}

TEST(Subgroup, divergence) {
  std::vector<int32_t> x = iota<int32_t>(32), y(32);
  std::string text = makeKernel(R"(%c = arith.constant 5 : i32
    %p = arith.cmpi slt, %v, %c : i32
    %r = scf.if %p -> i32 {
      %s = qd.subgroup.reduce_all add %v : i32
      scf.yield %s : i32
    } else {
      scf.yield %c : i32
    }
)", 32);
  EXPECT_EQ(
      Program(text).buffer(x).buffer(y).run(),
      "test.qir:7:12: 'qd.subgroup.reduce_all' op is reached by 5 of the 32 lanes of the subgroup, expected all of "
      "them: this thread is elsewhere (kernel 'k', block (0, 0, 0), thread (5, 0, 0))");
  EXPECT_EQ(Program(text, 32, "none").buffer(x).buffer(y).run(), "");
  EXPECT_EQ(y[4], 10);
}

TEST(Subgroup, illegalScopesAreDiagnosed) {
  EXPECT_EQ(Program(makeKernel("%r = qd.subgroup.reduce_all add %v tile(16) : i32\n", 40)).diagnostics,
            "'qd.subgroup.reduce_all' op tile of 16 lanes does not divide the block of 40 threads\n");
  EXPECT_EQ(Program(makeKernel("%r = qd.subgroup.shuffle_xor %v, 8 : i32\n", 8), 8).diagnostics,
            "'qd.subgroup.shuffle_xor' op mask 8 leaves the subgroup of 8 lanes\n");
}

} // namespace
