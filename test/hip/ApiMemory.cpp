// Exported functions: devices, memory and errors. Copies and fills without a stream go to the default one.
#include "Call.h"

#include <cstring>

using namespace hipdouble;

namespace {

/// Attributes by their numbers in HIP 5 to 7.
enum : int {
  maxGridX = 29,
  maxGridY = 30,
  maxGridZ = 31,
  maxThreads = 56,
  multiprocessors = 63,
  maxShared = 74,
  warpSize = 87
};
constexpr int numMultiprocessors = 8;
constexpr size_t memoryBytes = size_t(8) << 30;

/// Where HIP 6 and 7 keep what the runtime could look for in the record of 1472 bytes.
constexpr size_t recordBytes = 1472, totalMemoryAt = 288, warpSizeAt = 308, chipAt = 1160, chipBytes = 256;

bool isDevice(int device) { return device >= 0 && size_t(device) < machine().chips.size(); }

/// Carries out a copy between the host and a device when it is its turn.
int copy(Queue &queue, uint64_t device, void *host, size_t bytes, bool toDevice) {
  if (!findMemory(device, bytes))
    return invalidValue;
  return give(queue, [=]() -> int {
    if (!findMemory(device, bytes))
      return misuse(illegalAddress, "a copy reaches memory that was freed");
    Access access;
    auto *memory = reinterpret_cast<void *>(device);
    std::memcpy(toDevice ? memory : host, toDevice ? host : memory, bytes);
    return success;
  });
}

int copyOnDevice(Queue &queue, uint64_t to, uint64_t from, size_t bytes) {
  if (!findMemory(to, bytes) || !findMemory(from, bytes))
    return invalidValue;
  return give(queue, [=]() -> int {
    if (!findMemory(to, bytes) || !findMemory(from, bytes))
      return misuse(illegalAddress, "a copy reaches memory that was freed");
    Access access;
    std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    return success;
  });
}

int fill(Queue &queue, uint64_t to, unsigned char value, size_t bytes) {
  if (!findMemory(to, bytes))
    return invalidValue;
  return give(queue, [=]() -> int {
    if (!findMemory(to, bytes))
      return misuse(illegalAddress, "a fill reaches memory that was freed");
    Access access;
    std::memset(reinterpret_cast<void *>(to), value, bytes);
    return success;
  });
}

/// The default stream, for calls that no capture may see: they break it.
template <typename Work> int onDefault(bool waits, Work &&work) {
  if (int code = breakCaptures(captureImplicit))
    return code;
  std::shared_ptr<Queue> queue = queueOf(nullptr);
  if (int code = work(*queue))
    return code;
  if (!waits)
    return success;
  finish(queue, queue->given);
  return takeError(queue->device);
}

template <typename Work> int onStream(void *stream, Work &&work) {
  std::shared_ptr<Queue> queue = queueOf(stream);
  return queue ? work(*queue) : misuse(contextIsDestroyed, "a copy or fill is given to a stream that is none");
}

} // namespace

HIP_API int hipInit(unsigned flags) {
  HIP_BEGIN("hipInit");
  return flags ? int(invalidValue) : machine().chips.empty() ? int(noDevice) : int(success);
}
HIP_API int hipGetDeviceCount(int *count) {
  HIP_BEGIN("hipGetDeviceCount");
  *count = int(machine().chips.size());
  return success;
}
HIP_API int hipSetDevice(int device) {
  HIP_BEGIN("hipSetDevice");
  if (!isDevice(device))
    return invalidDevice;
  currentDevice = device;
  return success;
}
HIP_API int hipGetDevice(int *device) {
  HIP_BEGIN("hipGetDevice");
  *device = currentDevice;
  return success;
}
HIP_API const char *hipGetErrorName(int code) { return statusName(code); }
HIP_API const char *hipGetErrorString(int code) { return statusWords(code); }

