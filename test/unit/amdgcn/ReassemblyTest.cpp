//===- ReassemblyTest.cpp - the text of every op's tests as an assembler reads it ------------------===//
//
// Kernels of the execution tests and of the examples go through the whole pipeline; the assembly that is emitted
// for them must assemble, and give the machine code of the code object byte by byte, with the source's lines as without.
// LLVM can write instructions that do not exist, which only this shows.
//
// A run covers each file on a third of the targets, at the optimisation levels in turn; with QD_TEST_ALL in the
// environment, on all of them at each level.
//
//===----------------------------------------------------------------------===//

#include "Assembler.h"
#include "TestModule.h"

#include "codegen/AMDGCNCodeObject.h"
#include "compiler/Pipeline.h"
#include "compiler/Session.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <cstdlib>
#include <set>

using namespace llvm;

namespace qd::test {
namespace {

std::vector<std::string> getFiles() {
  std::set<std::string> files;
  for (const char *folder : {"/test/ops", "/docs/examples"}) {
    std::error_code code;
    for (sys::fs::directory_iterator at(Twine(QD_SOURCE_DIR) + folder, code), end; at != end && !code;
         at.increment(code))
      if (StringRef(at->path()).ends_with(".qir"))
        files.insert(at->path());
    EXPECT_FALSE(code) << folder << ": " << code.message();
  }
  return {files.begin(), files.end()};
}

/// The machine code that `assembly` assembles to.
std::string getAssembled(StringRef assembly, const Target &target) {
  std::string assembled = assemble(assembly, target);
  if (StringRef(assembled).substr(1, 3) != "ELF")
    return assembled.substr(0, 2000);
  // Addresses of constant tables are the linker's.
  Expected<std::string> linked = linkAMDGCN(assembled);
  return linked ? getText(*linked) : toString(linked.takeError());
}

void check(StringRef path, const Target &target, unsigned optLevel) {
  SCOPED_TRACE(sys::path::filename(path).str() + " for " + target.str() + " at -O" + std::to_string(optLevel));
  auto buffer = MemoryBuffer::getFile(path);
  ASSERT_TRUE(bool(buffer));
  Session session;
  mlir::ModuleOp module = session.parse((*buffer)->getBuffer(), path);
  ASSERT_TRUE(module) << session.getDiagnostics();
  ASSERT_TRUE(mlir::succeeded(runPipeline(module, target, {DivergencePolicy::Allow}))) << session.getDiagnostics();

  CodegenOptions options{optLevel};
  std::string text;
  for (bool debug : {false, true}) {
    options.debug = debug;
    LLVMContext context;
    std::unique_ptr<llvm::Module> lowered = lowerToLLVM(module, target, options, context);
    ASSERT_TRUE(lowered) << session.getDiagnostics();
    // Emission uses a module up, and may order instructions otherwise for a copy, where uses stand in another order.
    std::unique_ptr<llvm::Module> first = CloneModule(*lowered), second = CloneModule(*lowered);
    Expected<std::string> assembly = emitAMDGCN(*first, target, AMDGCNOutput::Assembly, options);
    ASSERT_TRUE(bool(assembly)) << toString(assembly.takeError());
    EXPECT_EQ(StringRef(*assembly).contains("\t.loc\t"), debug);
    if (!debug) {
      Expected<std::string> object = emitAMDGCN(*second, target, AMDGCNOutput::HSACO, options);
      ASSERT_TRUE(bool(object)) << toString(object.takeError());
      text = getText(*object);
    }
    EXPECT_TRUE(getAssembled(*assembly, target) == text)
        << "the machine code differs" << (debug ? " where lines are asked for" : "");
  }
}

class Reassembly : public testing::TestWithParam<unsigned> {};

TEST_P(Reassembly, SameBytes) {
  bool isWhole = std::getenv("QD_TEST_ALL");
  const Target target = getTargets()[GetParam()];
  std::vector<std::string> files = getFiles();
  EXPECT_GT(files.size(), 100u);
  constexpr unsigned share = 3, numLevels = 4;
  for (auto [i, file] : enumerate(files))
    for (unsigned level = 0; level < numLevels; ++level)
      if (isWhole || ((i + GetParam()) % share == 0 && (i / share + GetParam()) % numLevels == level))
        check(file, target, level);
}

INSTANTIATE_TEST_SUITE_P(Chips, Reassembly, testing::Range(0u, unsigned(getTargets().size())), [](const auto &info) {
  Target target = getTargets()[info.param];
  return target.chip->name.str() + "_" + std::to_string(target.subgroupSize);
});

} // namespace
} // namespace qd::test
