// A stand-in for the compiler library. Programs that begin with "bad" do not compile; all others hold the
// kernel scale(x: buffer<f32> readonly, y: buffer<f32>, a: f32), which also tries to write x.
#include "compiler/qdc.h"

#include <cstdlib>
#include <cstring>
#include <string>

struct qdcHostModule_ {
  std::string device;
};
struct qdcResult_ {
  std::string diagnostics;
};

namespace {

const char *interfaceJson =
    R"({"version":1,"kernels":[{"name":"scale","block":[4,1,1],"subgroup_size":4,"shared_bytes":0,"args":[
      {"name":"x","kind":"buffer","type":"f32","access":"readonly","size":false},
      {"name":"y","kind":"buffer","type":"f32","access":"readwrite","size":true},
      {"name":"a","kind":"scalar","type":"f32"}]}]})";

bool isBad(const void *qir, size_t size) { return size >= 3 && std::memcmp(qir, "bad", 3) == 0; }

char *copyString(const std::string &text) { return strdup(text.c_str()); }

} // namespace

uint32_t qdcApiVersion(void) { return QDC_API_VERSION; }

void qdcInitCompileOptionsSized(qdcCompileOptions *options, uint32_t) { options->optLevel = 2; }

qdcResult qdcCompile(const void *, size_t, const char *name, const qdcCompileOptions *options) {
  return new qdcResult_{std::string(name) + ":1:1: error: nothing compiles for " + options->targets + "\n"};
}
int qdcResultOk(qdcResult) { return 0; }
const void *qdcResultData(qdcResult, size_t *size) {
  *size = 0;
  return nullptr;
}
const char *qdcResultDiagnostics(qdcResult result) { return result->diagnostics.c_str(); }
void qdcResultFree(qdcResult result) { delete result; }

void qdcInitHostOptionsSized(qdcHostOptions *options, uint32_t) { options->optLevel = 2; }

qdcHostModule qdcHostLoad(const void *qir, size_t size, const char *name, const qdcHostOptions *options,
                          char **diagnostics) {
  if (isBad(qir, size)) {
    *diagnostics = copyString(std::string(name) + ":1:1: error: bad program");
    return nullptr;
  }
  if (std::string(options->device) == "sim:sm_1") {
    *diagnostics = copyString("error: unknown chip 'sm_1'\n");
    return nullptr;
  }
  if (options->bind) {
    *diagnostics = copyString(std::string("error: nothing binds ") + options->bind);
    return nullptr;
  }
  return new qdcHostModule_{options->device};
}
const char *qdcHostInterface(qdcHostModule) { return interfaceJson; }

int qdcHostLaunch(qdcHostModule, const char *kernel, const uint32_t grid[3], const qdcHostArg *args,
                  size_t numArgs, char **diagnostics) {
  if (std::strcmp(kernel, "scale") != 0 || numArgs != 3 || grid[1] != 1) {
    *diagnostics = copyString("a launch that the interface does not allow");
    return 1;
  }
  auto *x = static_cast<float *>(args[0].data), *y = static_cast<float *>(args[1].data);
  uint32_t bits = static_cast<uint32_t>(args[2].bits);
  float a;
  std::memcpy(&a, &bits, sizeof a);
  for (int64_t i = 0; i < args[1].count; ++i) {
    y[i] = x[i] * a;
    x[i] = -1;
  }
  return 0;
}
void qdcHostUnload(qdcHostModule module) { delete module; }
void qdcFreeString(char *string) { std::free(string); }
