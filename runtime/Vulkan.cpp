// The Vulkan device: one compute queue, whose submissions are numbered and waited for by their fences. Buffers
// live in device memory; where the host does not see that, copies go through a staging buffer.
#include "runtime/Vulkan.h"
#include "runtime/Backends.h"
#include "runtime/Match.h"

#include <algorithm>
#include <cstring>

namespace qd::rt {

namespace {

/// Copies between host and device go in pieces of this size.
constexpr size_t stagingBytes = 16 << 20;
/// Vulkan forbids empty buffers, and kernels may access bytes by the word.
constexpr size_t smallestBuffer = 16;

class VulkanDevice : public Device {
public:
  VulkanDevice(const std::string &name, std::unique_ptr<VulkanContext> context, const DeviceOptions &options)
      : Device(name), context(std::move(context)), options(options) {
    this->context->label = name;
  }

  std::string description() const override { return context->facts.description(); }

  DeviceProperties properties() const override {
    const VulkanFacts &facts = context->facts;
    DeviceProperties result;
    result.name = name();
    result.description = facts.description();
    result.target = target();
    result.defaultSubgroup = options.subgroupSize ? options.subgroupSize : facts.defaultSubgroup;
    result.smallestSubgroup = facts.smallestSubgroup;
    result.largestSubgroup = facts.largestSubgroup;
    result.memoryBytes = context->localBytes();
    result.limits = facts.launchLimits();
    result.isGpu = facts.type != VK_PHYSICAL_DEVICE_TYPE_CPU;
    result.isHostMemory = facts.type != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    return result;
  }

  Expected<std::unique_ptr<Buffer>> allocate(size_t bytes) override {
    auto memory = context->allocate(bytes, VulkanContext::Use::Device);
    if (!memory)
      return fail(name(), " has no memory for a buffer of ", bytes, " bytes: ", memory.message());
    return std::unique_ptr<Buffer>(new VulkanBuffer(*context, *memory, bytes));
  }

  Expected<std::unique_ptr<Module>> load(const Program &program) override {
    const VulkanFacts &facts = context->facts;
    uint32_t wanted = options.subgroupSize ? options.subgroupSize : facts.defaultSubgroup;
    uint32_t smallest = options.subgroupSize ? wanted : facts.smallestSubgroup;
    uint32_t largest = options.subgroupSize ? wanted : facts.largestSubgroup;
    VariantRequest request{name(), target(), wanted, options, [&](const Bundle &bundle) {
                             return matchVulkan(bundle, smallest, largest, wanted, facts.apiMinor,
                                                [&](const Variant &variant) { return runs(variant); });
                           }};
    std::string warnings;
    auto variant = variantFor(program, request, warnings);
    if (!variant)
      return variant.error();
    auto module = loadVulkanModule(*context, name(), *variant, std::move(warnings));
    if (!module)
      return fail("cannot load '", program.name, "' on ", name(), ": ", module.message());
    return module;
  }

  Expected<std::unique_ptr<Stream>> createStream() override { return createVulkanStream(*context); }
  Expected<std::unique_ptr<Event>> createEvent() override { return createVulkanEvent(*context); }
  Expected<std::unique_ptr<Graph>> createGraph() override { return createVulkanGraph(*context); }
  Error synchronize() override {
    Error error = context->waitForAll();
    return error ? fail("cannot wait for ", name(), ": ", error.message()) : Error::success();
  }

private:
  /// The chip that has group arithmetic, which not every device of its Vulkan version offers.
  std::string target() const {
    bool hasArithmetic = context->facts.subgroupOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    return context->facts.apiMinor >= 3 && hasArithmetic ? "spirv:vulkan1.3" : "spirv";
  }

  /// What this device lacks of a variant's needs.
  Error runs(const Variant &variant) const {
    auto code = summarizeSpirv(variant.image);
    if (!code)
      return code.error();
    for (const Kernel &kernel : variant.interface.kernels)
      if (Error error = checkVulkanFeatures(*code, kernel, context->features, context->facts))
        return error;
    return Error::success();
  }

