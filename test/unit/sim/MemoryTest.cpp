// Bounds, alignment, poison, address spaces, globals and kernel arguments.
#include "Harness.h"

using namespace qd::test;

namespace {

const char *sm = "sm_80", *gfx = "gfx942";

std::string errorOf(llvm::StringRef chip, llvm::StringRef body, unsigned outWords = 4, unsigned threads = 1) {
  std::vector<uint32_t> out(outWords), in = iota(4);
  return run(onChip(chip), body, {{1, 1, 1}, {threads, 1, 1}}, out, in);
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Bounds, StoreBehindTheBuffer) {
  std::string error = errorOf(
      sm, "%p = getelementptr i32, ptr addrspace(1) %out, i64 4\nstore i32 1, ptr addrspace(1) %p\nret void");
  EXPECT_EQ(error, "out-of-bounds store of 4 bytes at byte 16 of the buffer of argument 0 of 16 bytes in "
                   "kernel 'k', block "
                   "(0, 0, 0), thread (0, 0, 0): `store i32 1, ptr addrspace(1) %p, align 4`");
}

TEST(Bounds, OtherPlaces) {
  EXPECT_HAS(errorOf(sm, "%p = getelementptr i32, ptr addrspace(1) %in, i64 -1\n%v = load i32, ptr "
                         "addrspace(1) %p\nret void"),
             "out-of-bounds load of 4 bytes at byte -4 before the buffer of argument 1");
  EXPECT_HAS(errorOf(gfx, "%v = load i32, ptr addrspace(1) null\nret void"), "byte 0 from a null pointer");
  EXPECT_HAS(errorOf(gfx, "%p = getelementptr i8, ptr addrspace(1) %in, i64 14\n%v = load i32, ptr "
                          "addrspace(1) %p, align 1\nret void"),
             "out-of-bounds load of 4 bytes at byte 14 of the buffer of argument 1 of 16 bytes");
  EXPECT_HAS(errorOf(gfx, R"(
    @a = internal addrspace(3) global [4 x i32] poison, align 4
    define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {
      %p = getelementptr i32, ptr addrspace(3) @a, i32 4
      store i32 0, ptr addrspace(3) %p
      ret void
    })"),
             "byte 16 of shared memory, in no shared variable");
  EXPECT_HAS(errorOf(gfx, R"(
    %a = alloca [2 x i32], align 4, addrspace(5)
    %p = getelementptr i32, ptr addrspace(5) %a, i32 1000
    store i32 0, ptr addrspace(5) %p
    ret void)"),
             "bytes of private memory");
}

TEST(Bounds, Alignment) {
  EXPECT_HAS(errorOf(sm, "%p = getelementptr i8, ptr addrspace(1) %in, i64 2\n%v = load i32, ptr "
                         "addrspace(1) %p, align 4\nret void"),
             "expected alignment to 4 bytes");
}

TEST(Bounds, ConstantsAreNotWritten) {
  EXPECT_HAS(errorOf(sm, R"(
    @table = internal addrspace(4) constant [2 x i32] [i32 7, i32 8]
    define ptx_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {
      %g = addrspacecast ptr addrspace(4) @table to ptr
      store i32 1, ptr %g
      ret void
    })"),
             "store to global variable 'table', which is constant");
}

TEST(Poison, Reports) {
  EXPECT_HAS(errorOf(sm, "store i32 poison, ptr addrspace(1) %out\nret void"), "poison stored in kernel 'k'");
  EXPECT_HAS(errorOf(sm,
                     "%v = load i32, ptr addrspace(1) %in\n%w = add nuw i32 %v, -1\n%x = add nuw i32 %w, %w\n"
                     "%c = icmp eq i32 %x, 3\nbr i1 %c, label %a, label %b\na:\nret void\nb:\nret void"),
             "poison used as a branch condition");
  EXPECT_HAS(errorOf(sm, "%v = load i32, ptr addrspace(1) %in\n%s = shl i32 1, 40\n%o = sext i32 %s to i64\n"
                         "%p = getelementptr i32, ptr addrspace(1) %out, i64 %o\nstore i32 0, ptr "
                         "addrspace(1) %p\nret void"),
             "poison used as an address");
  // What is not chosen does no harm, and freeze makes it a value.
  EXPECT_EQ(errorOf(sm, "%v = load i32, ptr addrspace(1) %in\n%c = icmp eq i32 %v, 0\n%s = select i1 %c, i32 "
                        "1, i32 poison\n"
                        "store i32 %s, ptr addrspace(1) %out\n%f = freeze i32 poison\nstore i32 %f, ptr "
                        "addrspace(1) %out\nret void"),
            "");
}

TEST(Poison, SharedMemoryOption) {
  const char *text = R"(
    @a = internal addrspace(3) global i32 poison, align 4
    define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {
      %v = load i32, ptr addrspace(3) @a
      store i32 %v, ptr addrspace(1) %out
      ret void
    })";
  std::vector<uint32_t> out(1, 5), in(1);
  qd::SimOptions options = onChip(gfx);
  EXPECT_HAS(run(options, text, {}, out, in), "poison stored");
  options.sharedStartsPoison = false;
  EXPECT_EQ(run(options, text, {}, out, in), "");
  EXPECT_EQ(out[0], 0u);
}

