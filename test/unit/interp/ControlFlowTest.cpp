//===- ControlFlowTest.cpp - loops, branches, barriers and waits on the interpreter -----------===//

#include "Program.h"

using namespace qd::test;

namespace {

TEST(ControlFlow, branchesMeetAgain) {
  std::vector<int32_t> y(64);
  EXPECT_EQ(Program(R"(qd.kernel @k(%y: !qd.buffer<i32>) block(64) {
    %i = qd.thread_id x : i32
    %one = arith.constant 1 : i32
    %bit = arith.trunci %i : i32 to i1
    %v = scf.if %bit -> i32 {
      %a = arith.muli %i, %i : i32
      scf.yield %a : i32
    } else {
      %b = arith.subi %one, %i : i32
      scf.yield %b : i32
    }
    scf.if %bit {
      %w = arith.addi %v, %one : i32
      qd.store %w, %y[%i] : !qd.buffer<i32>
    }
    %s = qd.subgroup.shuffle_xor %v, 1 : i32
    %z = arith.constant false
    %even = arith.cmpi eq, %bit, %z : i1
    qd.store %s, %y[%i] if %even : !qd.buffer<i32>
    qd.return
  })").buffer(y).run(), "");
  EXPECT_EQ(y[3], 10);
  EXPECT_EQ(y[4], 25);
}

TEST(ControlFlow, loopsCountByLane) {
  // Triangular numbers: each lane goes round as often as its number says; one loop swaps two values.
  std::vector<int32_t> y(64);
  EXPECT_EQ(Program(R"(qd.kernel @k(%y: !qd.buffer<i32>) block(32) {
    %i = qd.thread_id x : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %n = arith.constant 32 : i32
    %sum, %a, %b = scf.for %j = %zero to %i step %one iter_args(%s = %zero, %p = %zero, %q = %one)
        -> (i32, i32, i32) : i32 {
      %t = arith.addi %s, %j : i32
      scf.yield %t, %q, %p : i32, i32, i32
    }
    qd.store %sum, %y[%i] : !qd.buffer<i32>
    %at = arith.addi %i, %n : i32
    qd.store %a, %y[%at] : !qd.buffer<i32>
    qd.return
  })")
                .buffer(y)
                .run(),
            "");
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(y[i], i * (i - 1) / 2);
    EXPECT_EQ(y[32 + i], i % 2);
  }
}

TEST(ControlFlow, loopVariableDoesNotOverflow) {
  std::vector<int32_t> y(1);
  EXPECT_EQ(Program(R"(qd.kernel @k(%y: !qd.buffer<i32>) block(1) {
    %lower = arith.constant 2147483600 : i32
    %upper = arith.constant 2147483647 : i32
    %step = arith.constant 40 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %count = scf.for %j = %lower to %upper step %step iter_args(%c = %zero) -> (i32) : i32 {
      %t = arith.addi %c, %one : i32
      scf.yield %t : i32
    }
    qd.store %count, %y[0] : !qd.buffer<i32>
    qd.return
  })").buffer(y).run(), "");
  EXPECT_EQ(y[0], 2);
}

TEST(ControlFlow, stepMustBePositive) {
  EXPECT_EQ(
      Program(R"(qd.kernel @k(%s: i32) block(1) {
    %zero = arith.constant 0 : i32
    scf.for %j = %zero to %s step %s : i32 {
    }
    qd.return
  })")
          .scalar(0)
          .run(),
      "test.qir:3:5: 'scf.for' op has a step of 0, expected at least 1 (kernel 'k', block (0, 0, 0), "
      "thread (0, 0, 0))");
}

TEST(ControlFlow, whileLoops) {
  // Collatz steps from i + 1.
  std::vector<int32_t> y(8);
  EXPECT_EQ(Program(R"(qd.kernel @k(%y: !qd.buffer<i32>) block(8) {
    %i = qd.thread_id x : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %three = arith.constant 3 : i32
    %start = arith.addi %i, %one : i32
    %last, %steps = scf.while (%n = %start, %c = %zero) : (i32, i32) -> (i32, i32) {
      %more = arith.cmpi ne, %n, %one : i32
      scf.condition(%more) %n, %c : i32, i32
    } do {
    ^bb0(%n: i32, %c: i32):
      %odd = arith.trunci %n : i32 to i1
      %m = arith.muli %n, %three : i32
      %up = arith.addi %m, %one : i32
      %down = arith.shrui %n, %one : i32
      %next = arith.select %odd, %up, %down : i32
      %d = arith.addi %c, %one : i32
      scf.yield %next, %d : i32, i32
    }
    qd.store %steps, %y[%i] : !qd.buffer<i32>
    qd.return
  })").buffer(y).run(), "");
  EXPECT_EQ(y, (std::vector<int32_t>{0, 1, 7, 2, 5, 8, 16, 3}));
}

TEST(ControlFlow, calls) {
  std::vector<int32_t> y(4);
  const char *text = R"(
  func.func private @square(%v: i32) -> i32 {
    %r = arith.muli %v, %v : i32
    return %r : i32
  }
  qd.kernel @k(%y: !qd.buffer<i32>) block(4) {
    %i = qd.thread_id x : i32
    %a = func.call @square(%i) : (i32) -> i32
    %b = func.call @square(%a) : (i32) -> i32
    qd.store %b, %y[%i] : !qd.buffer<i32>
    qd.return
  })";
  EXPECT_EQ(Program(text).buffer(y).run(), "");
  EXPECT_EQ(y, (std::vector<int32_t>{0, 1, 16, 81}));
  EXPECT_EQ(Program(R"(
  func.func @f() {
    func.call @f() : () -> ()
    return
  }
  qd.kernel @k() block(1) {
    func.call @f() : () -> ()
    qd.return
  })").diagnostics, "'func.call' op calls 'f' recursively\n");
}

