//===- CompletenessTest.cpp - every op has its meaning and its test ---------------------------------===//

#include "codegen/interp/Rules.h"
#include "ir/Dialect.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

namespace {

/// Calls `visit` with the name of every op of the dialect.
void forEachOp(llvm::function_ref<void(llvm::StringRef)> visit) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<qd::QDDialect>();
  unsigned count = 0;
  for (mlir::RegisteredOperationName name : context.getRegisteredOperations())
    if (name.getDialectNamespace() == "qd") {
      visit(name.getStringRef());
      ++count;
    }
  EXPECT_GT(count, 20u);
}

TEST(Completeness, everyOpHasARule) {
  forEachOp([](llvm::StringRef name) {
    // A kernel is what is run, and a table what it reads: no steps of it.
    if (name != "qd.kernel" && name != "qd.constant")
      EXPECT_NE(qd::interp::getRules().find(name), nullptr) << name.str() << " has no rule in the interpreter";
  });
}

TEST(Completeness, everyOpHasATest) {
  forEachOp([](llvm::StringRef name) {
    std::string file = (QD_SOURCE_DIR "/test/ops/" + name.drop_front(3) + ".qir").str();
    EXPECT_TRUE(llvm::sys::fs::exists(file)) << name.str() << " has no test " << file;
  });
}

} // namespace
