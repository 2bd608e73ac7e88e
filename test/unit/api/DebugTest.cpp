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

/// Instructions, and what a kernel declares, without labels between them, lines and files.
static std::string getCode(llvm::StringRef ptx) {
  std::string code;
  for (llvm::StringRef line : llvm::split(ptx, '\n')) {
    line = line.trim();
    bool isLine = line.starts_with(".loc") || line.starts_with(".file") || line.starts_with(".section");
    bool isLabel = line.starts_with("$L__tmp") || line.starts_with("$L__func_");
    if (!line.empty() && !isLine && !isLabel)
      code += line.str() + "\n";
  }
  return code;
}

TEST(Debug, PTXHasTheSameInstructions) {
  for (const char *example : {"sum32", "scan_rows", "block_sort", "histogram", "matmul", "lookback_scan", "softmax"}) {
    std::string qir = readExample(example);
    ASSERT_NE(qir, "") << example;
    for (unsigned level = 0; level < 4; ++level) {
      CompileOptions options;
      options.targets = {"nvptx:sm_90"};
      options.emit = "ptx";
      options.optLevel = level;
      CompileResult without = compile(qir, "example.qir", options);
      options.debug = true;
      CompileResult with = compile(qir, "example.qir", options);
      ASSERT_TRUE(with.ok && without.ok) << example << with.diagnostics << without.diagnostics;
      EXPECT_EQ(getCode(with.data), getCode(without.data)) << example << " at -O" << level;
      EXPECT_EQ(llvm::StringRef(without.data).count(".loc"), 0u);
      EXPECT_EQ(llvm::StringRef(with.data).count(".file\t1 \"example.qir\""), 1u) << example;
      // Each kernel's first instructions stand at a line, and so do most others.
      EXPECT_GT(llvm::StringRef(with.data).count("\t.loc\t1 "), 4u) << example;
    }
  }
}
