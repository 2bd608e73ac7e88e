// What all devices share: names, argument and grid checks, and turning a program into a bundle.
#include "runtime/Backends.h"
#include "runtime/Compiler.h"
#include "runtime/Stream.h"

#include <algorithm>
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

/// Bytes that copies through the host hold at a time.
constexpr size_t copyPiece = 4 << 20;

/// Whether two buffer arguments have a byte in common.
bool overlap(const Argument &a, const Argument &b) {
  uint64_t beginA = a.begin(), beginB = b.begin();
  if (!beginA || !beginB) {
    if (a.memory != b.memory)
      return false;
    beginA = a.offset;
    beginB = b.offset;
  }
  return beginA < beginB + b.byteCount() && beginB < beginA + a.byteCount();
}

std::vector<std::string> kernelNames(const Interface &interface) {
  std::vector<std::string> names;
  for (const Kernel &kernel : interface.kernels)
    names.push_back(kernel.name);
  return names;
}

} // namespace

std::string otherDevice(const Identity *found, const Identity *expected) {
  auto name = [](const Identity *identity) { return identity ? std::string_view(identity->label) : "no device"; };
  return text(name(found) == name(expected) ? "another opening of " : "", name(found), ", expected one of ",
              name(expected));
}

Error Buffer::checkRange(const char *what, size_t bytes, size_t offset) const {
  if (bytes <= numBytes && offset <= numBytes - bytes)
    return Error::success();
  if (offset)
    return refuse(what, " of ", bytes, " bytes at byte ", offset, " exceeds the buffer of ", numBytes);
  return refuse(what, " of ", bytes, " bytes exceeds the buffer of ", numBytes);
}

Error Buffer::upload(const void *data, size_t bytes, size_t offset) {
  if (Error error = checkRange("a copy", bytes, offset))
    return error;
  return bytes ? doUpload(data, bytes, offset) : Error::success();
}

Error Buffer::download(void *data, size_t bytes, size_t offset) {
  if (Error error = checkRange("a copy", bytes, offset))
    return error;
  return bytes ? doDownload(data, bytes, offset) : Error::success();
}

Error Buffer::fill(uint8_t value, size_t bytes, size_t offset) {
  if (Error error = checkRange("a fill", bytes, offset))
    return error;
  return bytes ? doFill(value, bytes, offset) : Error::success();
}

Error Buffer::checkCopy(const Buffer &source, size_t bytes, size_t offset, size_t sourceOffset) const {
  if (Error error = checkRange("a copy", bytes, offset))
    return error;
  if (Error error = source.checkRange("a copy", bytes, sourceOffset))
    return error;
  if (&source == this && offset < sourceOffset + bytes && sourceOffset < offset + bytes && bytes)
    return refuse("a copy of ", bytes, " bytes inside a buffer from byte ", sourceOffset, " to byte ", offset,
                " overlaps itself");
  return Error::success();
}

Error Buffer::copyFrom(Buffer &source, size_t bytes, size_t offset, size_t sourceOffset) {
  if (Error error = checkCopy(source, bytes, offset, sourceOffset))
    return error;
  if (!bytes)
    return Error::success();
  return source.owner() == owner() ? doCopyFrom(source, bytes, offset, sourceOffset)
                                   : Buffer::doCopyFrom(source, bytes, offset, sourceOffset);
}

Error Buffer::doFill(uint8_t value, size_t bytes, size_t offset) {
  std::vector<uint8_t> piece(std::min(bytes, copyPiece), value);
  for (size_t at = 0; at < bytes; at += copyPiece)
    if (Error error = doUpload(piece.data(), std::min(bytes - at, copyPiece), offset + at))
      return error;
  return Error::success();
}

Error Buffer::doCopyFrom(Buffer &source, size_t bytes, size_t offset, size_t sourceOffset) {
  std::vector<uint8_t> piece(std::min(bytes, copyPiece));
  for (size_t at = 0; at < bytes; at += copyPiece) {
    size_t length = std::min(bytes - at, copyPiece);
    if (Error error = source.doDownload(piece.data(), length, sourceOffset + at))
      return error;
    if (Error error = doUpload(piece.data(), length, offset + at))
      return error;
  }
  return Error::success();
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
  argument.setShape(shape.data(), shape.size());
  return argument;
}

void Argument::setShape(const int64_t *shape, size_t dimensions) {
  rank = static_cast<unsigned>(dimensions);
  count = 1;
  extents = {1, 1, 1};
  bool valid = true;
  for (size_t i = 0; i < dimensions; ++i) {
    if (i < extents.size())
      extents[i] = shape[i];
    valid &= shape[i] >= 0 && !__builtin_mul_overflow(count, shape[i], &count);
  }
  // A negative count is refused where the argument is checked.
  if (!valid)
    count = -1;
}

Argument Argument::pointer(uint64_t address, ElementType type, const std::vector<int64_t> &shape) {
  Argument argument;
  argument.kind = Parameter::Kind::Buffer;
  argument.type = type;
  argument.address = address;
  argument.setShape(shape.data(), shape.size());
  return argument;
}

