//===- RaceTest.cpp - data races on the interpreter ---------------------------------------------===//

#include "Program.h"

using namespace qd::test;

namespace {

/// Neighbours exchange values through shared memory; `barrier` stands between.
std::string makeExchange(const char *barrier) {
  return std::string(R"(qd.kernel @k(%y: !qd.buffer<i32>) block(64) {
    %s = qd.shared.alloc : !qd.shared<64xi32>
    %i = qd.thread_id x : i32
    %one = arith.constant 1 : i32
    %j = arith.xori %i, %one : i32
    qd.store %i, %s[%i] : !qd.shared<64xi32>
    )") + barrier + R"(
    %v = qd.load %s[%j] : !qd.shared<64xi32>
    qd.store %v, %y[%i] : !qd.buffer<i32>
    qd.return
  })";
}

TEST(Races, barriersPutAccessesInOrder) {
  std::vector<int32_t> y(64);
  EXPECT_EQ(Program(makeExchange("qd.block.sync"), 16, "all").buffer(y).run(), "");
  EXPECT_EQ(Program(makeExchange("qd.block.sync_shared"), 16, "all").buffer(y).run(), "");
  EXPECT_EQ(y[6], 7);
  EXPECT_EQ(
      Program(makeExchange(""), 16, "all").buffer(y).run(),
      "test.qir:8:10: 'qd.load' op races on element 1 of the shared array: block (0, 0, 0), thread (1, 0, 0) writes "
      "it at test.qir:6:5, with no barrier of both in between (kernel 'k', block (0, 0, 0), thread (0, 0, 0))");
  // Not looked for unless asked: lock-step hides this one.
  EXPECT_EQ(Program(makeExchange(""), 16).buffer(y).run(), "");
}

TEST(Races, syncsPutASubgroupInOrder) {
  std::vector<int32_t> y(64);
  EXPECT_EQ(Program(makeExchange("qd.subgroup.sync"), 16, "all").buffer(y).run(), "");
  // A fence waits for nobody; and neighbours of other subgroups are not waited for.
  EXPECT_NE(Program(makeExchange("qd.subgroup.mem_fence"), 16, "races").buffer(y).run(), "");
  std::string apart = makeExchange("qd.subgroup.sync");
  size_t at = apart.find("%j = arith.xori %i, %one");
  ASSERT_NE(at, std::string::npos);
  apart.replace(at, 24, "%far = arith.constant 32 : i32\n%j = arith.xori %i, %far");
  EXPECT_NE(Program(apart, 16, "races").buffer(y).run(), "");
  EXPECT_EQ(Program(apart, 64, "races").buffer(y).run(), "");
}

TEST(Races, writesAfterReads) {
  const char *text = R"(qd.kernel @k(%y: !qd.buffer<i32>) block(4) {
    %i = qd.thread_id x : i32
    %three = arith.constant 3 : i32
    %j = arith.subi %three, %i : i32
    %v = qd.load %y[%j] : !qd.buffer<i32>
    qd.store %v, %y[%i] : !qd.buffer<i32>
    qd.return
  })";
  std::vector<int32_t> y = iota<int32_t>(4);
  EXPECT_EQ(Program(text, 4, "races").buffer(y).run(),
            "test.qir:6:5: 'qd.store' op races on element 0 of %y: block (0, 0, 0), thread (3, 0, 0) reads it at "
            "test.qir:5:10, with no barrier of both in between (kernel 'k', block (0, 0, 0), thread (0, 0, 0))");
}

TEST(Races, blocksAreNeverInOrder) {
  const char *text = R"(qd.kernel @k(%y: !qd.buffer<i32>, %same: i1) block(1) {
    %b = qd.block_id x : i32
    %one = arith.constant 1 : i32
    %v = arith.select %same, %one, %b : i32
    qd.store %v, %y[0] : !qd.buffer<i32>
    qd.return
  })";
  std::vector<int32_t> y(1);
  EXPECT_EQ(Program(text, 32, "races").buffer(y).scalar(1).run({3, 1, 1}), "");
  EXPECT_EQ(Program(text, 32, "races").buffer(y).scalar(0).run({3, 1, 1}),
            "test.qir:5:5: 'qd.store' op races on element 0 of %y: block (0, 0, 0), thread (0, 0, 0) writes it at "
            "test.qir:5:5, with no barrier of both in between (kernel 'k', block (1, 0, 0), thread (0, 0, 0))");
}

} // namespace
