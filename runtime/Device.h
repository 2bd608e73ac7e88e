// Devices, modules, buffers and launches: the runtime's C++ interface.
//
//   auto device = Device::open("vulkan");
//   auto module = (*device)->load(program);
//   auto x = (*device)->allocate(4096);
//   auto seconds = (*module)->launch("scale", {16, 1, 1}, {Argument::buffer(**x, {ScalarType::F32}, 1024),
//                                                          Argument::of(2.0f)});
//
// An object is used by one thread at a time; threads may use different objects of one device. Nothing outlives its
// device. Launches are checked against the kernel's interface before anything reaches a driver. Buffers' own functions
// and Module::launch begin after all work that was given to the device's streams, and have finished on return.
#ifndef QD_RUNTIME_DEVICE_H
#define QD_RUNTIME_DEVICE_H

#include "runtime/Bundle.h"

#include <memory>

namespace qd::rt {

class Event;
class Graph;
class Launch;
class Stream;

struct Grid {
  uint32_t x = 1, y = 1, z = 1;
};

/// What all objects of an open device point at, by which they are told from those of others.
struct Identity {
  /// The device's name.
  std::string label;
};

/// "cuda:1, expected one of cuda:0", for objects of two devices.
std::string otherDevice(const Identity *found, const Identity *expected);

/// Memory of a device.
class Buffer {
public:
  explicit Buffer(size_t bytes, const Identity *owner = nullptr) : numBytes(bytes), identity(owner) {}
  virtual ~Buffer() = default;
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  size_t bytes() const { return numBytes; }
  const Identity *owner() const { return identity; }
  /// Copies between host memory and the `bytes` bytes of the buffer from byte `offset` on.
  Error upload(const void *data, size_t bytes, size_t offset = 0);
  Error download(void *data, size_t bytes, size_t offset = 0);
  /// Sets bytes to one value.
  Error fill(uint8_t value, size_t bytes, size_t offset = 0);
  /// Copies from another buffer, which may be of another device. Ranges of one buffer must not overlap.
  Error copyFrom(Buffer &source, size_t bytes, size_t offset = 0, size_t sourceOffset = 0);
  /// Whether `bytes` bytes from `offset` on lie inside; `what` begins the sentence: "a copy".
  Error checkRange(const char *what, size_t bytes, size_t offset) const;
  /// Whether copyFrom may be asked for.
  Error checkCopy(const Buffer &source, size_t bytes, size_t offset, size_t sourceOffset) const;

  /// Where kernels see it: memory of the host for host devices, of the GPU for cuda and hip; 0 where the device has
  /// no addresses.
  virtual uint64_t address() const { return 0; }
  /// Where the host sees it; null where it does not. Valid while no work on the buffer is under way.
  virtual void *mapped() const { return nullptr; }

protected:
  virtual Error doUpload(const void *data, size_t bytes, size_t offset) = 0;
  virtual Error doDownload(void *data, size_t bytes, size_t offset) = 0;
  /// By uploads, where the device has nothing better.
  virtual Error doFill(uint8_t value, size_t bytes, size_t offset);
  /// From a buffer of the same device; through the host where the device has nothing better.
  virtual Error doCopyFrom(Buffer &source, size_t bytes, size_t offset, size_t sourceOffset);

private:
  size_t numBytes;
  const Identity *identity;
};

/// A typed kernel argument.
struct Argument {
  Parameter::Kind kind = Parameter::Kind::Scalar;
  ElementType type;
  uint64_t bits = 0;
  /// A buffer's memory: from byte `offset` of `memory` on or, where that is null, at `address`.
  Buffer *memory = nullptr;
  size_t offset = 0;
  uint64_t address = 0;
  /// A buffer's elements, and their number by dimension: rows first, 1 for dimensions that it has not.
  int64_t count = 0;
  std::array<int64_t, 3> extents = {1, 1, 1};
  unsigned rank = 1;

  /// Where a buffer begins; 0 where the device has no addresses.
  uint64_t begin() const { return memory ? (memory->address() ? memory->address() + offset : 0) : address; }
  /// What a buffer's elements take.
  uint64_t byteCount() const { return static_cast<uint64_t>(count) * type.bytes(); }

