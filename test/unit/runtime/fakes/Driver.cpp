// A stand-in for libcuda.so.1 and, built with FAKE_HIP, for libamdhip64: devices whose memory is the
// host's and that run the kernels of Samples.cpp; one, or as many as FAKE_DEVICES says. It refuses any module image but
// the text "good", and reports launches of a grid deeper than 1 as failed. Streams carry work out at once; a captured
// one keeps it for its graph. All that a call is given must be of the thread's device, as nothing of a real driver's
// warns of what is not. Where FAKE_STATUS names a status, all work fails with it.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#ifdef FAKE_HIP
#define DRIVER(cuda, hip) hip
#else
#define DRIVER(cuda, hip) cuda
#endif
#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum : int {
  success = 0,
  invalid = 1,
  outOfMemory = 2,
  invalidContext = 201,
  badImage = 218,
  notFound = 500,
  launchFailed = 719
};
constexpr size_t memoryBytes = size_t(1) << 30;

/// A device's context; null for none.
using Context = const void *;
Context contextOf(int index) { return reinterpret_cast<Context>(uintptr_t(7 + index)); }
thread_local Context current = nullptr;

/// What belongs to a device.
struct Object {
  Context context = current;
};

enum class Kernel { Scale, Lanes, Wide };
struct Function : Object {
  Kernel kernel;
};
struct Module : Object {
  Function functions[3] = {{{}, Kernel::Scale}, {{}, Kernel::Lanes}, {{}, Kernel::Wide}};
};

template <typename T> T parameter(void **parameters, int index) {
  T value;
  std::memcpy(&value, parameters[index], sizeof value);
  return value;
}

using Work = std::function<int()>;
struct Graph : Object {
  std::vector<Work> work;
};
struct Stream : Object {
  Graph *captured = nullptr;
};
struct Event : Object {
  int launches = 0;
};

/// So far: what events take for time.
std::atomic<int> launches{0};

/// Allocations by address; what lies in none is not the driver's.
struct Memory {
  std::mutex mutex;
  std::map<uint64_t, std::pair<size_t, Context>> blocks;
};
Memory &memory() {
  static auto &instance = *new Memory;
  return instance;
}

bool isMine(uint64_t address) {
  std::lock_guard<std::mutex> lock(memory().mutex);
  auto after = memory().blocks.upper_bound(address);
  if (after == memory().blocks.begin())
    return true;
  auto &[begin, block] = *std::prev(after);
  return address >= begin + block.first || block.second == current;
}
bool isMine(const void *pointer) { return isMine(reinterpret_cast<uint64_t>(pointer)); }

/// Whether a call may begin that is given these objects; null ones are the device's own.
template <typename... Objects> int begin(Objects *...objects) {
  if (const char *status = std::getenv("FAKE_STATUS"))
    return std::atoi(status);
  bool ours = current && (true && ... && (!objects || static_cast<const Object *>(objects)->context == current));
  return ours ? success : invalidContext;
}
Stream *streamOf(void *stream) { return static_cast<Stream *>(stream); }
Event *eventOf(void *event) { return static_cast<Event *>(event); }

int give(void *stream, Work work) {
  Stream *to = streamOf(stream);
  if (int code = begin(to))
    return code;
  if (!to || !to->captured)
    return work();
  to->captured->work.push_back(std::move(work));
  return success;
}

} // namespace

EXPORT int DRIVER(cuInit, hipInit)(unsigned) { return success; }
EXPORT int DRIVER(cuDeviceGetCount, hipGetDeviceCount)(int *count) {
  const char *devices = std::getenv("FAKE_DEVICES");
  *count = devices ? std::atoi(devices) : 1;
  return success;
}

