// The compiler library, met only through its C interface and opened when first needed: a program that ships
// bundles runs without it.
#ifndef QD_RUNTIME_COMPILER_H
#define QD_RUNTIME_COMPILER_H

#include "compiler/qdc.h"
#include "runtime/Device.h"

#include <vector>

namespace qd::rt {

struct Compiler {
  decltype(&qdcApiVersion) apiVersion;
  decltype(&qdcInitCompileOptionsSized) initCompileOptions;
  decltype(&qdcCompile) compile;
  decltype(&qdcResultOk) resultOk;
  decltype(&qdcResultData) resultData;
  decltype(&qdcResultDiagnostics) resultDiagnostics;
  decltype(&qdcResultFree) resultFree;
  decltype(&qdcInitHostOptionsSized) initHostOptions;
  decltype(&qdcHostLoad) hostLoad;
  decltype(&qdcHostInterface) hostInterface;
  decltype(&qdcHostLaunch) hostLaunch;
  decltype(&qdcHostUnload) hostUnload;
  decltype(&qdcFreeString) freeString;
  /// The file it was loaded from.
  std::string path;

  /// Opens the library once a process: the file that QDC_COMPILER_LIBRARY names, else libqdcompiler.so beside
  /// this code or the executable, in ../lib of either, or on the system's search path.
  static Expected<const Compiler *> get();

  /// Compiles QIR text or bytecode to a bundle for `targets` ("nvptx:sm_90"), as a device's options say but for the
  /// subgroup size.
  Expected<std::vector<uint8_t>> compileToBundle(const std::vector<uint8_t> &qir, const std::string &name,
                                                 const std::string &targets, unsigned subgroupSize,
                                                 const DeviceOptions &with, std::string &warnings) const;
};

} // namespace qd::rt

#endif // QD_RUNTIME_COMPILER_H
