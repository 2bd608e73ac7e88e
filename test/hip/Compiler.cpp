// The compiler library's functions, handed on.
#include "Compiler.h"
#include "Double.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace hipdouble {

const Compiler &compiler() {
  static const Compiler loaded = [] {
    void *library = dlopen(COMPILER_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
      std::fprintf(stderr, "stand-in for HIP: %s\n", dlerror());
      std::exit(98);
    }
    Compiler made;
    auto get = [&](auto &function, const char *name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    get(made.apiVersion, "qdcApiVersion");
    get(made.initCompileOptions, "qdcInitCompileOptionsSized");
    get(made.compile, "qdcCompile");
    get(made.resultOk, "qdcResultOk");
    get(made.resultData, "qdcResultData");
    get(made.resultDiagnostics, "qdcResultDiagnostics");
    get(made.resultFree, "qdcResultFree");
    get(made.initHostOptions, "qdcInitHostOptionsSized");
    get(made.hostLoad, "qdcHostLoad");
    get(made.hostInterface, "qdcHostInterface");
    get(made.hostLaunch, "qdcHostLaunch");
    get(made.hostUnload, "qdcHostUnload");
    get(made.freeString, "qdcFreeString");
    return made;
  }();
  return loaded;
}

} // namespace hipdouble

using hipdouble::compiler;

uint32_t qdcApiVersion(void) { return compiler().apiVersion(); }
void qdcInitCompileOptionsSized(qdcCompileOptions *options, uint32_t structSize) {
  compiler().initCompileOptions(options, structSize);
}
qdcResult qdcCompile(const void *qir, size_t size, const char *name, const qdcCompileOptions *options) {
  qdcCompileOptions withQir = {};
  std::memcpy(&withQir, options, options->structSize);
  bool isBundle = !options->emit || !std::strcmp(options->emit, "qdb");
  if (isBundle)
    withQir.stripQir = 0;
  qdcResult result = compiler().compile(qir, size, name, &withQir);
  size_t bytes = 0;
  const void *data = compiler().resultData(result, &bytes);
  if (isBundle && compiler().resultOk(result)) {
    std::lock_guard<std::mutex> lock(hipdouble::machine().lock);
    hipdouble::addBundle(data, bytes, options->optLevel);
  }
  return result;
}
int qdcResultOk(qdcResult result) { return compiler().resultOk(result); }
const void *qdcResultData(qdcResult result, size_t *size) { return compiler().resultData(result, size); }
const char *qdcResultDiagnostics(qdcResult result) { return compiler().resultDiagnostics(result); }
void qdcResultFree(qdcResult result) { compiler().resultFree(result); }
void qdcInitHostOptionsSized(qdcHostOptions *options, uint32_t structSize) {
  compiler().initHostOptions(options, structSize);
}
qdcHostModule qdcHostLoad(const void *qir, size_t size, const char *name, const qdcHostOptions *options,
                          char **diagnostics) {
  return compiler().hostLoad(qir, size, name, options, diagnostics);
}
const char *qdcHostInterface(qdcHostModule module) { return compiler().hostInterface(module); }
int qdcHostLaunch(qdcHostModule module, const char *kernel, const uint32_t grid[3], const qdcHostArg *args,
                  size_t numArgs, char **diagnostics) {
  return compiler().hostLaunch(module, kernel, grid, args, numArgs, diagnostics);
}
void qdcHostUnload(qdcHostModule module) { compiler().hostUnload(module); }
void qdcFreeString(char *string) { compiler().freeString(string); }
