// The C interface: modules, kernels and launches.
#include "runtime/CApi.h"

#include <cstring>
#include <iterator>

using namespace qd::rt;
using namespace qd::rt::capi;

namespace qd::rt::capi {

namespace {

/// A field that an argument of this kind does not use and has set: "has 'offset' 8, expected 0 in a scalar"; or "".
std::string findUnused(const qdrtArgument &given, uint32_t rank) {
  bool isScalar = given.kind == QDRT_SCALAR, isBuffer = given.kind == QDRT_BUFFER;
  const char *kind = isScalar ? "a scalar" : isBuffer ? "a buffer" : "a pointer";
  auto describe = [&](const std::string &field, auto value) {
    return text("has '", field, "' ", value, ", expected 0 in ", kind);
  };
  if (isScalar && given.rank)
    return describe("rank", given.rank);
  for (uint32_t i = rank; i < std::size(given.extents); ++i)
    if (given.extents[i])
      return describe(text("extents[", i, "]"), given.extents[i]) + (isScalar ? "" : text(" of rank ", rank));
  if (!isScalar && given.bits)
    return describe("bits", given.bits);
  if (!isBuffer && given.buffer)
    return text("has a 'buffer', expected null in ", kind);
  if (!isBuffer && given.offset)
    return describe("offset", given.offset);
  if (given.kind != QDRT_POINTER && given.pointer)
    return text("has a 'pointer', expected null in ", kind);
  return "";
}

} // namespace

Expected<Argument> readArgument(const qdrtArgument &given, std::shared_ptr<BufferState> &buffer) {
  buffer = nullptr;
  constexpr uint32_t mostLanes = 16, mostRank = 3;
  if (given.type > QDRT_F64)
    return fail("has type ", given.type, ", expected QDRT_I1 to QDRT_F64");
  if (given.reserved[0] || given.reserved[1])
    return fail("has reserved fields that are not 0");
  if (given.lanes > mostLanes)
    return fail("has elements of ", given.lanes, " lanes, expected at most ", mostLanes);
  if (given.kind != QDRT_SCALAR && given.kind != QDRT_BUFFER && given.kind != QDRT_POINTER)
    return fail("has kind ", given.kind, ", expected QDRT_SCALAR, QDRT_BUFFER or QDRT_POINTER");
  if (given.kind != QDRT_SCALAR && given.rank > mostRank)
    return fail("has ", given.rank, " dimensions, expected at most ", mostRank);
  uint32_t rank = given.kind == QDRT_SCALAR ? 0 : given.rank ? given.rank : 1;
  if (std::string unused = findUnused(given, rank); !unused.empty())
    return fail(unused);
  ElementType type{static_cast<ScalarType>(given.type), given.lanes ? given.lanes : 1};
  if (given.kind == QDRT_SCALAR) {
    Argument argument = Argument::scalar(type.scalar, given.bits);
    argument.type = type;
    return argument;
  }
  Argument argument;
  argument.kind = Parameter::Kind::Buffer;
  argument.type = type;
  argument.setShape(given.extents, rank);
  if (given.kind == QDRT_POINTER) {
    argument.address = reinterpret_cast<uint64_t>(given.pointer);
    return argument;
  }
  buffer = share<BufferState>(given.buffer);
  if (!buffer)
    return fail("has no buffer: ", qdrtErrorText());
  argument.memory = buffer->buffer.get();
  argument.offset = given.offset;
  return argument;
}

qdrtStatus readLaunch(const KernelState &state, const uint32_t grid[3], const qdrtArgument *given, size_t count,
                      std::vector<Argument> &arguments, std::vector<std::shared_ptr<BufferState>> &buffers) {
  const Kernel &kernel = *state.kernel;
  if (!grid)
    return report(QDRT_INVALID, text("the grid of kernel '", kernel.name, "' is null"));
  // Before anything is read.
  if (count != kernel.parameters.size())
    return report(QDRT_INVALID,
                  text("kernel '", kernel.name, "' takes ", kernel.parameters.size(), " arguments, got ", count));
  if (!given && count)
    return report(QDRT_INVALID, text("the arguments of kernel '", kernel.name, "' are null"));
  buffers.resize(count);
  for (size_t i = 0; i < count; ++i) {
    auto argument = readArgument(given[i], buffers[i]);
    if (!argument)
      return report(QDRT_INVALID, text("argument '", kernel.parameters[i].name, "' of kernel '", kernel.name, "' ",
                                       argument.message()));
    arguments.push_back(*argument);
  }
  auto checked = state.module->module->check(kernel.name, {grid[0], grid[1], grid[2]}, arguments);
  return checked ? QDRT_OK : report(checked.error());
}

} // namespace qd::rt::capi

namespace {

qdrtArgument scalar(uint32_t type, uint64_t bits) {
  qdrtArgument argument = {};
  argument.kind = QDRT_SCALAR;
  argument.type = type;
  argument.bits = bits;
  return argument;
}

} // namespace

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

