//===- AtomicTest.cpp - what atomic accesses and fences put in order -----------------------------===//

#include "Program.h"

using namespace qd::test;

namespace {

/// Block 0 writes data and a flag; block 1 waits for the flag and reads the data.
std::string makeMessage(const char *beforeFlag, const char *flag, const char *wait, const char *afterWait) {
  return std::string(R"(qd.kernel @k(%data: !qd.buffer<i32>, %flag: !qd.buffer<i32>, %y: !qd.buffer<i32>) block(1) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %v = arith.constant 42 : i32
    %b = qd.block_id x : i32
    %writes = arith.cmpi eq, %b, %zero : i32
    scf.if %writes {
      qd.store %v, %data[0] : !qd.buffer<i32>
      )") + beforeFlag + "\n" + flag + R"(
    } else {
      scf.while : () -> () {
        )" + wait + R"(
        %again = arith.cmpi eq, %f, %zero : i32
        scf.condition(%again)
      } do {
        scf.yield
      }
      )" + afterWait + R"(
      %w = qd.load %data[0] : !qd.buffer<i32>
      qd.store %w, %y[0] : !qd.buffer<i32>
    }
    qd.return
  })";
}

const char *fence = "qd.grid.mem_fence";
const char *setFlag = "qd.atomic_store %one, %flag[0] : !qd.buffer<i32>";
const char *releaseFlag = "qd.atomic_store %one, %flag[0] release : !qd.buffer<i32>";
const char *readFlag = "%f = qd.atomic_load %flag[0] : !qd.buffer<i32>";
const char *acquireFlag = "%f = qd.atomic_load %flag[0] acquire : !qd.buffer<i32>";

/// The error of a run with the search for races, or "" where data came through.
std::string pass(const std::string &text) {
  std::vector<int32_t> data(1), flag(1), y(1);
  std::string error = Program(text, 4, "all").buffer(data).buffer(flag).buffer(y).run({2, 1, 1});
  if (error.empty() && y[0] != 42)
    return "the data did not come through";
  return error;
}

TEST(Atomics, releaseAndAcquirePassMessages) {
  EXPECT_EQ(pass(makeMessage("", releaseFlag, acquireFlag, "")), "");
  EXPECT_EQ(pass(makeMessage(fence, setFlag, readFlag, fence)), "");
  EXPECT_EQ(pass(makeMessage(fence, setFlag, acquireFlag, "")), "");
  EXPECT_EQ(pass(makeMessage("", releaseFlag, readFlag, fence)), "");
  EXPECT_EQ(pass(makeMessage("", "%o = qd.atomic_rmw add %one, %flag[0] acq_rel : !qd.buffer<i32>", acquireFlag, "")),
            "");
  EXPECT_EQ(pass(makeMessage("", releaseFlag, "%f = qd.atomic_rmw ori %zero, %flag[0] acquire : !qd.buffer<i32>", "")),
            "");
}

TEST(Atomics, bothSidesMustTakePart) {
  const std::string race = "'qd.load' op races on element 0 of %data: block (0, 0, 0), thread (0, 0, 0) writes it";
  for (const std::string &text :
       {makeMessage("", setFlag, acquireFlag, ""), makeMessage("", releaseFlag, readFlag, ""),
        makeMessage(fence, setFlag, readFlag, ""), makeMessage("", setFlag, readFlag, fence),
        // A fence of the block, and one too late.
        makeMessage("qd.block.mem_fence", setFlag, readFlag, fence),
        makeMessage("", (std::string(setFlag) + "\n" + fence).c_str(), readFlag, fence)}) {
    std::string error = pass(text);
    EXPECT_NE(error.find(race), std::string::npos) << error << "\n" << text;
  }
}

TEST(Atomics, plainAccessesRaceWithAtomicOnes) {
  std::string error = pass(makeMessage(fence, "qd.store %one, %flag[0] : !qd.buffer<i32>", acquireFlag, ""));
  EXPECT_NE(error.find("'qd.atomic_load' op races on element 0 of %flag"), std::string::npos) << error;
  error = pass(makeMessage("", releaseFlag, "%f = qd.load volatile %flag[0] : !qd.buffer<i32>", fence));
  EXPECT_NE(error.find("'qd.load' op races on element 0 of %flag"), std::string::npos) << error;
}

TEST(Atomics, scopesHoldTheirThreadsOnly) {
  std::string error = pass(makeMessage("", "qd.atomic_store %one, %flag[0] release scope(block) : !qd.buffer<i32>",
                                       acquireFlag, ""));
  EXPECT_NE(error.find("races on element 0 of %flag"), std::string::npos) << error;
  EXPECT_NE(error.find("one of both is outside the other's scope"), std::string::npos) << error;
}

