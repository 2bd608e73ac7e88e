//===- Program.h - runs QIR text on the interpreter, for tests ---------------------------===//

#ifndef QD_TEST_UNIT_INTERP_PROGRAM_H
#define QD_TEST_UNIT_INTERP_PROGRAM_H

#include "codegen/HostProgram.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

namespace qd::test {

/// A program from text, and the arguments that its launches get.
class Program {
public:
  explicit Program(llvm::StringRef text, unsigned subgroupSize = 32, std::string checks = "") {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) { diagnostics += d.str() + "\n"; });
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context, "test.qir");
    if (!module)
      return;
    HostOptions options;
    options.checks = std::move(checks);
    program = createInterpProgram(*module, llvm::cantFail(findTarget("interp", subgroupSize)), options);
  }

  template <typename T> Program &buffer(std::vector<T> &elements) {
    HostArg &arg = args.emplace_back();
    arg.isBuffer = true;
    arg.data = elements.data();
    arg.count = elements.size();
    return *this;
  }
  Program &scalar(uint64_t bits) {
    args.emplace_back().bits = bits;
    return *this;
  }
  /// Runs kernel @k; the error's first line, or "".
  std::string run(std::array<uint32_t, 3> grid = {1, 1, 1}) {
    if (!program)
      return diagnostics;
    std::string error = llvm::toString(program->launch("k", grid, args));
    size_t line = std::min(error.find('\n'), error.size());
    notes = error.substr(std::min(line + 1, error.size()));
    return error.substr(0, line);
  }

  std::string diagnostics;
  std::string notes; ///< the error's further lines

private:
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<HostProgram> program;
  std::vector<HostArg> args;
};

template <typename T> std::vector<T> iota(unsigned count) {
  std::vector<T> values(count);
  for (unsigned i = 0; i < count; ++i)
    values[i] = T(i);
  return values;
}

} // namespace qd::test

#endif
