// Devices, modules, buffers and launches: the runtime's C++ interface.
//
//   auto device = Device::open("vulkan");
//   auto module = (*device)->load(program);
//   auto x = (*device)->allocate(4096);
//   auto seconds = (*module)->launch("scale", {16, 1, 1}, {Argument::buffer(**x, {ScalarType::F32}, 1024),
//                                                          Argument::of(2.0f)});
//
// Objects are used by one thread at a time. A module or buffer must not outlive its device. Launches are
// checked against the kernel's interface before anything reaches a driver, and have finished on return.
#ifndef QD_RUNTIME_DEVICE_H
#define QD_RUNTIME_DEVICE_H

#include "runtime/Bundle.h"

#include <memory>

namespace qd::rt {

struct Grid {
  uint32_t x = 1, y = 1, z = 1;
};

/// Memory of a device.
class Buffer {
public:
  explicit Buffer(size_t bytes) : numBytes(bytes) {}
  virtual ~Buffer() = default;
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  size_t bytes() const { return numBytes; }
  /// Copies between host memory and the buffer's first `bytes` bytes.
  Error upload(const void *data, size_t bytes);
  Error download(void *data, size_t bytes);

protected:
  virtual Error doUpload(const void *data, size_t bytes) = 0;
  virtual Error doDownload(void *data, size_t bytes) = 0;

private:
  size_t numBytes;
};

/// A typed kernel argument.
struct Argument {
  Parameter::Kind kind = Parameter::Kind::Scalar;
  ElementType type;
  uint64_t bits = 0;
  Buffer *memory = nullptr;
  /// A buffer's elements, and their number by dimension: rows first, 1 for dimensions that it has not.
  int64_t count = 0;
  std::array<int64_t, 3> extents = {1, 1, 1};
  unsigned rank = 1;

  static Argument scalar(ScalarType type, uint64_t bits);
  static Argument buffer(Buffer &buffer, ElementType type, int64_t count);
  /// Of 1 to 3 dimensions, row by row.
  static Argument buffer(Buffer &buffer, ElementType type, const std::vector<int64_t> &shape);
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
  /// The interpreter's checks, comma-separated; empty for its default set.
  std::string checks;
  /// Block sizes of resizable kernels, "sum=128,scan=32x8": programs are compiled for them where they are loaded.
  std::string blocks;
};

/// The largest grid and block that a device launches.
struct LaunchLimits {
  std::array<uint64_t, 3> grid = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
  uint32_t blockThreads = 1024;
  uint64_t sharedBytes = UINT64_MAX;
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

  /// Runs a kernel to its end and returns the seconds that the device took.
  Expected<double> launch(std::string_view kernel, Grid grid, const std::vector<Argument> &arguments);
  /// Fails on devices that do not tell.
  Expected<Occupancy> occupancy(std::string_view kernel);

protected:
  Module(Interface interface, LaunchLimits limits, std::string device)
      : moduleInterface(std::move(interface)), limits(limits), deviceName(std::move(device)) {}
  /// The arguments fit the kernel's parameters and the grid fits the limits.
  virtual Expected<double> doLaunch(const Kernel &kernel, Grid grid,
                                    const std::vector<Argument> &arguments) = 0;
  virtual Expected<Occupancy> findOccupancy(const Kernel &kernel);

  std::string moduleWarnings;

private:
  Interface moduleInterface;
  LaunchLimits limits;
  std::string deviceName;
};

class Device {
public:
  virtual ~Device() = default;

  /// Opens "cpu", "interp", "sim:CHIP", "cuda", "hip" or "vulkan", the last three with ":N" for other than
  /// the default device.
  static Expected<std::unique_ptr<Device>> open(const std::string &name, const DeviceOptions &options = {});

  const std::string &name() const { return deviceName; }
  /// One line: the chip and what matters of it.
  virtual std::string description() const = 0;
  virtual Expected<std::unique_ptr<Buffer>> allocate(size_t bytes) = 0;
  virtual Expected<std::unique_ptr<Module>> load(const Program &program) = 0;

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
};
std::vector<DeviceEntry> listDevices();

/// Whether the arguments fit the kernel, by number, kind, type and size.
Error checkArguments(const Kernel &kernel, const std::vector<Argument> &arguments);
Error checkGrid(const Kernel &kernel, Grid grid, const LaunchLimits &limits, const std::string &device);

} // namespace qd::rt

#endif // QD_RUNTIME_DEVICE_H