  /// A buffer's elements by dimension: also `count`, which is negative where the shape is not one.
  void setShape(const int64_t *shape, size_t dimensions);

  static Argument scalar(ScalarType type, uint64_t bits);
  static Argument buffer(Buffer &buffer, ElementType type, int64_t count);
  /// Of 1 to 3 dimensions, row by row.
  static Argument buffer(Buffer &buffer, ElementType type, const std::vector<int64_t> &shape);
  /// Memory that the caller vouches for: the host's on host devices, the GPU's on cuda and hip.
  static Argument pointer(uint64_t address, ElementType type, const std::vector<int64_t> &shape);
  static Argument of(int32_t value) { return scalar(ScalarType::I32, static_cast<uint32_t>(value)); }
  static Argument of(int64_t value) { return scalar(ScalarType::I64, static_cast<uint64_t>(value)); }
  static Argument of(float value) { return scalar(ScalarType::F32, floatBits(ScalarType::F32, value)); }
  static Argument of(double value) { return scalar(ScalarType::F64, floatBits(ScalarType::F64, value)); }
};

/// What a device runs: a bundle, or QIR text or bytecode.
struct Program {
  std::vector<uint8_t> bytes;
  /// For messages: a file's name.
  std::string name = "<memory>";
};

struct DeviceOptions {
  /// Lanes; 0 for the device's default.
  uint32_t subgroupSize = 0;
  uint32_t optLevel = 2;
  /// Threads of the cpu device; 0 for one a processor.
  uint32_t threads = 0;
  static constexpr uint32_t mostThreads = 4096;
  /// The interpreter's checks, comma-separated; empty for its default set.
  std::string checks;
  /// Block sizes of resizable kernels, "sum=128,scan=32x8": programs are compiled for them where they are loaded.
  std::string blocks;
  /// Scalar arguments that are constants, "n=1024,scan.step=2": as `blocks`. They leave the interface.
  std::string bind;
  /// Milliseconds that a launch may take on host devices; 0 for no limit.
  uint32_t launchTimeLimit = 0;
  /// Code is made in a child process, in at most so many milliseconds and MiB; 0 for no limit.
  bool isolate = false;
  uint32_t compileTimeLimit = 0, compileMemoryLimit = 0;
  /// As in qdrtDeviceOptions.
  int (*interrupt)(void *) = nullptr;
  void *interruptContext = nullptr;
  /// Compiles with the source's lines.
  bool debug = false;
};

/// The largest grid and block that a device launches.
struct LaunchLimits {
  std::array<uint64_t, 3> grid = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
  uint32_t blockThreads = 1024;
  uint64_t sharedBytes = UINT64_MAX;
  /// Threads of a grid in x.
  uint64_t gridThreads = UINT64_MAX;
};

/// What a device is. Numbers that it does not tell are 0.
struct DeviceProperties {
  std::string name, description;
  /// What the compiler is asked for: "nvptx:sm_90"; "" for host devices.
  std::string target;
  uint32_t defaultSubgroup = 0, smallestSubgroup = 0, largestSubgroup = 0;
  uint32_t multiprocessors = 0;
  uint64_t memoryBytes = 0;
  LaunchLimits limits;
  bool isGpu = false;
  /// Kernels take addresses of the caller's: Device::wrap and Argument::pointer.
  bool takesPointers = false;
  /// Buffers are memory that the host sees.
  bool isHostMemory = false;
};

/// How many blocks of a kernel run at the same time.
struct Occupancy {
  /// On one multiprocessor, as far as threads, registers and shared memory allow.
  uint64_t blocks = 0;
  uint64_t multiprocessors = 0;

  uint64_t total() const { return blocks * multiprocessors; }
};

class Module {
public:
  virtual ~Module() = default;
  const Interface &interface() const { return moduleInterface; }
  /// What the compiler had to say; "" when nothing.
  const std::string &warnings() const { return moduleWarnings; }
  const std::string &device() const { return deviceName; }
  const Identity *owner() const { return identity; }

