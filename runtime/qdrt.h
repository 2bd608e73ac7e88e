/* qdrt.h: the C interface of libqdruntime, which loads kernels and runs them on cpu, interp, sim, CUDA, HIP and
 * Vulkan devices. The library needs no LLVM; it opens drivers and the compiler library when they are first asked for.
 *
 * Errors are values: a function that can fail returns QDRT_OK (0) or another qdrtStatus, and qdrtErrorText then tells
 * what was wrong: lower case, with what was found and what was expected. What such a function would have returned
 * through a pointer is then null or 0. No function throws or ends the process. A handle that is null, freed, or of
 * another kind is found out and is such an error.
 *
 * Ownership. A handle is freed by the function that its type names; freeing null is allowed. An object that others were
 * made of or bound to (a device, a module, a buffer, a prepared launch) lives until these are freed too, so the order
 * of freeing does not matter; its handle ends at once. Strings and bytes that a caller hands in are read during the
 * call and never kept; what a function returns belongs to the object that it is asked of and lives as long.
 *
 * Threads. Every function may be called by many threads at once. An object is used by one thread at a time, and no
 * thread frees what another is using; threads may use different objects of one device at the same time.
 * After fork the child may use what the parent made of cpu, interp and sim devices. Using other devices of the parent
 * is an error there. New ones may be opened there as far as drivers allow it; Mesa's software device for Vulkan does,
 * but where the parent has one open too, the child ends by _exit: at exit, Mesa waits for threads that only the parent
 * has.
 *
 * Units: bytes, elements, threads or lanes where so named; time in seconds. Strings are UTF-8 and end in NUL.
 *
 * Versions. Structures that a caller fills in or has filled in begin with `structSize` and grow at their end alone: a
 * library takes those of older programs, and those of newer ones as long as all that it does not know is zero.
 */
#ifndef QDRT_H
#define QDRT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define QDRT_API __attribute__((visibility("default")))
#else
#define QDRT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface; raised by one on any incompatible change. */
#define QDRT_API_VERSION 1
QDRT_API uint32_t qdrtApiVersion(void);

typedef enum qdrtStatus {
  QDRT_OK = 0,
  QDRT_INVALID = 1, /* what the caller handed in: a handle, an object of another device, an argument, a size, options,
                       or a call that the object's state does not allow */
  QDRT_FAILED = 2   /* what the caller could not know: no such device, no memory, a program that does not compile, a
                       kernel that failed, and whatever a driver says */
} qdrtStatus;

/* What the calling thread's last call that failed had to say; "" before any failed. Valid until the next one fails. */
QDRT_API const char *qdrtErrorText(void);

/* ---- devices ------------------------------------------------------------------------------------ */

typedef struct qdrtDevice_ *qdrtDevice;
typedef struct qdrtDeviceList_ *qdrtDeviceList;

/* All that may be opened: host devices, then Vulkan, CUDA and HIP ones; also those whose driver or library is absent,
 * with the reason. Freed with qdrtDeviceListFree. */
QDRT_API qdrtStatus qdrtListDevices(qdrtDeviceList *list);
QDRT_API size_t qdrtDeviceListSize(qdrtDeviceList list);
/* "cuda:0", "cpu"; "sim:CHIP" stands for every simulated chip. Null past the end. */
QDRT_API const char *qdrtDeviceListName(qdrtDeviceList list, size_t index);
/* The device in a line, or why there is none. Null past the end. */
QDRT_API const char *qdrtDeviceListText(qdrtDeviceList list, size_t index);
/* Non-zero where the device can be opened. */
QDRT_API int qdrtDeviceListPresent(qdrtDeviceList list, size_t index);
QDRT_API void qdrtDeviceListFree(qdrtDeviceList list);

