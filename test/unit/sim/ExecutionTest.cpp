// Divergence, loops, calls, barriers, waits between waves and blocks.
#include "Harness.h"

using namespace qd::test;

namespace {

const char *sm = "sm_80";

/// Every target's way to say its thread number and a ballot.
struct Target {
  const char *chip;
  unsigned wave;
  std::string tid() const {
    return isNVPTX(chip) ? "call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"
                         : "call i32 @llvm.amdgcn.workitem.id.x()";
  }
  std::string block() const {
    return isNVPTX(chip) ? "call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()"
                         : "call i32 @llvm.amdgcn.workgroup.id.x()";
  }
  std::string barrier() const {
    return isNVPTX(chip) ? "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"
                         : "call void @llvm.amdgcn.s.barrier()";
  }
  /// The number of active lanes into %name.
  std::string active(std::string name) const {
    if (isNVPTX(chip))
      return "%" + name + "m = call i32 @llvm.nvvm.activemask()\n%" + name +
             " = call i32 @llvm.ctpop.i32(i32 %" + name + "m)";
    return "%" + name + "m = call i64 @llvm.amdgcn.ballot.i64(i1 true)\n%" + name +
           "w = call i64 @llvm.ctpop.i64(i64 %" + name + "m)\n%" + name + " = trunc i64 %" + name +
           "w to i32";
  }
  std::string kernel() const { return isNVPTX(chip) ? "ptx_kernel" : "amdgpu_kernel"; }
};

std::string replaced(std::string text, const std::string &what, const std::string &with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

std::string instantiate(const Target &target, std::string text) {
  text = replaced(text, "TID", target.tid());
  text = replaced(text, "BLOCK", target.block());
  text = replaced(text, "BARRIER", target.barrier());
  text = replaced(text, "KERNEL", target.kernel());
  for (size_t at = text.find("ACTIVE("); at != std::string::npos; at = text.find("ACTIVE(")) {
    size_t end = text.find(')', at);
    text.replace(at, end - at + 1, target.active(text.substr(at + 7, end - at - 7)));
  }
  return text;
}

class EveryTarget : public testing::TestWithParam<Target> {
protected:
  qd::SimOptions options = onChip(GetParam().chip, GetParam().wave);
  unsigned wave = GetParam().wave;
  std::string run(const std::string &text, Shape shape, std::vector<uint32_t> &out,
                  const std::vector<uint32_t> &in = {1}) {
    return qd::test::run(options, instantiate(GetParam(), text), shape, out, in);
  }
};

INSTANTIATE_TEST_SUITE_P(Chips, EveryTarget,
                         testing::Values(Target{"sm_80", 32}, Target{"gfx942", 64}, Target{"gfx1100", 32},
                                         Target{"gfx1100", 64}),
                         [](const auto &info) {
                           return std::string(info.param.chip) + "_" + std::to_string(info.param.wave);
                         });

TEST_P(EveryTarget, BranchesPartAndMeet) {
  std::vector<uint32_t> out(3 * wave);
  std::string error = run(R"(
    %tid = TID
    %t64 = zext i32 %tid to i64
    %third = urem i32 %tid, 3
    switch i32 %third, label %two [ i32 0, label %zero
                                    i32 1, label %one ]
  zero:
    ACTIVE(a)
    br label %join
  one:
    ACTIVE(b)
    br label %join
  two:
    br label %join
  join:
    %x = phi i32 [ %a, %zero ], [ %b, %one ], [ 0, %two ]
    ACTIVE(c)
    %p0 = getelementptr i32, ptr addrspace(1) %out, i64 %t64
    %v0 = mul i32 %x, 100
    %v = add i32 %v0, %c
    store i32 %v, ptr addrspace(1) %p0
    ret void)",
                          {{1, 1, 1}, {wave, 1, 1}}, out);
  ASSERT_EQ(error, "");
  for (unsigned l = 0; l < wave; ++l)
    EXPECT_EQ(out[l], (l % 3 == 2 ? 0 : 100 * ((wave + 2 - l % 3) / 3)) + wave) << l;
}

TEST_P(EveryTarget, LoopsWithBreakAndContinueTurnTogether) {
  // Lane l leaves after l turns; even turns are skipped by `continue`. The sum
  // is of the lanes active at each counted turn.
  std::vector<uint32_t> out(wave);
  std::string error = run(R"(
    %tid = TID
    %t64 = zext i32 %tid to i64
    br label %head
  head:
    %i = phi i32 [ 0, %0 ], [ %i1, %head1 ], [ %i1, %body ]
    %sum = phi i32 [ 0, %0 ], [ %sum, %head1 ], [ %sum1, %body ]
    %out0 = icmp uge i32 %i, %tid
    br i1 %out0, label %done, label %head1
  head1:
    %i1 = add i32 %i, 1
    %odd = and i32 %i, 1
    %isodd = trunc i32 %odd to i1
    br i1 %isodd, label %body, label %head
  body:
    ACTIVE(n)
    %sum1 = add i32 %sum, %n
    br label %head
  done:
    ACTIVE(m)
    %r0 = mul i32 %m, 100000
    %r = add i32 %r0, %sum
    %p = getelementptr i32, ptr addrspace(1) %out, i64 %t64
    store i32 %r, ptr addrspace(1) %p
    ret void)",
                          {{1, 1, 1}, {wave, 1, 1}}, out);
  ASSERT_EQ(error, "");
  for (unsigned l = 0; l < wave; ++l) {
    uint32_t sum = 0;
    for (unsigned i = 1; i < l; i += 2)
      sum += wave - 1 - i;
    EXPECT_EQ(out[l], wave * 100000 + sum) << l;
  }
}

