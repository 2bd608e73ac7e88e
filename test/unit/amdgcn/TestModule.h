//===- TestModule.h - LLVM IR kernels for the tests of emission ------------------===//

#ifndef QD_TEST_UNIT_AMDGCN_TESTMODULE_H
#define QD_TEST_UNIT_AMDGCN_TESTMODULE_H

#include "codegen/AMDGCN.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include <gtest/gtest.h>

namespace qd {
/// For messages of parametrised tests.
inline void PrintTo(const Target &target, std::ostream *stream) { *stream << target.str(); }
} // namespace qd

namespace qd::test {

/// Every amdgcn chip at every of its wave sizes.
inline std::vector<Target> getTargets() {
  std::vector<Target> targets;
  for (const Chip &chip : getChips())
    for (unsigned size : {32u, 64u})
      if (chip.backend == Backend::AMDGCN && chip.hasSubgroupSize(size))
        targets.push_back({&chip, size});
  return targets;
}

inline Target getTarget(llvm::StringRef name, unsigned size = 0) {
  return llvm::cantFail(findTarget(("amdgcn:" + name).str(), size));
}

/// Parses `text` and makes each of its definitions a kernel of `numThreads` threads for `target`.
inline std::unique_ptr<llvm::Module> parseKernels(llvm::LLVMContext &context, llvm::StringRef text,
                                                  const Target &target, unsigned numThreads = 256) {
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, diagnostic, context);
  EXPECT_TRUE(module) << diagnostic.getMessage().str();
  if (module)
    for (llvm::Function &function : *module)
      if (!function.isDeclaration())
        setAMDGCNKernelABI(function, target, numThreads);
  return module;
}

/// The bytes, or "error: " and the message.
inline std::string emit(llvm::StringRef text, const Target &target, AMDGCNOutput output, unsigned numThreads = 256,
                        unsigned optLevel = 2) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = parseKernels(context, text, target, numThreads);
  if (!module)
    return "error: no module";
  llvm::Expected<std::string> result = emitAMDGCN(*module, target, output, CodegenOptions{optLevel});
  return result ? *result : "error: " + llvm::toString(result.takeError());
}

} // namespace qd::test

#endif
