// The C interface: errors, devices and buffers.
#include "runtime/CApi.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

using namespace qd::rt;
using namespace qd::rt::capi;

namespace {

/// Of the thread.
std::string &errorText() {
  thread_local std::string text;
  return text;
}

constexpr uint32_t mostOptLevel = 3, mostStructBytes = 4096;

struct DeviceListState {
  std::vector<DeviceEntry> entries;
};

const DeviceEntry *entryOf(qdrtDeviceList list, size_t index) {
  auto *state = static_cast<DeviceListState *>(findHandle(HandleKind::DeviceList, reinterpret_cast<uint64_t>(list)));
  return state && index < state->entries.size() ? &state->entries[index] : nullptr;
}

qdrtStatus readOptions(const qdrtDeviceOptions *given, DeviceOptions &options) {
  if (!given)
    return QDRT_OK;
  // Smaller ones were never published.
  constexpr size_t oldest = offsetof(qdrtDeviceOptions, bind);
  if (given->structSize < oldest || given->structSize > mostStructBytes)
    return report(QDRT_INVALID, text("the options have a structSize of ", given->structSize,
                                     ", expected what qdrtInitDeviceOptions sets: ", sizeof *given));
  // Whoever sets what this library does not know expects an effect.
  const auto *bytes = reinterpret_cast<const char *>(given);
  size_t size = std::min<size_t>(given->structSize, sizeof *given);
  qdrtDeviceOptions known = {};
  std::memcpy(&known, given, size);
  if (std::any_of(bytes + size, bytes + given->structSize, [](char byte) { return byte != 0; }))
    return report(QDRT_INVALID, "the options set a field that this library does not know");
  if (given->optLevel > mostOptLevel)
    return report(QDRT_INVALID, text("the options ask for level ", given->optLevel, ", expected 0 to ", mostOptLevel));
  options.subgroupSize = given->subgroupSize;
  options.optLevel = given->optLevel;
  options.threads = given->threads;
  options.checks = given->checks ? given->checks : "";
  options.blocks = given->blocks ? given->blocks : "";
  options.bind = known.bind ? known.bind : "";
  options.launchTimeLimit = known.launchTimeLimit;
  options.isolate = known.isolate;
  options.compileTimeLimit = known.compileTimeLimit;
  options.compileMemoryLimit = known.compileMemoryLimit;
  options.interrupt = known.interrupt;
  options.interruptContext = known.interruptContext;
  options.debug = known.debug;
  return QDRT_OK;
}

qdrtStatus giveBuffer(std::shared_ptr<DeviceState> device, Expected<std::unique_ptr<Buffer>> buffer,
                      qdrtBuffer *handle) {
  if (!buffer)
    return report(buffer.error());
  auto state = std::make_shared<BufferState>();
  state->device = std::move(device);
  state->buffer = std::move(*buffer);
  return give(std::move(state), handle);
}

} // namespace

namespace qd::rt::capi {

qdrtStatus report(qdrtStatus status, const std::string &text) {
  errorText() = text;
  return status;
}

void reportHandle(HandleKind kind, const void *handle) {
  report(QDRT_INVALID, handle ? text("expected ", handleName(kind), ", got a handle that is freed or of something else")
                              : text("expected ", handleName(kind), ", got null"));
}

bool isOpen(const DeviceState &device) {
  if (device.closed.load(std::memory_order_relaxed)) {
    report(QDRT_INVALID, text("device '", device.properties.name, "' is closed"));
    return false;
  }
  bool isHost = device.properties.isHostMemory && device.properties.takesPointers;
  if (isHost || device.forks == countForks())
    return true;
  report(QDRT_INVALID, text("device '", device.properties.name,
                            "' was opened before this process was forked, expected one "
                            "that this process opened"));
  return false;
}

bool hasData(const void *data, uint64_t bytes) {
  if (data || !bytes)
    return true;
  report(QDRT_INVALID, text("a copy of ", bytes, " bytes at a null pointer"));
  return false;
}

} // namespace qd::rt::capi

