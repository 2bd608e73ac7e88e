//===- DivergentTest.cpp - ops with members where lanes part, with results computed here --------===//

#include "TestKernel.h"

#include <random>

using namespace qd;
using namespace qd::test;

namespace {
/// The mask of the lanes of `thread`'s subgroup for which `isHere` holds.
uint64_t maskOf(unsigned thread, unsigned lanes, unsigned threads, llvm::function_ref<bool(unsigned)> isHere) {
  uint64_t mask = 0;
  unsigned first = thread / lanes * lanes;
  for (unsigned other = first; other < std::min(threads, first + lanes); ++other)
    mask |= uint64_t(isHere(other)) << (other - first);
  return mask;
}

/// Calls `body` for each number of lanes and for blocks of whole and of partial subgroups.
void forEachBlock(llvm::function_ref<void(unsigned lanes, unsigned threads)> body) {
  for (unsigned lanes : allLanes)
    for (unsigned threads : {lanes, 2 * lanes, 3 * lanes - 1, lanes - 1, lanes + lanes / 2, 1u}) {
      SCOPED_TRACE(std::to_string(lanes) + " lanes, " + std::to_string(threads) + " threads");
      body(lanes, threads);
    }
}

std::vector<int> makeRandom(unsigned count, unsigned below, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> values(count);
  for (int &value : values)
    value = random() % below;
  return values;
}
} // namespace

/// Both arms of an if, an if within each, and the way out again.
TEST(Divergent, ActiveMasksOfNestedIfs) {
  forEachBlock([](unsigned lanes, unsigned threads) {
    std::vector<int> x = makeRandom(threads, 4, lanes + threads);
    std::vector<uint64_t> before(threads), in(threads), nested(threads), after(threads), expected(threads);
    run(fill(R"(
      qd.kernel @k(%x: !qd.buffer<i32>, %before: !qd.buffer<i64>, %in: !qd.buffer<i64>, %nested: !qd.buffer<i64>,
                   %after: !qd.buffer<i64>) block({threads}) {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c2 = arith.constant 2 : i32
        %i = qd.thread_index : i32
        %v = qd.load %x[%i] : !qd.buffer<i32>
        %low = arith.andi %v, %c1 : i32
        %high = arith.andi %v, %c2 : i32
        %isOdd = arith.cmpi ne, %low, %c0 : i32
        %isHigh = arith.cmpi ne, %high, %c0 : i32
        %m0 = qd.subgroup.active_mask : i64
        qd.store %m0, %before[%i] : !qd.buffer<i64>
        scf.if %isOdd {
          %m1 = qd.subgroup.active_mask : i64
          scf.if %isHigh {
            %m2 = qd.subgroup.active_mask : i64
            qd.store %m2, %nested[%i] : !qd.buffer<i64>
          } else {
            %m2 = qd.subgroup.active_mask : i64
            qd.store %m2, %nested[%i] : !qd.buffer<i64>
          }
          qd.store %m1, %in[%i] : !qd.buffer<i64>
        } else {
          scf.if %isHigh {
            %m2 = qd.subgroup.active_mask : i64
            qd.store %m2, %nested[%i] : !qd.buffer<i64>
          } else {
            %m2 = qd.subgroup.active_mask : i64
            qd.store %m2, %nested[%i] : !qd.buffer<i64>
          }
          %m1 = qd.subgroup.active_mask : i64
          qd.store %m1, %in[%i] : !qd.buffer<i64>
        }
        %m3 = qd.subgroup.active_mask : i64
        qd.store %m3, %after[%i] : !qd.buffer<i64>
        qd.return
      })", {{"threads", std::to_string(threads)}}),
        lanes, {1, 1, 1}, {buffer(x), buffer(before), buffer(in), buffer(nested), buffer(after)});
    for (unsigned t = 0; t < threads; ++t) {
      uint64_t all = maskOf(t, lanes, threads, [](unsigned) { return true; });
      EXPECT_EQ(before[t], all) << t;
      EXPECT_EQ(after[t], all) << t;
      EXPECT_EQ(in[t], maskOf(t, lanes, threads, [&](unsigned o) { return x[o] % 2 == x[t] % 2; })) << t;
      EXPECT_EQ(nested[t], maskOf(t, lanes, threads, [&](unsigned o) { return x[o] == x[t]; })) << t;
    }
  });
}

