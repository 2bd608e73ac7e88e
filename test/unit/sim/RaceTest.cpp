// Shared memory between waves that nothing orders: a value read in a race is
// poison, which is reported where it is used, with the race.
#include "Harness.h"

using namespace qd::test;

namespace {

/// 128 threads; BODY has %tid, %p (its own element of @s), %q (the mirrored
/// one), %d (out[tid]).
std::string runBody(llvm::StringRef chip, std::string body, std::vector<uint32_t> &out, uint32_t grid = 1) {
  bool nv = isNVPTX(chip);
  std::string barrier =
      nv ? "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)" : "call void @llvm.amdgcn.s.barrier()";
  for (size_t at = body.find("BARRIER"); at != std::string::npos; at = body.find("BARRIER"))
    body.replace(at, 7, barrier);
  std::string text =
      "@s = internal addrspace(3) global [128 x i32] poison, align 4\n"
      "@flag = internal addrspace(3) global i32 poison, align 4\ndefine " +
      std::string(nv ? "ptx_kernel" : "amdgpu_kernel") +
      " void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {\n%tid = call i32 " +
      (nv ? "@llvm.nvvm.read.ptx.sreg.tid.x()" : "@llvm.amdgcn.workitem.id.x()") +
      "\n%t64 = zext i32 %tid to i64\n%d = getelementptr i32, ptr addrspace(1) %out, i64 %t64\n"
      "%mirror = sub i32 127, %tid\n%p = getelementptr i32, ptr addrspace(3) @s, i32 %tid\n"
      "%q = getelementptr i32, ptr addrspace(3) @s, i32 %mirror\n" +
      body + "\nret void\n}";
  std::vector<uint32_t> in(1);
  return run(onChip(chip), text, {{grid, 1, 1}, {128, 1, 1}}, out, in);
}

class Race : public testing::TestWithParam<const char *> {
protected:
  std::vector<uint32_t> out = std::vector<uint32_t>(128);
  std::string run(const std::string &body, uint32_t grid = 1) { return runBody(GetParam(), body, out, grid); }
};

INSTANTIATE_TEST_SUITE_P(Chips, Race, testing::Values("sm_80", "gfx942", "gfx1100"));

TEST_P(Race, MissingBarrierBeforeReuse) {
  const std::string text = R"(
    store i32 %tid, ptr addrspace(3) %p
    BARRIER
    %v = load i32, ptr addrspace(3) %q
    SYNC
    store i32 %v, ptr addrspace(3) %p
    BARRIER
    %w = load i32, ptr addrspace(3) %q
    store i32 %w, ptr addrspace(1) %d)";
  auto with = [&](const char *sync) {
    std::string body = text;
    body.replace(body.find("SYNC"), 4, sync);
    return run(body);
  };
  EXPECT_EQ(with("BARRIER"), "");
  EXPECT_EQ(out, iota(128));
  std::string error = with("");
  EXPECT_NE(error.find("poison stored (after a race: wave "), std::string::npos) << error;
  EXPECT_NE(error.find("of shared memory by `%v = load i32, ptr addrspace(3) %q, align 4`, which wave "),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("wrote by `store i32 %v, ptr addrspace(3) %p, align 4` with no barrier between"),
            std::string::npos)
      << error;
}

TEST_P(Race, ReadBeforeAnotherWavesWriteShowsInBlocksThatRunInReverse) {
  const std::string text = R"(
    store i32 %tid, ptr addrspace(3) %p
    BARRIER
    %low = icmp ult i32 %tid, 64
    br i1 %low, label %read, label %write
  read:
    %v = load i32, ptr addrspace(3) %q
    store i32 %v, ptr addrspace(1) %d
    br label %end
  write:
    store i32 7, ptr addrspace(3) %p
    br label %end
  end:)";
  EXPECT_EQ(run(text, 1), "");
  EXPECT_NE(run(text, 2).find("poison stored (after a race: "), std::string::npos);
}

TEST_P(Race, DifferentWritesLeaveNoValue) {
  const std::string text = R"(
    store i32 VALUE, ptr addrspace(3) @flag
    BARRIER
    %v = load i32, ptr addrspace(3) @flag
    store i32 %v, ptr addrspace(1) %d)";
  auto with = [&](const char *value) {
    std::string body = text;
    body.replace(body.find("VALUE"), 5, value);
    return run(body);
  };
  EXPECT_EQ(with("5"), "");
  // Lanes of one wave write in order; it is waves that differ here.
  EXPECT_NE(with("%tid").find("poison stored (after a race: "), std::string::npos);
}

TEST_P(Race, AtomicsOrder) {
  EXPECT_EQ(run(R"(
    %low = icmp ult i32 %tid, 64
    %zero = icmp eq i32 %tid, 0
    br i1 %zero, label %clear, label %ready
  clear:
    store i32 0, ptr addrspace(3) @flag
    br label %ready
  ready:
    BARRIER
    br i1 %low, label %wait, label %give
  give:
    store i32 %tid, ptr addrspace(3) %p
    %old = atomicrmw add ptr addrspace(3) @flag, i32 1 release
    br label %end
  wait:
    %f = load atomic i32, ptr addrspace(3) @flag acquire, align 4
    %all = icmp eq i32 %f, 64
    br i1 %all, label %take, label %wait
  take:
    %v = load i32, ptr addrspace(3) %q
    store i32 %v, ptr addrspace(1) %d
    br label %end
  end:)"),
            "");
  EXPECT_EQ(out[0], 127u);
}

TEST_P(Race, ReadThatNobodyUsesIsNoError) {
  EXPECT_EQ(run(R"(
    store i32 %tid, ptr addrspace(3) %p
    %v = load i32, ptr addrspace(3) %q
    %never = icmp ugt i32 %tid, 1000
    %w = select i1 %never, i32 %v, i32 %tid
    store i32 %w, ptr addrspace(1) %d)"),
            "");
}

} // namespace
