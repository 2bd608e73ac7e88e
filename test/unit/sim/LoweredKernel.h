//===- LoweredKernel.h - QIR kernels of what the expansion may leave, run by the simulator ----------===//

#ifndef QD_TEST_UNIT_SIM_LOWEREDKERNEL_H
#define QD_TEST_UNIT_SIM_LOWEREDKERNEL_H

#include "codegen/Codegen.h"
#include "codegen/sim/Sim.h"
#include "ir/Dialect.h"
#include "ir/Targets.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

namespace qd {
inline void PrintTo(const Target &target, std::ostream *stream) { *stream << target.str(); }
} // namespace qd

namespace qd::test {

/// Every chip that the simulator knows from the table, at each of its subgroup sizes.
inline std::vector<Target> getGPUTargets() {
  std::vector<Target> targets;
  for (const Chip &chip : getChips())
    for (unsigned size : {32u, 64u})
      if ((chip.backend == Backend::NVPTX || chip.backend == Backend::AMDGCN) && chip.hasSubgroupSize(size))
        targets.push_back({&chip, size});
  return targets;
}

inline std::string getTargetName(const testing::TestParamInfo<Target> &info) {
  return info.param.chip->name.str() + "_" + std::to_string(info.param.subgroupSize);
}

/// Kernel @k of a text, lowered without any pass over QIR.
class LoweredKernel {
public:
  LoweredKernel(llvm::StringRef text, const Target &target, unsigned optLevel) {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    mlir::MLIRContext mlirContext(registry, mlir::MLIRContext::Threading::DISABLED);
    mlir::ScopedDiagnosticHandler handler(&mlirContext, [&](mlir::Diagnostic &diagnostic) {
      error += diagnostic.str() + "\n";
      return mlir::success();
    });
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &mlirContext);
    if (!module)
      return;
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> lowered = lowerToLLVM(*module, target, CodegenOptions{optLevel}, context);
    if (!lowered)
      return;
    SimOptions options;
    options.chip = target.chip->name.str();
    options.waveSize = target.subgroupSize;
    options.membersMustArrive = true;
    llvm::Expected<std::unique_ptr<SimProgram>> made = SimProgram::create(*lowered, options);
    if (made)
      program = std::move(*made);
    else
      error = llvm::toString(made.takeError());
  }

  /// Runs one block on 1-D buffers; empty, or the error.
  template <typename... Buffers> std::string run(unsigned threads, Buffers &...buffers) {
    if (!program)
      return error.empty() ? "no program" : error;
    llvm::Error failure =
        program->run("k", {1, 1, 1}, {threads, 1, 1},
                     {SimArg::buffer(buffers.data(), buffers.size() * sizeof(typename Buffers::value_type))...});
    return failure ? llvm::toString(std::move(failure)) : "";
  }

private:
  std::string error;
  std::unique_ptr<SimProgram> program;
};

} // namespace qd::test

#endif