/// Groups of lanes with masks of their own stand at the same ballot and shuffle.
TEST(Divergent, GroupsMeetAtOneOp) {
  forEachBlock([](unsigned lanes, unsigned threads) {
    std::vector<int> group = makeRandom(threads, 3, lanes), value = makeRandom(threads, 1000, threads);
    std::vector<int64_t> members(threads), sets(threads);
    std::vector<int> from(threads), moved(threads, -1);
    std::vector<double> wide(threads);
    for (unsigned t = 0; t < threads; ++t) {
      members[t] = maskOf(t, lanes, threads, [&](unsigned o) { return group[o] == group[t]; });
      // Any member, of a lane number that wraps.
      unsigned nth = value[t] % llvm::popcount(uint64_t(members[t]));
      uint64_t left = members[t];
      for (unsigned k = 0; k < nth; ++k)
        left &= left - 1;
      from[t] = llvm::countr_zero(left) + (t % 2 ? lanes : 0);
    }
    run(fill(R"(
      qd.kernel @k(%group: !qd.buffer<i32>, %value: !qd.buffer<i32>, %members: !qd.buffer<i64>, %from: !qd.buffer<i32>,
                   %sets: !qd.buffer<i64>, %moved: !qd.buffer<i32>, %wide: !qd.buffer<f64>) block({threads}) {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %i = qd.thread_index : i32
        %g = qd.load %group[%i] : !qd.buffer<i32>
        %v = qd.load %value[%i] : !qd.buffer<i32>
        %m = qd.load %members[%i] : !qd.buffer<i64>
        %f = qd.load %from[%i] : !qd.buffer<i32>
        %low = arith.andi %v, %c1 : i32
        %isOdd = arith.cmpi ne, %low, %c0 : i32
        %some = arith.cmpi ne, %g, %c1 : i32
        scf.if %some {
          %set = qd.subgroup.ballot %isOdd members(%m) : i64
          %n = qd.subgroup.shuffle %v, %f members(%m) : i32
          %d = arith.sitofp %v : i32 to f64
          %w = qd.subgroup.shuffle %d, %f members(%m) : f64
          qd.store %set, %sets[%i] : !qd.buffer<i64>
          qd.store %n, %moved[%i] : !qd.buffer<i32>
          qd.store %w, %wide[%i] : !qd.buffer<f64>
        }
        qd.return
      })", {{"threads", std::to_string(threads)}}),
        lanes, {1, 1, 1},
        {buffer(group), buffer(value), buffer(members), buffer(from), buffer(sets), buffer(moved), buffer(wide)});
    for (unsigned t = 0; t < threads; ++t) {
      if (group[t] == 1) {
        EXPECT_EQ(moved[t], -1) << t;
        continue;
      }
      unsigned source = t / lanes * lanes + from[t] % lanes;
      EXPECT_EQ(uint64_t(sets[t]), maskOf(t, lanes, threads, [&](unsigned o) {
                  return group[o] == group[t] && value[o] % 2;
                })) << t;
      EXPECT_EQ(moved[t], value[source]) << t;
      EXPECT_EQ(wide[t], value[source]) << t;
    }
  });
}

