//===- OpsTest.cpp - every op is complete: documented, tested, realised on every target -----------===//
//
// An op is done when it has a summary and a description (docs/ops.md is made of them), a file of its own under
// test/ops, and a realisation for each backend: that file compiles for all of them.
//
//===----------------------------------------------------------------------===//

#include "compiler/Compiler.h"
#include "ir/Dialect.h"

#include "llvm/Support/MemoryBuffer.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

using namespace qd;

static std::string readFile(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(QD_SOURCE_DIR "/" + path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// The names of the dialect's ops without their prefix.
static std::vector<std::string> getOps() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::vector<std::string> names;
  for (mlir::RegisteredOperationName op : context.getRegisteredOperationsByDialect("qd"))
    names.push_back(op.getStringRef().drop_front(3).str());
  return names;
}

TEST(Ops, AreDocumented) {
  std::string docs = readFile("docs/ops.md");
  for (const std::string &op : getOps()) {
    size_t section = docs.find("### qd." + op + "\n\n");
    ASSERT_NE(section, std::string::npos) << "qd." << op << " is missing in docs/ops.md";
    std::string text = docs.substr(section, docs.find("\n##", section + 1) - section);
    // A line of summary, and at least one more sentence that is no list of operands.
    size_t summary = text.find(".\n\n"), lists = text.find("\n- ");
    ASSERT_NE(summary, std::string::npos) << "qd." << op << " has no summary";
    std::string description = text.substr(summary + 3, lists == std::string::npos ? lists : lists - summary - 3);
    while (llvm::StringRef(description).starts_with("```")) {
      size_t end = description.find("```\n", 3);
      ASSERT_NE(end, std::string::npos);
      description = llvm::StringRef(description).drop_front(end + 4).ltrim().str();
    }
    EXPECT_GT(llvm::StringRef(description).trim().size(), 10u) << "qd." << op << " has no description";
  }
}

TEST(Ops, HaveATestFile) {
  for (const std::string &op : getOps()) {
    std::string text = readFile("test/ops/" + op + ".qir");
    ASSERT_NE(text, "") << "test/ops/" << op << ".qir is missing";
    EXPECT_NE(text.find("qd." + op), std::string::npos) << "test/ops/" << op << ".qir does not use the op";
    EXPECT_NE(text.find("// RUN:"), std::string::npos) << "test/ops/" << op << ".qir is never run";
  }
}

TEST(Ops, AreRealisedOnEveryTarget) {
  for (const std::string &op : getOps()) {
    std::string text = readFile("test/ops/" + op + ".qir");
    for (const char *target : {"nvptx:sm_70", "nvptx:sm_90", "amdgcn:gfx90a", "amdgcn:gfx1030@64", "amdgcn:gfx1100",
                               "spirv@8", "spirv@64", "cpu@8"}) {
      CompileOptions options;
      options.targets = {target};
      CompileResult result = compile(text, "test/ops/" + op + ".qir", options);
      // No launch of Vulkan has all blocks run at once.
      if (op == "grid.sync" && llvm::StringRef(target).starts_with("spirv")) {
        EXPECT_NE(result.diagnostics.find("'qd.grid.sync' op needs all blocks"), std::string::npos)
            << result.diagnostics;
        continue;
      }
      EXPECT_TRUE(result.ok) << "qd." << op << " on " << target << ":\n" << result.diagnostics;
    }
  }
}