TEST_P(EveryTarget, NestedLoopsAndSwappedPhis) {
  // Fibonacci by exchanging phis, tid turns, inside a loop of two.
  std::vector<uint32_t> out(wave);
  std::string error = run(R"(
    %tid = TID
    %t64 = zext i32 %tid to i64
    %n = and i32 %tid, 15
    br label %outer
  outer:
    %k = phi i32 [ 0, %0 ], [ %k1, %next ]
    %start = phi i32 [ 0, %0 ], [ %a, %next ]
    br label %inner
  inner:
    %i = phi i32 [ 0, %outer ], [ %i1, %turn ]
    %a = phi i32 [ 0, %outer ], [ %b, %turn ]
    %b = phi i32 [ 1, %outer ], [ %c, %turn ]
    %end = icmp eq i32 %i, %n
    br i1 %end, label %next, label %turn
  turn:
    %c = add i32 %a, %b
    %i1 = add i32 %i, 1
    br label %inner
  next:
    %k1 = add i32 %k, 1
    %more = icmp ult i32 %k1, 2
    br i1 %more, label %outer, label %done
  done:
    %p = getelementptr i32, ptr addrspace(1) %out, i64 %t64
    store i32 %start, ptr addrspace(1) %p
    ret void)",
                          {{1, 1, 1}, {wave, 1, 1}}, out);
  ASSERT_EQ(error, "");
  const uint32_t fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610};
  for (unsigned l = 0; l < wave; ++l)
    EXPECT_EQ(out[l], fibonacci[l & 15]) << l;
}

TEST_P(EveryTarget, CallsOfDivergentLanes) {
  std::vector<uint32_t> out(wave);
  std::string error = run(R"(
    define internal {i32, i32} @collatz(i32 %n) noinline {
      %one = icmp ule i32 %n, 1
      br i1 %one, label %stop, label %step
    stop:
      ACTIVE(m)
      %s0 = insertvalue {i32, i32} poison, i32 0, 0
      %s1 = insertvalue {i32, i32} %s0, i32 %m, 1
      ret {i32, i32} %s1
    step:
      %bit = and i32 %n, 1
      %odd = trunc i32 %bit to i1
      %half = lshr i32 %n, 1
      %triple = mul i32 %n, 3
      %plus = add i32 %triple, 1
      %next = select i1 %odd, i32 %plus, i32 %half
      %rest = call {i32, i32} @collatz(i32 %next)
      %count = extractvalue {i32, i32} %rest, 0
      %count1 = add i32 %count, 1
      %r = insertvalue {i32, i32} %rest, i32 %count1, 0
      ret {i32, i32} %r
    }
    define KERNEL void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {
      %tid = TID
      %t64 = zext i32 %tid to i64
      %big = icmp ugt i32 %tid, 2
      br i1 %big, label %go, label %end
    go:
      %s = call {i32, i32} @collatz(i32 %tid)
      %v = extractvalue {i32, i32} %s, 0
      %p = getelementptr i32, ptr addrspace(1) %out, i64 %t64
      store i32 %v, ptr addrspace(1) %p
      br label %end
    end:
      ret void
    })",
                          {{1, 1, 1}, {wave, 1, 1}}, out);
  ASSERT_EQ(error, "");
  for (unsigned l = 3; l < wave; ++l) {
    uint32_t steps = 0;
    for (unsigned n = l; n > 1; n = n & 1 ? 3 * n + 1 : n / 2)
      ++steps;
    EXPECT_EQ(out[l], steps) << l;
  }
}

