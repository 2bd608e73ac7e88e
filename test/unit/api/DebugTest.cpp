//===- DebugTest.cpp - qd::CompileOptions::debug: lines beside the same code ----------------------===//

#include "compiler/Compiler.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>

using namespace qd;

static std::string readExample(llvm::StringRef name) {
  auto file = llvm::MemoryBuffer::getFile(llvm::Twine(QD_SOURCE_DIR) + "/docs/examples/" + name + ".qir");
  return file ? (*file)->getBuffer().str() : "";
}

static constexpr const char *examples[] = {"sum32",  "scan_rows",     "block_sort", "histogram",
                                           "matmul", "lookback_scan", "softmax"};

/// The lines of a text but for empty ones and those that begin as one of `dropped` does.
static std::string getCode(llvm::StringRef text, std::vector<llvm::StringRef> dropped) {
  std::string code;
  for (llvm::StringRef line : llvm::split(text, '\n')) {
    line = line.trim();
    if (!line.empty() && llvm::none_of(dropped, [&](llvm::StringRef begin) { return line.starts_with(begin); }))
      code += line.str() + "\n";
  }
  return code;
}

/// An example without and with lines.
struct Both {
  CompileResult without, with;
};
static Both compileBoth(llvm::StringRef example, const char *target, const char *emit, unsigned level = 2) {
  CompileOptions options;
  options.targets = {target};
  options.emit = emit;
  options.optLevel = level;
  std::string qir = readExample(example);
  EXPECT_NE(qir, "") << example.str();
  Both both;
  both.without = compile(qir, "example.qir", options);
  options.debug = true;
  both.with = compile(qir, "example.qir", options);
  EXPECT_EQ(both.with.ok, both.without.ok) << example.str() << both.with.diagnostics << both.without.diagnostics;
  return both;
}

TEST(Debug, PTXHasTheSameInstructions) {
  const std::vector<llvm::StringRef> dropped = {".loc", ".file", ".section", "$L__tmp", "$L__func_"};
  for (const char *example : examples) {
    for (unsigned level = 0; level < 4; ++level) {
      auto [without, with] = compileBoth(example, "nvptx:sm_90", "ptx", level);
      ASSERT_TRUE(with.ok && without.ok) << example;
      EXPECT_EQ(getCode(with.data, dropped), getCode(without.data, dropped)) << example << " at -O" << level;
      EXPECT_EQ(llvm::StringRef(without.data).count(".loc"), 0u);
      EXPECT_EQ(llvm::StringRef(with.data).count(".file\t1 \"example.qir\""), 1u) << example;
      // Each kernel's first instructions stand at a line, and so do most others.
      EXPECT_GT(llvm::StringRef(with.data).count("\t.loc\t1 "), 4u) << example;
    }
  }
}

TEST(Debug, SPIRVIsTheSameButForLines) {
  for (const char *example : examples)
    for (const char *target : {"spirv@8", "spirv:vulkan1.3@32"}) {
      auto [without, with] = compileBoth(example, target, "spirv-asm");
      if (!with.ok)
        continue;
      llvm::StringRef text = with.data;
      llvm::StringRef file = text.split(" = OpString \"example.qir\"").first.rsplit('\n').second.trim();
      EXPECT_NE(file, "") << example;
      std::vector<llvm::StringRef> dropped = {"; Bound", "OpLine", "OpNoLine", "OpSource", file};
      EXPECT_EQ(getCode(text, dropped), getCode(without.data, dropped)) << example << " for " << target;
      EXPECT_GT(text.count(("OpLine " + file).str()), 4u) << example;
    }
}

/// The lines of assembly that are instructions.
static std::string getInstructions(llvm::StringRef assembly) {
  std::string code;
  for (llvm::StringRef line : llvm::split(assembly, '\n'))
    if (line.consume_front("\t") && !line.starts_with(".") && !line.starts_with("#"))
      code += line.str() + "\n";
  return code;
}

TEST(Debug, AssemblyHasTheSameInstructions) {
  for (const char *target : {"amdgcn:gfx942", "amdgcn:gfx1100", "cpu"})
    for (const char *example : examples)
      for (unsigned level = 0; level < 4; ++level) {
        auto [without, with] = compileBoth(example, target, "asm", level);
        if (!with.ok)
          continue;
        EXPECT_EQ(getInstructions(with.data), getInstructions(without.data)) << example << " for " << target;
        EXPECT_NE(getInstructions(with.data), "");
        EXPECT_GT(llvm::StringRef(with.data).count("\t.loc\t0 "), 4u) << example << " for " << target;
        EXPECT_EQ(llvm::StringRef(without.data).count(".loc"), 0u);
      }
}
