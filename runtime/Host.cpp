// The devices of the compiler library: cpu, interp and sim. They take QIR, so a bundle must hold its own.
// Streams carry work out before they return. Buffers are host memory: the device's own, or the caller's where it is
// wrapped.
#include "runtime/Backends.h"
#include "runtime/Compiler.h"
#include "runtime/Stream.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#include <unistd.h>

namespace qd::rt {

namespace {

/// No kernel can ask for more.
constexpr std::align_val_t bufferAlignment{256};

class HostBuffer : public Buffer {
public:
  /// Memory that is `owned` is freed with the buffer.
  HostBuffer(const Identity *owner, uint8_t *memory, size_t bytes, bool owned)
      : Buffer(bytes, owner), memory(memory), owned(owned) {}
  ~HostBuffer() override {
    if (owned)
      ::operator delete(memory, bufferAlignment);
  }
  uint64_t address() const override { return reinterpret_cast<uint64_t>(memory); }
  void *mapped() const override { return memory; }

protected:
  Error doUpload(const void *data, size_t bytes, size_t offset) override {
    std::memmove(memory + offset, data, bytes);
    return Error::success();
  }
  Error doDownload(void *data, size_t bytes, size_t offset) override {
    std::memmove(data, memory + offset, bytes);
    return Error::success();
  }
  Error doFill(uint8_t value, size_t bytes, size_t offset) override {
    std::memset(memory + offset, value, bytes);
    return Error::success();
  }
  Error doCopyFrom(Buffer &source, size_t bytes, size_t offset, size_t sourceOffset) override {
    std::memmove(memory + offset, static_cast<uint8_t *>(source.mapped()) + sourceOffset, bytes);
    return Error::success();
  }

private:
  uint8_t *memory;
  bool owned;
};

std::vector<qdcHostArg> hostArguments(const std::vector<Argument> &arguments) {
  std::vector<qdcHostArg> result;
  for (const Argument &argument : arguments) {
    qdcHostArg arg = {};
    if (argument.kind == Parameter::Kind::Buffer) {
      arg.kind = QDC_ARG_BUFFER;
      arg.data = reinterpret_cast<void *>(argument.begin());
      arg.count = argument.count;
      std::copy(argument.extents.begin(), argument.extents.end(), arg.extents);
    } else {
      arg.kind = QDC_ARG_SCALAR;
      arg.bits = argument.bits;
    }
    result.push_back(arg);
  }
  return result;
}

/// Blocks are numbered by an i32; the simulator takes no more than the drivers of its chips do.
LaunchLimits hostLimits(const std::string &device) {
  LaunchLimits limits;
  limits.grid.fill(uint64_t(1) << 31);
  if (device.rfind("sim:sm_", 0) == 0)
    limits.grid = {INT32_MAX, 65535, 65535};
  if (device.rfind("sim:gfx", 0) == 0) {
    limits.grid = {INT32_MAX, 65536, 65536};
    limits.gridThreads = UINT32_MAX;
  }
  return limits;
}

class HostModule : public Module {
public:
  HostModule(const Identity *owner, const Compiler &compiler, qdcHostModule handle, Interface interface,
             const std::string &device, std::string warnings, uint32_t threads)
      : Module(std::move(interface), hostLimits(device), device, owner, /*takesPointers=*/true), compiler(compiler),
        handle(handle), threads(threads) {
    moduleWarnings = std::move(warnings);
  }
  ~HostModule() override { compiler.hostUnload(handle); }

  /// Launches of one module wait for each other.
  Expected<double> run(const Kernel &kernel, Grid grid, const std::vector<qdcHostArg> &args) {
    const uint32_t extents[3] = {grid.x, grid.y, grid.z};
    char *diagnostics = nullptr;
    std::lock_guard<std::mutex> lock(mutex);
    auto start = std::chrono::steady_clock::now();
    int failed =
        compiler.hostLaunch(handle, kernel.name.c_str(), extents, args.data(), args.size(), &diagnostics);
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    std::string said = diagnostics ? diagnostics : "";
    if (diagnostics)
      compiler.freeString(diagnostics);
    if (failed)
      return fail("kernel '", kernel.name, "' failed on ", device(), said.empty() ? "" : ": ", said);
    moduleWarnings += said;
    return taken.count();
  }

protected:
  Expected<double> doLaunch(const Kernel &kernel, Grid grid,
                            const std::vector<Argument> &arguments) override {
    return run(kernel, grid, hostArguments(arguments));
  }
  Expected<std::unique_ptr<Launch>> doPrepare(const Kernel &kernel, Grid grid,
                                              const std::vector<Argument> &arguments) override;

