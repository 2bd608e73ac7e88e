//===- EmissionTest.cpp - code objects from textual LLVM IR ----------------------===//

#include "TestModule.h"

#include "codegen/AMDGCNCodeObject.h"

#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cstdlib>
#include <thread>

using namespace llvm;

namespace qd::test {
namespace {

constexpr StringLiteral twoKernels = R"(
  @tile = internal addrspace(3) global [64 x i32] poison, align 4
  define void @copy(ptr addrspace(1) %x, ptr addrspace(1) %y, i64 %n, i32 %k) {
    %i = call i32 @llvm.amdgcn.workitem.id.x()
    %at = getelementptr i32, ptr addrspace(1) %x, i32 %i
    %v = load i32, ptr addrspace(1) %at
    %w = add i32 %v, %k
    %to = getelementptr i32, ptr addrspace(1) %y, i32 %i
    store i32 %w, ptr addrspace(1) %to
    ret void
  }
  define void @shared(ptr addrspace(1) %y) {
    %i = call i32 @llvm.amdgcn.workitem.id.x()
    %slot = and i32 %i, 63
    %at = getelementptr [64 x i32], ptr addrspace(3) @tile, i32 0, i32 %slot
    store i32 %i, ptr addrspace(3) %at
    fence syncscope("workgroup") release
    call void @llvm.amdgcn.s.barrier()
    fence syncscope("workgroup") acquire
    %v = load i32, ptr addrspace(3) @tile
    store i32 %v, ptr addrspace(1) %y
    ret void
  }
  declare i32 @llvm.amdgcn.workitem.id.x()
  declare void @llvm.amdgcn.s.barrier()
)";

/// The metadata of the code object's kernels, by name.
std::map<std::string, std::map<std::string, std::string>> readMetadata(StringRef elf) {
  std::map<std::string, std::map<std::string, std::string>> kernels;
  auto file = cantFail(object::ELFFile<object::ELF64LE>::create(elf));
  for (const auto &section : cantFail(file.sections())) {
    if (section.sh_type != ELF::SHT_NOTE)
      continue;
    Error error = Error::success();
    for (const auto &note : file.notes(section, error)) {
      msgpack::Document document;
      EXPECT_TRUE(document.readFromBlob(note.getDescAsStringRef(section.sh_addralign), false));
      for (msgpack::DocNode &kernel : document.getRoot().getMap()["amdhsa.kernels"].getArray())
        for (auto &[key, value] : kernel.getMap())
          if (!value.isMap() && !value.isArray())
            kernels[kernel.getMap()[".name"].toString()][key.toString()] = value.toString();
    }
    cantFail(std::move(error));
  }
  return kernels;
}

TEST(Emission, EveryChipHasBothKernels) {
  for (const Target &target : getTargets()) {
    SCOPED_TRACE(target.str());
    for (AMDGCNOutput output : {AMDGCNOutput::Object, AMDGCNOutput::HSACO}) {
      std::string elf = emit(twoKernels, target, output, 192);
      ASSERT_EQ(elf.substr(1, 3), "ELF") << elf;
      EXPECT_FALSE(bool(checkAMDGCNCodeObject(elf, {"copy", "shared"})));
      auto kernels = readMetadata(elf);
      EXPECT_EQ(kernels["copy"][".max_flat_workgroup_size"], "192");
      EXPECT_EQ(kernels["copy"][".wavefront_size"], std::to_string(target.subgroupSize));
      EXPECT_EQ(kernels["copy"][".kernarg_segment_size"], "28") << "no hidden arguments";
      EXPECT_EQ(kernels["copy"][".uniform_work_group_size"], "1");
      EXPECT_EQ(kernels["copy"][".group_segment_fixed_size"], "0");
      EXPECT_EQ(kernels["shared"][".group_segment_fixed_size"], "256");
    }
    std::string text = emit(twoKernels, target, AMDGCNOutput::Assembly, 192);
    EXPECT_NE(text.find(".amdhsa_kernel copy"), std::string::npos) << text;
    EXPECT_NE(text.find("amdhsa_code_object_version 5"), std::string::npos);
    EXPECT_NE(text.find(".amdhsa_user_sgpr_kernarg_segment_ptr 1"), std::string::npos);
    for (StringRef unused : {"dispatch_ptr", "queue_ptr", "dispatch_id"})
      EXPECT_EQ(text.find((".amdhsa_user_sgpr_" + unused + " 1").str()), std::string::npos) << unused.str();
  }
}

TEST(Emission, HiddenArgumentsOnlyWhereAskedFor) {
  std::string elf = emit(R"(
    define void @blocks(ptr addrspace(1) %y) {
      %implicit = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
      %n = load i32, ptr addrspace(4) %implicit
      store i32 %n, ptr addrspace(1) %y
      ret void
    })",
                         getTarget("gfx90a"), AMDGCNOutput::HSACO);
  ASSERT_EQ(elf.substr(1, 3), "ELF") << elf;
  EXPECT_EQ(readMetadata(elf)["blocks"][".kernarg_segment_size"], "264");
}

