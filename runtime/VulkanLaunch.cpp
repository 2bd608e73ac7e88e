// Launches of Vulkan kernels: the buffers are bound by a descriptor set, the block of parameters is passed as push
// constants or through a buffer of its own.
#include "runtime/Vulkan.h"

namespace qd::rt {

VulkanLaunch::~VulkanLaunch() { tearDown(); }

void VulkanLaunch::tearDown() {
  isBound = false;
  (void)context.wait(last);
  context.release(commands);
  if (pool)
    context.vk.DestroyDescriptorPool(context.device, pool, nullptr);
  pool = VK_NULL_HANDLE;
  set = VK_NULL_HANDLE;
  context.free(blockMemory);
}

Error VulkanLaunch::failure(const std::string &why) const {
  return fail("kernel '", kernel().name, "' failed on ", device, ": ", why);
}

Error VulkanLaunch::setUp() {
  const VulkanFunctions &vk = context.vk;
  const Kernel &of = kernel();
  block = packParameters(of, arguments);
  if (of.paramsBinding) {
    auto memory = context.allocate(block.size(), VulkanContext::Use::Device);
    if (!memory)
      return failure("no memory for its parameters, " + memory.message());
    blockMemory = *memory;
    if (Error error = context.upload(blockMemory, block.data(), block.size()))
      return failure(error.message());
  }

  const VkPhysicalDeviceLimits &limits = context.facts.limits;
  std::vector<VkDescriptorBufferInfo> buffers;
  std::vector<uint32_t> bindings;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!of.parameters[i].isBuffer())
      continue;
    const VulkanMemory &memory = static_cast<VulkanBuffer *>(arguments[i].memory)->storage();
    VkDeviceSize offset = arguments[i].offset;
    if (offset % limits.minStorageBufferOffsetAlignment)
      return refuse("argument '", of.parameters[i].name, "' of kernel '", of.name, "' begins at byte ", offset,
                  " of its buffer, ", device, " binds at multiples of ", limits.minStorageBufferOffsetAlignment);
    // A kernel that gets none of a buffer's elements may have it whole: nothing lies behind the end.
    if (offset >= memory.bytes)
      offset = 0;
    if (memory.bytes - offset > limits.maxStorageBufferRange)
      return refuse("argument '", of.parameters[i].name, "' of kernel '", of.name, "' has ", memory.bytes - offset,
                  " bytes, ", device, " binds at most ", limits.maxStorageBufferRange);
    buffers.push_back({memory.buffer, offset, VK_WHOLE_SIZE});
    bindings.push_back(*of.parameters[i].binding);
  }
  if (of.paramsBinding) {
    buffers.push_back({blockMemory.buffer, 0, VK_WHOLE_SIZE});
    bindings.push_back(*of.paramsBinding);
  }
  if (buffers.empty())
    return Error::success();

  VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, static_cast<uint32_t>(buffers.size())};
  VkDescriptorPoolCreateInfo poolInfo = {};
  poolInfo.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  poolInfo.maxSets = 1;
  poolInfo.poolSizeCount = 1;
  poolInfo.pPoolSizes = &size;
  if (VkResult result = vk.CreateDescriptorPool(context.device, &poolInfo, nullptr, &pool))
    return failure(vulkanStatus(result));
  VkDescriptorSetAllocateInfo setInfo = {};
  setInfo.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  setInfo.descriptorPool = pool;
  setInfo.descriptorSetCount = 1;
  setInfo.pSetLayouts = &pipeline.setLayout;
  if (VkResult result = vk.AllocateDescriptorSets(context.device, &setInfo, &set))
    return failure(vulkanStatus(result));
  std::vector<VkWriteDescriptorSet> writes;
  for (size_t i = 0; i < buffers.size(); ++i) {
    VkWriteDescriptorSet write = {};
    write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    write.dstSet = set;
    write.dstBinding = bindings[i];
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = &buffers[i];
    writes.push_back(write);
  }
  vk.UpdateDescriptorSets(context.device, static_cast<uint32_t>(writes.size()), writes.data(), 0, nullptr);
  return Error::success();
}

Error VulkanLaunch::bind() {
  tearDown();
  if (Error error = setUp())
    return error;
  if (Error error = context.record(commands, [&](VkCommandBuffer into) { recordTo(into); }))
    return failure(error.message());
  isBound = true;
  return Error::success();
}

void VulkanLaunch::recordTo(VkCommandBuffer into) const {
  const VulkanFunctions &vk = context.vk;
  vk.CmdBindPipeline(into, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
  if (set)
    vk.CmdBindDescriptorSets(into, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1, &set, 0, nullptr);
  if (!block.empty() && !kernel().paramsBinding)
    vk.CmdPushConstants(into, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, static_cast<uint32_t>(block.size()),
                        block.data());
  vk.CmdDispatch(into, grid.x, grid.y, grid.z);
}

Expected<VulkanContext::Serial> VulkanLaunch::submit() {
  if (!isBound)
    return failure("its arguments could not be bound");
  auto serial = context.submit(commands);
  if (!serial)
    return failure(serial.message());
  last = *serial;
  return serial;
}

} // namespace qd::rt
