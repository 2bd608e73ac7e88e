// What the executor does not have is refused when a module is loaded, by name.
#include "Harness.h"

using namespace qd::test;

namespace {

std::string kernel(llvm::StringRef chip, llvm::StringRef text, llvm::StringRef rest = "") {
  return ("define " + llvm::Twine(isNVPTX(chip) ? "ptx_kernel" : "amdgpu_kernel") +
          " void @k(ptr addrspace(1) %out) {\n" + text + "\nret void\n}\n" + rest)
      .str();
}

std::string errorOf(llvm::StringRef chip, llvm::StringRef text, llvm::StringRef rest = "") {
  return loadError(onChip(chip), kernel(chip, text, rest));
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Unsupported, Calls) {
  EXPECT_HAS(errorOf("sm_80", "call void @f()", "declare void @f()"),
             "function 'f' is not defined in the module in function 'k': `call void @f()`");
  EXPECT_HAS(errorOf("sm_80", "%p = load ptr, ptr addrspace(1) %out\ncall void %p()"),
             "indirect calls are not supported");
  EXPECT_HAS(errorOf("sm_80", "store ptr @f, ptr addrspace(1) %out", "define void @f() {\nret void\n}"),
             "is not supported");
  EXPECT_HAS(errorOf("sm_80", "%a = alloca i32\ncall void @f(ptr byval(i32) %a)",
                     "define void @f(ptr byval(i32) %p) {\nret void\n}"),
             "arguments by value in memory are not supported");
}

TEST(Unsupported, IntrinsicsAreNamed) {
  EXPECT_HAS(errorOf("gfx942", "call void @llvm.amdgcn.s.sethalt(i32 1)"),
             "intrinsic 'llvm.amdgcn.s.sethalt' is not supported on gfx942");
  EXPECT_HAS(errorOf("sm_80", "%x = call i32 @llvm.nvvm.read.ptx.sreg.smid()"),
             "intrinsic 'llvm.nvvm.read.ptx.sreg.smid' is not supported on sm_80");
  // The other vendor's are no less foreign.
  EXPECT_HAS(errorOf("sm_80", "%x = call i32 @llvm.amdgcn.workitem.id.x()"), "is not supported on sm_80");
}

TEST(Unsupported, TypesAndSpaces) {
  EXPECT_HAS(errorOf("sm_80", "%x = load i256, ptr addrspace(1) %out"),
             "values of type 'i256' are not supported");
  EXPECT_HAS(errorOf("sm_80", "%x = load fp128, ptr addrspace(1) %out"),
             "values of type 'fp128' are not supported");
  EXPECT_HAS(errorOf("sm_80", "%x = load <vscale x 2 x i32>, ptr addrspace(1) %out"), "are not supported");
  EXPECT_HAS(errorOf("gfx942", "%p = inttoptr i32 0 to ptr addrspace(6)\n%v = load i32, ptr addrspace(6) %p"),
             "values of type 'ptr addrspace(6)' are not supported");
}

TEST(Unsupported, StackAndGlobals) {
  EXPECT_HAS(errorOf("sm_80", "%n = load i32, ptr addrspace(1) %out\n%a = alloca i32, i32 %n"),
             "stack slots of variable size are not supported");
  EXPECT_HAS(errorOf("sm_80", "%a = alloca [2000000 x i8]"), "the stack exceeds");
  EXPECT_HAS(errorOf("sm_80", "%x = load i32, ptr addrspace(1) @g", "@g = external addrspace(1) global i32"),
             "global variable 'g' is not defined in the module");
  EXPECT_HAS(errorOf("sm_80", "store i8 0, ptr addrspace(3) @s",
                     "@s = internal addrspace(3) global [2000000 x i8] poison"),
             "the module's shared variables need more than");
}

TEST(Unsupported, ModuleOfAnotherTarget) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(moduleText("sm_80", kernel("sm_80", "")), diagnostic, context);
  auto program = qd::SimProgram::create(*module, onChip("gfx942"));
  ASSERT_FALSE(bool(program));
  EXPECT_EQ(llvm::toString(program.takeError()), "module for 'nvptx64-nvidia-cuda' does not fit chip gfx942");
}

} // namespace