TEST(Emission, SameBytesEveryTime) {
  Target target = getTarget("gfx1100");
  std::string first = emit(twoKernels, target, AMDGCNOutput::HSACO);
  EXPECT_EQ(first, emit(twoKernels, target, AMDGCNOutput::HSACO));
  for (StringRef secret : {"/tmp", "qd-", ".hsaco"})
    EXPECT_EQ(first.find(secret), std::string::npos) << secret.str();
}

TEST(Emission, EveryOptimisationLevel) {
  for (unsigned level = 0; level <= 3; ++level)
    EXPECT_EQ(emit(twoKernels, getTarget("gfx1200"), AMDGCNOutput::HSACO, 64, level).substr(1, 3), "ELF");
}

TEST(Emission, RefusesWaveSizesThatTheChipLacks) {
  Target target = getTarget("gfx90a");
  target.subgroupSize = 32;
  EXPECT_EQ(emit(twoKernels, target, AMDGCNOutput::HSACO),
            "error: gfx90a has no subgroups of 32 lanes for amdgcn, expected 64");
}

TEST(Emission, ReportsInvalidIR) {
  LLVMContext context;
  Target target = getTarget("gfx90a");
  std::unique_ptr<llvm::Module> module = parseKernels(context, "define void @k() { ret void }", target);
  module->getFunction("k")->front().getTerminator()->eraseFromParent();
  Expected<std::string> result = emitAMDGCN(*module, target, AMDGCNOutput::HSACO, {});
  ASSERT_FALSE(bool(result));
  std::string message = toString(result.takeError());
  EXPECT_EQ(message.find("invalid LLVM IR for amdgcn: "), 0u) << message;
}

TEST(Emission, ReportsErrorsOfTheBackend) {
  // More shared memory than a workgroup has.
  std::string result = emit(R"(
    @tile = internal addrspace(3) global [100000 x i32] poison, align 4
    define void @k(i32 %i) {
      %at = getelementptr i32, ptr addrspace(3) @tile, i32 %i
      store i32 %i, ptr addrspace(3) %at
      %v = load volatile i32, ptr addrspace(3) @tile
      ret void
    })",
                            getTarget("gfx90a"), AMDGCNOutput::HSACO);
  EXPECT_EQ(result.find("error: code generation for gfx90a (wave64) failed: "), 0u) << result;
  EXPECT_NE(result.find("local memory"), std::string::npos) << result;
}

TEST(Emission, ReportsUndefinedSymbols) {
  std::string result = emit(R"(
    @other = external addrspace(1) global i32
    define void @k(ptr addrspace(1) %y) {
      %v = load i32, ptr addrspace(1) @other
      store i32 %v, ptr addrspace(1) %y
      ret void
    })",
                            getTarget("gfx90a"), AMDGCNOutput::HSACO);
  EXPECT_EQ(result, "error: cannot link the code object: undefined symbol: other");
}

TEST(CodeObject, MissingKernelIsAnError) {
  std::string elf = emit(twoKernels, getTarget("gfx90a"), AMDGCNOutput::HSACO);
  EXPECT_EQ(toString(checkAMDGCNCodeObject(elf, {"copy", "shared", "third"})),
            "the backend dropped kernel 'third': it is not in the kernel descriptors of the code object");
  EXPECT_EQ(toString(checkAMDGCNCodeObject(elf, {"copy"})),
            "expected 1 kernels in the kernel descriptors of the code object, found 2");
  EXPECT_TRUE(errorToBool(checkAMDGCNCodeObject("not an ELF file", {})));
}

TEST(CodeObject, LinkErrorsLeaveNoFilesAndNoProcess) {
  SmallString<128> folder;
  ASSERT_FALSE(sys::fs::createUniqueDirectory("qd-link-test", folder));
  const char *previous = std::getenv("TMPDIR");
  std::string saved = previous ? previous : "";
  setenv("TMPDIR", folder.c_str(), 1);
  EXPECT_TRUE(errorToBool(linkAMDGCN("not an object").takeError()));
  std::string elf = emit(twoKernels, getTarget("gfx90a"), AMDGCNOutput::HSACO);
  EXPECT_EQ(elf.substr(1, 3), "ELF") << elf;
  std::error_code code;
  EXPECT_EQ(sys::fs::directory_iterator(folder, code), sys::fs::directory_iterator()) << "a file is left";
  sys::fs::remove(folder);
  elf = emit(twoKernels, getTarget("gfx90a"), AMDGCNOutput::HSACO);
  EXPECT_EQ(elf.find("error: cannot create a temporary file for the link: "), 0u) << elf;
  previous ? setenv("TMPDIR", saved.c_str(), 1) : unsetenv("TMPDIR");
}

TEST(CodeObject, ManyThreadsAtOnce) {
  std::string expected = emit(twoKernels, getTarget("gfx942"), AMDGCNOutput::HSACO);
  std::vector<std::string> results(8);
  std::vector<std::thread> threads;
  for (std::string &result : results)
    threads.emplace_back([&result] {
      for (int i = 0; i < 4; ++i)
        result = emit(twoKernels, getTarget("gfx942"), AMDGCNOutput::HSACO);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &result : results)
    EXPECT_EQ(result, expected);
}

} // namespace
} // namespace qd::test