/* Fields that are null or 0 stand for the defaults, except optLevel. */
typedef struct qdrtDeviceOptions {
  uint32_t structSize;   /* bytes of this structure as the caller knows it; qdrtInitDeviceOptions sets it */
  uint32_t subgroupSize; /* lanes; 0 for the device's default. Opening fails where the device has no such subgroups */
  uint32_t optLevel;     /* 0 to 3, for programs that are compiled when they are loaded */
  uint32_t threads;      /* of the cpu device; 0 for one a processor */
  const char *checks;    /* of interp, by commas: as `qdc-run --check`; null for its default set */
  const char *blocks;    /* block sizes of resizable kernels in threads, "sum=128,scan=32x8"; null for the kernels'
                            own */
  const char *bind;      /* scalar arguments that are constants, "n=1024,KERNEL.scale=0.5"; a name alone is of every
                            kernel that has it. Bound arguments leave the interface: launches do not pass them */
  uint32_t launchTimeLimit; /* milliseconds by the clock that a launch may take on cpu, interp and sim; 0 for no
                               limit */
  uint32_t isolate;      /* non-zero makes code in a child process (the program qdc): what would end this one is an
                            error of qdrtModuleLoad. For cpu, interp and sim, and where the compiler is needed for
                            others */
  uint32_t compileTimeLimit;   /* milliseconds by the clock that making a module's code may take; 0 for no limit.
                                  Implies isolate */
  uint32_t compileMemoryLimit; /* MiB that it may take; 0 for no limit. Implies isolate */
  /* Asked about twenty times a second by the thread that launches, while a kernel runs on cpu, interp or sim: non-zero
   * ends the launch. Null for never. It gets `interruptContext`, uses nothing of the device, and returns. */
  int (*interrupt)(void *interruptContext);
  void *interruptContext; /* of `interrupt`; valid until the device and all that was made of it are freed */
  uint32_t debug;         /* non-zero has programs that are compiled for cuda, hip and vulkan say where in the source
                             each instruction comes from, for debuggers and profilers */
} qdrtDeviceOptions;
/* A launch that `launchTimeLimit` or `interrupt` ends is QDRT_FAILED and leaves its buffers in between, inside blocks
 * as well. Other devices end no launch: they do not ask `interrupt`, and opening them with a `launchTimeLimit` is
 * QDRT_INVALID. */

/* Fills in the defaults; `structSize` is the caller's sizeof. */
QDRT_API void qdrtInitDeviceOptionsSized(qdrtDeviceOptions *options, uint32_t structSize);
#define qdrtInitDeviceOptions(options) qdrtInitDeviceOptionsSized(options, (uint32_t)sizeof(qdrtDeviceOptions))

/* Opens a device. A name of no such form and options out of their bounds are QDRT_INVALID; what the machine, its
 * drivers and the compiler do not have is QDRT_FAILED: a device, a chip, a subgroup size, a check.
 * Names are "cpu", "interp", "sim:CHIP" ("sim:sm_90", "sim:gfx942"), "cuda", "hip" and "vulkan", the last three with
 * ":N" for other than the default device, and null or "best" for the first that is present of an NVIDIA GPU, an AMD
 * GPU, another GPU by Vulkan, cpu, Vulkan on a processor. `options` may be null. Freed with qdrtDeviceClose. A device
 * may be opened many times, and many devices at once.
 * On CUDA it shares the device's primary context with the process's other CUDA code. */
QDRT_API qdrtStatus qdrtDeviceOpen(const char *name, const qdrtDeviceOptions *options, qdrtDevice *device);
/* Ends the use of a device: what was made of it can still be freed and asked for what needs no device (sizes, names,
 * interfaces), and any other use of it is QDRT_INVALID. */
QDRT_API void qdrtDeviceClose(qdrtDevice device);

