//===- StatsTest.cpp - what --emit=stats counts ---------------------------------------------------===//

#include "Kernels.h"

#include "compiler/Stats.h"

#include <gtest/gtest.h>

using namespace qd;

static constexpr const char *twoKernels = R"(
qd.kernel @exchange(%x: !qd.buffer<i32>) block(128) {
  %s = qd.shared.alloc : !qd.shared<128xi32>
  %c = arith.constant 127 : i32
  %t = qd.thread_id x : i32
  %v = qd.load %x[%t] : !qd.buffer<i32>
  qd.store %v, %s[%t] : !qd.shared<128xi32>
  qd.block.sync
  %u = arith.xori %t, %c : i32
  %w = qd.load %s[%u] : !qd.shared<128xi32>
  qd.store %w, %x[%t] : !qd.buffer<i32>
  qd.return
}
qd.kernel @vote(%x: !qd.buffer<i32>) block(64) {
  %zero = arith.constant 0 : i32
  %t = qd.thread_id x : i32
  %v = qd.load %x[%t] : !qd.buffer<i32>
  %p = arith.cmpi slt, %v, %zero : i32
  %any = qd.subgroup.any %p
  %w = arith.extui %any : i1 to i32
  qd.store %w, %x[%t] : !qd.buffer<i32>
  qd.return
}
)";

static std::vector<KernelStats> countOf(const char *target, const char *emit, const char *qir,
                                        std::vector<KernelStats> (*count)(llvm::StringRef)) {
  CompileResult result = compileFor(target, emit, qir);
  EXPECT_TRUE(result.ok) << result.diagnostics;
  return count(result.data);
}

static void expectExchangeAndVote(const std::vector<KernelStats> &all, bool hasVote) {
  ASSERT_EQ(all.size(), 2u);
  const KernelStats &exchange = all[0].kernel == "exchange" ? all[0] : all[1];
  const KernelStats &vote = all[0].kernel == "exchange" ? all[1] : all[0];
  EXPECT_EQ(vote.kernel, "vote");
  EXPECT_EQ(exchange.barriers, 1u);
  EXPECT_EQ(exchange.sharedBytes, 512u);
  EXPECT_EQ(exchange.shuffles, 0u);
  EXPECT_EQ(exchange.votes, 0u);
  EXPECT_GT(exchange.instructions, 5u);
  EXPECT_EQ(vote.barriers, 0u);
  EXPECT_EQ(vote.sharedBytes, 0u);
  EXPECT_EQ(vote.shuffles, 0u);
  EXPECT_EQ(vote.votes, hasVote ? 1u : 0u);
}

TEST(Stats, Ptx) { expectExchangeAndVote(countOf("nvptx:sm_90", "ptx", twoKernels, countPTX), true); }

/// A vote is a comparison into a scalar register there.
TEST(Stats, Amdgcn) {
  for (const char *target : {"amdgcn:gfx90a", "amdgcn:gfx1100", "amdgcn:gfx1201"}) {
    std::vector<KernelStats> all = countOf(target, "asm", twoKernels, countAMDGCN);
    expectExchangeAndVote(all, false);
    for (const KernelStats &stats : all) {
      EXPECT_GT(stats.registers.value_or(0), 0u) << target;
      EXPECT_GT(stats.scalarRegisters.value_or(0), 0u) << target;
      EXPECT_EQ(stats.privateBytes, std::optional<uint64_t>(0)) << target;
    }
  }
}

TEST(Stats, Spirv) { expectExchangeAndVote(countOf("spirv@32", "spirv", twoKernels, countSPIRV), true); }

TEST(Stats, TwoShufflesSumFourLanes) {
  EXPECT_EQ(countOf("nvptx:sm_70", "ptx", sumKernel, countPTX).at(0).shuffles, 2u);
  EXPECT_EQ(countOf("amdgcn:gfx942", "asm", sumKernel, countAMDGCN).at(0).shuffles, 2u);
  EXPECT_EQ(countOf("amdgcn:gfx1100", "asm", sumKernel, countAMDGCN).at(0).shuffles, 2u);
  EXPECT_EQ(countOf("spirv@8", "spirv", sumKernel, countSPIRV).at(0).shuffles, 2u);
}

TEST(Stats, PtxasLog) {
  std::vector<KernelStats> all = {{"first", ""}, {"second", ""}, {"third", ""}};
  readPtxasLog("ptxas info    : Compiling entry function 'second' for 'sm_90'\n"
               "ptxas info    : Function properties for second\n"
               "    16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
               "ptxas info    : Used 12 registers, used 1 barriers\n"
               "ptxas info    : Function properties for unknown\n"
               "    32 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
               "ptxas info    : Function properties for first\n"
               "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
               "ptxas info    : Used 255 registers, used 0 barriers, 512 bytes smem\n",
               all);
  EXPECT_EQ(all[0].registers, std::optional<uint64_t>(255));
  EXPECT_EQ(all[0].privateBytes, std::optional<uint64_t>(0));
  EXPECT_EQ(all[1].registers, std::optional<uint64_t>(12));
  EXPECT_EQ(all[1].privateBytes, std::optional<uint64_t>(16));
  EXPECT_FALSE(all[2].registers || all[2].privateBytes);
}

TEST(Stats, Printing) {
  std::vector<KernelStats> all = {{"sum", "sm_80", 12, 2, 0, 1, 512}};
  EXPECT_EQ(printStats(all),
            "kernel  target  instructions  shuffles  votes  barriers  shared  registers  scalar  private\n"
            "sum     sm_80             12         2      0         1     512          -       -        -\n");
  all[0].registers = 10;
  std::string json = printStatsJSON(all);
  EXPECT_NE(json.find("\"kernel\": \"sum\""), std::string::npos);
  EXPECT_NE(json.find("\"registers\": 10"), std::string::npos);
  EXPECT_EQ(json.find("scalar"), std::string::npos);
}

/// Anything else than our own output is counted as far as it goes, and never walked out of.
TEST(Stats, TruncatedInput) {
  std::string spirv = compileFor("spirv@8", "spirv").data;
  for (size_t size = 0; size < spirv.size(); size += 4)
    countSPIRV(llvm::StringRef(spirv).take_front(size));
  std::string ptx = compileFor("nvptx", "ptx").data, assembly = compileFor("amdgcn", "asm").data;
  for (size_t size = 0; size < ptx.size(); size += 7)
    countPTX(llvm::StringRef(ptx).take_front(size));
  for (size_t size = 0; size < assembly.size(); size += 7)
    countAMDGCN(llvm::StringRef(assembly).take_front(size));
}
