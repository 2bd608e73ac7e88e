//===- ExplainTest.cpp - where reports say that values came from ----------------------------------===//

#include "Program.h"

using namespace qd::test;

namespace {

TEST(Explain, poisonThatAWhileLoopCarriesRound) {
  const char *text = R"(qd.kernel @k(%y: !qd.buffer<i32>, %n: i32) block(1) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %i, %v = scf.while (%a = %zero, %b = %one) : (i32, i32) -> (i32, i32) {
      %more = arith.cmpi slt, %a, %n : i32
      scf.condition(%more) %a, %b : i32, i32
    } do {
    ^bb0(%a: i32, %b: i32):
      %next = arith.addi %a, %one : i32
      %w = arith.remui %b, %a : i32
      scf.yield %next, %w : i32, i32
    }
    qd.store %v, %y[0] : !qd.buffer<i32>
    qd.return
  })";
  std::vector<int32_t> y(1);
  Program program(text);
  program.buffer(y).scalar(5);
  EXPECT_NE(program.run(), "");
  EXPECT_EQ(program.notes, "test.qir:10:12: note: poison from 'arith.remui' of 1 and 0, which divides by zero\n"
                           "test.qir:4:14: note: carried round by 'scf.while'");
}

TEST(Explain, poisonBeforeALoop) {
  const char *text = R"(qd.kernel @k(%y: !qd.buffer<i32>, %n: i32) block(1) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %bad = arith.divui %one, %zero : i32
    %v = scf.for %i = %zero to %n step %one iter_args(%s = %bad) -> (i32) : i32 {
      %next = arith.xori %s, %i : i32
      scf.yield %next : i32
    }
    qd.store %v, %y[0] : !qd.buffer<i32>
    qd.return
  })";
  std::vector<int32_t> y(1);
  Program program(text);
  program.buffer(y).scalar(3);
  EXPECT_NE(program.run(), "");
  EXPECT_EQ(program.notes, "test.qir:4:12: note: poison from 'arith.divui' of 1 and 0, which divides by zero\n"
                           "test.qir:6:15: note: through 'arith.xori'");
  // The loop is not entered.
  Program none(text);
  none.buffer(y).scalar(0);
  EXPECT_NE(none.run(), "");
  EXPECT_EQ(none.notes, "test.qir:4:12: note: poison from 'arith.divui' of 1 and 0, which divides by zero");
}

TEST(Explain, longChainsAreCut) {
  std::string text = "qd.kernel @k(%y: !qd.buffer<i32>) block(1) {\n%z = arith.constant 0 : i32\n"
                     "%v0 = arith.divui %z, %z : i32\n";
  for (int i = 1; i <= 20; ++i)
    text += "%v" + std::to_string(i) + " = arith.addi %v" + std::to_string(i - 1) + ", %z : i32\n";
  text += "qd.store %v20, %y[0] : !qd.buffer<i32>\nqd.store %z, %y[%z] : !qd.buffer<i32>\nqd.return\n}";
  std::vector<int32_t> y(1);
  Program program(text);
  program.buffer(y);
  EXPECT_NE(program.run(), "");
  EXPECT_EQ(program.notes, "test.qir:3:7: note: poison from 'arith.divui' of 0 and 0, which divides by zero\n"
                           "test.qir:4:7: note: through 'arith.addi'\n"
                           "test.qir:5:7: note: through 'arith.addi'\n"
                           "test.qir:6:7: note: through 'arith.addi'\n"
                           "test.qir:7:7: note: through 14 ops from here on\n"
                           "test.qir:21:8: note: through 'arith.addi'\n"
                           "test.qir:22:8: note: through 'arith.addi'\n"
                           "test.qir:23:8: note: through 'arith.addi'");
}

