//===- Session.cpp - contexts, parsing and diagnostics -----------------------------------------===//

#include "compiler/Session.h"

#include "ir/Dialect.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
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

bool Session::refuseVersion(llvm::StringRef name, const llvm::Twine &version) {
  error(name + ": written for QIR version " + version + ", this release reads up to version " + llvm::Twine(qirVersion));
  return false;
}

/// Looks at the text before it is parsed: a newer version may hold what this one cannot parse.
bool Session::checkVersion(llvm::StringRef qir, llvm::StringRef name) {
  llvm::StringRef rest = qir.split(versionAttribute).second.ltrim();
  unsigned version = 0;
  if (rest.consume_front("=") && !rest.ltrim().take_while(llvm::isDigit).getAsInteger(10, version) &&
      version > qirVersion)
    return refuseVersion(name, llvm::Twine(version));
  return true;
}

ModuleOp Session::parse(llvm::StringRef qir, llvm::StringRef name) {
  bool isText = !isBytecode(llvm::MemoryBufferRef(qir, name));
  if (isText && !checkVersion(qir, name))
    return {};
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(qir, name), llvm::SMLoc());
  handler = std::make_unique<SourceMgrDiagnosticHandler>(sources, &context, stream);
  module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
    return {};
  auto version = (*module)->getAttrOfType<IntegerAttr>(versionAttribute);
  if (version && version.getValue().ugt(qirVersion)) {
    refuseVersion(name, llvm::toString(version.getValue(), 10, /*Signed=*/false));
    return {};
  }
  return *module;
}

void Session::error(const llvm::Twine &message) { stream << "error: " << message << "\n"; }

} // namespace qd