/// Loops whose turns differ between lanes: for and while, an if in a loop, a loop in an if.
TEST(Divergent, Loops) {
  forEachBlock([](unsigned lanes, unsigned threads) {
    std::vector<int> turns = makeRandom(threads, 6, lanes * threads), skip = makeRandom(threads, 2, 5);
    std::vector<uint64_t> inFor(threads), inIf(threads), inWhile(threads), atTest(threads);
    run(fill(R"(
      qd.kernel @k(%turns: !qd.buffer<i32>, %skip: !qd.buffer<i32>, %inFor: !qd.buffer<i64>, %inIf: !qd.buffer<i64>,
                   %inWhile: !qd.buffer<i64>, %atTest: !qd.buffer<i64>) block({threads}) {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %none = arith.constant 0 : i64
        %factor = arith.constant 31 : i64
        %true = arith.constant true
        %i = qd.thread_index : i32
        %n = qd.load %turns[%i] : !qd.buffer<i32>
        %s = qd.load %skip[%i] : !qd.buffer<i32>
        %isSkipped = arith.cmpi ne, %s, %c0 : i32
        %a, %b = scf.for %k = %c0 to %n step %c1 iter_args(%x = %none, %y = %none) -> (i64, i64) : i32 {
          %m = qd.subgroup.active_mask : i64
          %x1 = arith.muli %x, %factor : i64
          %x2 = arith.addi %x1, %m : i64
          %odd = arith.andi %k, %c1 : i32
          %is = arith.cmpi eq, %odd, %s : i32
          %y2 = scf.if %is -> (i64) {
            %mi = qd.subgroup.ballot %true members(%m) : i64
            %y1 = arith.muli %y, %factor : i64
            %sum = arith.addi %y1, %mi : i64
            scf.yield %sum : i64
          } else {
            scf.yield %y : i64
          }
          scf.yield %x2, %y2 : i64, i64
        }
        qd.store %a, %inFor[%i] : !qd.buffer<i64>
        qd.store %b, %inIf[%i] : !qd.buffer<i64>
        scf.if %isSkipped {
        } else {
          %c, %d, %k = scf.while (%x = %none, %y = %none, %k = %c0) : (i64, i64, i32) -> (i64, i64, i32) {
            %m = qd.subgroup.active_mask : i64
            %y1 = arith.muli %y, %factor : i64
            %y2 = arith.addi %y1, %m : i64
            %goesOn = arith.cmpi ult, %k, %n : i32
            scf.condition(%goesOn) %x, %y2, %k : i64, i64, i32
          } do {
          ^bb0(%x: i64, %y: i64, %k: i32):
            %m = qd.subgroup.active_mask : i64
            %x1 = arith.muli %x, %factor : i64
            %x2 = arith.addi %x1, %m : i64
            %k1 = arith.addi %k, %c1 : i32
            scf.yield %x2, %y, %k1 : i64, i64, i32
          }
          qd.store %c, %inWhile[%i] : !qd.buffer<i64>
          qd.store %d, %atTest[%i] : !qd.buffer<i64>
        }
        qd.return
      })", {{"threads", std::to_string(threads)}}),
        lanes, {1, 1, 1},
        {buffer(turns), buffer(skip), buffer(inFor), buffer(inIf), buffer(inWhile), buffer(atTest)});
    for (unsigned t = 0; t < threads; ++t) {
      uint64_t a = 0, b = 0, c = 0, d = 0;
      for (int k = 0; k < turns[t]; ++k) {
        a = 31 * a + maskOf(t, lanes, threads, [&](unsigned o) { return turns[o] > k; });
        if (k % 2 == skip[t])
          b = 31 * b + maskOf(t, lanes, threads, [&](unsigned o) { return turns[o] > k && skip[o] == skip[t]; });
      }
      for (int k = 0; k <= turns[t] && !skip[t]; ++k)
        d = 31 * d + maskOf(t, lanes, threads, [&](unsigned o) { return !skip[o] && turns[o] >= k; });
      for (int k = 0; k < turns[t] && !skip[t]; ++k)
        c = 31 * c + maskOf(t, lanes, threads, [&](unsigned o) { return !skip[o] && turns[o] > k; });
      EXPECT_EQ(inFor[t], a) << t;
      EXPECT_EQ(inIf[t], b) << t;
      EXPECT_EQ(inWhile[t], c) << t;
      EXPECT_EQ(atTest[t], d) << t;
    }
  });
}