TEST(Explain, earlierIterationsAreNotGuessedAt) {
  const char *text = R"(qd.kernel @k(%y: !qd.buffer<i32>, %n: i32) block(1) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %v = scf.for %i = %zero to %n step %one iter_args(%s = %zero) -> (i32) : i32 {
      qd.store %zero, %y[%s] : !qd.buffer<i32>
      %next = arith.addi %s, %one : i32
      scf.yield %next : i32
    }
    qd.return
  })";
  std::vector<int32_t> y(2);
  Program program(text);
  program.buffer(y).scalar(3);
  EXPECT_NE(program.run(), "");
  EXPECT_EQ(program.notes, "test.qir:4:10: note: 2 comes from an earlier iteration of 'scf.for'");
}

TEST(Explain, helpersAndSegments) {
  const char *text = R"(func.func private @half(%v: i32) -> i32 {
    %two = arith.constant 2 : i32
    %r = arith.divsi %v, %two : i32
    return %r : i32
  }
  qd.kernel @k(%x: !qd.buffer<i32>, %y: !qd.buffer<i32>) block(4) {
    %t = qd.thread_index : i32
    %v = qd.load %x[%t] : !qd.buffer<i32>
    %one = arith.constant 1 : i32
    %h = arith.divsi %one, %v : i32
    %odd = arith.trunci %t : i32 to i1
    %s = qd.subgroup.segmented_scan exclusive add %h head %odd : i32, i1
    %at = func.call @half(%v) : (i32) -> i32
    qd.store %s, %y[%at] : !qd.buffer<i32>
    qd.return
  })";
  std::vector<int32_t> x = {8, 1, 1, 1}, y(4);
  Program program(text, 4);
  program.buffer(x).buffer(y);
  EXPECT_NE(program.run(), "");
  EXPECT_EQ(program.notes, "test.qir:3:10: note: 4 is 'arith.divsi' of 8 and 2\n"
                           "test.qir:8:10: note: 8 is 'qd.load' of %x[0]\n"
                           "test.qir:7:10: note: 0 is 'qd.thread_index'");
  // Lane 2's value, which only its own lane has, is of the segment that starts at lane 1.
  x = {2, 0, 2, 2};
  EXPECT_NE(program.run(), "");
  EXPECT_EQ(program.notes,
            "test.qir:10:10: note: poison from 'arith.divsi' of 1 and 0, which divides by zero, on thread (1, 0, 0)\n"
            "test.qir:12:10: note: through 'qd.subgroup.segmented_scan'");
}

TEST(Explain, branchesThatSubgroupsTake) {
  const char *text = R"(qd.kernel @k(%n: i32) block(16) {
    %id = qd.subgroup.subgroup_id : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %isLess = arith.cmpi slt, %zero, %n : i32
    scf.if %isLess {
      scf.for %i = %zero to %id step %one : i32 {
        qd.block.sync
      }
    }
    qd.return
  })";
  Program program(text, 8);
  program.scalar(1);
  EXPECT_EQ(program.run(),
            "test.qir:8:9: 'qd.block.sync' op is reached by 1 of the block's 2 subgroups, expected all of "
            "them: this thread has ended (kernel 'k', block (0, 0, 0), thread (0, 0, 0))");
  EXPECT_EQ(program.notes,
            "test.qir:7:7: note: threads part at this 'scf.for': the bounds and step are 0, 0, 1 here and "
            "0, 1, 1 on thread (8, 0, 0)\n"
            "test.qir:2:11: note: 0 is 'qd.subgroup.subgroup_id'\n"
            "test.qir:2:11: note: 1 is 'qd.subgroup.subgroup_id', on thread (8, 0, 0)");
}

TEST(Promises, noalias) {
  const char *text = R"(qd.kernel @k(%x: !qd.buffer<i32> noalias, %y: !qd.buffer<i32>) block(1) {
    qd.return
  })";
  std::vector<int32_t> x(4), y(4);
  EXPECT_EQ(Program(text).buffer(x).buffer(y).run(), "");
  EXPECT_EQ(Program(text).buffer(x).buffer(x).run(),
            "argument 'x' of kernel 'k' is noalias, but shares memory with argument 'y'");
  EXPECT_EQ(Program(text, 32, "poison").buffer(x).buffer(x).run(), "");
}

} // namespace