const char *reverse = R"(
    @tile = internal addrspace(3) global [256 x i32] poison, align 4
    define KERNEL void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {
      %tid = TID
      %block = BLOCK
      %t64 = zext i32 %tid to i64
      %from = getelementptr [256 x i32], ptr addrspace(3) @tile, i32 0, i32 %tid
      %base = mul i32 %block, 256
      %id = add i32 %base, %tid
      store i32 %id, ptr addrspace(3) %from
      SYNC
      %other = sub i32 255, %tid
      %at = getelementptr [256 x i32], ptr addrspace(3) @tile, i32 0, i32 %other
      %v = load i32, ptr addrspace(3) %at
      %i64 = zext i32 %id to i64
      %p = getelementptr i32, ptr addrspace(1) %out, i64 %i64
      store i32 %v, ptr addrspace(1) %p
      ret void
    })";

TEST_P(EveryTarget, BarrierMakesSharedMemoryVisible) {
  std::vector<uint32_t> out(256 * 20);
  ASSERT_EQ(run(replaced(reverse, "SYNC", "BARRIER"), {{20, 1, 1}, {256, 1, 1}}, out), "");
  for (unsigned i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], i / 256 * 256 + 255 - i % 256);
}

TEST_P(EveryTarget, MissingBarrierReadsWhatNobodyWrote) {
  std::vector<uint32_t> out(256);
  std::string error = run(replaced(reverse, "SYNC", ""), {{1, 1, 1}, {256, 1, 1}}, out);
  EXPECT_NE(error.find("poison stored in kernel 'k', block (0, 0, 0), thread (0, 0, 0): `store i32 %v"),
            std::string::npos)
      << error;
}

TEST_P(EveryTarget, DivergentBarrierIsAnError) {
  std::vector<uint32_t> out(wave);
  std::string error = run(R"(
    %tid = TID
    %low = icmp ult i32 %tid, 7
    br i1 %low, label %a, label %b
  a:
    BARRIER
    br label %b
  b:
    %f = icmp ult i32 %tid, 9
    br i1 %f, label %c, label %d
  c:
    BARRIER
    br label %d
  d:
    ret void)",
                          {{1, 1, 1}, {wave, 1, 1}}, out);
  EXPECT_TRUE(error.find("lanes wait here for lanes of their wave") != std::string::npos ||
              error.find("lanes of one wave wait for each other") != std::string::npos ||
              error.find("barrier reached by a part of the wave") != std::string::npos)
      << error;
}

TEST_P(EveryTarget, AtomicsCountEveryThread) {
  std::vector<uint32_t> out(2);
  std::string error = run(R"(
    %tid = TID
    %old = atomicrmw add ptr addrspace(1) %out, i32 1 seq_cst
    %p = getelementptr i32, ptr addrspace(1) %out, i64 1
    %o2 = atomicrmw umax ptr addrspace(1) %p, i32 %tid seq_cst
    ret void)",
                          {{5, 2, 1}, {100, 1, 1}}, out);
  ASSERT_EQ(error, "");
  EXPECT_EQ(out, (std::vector<uint32_t>{1000, 99}));
}

TEST_P(EveryTarget, WavesOfOneBlockWaitForEachOther) {
  // Wave 0 spins until the last wave has set the flag.
  std::vector<uint32_t> out(2);
  std::string error = run(R"(
    %tid = TID
    %first = icmp ult i32 %tid, 64
    br i1 %first, label %spin, label %set
  spin:
    %f = load atomic i32, ptr addrspace(1) %out monotonic, align 4
    %ready = icmp eq i32 %f, 1
    br i1 %ready, label %end, label %spin
  set:
    store atomic i32 1, ptr addrspace(1) %out release, align 4
    br label %end
  end:
    ret void)",
                          {{1, 1, 1}, {128, 1, 1}}, out);
  EXPECT_EQ(error, "");
}

TEST_P(EveryTarget, BlocksWaitForLaterBlocks) {
  // A barrier of the whole grid, with more blocks than start at first.
  std::vector<uint32_t> out(1);
  std::string error = run(R"(
    %tid = TID
    %old = atomicrmw add ptr addrspace(1) %out, i32 1 seq_cst
    br label %spin
  spin:
    %f = load atomic i32, ptr addrspace(1) %out monotonic, align 4
    %ready = icmp eq i32 %f, 2048
    br i1 %ready, label %end, label %spin
  end:
    ret void)",
                          {{32, 1, 1}, {64, 1, 1}}, out);
  EXPECT_EQ(error, "");
}

