// The part of the runtime that CUDA and HIP share. Their driver interfaces are the same call for call; a
// `Driver` holds one's functions, and DriverDevice runs kernels through them.
#ifndef QD_RUNTIME_DRIVER_H
#define QD_RUNTIME_DRIVER_H

#include "runtime/Device.h"

#include <functional>
#include <shared_mutex>

namespace qd::rt {

/// Status codes are 0 for success. Handles are opaque pointers, addresses of device memory 64-bit numbers. An open
/// device has its own, which is what its objects are told by.
struct Driver : Identity {
  using Address = uint64_t;

  int (*memAlloc)(Address *, size_t) = nullptr;
  int (*memFree)(Address) = nullptr;
  int (*copyToDevice)(Address, const void *, size_t) = nullptr;
  int (*copyToHost)(void *, Address, size_t) = nullptr;
  int (*copyOnDevice)(Address to, Address from, size_t) = nullptr;
  int (*fill)(Address, unsigned char value, size_t) = nullptr;
  int (*copyToDeviceOn)(Address, const void *, size_t, void *stream) = nullptr;
  int (*copyToHostOn)(void *, Address, size_t, void *stream) = nullptr;
  int (*copyOnDeviceOn)(Address to, Address from, size_t, void *stream) = nullptr;
  int (*fillOn)(Address, unsigned char value, size_t, void *stream) = nullptr;
  int (*streamCreate)(void **, unsigned flags) = nullptr;
  int (*streamDestroy)(void *) = nullptr;
  int (*streamSynchronize)(void *) = nullptr;
  int (*streamQuery)(void *) = nullptr;
  int (*streamWaitEvent)(void *stream, void *event, unsigned flags) = nullptr;
  int (*synchronize)() = nullptr;
  int (*moduleLoad)(void **module, const void *image, unsigned numOptions, int *options,
                    void **values) = nullptr;
  int (*moduleUnload)(void *) = nullptr;
  int (*moduleGetFunction)(void **function, void *module, const char *name) = nullptr;
  int (*launch)(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                unsigned blockY, unsigned blockZ, unsigned sharedBytes, void *stream, void **parameters,
                void **extra) = nullptr;
  int (*eventCreate)(void **, unsigned flags) = nullptr;
  int (*eventRecord)(void *event, void *stream) = nullptr;
  int (*eventSynchronize)(void *) = nullptr;
  int (*eventQuery)(void *) = nullptr;
  int (*eventElapsed)(float *milliseconds, void *start, void *end) = nullptr;
  int (*eventDestroy)(void *) = nullptr;

  // Null where an older driver lacks them.
  int (*launchCooperative)(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                           unsigned blockY, unsigned blockZ, unsigned sharedBytes, void *stream,
                           void **parameters) = nullptr;
  int (*functionSetAttribute)(void *function, int attribute, int value) = nullptr;
  int (*occupancy)(int *blocks, void *function, int blockThreads, size_t dynamicSharedBytes) = nullptr;

  // Graphs.
  int (*beginCapture)(void *stream, int mode) = nullptr;
  int (*endCapture)(void *stream, void **graph) = nullptr;
  int (*graphInstantiate)(void **executable, void *graph, unsigned long long flags) = nullptr;
  int (*graphLaunch)(void *executable, void *stream) = nullptr;
  int (*graphDestroy)(void *graph) = nullptr;
  int (*executableDestroy)(void *executable) = nullptr;

  /// Makes the device the calling thread's, whatever other code did with the thread.
  int enter() const;
  /// The same, but trusts the thread: for calls that fail where another device is current, and are then tried again
  /// after `enter`.
  int stay() const;
  /// `enter` for what has an error of its own.
  Error makeUsable() const;
  /// Runs a call with the device current.
  template <typename Call> int run(Call &&call) const {
    int code = enter();
    return code ? code : call();
  }
  /// Runs a call of the hot path, on an object that belongs to the device.
  template <typename Call> int call(Call &&call) const {
    int code = stay();
    if (!code)
      code = call();
    return code && !isOfWork(code) ? run(call) : code;
  }
  /// Runs a call that waits by itself, while no graph is recorded if that would end the recording.
  template <typename Call> int runWaiting(Call &&call) const {
    return run([&] {
      if (!waitingEndsCaptures)
        return call();
      std::shared_lock<std::shared_mutex> lock(captures);
      return call();
    });
  }

  /// Whether a status is a query's no, or tells of work that was given before: another try would lose it.
  static bool isOfWork(int code) { return code == notReady || (code >= 700 && code != contextIsDestroyed); }

  /// What `enter` does.
  std::function<int()> makeCurrent;
  /// The CUcontext; null for HIP.
  void *context = nullptr;
  /// Tells devices apart.
  uint64_t token = 0;
  /// The status of a query whose answer is no.
  static constexpr int notReady = 600;
  static constexpr int contextIsDestroyed = 709;
  /// Gives the device up.
  std::function<void()> release;
  /// A status in words.
  std::function<std::string(int)> statusText;
  /// Options of moduleLoad for an error log; 0 where there are none.
  int errorLogOption = 0, errorLogSizeOption = 0;
  /// That of moduleLoad for line tables of PTX; 0 where there is none.
  int lineInfoOption = 0;
  /// 0 where the driver does not tell.
  unsigned multiprocessors = 0;

  // Where HIP is not as CUDA is.
  /// Streams and graphs that are destroyed live on until their work has finished.
  bool outlivesHandles = true;
  /// Recording a graph holds cooperative launches back, as it does others.
  bool capturesCooperative = true;
  /// A call that waits for the device ends the recordings of all threads.
  bool waitingEndsCaptures = false;
  /// Held by who records a graph, and shared by calls that would end the recording.
  static std::shared_mutex captures;
};

class DriverDevice : public Device {
public:
  /// Picks the variant for the device out of a bundle.
  using Match = std::function<Expected<const Variant *>(const Bundle &)>;

  DriverDevice(DeviceProperties properties, Driver driver, Match match, const DeviceOptions &options);
  ~DriverDevice() override;

  std::string description() const override { return facts.description; }
  DeviceProperties properties() const override { return facts; }
  Expected<std::unique_ptr<Buffer>> allocate(size_t bytes) override;
  Expected<std::unique_ptr<Buffer>> wrap(void *pointer, size_t bytes) override;
  Expected<std::unique_ptr<Module>> load(const Program &program) override;
  Expected<std::unique_ptr<Stream>> createStream() override;
  Expected<std::unique_ptr<Stream>> wrapStream(void *native) override;
  Expected<std::unique_ptr<Stream>> createDefaultStream() override;
  Expected<std::unique_ptr<Event>> createEvent() override;
  Expected<std::unique_ptr<Graph>> createGraph() override;
  Error synchronize() override;
  void *nativeContext() const override { return driver.context; }

private:
  DeviceProperties facts;
  Driver driver;
  Match match;
  DeviceOptions options;
};

} // namespace qd::rt

#endif // QD_RUNTIME_DRIVER_H
