// Buffers, modules and launches through a CUDA or HIP driver. Parameters are passed in argument order: a
// scalar's value, a buffer's address, and after it the element count where the kernel takes one.
#include "runtime/Driver.h"
#include "runtime/Backends.h"

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
    driver.makeCurrent();
    driver.memFree(memory);
  }
  uint64_t address() const override { return memory; }

protected:
  Error doUpload(const void *data, size_t bytes, size_t offset) override {
    driver.makeCurrent();
    return status("copy to the device", driver.copyToDevice(memory + offset, data, bytes));
  }
  Error doDownload(void *data, size_t bytes, size_t offset) override {
    driver.makeCurrent();
    return status("copy from the device", driver.copyToHost(data, memory + offset, bytes));
  }
  Error doFill(uint8_t value, size_t bytes, size_t offset) override {
    driver.makeCurrent();
    if (int code = driver.fill(memory + offset, value, bytes))
      return status("fill memory of the device", code);
    // The driver does not wait for it.
    return status("fill memory of the device", driver.streamSynchronize(nullptr));
  }
  Error doCopyFrom(Buffer &source, size_t bytes, size_t offset, size_t sourceOffset) override {
    driver.makeCurrent();
    if (int code = driver.copyOnDevice(memory + offset, source.address() + sourceOffset, bytes))
      return status("copy on the device", code);
    return status("copy on the device", driver.streamSynchronize(nullptr));
  }

private:
  Error status(const char *what, int code) {
    return code ? fail("cannot ", what, ": ", driver.statusText(code)) : Error::success();
  }

  const Driver &driver;
  Driver::Address memory;
  bool owned;
};

/// An event that is destroyed with its scope.
class Event {
public:
  explicit Event(const Driver &driver) : driver(driver) {}
  ~Event() {
    if (handle)
      driver.eventDestroy(handle);
  }
  int create() { return driver.eventCreate(&handle, 0); }
  void *handle = nullptr;

private:
  const Driver &driver;
};

class DriverModule : public Module {
public:
  DriverModule(const Driver &driver, void *handle, Interface interface, LaunchLimits limits,
               const std::string &device, std::string warnings)
      : Module(std::move(interface), limits, device, &driver, /*takesPointers=*/true), driver(driver), device(device), handle(handle) {
    moduleWarnings = std::move(warnings);
  }
  ~DriverModule() override {
    driver.makeCurrent();
    driver.moduleUnload(handle);
  }

protected:
  Expected<double> doLaunch(const Kernel &kernel, Grid grid,
                            const std::vector<Argument> &arguments) override {
    auto found = findFunction(kernel);
    if (!found)
      return found.error();
    void *function = *found;
    auto failed = [&](int code) { return failure(kernel, code); };
    if (kernel.cooperative)
      if (Error error = checkResidency(kernel, grid))
        return error;

    // Every value lies little-endian in a slot of its own; the driver reads as many bytes as the parameter
    // has.
    std::vector<uint64_t> slots;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!kernel.parameters[i].isBuffer()) {
        slots.push_back(arguments[i].bits);
        continue;
      }
      slots.push_back(arguments[i].begin());
      if (kernel.parameters[i].hasSize)
        for (unsigned dim = 0; dim < kernel.parameters[i].rank; ++dim)
          slots.push_back(static_cast<uint64_t>(arguments[i].extents[dim]));
    }
    std::vector<void *> parameters;
    for (uint64_t &slot : slots)
      parameters.push_back(&slot);

    Event start(driver), end(driver);
    if (int code = start.create())
      return failed(code);
    if (int code = end.create())
      return failed(code);
    if (int code = driver.eventRecord(start.handle, nullptr))
      return failed(code);
    if (kernel.cooperative && !driver.launchCooperative)
      return fail("kernel '", kernel.name, "' needs a cooperative launch, which the driver of ", device,
                  " lacks");
    int code =
        kernel.cooperative
            ? driver.launchCooperative(function, grid.x, grid.y, grid.z, kernel.block[0], kernel.block[1],
                                       kernel.block[2], kernel.dynamicSharedBytes, nullptr, parameters.data())
            : driver.launch(function, grid.x, grid.y, grid.z, kernel.block[0], kernel.block[1],
                            kernel.block[2], kernel.dynamicSharedBytes, nullptr, parameters.data(), nullptr);
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
    driver.makeCurrent();
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
  Error checkResidency(const Kernel &kernel, Grid grid) {
    auto most = findOccupancy(kernel);
    uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z;
    // What the driver does not tell, its cooperative launch checks for itself.
    if (most && blocks > most->total())
      return fail("the grid has ", blocks, " blocks, ", device, " runs at most ", most->total(), " of kernel '",
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
}

DriverDevice::~DriverDevice() {
  if (driver.release)
    driver.release();
}

Expected<std::unique_ptr<Buffer>> DriverDevice::allocate(size_t bytes) {
  driver.makeCurrent();
  Driver::Address address = 0;
  // Drivers refuse empty allocations; a kernel may still be given an empty buffer.
  if (int code = driver.memAlloc(&address, bytes ? bytes : 1))
    return fail(name(), " has no memory for a buffer of ", bytes, " bytes: ", driver.statusText(code));
  return std::unique_ptr<Buffer>(new DriverBuffer(driver, address, bytes, /*owned=*/true));
}

Expected<std::unique_ptr<Buffer>> DriverDevice::wrap(void *pointer, size_t bytes) {
  if (!pointer && bytes)
    return fail("a buffer of ", bytes, " bytes at a null pointer");
  return std::unique_ptr<Buffer>(
      new DriverBuffer(driver, reinterpret_cast<Driver::Address>(pointer), bytes, /*owned=*/false));
}

Expected<std::unique_ptr<Module>> DriverDevice::load(const Program &program) {
  std::string warnings;
  auto variant =
      variantFor(program, {name(), facts.target, options.subgroupSize, options.optLevel, options.blocks, match}, warnings);
  if (!variant)
    return variant.error();

  // PTX is text: it must end in NUL.
  std::vector<uint8_t> image = std::move(variant->image);
  image.push_back(0);
  driver.makeCurrent();
  void *handle = nullptr;
  char log[16384] = "";
  int jitOptions[2] = {driver.errorLogOption, driver.errorLogSizeOption};
  void *values[2] = {log, reinterpret_cast<void *>(sizeof log)};
  int code = driver.moduleLoad(&handle, image.data(), driver.errorLogOption ? 2 : 0, jitOptions, values);
  if (code) {
    log[sizeof log - 1] = 0;
    return fail("the driver of ", name(), " refuses the code for ", variant->arch, " in '", program.name,
                "': ", driver.statusText(code), log[0] ? ":\n" : "", log);
  }
  return std::unique_ptr<Module>(
      new DriverModule(driver, handle, std::move(variant->interface), facts.limits, name(), std::move(warnings)));
}

} // namespace qd::rt
