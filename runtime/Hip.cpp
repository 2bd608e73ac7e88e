// AMD devices through the HIP runtime, libamdhip64, with prototypes of our own.
#include "runtime/Backends.h"
#include "runtime/Driver.h"
#include "runtime/Library.h"
#include "runtime/Match.h"

#include <cstring>

namespace qd::rt {

namespace {

// Values of the HIP interface, fixed by its ABI since version 5.
enum : int {
  // What it says on a machine without an AMD GPU.
  errorNoDevice = 100,
  errorInvalidDevice = 101,
  attributeMaxGridX = 29,
  attributeMaxThreads = 56,
  attributeMultiprocessors = 63,
  attributeMaxShared = 74,
  attributeWarpSize = 87,
};

struct Hip {
  int (*init)(unsigned);
  int (*deviceCount)(int *);
  int (*setDevice)(int);
  int (*deviceProperties)(void *, int);
  int (*deviceAttribute)(int *, int, int) = nullptr;
  int (*deviceMemory)(size_t *, int) = nullptr;
  const char *(*errorName)(int);
  const char *(*errorString)(int);
  Driver driver;
  int count = 0;

  std::string statusText(int code) const {
    const char *name = errorName(code), *words = errorString(code);
    // Version 5 answers both with the name.
    if (name && words && !std::strcmp(name, words))
      return name;
    return text(words ? words : "unknown status", " (", name ? name : std::to_string(code), ")");
  }
};

Expected<Hip> loadHip() {
  auto library =
      Library::open({"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"});
  if (!library)
    return fail("no HIP runtime: ", library.message());
  Hip hip;
  Error error;
  auto get = [&](auto &function, const char *symbol) {
    if (!error)
      error = library->get(function, symbol);
  };
  get(hip.init, "hipInit");
  get(hip.deviceCount, "hipGetDeviceCount");
  get(hip.setDevice, "hipSetDevice");
  get(hip.errorName, "hipGetErrorName");
  get(hip.errorString, "hipGetErrorString");
  // Version 6 renamed the function when its record grew.
  get(hip.deviceProperties, library->find("hipGetDevicePropertiesR0600") ? "hipGetDevicePropertiesR0600"
                                                                         : "hipGetDeviceProperties");
  Driver &driver = hip.driver;
  get(driver.memAlloc, "hipMalloc");
  get(driver.memFree, "hipFree");
  get(driver.copyToDevice, "hipMemcpyHtoD");
  get(driver.copyToHost, "hipMemcpyDtoH");
  get(driver.copyOnDevice, "hipMemcpyDtoD");
  get(driver.fill, "hipMemsetD8");
  get(driver.copyToDeviceOn, "hipMemcpyHtoDAsync");
  get(driver.copyToHostOn, "hipMemcpyDtoHAsync");
  get(driver.copyOnDeviceOn, "hipMemcpyDtoDAsync");
  get(driver.fillOn, "hipMemsetD8Async");
  get(driver.streamCreate, "hipStreamCreateWithFlags");
  get(driver.streamDestroy, "hipStreamDestroy");
  get(driver.streamSynchronize, "hipStreamSynchronize");
  get(driver.streamQuery, "hipStreamQuery");
  get(driver.streamWaitEvent, "hipStreamWaitEvent");
  get(driver.synchronize, "hipDeviceSynchronize");
  get(driver.moduleLoad, "hipModuleLoadDataEx");
  get(driver.moduleUnload, "hipModuleUnload");
  get(driver.moduleGetFunction, "hipModuleGetFunction");
  get(driver.launch, "hipModuleLaunchKernel");
  get(driver.eventCreate, "hipEventCreateWithFlags");
  get(driver.eventRecord, "hipEventRecord");
  get(driver.eventSynchronize, "hipEventSynchronize");
  get(driver.eventQuery, "hipEventQuery");
  get(driver.eventElapsed, "hipEventElapsedTime");
  get(driver.eventDestroy, "hipEventDestroy");
  if (error)
    return error;
  (void)library->get(driver.launchCooperative, "hipModuleLaunchCooperativeKernel");
  (void)library->get(driver.occupancy, "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor");
  (void)library->get(driver.beginCapture, "hipStreamBeginCapture");
  (void)library->get(driver.endCapture, "hipStreamEndCapture");
  (void)library->get(driver.graphInstantiate, "hipGraphInstantiateWithFlags");
  (void)library->get(driver.graphLaunch, "hipGraphLaunch");
  (void)library->get(driver.graphDestroy, "hipGraphDestroy");
  (void)library->get(driver.executableDestroy, "hipGraphExecDestroy");
  (void)library->get(hip.deviceAttribute, "hipDeviceGetAttribute");
  (void)library->get(hip.deviceMemory, "hipDeviceTotalMem");
  // What hipStreamDestroy does to unfinished work is left open, and graphs are not said to outlive their handles.
  driver.outlivesHandles = false;
  // ROCm has releases in which a cooperative launch on a stream that is recorded is carried out instead, and in all of
  // them copies and waits without a stream end the recordings of all threads.
  driver.capturesCooperative = false;
  driver.waitingEndsCaptures = true;
  if (int code = hip.init(0)) {
    bool none = code == errorNoDevice || code == errorInvalidDevice;
    return fail("the HIP runtime ", none ? "finds no AMD GPU: " : "does not start: ", hip.statusText(code));
  }
  if (int code = hip.deviceCount(&hip.count))
    return fail("the HIP runtime lists no devices: ", hip.statusText(code));
  if (hip.count == 0)
    return fail("the HIP runtime has no device");
  return hip;
}

struct Facts {
  std::string name;
  /// "gfx90a:sramecc+:xnack-".
  std::string chip;
  /// Numbers that the driver does not tell are 0.
  unsigned multiprocessors = 0;
  uint32_t lanes = 0;
  size_t memory = 0;
  LaunchLimits limits;