TEST(ControlFlow, barrierAndSharedMemory) {
  std::vector<int32_t> y(100);
  EXPECT_EQ(Program(R"(qd.kernel @k(%y: !qd.buffer<i32>) block(10, 10) {
    %s = qd.shared.alloc : !qd.shared<10x10xi32>
    %x = qd.thread_id x : i32
    %z = qd.thread_id y : i32
    %i = qd.thread_index : i32
    qd.store %i, %s[%x, %z] : !qd.shared<10x10xi32>
    qd.block.sync
    %v = qd.load %s[%z, %x] : !qd.shared<10x10xi32>
    qd.store %v, %y[%i] : !qd.buffer<i32>
    qd.return
  })", 8).buffer(y).run(), "");
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(y[i], i % 10 * 10 + i / 10);
}

TEST(ControlFlow, barrierThatNotAllReach) {
  const char *text = R"(qd.kernel @k(%n: i32) block(64) {
    %i = qd.thread_id x : i32
    %p = arith.cmpi slt, %i, %n : i32
    scf.if %p {
      qd.block.sync
    }
    qd.return
  })";
  EXPECT_EQ(Program(text).scalar(64).run(), "");
  EXPECT_EQ(
      Program(text).scalar(40).run(),
      "test.qir:5:7: 'qd.block.sync' op is reached by 8 of the 32 lanes of the subgroup, expected all of them: this "
      "thread is elsewhere (kernel 'k', block (0, 0, 0), thread (40, 0, 0))");
  EXPECT_EQ(Program(text).scalar(32).run(),
            "test.qir:5:7: 'qd.block.sync' op is reached by 1 of the block's 2 subgroups, expected all of them: this "
            "thread has ended (kernel 'k', block (0, 0, 0), thread (32, 0, 0))");
}

const char *spin = R"(qd.kernel @k(%flag: !qd.buffer<i32>, %n: i32) block(64) {
  %i = qd.thread_id x : i32
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %n32 = arith.constant 32 : i32
  %first = arith.cmpi slt, %i, %n32 : i32
  %writes = arith.cmpi eq, %i, %n : i32
  scf.if %first {
    scf.while : () -> () {
      %f = qd.load %flag[0] : !qd.buffer<i32>
      %wait = arith.cmpi eq, %f, %zero : i32
      scf.condition(%wait)
    } do {
      scf.yield
    }
  }
  qd.store %one, %flag[0] if %writes : !qd.buffer<i32>
  qd.return
})";

TEST(ControlFlow, waitsEndWhenAnotherSubgroupEndsThem) {
  std::vector<int32_t> flag(1);
  EXPECT_EQ(Program(spin).buffer(flag).scalar(63).run({20, 1, 1}), "");
  EXPECT_EQ(flag[0], 1);
}

TEST(ControlFlow, endlessWaitsAreReported) {
  std::vector<int32_t> flag(1);
  EXPECT_EQ(
      Program(spin).buffer(flag).scalar(0).run(),
      "test.qir:9:5: 'scf.while' op waits without end: all other threads that have started wait too or have ended "
      "(kernel 'k', block (0, 0, 0), thread (0, 0, 0))");
}

TEST(ControlFlow, endlessLoopsAreReported) {
  EXPECT_EQ(Program(R"(qd.kernel @k() block(1) {
    %one = arith.constant 1 : i32
    %r = scf.while (%n = %one) : (i32) -> i32 {
      %t = arith.constant true
      scf.condition(%t) %n : i32
    } do {
    ^bb0(%n: i32):
      %m = arith.addi %n, %one : i32
      scf.yield %m : i32
    }
    qd.return
  })", 32, "steps=1000").run().substr(0, 73),
            "test.qir:8:12: 'arith.addi' op does not come to an end: 1000 steps since ");
}

TEST(ControlFlow, gridAndIds) {
  std::vector<int64_t> y(2 * 3 * 2 * 8);
  EXPECT_EQ(Program(R"(qd.kernel @k(%y: !qd.buffer<i64>) block(2, 2, 2) {
    %bx = qd.block_id x : i64
    %by = qd.block_id y : i64
    %bz = qd.block_id z : i64
    %gx = qd.grid_dim x : i64
    %gy = qd.grid_dim y : i64
    %t = qd.thread_index : i64
    %eight = arith.constant 8 : i64
    %0 = arith.muli %bz, %gy : i64
    %1 = arith.addi %0, %by : i64
    %2 = arith.muli %1, %gx : i64
    %3 = arith.addi %2, %bx : i64
    %4 = arith.muli %3, %eight : i64
    %at = arith.addi %4, %t : i64
    %g = qd.global_thread_id y : i64
    qd.store %g, %y[%at : i64] : !qd.buffer<i64>
    qd.return
  })").buffer(y).run({2, 3, 2}), "");
  for (int block = 0; block < 12; ++block)
    for (int thread = 0; thread < 8; ++thread)
      EXPECT_EQ(y[block * 8 + thread], block / 2 % 3 * 2 + thread / 2 % 2);
}

} // namespace