  std::unique_ptr<VulkanContext> context;
  DeviceOptions options;
};

} // namespace

VulkanContext::~VulkanContext() {
  if (!device)
    return;
  if (vk.DestroyDevice) {
    if (vk.DeviceWaitIdle)
      vk.DeviceWaitIdle(device);
    free(uploadStaging);
    free(downloadStaging);
    for (Submission &submission : submissions)
      if (submission.fence)
        vk.DestroyFence(device, submission.fence, nullptr);
    for (VkCommandPool each : {pool, recordPool})
      if (each)
        vk.DestroyCommandPool(device, each, nullptr);
    vk.DestroyDevice(device, nullptr);
  }
}

Error VulkanContext::open() {
  features.query(*instance, facts.handle, facts.apiMinor);
  float priority = 1;
  VkDeviceQueueCreateInfo queueInfo = {};
  queueInfo.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queueInfo.queueFamilyIndex = *facts.queueFamily;
  queueInfo.queueCount = 1;
  queueInfo.pQueuePriorities = &priority;
  VkDeviceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features.core;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queueInfo;
  info.enabledExtensionCount = static_cast<uint32_t>(features.extensions.size());
  info.ppEnabledExtensionNames = features.extensions.data();
  VkResult result = instance->CreateDevice(facts.handle, &info, nullptr, &device);
  if (result != VK_SUCCESS) {
    device = VK_NULL_HANDLE;
    return fail("the driver of ", facts.name, " creates no device (", vulkanStatus(result), ")");
  }
  bool complete = true;
#define QD_VULKAN_LOAD(name)                                                                                 \
  vk.name = reinterpret_cast<PFN_vk##name>(instance->GetDeviceProcAddr(device, "vk" #name));                 \
  complete &= vk.name != nullptr;
  QD_VULKAN_DEVICE_FUNCTIONS(QD_VULKAN_LOAD)
#undef QD_VULKAN_LOAD
  if (!complete)
    return fail("the driver of ", facts.name, " lacks functions of Vulkan 1.1");
  instance->GetPhysicalDeviceMemoryProperties(facts.handle, &memoryTypes);
  vk.GetDeviceQueue(device, *facts.queueFamily, 0, &queue);

  if (Error error = createPool(0, pool))
    return error;
  if (Error error = createPool(VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, recordPool))
    return error;
  VkCommandBufferAllocateInfo commandsInfo = {};
  commandsInfo.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  commandsInfo.commandPool = pool;
  commandsInfo.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  commandsInfo.commandBufferCount = 1;
  result = vk.AllocateCommandBuffers(device, &commandsInfo, &commands);
  VkFenceCreateInfo fenceInfo = {};
  fenceInfo.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  for (Submission &submission : submissions)
    if (result == VK_SUCCESS)
      result = vk.CreateFence(device, &fenceInfo, nullptr, &submission.fence);
  if (result != VK_SUCCESS)
    return fail("the driver of ", facts.name, " gives no command buffer (", vulkanStatus(result), ")");
  return Error::success();
}

Error VulkanContext::createPool(VkCommandPoolCreateFlags flags, VkCommandPool &result) {
  VkCommandPoolCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  info.flags = flags;
  info.queueFamilyIndex = *facts.queueFamily;
  if (VkResult status = vk.CreateCommandPool(device, &info, nullptr, &result))
    return fail("the driver of ", facts.name, " gives no command pool (", vulkanStatus(status), ")");
  return Error::success();
}

Expected<VulkanMemory> VulkanContext::allocate(size_t bytes, Use use) {
  VulkanMemory result;
  if (bytes > PTRDIFF_MAX)
    return Error::failure(vulkanStatus(VK_ERROR_OUT_OF_DEVICE_MEMORY));
  result.bytes = std::max((static_cast<VkDeviceSize>(bytes) + 3) / 4 * 4, VkDeviceSize(smallestBuffer));
  VkBufferCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = result.bytes;
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (use == Use::Device)
    info.usage |= VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  VkResult status = vk.CreateBuffer(device, &info, nullptr, &result.buffer);
  if (status != VK_SUCCESS)
    return Error::failure(vulkanStatus(status));
  VkMemoryRequirements requirements;
  vk.GetBufferMemoryRequirements(device, result.buffer, &requirements);

  // Each list in order of preference; the later ones always exist for one use or another.
  constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                  visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                            VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                                  cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  bool discrete = facts.type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  std::vector<VkMemoryPropertyFlags> preferences;
  if (use == Use::Device && discrete)
    preferences = {local, 0};
  else if (use == Use::Device)
    preferences = {local | visible | cached, local | visible, local, 0};
  else if (use == Use::Upload)
    preferences = {visible};
  else
    preferences = {visible | cached, visible};

  status = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  for (VkMemoryPropertyFlags wanted : preferences) {
    for (uint32_t type = 0; type < memoryTypes.memoryTypeCount && !result.memory; ++type) {
      VkMemoryPropertyFlags flags = memoryTypes.memoryTypes[type].propertyFlags;
      if (!(requirements.memoryTypeBits >> type & 1) || (flags & wanted) != wanted)
        continue;
      VkMemoryAllocateInfo allocateInfo = {};
      allocateInfo.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
      allocateInfo.allocationSize = requirements.size;
      allocateInfo.memoryTypeIndex = type;
      status = vk.AllocateMemory(device, &allocateInfo, nullptr, &result.memory);
      if (status != VK_SUCCESS) {
        result.memory = VK_NULL_HANDLE;
        continue;
      }
      status = vk.BindBufferMemory(device, result.buffer, result.memory, 0);
      // A discrete device's visible memory is slow to read for the host: it is left to staged copies.
      bool map = use != Use::Device || (!discrete && (flags & visible) == visible);
      if (status == VK_SUCCESS && map) {
        void *address = nullptr;
        status = vk.MapMemory(device, result.memory, 0, VK_WHOLE_SIZE, 0, &address);
        result.mapped = static_cast<uint8_t *>(address);
      }
    }
    if (result.memory)
      break;
  }
  if (status != VK_SUCCESS) {
    free(result);
    return Error::failure(vulkanStatus(status));
  }
  return result;
}

uint64_t VulkanContext::localBytes() const {
  uint64_t bytes = 0;
  for (uint32_t heap = 0; heap < memoryTypes.memoryHeapCount; ++heap)
    if (memoryTypes.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
      bytes = std::max<uint64_t>(bytes, memoryTypes.memoryHeaps[heap].size);
  return bytes;
}

void VulkanContext::free(VulkanMemory &memory) {
  if (memory.buffer)
    vk.DestroyBuffer(device, memory.buffer, nullptr);
  if (memory.memory)
    vk.FreeMemory(device, memory.memory, nullptr);
  memory = {};
}

Expected<VulkanContext::Serial> VulkanContext::submit(VkCommandBuffer commands) {
  std::unique_lock<std::mutex> lock(queueMutex);
  for (;;) {
    Serial serial = submitted.load(std::memory_order_relaxed) + 1;
    Submission &slot = submissions[serial % submissions.size()];
    if (slot.waiters) {
      slotIdle.wait(lock);
      continue;
    }
    VkResult result = VK_SUCCESS;
    if (slot.serial) {
      if ((result = vk.WaitForFences(device, 1, &slot.fence, VK_TRUE, UINT64_MAX)))
        return Error::failure(vulkanStatus(result));
      finished = std::max(finished, slot.serial);
      slot.serial = 0;
      result = vk.ResetFences(device, 1, &slot.fence);
    }
    VkSubmitInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    if (result == VK_SUCCESS)
      result = vk.QueueSubmit(queue, 1, &info, slot.fence);
    if (result != VK_SUCCESS)
      return Error::failure(vulkanStatus(result));
    slot.serial = serial;
    submitted.store(serial, std::memory_order_release);
    return serial;
  }
}

Error VulkanContext::wait(Serial serial) {
  std::unique_lock<std::mutex> lock(queueMutex);
  Submission &slot = submissions[serial % submissions.size()];
  // Slots are used again only for what was submitted later.
  if (serial <= finished || slot.serial != serial)
    return Error::success();
  ++slot.waiters;
  lock.unlock();
  VkResult result = vk.WaitForFences(device, 1, &slot.fence, VK_TRUE, UINT64_MAX);
  lock.lock();
  --slot.waiters;
  if (result == VK_SUCCESS)
    finished = std::max(finished, serial);
  slotIdle.notify_all();
  return result == VK_SUCCESS ? Error::success() : Error::failure(vulkanStatus(result));
}

Expected<bool> VulkanContext::hasFinished(Serial serial) {
  std::lock_guard<std::mutex> lock(queueMutex);
  Submission &slot = submissions[serial % submissions.size()];
  if (serial <= finished || slot.serial != serial)
    return true;
  VkResult result = vk.GetFenceStatus(device, slot.fence);
  if (result == VK_NOT_READY)
    return false;
  if (result != VK_SUCCESS)
    return Error::failure(vulkanStatus(result));
  finished = std::max(finished, serial);
  return true;
}

Error VulkanContext::record(VkCommandBuffer &commands, const std::function<void(VkCommandBuffer)> &content) {
  std::lock_guard<std::mutex> lock(recordMutex);
  VkResult result = VK_SUCCESS;
  if (!commands) {
    VkCommandBufferAllocateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = recordPool;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    result = vk.AllocateCommandBuffers(device, &info, &commands);
  }
  VkCommandBufferBeginInfo begin = {};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  if (result == VK_SUCCESS)
    result = vk.BeginCommandBuffer(commands, &begin);
  if (result == VK_SUCCESS) {
    constexpr VkPipelineStageFlags work = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    barrier(commands, work, work);
    content(commands);
    barrier(commands, work, work | VK_PIPELINE_STAGE_HOST_BIT);
    result = vk.EndCommandBuffer(commands);
  }
  return result == VK_SUCCESS ? Error::success() : Error::failure(vulkanStatus(result));
}

void VulkanContext::release(VkCommandBuffer &commands) {
  if (!commands)
    return;
  std::lock_guard<std::mutex> lock(recordMutex);
  vk.FreeCommandBuffers(device, recordPool, 1, &commands);
  commands = VK_NULL_HANDLE;
}

Error VulkanContext::run(const std::function<void(VkCommandBuffer)> &record) {
  std::lock_guard<std::recursive_mutex> lock(runMutex);
  VkCommandBufferBeginInfo begin = {};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  VkResult result = vk.ResetCommandPool(device, pool, 0);
  if (result == VK_SUCCESS)
    result = vk.BeginCommandBuffer(commands, &begin);
  if (result == VK_SUCCESS) {
    record(commands);
    result = vk.EndCommandBuffer(commands);
  }
  if (result != VK_SUCCESS)
    return Error::failure(vulkanStatus(result));
  auto serial = submit(commands);
  return serial ? wait(*serial) : serial.error();
}

void VulkanContext::barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to) {
  VkMemoryBarrier memory = {};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  vk.CmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

Expected<VulkanMemory *> VulkanContext::staging(Use use) {
  VulkanMemory &memory = use == Use::Upload ? uploadStaging : downloadStaging;
  if (!memory.buffer) {
    auto allocated = allocate(stagingBytes, use);
    if (!allocated)
      return allocated.error();
    memory = *allocated;
  }
  return &memory;
}

Error VulkanContext::fillMapped(const VulkanMemory &target, uint8_t value, size_t bytes, size_t offset) {
  if (Error error = waitForAll())
    return fail("cannot fill memory of the device: ", error.message());
  std::memset(target.mapped + offset, value, bytes);
  return Error::success();
}

Error VulkanContext::copy(const VulkanMemory &target, size_t offset, const VulkanMemory &source, size_t sourceOffset,
                          size_t bytes) {
  return run([&](VkCommandBuffer commands) {
    barrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_PIPELINE_STAGE_TRANSFER_BIT);
    VkBufferCopy region = {sourceOffset, offset, bytes};
    vk.CmdCopyBuffer(commands, source.buffer, target.buffer, 1, &region);
    barrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT);
  });
}

