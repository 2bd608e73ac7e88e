/* qdc.h: the C interface of libqdcompiler.
 *
 * Every function is thread-safe; objects must not be used by two threads at the same time. Errors are
 * values: a call that fails returns a non-zero code or a null object and hands the text of its
 * diagnostics back. Strings are UTF-8 and end in NUL. No function ends the process or throws.
 */
#ifndef QDC_H
#define QDC_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define QDC_API __attribute__((visibility("default")))
#else
#define QDC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface; raised by one on any incompatible change. */
#define QDC_API_VERSION 2
QDC_API uint32_t qdcApiVersion(void);

/* ---- compiling ---------------------------------------------------------------------------------- */

typedef struct qdcResult_ *qdcResult;

typedef struct qdcCompileOptions {
  uint32_t structSize;     /* sizeof(qdcCompileOptions), set by the caller */
  const char *targets;     /* e.g. "nvptx:sm_80,amdgcn:gfx942,spirv"; see `qdc --help` */
  const char *emit;        /* as `qdc --emit=`: "qdb", "ptx", "hsaco", ...; null for "qdb" */
  uint32_t subgroupSize;   /* lanes; 0 for each target's default */
  uint32_t optLevel;       /* 0..3 */
  uint32_t stripQir;       /* non-zero leaves the QIR out of a bundle */
  const char *blocks;      /* block sizes of resizable kernels, "sum=128,scan=32x8"; null for the kernels' own */
} qdcCompileOptions;

/* Fills in the defaults: no targets, "qdb", default subgroup, level 2. */
QDC_API void qdcInitCompileOptions(qdcCompileOptions *options);

/* Compiles QIR text or bytecode. `name` stands for the input in diagnostics (a file name, or null).
 * Never returns null; ask qdcResultOk. Free the result with qdcResultFree. */
QDC_API qdcResult qdcCompile(const void *qir, size_t size, const char *name,
                             const qdcCompileOptions *options);
QDC_API int qdcResultOk(qdcResult result);
/* The artifact's bytes; owned by the result. */
QDC_API const void *qdcResultData(qdcResult result, size_t *size);
/* Errors, warnings and remarks, as the command line prints them; "" when there are none. */
QDC_API const char *qdcResultDiagnostics(qdcResult result);
QDC_API void qdcResultFree(qdcResult result);

/* ---- running on this machine: cpu, interp and sim ------------------------------------------------- */

typedef struct qdcHostModule_ *qdcHostModule;

typedef struct qdcHostOptions {
  uint32_t structSize;    /* sizeof(qdcHostOptions) */
  const char *device;     /* "cpu", "interp", "sim:sm_80", "sim:gfx942", ... */
  uint32_t subgroupSize;  /* lanes; 0 for the device's default */
  uint32_t optLevel;      /* 0..3; ignored by interp */
  uint32_t threads;       /* threads of the cpu device; 0 for one a processor */
  const char *checks;     /* interp: comma-separated checks, "all" or null for the default set */
  const char *blocks;     /* as in qdcCompileOptions */
} qdcHostOptions;

QDC_API void qdcInitHostOptions(qdcHostOptions *options);

enum { QDC_ARG_SCALAR = 0, QDC_ARG_BUFFER = 1 };

typedef struct qdcHostArg {
  uint32_t kind;    /* QDC_ARG_* */
  void *data;       /* buffer: its first element, host memory, aligned to its element */
  int64_t count;    /* buffer: its elements */
  uint64_t bits;    /* scalar: its bits, zero-extended */
  int64_t extents[3]; /* buffer of 2 or 3 dimensions: its elements by dimension, rows first */
} qdcHostArg;

/* Compiles QIR text or bytecode for a host device. Null on failure, with *diagnostics set. Diagnostics are
 * freed with qdcFreeString; null when there are none. */
QDC_API qdcHostModule qdcHostLoad(const void *qir, size_t size, const char *name,
                                  const qdcHostOptions *options, char **diagnostics);
/* The module's interface, the same JSON that a bundle carries. Owned by the module. */
QDC_API const char *qdcHostInterface(qdcHostModule module);
/* Runs a kernel to its end. `args` in the order of the interface, as many as it lists. Non-zero on failure. */
QDC_API int qdcHostLaunch(qdcHostModule module, const char *kernel, const uint32_t grid[3],
                          const qdcHostArg *args, size_t numArgs, char **diagnostics);
QDC_API void qdcHostUnload(qdcHostModule module);
QDC_API void qdcFreeString(char *string);

#ifdef __cplusplus
}
#endif
#endif