  /// Chips with waves of 32 run those of 64 too.
  uint32_t mostLanes() const { return lanes ? 64 : 0; }
  std::string description() const {
    std::string words = text(name, ", ", chip);
    if (multiprocessors)
      words += text(", ", multiprocessors, " multiprocessors");
    if (memory)
      words += text(", ", memory >> 20, " MiB");
    if (lanes)
      words += text(", subgroups of ", lanes, lanes < mostLanes() ? text(" or ", mostLanes()) : "");
    return words;
  }
};

Expected<Facts> factsOf(const Hip &hip, int index) {
  // The record's layout differs between versions, except that the name comes first; the chip's name is the
  // only text in it that begins with "gfx".
  std::vector<char> record(16384);
  constexpr size_t nameBytes = 256;
  if (int code = hip.deviceProperties(record.data(), index))
    return fail("cannot open hip:", index, ": ", hip.statusText(code));
  record.back() = 0;
  Facts facts;
  facts.name.assign(record.data(), strnlen(record.data(), nameBytes));
  std::string_view rest(record.data() + nameBytes, record.size() - nameBytes);
  size_t at = rest.find("gfx");
  if (at == std::string_view::npos)
    return fail("hip:", index, " does not tell its chip");
  facts.chip = rest.data() + at;

  auto attribute = [&](int which) {
    int value = 0;
    return hip.deviceAttribute && !hip.deviceAttribute(&value, which, index) && value > 0 ? static_cast<unsigned>(value)
                                                                                          : 0u;
  };
  facts.multiprocessors = attribute(attributeMultiprocessors);
  if (unsigned lanes = attribute(attributeWarpSize); lanes == 32 || lanes == 64)
    facts.lanes = lanes;
  if (hip.deviceMemory && hip.deviceMemory(&facts.memory, index))
    facts.memory = 0;
  // Dispatches count threads by 32 bits.
  facts.limits.gridThreads = UINT32_MAX;
  for (int i = 0; i < 3; ++i)
    if (unsigned limit = attribute(attributeMaxGridX + i))
      facts.limits.grid[i] = limit;
  if (unsigned limit = attribute(attributeMaxThreads))
    facts.limits.blockThreads = limit;
  if (unsigned limit = attribute(attributeMaxShared))
    facts.limits.sharedBytes = limit;
  return facts;
}

} // namespace

DeviceResult openHip(std::optional<unsigned> index, const DeviceOptions &options) {
  auto hip = loadHip();
  if (!hip)
    return fail("device 'hip' is absent: ", hip.message());
  unsigned number = index.value_or(0);
  std::string name = text("hip:", number);
  if (number >= static_cast<unsigned>(hip->count))
    return fail("device '", name, "' is absent: the machine has hip:0", hip->count > 1 ? " to " : "",
                hip->count > 1 ? std::to_string(hip->count - 1) : "");
  auto facts = factsOf(*hip, static_cast<int>(number));
  if (!facts)
    return facts.error();
  if (uint32_t asked = options.subgroupSize;
      asked && facts->lanes && asked != facts->lanes && asked != facts->mostLanes())
    return fail(name, " has subgroups of ", facts->lanes,
                facts->lanes < facts->mostLanes() ? text(" or ", facts->mostLanes()) : "", ", not ", asked);

  Driver driver = hip->driver;
  driver.makeCurrent = [setDevice = hip->setDevice, number] { return setDevice(static_cast<int>(number)); };
  driver.statusText = [hip = *hip](int code) { return hip.statusText(code); };
  driver.multiprocessors = facts->multiprocessors;
  std::string chip = facts->chip;
  DeviceProperties properties;
  properties.name = name;
  properties.description = facts->description();
  properties.target = "amdgcn:" + chip.substr(0, chip.find(':'));
  properties.smallestSubgroup = facts->lanes;
  properties.largestSubgroup = facts->mostLanes();
  properties.defaultSubgroup = options.subgroupSize ? options.subgroupSize : facts->lanes;
  properties.multiprocessors = driver.multiprocessors;
  properties.memoryBytes = facts->memory;
  properties.limits = facts->limits;
  uint32_t lanes = options.subgroupSize;
  return std::unique_ptr<Device>(new DriverDevice(
      std::move(properties), std::move(driver),
      [chip, lanes](const Bundle &bundle) { return matchHip(bundle, chip, lanes); }, options));
}

std::vector<DeviceEntry> listHip() {
  auto hip = loadHip();
  if (!hip)
    return {{"hip", false, hip.message()}};
  std::vector<DeviceEntry> entries;
  for (int i = 0; i < hip->count; ++i) {
    auto facts = factsOf(*hip, i);
    entries.push_back({text("hip:", i), bool(facts), facts ? facts->description() : facts.message(), true});
  }
  return entries;
}

} // namespace qd::rt