Error VulkanContext::upload(const VulkanMemory &target, const void *data, size_t bytes, size_t offset) {
  std::lock_guard<std::recursive_mutex> lock(runMutex);
  if (target.mapped) {
    if (Error error = waitForAll())
      return fail("cannot copy to the device: ", error.message());
    std::memcpy(target.mapped + offset, data, bytes);
    return Error::success();
  }
  auto source = staging(Use::Upload);
  if (!source)
    return fail("no memory for copies to the device: ", source.message());
  for (size_t at = 0; at < bytes; at += stagingBytes) {
    size_t length = std::min(bytes - at, stagingBytes);
    std::memcpy((*source)->mapped, static_cast<const uint8_t *>(data) + at, length);
    Error error = run([&](VkCommandBuffer commands) {
      barrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
              VK_PIPELINE_STAGE_TRANSFER_BIT);
      VkBufferCopy region = {0, offset + at, length};
      vk.CmdCopyBuffer(commands, (*source)->buffer, target.buffer, 1, &region);
    });
    if (error)
      return fail("cannot copy to the device: ", error.message());
  }
  return Error::success();
}

Error VulkanContext::download(const VulkanMemory &source, void *data, size_t bytes, size_t offset) {
  std::lock_guard<std::recursive_mutex> lock(runMutex);
  if (source.mapped) {
    if (Error error = waitForAll())
      return fail("cannot copy from the device: ", error.message());
    std::memcpy(data, source.mapped + offset, bytes);
    return Error::success();
  }
  auto target = staging(Use::Download);
  if (!target)
    return fail("no memory for copies from the device: ", target.message());
  for (size_t at = 0; at < bytes; at += stagingBytes) {
    size_t length = std::min(bytes - at, stagingBytes);
    Error error = run([&](VkCommandBuffer commands) {
      barrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
              VK_PIPELINE_STAGE_TRANSFER_BIT);
      VkBufferCopy region = {offset + at, 0, length};
      vk.CmdCopyBuffer(commands, source.buffer, (*target)->buffer, 1, &region);
      barrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT);
    });
    if (error)
      return fail("cannot copy from the device: ", error.message());
    std::memcpy(static_cast<uint8_t *>(data) + at, (*target)->mapped, length);
  }
  return Error::success();
}