  /// A processor carries out one block after the other.
  Expected<Occupancy> findOccupancy(const Kernel &kernel) override {
    if (device() != "cpu")
      return Module::findOccupancy(kernel);
    return Occupancy{1, threads ? threads : std::max(1u, std::thread::hardware_concurrency())};
  }

private:
  const Compiler &compiler;
  qdcHostModule handle;
  uint32_t threads;
  std::mutex mutex;
};

class HostLaunch : public Launch {
public:
  HostLaunch(HostModule &module, const Kernel &kernel, Grid grid, std::vector<Argument> arguments)
      : Launch(module, kernel, grid, std::move(arguments)), module(module), bound(hostArguments(this->arguments)) {}
  Error run() {
    auto seconds = module.run(kernel(), grid, bound);
    return seconds ? Error::success() : seconds.error();
  }

protected:
  Error bind() override {
    bound = hostArguments(arguments);
    return Error::success();
  }

private:
  HostModule &module;
  std::vector<qdcHostArg> bound;
};

Expected<std::unique_ptr<Launch>> HostModule::doPrepare(const Kernel &kernel, Grid grid,
                                                        const std::vector<Argument> &arguments) {
  return std::unique_ptr<Launch>(new HostLaunch(*this, kernel, grid, arguments));
}

/// The time at which it was recorded: by then all earlier work has finished.
class HostEvent : public Event {
public:
  using Event::Event;
  std::chrono::steady_clock::time_point time;

protected:
  Error doSynchronize() override { return Error::success(); }
  Expected<bool> doHasHappened() override { return true; }
  Expected<double> doSince(Event &start) override {
    return std::chrono::duration<double>(time - static_cast<HostEvent &>(start).time).count();
  }
};

/// Carries out what it is given before it returns.
class HostStream : public Stream {
public:
  using Stream::Stream;
  Error synchronize() override { return Error::success(); }
  Expected<bool> isFinished() override { return true; }

protected:
  Error doLaunch(Launch &launch) override { return static_cast<HostLaunch &>(launch).run(); }
  Error doUpload(Buffer &target, size_t offset, const void *data, size_t bytes) override {
    return target.upload(data, bytes, offset);
  }
  Error doDownload(Buffer &source, size_t offset, void *data, size_t bytes) override {
    return source.download(data, bytes, offset);
  }
  Error doCopy(Buffer &target, size_t offset, Buffer &source, size_t sourceOffset, size_t bytes) override {
    return target.copyFrom(source, bytes, offset, sourceOffset);
  }
  Error doFill(Buffer &target, size_t offset, uint8_t value, size_t bytes) override {
    return target.fill(value, bytes, offset);
  }
  Error doRecord(Event &event) override {
    static_cast<HostEvent &>(event).time = std::chrono::steady_clock::now();
    return Error::success();
  }
  Error doWait(Event &) override { return Error::success(); }
};

class HostDevice : public Device, private Identity {
public:
  HostDevice(const Compiler &compiler, const std::string &name, const DeviceOptions &options)
      : Device(name), Identity{name}, compiler(compiler), options(options) {}

  std::string description() const override { return "by " + compiler.path; }

  DeviceProperties properties() const override {
    DeviceProperties result;
    result.name = name();
    result.description = description();
    result.defaultSubgroup = result.smallestSubgroup = result.largestSubgroup = options.subgroupSize;
    if (name() == "cpu")
      result.multiprocessors = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
    result.memoryBytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
    result.limits = hostLimits(name());
    result.takesPointers = result.isHostMemory = true;
    return result;
  }

  Expected<std::unique_ptr<Buffer>> allocate(size_t bytes) override {
    // The allocator rounds up, which makes little of numbers near the largest.
    void *raw = bytes > PTRDIFF_MAX ? nullptr : ::operator new(bytes ? bytes : 1, bufferAlignment, std::nothrow);
    auto *memory = static_cast<uint8_t *>(raw);
    if (!memory)
      return fail("no host memory for a buffer of ", bytes, " bytes");
    return std::unique_ptr<Buffer>(new HostBuffer(this, memory, bytes, /*owned=*/true));
  }

  Expected<std::unique_ptr<Buffer>> wrap(void *pointer, size_t bytes) override {
    if (!pointer && bytes)
      return refuse("a buffer of ", bytes, " bytes at a null pointer");
    return std::unique_ptr<Buffer>(new HostBuffer(this, static_cast<uint8_t *>(pointer), bytes, /*owned=*/false));
  }

  Expected<std::unique_ptr<Stream>> createStream() override {
    return std::unique_ptr<Stream>(new HostStream(this));
  }
  Expected<std::unique_ptr<Event>> createEvent() override { return std::unique_ptr<Event>(new HostEvent(this)); }
  Expected<std::unique_ptr<Graph>> createGraph() override { return std::unique_ptr<Graph>(new Graph(this)); }
  Error synchronize() override { return Error::success(); }