  /// The kernel of that name.
  Expected<const Kernel *> find(std::string_view kernel) const;
  /// The same, if the arguments are the device's and fit it, and the grid fits the device.
  Expected<const Kernel *> check(std::string_view kernel, Grid grid, const std::vector<Argument> &arguments) const;
  /// Runs a kernel to its end and returns the seconds that the device took.
  Expected<double> launch(std::string_view kernel, Grid grid, const std::vector<Argument> &arguments);
  /// The same, checked and bound once, to be given to streams (runtime/Stream.h). The launch must not outlive the
  /// module.
  Expected<std::unique_ptr<Launch>> prepare(std::string_view kernel, Grid grid, const std::vector<Argument> &arguments);
  /// Fails on devices that do not tell.
  Expected<Occupancy> occupancy(std::string_view kernel);

protected:
  Module(Interface interface, LaunchLimits limits, std::string device, const Identity *owner, bool takesPointers)
      : moduleInterface(std::move(interface)), limits(limits), deviceName(std::move(device)), identity(owner),
        takesPointers(takesPointers) {}
  /// The arguments fit the kernel's parameters and the grid fits the limits.
  virtual Expected<double> doLaunch(const Kernel &kernel, Grid grid,
                                    const std::vector<Argument> &arguments) = 0;
  virtual Expected<std::unique_ptr<Launch>> doPrepare(const Kernel &kernel, Grid grid,
                                                      const std::vector<Argument> &arguments) = 0;
  virtual Expected<Occupancy> findOccupancy(const Kernel &kernel);

  std::string moduleWarnings;

private:
  Interface moduleInterface;
  LaunchLimits limits;
  std::string deviceName;
  const Identity *identity;
  bool takesPointers;
};

class Device {
public:
  virtual ~Device() = default;

  /// Opens "cpu", "interp", "sim:CHIP", "cuda", "hip" or "vulkan", the last three with ":N" for other than
  /// the default device, or "best", which is what bestDevice says.
  static Expected<std::unique_ptr<Device>> open(const std::string &name, const DeviceOptions &options = {});

  const std::string &name() const { return deviceName; }
  /// One line: the chip and what matters of it.
  virtual std::string description() const = 0;
  virtual DeviceProperties properties() const = 0;
  virtual Expected<std::unique_ptr<Buffer>> allocate(size_t bytes) = 0;
  /// A buffer of memory that stays the caller's and must outlive it: the host's on host devices, the GPU's on cuda
  /// and hip. Vulkan has no such memory.
  virtual Expected<std::unique_ptr<Buffer>> wrap(void *pointer, size_t bytes);
  virtual Expected<std::unique_ptr<Module>> load(const Program &program) = 0;

  // See runtime/Stream.h.
  virtual Expected<std::unique_ptr<Stream>> createStream() = 0;
  /// A CUstream or hipStream_t of this process, which stays the caller's; null is the driver's default stream.
  virtual Expected<std::unique_ptr<Stream>> wrapStream(void *native);
  /// The driver's default stream, where it has one.
  virtual Expected<std::unique_ptr<Stream>> createDefaultStream();
  virtual Expected<std::unique_ptr<Event>> createEvent() = 0;
  virtual Expected<std::unique_ptr<Graph>> createGraph() = 0;
  /// Waits for all work of all streams of the device.
  virtual Error synchronize() = 0;
  /// The CUcontext that the device's memory and streams belong to: the primary one; null on other devices.
  virtual void *nativeContext() const { return nullptr; }

protected:
  explicit Device(std::string name) : deviceName(std::move(name)) {}

private:
  std::string deviceName;
};

/// A line of the list of devices: what it is, or why there is none.
struct DeviceEntry {
  std::string name;
  bool present;
  std::string text;
  bool isGpu = false;
};
std::vector<DeviceEntry> listDevices();
/// The first that is present of: an NVIDIA GPU, an AMD GPU, another GPU by Vulkan, cpu, Vulkan on a processor.
Expected<std::string> bestDevice();

/// Whether the arguments fit the kernel, by number, kind, type and size.
Error checkArguments(const Kernel &kernel, const std::vector<Argument> &arguments);
Error checkGrid(const Kernel &kernel, Grid grid, const LaunchLimits &limits, const std::string &device);

} // namespace qd::rt

#endif // QD_RUNTIME_DEVICE_H
