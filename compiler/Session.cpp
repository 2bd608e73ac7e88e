//===- Session.cpp - contexts, parsing and diagnostics -----------------------------------------===//

#include "compiler/Session.h"

#include "ir/Dialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace qd {

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerDialects(registry);
  return registry;
}

Session::Session() : context(makeRegistry(), MLIRContext::Threading::DISABLED), stream(diagnostics) {
  context.printOpOnDiagnostic(false);
}

ModuleOp Session::parse(llvm::StringRef qir, llvm::StringRef name) {
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(qir, name), llvm::SMLoc());
  handler = std::make_unique<SourceMgrDiagnosticHandler>(sources, &context, stream);
  module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  return *module;
}

void Session::error(const llvm::Twine &message) { stream << "error: " << message << "\n"; }

} // namespace qd
