// Buffers, modules and launches through a CUDA or HIP driver.
#include "runtime/Driver.h"
#include "runtime/Backends.h"
#include "runtime/DriverStream.h"

#include <atomic>
#include <cstring>

namespace qd::rt {

namespace {

/// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, and HIP's alike.
constexpr int maxDynamicSharedAttribute = 8;
/// Dynamic shared memory that needs no attribute.
constexpr uint32_t defaultSharedBytes = 48 << 10;

class DriverBuffer : public Buffer {
public:
  /// Memory that is `owned` is freed with the buffer.
  DriverBuffer(const Driver &driver, Driver::Address address, size_t bytes, bool owned)
      : Buffer(bytes, &driver), driver(driver), memory(address), owned(owned) {}
  ~DriverBuffer() override {
    if (!owned)
      return;
    driver.enter();
    driver.memFree(memory);
  }
  uint64_t address() const override { return memory; }

protected:
  Error doUpload(const void *data, size_t bytes, size_t offset) override {
    // The driver may return when it has read the data; streams that do not wait for the default one would not see it.
    return run("copy to the device", [&] { return driver.copyToDevice(memory + offset, data, bytes); });
  }
  Error doDownload(void *data, size_t bytes, size_t offset) override {
    return driverStatus(driver, "copy from the device",
                        driver.runWaiting([&] { return driver.copyToHost(data, memory + offset, bytes); }));
  }
  Error doFill(uint8_t value, size_t bytes, size_t offset) override {
    return run("fill memory of the device", [&] { return driver.fill(memory + offset, value, bytes); });
  }
  Error doCopyFrom(Buffer &source, size_t bytes, size_t offset, size_t sourceOffset) override {
    return run("copy on the device", [&] {
      return driver.copyOnDevice(memory + offset, source.address() + sourceOffset, bytes);
    });
  }

private:
  /// Waits for what the driver need not have finished when the call returns.
  template <typename Call> Error run(const char *what, Call &&call) {
    return driverStatus(driver, what, driver.runWaiting([&] {
      int code = call();
      return code ? code : driver.streamSynchronize(nullptr);
    }));
  }

  const Driver &driver;
  Driver::Address memory;
  bool owned;
};

class DriverModule : public Module {
public:
  DriverModule(const Driver &driver, void *handle, Interface interface, LaunchLimits limits,
               const std::string &device, std::string warnings)
      : Module(std::move(interface), limits, device, &driver, /*takesPointers=*/true), driver(driver), device(device),
        handle(handle) {
    moduleWarnings = std::move(warnings);
  }
  ~DriverModule() override {
    // Kernels of it may be under way on streams.
    driver.runWaiting([&] { return driver.synchronize(); });
    driver.moduleUnload(handle);
  }

protected:
  Expected<std::unique_ptr<Launch>> doPrepare(const Kernel &kernel, Grid grid,
                                              const std::vector<Argument> &arguments) override {
    auto function = findFunction(kernel);
    if (!function)
      return function.error();
    auto check = [this, &kernel](Grid grid) {
      return kernel.cooperative ? checkCooperative(kernel, grid) : Error::success();
    };
    if (Error error = check(grid))
      return error;
    return std::unique_ptr<Launch>(new DriverLaunch(driver, *this, kernel, *function, check, grid, arguments));
  }

  Expected<double> doLaunch(const Kernel &kernel, Grid grid,
                            const std::vector<Argument> &arguments) override {
    auto launch = doPrepare(kernel, grid, arguments);
    if (!launch)
      return launch.error();
    auto failed = [&](int code) { return failure(kernel, code); };
    DriverEvent start(driver), end(driver);
    if (int code = start.create())
      return failed(code);
    if (int code = end.create())
      return failed(code);
    // On the default stream, which begins after the others.
    if (int code = driver.eventRecord(start.handle, nullptr))
      return failed(code);
    int code = static_cast<DriverLaunch &>(**launch).enqueue(nullptr);
    if (code)
      return failed(code);
    if ((code = driver.eventRecord(end.handle, nullptr)) || (code = driver.eventSynchronize(end.handle)))
      return failed(code);
    float milliseconds = 0;
    if ((code = driver.eventElapsed(&milliseconds, start.handle, end.handle)))
      return failed(code);
    return milliseconds / 1e3;
  }

  Expected<Occupancy> findOccupancy(const Kernel &kernel) override {
    auto function = findFunction(kernel);
    if (!function)
      return function.error();
    if (!driver.occupancy || !driver.multiprocessors)
      return Module::findOccupancy(kernel);
    int blocks = 0;
    if (int code = driver.occupancy(&blocks, *function, static_cast<int>(kernel.blockThreads()),
                                    kernel.dynamicSharedBytes))
      return failure(kernel, code);
    return Occupancy{static_cast<uint64_t>(blocks), driver.multiprocessors};
  }

private:
  Error failure(const Kernel &kernel, int code) {
    return fail("kernel '", kernel.name, "' failed on ", device, ": ", driver.statusText(code));
  }

  /// The kernel, with the shared memory that its launches will ask for.
  Expected<void *> findFunction(const Kernel &kernel) {
    if (Error error = driver.makeUsable())
      return error;
    void *function = nullptr;
    if (int code = driver.moduleGetFunction(&function, handle, kernel.name.c_str()))
      return fail("the ", device, " module has no kernel '", kernel.name, "': ", driver.statusText(code));
    if (kernel.dynamicSharedBytes > defaultSharedBytes && driver.functionSetAttribute)
      if (int code = driver.functionSetAttribute(function, maxDynamicSharedAttribute,
                                                 static_cast<int>(kernel.dynamicSharedBytes)))
        return failure(kernel, code);
    return function;
  }

