// NVIDIA devices through the driver interface, libcuda, with prototypes of our own: no toolkit is needed to
// build or run. The device's primary context is used, so that other CUDA code of the process shares it.
#include "runtime/Backends.h"
#include "runtime/Driver.h"
#include "runtime/Library.h"
#include "runtime/Match.h"

namespace qd::rt {

namespace {

// Values of the driver interface, fixed by its ABI.
enum : int {
  attributeMaxThreads = 1,
  attributeMaxGridX = 5,
  attributeMultiprocessors = 16,
  attributeMajor = 75,
  attributeMinor = 76,
  attributeMaxSharedOptin = 97,
  jitErrorLogBuffer = 5,
  jitErrorLogBytes = 6,
  jitLineInfo = 13,
};

struct Cuda {
  int (*init)(unsigned);
  int (*driverVersion)(int *);
  int (*deviceCount)(int *);
  int (*deviceGet)(int *, int);
  int (*deviceName)(char *, int, int);
  int (*deviceAttribute)(int *, int, int);
  int (*deviceMemory)(size_t *, int);
  int (*contextRetain)(void **, int);
  int (*contextRelease)(int);
  int (*contextSetCurrent)(void *);
  int (*errorName)(int, const char **);
  int (*errorString)(int, const char **);
  Driver driver;
  int count = 0;

  std::string statusText(int code) const {
    const char *name = nullptr, *words = nullptr;
    errorName(code, &name);
    errorString(code, &words);
    return text(words ? words : "unknown status", " (", name ? name : std::to_string(code), ")");
  }
};

struct Facts {
  std::string name;
  unsigned sm = 0;
  int multiprocessors = 0;
  size_t memory = 0;
  LaunchLimits limits;