uint32_t qdrtApiVersion(void) { return QDRT_API_VERSION; }
const char *qdrtErrorText(void) { return errorText().c_str(); }

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

qdrtStatus qdrtListDevices(qdrtDeviceList *list) {
  if (!hasPlace(list, "the list"))
    return QDRT_INVALID;
  auto state = std::make_shared<DeviceListState>();
  state->entries = listDevices();
  uint64_t handle = makeHandle(HandleKind::DeviceList, std::move(state));
  if (!handle)
    return report(QDRT_FAILED, "there are too many live handles");
  *list = reinterpret_cast<qdrtDeviceList>(handle);
  return QDRT_OK;
}

size_t qdrtDeviceListSize(qdrtDeviceList list) {
  auto *state = static_cast<DeviceListState *>(findHandle(HandleKind::DeviceList, reinterpret_cast<uint64_t>(list)));
  return state ? state->entries.size() : 0;
}

const char *qdrtDeviceListName(qdrtDeviceList list, size_t index) {
  const DeviceEntry *entry = entryOf(list, index);
  return entry ? entry->name.c_str() : nullptr;
}

const char *qdrtDeviceListText(qdrtDeviceList list, size_t index) {
  const DeviceEntry *entry = entryOf(list, index);
  return entry ? entry->text.c_str() : nullptr;
}

int qdrtDeviceListPresent(qdrtDeviceList list, size_t index) {
  const DeviceEntry *entry = entryOf(list, index);
  return entry && entry->present;
}

void qdrtDeviceListFree(qdrtDeviceList list) { endHandle(HandleKind::DeviceList, reinterpret_cast<uint64_t>(list)); }

void qdrtInitDeviceOptionsSized(qdrtDeviceOptions *options, uint32_t structSize) {
  if (!options)
    return;
  qdrtDeviceOptions defaults = {};
  defaults.structSize = structSize;
  defaults.optLevel = DeviceOptions().optLevel;
  std::memset(options, 0, structSize);
  std::memcpy(options, &defaults, std::min<size_t>(structSize, sizeof defaults));
}

qdrtStatus qdrtDeviceOpen(const char *name, const qdrtDeviceOptions *options, qdrtDevice *device) {
  if (!hasPlace(device, "the device"))
    return QDRT_INVALID;
  DeviceOptions read;
  if (qdrtStatus status = readOptions(options, read))
    return status;
  auto opened = Device::open(name ? name : "best", read);
  if (!opened)
    return report(opened.error());
  auto state = std::make_shared<DeviceState>();
  state->device = std::move(*opened);
  state->properties = state->device->properties();
  auto stream = state->device->createDefaultStream();
  if (!stream)
    return report(stream.error());
  state->stream = std::move(*stream);
  return give(std::move(state), device);
}

void qdrtDeviceClose(qdrtDevice device) {
  auto state = endHandle(HandleKind::Device, reinterpret_cast<uint64_t>(device));
  if (state)
    static_cast<DeviceState *>(state.get())->closed = true;
}

qdrtStatus qdrtDeviceGetProperties(qdrtDevice device, qdrtDeviceProperties *properties) {
  auto *state = find<DeviceState>(device);
  if (!state)
    return QDRT_INVALID;
  if (!properties)
    return report(QDRT_INVALID, "expected a place for the properties, got null");
  constexpr uint32_t least = sizeof properties->structSize;
  if (properties->structSize < least || properties->structSize > mostStructBytes)
    return report(QDRT_INVALID, text("the properties have a structSize of ", properties->structSize, ", expected ",
                                     sizeof *properties));
  const DeviceProperties &known = state->properties;
  qdrtDeviceProperties result = {};
  result.structSize = properties->structSize;
  result.defaultSubgroupSize = known.defaultSubgroup;
  result.smallestSubgroupSize = known.smallestSubgroup;
  result.largestSubgroupSize = known.largestSubgroup;
  result.name = known.name.c_str();
  result.description = known.description.c_str();
  result.target = known.target.c_str();
  result.multiprocessors = known.multiprocessors;
  result.maxBlockThreads = known.limits.blockThreads;
  std::copy(known.limits.grid.begin(), known.limits.grid.end(), result.maxGrid);
  result.maxSharedBytes = known.limits.sharedBytes;
  result.memoryBytes = known.memoryBytes;
  result.isGpu = known.isGpu;
  result.takesPointers = known.takesPointers;
  result.isHostMemory = known.isHostMemory;
  std::memset(properties, 0, result.structSize);
  std::memcpy(properties, &result, std::min<size_t>(result.structSize, sizeof result));
  return QDRT_OK;
}

