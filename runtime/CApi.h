// What the sources of the C interface share: the objects behind its handles, and how errors become statuses.
#ifndef QD_RUNTIME_CAPI_H
#define QD_RUNTIME_CAPI_H

#include "runtime/Handles.h"
#include "runtime/Stream.h"
#include "runtime/qdrt.h"

#include <atomic>

namespace qd::rt::capi {

/// Objects hold what they are made of, declared first so that it goes last.
struct DeviceState {
  std::unique_ptr<Device> device;
  DeviceProperties properties;
  /// For launches without a stream.
  std::unique_ptr<Stream> stream;
  std::atomic<bool> closed{false};
  unsigned forks = countForks();
};

struct BufferState {
  std::shared_ptr<DeviceState> device;
  std::unique_ptr<Buffer> buffer;
};

struct ModuleState {
  std::shared_ptr<DeviceState> device;
  std::unique_ptr<Module> module;
  /// By the interface's order; 0 for those not asked for yet.
  std::vector<uint64_t> kernels;
};

struct KernelState {
  std::shared_ptr<ModuleState> module;
  const Kernel *kernel;
};

struct LaunchState {
  std::shared_ptr<ModuleState> module;
  /// By argument; null for those that are none.
  std::vector<std::shared_ptr<BufferState>> buffers;
  std::unique_ptr<Launch> launch;
};

struct StreamState {
  std::shared_ptr<DeviceState> device;
  std::unique_ptr<Stream> stream;
};

struct EventState {
  std::shared_ptr<DeviceState> device;
  std::unique_ptr<Event> event;
};

struct GraphState {
  std::shared_ptr<DeviceState> device;
  /// The launches and buffers that are part of it.
  std::vector<std::shared_ptr<void>> parts;
  std::unique_ptr<Graph> graph;
};

/// Sets the text of the thread's error.
qdrtStatus report(qdrtStatus status, const std::string &text);
/// Refusals are QDRT_INVALID, other errors QDRT_FAILED.
inline qdrtStatus report(const Error &error) {
  return report(error.isRefusal() ? QDRT_INVALID : QDRT_FAILED, error.message());
}
inline qdrtStatus finish(const Error &error) { return error ? report(error) : QDRT_OK; }

template <typename State> struct KindOf;
template <> struct KindOf<DeviceState> { static constexpr HandleKind kind = HandleKind::Device; };
template <> struct KindOf<BufferState> { static constexpr HandleKind kind = HandleKind::Buffer; };
template <> struct KindOf<ModuleState> { static constexpr HandleKind kind = HandleKind::Module; };
template <> struct KindOf<KernelState> { static constexpr HandleKind kind = HandleKind::Kernel; };
template <> struct KindOf<LaunchState> { static constexpr HandleKind kind = HandleKind::Launch; };
template <> struct KindOf<StreamState> { static constexpr HandleKind kind = HandleKind::Stream; };
template <> struct KindOf<EventState> { static constexpr HandleKind kind = HandleKind::Event; };
template <> struct KindOf<GraphState> { static constexpr HandleKind kind = HandleKind::Graph; };

/// Reports what a handle is instead of one of `kind`.
void reportHandle(HandleKind kind, const void *handle);
/// Whether the device may be used; reports that it is closed, or another process's.
bool isOpen(const DeviceState &device);
inline const DeviceState &deviceOf(const BufferState &state) { return *state.device; }
inline const DeviceState &deviceOf(const ModuleState &state) { return *state.device; }
inline const DeviceState &deviceOf(const KernelState &state) { return *state.module->device; }
inline const DeviceState &deviceOf(const LaunchState &state) { return *state.module->device; }
inline const DeviceState &deviceOf(const StreamState &state) { return *state.device; }
inline const DeviceState &deviceOf(const EventState &state) { return *state.device; }
inline const DeviceState &deviceOf(const GraphState &state) { return *state.device; }

template <typename State> bool isUsable(const State &) { return true; }
template <> inline bool isUsable(const DeviceState &device) { return isOpen(device); }

/// The object of a handle, or null, reported.
template <typename State> State *find(const void *handle) {
  auto *state = static_cast<State *>(findHandle(KindOf<State>::kind, reinterpret_cast<uint64_t>(handle)));
  if (!state)
    reportHandle(KindOf<State>::kind, handle);
  return state && isUsable(*state) ? state : nullptr;
}
template <typename State> std::shared_ptr<State> share(const void *handle) {
  auto state = std::static_pointer_cast<State>(shareHandle(KindOf<State>::kind, reinterpret_cast<uint64_t>(handle)));
  if (!state)
    reportHandle(KindOf<State>::kind, handle);
  return state && isUsable(*state) ? state : nullptr;
}

/// The same of an open device.
template <typename State> State *findOpen(const void *handle) {
  State *state = find<State>(handle);
  return state && isOpen(deviceOf(*state)) ? state : nullptr;
}
template <typename State> std::shared_ptr<State> shareOpen(const void *handle) {
  auto state = share<State>(handle);
  return state && isOpen(deviceOf(*state)) ? state : nullptr;
}

/// Hands an object to the caller.
template <typename State, typename Handle> qdrtStatus give(std::shared_ptr<State> state, Handle *handle) {
  uint64_t made = makeHandle(KindOf<State>::kind, std::move(state));
  if (!made)
    return report(QDRT_FAILED, "there are too many live handles");
  *handle = reinterpret_cast<Handle>(made);
  return QDRT_OK;
}

/// Reports a result pointer that is null.
template <typename Handle> bool hasPlace(Handle *handle, const char *name) {
  if (handle)
    return *handle = Handle(), true;
  report(QDRT_INVALID, text("expected a place for ", name, ", got null"));
  return false;
}

/// Reports a null pointer to data that a copy needs.
bool hasData(const void *data, uint64_t bytes);

/// An argument of the C interface, and its buffer where it has one.
Expected<Argument> readArgument(const qdrtArgument &given, std::shared_ptr<BufferState> &buffer);

/// The arguments of a launch, checked against the kernel, its device and the grid; or QDRT_INVALID.
qdrtStatus readLaunch(const KernelState &state, const uint32_t grid[3], const qdrtArgument *given, size_t count,
                      std::vector<Argument> &arguments, std::vector<std::shared_ptr<BufferState>> &buffers);

} // namespace qd::rt::capi

#endif // QD_RUNTIME_CAPI_H