HIP_API int hipGetDevicePropertiesR0600(void *record, int device) {
  HIP_BEGIN("hipGetDevicePropertiesR0600");
  if (!isDevice(device))
    return invalidDevice;
  const Chip &chip = machine().chips[size_t(device)];
  auto *bytes = static_cast<char *>(record);
  std::memset(bytes, 0, recordBytes);
  std::strcpy(bytes, ("stand-in " + std::to_string(device)).c_str());
  std::memcpy(bytes + totalMemoryAt, &memoryBytes, sizeof memoryBytes);
  std::memcpy(bytes + warpSizeAt, &chip.lanes, sizeof chip.lanes);
  std::strncpy(bytes + chipAt, chip.id.c_str(), chipBytes - 1);
  return success;
}
HIP_API int hipDeviceGetAttribute(int *value, int which, int device) {
  HIP_BEGIN("hipDeviceGetAttribute");
  if (!isDevice(device))
    return invalidDevice;
  const Chip &chip = machine().chips[size_t(device)];
  switch (which) {
  case maxGridX:
    *value = INT32_MAX;
    return success;
  case maxGridY:
  case maxGridZ:
    *value = 65536;
    return success;
  case maxThreads:
    *value = 1024;
    return success;
  case multiprocessors:
    *value = numMultiprocessors;
    return success;
  case maxShared:
    *value = int(chip.ldsBytes);
    return success;
  case warpSize:
    *value = int(chip.lanes);
    return success;
  default:
    return invalidValue;
  }
}
HIP_API int hipDeviceTotalMem(size_t *bytes, int device) {
  HIP_BEGIN("hipDeviceTotalMem");
  *bytes = memoryBytes;
  return isDevice(device) ? success : invalidDevice;
}

HIP_API int hipMalloc(uint64_t *address, size_t bytes) {
  HIP_BEGIN("hipMalloc");
  return allocate(*address, bytes);
}
HIP_API int hipFree(uint64_t address) {
  Call call("hipFree");
  int code = release(address);
  return call.injected ? call.injected : code;
}

HIP_API int hipMemcpyHtoD(uint64_t to, const void *from, size_t bytes) {
  HIP_BEGIN("hipMemcpyHtoD");
  return onDefault(/*waits=*/true,
                   [&](Queue &queue) { return copy(queue, to, const_cast<void *>(from), bytes, true); });
}
HIP_API int hipMemcpyDtoH(void *to, uint64_t from, size_t bytes) {
  HIP_BEGIN("hipMemcpyDtoH");
  return onDefault(/*waits=*/true, [&](Queue &queue) { return copy(queue, from, to, bytes, false); });
}
HIP_API int hipMemcpyDtoD(uint64_t to, uint64_t from, size_t bytes) {
  HIP_BEGIN("hipMemcpyDtoD");
  return onDefault(/*waits=*/false, [&](Queue &queue) { return copyOnDevice(queue, to, from, bytes); });
}
HIP_API int hipMemsetD8(uint64_t to, unsigned char value, size_t bytes) {
  HIP_BEGIN("hipMemsetD8");
  return onDefault(/*waits=*/false, [&](Queue &queue) { return fill(queue, to, value, bytes); });
}
HIP_API int hipMemcpyHtoDAsync(uint64_t to, const void *from, size_t bytes, void *stream) {
  HIP_BEGIN("hipMemcpyHtoDAsync");
  return onStream(stream, [&](Queue &queue) { return copy(queue, to, const_cast<void *>(from), bytes, true); });
}
HIP_API int hipMemcpyDtoHAsync(void *to, uint64_t from, size_t bytes, void *stream) {
  HIP_BEGIN("hipMemcpyDtoHAsync");
  return onStream(stream, [&](Queue &queue) { return copy(queue, from, to, bytes, false); });
}
HIP_API int hipMemcpyDtoDAsync(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  HIP_BEGIN("hipMemcpyDtoDAsync");
  return onStream(stream, [&](Queue &queue) { return copyOnDevice(queue, to, from, bytes); });
}
HIP_API int hipMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream) {
  HIP_BEGIN("hipMemsetD8Async");
  return onStream(stream, [&](Queue &queue) { return fill(queue, to, value, bytes); });
}
