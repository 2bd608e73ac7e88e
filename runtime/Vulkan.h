// A logical Vulkan device with one compute queue: what its buffers and modules are made of.
#ifndef QD_RUNTIME_VULKAN_H
#define QD_RUNTIME_VULKAN_H

#include "runtime/VulkanApi.h"

#include <functional>

namespace qd::rt {

/// Memory bound to a VkBuffer; mapped where the host sees it.
struct VulkanMemory {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceSize bytes = 0;
  uint8_t *mapped = nullptr;
};

class VulkanContext {
public:
  VulkanContext(std::shared_ptr<VulkanInstance> instance, VulkanFacts facts)
      : instance(std::move(instance)), facts(std::move(facts)) {}
  ~VulkanContext();
  VulkanContext(const VulkanContext &) = delete;
  VulkanContext &operator=(const VulkanContext &) = delete;

  /// Creates the logical device; to be called once, first.
  Error open();

  /// What memory is for: kernels' data, or copies between host and device in one direction.
  enum class Use { Device, Upload, Download };
  Expected<VulkanMemory> allocate(size_t bytes, Use use);
  void free(VulkanMemory &memory);
  /// The size of the largest heap of the device's own.
  uint64_t localBytes() const;

  /// Records a command buffer, submits it and waits for its end.
  Error run(const std::function<void(VkCommandBuffer)> &record);
  /// Makes earlier writes of host, copies and shaders visible to later commands.
  void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to);

  Error upload(const VulkanMemory &target, const void *data, size_t bytes, size_t offset = 0);
  Error download(const VulkanMemory &source, void *data, size_t bytes, size_t offset = 0);
  Error copy(const VulkanMemory &target, size_t offset, const VulkanMemory &source, size_t sourceOffset, size_t bytes);

  std::shared_ptr<VulkanInstance> instance;
  VulkanFacts facts;
  VulkanFeatures features;
  VulkanFunctions vk;
  VkDevice device = VK_NULL_HANDLE;

private:
  Expected<VulkanMemory *> staging(Use use);

  VkPhysicalDeviceMemoryProperties memoryTypes = {};
  VkQueue queue = VK_NULL_HANDLE;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;
  VulkanMemory uploadStaging, downloadStaging;
};

class VulkanBuffer : public Buffer {
public:
  VulkanBuffer(VulkanContext &context, VulkanMemory memory, size_t bytes)
      : Buffer(bytes, &context), context(context), memory(memory) {}
  ~VulkanBuffer() override { context.free(memory); }
  const VulkanMemory &storage() const { return memory; }

  void *mapped() const override { return memory.mapped; }

protected:
  Error doUpload(const void *data, size_t bytes, size_t offset) override {
    return context.upload(memory, data, bytes, offset);
  }
  Error doDownload(void *data, size_t bytes, size_t offset) override {
    return context.download(memory, data, bytes, offset);
  }
  Error doCopyFrom(Buffer &source, size_t bytes, size_t offset, size_t sourceOffset) override {
    return context.copy(memory, offset, static_cast<VulkanBuffer &>(source).memory, sourceOffset, bytes);
  }

private:
  VulkanContext &context;
  VulkanMemory memory;
};

/// Loads a variant's SPIR-V. The driver takes it on trust: what it needs must have been checked.
Expected<std::unique_ptr<Module>> loadVulkanModule(VulkanContext &context, const std::string &device,
                                                   const Variant &variant, std::string warnings);

} // namespace qd::rt

#endif // QD_RUNTIME_VULKAN_H
