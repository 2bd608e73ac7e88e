//===- Session.cpp - contexts, parsing and diagnostics -----------------------------------------===//

#include "compiler/Session.h"

#include "compiler/Bytecode.h"
#include "ir/Dialect.h"
#include "ir/Place.h"
#include "ir/Version.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Regex.h"

using namespace mlir;

namespace qd {

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerDialects(registry);
  return registry;
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

/// In words of QIR, where MLIR's text names its interfaces, its options or its classes.
static std::string reword(std::string text) {
  static constexpr std::pair<const char *, const char *> rows[] = {
      {"^Dialect `.*' not found for custom op ('[^']*').*", "custom op \\1 is unknown"},
      {"^Available dialects: (.*) ; for more info on .*", "the dialects are \\1"},
      {" \\(tried '.*' as well\\)$", ""},
      {"^unregistered operation ('[^']*') found in dialect .*", "op \\1 is unknown"},
      {"^operation being parsed with an unregistered dialect\\. .*", "the op's dialect is unknown"},
      {"^`(.*)` type created with unregistered dialect\\. .*", "type \\1 is unknown"},
      {"^(#.*) : .* attribute created with unregistered dialect\\. .*", "attribute \\1 is unknown"},
      {"provides no (type|attribute) parsing hook$", "has no \\1 of its own"},
      {"expected (::[A-Za-z]+)+ to be one of:", "expected one of"},
      {"failed to parse [A-Za-z_]+ parameter '.*' which is to be a `.*`$", "failed to parse an attribute"},
      {"op symbol's parent must have the SymbolTable trait$", "op expected at the top of the module"},
      {"^expected non-function type$", "expected a type"},
      {"^expected operation name in quotes$", "expected an op"},
  };
  for (auto [pattern, replacement] : rows)
    text = llvm::Regex(pattern).sub(replacement, text);
  return text;
}

static Diagnostic reword(Diagnostic &diagnostic) {
  Diagnostic reworded(diagnostic.getLocation(), diagnostic.getSeverity());
  reworded << llvm::Twine(reword(diagnostic.str()));
  for (Diagnostic &note : diagnostic.getNotes())
    reworded.attachNote(note.getLocation()) << llvm::Twine(reword(note.str()));
  return reworded;
}

/// Prints diagnostics as they come, and keeps them.
class Session::Handler : public SourceMgrDiagnosticHandler {
public:
  explicit Handler(Session &session)
      : SourceMgrDiagnosticHandler(session.sources, &session.context, session.stream), session(session) {
    setHandler([this](Diagnostic &found) {
      if (found.getSeverity() != DiagnosticSeverity::Error) {
        emitDiagnostic(found);
        return record(found);
      }
      Diagnostic diagnostic = reword(found);
      emitDiagnostic(diagnostic);
      record(diagnostic);
    });
  }

private:
  void record(Diagnostic &diagnostic) {
    Message message = describe(diagnostic.getLocation(), diagnostic.getSeverity(), diagnostic.str());
    addCallers(diagnostic.getLocation(), message);
    for (Diagnostic &note : diagnostic.getNotes())
      message.notes.push_back(describe(note.getLocation(), note.getSeverity(), note.str()));
    session.messages.push_back(std::move(message));
  }

  void addCallers(Location location, Message &message) {
    constexpr unsigned limit = 10;
    for (auto call = dyn_cast<CallSiteLoc>(location); call && message.notes.size() < limit;
         call = dyn_cast<CallSiteLoc>(call.getCaller()))
      message.notes.push_back(describe(call.getCaller(), DiagnosticSeverity::Note, "called from"));
  }

  Message describe(Location location, DiagnosticSeverity severity, std::string text) {
    static constexpr Severity severities[] = {Severity::Note, Severity::Warning, Severity::Error, Severity::Remark};
    Message message;
    message.severity = severities[unsigned(severity)];
    message.text = std::move(text);
    if (FileLineColRange place = findPlace(location)) {
      message.file = place.getFilename().str();
      message.line = place.getStartLine();
      message.column = place.getStartColumn();
      message.excerpt = findLine(place.getFilename(), place.getStartLine());
    }
    return message;
  }

  std::string findLine(llvm::StringRef file, unsigned line) {
    const llvm::MemoryBuffer *buffer = getBufferForFile(file);
    if (!buffer || !line || isBytecode(*buffer))
      return "";
    llvm::StringRef rest = buffer->getBuffer();
    for (unsigned i = 1; i < line && !rest.empty(); ++i)
      rest = rest.split('\n').second;
    return rest.split('\n').first.rtrim('\r').str();
  }

