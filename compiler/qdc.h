/* qdc.h: the C interface of libqdcompiler.
 *
 * Threads. Every function may be called by many threads at once. An object (a result, a module) is used by one thread
 * at a time, except where a function says otherwise.
 *
 * Errors are values: a call that fails returns a null object, or a result that is not ok, or non-zero, and hands its
 * diagnostics back. No function throws or ends the process. Null where an object is expected is an error of the
 * caller, except for the functions that free.
 *
 * Strings are UTF-8 and end in NUL. What a function returns belongs to the object that it is asked of and lives as
 * long, unless its comment says that the caller frees it. Strings and bytes that a caller hands in are read during the
 * call and never kept.
 *
 * Versions. Structures that a caller fills in begin with `structSize`. They grow at their end alone: a library takes
 * those of older programs, and those of newer ones as long as all that it does not know is zero. Structures
 * that the library returns grow at their end too, and are only reached by pointer.
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

/* "qdc 0.1.0 (LLVM 22.1.8)". Never freed. */
QDC_API const char *qdcVersionText(void);

/* The table of targets, chips and subgroup sizes as `qdc --list-targets` prints it. Freed with qdcFreeString. */
QDC_API char *qdcDescribeTargets(void);

/* ---- compiling ---------------------------------------------------------------------------------- */

typedef struct qdcResult_ *qdcResult;

/* Where results are looked up before anything is compiled, and kept. QDC_CACHE=off in the environment overrides it. */
enum {
  QDC_CACHE_ENVIRONMENT = 0, /* QDC_CACHE_DISK if QDC_CACHE_DIR names a folder, else QDC_CACHE_OFF */
  QDC_CACHE_OFF = 1,
  QDC_CACHE_MEMORY = 2,      /* in the process, 64 MiB */
  QDC_CACHE_DISK = 3         /* in the process, and in a folder for all processes */
};

/* Fields that are null or 0 stand for the defaults, except optLevel. */
typedef struct qdcCompileOptions {
  uint32_t structSize;     /* bytes of this structure as the caller knows it; qdcInitCompileOptions sets it */
  const char *targets;     /* one or several, by commas: "nvptx:sm_80,amdgcn:gfx942,spirv"; see `qdc --help` */
  const char *emit;        /* as `qdc --emit=`: "qdb", "ptx", "hsaco", ...; null for "qdb" */
  uint32_t subgroupSize;   /* lanes, for targets that do not name them; 0 for each target's default */
  uint32_t optLevel;       /* 0 to 3 */
  uint32_t stripQir;       /* non-zero leaves the QIR out of a bundle */
  const char *blocks;      /* block sizes of resizable kernels in threads, "sum=128,scan=32x8"; null for the kernels'
                              own */
  const char *divergent;   /* collective ops in divergent control flow: "error", "warn" or "allow"; null for "error" */
  const char *remarks;     /* "expand" reports how ops are carried out; null for no remarks */
  uint32_t statistics;     /* non-zero counts instructions, for qdcVariant.statistics */
  uint32_t cache;          /* QDC_CACHE_* */
  const char *cacheFolder; /* for QDC_CACHE_DISK; null for QDC_CACHE_DIR, else qdc in $XDG_CACHE_HOME or ~/.cache */
  uint64_t cacheBytes;     /* that the folder's files may take; 0 for QDC_CACHE_SIZE, else 1 GiB */
  const char *bind;        /* scalar arguments that are constants, "n=1024,KERNEL.scale=0.5"; a name alone is of every
                              kernel that has it. Bound arguments leave the interface: a launch does not pass them */
  uint32_t isolate;        /* non-zero compiles in a child process (the program qdc): what would end this one is an
                              error */
  uint32_t timeLimit;      /* milliseconds by the clock that a compile may take; 0 for no limit. Implies isolate */
  uint32_t memoryLimit;    /* MiB of address space, beside what the child has, that it may take; 0 for no limit. Implies
                              isolate */
  uint32_t reserved;       /* 0 */
  uint32_t debug;          /* non-zero adds where in the source each instruction comes from, for debuggers and
                              profilers; the code stays the same */
} qdcCompileOptions;

