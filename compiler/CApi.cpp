//===- CApi.cpp - the C interface over the C++ one ------------------------------------------------===//

#include "compiler/Compiler.h"
#include "compiler/HostModule.h"
#include "compiler/ResultCache.h"
#include "compiler/Worker.h"
#include "compiler/qdc.h"

#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <cstddef>
#include <cstring>

using namespace llvm;

static char *copyString(StringRef text) {
  auto *copy = static_cast<char *>(malloc(text.size() + 1));
  memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  return copy;
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

/// The smallest structure that was ever published, and what any newer one is bounded by.
template <typename Options>
static bool readOptions(const Options *given, size_t oldest, Options &known) {
  constexpr size_t most = 4096;
  if (!given || given->structSize < oldest || given->structSize > most)
    return false;
  memcpy(&known, given, std::min<size_t>(given->structSize, sizeof known));
  // Whoever sets what this library does not know expects an effect.
  const auto *bytes = reinterpret_cast<const char *>(given);
  return std::all_of(bytes + std::min<size_t>(given->structSize, sizeof known), bytes + given->structSize,
                     [](char byte) { return byte == 0; });
}

/// Fills in as much of the defaults as the caller has room for.
template <typename Options>
static void writeOptions(Options defaults, Options *options, uint32_t structSize) {
  memset(static_cast<void *>(options), 0, structSize);
  defaults.structSize = structSize;
  memcpy(static_cast<void *>(options), &defaults, std::min<size_t>(structSize, sizeof defaults));
}

constexpr size_t oldestCompileOptions = offsetof(qdcCompileOptions, divergent);
constexpr size_t oldestHostOptions = offsetof(qdcHostOptions, bind);

/// "error: TEXT" as a result.
static qd::CompileResult makeFailure(const std::string &text) {
  qd::CompileResult result;
  result.messages.emplace_back();
  result.messages.back().text = text;
  result.diagnostics = std::string("error: ") + text + "\n";
  return result;
}

static qd::CompileResult makeNullFailure(size_t size) {
  return makeFailure("a program of " + std::to_string(size) + " bytes at a null pointer");
}

struct qdcResult_ {
  explicit qdcResult_(qd::CompileResult compiled) : result(std::move(compiled)) {
    for (const qd::Message &message : result.messages) {
      diagnostics.push_back(convert(message));
      notes.emplace_back();
      for (const qd::Message &note : message.notes)
        notes.back().push_back(convert(note));
    }
    for (const qd::Variant &variant : result.variants)
      variants.push_back({variant.target.c_str(), variant.kind.c_str(), result.data.data() + variant.offset,
                          variant.size, variant.interface.c_str(), variant.statistics.c_str()});
  }
  qdcResult_(const qdcResult_ &) = delete;

  static qdcDiagnostic convert(const qd::Message &message) {
    return {uint32_t(message.severity), message.line, message.column, uint32_t(message.notes.size()),
            message.file.c_str(), message.text.c_str(), message.excerpt.c_str()};
  }

  const qd::CompileResult result;
  std::vector<qdcDiagnostic> diagnostics;
  std::vector<std::vector<qdcDiagnostic>> notes;
  std::vector<qdcVariant> variants;
};

uint32_t qdcApiVersion(void) { return QDC_API_VERSION; }

const char *qdcVersionText(void) {
  static const std::string text = qd::getVersionText();
  return text.c_str();
}

char *qdcDescribeTargets(void) { return copyString(qd::describeTargets()); }

void qdcInitCompileOptionsSized(qdcCompileOptions *options, uint32_t structSize) {
  qdcCompileOptions defaults = {};
  defaults.emit = "qdb";
  defaults.optLevel = 2;
  writeOptions(defaults, options, structSize);
}

void(qdcInitCompileOptions)(qdcCompileOptions *options) { qdcInitCompileOptionsSized(options, oldestCompileOptions); }

static qd::CompileOptions convert(const qdcCompileOptions &options) {
  qd::CompileOptions converted;
  auto set = [](std::string &into, const char *text) {
    if (text)
      into = text;
  };
  for (StringRef target : split(options.targets ? options.targets : "", ','))
    if (!target.empty())
      converted.targets.push_back(target.str());
  converted.emit = "qdb";
  set(converted.emit, options.emit);
  converted.subgroupSize = options.subgroupSize;
  converted.optLevel = options.optLevel;
  converted.stripQir = options.stripQir;
  set(converted.blocks, options.blocks);
  set(converted.divergent, options.divergent);
  set(converted.remarks, options.remarks);
  converted.statistics = options.statistics;
  converted.cache = qd::CachePolicy(options.cache);
  set(converted.cacheFolder, options.cacheFolder);
  converted.cacheBytes = options.cacheBytes;
  set(converted.bind, options.bind);
  converted.isolate = options.isolate;
  converted.timeLimit = options.timeLimit;
  converted.memoryLimit = options.memoryLimit;
  converted.debug = options.debug;
  return converted;
}

qdcResult qdcCompile(const void *qir, size_t size, const char *name, const qdcCompileOptions *options) {
  qdcCompileOptions known = {};
  if (!readOptions(options, oldestCompileOptions, known))
    return new qdcResult_(makeFailure("options were not set up by qdcInitCompileOptions"));
  if (size && !qir)
    return new qdcResult_(makeNullFailure(size));
  return new qdcResult_(qd::compile({static_cast<const char *>(qir), size}, name ? name : "<input>", convert(known)));
}

void qdcResultFree(qdcResult result) { delete result; }

int qdcResultOk(qdcResult result) { return result->result.ok; }

int qdcResultIsCached(qdcResult result) { return result->result.isCached; }

const void *qdcResultData(qdcResult result, size_t *size) {
  *size = result->result.data.size();
  return result->result.data.data();
}

const char *qdcResultDiagnostics(qdcResult result) { return result->result.diagnostics.c_str(); }

template <typename T>
static const T *at(const std::vector<T> &values, size_t index) {
  return index < values.size() ? &values[index] : nullptr;
}

size_t qdcResultNumDiagnostics(qdcResult result) { return result->diagnostics.size(); }

const qdcDiagnostic *qdcResultDiagnostic(qdcResult result, size_t index) { return at(result->diagnostics, index); }

const qdcDiagnostic *qdcResultNote(qdcResult result, size_t diagnostic, size_t index) {
  const std::vector<qdcDiagnostic> *notes = at(result->notes, diagnostic);
  return notes ? at(*notes, index) : nullptr;
}

size_t qdcResultNumVariants(qdcResult result) { return result->variants.size(); }

const qdcVariant *qdcResultVariant(qdcResult result, size_t index) { return at(result->variants, index); }

const qdcVariant *qdcResultFindVariant(qdcResult result, const char *target) {
  if (!target)
    return nullptr;
  for (const qdcVariant &variant : result->variants) {
    StringRef rest(variant.target);
    if (rest.consume_front(target) && (rest.empty() || rest.front() == ':' || rest.front() == '@'))
      return &variant;
  }
  return nullptr;
}

char *qdcDescribeCache(const qdcCompileOptions *options) {
  qdcCompileOptions known = {};
  if (options && !readOptions(options, oldestCompileOptions, known))
    return nullptr;
  return copyString(qd::describeCache(convert(known)));
}

//===----------------------------------------------------------------------===//
// Running on this machine
//===----------------------------------------------------------------------===//

struct qdcHostModule_ : qd::HostModule {};

void qdcInitHostOptionsSized(qdcHostOptions *options, uint32_t structSize) {
  qdcHostOptions defaults = {};
  defaults.optLevel = 2;
  writeOptions(defaults, options, structSize);
}

void(qdcInitHostOptions)(qdcHostOptions *options) { qdcInitHostOptionsSized(options, oldestHostOptions); }

static void giveDiagnostics(StringRef text, char **diagnostics) {
  if (diagnostics)
    *diagnostics = text.empty() ? nullptr : copyString(text);
}

static qd::HostRequest convert(const qdcHostOptions &options) {
  auto read = [](const char *text) { return std::string(text ? text : ""); };
  qd::HostRequest request;
  request.device = read(options.device);
  request.checks = read(options.checks);
  request.options.subgroupSize = options.subgroupSize;
  request.options.optLevel = options.optLevel;
  request.options.blocks = read(options.blocks);
  request.options.bind = read(options.bind);
  request.options.cache = qd::CachePolicy(options.cache);
  request.options.cacheFolder = read(options.cacheFolder);
  request.options.cacheBytes = options.cacheBytes;
  request.options.isolate = options.isolate;
  request.options.timeLimit = options.timeLimit;
  request.options.memoryLimit = options.memoryLimit;
  return request;
}

/// Makes the module, after another process has where that is asked for; what there is to say is in `said`.
static bool load(qdcHostModule_ &host, StringRef qir, StringRef name, const qdcHostOptions &options,
                 qd::CompileResult &said) {
  qd::HostRequest request = convert(options);
  qd::HostOptions hostOptions;
  hostOptions.threads = options.threads;
  hostOptions.launchTimeLimit = options.launchTimeLimit;
  if (options.interrupt)
    hostOptions.isInterrupted = [call = options.interrupt, context = options.interruptContext] {
      return call(context) != 0;
    };
  if (options.isolate || options.timeLimit || options.memoryLimit) {
    said = qd::prepareInWorker(qir, name, request);
    if (!said.ok)
      return false;
    hostOptions.store = qd::readHostCode(said.data);
    said.data.clear();
  } else {
    hostOptions.store = qd::getHostStore(request);
  }
  said.ok = qd::loadHostModule(host, qir, name, request, hostOptions);
  said.diagnostics = host.session.getDiagnostics();
  said.messages = host.session.getMessages();
  return said.ok;
}

qdcHostModule qdcHostCompile(const void *qir, size_t size, const char *name, const qdcHostOptions *options,
                             qdcResult *result) {
  qdcHostOptions known = {};
  if (!readOptions(options, oldestHostOptions, known)) {
    *result = new qdcResult_(makeFailure("options were not set up by qdcInitHostOptions"));
    return nullptr;
  }
  if (size && !qir) {
    *result = new qdcResult_(makeNullFailure(size));
    return nullptr;
  }
  auto host = std::make_unique<qdcHostModule_>();
  qd::CompileResult said;
  bool ok = load(*host, StringRef(static_cast<const char *>(qir), size), name ? name : "<input>", known, said);
  *result = new qdcResult_(std::move(said));
  return ok ? host.release() : nullptr;
}

qdcHostModule qdcHostLoad(const void *qir, size_t size, const char *name, const qdcHostOptions *options,
                          char **diagnostics) {
  qdcResult result;
  qdcHostModule module = qdcHostCompile(qir, size, name, options, &result);
  giveDiagnostics(result->result.diagnostics, diagnostics);
  qdcResultFree(result);
  return module;
}

const char *qdcHostInterface(qdcHostModule module) { return module->interface.c_str(); }

int qdcHostLaunch(qdcHostModule module, const char *kernel, const uint32_t grid[3], const qdcHostArg *args,
                  size_t numArgs, char **diagnostics) {
  if (!kernel || !grid || (numArgs && !args)) {
    giveDiagnostics(!kernel ? "the kernel's name is null" : !grid ? "the grid is null" : "the arguments are null",
                    diagnostics);
    return 1;
  }
  SmallVector<qd::HostArg> converted;
  for (const qdcHostArg &arg : ArrayRef(args, numArgs))
    converted.push_back({arg.kind == QDC_ARG_BUFFER, arg.data, arg.count, arg.bits,
                         {arg.extents[0], arg.extents[1], arg.extents[2]}});
  Error error = module->program->launch(kernel, {grid[0], grid[1], grid[2]}, converted);
  bool failed = bool(error);
  giveDiagnostics(failed ? toString(std::move(error)) : "", diagnostics);
  return failed;
}

void qdcHostUnload(qdcHostModule module) { delete module; }

void qdcFreeString(char *string) { free(string); }
