// Loading the compiler library and calling it. Its diagnostics are handed on as they are: they carry source
// locations of their own.
#include "runtime/Compiler.h"
#include "runtime/Library.h"

#include <cstdlib>
#include <unistd.h>

namespace qd::rt {

namespace {

/// The name to link by, and the one that an installation without headers has.
constexpr const char *fileNames[] = {"libqdcompiler.so", "libqdcompiler.so.1"};
constexpr const char *pathVariable = "QDC_COMPILER_LIBRARY";

Expected<Compiler> load() {
  std::vector<std::string> names;
  if (const char *path = std::getenv(pathVariable); path && *path) {
    names.push_back(path);
  } else {
    for (const std::string &folder : siblingFolders())
      for (const char *fileName : fileNames)
        if (std::string file = folder + "/" + fileName; access(file.c_str(), F_OK) == 0)
          names.push_back(file);
    names.insert(names.end(), std::begin(fileNames), std::end(fileNames));
  }
  auto library = Library::open(names);
  if (!library)
    return fail("the compiler library cannot be opened (", library.message(), "); ", pathVariable,
                " can name its file");

  Compiler compiler;
  compiler.path = library->name();
  Error error;
  auto get = [&](auto &function, const char *symbol) {
    if (!error)
      error = library->get(function, symbol);
  };
  get(compiler.apiVersion, "qdcApiVersion");
  if (!error && compiler.apiVersion() != QDC_API_VERSION)
    return fail("the compiler library '", compiler.path, "' has interface version ", compiler.apiVersion(),
                ", this runtime expects ", QDC_API_VERSION);
  get(compiler.initCompileOptions, "qdcInitCompileOptionsSized");
  get(compiler.compile, "qdcCompile");
  get(compiler.resultOk, "qdcResultOk");
  get(compiler.resultData, "qdcResultData");
  get(compiler.resultDiagnostics, "qdcResultDiagnostics");
  get(compiler.resultFree, "qdcResultFree");
  get(compiler.initHostOptions, "qdcInitHostOptionsSized");
  get(compiler.hostLoad, "qdcHostLoad");
  get(compiler.hostInterface, "qdcHostInterface");
  get(compiler.hostLaunch, "qdcHostLaunch");
  get(compiler.hostUnload, "qdcHostUnload");
  get(compiler.freeString, "qdcFreeString");
  if (error)
    return error;
  return compiler;
}

} // namespace

Expected<const Compiler *> Compiler::get() {
  // Never destroyed: modules of the library may outlive every other static.
  static const auto *compiler = new Expected<Compiler>(load());
  if (!*compiler)
    return compiler->error();
  return &**compiler;
}

Expected<std::vector<uint8_t>> Compiler::compileToBundle(const std::vector<uint8_t> &qir,
                                                         const std::string &name, const std::string &targets,
                                                         unsigned subgroupSize, const DeviceOptions &with,
                                                         std::string &warnings) const {
  qdcCompileOptions options = {};
  initCompileOptions(&options, sizeof options);
  options.targets = targets.c_str();
  options.emit = "qdb";
  options.subgroupSize = subgroupSize;
  options.optLevel = with.optLevel;
  options.stripQir = 1;
  options.blocks = with.blocks.c_str();
  options.bind = with.bind.empty() ? nullptr : with.bind.c_str();
  options.isolate = with.isolate;
  options.timeLimit = with.compileTimeLimit;
  options.memoryLimit = with.compileMemoryLimit;
  options.debug = with.debug;
  qdcResult result = compile(qir.data(), qir.size(), name.c_str(), &options);
  if (!result)
    return fail("the compiler gave no result for '", name, "'");
  const char *diagnostics = resultDiagnostics(result);
  std::string said = diagnostics ? diagnostics : "";
  size_t size = 0;
  const auto *data = static_cast<const uint8_t *>(resultData(result, &size));
  bool ok = resultOk(result);
  std::vector<uint8_t> bytes;
  if (ok && data)
    bytes.assign(data, data + size);
  resultFree(result);
  if (!ok)
    return fail("'", name, "' does not compile for ", targets, said.empty() ? "" : ":\n", said);
  warnings += said;
  return bytes;
}

} // namespace qd::rt