  std::string description() const {
    return text(name, ", sm_", sm, ", ", multiprocessors, " multiprocessors, ", memory >> 20,
                " MiB, subgroups of 32");
  }
};

Expected<Cuda> loadCuda() {
  auto library = Library::open({"libcuda.so.1"});
  if (!library)
    return fail("no NVIDIA driver: ", library.message());
  Cuda cuda;
  Error error;
  auto get = [&](auto &function, const char *symbol) {
    if (!error)
      error = library->get(function, symbol);
  };
  get(cuda.init, "cuInit");
  get(cuda.driverVersion, "cuDriverGetVersion");
  get(cuda.deviceCount, "cuDeviceGetCount");
  get(cuda.deviceGet, "cuDeviceGet");
  get(cuda.deviceName, "cuDeviceGetName");
  get(cuda.deviceAttribute, "cuDeviceGetAttribute");
  get(cuda.deviceMemory, "cuDeviceTotalMem_v2");
  get(cuda.contextRetain, "cuDevicePrimaryCtxRetain");
  get(cuda.contextRelease, "cuDevicePrimaryCtxRelease_v2");
  get(cuda.contextSetCurrent, "cuCtxSetCurrent");
  get(cuda.errorName, "cuGetErrorName");
  get(cuda.errorString, "cuGetErrorString");
  Driver &driver = cuda.driver;
  get(driver.memAlloc, "cuMemAlloc_v2");
  get(driver.memFree, "cuMemFree_v2");
  get(driver.copyToDevice, "cuMemcpyHtoD_v2");
  get(driver.copyToHost, "cuMemcpyDtoH_v2");
  get(driver.copyOnDevice, "cuMemcpyDtoD_v2");
  get(driver.fill, "cuMemsetD8_v2");
  get(driver.copyToDeviceOn, "cuMemcpyHtoDAsync_v2");
  get(driver.copyToHostOn, "cuMemcpyDtoHAsync_v2");
  get(driver.copyOnDeviceOn, "cuMemcpyDtoDAsync_v2");
  get(driver.fillOn, "cuMemsetD8Async");
  get(driver.streamCreate, "cuStreamCreate");
  get(driver.streamDestroy, "cuStreamDestroy_v2");
  get(driver.streamSynchronize, "cuStreamSynchronize");
  get(driver.streamQuery, "cuStreamQuery");
  get(driver.streamWaitEvent, "cuStreamWaitEvent");
  get(driver.synchronize, "cuCtxSynchronize");
  get(driver.moduleLoad, "cuModuleLoadDataEx");
  get(driver.moduleUnload, "cuModuleUnload");
  get(driver.moduleGetFunction, "cuModuleGetFunction");
  get(driver.launch, "cuLaunchKernel");
  get(driver.launchCooperative, "cuLaunchCooperativeKernel");
  get(driver.functionSetAttribute, "cuFuncSetAttribute");
  get(driver.occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  get(driver.eventCreate, "cuEventCreate");
  get(driver.eventRecord, "cuEventRecord");
  get(driver.eventSynchronize, "cuEventSynchronize");
  get(driver.eventQuery, "cuEventQuery");
  get(driver.eventElapsed, "cuEventElapsedTime");
  get(driver.eventDestroy, "cuEventDestroy_v2");
  if (error)
    return error;
  // Drivers before CUDA 11.4 have no such graphs.
  (void)library->get(driver.beginCapture, "cuStreamBeginCapture_v2");
  (void)library->get(driver.endCapture, "cuStreamEndCapture");
  (void)library->get(driver.graphInstantiate, "cuGraphInstantiateWithFlags");
  (void)library->get(driver.graphLaunch, "cuGraphLaunch");
  (void)library->get(driver.graphDestroy, "cuGraphDestroy");
  (void)library->get(driver.executableDestroy, "cuGraphExecDestroy");
  driver.errorLogOption = jitErrorLogBuffer;
  driver.errorLogSizeOption = jitErrorLogBytes;
  driver.lineInfoOption = jitLineInfo;
  if (int code = cuda.init(0))
    return fail("the NVIDIA driver does not start: ", cuda.statusText(code));
  if (int code = cuda.deviceCount(&cuda.count))
    return fail("the NVIDIA driver lists no devices: ", cuda.statusText(code));
  if (cuda.count == 0)
    return fail("the NVIDIA driver has no device");
  return cuda;
}

Expected<Facts> factsOf(const Cuda &cuda, int index, int &device) {
  if (int code = cuda.deviceGet(&device, index))
    return fail("cannot open cuda:", index, ": ", cuda.statusText(code));
  Facts facts;
  char name[256] = "";
  cuda.deviceName(name, sizeof name, device);
  facts.name = name;
  cuda.deviceMemory(&facts.memory, device);
  auto attribute = [&](int which) {
    int value = 0;
    cuda.deviceAttribute(&value, which, device);
    return value;
  };
  facts.sm = static_cast<unsigned>(10 * attribute(attributeMajor) + attribute(attributeMinor));
  facts.multiprocessors = attribute(attributeMultiprocessors);
  for (int i = 0; i < 3; ++i)
    facts.limits.grid[i] = static_cast<uint64_t>(attribute(attributeMaxGridX + i));
  facts.limits.blockThreads = static_cast<uint32_t>(attribute(attributeMaxThreads));
  facts.limits.sharedBytes = static_cast<uint64_t>(attribute(attributeMaxSharedOptin));
  return facts;
}

} // namespace

DeviceResult openCuda(std::optional<unsigned> index, const DeviceOptions &options) {
  auto cuda = loadCuda();
  if (!cuda)
    return fail("device 'cuda' is absent: ", cuda.message());
  unsigned number = index.value_or(0);
  std::string name = text("cuda:", number);
  if (number >= static_cast<unsigned>(cuda->count))
    return fail("device '", name, "' is absent: the machine has cuda:0", cuda->count > 1 ? " to " : "",
                cuda->count > 1 ? std::to_string(cuda->count - 1) : "");
  if (options.subgroupSize && options.subgroupSize != 32)
    return fail(name, " has subgroups of 32, not ", options.subgroupSize);
  int device = 0;
  auto facts = factsOf(*cuda, static_cast<int>(number), device);
  if (!facts)
    return facts.error();
  void *context = nullptr;
  if (int code = cuda->contextRetain(&context, device))
    return fail("cannot open ", name, ": ", cuda->statusText(code));

  Driver driver = cuda->driver;
  driver.makeCurrent = [setCurrent = cuda->contextSetCurrent, context] { return setCurrent(context); };
  driver.context = context;
  driver.release = [release = cuda->contextRelease, device] { release(device); };
  driver.statusText = [cuda = *cuda](int code) { return cuda.statusText(code); };
  driver.multiprocessors = static_cast<unsigned>(facts->multiprocessors);
  unsigned sm = facts->sm;
  DeviceProperties properties;
  properties.name = name;
  properties.description = facts->description();
  properties.target = text("nvptx:sm_", sm);
  properties.defaultSubgroup = properties.smallestSubgroup = properties.largestSubgroup = 32;
  properties.multiprocessors = driver.multiprocessors;
  properties.memoryBytes = facts->memory;
  properties.limits = facts->limits;
  return std::unique_ptr<Device>(new DriverDevice(
      std::move(properties), std::move(driver), [sm](const Bundle &bundle) { return matchCuda(bundle, sm); }, options));
}

std::vector<DeviceEntry> listCuda() {
  auto cuda = loadCuda();
  if (!cuda)
    return {{"cuda", false, cuda.message()}};
  int version = 0;
  cuda->driverVersion(&version);
  std::vector<DeviceEntry> entries;
  for (int i = 0; i < cuda->count; ++i) {
    int device = 0;
    auto facts = factsOf(*cuda, i, device);
    entries.push_back(
        {text("cuda:", i), bool(facts),
         facts ? text(facts->description(), ", driver for CUDA ", version / 1000, ".", version % 1000 / 10)
               : facts.message(),
         true});
  }
  return entries;
}

} // namespace qd::rt