TEST(Atomics, knowledgeIsPassedOn) {
  // Block 0 writes, block 1 waits for it and tells block 2, which reads what block 0 wrote. In block 1 one thread waits
  // and another tells, with a barrier in between.
  const char *text = R"(qd.kernel @k(%data: !qd.buffer<i32>, %flags: !qd.buffer<i32>, %y: !qd.buffer<i32>) block(8) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %five = arith.constant 5 : i32
    %b = qd.block_id x : i32
    %i = qd.thread_id x : i32
    %first = arith.cmpi eq, %i, %zero : i32
    %sixth = arith.cmpi eq, %i, %five : i32
    %b0 = arith.cmpi eq, %b, %zero : i32
    %b2 = arith.cmpi eq, %b, %two : i32
    %writes = arith.andi %first, %b0 : i1
    qd.store %five, %data[0] if %writes : !qd.buffer<i32>
    %true = arith.constant true
    %follows = arith.xori %b0, %true : i1
    %waits = arith.andi %first, %follows : i1
    %previous = arith.subi %b, %one : i32
    scf.if %waits {
      scf.while : () -> () {
        %f = qd.atomic_load %flags[%previous] acquire : !qd.buffer<i32>
        %again = arith.cmpi eq, %f, %zero : i32
        scf.condition(%again)
      } do {
        scf.yield
      }
    }
    qd.block.sync
    qd.atomic_store %one, %flags[%b] if %sixth release : !qd.buffer<i32>
    %reads = arith.andi %sixth, %b2 : i1
    %w = qd.load %data[0] if %reads else %zero : !qd.buffer<i32>
    qd.store %w, %y[0] if %reads : !qd.buffer<i32>
    qd.return
  })";
  for (unsigned size : {4, 16}) {
    std::vector<int32_t> data(1), flags(3), y(1);
    EXPECT_EQ(Program(text, size, "all").buffer(data).buffer(flags).buffer(y).run({3, 1, 1}), "");
    EXPECT_EQ(y[0], 5);
  }
}

TEST(Atomics, whoCountsDownSeesAll) {
  // The last block to arrive reads what every block wrote: changes of the counter hand on all releases before them.
  const char *text = R"(qd.kernel @k(%part: !qd.buffer<i32>, %count: !qd.buffer<i32>, %y: !qd.buffer<i32>) block(1) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %b = qd.block_id x : i32
    %n = qd.grid_dim x : i32
    qd.store %b, %part[%b] : !qd.buffer<i32>
    ORDER
    %arrived = arith.addi %before, %one : i32
    %isLast = arith.cmpi eq, %arrived, %n : i32
    scf.if %isLast {
      %sum = scf.for %k = %zero to %n step %one iter_args(%acc = %zero) -> i32 : i32 {
        %w = qd.load %part[%k] : !qd.buffer<i32>
        %next = arith.addi %acc, %w : i32
        scf.yield %next : i32
      }
      qd.store %sum, %y[0] : !qd.buffer<i32>
    }
    qd.return
  })";
  auto run = [&](const std::string &counting) {
    std::string program = text;
    program.replace(program.find("ORDER"), 5, counting);
    std::vector<int32_t> part(40), count(1), y(1);
    std::string error = Program(program, 4, "all").buffer(part).buffer(count).buffer(y).run({40, 1, 1});
    return error.empty() && y[0] != 780 ? "wrong sum" : error;
  };
  EXPECT_EQ(run("%before = qd.atomic_rmw add %one, %count[0] acq_rel : !qd.buffer<i32>"), "");
  EXPECT_EQ(run("qd.grid.mem_fence\n%before = qd.atomic_rmw add %one, %count[0] : !qd.buffer<i32>\nqd.grid.mem_fence"),
            "");
  EXPECT_NE(run("%before = qd.atomic_rmw add %one, %count[0] : !qd.buffer<i32>").find("races on element"),
            std::string::npos);
  EXPECT_NE(run("%before = qd.atomic_rmw add %one, %count[0] release : !qd.buffer<i32>").find("races on element"),
            std::string::npos);
}

TEST(Atomics, reportPoisonAndUnwrittenElements) {
  std::vector<int32_t> y(1);
  EXPECT_EQ(Program(R"(qd.kernel @k(%y: !qd.buffer<i32>) block(1) {
    %s = qd.shared.alloc : !qd.shared<4xi32>
    %one = arith.constant 1 : i32
    %a = qd.atomic_rmw add %one, %s[2] : !qd.shared<4xi32>
    qd.return
  })").buffer(y).run(),
            "test.qir:4:10: 'qd.atomic_rmw' op reads element 2 of the shared array before it is written (kernel 'k', "
            "block (0, 0, 0), thread (0, 0, 0))");
  EXPECT_EQ(
      Program(R"(qd.kernel @k(%y: !qd.buffer<i32>, %p: i1) block(1) {
    %one = arith.constant 1 : i32
    %a = qd.atomic_rmw add %one, %y[0] if %p : !qd.buffer<i32>
    %b = qd.atomic_rmw add %a, %y[0] : !qd.buffer<i32>
    qd.return
  })")
          .buffer(y)
          .scalar(0)
          .run(),
      "test.qir:4:10: 'qd.atomic_rmw' op takes poison to element 0 of %y (kernel 'k', block (0, 0, 0), thread (0, "
      "0, 0))");
}

} // namespace
