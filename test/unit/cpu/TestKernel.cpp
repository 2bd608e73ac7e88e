//===- TestKernel.cpp -------------------------------------------------------------------===//

#include "TestKernel.h"

#include "mlir/Parser/Parser.h"
#include "llvm/TargetParser/Host.h"

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

std::unique_ptr<HostProgram> Module::createProgram(Backend backend, unsigned lanes, unsigned threads, unsigned optLevel,
                                                   llvm::StringRef cpu) {
  HostOptions options;
  options.threads = threads;
  options.optLevel = optLevel;
  options.cpu = cpu;
  if (!module)
    return nullptr;
  if (backend == Backend::Interp)
    return createInterpProgram(*module, getTarget(backend, lanes), options);
  return createCPUProgram(*module, getTarget(backend, lanes), options);
}

std::string Module::emitText(unsigned lanes, CPUText form, unsigned optLevel, llvm::StringRef cpu) {
  CodegenOptions options;
  options.optLevel = optLevel;
  options.cpu = cpu;
  FailureOr<std::string> text = emitCPUText(*module, getTarget(Backend::CPU, lanes), options, form);
  return succeeded(text) ? *text : "error: " + diagnostics;
}

std::string Module::takeDiagnostics() { return std::exchange(diagnostics, {}); }

void run(llvm::StringRef text, unsigned lanes, std::array<uint32_t, 3> grid, llvm::ArrayRef<HostArg> args,
         unsigned threads, llvm::StringRef cpu) {
  Module module(text);
  std::unique_ptr<HostProgram> program = module.createProgram(Backend::CPU, lanes, threads, 2, cpu);
  ASSERT_TRUE(program) << module.takeDiagnostics();
  llvm::Error error = program->launch("k", grid, args);
  EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
}

std::vector<std::string> getProcessors() {
  std::vector<std::string> processors = {""};
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  auto hasAll = [&](llvm::ArrayRef<const char *> wanted) {
    return llvm::all_of(wanted, [&](const char *feature) { return features.lookup(feature); });
  };
  // What the stand-ins have beside SSE4 and AVX2.
  if (hasAll({"sse4.2", "popcnt", "cx16"}))
    processors.push_back("nehalem");
  if (hasAll({"avx2", "fma", "bmi2", "f16c", "movbe", "invpcid"}))
    processors.push_back("haswell");
  return processors;
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