/* Numbers that a device does not tell are 0. Strings live as long as the device. */
typedef struct qdrtDeviceProperties {
  uint32_t structSize;           /* bytes of this structure as the caller knows it, set by the caller */
  uint32_t defaultSubgroupSize;  /* lanes */
  uint32_t smallestSubgroupSize;
  uint32_t largestSubgroupSize;
  const char *name;              /* "cuda:0" */
  const char *description;       /* one line */
  const char *target;            /* what the compiler makes for it, "nvptx:sm_90"; "" for host devices, which take
                                    QIR */
  uint32_t multiprocessors;      /* threads of the cpu device */
  uint32_t maxBlockThreads;
  uint64_t maxGrid[3];           /* blocks in x, y and z */
  uint64_t maxSharedBytes;       /* of a block; UINT64_MAX where only memory bounds it */
  uint64_t memoryBytes;
  uint32_t isGpu;                /* non-zero for hardware */
  uint32_t takesPointers;        /* non-zero: qdrtBufferWrap and QDRT_POINTER arguments work */
  uint32_t isHostMemory;         /* non-zero: buffers lie where the host sees them (qdrtBufferMap) */
} qdrtDeviceProperties;

/* Fills in as much as `properties->structSize` says that the caller knows; QDRT_INVALID where it says nothing. */
QDRT_API qdrtStatus qdrtDeviceGetProperties(qdrtDevice device, qdrtDeviceProperties *properties);

/* Waits for all work of all streams of the device. */
QDRT_API qdrtStatus qdrtDeviceSynchronize(qdrtDevice device);
/* The CUcontext that a CUDA device's memory and streams belong to: the primary one. Null on other devices. */
QDRT_API void *qdrtDeviceContext(qdrtDevice device);

/* ---- buffers ------------------------------------------------------------------------------------ */

/* Calls in this section that reach memory begin after all work that was given to streams of the device (see
 * qdrtStreamWrap for those of others), and have finished on return. */

typedef struct qdrtBuffer_ *qdrtBuffer;

/* Memory of the device with any content; 0 bytes are allowed. Freed with qdrtBufferFree. */
QDRT_API qdrtStatus qdrtBufferAllocate(qdrtDevice device, uint64_t bytes, qdrtBuffer *buffer);
/* A buffer of memory that stays the caller's and must outlive it, without a copy: of the host for cpu, interp and sim,
 * of the GPU for CUDA and HIP (a CUdeviceptr of any allocator). QDRT_INVALID on Vulkan. Freed with qdrtBufferFree. */
QDRT_API qdrtStatus qdrtBufferWrap(qdrtDevice device, void *pointer, uint64_t bytes, qdrtBuffer *buffer);
QDRT_API void qdrtBufferFree(qdrtBuffer buffer);

/* 0 for what is no buffer. */
QDRT_API uint64_t qdrtBufferBytes(qdrtBuffer buffer);
/* Where kernels see it: the host's memory on host devices, the GPU's on CUDA and HIP; 0 on Vulkan. */
QDRT_API uint64_t qdrtBufferAddress(qdrtBuffer buffer);
/* Where the host reads and writes it, until it is freed and while no work on it is under way. Null where the host does
 * not see it, which is no error. */
QDRT_API void *qdrtBufferMap(qdrtBuffer buffer);

/* Copies `bytes` bytes between host memory and the buffer from byte `offset` on. */
QDRT_API qdrtStatus qdrtBufferUpload(qdrtBuffer buffer, uint64_t offset, const void *data, uint64_t bytes);
QDRT_API qdrtStatus qdrtBufferDownload(qdrtBuffer buffer, uint64_t offset, void *data, uint64_t bytes);
/* Sets `bytes` bytes to `value`, of which the low 8 bits count. */
QDRT_API qdrtStatus qdrtBufferFill(qdrtBuffer buffer, uint64_t offset, uint32_t value, uint64_t bytes);
/* Copies between buffers, also between those of two devices. Ranges of one buffer must not overlap. */
QDRT_API qdrtStatus qdrtBufferCopy(qdrtBuffer target, uint64_t targetOffset, qdrtBuffer source, uint64_t sourceOffset,
                                   uint64_t bytes);

/* ---- modules and kernels ------------------------------------------------------------------------ */

typedef struct qdrtModule_ *qdrtModule;
typedef struct qdrtKernel_ *qdrtKernel;