/// The promise makes a scalar of a value that lanes read each for itself; where it holds for the lanes of an arm only,
/// lane 0 is none of them.
TEST(Divergent, AssumedUniform) {
  forEachBlock([](unsigned lanes, unsigned threads) {
    std::vector<int> x(threads), y(threads), sums(threads);
    std::vector<float> f(threads), g(threads);
    for (unsigned t = 0; t < threads; ++t) {
      x[t] = (t / lanes + 3) * 2 + (t % lanes >= 2);
      f[t] = x[t] * 0.5f;
    }
    run(fill(R"(
      qd.kernel @k(%x: !qd.buffer<i32>, %f: !qd.buffer<f32>, %y: !qd.buffer<i32>, %g: !qd.buffer<f32>,
                   %sums: !qd.buffer<i32>) block({threads}) {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %i = qd.thread_index : i32
        %v = qd.load %x[%i] : !qd.buffer<i32>
        %w = qd.load %f[%i] : !qd.buffer<f32>
        %half = arith.shrui %v, %c1 : i32
        %n = qd.assume_uniform %half, subgroup : i32
        %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %c0) -> (i32) : i32 {
          %s1 = arith.addi %s, %k : i32
          scf.yield %s1 : i32
        }
        qd.store %sum, %sums[%i] : !qd.buffer<i32>
        %low = arith.andi %v, %c1 : i32
        %isLater = arith.cmpi ne, %low, %c0 : i32
        scf.if %isLater {
          %u = qd.assume_uniform %v, subgroup : i32
          %uw = qd.assume_uniform %w, subgroup : f32
          qd.store %u, %y[%i] : !qd.buffer<i32>
          qd.store %uw, %g[%i] : !qd.buffer<f32>
        }
        qd.return
      })", {{"threads", std::to_string(threads)}}),
        lanes, {1, 1, 1}, {buffer(x), buffer(f), buffer(y), buffer(g), buffer(sums)});
    for (unsigned t = 0; t < threads; ++t) {
      int n = x[t] / 2;
      EXPECT_EQ(sums[t], n * (n - 1) / 2) << t;
      EXPECT_EQ(y[t], t % lanes >= 2 ? x[t] : 0) << t;
      EXPECT_EQ(g[t], t % lanes >= 2 ? f[t] : 0) << t;
    }
  });
}

/// What lanes write to shared memory, to a buffer and under masks, other lanes read after a sync or a fence.
TEST(Divergent, StoresAreSeenAfterASync) {
  forEachBlock([](unsigned lanes, unsigned threads) {
    std::vector<int> x = makeRandom(threads, 1000, lanes), y(threads), z(threads);
    run(fill(R"(
      qd.kernel @k(%x: !qd.buffer<i32>, %y: !qd.buffer<i32>, %z: !qd.buffer<i32>) block({threads}) {
        %s = qd.shared.alloc : !qd.shared<{threads}xi32>
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %end = arith.constant {end} : i32
        %last = arith.constant {last} : i32
        %i = qd.thread_index : i32
        %v = qd.load %x[%i] : !qd.buffer<i32>
        %lane = qd.subgroup.lane_id : i32
        %first = arith.subi %i, %lane : i32
        %above = arith.addi %first, %last : i32
        %mirrored = arith.subi %above, %lane : i32
        %isIn = arith.cmpi slt, %mirrored, %end : i32
        %from = arith.select %isIn, %mirrored, %i : i32
        qd.store %v, %s[%i] : !qd.shared<{threads}xi32>
        qd.subgroup.sync
        %w = qd.load %s[%from] : !qd.shared<{threads}xi32>
        qd.subgroup.sync
        %low = arith.andi %i, %c1 : i32
        %isOdd = arith.cmpi ne, %low, %c0 : i32
        scf.if %isOdd {
          qd.store %w, %s[%i] : !qd.shared<{threads}xi32>
          qd.store %w, %y[%i] : !qd.buffer<i32>
          qd.subgroup.mem_fence
        }
        qd.subgroup.sync
        %a = qd.load %s[%from] : !qd.shared<{threads}xi32>
        %b = qd.load %y[%from] : !qd.buffer<i32>
        %sum = arith.addi %a, %b : i32
        qd.store %sum, %z[%i] : !qd.buffer<i32>
        qd.return
      })",
             {{"threads", std::to_string(threads)},
              {"end", std::to_string(threads)},
              {"last", std::to_string(lanes - 1)}}),
        lanes, {1, 1, 1}, {buffer(x), buffer(y), buffer(z)});
    for (unsigned t = 0; t < threads; ++t) {
      auto mirror = [&](unsigned u) {
        unsigned at = u / lanes * lanes + lanes - 1 - u % lanes;
        return at < threads ? at : u;
      };
      unsigned from = mirror(t);
      int inShared = from % 2 ? x[mirror(from)] : x[from], inBuffer = from % 2 ? x[mirror(from)] : 0;
      EXPECT_EQ(z[t], inShared + inBuffer) << t;
    }
  });
}