#ifdef FAKE_HIP
EXPORT int hipSetDevice(int index) {
  current = contextOf(index);
  return success;
}
EXPORT const char *hipGetErrorName(int code) {
  return code == badImage ? "hipErrorInvalidImage" : "hipErrorOther";
}
EXPORT const char *hipGetErrorString(int code) { return code == badImage ? "bad image" : "other"; }
EXPORT int hipGetDevicePropertiesR0600(void *record, int) {
  std::memset(record, 0xFF, 1400);
  std::strcpy(static_cast<char *>(record), "gfx-free name");
  std::strcpy(static_cast<char *>(record) + 1160, "gfx90a:sramecc+:xnack-");
  return success;
}
#else
EXPORT int cuDriverGetVersion(int *version) {
  *version = 12040;
  return success;
}
EXPORT int cuDeviceGet(int *device, int index) {
  *device = index + 40;
  return success;
}
EXPORT int cuDeviceGetName(char *name, int size, int) {
  std::strncpy(name, "Fake GPU", static_cast<size_t>(size));
  return success;
}
EXPORT int cuDeviceGetAttribute(int *value, int which, int device) {
  *value = which == 75 ? 9 : which == 76 ? 0 : which == 1 ? 1024 : which == 97 ? 232448 : which == 16 ? 10 : 65535;
  return device >= 40 ? success : invalid;
}
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int) {
  *bytes = memoryBytes;
  return success;
}
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = const_cast<void *>(contextOf(device - 40));
  return device >= 40 ? success : invalid;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int device) { return device >= 40 ? success : invalid; }
EXPORT int cuCtxSetCurrent(void *context) {
  current = context;
  return success;
}
EXPORT int cuGetErrorName(int code, const char **name) {
  *name = code == badImage       ? "CUDA_ERROR_INVALID_PTX"
          : code == launchFailed ? "CUDA_ERROR_LAUNCH_FAILED"
                                 : nullptr;
  return success;
}
EXPORT int cuGetErrorString(int code, const char **words) {
  *words = code == badImage       ? "a PTX JIT compilation failed"
           : code == launchFailed ? "unspecified launch failure"
                                  : nullptr;
  return success;
}
EXPORT int cuFuncSetAttribute(void *, int, int) { return success; }
#endif

#ifdef FAKE_HIP
EXPORT int hipDeviceGetAttribute(int *value, int which, int) {
  *value = which == 63 ? 10 : 0;
  return success;
}
#endif
/// A multiprocessor has room for 2048 threads.
EXPORT int DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor,
                  hipModuleOccupancyMaxActiveBlocksPerMultiprocessor)(int *blocks, void *function, int threads,
                                                                      size_t) {
  if (int code = begin(static_cast<Function *>(function)))
    return code;
  *blocks = 2048 / threads;
  return success;
}

EXPORT int DRIVER(cuMemAlloc_v2, hipMalloc)(uint64_t *address, size_t bytes) {
  if (int code = begin())
    return code;
  if (bytes == 0 || bytes > memoryBytes)
    return outOfMemory;
  *address = reinterpret_cast<uint64_t>(std::malloc(bytes));
  std::lock_guard<std::mutex> lock(memory().mutex);
  memory().blocks[*address] = {bytes, current};
  return success;
}
EXPORT int DRIVER(cuMemFree_v2, hipFree)(uint64_t address) {
  if (!isMine(address))
    return invalidContext;
  {
    std::lock_guard<std::mutex> lock(memory().mutex);
    memory().blocks.erase(address);
  }
  std::free(reinterpret_cast<void *>(address));
  return success;
}
EXPORT int DRIVER(cuMemcpyHtoD_v2, hipMemcpyHtoD)(uint64_t to, const void *from, size_t bytes) {
  if (int code = begin())
    return code;
  if (!isMine(to))
    return invalidContext;
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return success;
}
EXPORT int DRIVER(cuMemcpyDtoH_v2, hipMemcpyDtoH)(void *to, uint64_t from, size_t bytes) {
  if (int code = begin())
    return code;
  if (!isMine(from))
    return invalidContext;
  std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  return success;
}

EXPORT int DRIVER(cuMemcpyDtoD_v2, hipMemcpyDtoD)(uint64_t to, uint64_t from, size_t bytes) {
  if (int code = begin())
    return code;
  if (!(isMine(to) && isMine(from)))
    return invalidContext;
  std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
  return success;
}
EXPORT int DRIVER(cuMemsetD8_v2, hipMemsetD8)(uint64_t to, unsigned char value, size_t bytes) {
  if (int code = begin())
    return code;
  if (!isMine(to))
    return invalidContext;
  std::memset(reinterpret_cast<void *>(to), value, bytes);
  return success;
}