/* Loads `size` bytes of a bundle (.qdb), or of QIR text or bytecode, which the compiler library compiles for the
 * device. `name` stands for them in messages (a file name; null for "<memory>"). A program that does not compile is
 * QDRT_FAILED, and the error's text holds the compiler's diagnostics. Freed with qdrtModuleFree. */
QDRT_API qdrtStatus qdrtModuleLoad(qdrtDevice device, const void *data, size_t size, const char *name,
                                   qdrtModule *module);
QDRT_API void qdrtModuleFree(qdrtModule module);
/* The kernels and their parameters as JSON, as a bundle carries it; null for what is no module. */
QDRT_API const char *qdrtModuleInterface(qdrtModule module);
/* What the compiler warned of; "" for nothing, null for what is no module. Lives until the module's next launch. */
QDRT_API const char *qdrtModuleWarnings(qdrtModule module);
QDRT_API size_t qdrtModuleNumKernels(qdrtModule module);
/* In the program's order; null past the end. */
QDRT_API const char *qdrtModuleKernelName(qdrtModule module, size_t index);

/* A kernel by its name. The handle belongs to the module, is never freed, and ends with the module's. */
QDRT_API qdrtStatus qdrtModuleGetKernel(qdrtModule module, const char *name, qdrtKernel *kernel);

/* How many blocks of a kernel run at the same time: `blocks` on each of `multiprocessors`. QDRT_FAILED on devices that
 * do not tell. Either pointer may be null. */
QDRT_API qdrtStatus qdrtKernelOccupancy(qdrtKernel kernel, uint64_t *blocks, uint64_t *multiprocessors);

/* ---- launches ----------------------------------------------------------------------------------- */

enum {
  QDRT_SCALAR = 0,
  QDRT_BUFFER = 1, /* `buffer` from byte `offset` on */
  QDRT_POINTER = 2 /* a buffer parameter given memory at `pointer`, as qdrtBufferWrap takes it */
};

enum {
  QDRT_I1 = 0, /* a byte in memory */
  QDRT_I8 = 1,
  QDRT_I16 = 2,
  QDRT_I32 = 3,
  QDRT_I64 = 4,
  QDRT_F16 = 5,
  QDRT_BF16 = 6,
  QDRT_F32 = 7,
  QDRT_F64 = 8
};

/* An argument with its type, which must be the parameter's. Fields that its kind and rank do not use are 0; others
 * are QDRT_INVALID. */
typedef struct qdrtArgument {
  uint32_t kind;       /* QDRT_SCALAR, QDRT_BUFFER or QDRT_POINTER */
  uint32_t type;       /* QDRT_I1 to QDRT_F64: of the scalar, or of a buffer's elements */
  uint32_t lanes;      /* of elements that are vectors; 0 or 1 for scalars */
  uint32_t rank;       /* dimensions of a buffer, 1 to 3; 0 for 1 */
  int64_t extents[3];  /* elements by dimension, rows first; they stand row by row without gaps */
  uint64_t bits;       /* a scalar's bits; those above its type's are 0: see qdrtScalar functions below */
  qdrtBuffer buffer;
  uint64_t offset;     /* bytes; a multiple of what the parameter is aligned to, on Vulkan also of what its driver
                          asks */
  void *pointer;
  uint64_t reserved[2]; /* 0 */
} qdrtArgument;

/* Arguments of one call each. */
QDRT_API qdrtArgument qdrtScalarI32(int32_t value);
QDRT_API qdrtArgument qdrtScalarI64(int64_t value);
QDRT_API qdrtArgument qdrtScalarF32(float value);
QDRT_API qdrtArgument qdrtScalarF64(double value);
/* A buffer of one dimension from its beginning on; `type` is QDRT_I1 to QDRT_F64. */
QDRT_API qdrtArgument qdrtArray(qdrtBuffer buffer, uint32_t type, int64_t elements);