qdrtStatus qdrtDeviceSynchronize(qdrtDevice device) {
  auto *state = find<DeviceState>(device);
  return state ? finish(state->device->synchronize()) : QDRT_INVALID;
}

void *qdrtDeviceContext(qdrtDevice device) {
  auto *state = find<DeviceState>(device);
  return state ? state->device->nativeContext() : nullptr;
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

qdrtStatus qdrtBufferAllocate(qdrtDevice device, uint64_t bytes, qdrtBuffer *buffer) {
  if (!hasPlace(buffer, "the buffer"))
    return QDRT_INVALID;
  auto owner = share<DeviceState>(device);
  if (!owner)
    return QDRT_INVALID;
  return giveBuffer(owner, owner->device->allocate(bytes), buffer);
}

qdrtStatus qdrtBufferWrap(qdrtDevice device, void *pointer, uint64_t bytes, qdrtBuffer *buffer) {
  if (!hasPlace(buffer, "the buffer"))
    return QDRT_INVALID;
  auto owner = share<DeviceState>(device);
  if (!owner)
    return QDRT_INVALID;
  return giveBuffer(owner, owner->device->wrap(pointer, bytes), buffer);
}

void qdrtBufferFree(qdrtBuffer buffer) { endHandle(HandleKind::Buffer, reinterpret_cast<uint64_t>(buffer)); }

uint64_t qdrtBufferBytes(qdrtBuffer buffer) {
  auto *state = find<BufferState>(buffer);
  return state ? state->buffer->bytes() : 0;
}

uint64_t qdrtBufferAddress(qdrtBuffer buffer) {
  auto *state = findOpen<BufferState>(buffer);
  return state ? state->buffer->address() : 0;
}

void *qdrtBufferMap(qdrtBuffer buffer) {
  auto *state = findOpen<BufferState>(buffer);
  return state ? state->buffer->mapped() : nullptr;
}

qdrtStatus qdrtBufferUpload(qdrtBuffer buffer, uint64_t offset, const void *data, uint64_t bytes) {
  auto *state = findOpen<BufferState>(buffer);
  if (!state || !hasData(data, bytes))
    return QDRT_INVALID;
  return finish(state->buffer->upload(data, bytes, offset));
}

qdrtStatus qdrtBufferDownload(qdrtBuffer buffer, uint64_t offset, void *data, uint64_t bytes) {
  auto *state = findOpen<BufferState>(buffer);
  if (!state || !hasData(data, bytes))
    return QDRT_INVALID;
  return finish(state->buffer->download(data, bytes, offset));
}

qdrtStatus qdrtBufferFill(qdrtBuffer buffer, uint64_t offset, uint32_t value, uint64_t bytes) {
  auto *state = findOpen<BufferState>(buffer);
  if (!state)
    return QDRT_INVALID;
  return finish(state->buffer->fill(static_cast<uint8_t>(value), bytes, offset));
}

qdrtStatus qdrtBufferCopy(qdrtBuffer target, uint64_t targetOffset, qdrtBuffer source, uint64_t sourceOffset,
                          uint64_t bytes) {
  auto *to = findOpen<BufferState>(target), *from = to ? findOpen<BufferState>(source) : nullptr;
  if (!from)
    return QDRT_INVALID;
  return finish(to->buffer->copyFrom(*from->buffer, bytes, targetOffset, sourceOffset));
}
