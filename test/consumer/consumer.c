/* Compiles a kernel to PTX and runs it on the interpreter, through the C interface alone. */
#include "compiler/qdc.h"

#include <stdio.h>
#include <string.h>

static const char *kernel =
    "qd.kernel @triple(%x: !qd.buffer<i32>) block(4) {\n"
    "  %three = arith.constant 3 : i32\n"
    "  %i = qd.global_thread_id x : i32\n"
    "  %v = qd.load %x[%i] : !qd.buffer<i32>\n"
    "  %w = arith.muli %v, %three : i32\n"
    "  qd.store %w, %x[%i] : !qd.buffer<i32>\n"
    "  qd.return\n"
    "}\n";

static int compile(void) {
  qdcCompileOptions options;
  qdcResult result;
  size_t size;
  int ok;
  qdcInitCompileOptions(&options);
  options.targets = "nvptx:sm_80";
  options.emit = "ptx";
  result = qdcCompile(kernel, strlen(kernel), "triple.qir", &options);
  ok = qdcResultOk(result) && strstr(qdcResultData(result, &size), ".entry triple");
  printf("%s", qdcResultDiagnostics(result));
  qdcResultFree(result);
  return ok;
}

static int run(void) {
  qdcHostOptions options;
  qdcHostModule module;
  char *diagnostics = NULL;
  int32_t x[4] = {1, 2, 3, 4};
  qdcHostArg arg = {QDC_ARG_BUFFER, x, 4, 0, {4, 0, 0}};
  uint32_t grid[3] = {1, 1, 1};
  int failed;
  qdcInitHostOptions(&options);
  options.device = "interp";
  module = qdcHostLoad(kernel, strlen(kernel), "triple.qir", &options, &diagnostics);
  failed = !module || qdcHostLaunch(module, "triple", grid, &arg, 1, &diagnostics);
  if (diagnostics)
    printf("%s\n", diagnostics);
  qdcFreeString(diagnostics);
  if (module)
    qdcHostUnload(module);
  printf("triple: %d %d %d %d\n", (int)x[0], (int)x[1], (int)x[2], (int)x[3]);
  return !failed;
}

int main(void) { return qdcApiVersion() == QDC_API_VERSION && compile() && run() ? 0 : 1; }