/* Runs a kernel on a grid of blocks in x, y and z, and waits for its end. Arguments in the interface's order, as many
 * as it lists; they are checked by number, kind, type, size and device before anything runs. `*seconds`, unless null,
 * is the time that the device took. Begins after all work that was given to streams of the device. */
QDRT_API qdrtStatus qdrtLaunch(qdrtKernel kernel, const uint32_t grid[3], const qdrtArgument *arguments, size_t count,
                               double *seconds);

/* ---- prepared launches -------------------------------------------------------------------------- */

/* A kernel with its grid and arguments, checked and bound once. Launching it again checks and allocates nothing. */
typedef struct qdrtPrepared_ *qdrtPrepared;
typedef struct qdrtStream_ *qdrtStream;

/* Arguments as those of qdrtLaunch. Memory of QDRT_POINTER arguments must outlive the last launch. Freed with
 * qdrtPreparedFree. */
QDRT_API qdrtStatus qdrtPrepare(qdrtKernel kernel, const uint32_t grid[3], const qdrtArgument *arguments, size_t count,
                                qdrtPrepared *prepared);
/* Binds another argument or grid for launches from now on. Refused, with the old ones kept, where it does not fit, and
 * while the launch is part of a graph. On Vulkan this waits for the launches that are under way. */
QDRT_API qdrtStatus qdrtPreparedSetArgument(qdrtPrepared prepared, size_t index, const qdrtArgument *argument);
QDRT_API qdrtStatus qdrtPreparedSetGrid(qdrtPrepared prepared, const uint32_t grid[3]);
/* Gives the launch to a stream of its device and does not wait; a null stream is the device's default one. A kernel
 * that fails on a GPU is reported by a later call that waits. */
QDRT_API qdrtStatus qdrtPreparedLaunch(qdrtPrepared prepared, qdrtStream stream);
QDRT_API void qdrtPreparedFree(qdrtPrepared prepared);

/* ---- streams ------------------------------------------------------------------------------------ */

/* What a stream is given runs in order. Streams of CUDA and HIP devices run beside each other. Those of a Vulkan device
 * share one queue, which runs their work in the order in which it was given. cpu, interp and sim carry work out before
 * the call returns. A null stream is the device's default one: on CUDA and HIP the driver's legacy default stream.
 * Calls that have nothing else to tell the device by (qdrtStreamSynchronize, qdrtStreamQuery, ...) need a stream. */

/* A new stream. Freed with qdrtStreamFree. */
QDRT_API qdrtStatus qdrtStreamCreate(qdrtDevice device, qdrtStream *stream);
/* A CUstream or hipStream_t of this process (PyTorch's, CuPy's), which stays the caller's and must belong to the
 * device's context. QDRT_INVALID on other devices. Waiting for streams that do not wait for the legacy default stream
 * is the caller's: the calls of section "buffers" and qdrtLaunch do not. */
QDRT_API qdrtStatus qdrtStreamWrap(qdrtDevice device, void *native, qdrtStream *stream);
/* Work that it was given is still carried out. */
QDRT_API void qdrtStreamFree(qdrtStream stream);
/* The CUstream or hipStream_t; null where there is none. */
QDRT_API void *qdrtStreamNative(qdrtStream stream);

/* Waits for all that the stream was given. */
QDRT_API qdrtStatus qdrtStreamSynchronize(qdrtStream stream);
/* Sets *isFinished to 1 where all that the stream was given has finished, else to 0. */
QDRT_API qdrtStatus qdrtStreamQuery(qdrtStream stream, int *isFinished);

/* As the functions of section "buffers", in the stream's order. Memory of the host and buffers are in use until the
 * work has finished, though a call may also wait for that. Buffers are the stream's device's. */
QDRT_API qdrtStatus qdrtStreamUpload(qdrtStream stream, qdrtBuffer buffer, uint64_t offset, const void *data,
                                     uint64_t bytes);
QDRT_API qdrtStatus qdrtStreamDownload(qdrtStream stream, qdrtBuffer buffer, uint64_t offset, void *data,
                                       uint64_t bytes);