/* Fills in the defaults: no targets, "qdb", default subgroup, level 2. `structSize` is the caller's sizeof. C and C++
 * write qdcInitCompileOptions(&options); that name as a function is for callers that look symbols up, and fills in what
 * the structure held up to `blocks`. */
QDC_API void qdcInitCompileOptionsSized(qdcCompileOptions *options, uint32_t structSize);
QDC_API void qdcInitCompileOptions(qdcCompileOptions *options);
#define qdcInitCompileOptions(options) qdcInitCompileOptionsSized(options, (uint32_t)sizeof(qdcCompileOptions))

/* Compiles `size` bytes of QIR text, or of bytecode that the output "bytecode" gave. `name` stands for the input in
 * diagnostics (a file name; null for "<input>"). Never returns null: the result says whether it is ok, and holds the
 * diagnostics either way. The caller frees it. The same input, options and library give the same bytes. */
QDC_API qdcResult qdcCompile(const void *qir, size_t size, const char *name,
                             const qdcCompileOptions *options);

/* Frees a result and all that was returned of it; null is ignored. */
QDC_API void qdcResultFree(qdcResult result);

/* The functions on results only read: threads may share a result. */

/* Non-zero where the compile succeeded. */
QDC_API int qdcResultOk(qdcResult result);

/* Non-zero where the result came out of a cache, or of another thread's compile. */
QDC_API int qdcResultIsCached(qdcResult result);

/* The artifact and its size in bytes; no bytes where the compile failed. */
QDC_API const void *qdcResultData(qdcResult result, size_t *size);

/* Errors, warnings and remarks as the command line prints them; "" when there are none. */
QDC_API const char *qdcResultDiagnostics(qdcResult result);

enum { QDC_SEVERITY_ERROR = 1, QDC_SEVERITY_WARNING = 2, QDC_SEVERITY_REMARK = 3, QDC_SEVERITY_NOTE = 4 };

/* One diagnostic. No string is null. */
typedef struct qdcDiagnostic {
  uint32_t severity;    /* QDC_SEVERITY_* */
  uint32_t line;        /* from 1; 0 where there is no place */
  uint32_t column;      /* from 1, in bytes; 0 where there is no place */
  uint32_t numNotes;    /* of qdcDiagnosticNote; notes have none themselves */
  const char *file;     /* the input's name, or what a location in the input names; "" where there is no place */
  const char *text;     /* one sentence, without "error:" in front */
  const char *excerpt;  /* the source's line; "" where it is not at hand */
} qdcDiagnostic;

/* The same diagnostics one by one, in the order in which they were found; null past the end. */
QDC_API size_t qdcResultNumDiagnostics(qdcResult result);
QDC_API const qdcDiagnostic *qdcResultDiagnostic(qdcResult result, size_t index);

/* The other places that a diagnostic of qdcResultDiagnostic is about; null past the end. */
QDC_API const qdcDiagnostic *qdcResultNote(qdcResult result, size_t diagnostic, size_t index);

/* One target's code in an artifact. No string is null. */
typedef struct qdcVariant {
  const char *target;      /* as targets are named in full: "nvptx:sm_90@32" */
  const char *kind;        /* what the code is, as in qdcCompileOptions.emit */
  const void *code;        /* a part of qdcResultData */
  size_t codeSize;         /* bytes */
  const char *interface_;  /* JSON: the kernels' arguments, block sizes and features, as a bundle carries it */
  const char *statistics;  /* JSON: as `qdc --emit=stats-json`; "" unless asked for, and for targets not counted */
} qdcVariant;

/* What the artifact consists of, in the order of the targets; null past the end. A target's own output is one variant,
 * a bundle one for each target and subgroup size; "qir", "bytecode", "stats" and "stats-json" have none. */
QDC_API size_t qdcResultNumVariants(qdcResult result);
QDC_API const qdcVariant *qdcResultVariant(qdcResult result, size_t index);

