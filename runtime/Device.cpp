// What all devices share: names, argument and grid checks, and turning a program into a bundle.
#include "runtime/Backends.h"
#include "runtime/Compiler.h"

#include <charconv>

namespace qd::rt {

namespace {

/// "argument 'x' of kernel 'sum'".
std::string argumentOf(const Kernel &kernel, const Parameter &parameter) {
  return text("argument '", parameter.name, "' of kernel '", kernel.name, "'");
}

std::string_view kindName(Parameter::Kind kind) {
  return kind == Parameter::Kind::Buffer ? "a buffer" : "a scalar";
}

std::vector<std::string> kernelNames(const Interface &interface) {
  std::vector<std::string> names;
  for (const Kernel &kernel : interface.kernels)
    names.push_back(kernel.name);
  return names;
}

} // namespace

Error Buffer::upload(const void *data, size_t bytes) {
  if (bytes > numBytes)
    return fail("a copy of ", bytes, " bytes exceeds the buffer of ", numBytes);
  return bytes ? doUpload(data, bytes) : Error::success();
}

Error Buffer::download(void *data, size_t bytes) {
  if (bytes > numBytes)
    return fail("a copy of ", bytes, " bytes exceeds the buffer of ", numBytes);
  return bytes ? doDownload(data, bytes) : Error::success();
}

Argument Argument::scalar(ScalarType type, uint64_t bits) {
  Argument argument;
  argument.type = {type, 1};
  argument.bits = bits;
  return argument;
}

Argument Argument::buffer(Buffer &buffer, ElementType type, int64_t count) {
  Argument argument;
  argument.kind = Parameter::Kind::Buffer;
  argument.type = type;
  argument.memory = &buffer;
  argument.count = argument.extents[0] = count;
  return argument;
}

Argument Argument::buffer(Buffer &buffer, ElementType type, const std::vector<int64_t> &shape) {
  Argument argument = Argument::buffer(buffer, type, int64_t(1));
  argument.rank = static_cast<unsigned>(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i < argument.extents.size())
      argument.extents[i] = shape[i];
    // A negative count is refused where the argument is checked.
    if (shape[i] < 0 || __builtin_mul_overflow(argument.count, shape[i], &argument.count))
      argument.count = -1;
  }
  return argument;
}

Error checkArguments(const Kernel &kernel, const std::vector<Argument> &arguments) {
  if (arguments.size() != kernel.parameters.size())
    return fail("kernel '", kernel.name, "' takes ", kernel.parameters.size(), " arguments, got ",
                arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter &parameter = kernel.parameters[i];
    const Argument &argument = arguments[i];
    std::string where = argumentOf(kernel, parameter);
    if (argument.kind != parameter.kind)
      return fail(where, " is ", kindName(parameter.kind), ", got ", kindName(argument.kind));
    if (argument.type != parameter.type)
      return fail(where, " is of ", elementName(parameter.type), ", got ", elementName(argument.type));
    if (!parameter.isBuffer())
      continue;
    if (argument.rank != parameter.rank)
      return fail(where, " has ", parameter.rank, " dimension", parameter.rank == 1 ? "" : "s", ", got ",
                  argument.rank);
    size_t needed;
    if (argument.count < 0 ||
        __builtin_mul_overflow(static_cast<size_t>(argument.count), argument.type.bytes(), &needed) ||
        !argument.memory || needed > argument.memory->bytes())
      return fail(where, " is given as ", argument.count, " elements of ", argument.type.bytes(),
                  " bytes, its buffer has ", argument.memory ? argument.memory->bytes() : 0, " bytes");
    for (size_t j = 0; j < arguments.size(); ++j)
      if (j != i && arguments[j].memory == argument.memory && parameter.noalias &&
          (parameter.mayBeWritten() || kernel.parameters[j].mayBeWritten()))
        return fail(where, " is noalias, but shares its buffer with '", kernel.parameters[j].name, "'");
  }
  return Error::success();
}

Error checkGrid(const Kernel &kernel, Grid grid, const LaunchLimits &limits, const std::string &device) {
  uint32_t extents[3] = {grid.x, grid.y, grid.z};
  for (int i = 0; i < 3; ++i) {
    if (extents[i] == 0)
      return fail("the grid is ", grid.x, " x ", grid.y, " x ", grid.z, ", expected at least one block in ",
                  "xyz"[i]);
    if (extents[i] > limits.grid[i])
      return fail("the grid has ", extents[i], " blocks in ", "xyz"[i], ", ", device, " launches at most ",
                  limits.grid[i]);
  }
  uint32_t threads = std::max(kernel.blockThreads(), kernel.localSize);
  if (threads > limits.blockThreads)
    return fail("kernel '", kernel.name, "' has blocks of ", threads, " threads, ", device,
                " launches at most ", limits.blockThreads);
  uint64_t shared = std::max(kernel.sharedBytes, kernel.dynamicSharedBytes);
  if (shared > limits.sharedBytes)
    return fail("kernel '", kernel.name, "' needs ", shared, " bytes of shared memory a block, ", device,
                " has ", limits.sharedBytes);
  return Error::success();
}