Error checkArguments(const Kernel &kernel, const std::vector<Argument> &arguments) {
  if (arguments.size() != kernel.parameters.size())
    return refuse("kernel '", kernel.name, "' takes ", kernel.parameters.size(), " arguments, got ",
                arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter &parameter = kernel.parameters[i];
    const Argument &argument = arguments[i];
    std::string where = argumentOf(kernel, parameter);
    if (argument.kind != parameter.kind)
      return refuse(where, " is ", kindName(parameter.kind), ", got ", kindName(argument.kind));
    if (argument.type != parameter.type)
      return refuse(where, " is of ", elementName(parameter.type), ", got ", elementName(argument.type));
    if (!parameter.isBuffer()) {
      // Bits that a type has not would be cut off by one device and not by the other.
      size_t bits = argument.type.scalar == ScalarType::I1 ? 1 : 8 * argument.type.bytes();
      if (bits < 64 && argument.bits >> bits)
        return refuse(where, " is of ", elementName(parameter.type), ", got ", argument.bits, ", which has more than ",
                      bits, bits == 1 ? " bit" : " bits");
      continue;
    }
    if (argument.rank != parameter.rank)
      return refuse(where, " has ", parameter.rank, " dimension", parameter.rank == 1 ? "" : "s", ", got ",
                  argument.rank);
    if (argument.count < 0) {
      std::string shape;
      for (unsigned i = 0; i < argument.rank; ++i)
        shape += text(i ? " x " : "", argument.extents[i]);
      return refuse(where, " is given as ", shape, " elements, which no memory has");
    }
    size_t needed, end;
    bool sized = !__builtin_mul_overflow(static_cast<size_t>(argument.count), argument.type.bytes(), &needed);
    if (!argument.memory) {
      if (!sized || __builtin_add_overflow(needed, argument.address, &end))
        return refuse(where, " is given as ", argument.count, " elements of ", argument.type.bytes(),
                    " bytes, which no memory has");
      if (!argument.address && needed)
        return refuse(where, " is given as ", argument.count, " elements at a null pointer");
    } else if (!sized || __builtin_add_overflow(needed, argument.offset, &end) || end > argument.memory->bytes()) {
      return refuse(where, " is given as ", argument.count, " elements of ", argument.type.bytes(), " bytes",
                  argument.offset ? text(" from byte ", argument.offset, " on") : "", ", its buffer has ",
                  argument.memory->bytes(), " bytes");
    }
    // Vectors of a power of two lie at multiples of their size.
    unsigned lanes = argument.type.lanes;
    size_t align = scalarBytes(argument.type.scalar) * (lanes & (lanes - 1) ? 1 : lanes);
    align = std::max<size_t>(align, parameter.align);
    uint64_t begin = argument.begin() ? argument.begin() : argument.offset;
    if (begin % align)
      return refuse(where, " begins at an address that is no multiple of ", align, " bytes");
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    for (size_t j = 0; j < arguments.size() && kernel.parameters[i].noalias; ++j)
      if (j != i && kernel.parameters[j].isBuffer() && overlap(arguments[i], arguments[j]) &&
          (kernel.parameters[i].mayBeWritten() || kernel.parameters[j].mayBeWritten()))
        return refuse(argumentOf(kernel, kernel.parameters[i]), " is noalias, but shares its buffer with '",
                    kernel.parameters[j].name, "'");
  return Error::success();
}

Error checkGrid(const Kernel &kernel, Grid grid, const LaunchLimits &limits, const std::string &device) {
  uint32_t extents[3] = {grid.x, grid.y, grid.z};
  for (int i = 0; i < 3; ++i) {
    if (extents[i] == 0)
      return refuse("the grid is ", grid.x, " x ", grid.y, " x ", grid.z, ", expected at least one block in ",
                  "xyz"[i]);
    if (extents[i] > limits.grid[i])
      return refuse("the grid has ", extents[i], " blocks in ", "xyz"[i], ", ", device, " launches at most ",
                  limits.grid[i]);
  }
  uint32_t threads = std::max(kernel.blockThreads(), kernel.localSize);
  if (threads > limits.blockThreads)
    return refuse("kernel '", kernel.name, "' has blocks of ", threads, " threads, ", device,
                " launches at most ", limits.blockThreads);
  if (uint64_t row = uint64_t(grid.x) * kernel.block[0]; row > limits.gridThreads)
    return fail("the grid has ", row, " threads in x, ", device, " launches at most ", limits.gridThreads);
  uint64_t shared = std::max(kernel.sharedBytes, kernel.dynamicSharedBytes);
  if (shared > limits.sharedBytes)
    return refuse("kernel '", kernel.name, "' needs ", shared, " bytes of shared memory a block, ", device,
                " has ", limits.sharedBytes);
  return Error::success();
}

Expected<Occupancy> Module::findOccupancy(const Kernel &) {
  return fail(deviceName, " does not tell how many blocks run at once");
}

Expected<const Kernel *> Module::find(std::string_view name) const {
  if (const Kernel *kernel = moduleInterface.find(name))
    return kernel;
  return refuse("the module has no kernel '", name, "'", suggestion(name, kernelNames(moduleInterface)));
}

Expected<Occupancy> Module::occupancy(std::string_view name) {
  auto kernel = find(name);
  return kernel ? findOccupancy(**kernel) : kernel.error();
}

Expected<const Kernel *> Module::check(std::string_view name, Grid grid, const std::vector<Argument> &arguments) const {
  auto found = find(name);
  if (!found)
    return found;
  const Kernel *kernel = *found;
  if (Error error = checkArguments(*kernel, arguments))
    return error;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].memory && arguments[i].memory->owner() != owner())
      return refuse(argumentOf(*kernel, kernel->parameters[i]), " is a buffer of ",
                    otherDevice(arguments[i].memory->owner(), owner()), ", the kernel's");
    if (kernel->parameters[i].isBuffer() && !arguments[i].memory && !takesPointers)
      return refuse(argumentOf(*kernel, kernel->parameters[i]), " is a pointer, ", deviceName, " takes buffers alone");
  }
  if (Error error = checkGrid(*kernel, grid, limits, deviceName))
    return error;
  return kernel;
}