/* The first variant of `target`: "nvptx", "nvptx:sm_90" or "nvptx:sm_90@32"; null where there is none. */
QDC_API const qdcVariant *qdcResultFindVariant(qdcResult result, const char *target);

/* What `qdc --cache-stats` prints: the cache folder of the options (null for the defaults), its entries and bytes, and
 * how often it was of use. Null where the options are not set up. Freed with qdcFreeString. */
QDC_API char *qdcDescribeCache(const qdcCompileOptions *options);

/* ---- building kernels without text ---------------------------------------------------------------- */

/* Puts a module together op by op. Any op can be built: types and attributes are written as in QIR ("i32",
 * "!qd.buffer<f32>", "predicate = 2 : i64"; attributes may be null). Whether a module is right is what compiling it
 * says, at the places that qdcBuilderSetLocation gave. Calls in a wrong order, and operands that are no values, are
 * kept as an error, and the module does not compile. */
typedef struct qdcBuilder_ *qdcBuilder;

/* A value of the builder that made it; 0 is none. */
typedef uint32_t qdcValue;

QDC_API qdcBuilder qdcBuilderCreate(void); /* never null; the caller frees it */
QDC_API void qdcBuilderFree(qdcBuilder builder); /* null is ignored */

/* Where the ops that follow come from, in diagnostics; null for no place. */
QDC_API void qdcBuilderSetLocation(qdcBuilder builder, const char *file, uint32_t line, uint32_t column);

enum { QDC_ACCESS_READONLY = 1, QDC_ACCESS_WRITEONLY = 2, QDC_ACCESS_NOALIAS = 4 };

/* Opens a kernel of a block size in threads by `numDims` (1 to 3) dimensions. `names`, `types`, `access` (QDC_ACCESS_*
 * added up; null for 0) and `values`, which gets the arguments, have numArgs elements. `attributes` are further ones:
 * "resizable". qdcBuilderEndKernel returns from the kernel and closes it. */
QDC_API void qdcBuilderBeginKernel(qdcBuilder builder, const char *name, const char *const *names,
                                   const char *const *types, const uint32_t *access, size_t numArgs,
                                   const uint32_t *block, size_t numDims, const char *attributes,
                                   qdcValue *values);
QDC_API void qdcBuilderEndKernel(qdcBuilder builder);

/* An op without regions. `results` gets numResults values. */
QDC_API void qdcBuilderOp(qdcBuilder builder, const char *name, const qdcValue *operands, size_t numOperands,
                          const char *attributes, const char *const *resultTypes, size_t numResults,
                          qdcValue *results);

/* An op with regions: begin it, begin and end each region with its ops between, end it. Its results are values from
 * then on. `arguments` gets the region's arguments. */
QDC_API void qdcBuilderBeginOp(qdcBuilder builder, const char *name, const qdcValue *operands, size_t numOperands,
                               const char *attributes, const char *const *resultTypes, size_t numResults,
                               qdcValue *results);
QDC_API void qdcBuilderBeginRegion(qdcBuilder builder, const char *const *types, size_t numArgs,
                                   qdcValue *arguments);
QDC_API void qdcBuilderEndRegion(qdcBuilder builder);
QDC_API void qdcBuilderEndOp(qdcBuilder builder);

/* Constants; floats are rounded to the nearest that the type holds. */
QDC_API qdcValue qdcBuilderInteger(qdcBuilder builder, const char *type, int64_t value);
QDC_API qdcValue qdcBuilderFloat(qdcBuilder builder, const char *type, double value);

/* The module as QIR, for qdcCompile and qdcHostLoad; valid until the builder's next call. */
QDC_API const char *qdcBuilderFinish(qdcBuilder builder, size_t *size);

/* The first wrong call; "" for none. Valid as long as the builder. */
QDC_API const char *qdcBuilderError(qdcBuilder builder);

/* ---- running on this machine: cpu, interp and sim ------------------------------------------------- */

typedef struct qdcHostModule_ *qdcHostModule;