/// Who does not look at memory does not wait.
TEST_P(EveryTarget, LongComputationEnds) {
  options.idleLimit = 100000;
  std::vector<uint32_t> out(1);
  std::string error = run(R"(
    br label %round
  round:
    %i = phi i32 [ 0, %0 ], [ %next, %round ]
    %next = add i32 %i, 1
    %ends = icmp eq i32 %next, 200000
    br i1 %ends, label %end, label %round
  end:
    store i32 %next, ptr addrspace(1) %out, align 4
    ret void)",
                          {{1, 1, 1}, {64, 1, 1}}, out);
  EXPECT_EQ(error, "");
  EXPECT_EQ(out[0], 200000u);
}

TEST_P(EveryTarget, EndlessWaitEnds) {
  options.idleLimit = 100000;
  std::vector<uint32_t> out(1);
  std::string error = run(R"(
    br label %spin
  spin:
    %f = load atomic i32, ptr addrspace(1) %out monotonic, align 4
    %ready = icmp eq i32 %f, 1
    br i1 %ready, label %end, label %spin
  end:
    ret void)",
                          {{2, 1, 1}, {64, 1, 1}}, out);
  EXPECT_NE(error.find("endless wait: no memory changed for 100000 wave instructions"), std::string::npos)
      << error;
  options.idleLimit = ~0ull;
  options.instructionLimit = 100000;
  error = run(R"(
    br label %spin
  spin:
    %f = atomicrmw add ptr addrspace(1) %out, i32 1 seq_cst
    %ready = icmp eq i32 %f, -1
    br i1 %ready, label %end, label %spin
  end:
    ret void)",
              {{1, 1, 1}, {1, 1, 1}}, out);
  EXPECT_NE(error.find("more than 100000 wave instructions executed"), std::string::npos) << error;
}

TEST_P(EveryTarget, IrreducibleLoops) {
  // Two entries into one loop; every lane adds its turns.
  std::vector<uint32_t> out(wave);
  std::string error = run(R"(
    %tid = TID
    %t64 = zext i32 %tid to i64
    %bit = and i32 %tid, 1
    %odd = trunc i32 %bit to i1
    br i1 %odd, label %a, label %b
  a:
    %i = phi i32 [ 0, %0 ], [ %j1, %b ]
    %i1 = add i32 %i, 1
    br label %b
  b:
    %j = phi i32 [ 0, %0 ], [ %i1, %a ]
    %j1 = add i32 %j, 10
    %more = icmp ult i32 %j1, 50
    br i1 %more, label %a, label %end
  end:
    %p = getelementptr i32, ptr addrspace(1) %out, i64 %t64
    store i32 %j1, ptr addrspace(1) %p
    ret void)",
                          {{1, 1, 1}, {wave, 1, 1}}, out);
  ASSERT_EQ(error, "");
  for (unsigned l = 0; l < wave; ++l)
    EXPECT_EQ(out[l], l & 1 ? 55u : 54u) << l;
}

TEST(Barrier, NamedBarriersDeadlock) {
  std::vector<uint32_t> out(1), in(1);
  std::string error = run(onChip(sm), R"(
    %warp = call i32 @llvm.nvvm.read.ptx.sreg.warpid()
    %id = add i32 %warp, 1
    call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 %id, i32 64)
    ret void)",
                          {{1, 1, 1}, {64, 1, 1}}, out, in);
  EXPECT_NE(error.find("deadlock: every wave of the block waits at a barrier"), std::string::npos) << error;
}

TEST(Barrier, ProducerAndConsumer) {
  std::vector<uint32_t> out(32), in(1);
  std::string error = run(onChip(sm), R"(
    @box = internal addrspace(3) global [32 x i32] poison, align 4
    define ptx_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {
      %warp = call i32 @llvm.nvvm.read.ptx.sreg.warpid()
      %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
      %p = getelementptr i32, ptr addrspace(3) @box, i32 %lane
      %first = icmp eq i32 %warp, 0
      br i1 %first, label %take, label %give
    give:
      store i32 %lane, ptr addrspace(3) %p
      call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 1, i32 64)
      ret void
    take:
      call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 64)
      %v = load i32, ptr addrspace(3) %p
      %l64 = zext i32 %lane to i64
      %q = getelementptr i32, ptr addrspace(1) %out, i64 %l64
      store i32 %v, ptr addrspace(1) %q
      ret void
    })",
                          {{1, 1, 1}, {64, 1, 1}}, out, in);
  ASSERT_EQ(error, "");
  EXPECT_EQ(out, iota(32));
}