Expected<Occupancy> Module::findOccupancy(const Kernel &) {
  return fail(deviceName, " does not tell how many blocks run at once");
}

Expected<Occupancy> Module::occupancy(std::string_view name) {
  const Kernel *kernel = moduleInterface.find(name);
  if (!kernel)
    return fail("the module has no kernel '", name, "'", suggestion(name, kernelNames(moduleInterface)));
  return findOccupancy(*kernel);
}

Expected<double> Module::launch(std::string_view name, Grid grid, const std::vector<Argument> &arguments) {
  const Kernel *kernel = moduleInterface.find(name);
  if (!kernel)
    return fail("the module has no kernel '", name, "'", suggestion(name, kernelNames(moduleInterface)));
  if (Error error = checkArguments(*kernel, arguments))
    return error;
  if (Error error = checkGrid(*kernel, grid, limits, deviceName))
    return error;
  return doLaunch(*kernel, grid, arguments);
}

Expected<std::unique_ptr<Device>> Device::open(const std::string &name, const DeviceOptions &options) {
  size_t colon = name.find(':');
  std::string kind = name.substr(0, colon);
  std::string rest = colon == std::string::npos ? "" : name.substr(colon + 1);
  if (kind == "cpu" || kind == "interp") {
    if (colon != std::string::npos)
      return fail("device '", name, "' takes nothing after '", kind, "'");
    return openHost(name, options);
  }
  if (kind == "sim") {
    if (rest.empty())
      return fail("device 'sim' needs a chip, as in sim:sm_80 or sim:gfx942");
    return openHost(name, options);
  }
  if (kind != "cuda" && kind != "hip" && kind != "vulkan")
    return fail("no device is called '", name, "'",
                suggestion(kind, {"cpu", "interp", "sim:CHIP", "vulkan", "cuda", "hip"}));
  std::optional<unsigned> index;
  if (colon != std::string::npos) {
    unsigned number = 0;
    auto result = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (rest.empty() || result.ec != std::errc() || result.ptr != rest.data() + rest.size())
      return fail("device '", name, "': '", rest, "' is not a device number");
    index = number;
  }
  if (kind == "cuda")
    return openCuda(index, options);
  if (kind == "hip")
    return openHip(index, options);
  return openVulkan(index, options);
}

std::vector<DeviceEntry> listDevices() {
  std::vector<DeviceEntry> entries;
  for (auto list : {listHost, listVulkan, listCuda, listHip})
    for (DeviceEntry &entry : list())
      entries.push_back(std::move(entry));
  return entries;
}

Expected<Variant> variantFor(const Program &program, const VariantRequest &request, std::string &warnings) {
  auto take = [&](const std::vector<uint8_t> &bytes, Bundle &bundle) -> Expected<Variant> {
    auto parsed = parseBundle(bytes.data(), bytes.size());
    if (!parsed)
      return fail("cannot load '", program.name, "': ", parsed.message());
    bundle = std::move(*parsed);
    auto match = request.match(bundle);
    if (!match)
      return fail("cannot load '", program.name, "' on ", request.device, ": ", match.message());
    return **match;
  };

  const std::vector<uint8_t> *qir = &program.bytes;
  Bundle bundle;
  std::string why = text("'", program.name, "' is no bundle, so it must be compiled");
  if (isBundle(program.bytes.data(), program.bytes.size())) {
    auto variant = take(program.bytes, bundle);
    if (request.blocks.empty() && (variant || bundle.qir.empty()))
      return variant;
    if (bundle.qir.empty())
      return fail("'", program.name, "' holds no QIR, which other block sizes are compiled from");
    why = request.blocks.empty() ? text(variant.message(), "; so its QIR must be compiled")
                                 : text("other block sizes than those of '", program.name, "' must be compiled");
    qir = &bundle.qir;
  }
  auto compiler = Compiler::get();
  if (!compiler)
    return fail(why, ", and ", compiler.message());
  auto compiled = (*compiler)->compileToBundle(*qir, program.name, request.targets, request.subgroupSize,
                                               request.optLevel, request.blocks, warnings);
  if (!compiled)
    return compiled.error();
  Bundle made;
  return take(*compiled, made);
}

} // namespace qd::rt