typedef struct qdcHostOptions {
  uint32_t structSize;    /* bytes of this structure as the caller knows it; qdcInitHostOptions sets it */
  const char *device;     /* "cpu", "interp", "sim:sm_80", "sim:gfx942", ... */
  uint32_t subgroupSize;  /* lanes; 0 for the device's default */
  uint32_t optLevel;      /* 0 to 3; ignored by interp */
  uint32_t threads;       /* threads of the cpu device; 0 for one a processor */
  const char *checks;     /* interp: comma-separated checks, "all" or null for the default set */
  const char *blocks;     /* as in qdcCompileOptions */
  const char *bind;       /* as in qdcCompileOptions */
  uint32_t cache;         /* QDC_CACHE_*, for the cpu device's machine code, which is kept on disk alone */
  const char *cacheFolder; /* as in qdcCompileOptions */
  uint64_t cacheBytes;    /* as in qdcCompileOptions */
  uint32_t isolate;       /* as in qdcCompileOptions: all that ends the process where a module is made is found in a
                             child process first, and the cpu device's machine code is made there */
  uint32_t timeLimit;     /* as in qdcCompileOptions */
  uint32_t memoryLimit;   /* as in qdcCompileOptions */
  uint32_t launchTimeLimit; /* milliseconds by the clock that a launch may take; 0 for no limit */
  /* Asked about twenty times a second by the thread that launches, while a kernel runs: non-zero ends the launch. Null
   * for never. It gets `interruptContext`, must not use the module, and must not return by a jump or an exception. A
   * launch that is ended, by this or its limit, fails and leaves its buffers in between, inside blocks as well. */
  int (*interrupt)(void *interruptContext);
  void *interruptContext; /* of `interrupt`; must be valid as long as the module */
} qdcHostOptions;

/* As qdcInitCompileOptions and its other form. */
QDC_API void qdcInitHostOptionsSized(qdcHostOptions *options, uint32_t structSize);
QDC_API void qdcInitHostOptions(qdcHostOptions *options);
#define qdcInitHostOptions(options) qdcInitHostOptionsSized(options, (uint32_t)sizeof(qdcHostOptions))

enum { QDC_ARG_SCALAR = 0, QDC_ARG_BUFFER = 1 };

typedef struct qdcHostArg {
  uint32_t kind;    /* QDC_ARG_* */
  void *data;       /* buffer: its first element, host memory, aligned to its element */
  int64_t count;    /* buffer: its elements */
  uint64_t bits;    /* scalar: its bits, zero-extended */
  int64_t extents[3]; /* buffer of 2 or 3 dimensions: its elements by dimension, rows first */
} qdcHostArg;

/* Compiles QIR text or bytecode for a host device. Null on failure. *diagnostics (if not null) gets a text that the
 * caller frees with qdcFreeString, or null where there is nothing to say. The caller unloads the module. */
QDC_API qdcHostModule qdcHostLoad(const void *qir, size_t size, const char *name,
                                  const qdcHostOptions *options, char **diagnostics);

/* The same, with the diagnostics as a result without data, which the caller frees: *result is never null. */
QDC_API qdcHostModule qdcHostCompile(const void *qir, size_t size, const char *name,
                                     const qdcHostOptions *options, qdcResult *result);

/* The module's interface, the same JSON that a bundle carries. */
QDC_API const char *qdcHostInterface(qdcHostModule module);

/* Runs a kernel to its end, in the calling thread and the device's own; threads may launch kernels of one module at
 * once. `grid` counts blocks by dimension. `args` are in the order of the interface, as many as it lists, and must fit
 * it: types and sizes are not checked. Buffers stay the caller's. Non-zero on failure, with a text in *diagnostics (if
 * that is not null) that the caller frees with qdcFreeString; *diagnostics is null otherwise. */
QDC_API int qdcHostLaunch(qdcHostModule module, const char *kernel, const uint32_t grid[3],
                          const qdcHostArg *args, size_t numArgs, char **diagnostics);

/* Frees a module when none of its launches is under way; null is ignored. */
QDC_API void qdcHostUnload(qdcHostModule module);

/* Frees a text that a function said the caller frees; null is ignored. */
QDC_API void qdcFreeString(char *string);

#ifdef __cplusplus
}
#endif
#endif