QDRT_API qdrtStatus qdrtStreamCopy(qdrtStream stream, qdrtBuffer target, uint64_t targetOffset, qdrtBuffer source,
                                   uint64_t sourceOffset, uint64_t bytes);
QDRT_API qdrtStatus qdrtStreamFill(qdrtStream stream, qdrtBuffer buffer, uint64_t offset, uint32_t value,
                                   uint64_t bytes);

/* ---- events ------------------------------------------------------------------------------------- */

/* A point in a stream's work. Asking for one that was never recorded is QDRT_INVALID. */
typedef struct qdrtEvent_ *qdrtEvent;

/* An event that was never recorded. Freed with qdrtEventFree. */
QDRT_API qdrtStatus qdrtEventCreate(qdrtDevice device, qdrtEvent *event);
/* What waits for it still does. */
QDRT_API void qdrtEventFree(qdrtEvent event);
/* The event happens when all that the stream was given so far has finished. May be recorded again. */
QDRT_API qdrtStatus qdrtEventRecord(qdrtEvent event, qdrtStream stream);
/* Waits until the event has happened. */
QDRT_API qdrtStatus qdrtEventSynchronize(qdrtEvent event);
/* Sets *hasHappened to 1 or 0. */
QDRT_API qdrtStatus qdrtEventQuery(qdrtEvent event, int *hasHappened);
/* Waits for both and sets *seconds to the device's time between them. */
QDRT_API qdrtStatus qdrtEventElapsed(qdrtEvent start, qdrtEvent end, double *seconds);
/* What the stream is given from now on begins after the event as it was last recorded. An event of another device is
 * waited for by the host. */
QDRT_API qdrtStatus qdrtStreamWaitEvent(qdrtStream stream, qdrtEvent event);

/* ---- graphs ------------------------------------------------------------------------------------- */

/* Launches and copies that are given to a stream by one call, in the order in which they were added. The first launch
 * of a graph records it: as a CUDA or HIP graph, as Vulkan command buffers (copies with the host stand between these),
 * elsewhere as it is. From then on nothing can be added. Launches and buffers that are part of a graph live as long. */
typedef struct qdrtGraph_ *qdrtGraph;

/* A graph of nothing. Freed with qdrtGraphFree. */
QDRT_API qdrtStatus qdrtGraphCreate(qdrtDevice device, qdrtGraph *graph);
/* Launches of the graph that streams were given are still carried out. */
QDRT_API void qdrtGraphFree(qdrtGraph graph);
/* These add to the graph's end; QDRT_INVALID once it was launched. A prepared launch may be part of many graphs, or of
 * one several times, and cannot be changed as long as one of them lives. */
QDRT_API qdrtStatus qdrtGraphAddLaunch(qdrtGraph graph, qdrtPrepared prepared);
/* Memory of the host is read and written at every launch of the graph. */
QDRT_API qdrtStatus qdrtGraphAddUpload(qdrtGraph graph, qdrtBuffer buffer, uint64_t offset, const void *data,
                                       uint64_t bytes);
QDRT_API qdrtStatus qdrtGraphAddDownload(qdrtGraph graph, qdrtBuffer buffer, uint64_t offset, void *data,
                                         uint64_t bytes);
QDRT_API qdrtStatus qdrtGraphAddCopy(qdrtGraph graph, qdrtBuffer target, uint64_t targetOffset, qdrtBuffer source,
                                     uint64_t sourceOffset, uint64_t bytes);
QDRT_API qdrtStatus qdrtGraphAddFill(qdrtGraph graph, qdrtBuffer buffer, uint64_t offset, uint32_t value,
                                     uint64_t bytes);
/* Gives the whole graph to a stream and does not wait; a null stream is the device's default one. */
QDRT_API qdrtStatus qdrtGraphLaunch(qdrtGraph graph, qdrtStream stream);

#ifdef __cplusplus
}
#endif
#endif