TEST(Barrier, ReducesPredicates) {
  auto reduce = [](const char *kind, const char *type) {
    return laneBody(sm, (llvm::Twine("%p = icmp ult i32 %tid, 50\n%b = call ") + type +
                         " @llvm.nvvm.barrier.cta.red." + kind + ".aligned.all(i32 0, i1 %p)\n" +
                         (type[1] == '1' ? "%r = zext i1 %b to i32" : "%r = add i32 %b, 0"))
                            .str());
  };
  std::vector<uint32_t> out(64), in = iota(64);
  EXPECT_EQ(run(onChip(sm), reduce("popc", "i32"), {{1, 1, 1}, {64, 1, 1}}, out, in), "");
  EXPECT_EQ(out, std::vector<uint32_t>(64, 50));
  EXPECT_EQ(run(onChip(sm), reduce("and", "i1"), {{1, 1, 1}, {64, 1, 1}}, out, in), "");
  EXPECT_EQ(out, std::vector<uint32_t>(64, 0));
  EXPECT_EQ(run(onChip(sm), reduce("or", "i1"), {{1, 1, 1}, {64, 1, 1}}, out, in), "");
  EXPECT_EQ(out, std::vector<uint32_t>(64, 1));
}

TEST(Barrier, SplitOnGfx12) {
  std::string text = R"(
    @tile = internal addrspace(3) global [64 x i32] poison, align 4
    define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {
      %tid = call i32 @llvm.amdgcn.workitem.id.x()
      %p = getelementptr i32, ptr addrspace(3) @tile, i32 %tid
      store i32 %tid, ptr addrspace(3) %p
      call void @llvm.amdgcn.s.barrier.signal(i32 -1)
      call void @llvm.amdgcn.s.barrier.wait(i16 -1)
      %o = sub i32 63, %tid
      %q = getelementptr i32, ptr addrspace(3) @tile, i32 %o
      %v = load i32, ptr addrspace(3) %q
      call void @llvm.amdgcn.s.barrier.signal(i32 -1)
      call void @llvm.amdgcn.s.barrier.wait(i16 -1)
      %t = zext i32 %tid to i64
      %d = getelementptr i32, ptr addrspace(1) %out, i64 %t
      store i32 %v, ptr addrspace(1) %d
      ret void
    })";
  std::vector<uint32_t> out(64), in(1);
  ASSERT_EQ(run(onChip("gfx1200"), text, {{1, 1, 1}, {64, 1, 1}}, out, in), "");
  EXPECT_EQ(out[0], 63u);
  EXPECT_NE(loadError(onChip("gfx1100"), text).find("a split barrier does not exist on gfx1100"),
            std::string::npos);
}

TEST(Warp, LanesOfOneWarpMakeProgressOnTheirOwn) {
  // A lock that lanes of one warp take in turn: the holder waits beyond the
  // loop in which the others spin.
  std::vector<uint32_t> out(2), in(1);
  std::string error = run(onChip(sm), R"(
    br label %try
  try:
    %s = cmpxchg ptr addrspace(1) %out, i32 0, i32 1 acquire monotonic
    %ok = extractvalue {i32, i1} %s, 1
    br i1 %ok, label %own, label %try
  own:
    %p = getelementptr i32, ptr addrspace(1) %out, i64 1
    %v = load i32, ptr addrspace(1) %p
    %v1 = add i32 %v, 1
    store i32 %v1, ptr addrspace(1) %p
    store atomic i32 0, ptr addrspace(1) %out release, align 4
    ret void)",
                          {{1, 1, 1}, {32, 1, 1}}, out, in);
  ASSERT_EQ(error, "");
  EXPECT_EQ(out[1], 32u);
}

TEST(Warp, SyncWaitsForLanesThatArriveLater) {
  // Half the warp reaches the one bar.warp.sync by another way.
  std::vector<uint32_t> out(32), in = iota(32, 1000);
  std::string text = laneBody(sm, R"(
    %low = icmp ult i32 %tid, 16
    br i1 %low, label %a, label %b
  a:
    br label %b
  b:
    call void @llvm.nvvm.bar.warp.sync(i32 -1)
    %r = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %v, i32 20, i32 31))");
  ASSERT_EQ(run(onChip(sm), text, {}, out, in), "");
  EXPECT_EQ(out, std::vector<uint32_t>(32, 1020));
}

} // namespace