  Expected<std::unique_ptr<Module>> load(const Program &program) override {
    std::vector<uint8_t> qir;
    const std::vector<uint8_t> *source = &program.bytes;
    if (isBundle(program.bytes.data(), program.bytes.size(), program.name)) {
      auto bundle = parseBundle(program.bytes.data(), program.bytes.size());
      if (!bundle)
        return fail("cannot load '", program.name, "': ", bundle.message());
      if (bundle->qir.empty())
        return fail("'", program.name, "' holds no QIR, which ", name(), " runs from; it holds ",
                    describeVariants(*bundle));
      qir = std::move(bundle->qir);
      source = &qir;
    }
    std::string said;
    qdcHostModule handle = compile(*source, program.name, options, said);
    if (!handle)
      return fail("'", program.name, "' does not compile for ", name(), said.empty() ? "" : ":\n", said);
    const char *json = compiler.hostInterface(handle);
    auto interface = parseInterface(json ? json : "");
    if (!interface) {
      compiler.hostUnload(handle);
      return interface.error();
    }
    return std::unique_ptr<Module>(
        new HostModule(this, compiler, handle, std::move(*interface), name(), std::move(said), options.threads));
  }

  /// Whether programs could be compiled for it: a chip, lanes and checks that do not exist are errors of the device's.
  Error check() {
    static constexpr std::string_view least = "qd.kernel @k() block(1) {\n  qd.return\n}\n";
    DeviceOptions known = options;
    known.blocks.clear();
    known.bind.clear();
    std::string said;
    qdcHostModule handle = compile(std::vector<uint8_t>(least.begin(), least.end()), "<device>", known, said);
    if (handle) {
      compiler.hostUnload(handle);
      return Error::success();
    }
    constexpr std::string_view mark = "error: ";
    size_t at = said.find(mark);
    std::string why = said.substr(at == std::string::npos ? 0 : at + mark.size());
    return fail("device '", name(), "' cannot be opened: ", why.substr(0, why.find('\n')));
  }

private:
  qdcHostModule compile(const std::vector<uint8_t> &qir, const std::string &programName, const DeviceOptions &with,
                        std::string &said) {
    std::string deviceName = name();
    qdcHostOptions hostOptions = {};
    compiler.initHostOptions(&hostOptions, sizeof hostOptions);
    hostOptions.device = deviceName.c_str();
    hostOptions.subgroupSize = with.subgroupSize;
    hostOptions.optLevel = with.optLevel;
    hostOptions.threads = with.threads;
    hostOptions.checks = with.checks.empty() ? nullptr : with.checks.c_str();
    hostOptions.blocks = with.blocks.c_str();
    hostOptions.bind = with.bind.empty() ? nullptr : with.bind.c_str();
    hostOptions.isolate = with.isolate;
    hostOptions.timeLimit = with.compileTimeLimit;
    hostOptions.memoryLimit = with.compileMemoryLimit;
    hostOptions.launchTimeLimit = with.launchTimeLimit;
    hostOptions.interrupt = with.interrupt;
    hostOptions.interruptContext = with.interruptContext;
    char *diagnostics = nullptr;
    qdcHostModule handle =
        compiler.hostLoad(qir.data(), qir.size(), programName.c_str(), &hostOptions, &diagnostics);
    said = diagnostics ? diagnostics : "";
    if (diagnostics)
      compiler.freeString(diagnostics);
    return handle;
  }

  const Compiler &compiler;
  DeviceOptions options;
};

} // namespace

DeviceResult openHost(const std::string &name, const DeviceOptions &options) {
  auto compiler = Compiler::get();
  if (!compiler)
    return fail("device '", name, "' is part of the compiler, and ", compiler.message());
  auto device = std::make_unique<HostDevice>(**compiler, name, options);
  if (name.find(':') != std::string::npos || options.subgroupSize || !options.checks.empty())
    if (Error error = device->check())
      return error;
  return std::unique_ptr<Device>(std::move(device));
}

std::vector<DeviceEntry> listHost() {
  auto compiler = Compiler::get();
  auto entry = [&](const char *name, const char *what) {
    return DeviceEntry{name, bool(compiler), compiler ? what : compiler.message()};
  };
  return {entry("cpu", "native code on this machine's processors"),
          entry("interp", "the reference interpreter, with checks"),
          entry("sim:CHIP", "an NVIDIA or AMD chip simulated lane by lane, as in sim:sm_80 and sim:gfx942")};
}

} // namespace qd::rt