qdrtStatus qdrtModuleLoad(qdrtDevice device, const void *data, size_t size, const char *name, qdrtModule *module) {
  if (!hasPlace(module, "the module"))
    return QDRT_INVALID;
  auto owner = share<DeviceState>(device);
  if (!owner)
    return QDRT_INVALID;
  if (!data && size)
    return report(QDRT_INVALID, text("a program of ", size, " bytes at a null pointer"));
  Program program;
  const auto *bytes = static_cast<const uint8_t *>(data);
  program.bytes.assign(bytes, bytes + size);
  if (name)
    program.name = name;
  auto loaded = owner->device->load(program);
  if (!loaded)
    return report(loaded.error());
  auto state = std::make_shared<ModuleState>();
  state->device = std::move(owner);
  state->module = std::move(*loaded);
  state->kernels.resize(state->module->interface().kernels.size());
  return give(std::move(state), module);
}

void qdrtModuleFree(qdrtModule module) {
  auto state =
      std::static_pointer_cast<ModuleState>(endHandle(HandleKind::Module, reinterpret_cast<uint64_t>(module)));
  if (!state)
    return;
  for (uint64_t kernel : state->kernels)
    endHandle(HandleKind::Kernel, kernel);
}

const char *qdrtModuleInterface(qdrtModule module) {
  auto *state = find<ModuleState>(module);
  return state ? state->module->interface().json.c_str() : nullptr;
}

const char *qdrtModuleWarnings(qdrtModule module) {
  auto *state = find<ModuleState>(module);
  return state ? state->module->warnings().c_str() : nullptr;
}

size_t qdrtModuleNumKernels(qdrtModule module) {
  auto *state = find<ModuleState>(module);
  return state ? state->kernels.size() : 0;
}

const char *qdrtModuleKernelName(qdrtModule module, size_t index) {
  auto *state = find<ModuleState>(module);
  return state && index < state->kernels.size() ? state->module->interface().kernels[index].name.c_str() : nullptr;
}

qdrtStatus qdrtModuleGetKernel(qdrtModule module, const char *name, qdrtKernel *kernel) {
  if (!hasPlace(kernel, "the kernel"))
    return QDRT_INVALID;
  auto owner = shareOpen<ModuleState>(module);
  if (!owner)
    return QDRT_INVALID;
  if (!name)
    return report(QDRT_INVALID, "the kernel's name is null");
  auto found = owner->module->find(name);
  if (!found)
    return report(found.error());
  uint64_t &handle = owner->kernels[static_cast<size_t>(*found - owner->module->interface().kernels.data())];
  if (!handle) {
    auto state = std::make_shared<KernelState>(KernelState{owner, *found});
    if (qdrtStatus status = give(std::move(state), kernel))
      return status;
    handle = reinterpret_cast<uint64_t>(*kernel);
  }
  *kernel = reinterpret_cast<qdrtKernel>(handle);
  return QDRT_OK;
}

qdrtStatus qdrtKernelOccupancy(qdrtKernel kernel, uint64_t *blocks, uint64_t *multiprocessors) {
  if (blocks)
    *blocks = 0;
  if (multiprocessors)
    *multiprocessors = 0;
  auto *state = findOpen<KernelState>(kernel);
  if (!state)
    return QDRT_INVALID;
  auto occupancy = state->module->module->occupancy(state->kernel->name);
  if (!occupancy)
    return report(occupancy.error());
  if (blocks)
    *blocks = occupancy->blocks;
  if (multiprocessors)
    *multiprocessors = occupancy->multiprocessors;
  return QDRT_OK;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

qdrtArgument qdrtScalarI32(int32_t value) { return scalar(QDRT_I32, static_cast<uint32_t>(value)); }
qdrtArgument qdrtScalarI64(int64_t value) { return scalar(QDRT_I64, static_cast<uint64_t>(value)); }

qdrtArgument qdrtScalarF32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return scalar(QDRT_F32, bits);
}

qdrtArgument qdrtScalarF64(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return scalar(QDRT_F64, bits);
}

qdrtArgument qdrtArray(qdrtBuffer buffer, uint32_t type, int64_t elements) {
  qdrtArgument argument = {};
  argument.kind = QDRT_BUFFER;
  argument.type = type;
  argument.rank = 1;
  argument.extents[0] = elements;
  argument.buffer = buffer;
  return argument;
}

qdrtStatus qdrtLaunch(qdrtKernel kernel, const uint32_t grid[3], const qdrtArgument *arguments, size_t count,
                      double *seconds) {
  if (seconds)
    *seconds = 0;
  auto *state = findOpen<KernelState>(kernel);
  if (!state)
    return QDRT_INVALID;
  std::vector<Argument> read;
  std::vector<std::shared_ptr<BufferState>> buffers;
  if (qdrtStatus status = readLaunch(*state, grid, arguments, count, read, buffers))
    return status;
  auto taken = state->module->module->launch(state->kernel->name, {grid[0], grid[1], grid[2]}, read);
  if (!taken)
    return report(taken.error());
  if (seconds)
    *seconds = *taken;
  return QDRT_OK;
}
