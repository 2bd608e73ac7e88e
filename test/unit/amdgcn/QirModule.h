//===- QirModule.h - QIR text through the pipeline ---------------------------------===//

#ifndef QD_TEST_UNIT_AMDGCN_QIRMODULE_H
#define QD_TEST_UNIT_AMDGCN_QIRMODULE_H

#include "TestModule.h"

#include "passes/Passes.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/IR/LLVMContext.h"

namespace qd::test {

/// A module of kernels for one target, lowered to LLVM IR. Null and a message where it does not compile.
class QirModule {
public:
  QirModule(llvm::StringRef text, const Target &target, unsigned optLevel = 2) {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    mlir::MLIRContext mlirContext(registry, mlir::MLIRContext::Threading::DISABLED);
    mlir::ScopedDiagnosticHandler handler(&mlirContext, [&](mlir::Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
        errors += diagnostic.str() + "\n";
      return mlir::success();
    });
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &mlirContext);
    if (!module)
      return;
    mlir::PassManager passes(&mlirContext);
    passes.addPass(createExpandAtomicsPass(target));
    passes.addPass(createExpandCollectivesPass(target));
    if (mlir::succeeded(passes.run(*module)))
      lowered = lowerToLLVM(*module, target, CodegenOptions{optLevel}, context);
  }

  std::string errors;

private:
  llvm::LLVMContext context;

public:
  std::unique_ptr<llvm::Module> lowered;
};

} // namespace qd::test

#endif