TEST(Undefined, DivisionAndUnreachable) {
  EXPECT_HAS(errorOf(sm, "%v = load i32, ptr addrspace(1) %in\n%d = udiv i32 5, %v\nret void"),
             "division by zero in kernel");
  EXPECT_HAS(errorOf(sm, "%v = load i32, ptr addrspace(1) %in\n%m = xor i32 %v, -1\n%d = sdiv i32 "
                         "-2147483648, %m\nret void"),
             "signed division overflows");
  EXPECT_HAS(errorOf(sm, "call void @llvm.trap()\nunreachable"), "trap executed");
  EXPECT_HAS(errorOf(sm, "unreachable"), "unreachable code executed");
}

TEST(Spaces, GenericPointersReachAll) {
  for (const char *chip : {sm, gfx}) {
    std::string kernel = isNVPTX(chip) ? "ptx_kernel" : "amdgpu_kernel";
    std::string slot = isNVPTX(chip)
                           ? "%a = alloca i32\n%ga = addrspacecast ptr %a to ptr"
                           : "%a = alloca i32, addrspace(5)\n%ga = addrspacecast ptr addrspace(5) %a to ptr";
    slot = isNVPTX(chip) ? "%ga = alloca i32" : slot;
    std::string text = R"(
    @s = internal addrspace(3) global i32 poison, align 4
    @g = internal addrspace(1) global [3 x i16] [i16 1, i16 2, i16 3], align 4
    define KERNEL void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {
      SLOT
      %gs = addrspacecast ptr addrspace(3) @s to ptr
      store i32 11, ptr %gs
      store i32 22, ptr %ga
      %v = load i32, ptr addrspace(1) %in
      %c = icmp eq i32 %v, 0
      %p = select i1 %c, ptr %gs, ptr %ga
      %q = select i1 %c, ptr %ga, ptr %gs
      %x = load i32, ptr %p
      %y = load i32, ptr %q
      %y2 = mul i32 %y, 1000
      %z = add i32 %x, %y2
      %back = addrspacecast ptr %gs to ptr addrspace(3)
      %i = ptrtoint ptr addrspace(3) %back to INT
      %i1 = add INT %i, 0
      %j = inttoptr INT %i1 to ptr addrspace(3)
      %w = load i32, ptr addrspace(3) %j
      %z2 = add i32 %z, %w
      %h = load i16, ptr addrspace(1) getelementptr inbounds ([3 x i16], ptr addrspace(1) @g, i64 0, i64 2)
      %h32 = zext i16 %h to i32
      %h3 = mul i32 %h32, 1000000
      %z3 = add i32 %z2, %h3
      store i32 %z3, ptr addrspace(1) %out
      ret void
    })";
    auto put = [&](const char *what, const std::string &with) {
      for (size_t at = text.find(what); at != std::string::npos; at = text.find(what))
        text.replace(at, std::string(what).size(), with);
    };
    put("KERNEL", kernel);
    put("SLOT", slot);
    put("INT", isNVPTX(chip) ? "i64" : "i32");
    std::vector<uint32_t> out(1), in(1);
    EXPECT_EQ(run(onChip(chip), text, {{1, 1, 1}, {1, 1, 1}}, out, in), "");
    EXPECT_EQ(out[0], 3022022u);
  }
}