  Session &session;
};

void Session::error(const llvm::Twine &message) {
  Message recorded;
  recorded.text = message.str();
  stream << "error: " << recorded.text << "\n";
  messages.push_back(std::move(recorded));
}

void Session::error(llvm::StringRef file, size_t offset, llvm::StringRef qir, const llvm::Twine &message) {
  llvm::StringRef before = qir.take_front(offset);
  Message recorded;
  recorded.file = file.str();
  recorded.line = before.count('\n') + 1;
  recorded.column = before.size() - (before.rfind('\n') + 1) + 1;
  recorded.text = message.str();
  stream << file << ":" << recorded.line << ":" << recorded.column << ": error: " << recorded.text << "\n";
  messages.push_back(std::move(recorded));
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

Session::Session() : context(makeRegistry(), MLIRContext::Threading::DISABLED), stream(diagnostics) {
  context.printOpOnDiagnostic(false);
}

Session::~Session() = default;

bool Session::refuseVersion(llvm::StringRef name, size_t offset, llvm::StringRef qir, const llvm::Twine &version) {
  error(name, offset, qir,
        "written for QIR version " + version + ", this release reads up to version " + llvm::Twine(qirVersion));
  return false;
}

/// Looks at the text before it is parsed: a newer version may hold what this one cannot parse.
bool Session::checkVersion(llvm::StringRef qir, llvm::StringRef name) {
  for (size_t at = qir.find(versionAttribute); at != llvm::StringRef::npos; at = qir.find(versionAttribute, at + 1)) {
    llvm::StringRef line = qir.take_front(at).rsplit('\n').second;
    llvm::StringRef rest = qir.substr(at).split(versionAttribute).second.ltrim();
    unsigned version = 0;
    if (!line.contains("//") && rest.consume_front("=") &&
        !rest.ltrim().take_while(llvm::isDigit).getAsInteger(10, version) && version > qirVersion)
      return refuseVersion(name, at, qir, llvm::Twine(version));
  }
  return true;
}

/// Refuses what the parser would not survive or explain: other files than QIR, and nesting so deep that its recursion
/// would run out of stack.
bool Session::checkText(llvm::StringRef qir, llvm::StringRef name) {
  constexpr llvm::StringRef bundleMagic = "\x10\xFF\x10\xAD";
  constexpr unsigned maxNesting = 256;
  if (qir.starts_with(bundleMagic)) {
    error(name, 0, qir, "this is a compiled bundle, expected QIR; qdc-run runs bundles");
    return false;
  }
  if (!qir.empty() && bundleMagic.starts_with(qir)) {
    error(name, 0, qir,
          "these " + llvm::Twine(qir.size()) + " bytes are the beginning of a compiled bundle, expected QIR");
    return false;
  }
  if (qir.starts_with("\x7F" "ELF")) {
    error(name, 0, qir, "this is an ELF file, as code objects (hsaco) and cubins are, expected QIR; devices load "
                        "bundles, as --emit=qdb makes them");
    return false;
  }
  if (size_t zero = qir.find('\0'); zero != llvm::StringRef::npos) {
    error(name, zero, qir, "expected QIR as text or bytecode, found a zero byte at " + llvm::Twine(zero));
    return false;
  }
  unsigned nesting = 0;
  for (size_t i = 0; i < qir.size(); ++i) {
    char c = qir[i];
    if (qir.substr(i).starts_with("//")) {
      i = std::min(qir.find('\n', i), qir.size()) - 1;
    } else if (c == '"') {
      for (++i; i < qir.size() && qir[i] != '"' && qir[i] != '\n'; ++i)
        i += qir[i] == '\\';
    } else if (llvm::StringRef("([{<").contains(c)) {
      // MLIR's parser does not survive other elements.
      StringRef before = qir.take_front(i).rtrim(), element = qir.substr(i + 1).ltrim();
      bool isNumber = llvm::StringRef("ifb").contains(element.take_front(1)) && !element.starts_with("index");
      if (c == '<' && before.ends_with("array") && !isNumber) {
        error(name, i, qir, "expected an array of iN or fN elements");
        return false;
      }
      if (++nesting > maxNesting) {
        error(name, i, qir, "nested more than " + llvm::Twine(maxNesting) + " levels deep");
        return false;
      }
    } else if (llvm::StringRef(")]}>").contains(c) && !(c == '>' && i && qir[i - 1] == '-')) {
      nesting -= nesting > 0;
    }
  }
  return true;
}

ModuleOp Session::parse(llvm::StringRef qir, llvm::StringRef name) {
  if (beginsAsBytecode(qir)) {
    llvm::Expected<llvm::StringRef> bytecode = openBytecode(qir);
    if (!bytecode) {
      error(name, 0, qir, llvm::toString(bytecode.takeError()));
      return {};
    }
    qir = *bytecode;
  } else if (!checkText(qir, name) || !checkVersion(qir, name)) {
    return {};
  }
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(qir, name), llvm::SMLoc());
  handler = std::make_unique<Handler>(*this);
  module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
    return {};
  auto version = (*module)->getAttrOfType<IntegerAttr>(versionAttribute);
  if (version && version.getValue().ugt(qirVersion)) {
    refuseVersion(name, 0, "", llvm::toString(version.getValue(), 10, /*Signed=*/false));
    return {};
  }
  // It is the file's; a module has the version of this library.
  (*module)->removeAttr(versionAttribute);
  return *module;
}

} // namespace qd
