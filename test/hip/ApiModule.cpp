// Exported functions: modules, kernels and launches. What is refused is what ROCm's runtime refuses, by its statuses.
#include "Call.h"

#include <cstdio>
#include <cstring>

using namespace hipdouble;

namespace {

constexpr unsigned threadsOfMultiprocessor = 2048;
constexpr unsigned numMultiprocessors = 8;

int blocksAtOnce(const Chip &chip, const KernelCode &kernel, unsigned threads, uint64_t sharedBytes) {
  unsigned blocks = threadsOfMultiprocessor /
                    ((threads + unsigned(kernel.lanes) - 1) / unsigned(kernel.lanes) * unsigned(kernel.lanes));
  uint64_t shared = kernel.ldsBytes + sharedBytes;
  return int(shared ? std::min<uint64_t>(blocks, chip.ldsBytes / shared) : blocks);
}

const Function *findFunction(void *function) {
  auto at = machine().functions.find(reinterpret_cast<uint64_t>(function));
  return at == machine().functions.end() ? nullptr : &at->second;
}

int checkGeometry(const Geometry &geometry, const KernelCode &kernel, const Chip &chip) {
  constexpr uint32_t gridLimits[3] = {INT32_MAX, 65536, 65536};
  uint64_t threads = 1;
  for (unsigned dim = 0; dim < 3; ++dim) {
    if (geometry.grid[dim] > gridLimits[dim] || !geometry.grid[dim])
      return invalidValue;
    if (!geometry.block[dim])
      return invalidConfiguration;
    threads *= geometry.block[dim];
  }
  if (uint64_t(geometry.grid[0]) * geometry.block[0] > UINT32_MAX)
    return invalidConfiguration;
  if (geometry.sharedBytes + kernel.ldsBytes > chip.ldsBytes || threads > 1024)
    return invalidValue;
  return threads > kernel.maxThreads ? launchFailure : success;
}

/// What the driver adds to the arguments. Blocks are whole and begin at 0.
uint64_t hiddenValue(const std::string &kind, const Geometry &geometry) {
  size_t dim = size_t(kind.back() - 'x');
  if (kind == "hidden_grid_dims")
    return 3;
  return kind.find("block_count") != std::string::npos  ? geometry.grid[dim]
         : kind.find("group_size") != std::string::npos ? geometry.block[dim]
                                                        : 0;
}

/// A launch, which takes the arguments' values now.
int launch(void *handle, const Geometry &geometry, void *stream, void **parameters, bool isCooperative) {
  const Function *function = findFunction(handle);
  std::shared_ptr<ModuleObject> module = function ? function->module.lock() : nullptr;
  std::shared_ptr<Queue> queue = queueOf(stream);
  if (!module)
    return misuse(invalidHandle, "launched is a kernel that is none");
  if (!queue)
    return misuse(contextIsDestroyed, "a kernel is launched in a stream that is none");
  const KernelCode &kernel = *function->kernel;
  const Chip &chip = machine().chips[size_t(queue->device)];
  if (module->device != queue->device)
    return misuse(invalidDevice, "kernel '" + kernel.name + "' is launched on another device than its module's");
  if (int code = checkGeometry(geometry, kernel, chip))
    return code;
  if (isCooperative) {
    unsigned threads = geometry.block[0] * geometry.block[1] * geometry.block[2];
    uint64_t blocks = uint64_t(geometry.grid[0]) * geometry.grid[1] * geometry.grid[2];
    if (blocks > uint64_t(blocksAtOnce(chip, kernel, threads, geometry.sharedBytes)) * numMultiprocessors)
      return cooperativeTooLarge;
  }
  if (!kernel.arguments.empty() && !parameters)
    return invalidValue;
  std::string segment(kernel.segmentBytes, '\0');
  for (size_t i = 0; i < kernel.arguments.size(); ++i)
    std::memcpy(&segment[kernel.arguments[i].offset], parameters[i], kernel.arguments[i].size);
  for (const KernelArgument &argument : kernel.hidden) {
    uint64_t value = hiddenValue(argument.kind, geometry);
    std::memcpy(&segment[argument.offset], &value, argument.size);
  }
  auto run = [weak = std::weak_ptr<ModuleObject>(module), &kernel, geometry, segment, isCooperative,
              device = queue->device]() -> int {
    auto live = weak.lock();
    if (!live)
      return misuse(launchFailure, "a module is unloaded before a launch of it has finished");
    if (int code = checkAddresses(kernel, segment, device))
      return code;
    if (executesCode())
      return runCode(*live, kernel, geometry, segment, isCooperative);
    return live->program ? runKernel(*live->program, kernel, geometry, segment, device) : int(success);
  };
  // ROCm has releases that do not capture cooperative launches, and carry them out.
  return give(*queue, std::move(run), {}, /*mayCapture=*/!isCooperative);
}

} // namespace