Expected<double> Module::launch(std::string_view name, Grid grid, const std::vector<Argument> &arguments) {
  auto kernel = check(name, grid, arguments);
  if (!kernel)
    return kernel.error();
  return doLaunch(**kernel, grid, arguments);
}

Expected<std::unique_ptr<Buffer>> Device::wrap(void *, size_t) {
  return refuse(name(), " has no memory that a pointer names: its buffers are allocated");
}

Expected<std::unique_ptr<Device>> Device::open(const std::string &name, const DeviceOptions &options) {
  if (name == "best") {
    auto best = bestDevice();
    return best ? open(*best, options) : DeviceResult(best.error());
  }
  size_t colon = name.find(':');
  std::string kind = name.substr(0, colon);
  std::string rest = colon == std::string::npos ? "" : name.substr(colon + 1);
  constexpr const char *kinds[] = {"cpu", "interp", "sim", "vulkan", "cuda", "hip"};
  if (std::find(std::begin(kinds), std::end(kinds), kind) == std::end(kinds))
    return refuse("no device is called '", name, "'",
                  suggestion(kind, {"cpu", "interp", "sim:CHIP", "vulkan", "cuda", "hip", "best"}));
  if (!options.checks.empty() && kind != "interp")
    return refuse("checks are those of interp, ", kind, " has none");
  if (options.threads > DeviceOptions::mostThreads)
    return refuse("the options ask for ", options.threads, " threads, expected at most ", DeviceOptions::mostThreads);
  if (kind == "cpu" || kind == "interp") {
    if (colon != std::string::npos)
      return refuse("device '", name, "' takes nothing after '", kind, "'");
    return openHost(name, options);
  }
  if (kind == "sim") {
    if (rest.empty())
      return refuse("device 'sim' needs a chip, as in sim:sm_80 or sim:gfx942");
    return openHost(name, options);
  }
  if (options.launchTimeLimit)
    return refuse("launches on ", kind, " cannot be ended, their time is limited on cpu, interp and sim alone");
  std::optional<unsigned> index;
  if (colon != std::string::npos) {
    unsigned number = 0;
    auto result = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (rest.empty() || result.ec != std::errc() || result.ptr != rest.data() + rest.size())
      return refuse("device '", name, "': '", rest, "' is not a device number");
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

Expected<std::string> bestDevice() {
  std::vector<DeviceEntry> vulkan;
  for (auto list : {listCuda, listHip, listVulkan}) {
    std::vector<DeviceEntry> entries = list();
    for (const DeviceEntry &entry : entries)
      if (entry.present && entry.isGpu)
        return entry.name;
    vulkan = std::move(entries);
  }
  for (const DeviceEntry &entry : listHost())
    if (entry.present && entry.name == "cpu")
      return entry.name;
  for (const DeviceEntry &entry : vulkan)
    if (entry.present)
      return entry.name;
  return fail("no device can be used: there is no GPU with a driver, no Vulkan device and no compiler library");
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
  if (isBundle(program.bytes.data(), program.bytes.size(), program.name)) {
    auto variant = take(program.bytes, bundle);
    bool asIs = request.options.blocks.empty() && request.options.bind.empty();
    if (asIs && (variant || bundle.qir.empty()))
      return variant;
    if (bundle.qir.empty())
      return fail("'", program.name, "' holds no QIR, which other block sizes ",
                  request.options.bind.empty() ? "" : "and bound arguments ", "are compiled from");
    why = asIs ? text(variant.message(), "; so its QIR must be compiled")
               : text("other block sizes ", request.options.bind.empty() ? "" : "and bound arguments ",
                      "than those of '", program.name, "' must be compiled");
    qir = &bundle.qir;
  }
  auto compiler = Compiler::get();
  if (!compiler)
    return fail(why, ", and ", compiler.message());
  auto compiled = (*compiler)->compileToBundle(*qir, program.name, request.targets, request.subgroupSize,
                                               request.options, warnings);
  if (!compiled)
    return compiled.error();
  Bundle made;
  return take(*compiled, made);
}

} // namespace qd::rt