DeviceResult openVulkan(std::optional<unsigned> index, const DeviceOptions &options) {
  auto instance = openVulkanInstance();
  if (!instance)
    return fail("device 'vulkan' is absent: ", instance.message());
  auto devices = vulkanDevices(**instance);
  if (!devices)
    return fail("device 'vulkan' is absent: ", devices.message());
  std::optional<size_t> chosen = defaultVulkanDevice(*devices);
  if (index) {
    if (*index >= devices->size())
      return fail("device 'vulkan:", *index, "' is absent: the machine has vulkan:0",
                  devices->size() > 1 ? text(" to ", devices->size() - 1) : "");
    chosen = *index;
  }
  if (!chosen || !(*devices)[*chosen].queueFamily)
    return fail("device 'vulkan", index ? text(":", *index) : "",
                "' is absent: it needs Vulkan 1.1 and a compute queue, which ",
                chosen ? (*devices)[*chosen].name : "no device here", chosen ? " lacks" : " has");
  const VulkanFacts &facts = (*devices)[*chosen];
  std::string name = text("vulkan:", *chosen);
  uint32_t lanes = options.subgroupSize;
  if (lanes && (lanes < facts.smallestSubgroup || lanes > facts.largestSubgroup || (lanes & (lanes - 1))))
    return fail(name, " has no subgroups of ", lanes, " lanes: ", facts.description());
  auto context = std::make_unique<VulkanContext>(*instance, facts);
  if (Error error = context->open())
    return error;
  return std::unique_ptr<Device>(new VulkanDevice(name, std::move(context), options));
}

std::vector<DeviceEntry> listVulkan() {
  auto instance = openVulkanInstance();
  if (!instance)
    return {{"vulkan", false, instance.message()}};
  auto devices = vulkanDevices(**instance);
  if (!devices)
    return {{"vulkan", false, devices.message()}};
  std::vector<DeviceEntry> entries;
  std::optional<size_t> chosen = defaultVulkanDevice(*devices);
  for (size_t i = 0; i < devices->size(); ++i) {
    const VulkanFacts &facts = (*devices)[i];
    bool usable = facts.queueFamily.has_value();
    entries.push_back({text("vulkan:", i), usable,
                       usable ? facts.description() + (chosen == i && devices->size() > 1 ? " (default)" : "")
                              : facts.name + " has no Vulkan 1.1 or no compute queue",
                       facts.type != VK_PHYSICAL_DEVICE_TYPE_CPU});
  }
  return entries;
}

} // namespace qd::rt