TEST(Arguments, KindsAreChecked) {
  auto program =
      load(onChip(sm), "define ptx_kernel void @k(ptr %p, i32 %n, float %f, <2 x i32> %v) {\n"
                       "%a = extractelement <2 x i32> %v, i32 1\n%b = bitcast float %f to i32\n"
                       "%s = add i32 %a, %n\n%t = add i32 %s, %b\nstore i32 %t, ptr %p\nret void\n}");
  ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
  uint32_t result = 0, pair[2] = {3, 5};
  auto runWith = [&](std::vector<qd::SimArg> args, const char *name = "k",
                     std::array<uint32_t, 3> block = {1, 1, 1}) {
    llvm::Error error = (*program)->run(name, {1, 1, 1}, block, args);
    return error ? llvm::toString(std::move(error)) : std::string();
  };
  qd::SimArg buffer = qd::SimArg::buffer(&result, 4), n = qd::SimArg::scalar(100), f = qd::SimArg::scalar(7);
  qd::SimArg v{false, pair, 8, 0};
  EXPECT_EQ(runWith({buffer, n, f, v}), "");
  EXPECT_EQ(result, 112u);
  EXPECT_HAS(runWith({buffer, n, f}), "takes 4 arguments, found 3");
  EXPECT_HAS(runWith({n, n, f, v}), "argument 0 of kernel 'k': found a scalar, expected a buffer");
  EXPECT_HAS(runWith({buffer, buffer, f, v}), "argument 1 of kernel 'k': found a buffer, expected a scalar");
  EXPECT_HAS(runWith({buffer, n, f, n}), "found a scalar of 64 bits, expected 8 bytes of memory");
  EXPECT_HAS(runWith({}, "nothing"), "the module has no kernel 'nothing'");
  EXPECT_HAS(runWith({buffer, n, f, v}, "k", {1025, 1, 1}), "expected at most 1024");
  EXPECT_HAS(runWith({buffer, n, f, v}, "k", {0, 1, 1}), "at least 1");
}

TEST(Arguments, BlocksMustBeWhatTheKernelPromises) {
  auto with = [](const char *chip, const char *attribute) {
    auto program =
        load(onChip(chip), "define " + std::string(isNVPTX(chip) ? "ptx_kernel" : "amdgpu_kernel") +
                               " void @k() #0 {\nret void\n}\nattributes #0 = { " + attribute + " }");
    EXPECT_TRUE(bool(program));
    std::string result;
    for (uint32_t x : {64, 128}) {
      llvm::Error error = (*program)->run("k", {1, 1, 1}, {x, 1, 1}, {});
      result += error ? llvm::toString(std::move(error)) : "";
    }
    return result;
  };
  EXPECT_EQ(with(sm, "\"nvvm.reqntid\"=\"64,1,1\""),
            "kernel 'k' was compiled for blocks of (64, 1, 1) threads, found (128, 1, 1)");
  EXPECT_EQ(with(gfx, "\"amdgpu-flat-work-group-size\"=\"1,64\""),
            "kernel 'k' was compiled for blocks of 1 to 64 threads, found 128");
}

TEST(Arguments, HiddenOnesOfAMDGCN) {
  std::vector<uint32_t> out(4), in(1);
  std::string text = R"(
    %i = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
    %n = load i32, ptr addrspace(4) %i
    %p1 = getelementptr i8, ptr addrspace(4) %i, i64 4
    %m = load i32, ptr addrspace(4) %p1
    %p2 = getelementptr i8, ptr addrspace(4) %i, i64 14
    %y = load i16, ptr addrspace(4) %p2
    %y32 = zext i16 %y to i32
    %q = getelementptr i32, ptr addrspace(1) %out, i64 1
    %s = getelementptr i32, ptr addrspace(1) %out, i64 2
    store i32 %n, ptr addrspace(1) %out
    store i32 %m, ptr addrspace(1) %q
    store i32 %y32, ptr addrspace(1) %s
    ret void)";
  ASSERT_EQ(run(onChip(gfx), text, {{6, 7, 1}, {8, 4, 2}}, out, in), "");
  EXPECT_EQ(out, (std::vector<uint32_t>{6, 7, 4, 0}));
}