HIP_API int hipModuleLoadDataEx(void **module, const void *image, unsigned, int *, void **) {
  HIP_BEGIN("hipModuleLoadDataEx");
  auto code = readCodeObject(image);
  if (!code) {
    std::fprintf(stderr, "stand-in for HIP: the code object %s\n", llvm::toString(code.takeError()).c_str());
    return invalidImage;
  }
  const Chip &chip = machine().chips[size_t(currentDevice)];
  auto runs = [&](char feature, const char *name) {
    size_t at = chip.id.find(std::string(":") + name);
    return feature == ' ' || (at != std::string::npos && chip.id[at + 1 + std::strlen(name)] == feature);
  };
  if (code->chip != chip.name || !runs(code->xnack, "xnack") || !runs(code->sramecc, "sramecc"))
    return noBinaryForGpu;
  for (const KernelCode &kernel : code->kernels)
    if (chip.lanes == 64 && kernel.lanes != 64)
      return noBinaryForGpu;
  auto object = std::make_shared<ModuleObject>();
  object->program = findProgram(code->bytes);
  object->code = std::move(*code);
  if (object->program && !checkLayout(*object->program, object->code))
    return invalidImage;
  *module = addObject(std::move(object));
  return success;
}
HIP_API int hipModuleUnload(void *module) {
  Call call("hipModuleUnload");
  if (!findObject<ModuleObject>(module))
    return misuse(invalidHandle, "a module is unloaded that is none");
  removeObject(module);
  return call.injected;
}
HIP_API int hipModuleGetFunction(void **function, void *module, const char *name) {
  HIP_BEGIN("hipModuleGetFunction");
  auto object = findObject<ModuleObject>(module);
  if (!object)
    return misuse(invalidHandle, "a kernel is asked of a module that is none");
  const KernelCode *kernel = object->code.find(name);
  if (!kernel)
    return notFound;
  for (auto &[handle, known] : machine().functions)
    if (known.kernel == kernel && known.module.lock() == object)
      return *function = reinterpret_cast<void *>(handle), success;
  uint64_t handle = machine().nextHandle += 16;
  machine().functions[handle] = {object, kernel};
  *function = reinterpret_cast<void *>(handle);
  return success;
}
HIP_API int hipModuleLaunchKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                                  unsigned blockY, unsigned blockZ, unsigned sharedBytes, void *stream,
                                  void **parameters, void **extra) {
  HIP_BEGIN("hipModuleLaunchKernel");
  if (extra)
    return invalidValue;
  return launch(function, {{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes}, stream, parameters,
                /*isCooperative=*/false);
}
HIP_API int hipModuleLaunchCooperativeKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ,
                                             unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                                             void *stream, void **parameters) {
  HIP_BEGIN("hipModuleLaunchCooperativeKernel");
  return launch(function, {{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes}, stream, parameters,
                /*isCooperative=*/true);
}
HIP_API int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads,
                                                               size_t sharedBytes) {
  HIP_BEGIN("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor");
  const Function *found = findFunction(function);
  std::shared_ptr<ModuleObject> module = found ? found->module.lock() : nullptr;
  if (!module || threads <= 0)
    return invalidValue;
  *blocks = blocksAtOnce(machine().chips[size_t(module->device)], *found->kernel, unsigned(threads), sharedBytes);
  return success;
}