EXPORT int DRIVER(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(uint64_t to, const void *from, size_t bytes, void *stream) {
  return give(stream, [=] { return DRIVER(cuMemcpyHtoD_v2, hipMemcpyHtoD)(to, from, bytes); });
}
EXPORT int DRIVER(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void *to, uint64_t from, size_t bytes, void *stream) {
  return give(stream, [=] { return DRIVER(cuMemcpyDtoH_v2, hipMemcpyDtoH)(to, from, bytes); });
}
EXPORT int DRIVER(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  return give(stream, [=] { return DRIVER(cuMemcpyDtoD_v2, hipMemcpyDtoD)(to, from, bytes); });
}
EXPORT int DRIVER(cuMemsetD8Async, hipMemsetD8Async)(uint64_t to, unsigned char value, size_t bytes, void *stream) {
  return give(stream, [=] { return DRIVER(cuMemsetD8_v2, hipMemsetD8)(to, value, bytes); });
}
EXPORT int DRIVER(cuStreamCreate, hipStreamCreateWithFlags)(void **stream, unsigned) {
  if (int code = begin())
    return code;
  *stream = new Stream;
  return success;
}
EXPORT int DRIVER(cuStreamDestroy_v2, hipStreamDestroy)(void *stream) {
  delete streamOf(stream);
  return success;
}
EXPORT int DRIVER(cuStreamSynchronize, hipStreamSynchronize)(void *stream) { return begin(streamOf(stream)); }
EXPORT int DRIVER(cuStreamQuery, hipStreamQuery)(void *stream) { return begin(streamOf(stream)); }
EXPORT int DRIVER(cuStreamWaitEvent, hipStreamWaitEvent)(void *stream, void *event, unsigned) {
  return begin(streamOf(stream), eventOf(event));
}
EXPORT int DRIVER(cuCtxSynchronize, hipDeviceSynchronize)() { return begin(); }

EXPORT int DRIVER(cuStreamBeginCapture_v2, hipStreamBeginCapture)(void *stream, int mode) {
  if (int code = begin(streamOf(stream)))
    return code;
  if (!stream || mode != 2)
    return invalid;
  streamOf(stream)->captured = new Graph;
  return success;
}
EXPORT int DRIVER(cuStreamEndCapture, hipStreamEndCapture)(void *stream, void **graph) {
  *graph = streamOf(stream)->captured;
  streamOf(stream)->captured = nullptr;
  return success;
}
EXPORT int DRIVER(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags)(void **executable, void *graph,
                                                                            unsigned long long) {
  *executable = new Graph(*static_cast<Graph *>(graph));
  return success;
}
EXPORT int DRIVER(cuGraphLaunch, hipGraphLaunch)(void *executable, void *stream) {
  if (int code = begin(static_cast<Graph *>(executable), streamOf(stream)))
    return code;
  for (Work &work : static_cast<Graph *>(executable)->work)
    if (int code = work())
      return code;
  return success;
}
EXPORT int DRIVER(cuGraphDestroy, hipGraphDestroy)(void *graph) {
  delete static_cast<Graph *>(graph);
  return success;
}
EXPORT int DRIVER(cuGraphExecDestroy, hipGraphExecDestroy)(void *graph) {
  delete static_cast<Graph *>(graph);
  return success;
}

EXPORT int DRIVER(cuModuleLoadDataEx, hipModuleLoadDataEx)(void **module, const void *image,
                                                           unsigned numOptions, int *options, void **values) {
  if (int code = begin())
    return code;
  // CU_JIT_GENERATE_LINE_INFO, which PTX with lines wants and no other.
  bool makesLines = false;
  for (unsigned i = 0; i < numOptions; ++i)
    makesLines |= options[i] == 13 && values[i];
  if (std::strcmp(static_cast<const char *>(image), makesLines ? "good\t.loc\t1 2 3" : "good") == 0) {
    *module = new Module;
    return success;
  }
  for (unsigned i = 0; i < numOptions; ++i)
    if (options[i] == 5)
      std::strcpy(static_cast<char *>(values[i]), "ptxas: line 1: unexpected instruction");
  return badImage;
}
EXPORT int DRIVER(cuModuleUnload, hipModuleUnload)(void *module) {
  delete static_cast<Module *>(module);
  return success;
}
EXPORT int DRIVER(cuModuleGetFunction, hipModuleGetFunction)(void **function, void *module, const char *name) {
  if (int code = begin(static_cast<Module *>(module)))
    return code;
  Kernel kernel = !std::strcmp(name, "scale")  ? Kernel::Scale
                  : !std::strcmp(name, "wide") ? Kernel::Wide
                                               : Kernel::Lanes;
  *function = &static_cast<Module *>(module)->functions[static_cast<int>(kernel)];
  return kernel == Kernel::Lanes ? notFound : success;
}
EXPORT int DRIVER(cuLaunchKernel, hipModuleLaunchKernel)(void *function, unsigned gridX, unsigned,
                                                         unsigned gridZ, unsigned blockX, unsigned, unsigned,
                                                         unsigned, void *stream, void **parameters, void **) {
  if (int code = begin(static_cast<Function *>(function), streamOf(stream)))
    return code;
  if (gridZ > 1)
    return launchFailed;
  if (!isMine(parameter<void *>(parameters, 0)) || !isMine(parameter<void *>(parameters, 1)))
    return invalidContext;
  if (static_cast<Function *>(function)->kernel == Kernel::Scale) {
    auto *x = parameter<float *>(parameters, 0), *y = parameter<float *>(parameters, 1);
    auto a = parameter<float>(parameters, 2);
    auto n = parameter<uint32_t>(parameters, 3);
    return give(stream, [=] {
      ++launches;
      for (uint32_t i = 0; i < n && i < gridX * blockX; ++i)
        y[i] = x[i] * a;
      return success;
    });
  }
  ++launches;
  auto *x = parameter<double *>(parameters, 0), *y = parameter<double *>(parameters, 1);
  y[0] = x[0] * parameter<double>(parameters, 3);
  y[1] = static_cast<double>(parameter<int64_t>(parameters, 4));
  y[2] = static_cast<double>(parameter<int64_t>(parameters, 2));
  return success;
}
EXPORT int DRIVER(cuLaunchCooperativeKernel, hipModuleLaunchCooperativeKernel)(
    void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY, unsigned blockZ,
    unsigned shared, void *stream, void **parameters) {
  return DRIVER(cuLaunchKernel, hipModuleLaunchKernel)(function, gridX, gridY, gridZ, blockX, blockY, blockZ, shared,
                                                       stream, parameters, nullptr);
}

EXPORT int DRIVER(cuEventCreate, hipEventCreateWithFlags)(void **event, unsigned) {
  if (int code = begin())
    return code;
  *event = new Event;
  return success;
}
EXPORT int DRIVER(cuEventRecord, hipEventRecord)(void *event, void *stream) {
  if (int code = begin(eventOf(event), streamOf(stream)))
    return code;
  eventOf(event)->launches = launches;
  return success;
}
EXPORT int DRIVER(cuEventSynchronize, hipEventSynchronize)(void *event) { return begin(eventOf(event)); }
EXPORT int DRIVER(cuEventQuery, hipEventQuery)(void *event) { return begin(eventOf(event)); }
EXPORT int DRIVER(cuEventElapsedTime, hipEventElapsedTime)(float *milliseconds, void *start, void *end) {
  if (int code = begin(eventOf(start), eventOf(end)))
    return code;
  *milliseconds = 1.5f * static_cast<float>(eventOf(end)->launches - eventOf(start)->launches);
  return success;
}
EXPORT int DRIVER(cuEventDestroy_v2, hipEventDestroy)(void *event) {
  delete eventOf(event);
  return success;
}