TEST(Arguments, ThreadNumbersInThreeDimensions) {
  std::vector<uint32_t> out(24), in(1);
  std::string text = R"(
    %x = call i32 @llvm.amdgcn.workitem.id.x()
    %y = call i32 @llvm.amdgcn.workitem.id.y()
    %z = call i32 @llvm.amdgcn.workitem.id.z()
    %zy = mul i32 %z, 3
    %yz = add i32 %zy, %y
    %yx = mul i32 %yz, 4
    %i = add i32 %yx, %x
    %i64 = zext i32 %i to i64
    %p = getelementptr i32, ptr addrspace(1) %out, i64 %i64
    %lo = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)
    store i32 %lo, ptr addrspace(1) %p
    ret void)";
  ASSERT_EQ(run(onChip(gfx), text, {{1, 1, 1}, {4, 3, 2}}, out, in), "");
  EXPECT_EQ(out, iota(24));
}

TEST(Globals, KeepTheirValueBetweenRuns) {
  auto program = load(onChip(gfx), R"(
    @count = internal addrspace(1) global i32 40
    define amdgpu_kernel void @k(ptr addrspace(1) %out) {
      %o = atomicrmw add ptr addrspace(1) @count, i32 1 monotonic
      store i32 %o, ptr addrspace(1) %out
      ret void
    })");
  ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
  uint32_t value = 0;
  for (uint32_t expected : {40, 41, 42}) {
    EXPECT_FALSE(bool((*program)->run("k", {1, 1, 1}, {1, 1, 1}, {qd::SimArg::buffer(&value, 4)})));
    EXPECT_EQ(value, expected);
  }
}

TEST(Memory, DynamicSharedArray) {
  const char *text = R"(
    @d = external addrspace(3) global [0 x i32], align 4
    define ptx_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {
      %p = getelementptr i32, ptr addrspace(3) @d, i32 3
      store i32 9, ptr addrspace(3) %p
      %v = load i32, ptr addrspace(3) %p
      store i32 %v, ptr addrspace(1) %out
      ret void
    })";
  std::vector<uint32_t> out(1), in(1);
  qd::SimOptions options = onChip(sm);
  options.dynamicSharedBytes = 16;
  EXPECT_EQ(run(options, text, {{1, 1, 1}, {1, 1, 1}}, out, in), "");
  EXPECT_EQ(out[0], 9u);
  options.dynamicSharedBytes = 12;
  EXPECT_HAS(run(options, text, {{1, 1, 1}, {1, 1, 1}}, out, in), "out-of-bounds store");
}

TEST(Memory, VectorsStructsAndCopies) {
  std::vector<uint32_t> out(8), in = iota(8, 1);
  std::string text = R"(
    %v = load <4 x i32>, ptr addrspace(1) %in, align 16
    %w = shufflevector <4 x i32> %v, <4 x i32> poison, <4 x i32> <i32 3, i32 2, i32 1, i32 0>
    store <4 x i32> %w, ptr addrspace(1) %out, align 16
    %q = getelementptr i32, ptr addrspace(1) %in, i64 4
    %s = load {i32, [2 x i16]}, ptr addrspace(1) %q
    %a = extractvalue {i32, [2 x i16]} %s, 0
    %b = extractvalue {i32, [2 x i16]} %s, 1, 0
    %b32 = zext i16 %b to i32
    %t = add i32 %a, %b32
    %o4 = getelementptr i32, ptr addrspace(1) %out, i64 4
    store i32 %t, ptr addrspace(1) %o4
    %o5 = getelementptr i32, ptr addrspace(1) %out, i64 5
    call void @llvm.memcpy.p1.p1.i64(ptr addrspace(1) %o5, ptr addrspace(1) %in, i64 8, i1 false)
    %o7 = getelementptr i32, ptr addrspace(1) %out, i64 7
    call void @llvm.memset.p1.i64(ptr addrspace(1) %o7, i8 1, i64 4, i1 false)
    ret void)";
  ASSERT_EQ(run(onChip(sm), text, {{1, 1, 1}, {1, 1, 1}}, out, in), "");
  EXPECT_EQ(out, (std::vector<uint32_t>{4, 3, 2, 1, 11, 1, 2, 0x01010101}));
}

} // namespace
