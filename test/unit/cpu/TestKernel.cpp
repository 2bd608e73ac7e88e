//===- TestKernel.cpp -------------------------------------------------------------------===//

#include "TestKernel.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace qd::test {

static DialectRegistry createRegistry() {
  DialectRegistry registry;
  registerDialects(registry);
  return registry;
}

Module::Module(llvm::StringRef text) : context(createRegistry(), MLIRContext::Threading::DISABLED) {
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    llvm::raw_string_ostream(diagnostics) << diagnostic.getLocation() << ": " << diagnostic.str() << "\n";
  });
  module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  EXPECT_TRUE(module) << diagnostics << text.str();
}

std::unique_ptr<HostProgram> Module::createProgram(Backend backend, unsigned lanes, unsigned threads, unsigned optLevel) {
  HostOptions options;
  options.threads = threads;
  options.optLevel = optLevel;
  if (!module)
    return nullptr;
  if (backend == Backend::Interp)
    return createInterpProgram(*module, getTarget(backend, lanes), options);
  return createCPUProgram(*module, getTarget(backend, lanes), options);
}

std::string Module::emitText(unsigned lanes, CPUText form, unsigned optLevel) {
  CodegenOptions options;
  options.optLevel = optLevel;
  FailureOr<std::string> text = emitCPUText(*module, getTarget(Backend::CPU, lanes), options, form);
  return succeeded(text) ? *text : "error: " + diagnostics;
}

std::string Module::takeDiagnostics() { return std::exchange(diagnostics, {}); }

void run(llvm::StringRef text, unsigned lanes, std::array<uint32_t, 3> grid, llvm::ArrayRef<HostArg> args,
         unsigned threads) {
  Module module(text);
  std::unique_ptr<HostProgram> program = module.createProgram(Backend::CPU, lanes, threads);
  ASSERT_TRUE(program) << module.takeDiagnostics();
  llvm::Error error = program->launch("k", grid, args);
  EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
}

std::string fill(llvm::StringRef text, llvm::ArrayRef<std::pair<llvm::StringRef, std::string>> values) {
  std::string result = text.str();
  for (auto &[name, value] : values) {
    std::string key = ("{" + name + "}").str();
    for (size_t at = 0; (at = result.find(key, at)) != std::string::npos; at += value.size())
      result.replace(at, key.size(), value);
  }
  return result;
}

} // namespace qd::test