  /// Blocks that wait for each other all run at once, or for ever.
  Error checkCooperative(const Kernel &kernel, Grid grid) {
    if (!driver.launchCooperative)
      return fail("kernel '", kernel.name, "' needs a cooperative launch, which the driver of ", device, " lacks");
    auto most = findOccupancy(kernel);
    uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z;
    // What the driver does not tell, its cooperative launch checks for itself.
    if (most && blocks > most->total())
      return refuse("the grid has ", blocks, " blocks, ", device, " runs at most ", most->total(), " of kernel '",
                  kernel.name, "' at once, which waits for its whole grid");
    return Error::success();
  }

  const Driver &driver;
  std::string device;
  void *handle;
};

} // namespace

DriverDevice::DriverDevice(DeviceProperties properties, Driver driver, Match match, const DeviceOptions &options)
    : Device(properties.name), facts(std::move(properties)), driver(std::move(driver)), match(std::move(match)),
      options(options) {
  facts.isGpu = facts.takesPointers = true;
  static std::atomic<uint64_t> devices{0};
  this->driver.token = ++devices;
  this->driver.label = facts.name;
}

DriverDevice::~DriverDevice() {
  if (driver.release)
    driver.release();
}

Expected<std::unique_ptr<Buffer>> DriverDevice::allocate(size_t bytes) {
  if (Error error = driver.makeUsable())
    return error;
  Driver::Address address = 0;
  // Drivers refuse empty allocations; a kernel may still be given an empty buffer.
  if (int code = driver.memAlloc(&address, bytes ? bytes : 1))
    return fail(name(), " has no memory for a buffer of ", bytes, " bytes: ", driver.statusText(code));
  return std::unique_ptr<Buffer>(new DriverBuffer(driver, address, bytes, /*owned=*/true));
}

Expected<std::unique_ptr<Buffer>> DriverDevice::wrap(void *pointer, size_t bytes) {
  if (!pointer && bytes)
    return refuse("a buffer of ", bytes, " bytes at a null pointer");
  return std::unique_ptr<Buffer>(
      new DriverBuffer(driver, reinterpret_cast<Driver::Address>(pointer), bytes, /*owned=*/false));
}

Expected<std::unique_ptr<Stream>> DriverDevice::createStream() {
  void *handle = nullptr;
  // Without flags it waits for the default stream and the default stream for it.
  if (int code = driver.run([&] { return driver.streamCreate(&handle, 0); }))
    return driverStatus(driver, "create a stream", code);
  return std::unique_ptr<Stream>(new DriverStream(driver, handle, /*owned=*/true));
}

Expected<std::unique_ptr<Stream>> DriverDevice::wrapStream(void *native) {
  return std::unique_ptr<Stream>(new DriverStream(driver, native, /*owned=*/false));
}

Expected<std::unique_ptr<Stream>> DriverDevice::createDefaultStream() { return wrapStream(nullptr); }

Expected<std::unique_ptr<Event>> DriverDevice::createEvent() {
  auto event = std::make_unique<DriverEvent>(driver);
  if (int code = driver.run([&] { return event->create(); }))
    return driverStatus(driver, "create an event", code);
  return std::unique_ptr<Event>(std::move(event));
}

Expected<std::unique_ptr<Graph>> DriverDevice::createGraph() {
  return std::unique_ptr<Graph>(new DriverGraph(driver));
}

Error DriverDevice::synchronize() {
  return driverStatus(driver, "wait for the device", driver.runWaiting([&] { return driver.synchronize(); }));
}

Expected<std::unique_ptr<Module>> DriverDevice::load(const Program &program) {
  std::string warnings;
  auto variant =
      variantFor(program,
                 {name(), facts.target, options.subgroupSize, options, match},
                 warnings);
  if (!variant)
    return variant.error();

  // PTX is text: it must end in NUL.
  std::vector<uint8_t> image = std::move(variant->image);
  image.push_back(0);
  if (Error error = driver.makeUsable())
    return error;
  void *handle = nullptr;
  char log[16384] = "";
  int jitOptions[3] = {driver.errorLogOption, driver.errorLogSizeOption, driver.lineInfoOption};
  void *values[3] = {log, reinterpret_cast<void *>(sizeof log), reinterpret_cast<void *>(1)};
  unsigned numOptions = driver.errorLogOption ? 2 : 0;
  // Lines in PTX, which only code compiled for debuggers has, become tables where that is asked for.
  if (driver.lineInfoOption && std::strstr(reinterpret_cast<const char *>(image.data()), "\t.loc\t"))
    numOptions = 3;
  int code = driver.moduleLoad(&handle, image.data(), numOptions, jitOptions, values);
  if (code) {
    log[sizeof log - 1] = 0;
    return fail("the driver of ", name(), " refuses the code for ", variant->arch, " in '", program.name,
                "': ", driver.statusText(code), log[0] ? ":\n" : "", log);
  }
  return std::unique_ptr<Module>(
      new DriverModule(driver, handle, std::move(variant->interface), facts.limits, name(), std::move(warnings)));
}

} // namespace qd::rt
