// The compiler library as the stand-in meets it. The stand-in also takes its place: where QDC_COMPILER_LIBRARY names
// the stand-in, it hands the runtime's calls on and keeps the bundles that come back, with their QIR.
#ifndef QD_TEST_HIP_COMPILER_H
#define QD_TEST_HIP_COMPILER_H

#include "compiler/qdc.h"

namespace hipdouble {

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
};
/// Of the library that was built with the stand-in. Ends the process where it cannot be opened.
const Compiler &compiler();

} // namespace hipdouble

#endif // QD_TEST_HIP_COMPILER_H
