// A logical Vulkan device with one compute queue: what its buffers and modules are made of.
#ifndef QD_RUNTIME_VULKAN_H
#define QD_RUNTIME_VULKAN_H

#include "runtime/Stream.h"
#include "runtime/VulkanApi.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace qd::rt {

/// Memory bound to a VkBuffer; mapped where the host sees it.
struct VulkanMemory {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceSize bytes = 0;
  uint8_t *mapped = nullptr;
};

class VulkanContext : public Identity {
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

  /// Work that was submitted, by its number: 1 for the first, 0 for none. Queues run it in order.
  using Serial = uint64_t;
  /// Submits a recorded command buffer without waiting for its end, unless too much is under way.
  Expected<Serial> submit(VkCommandBuffer commands);
  /// Waits for the end of what was submitted up to a number.
  Error wait(Serial serial);
  Expected<bool> hasFinished(Serial serial);
  Error waitForAll() { return wait(submitted.load(std::memory_order_acquire)); }

  /// Records a command buffer that may be submitted again and again, into a new one where `commands` is null. An older
  /// content must not be under way.
  Error record(VkCommandBuffer &commands, const std::function<void(VkCommandBuffer)> &content);
  /// Frees one that is not under way; null is allowed.
  void release(VkCommandBuffer &commands);

  /// Records a command buffer, submits it and waits for its end.
  Error run(const std::function<void(VkCommandBuffer)> &record);
  /// Makes earlier writes of host, copies and shaders visible to later commands.
  void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to);

  Error upload(const VulkanMemory &target, const void *data, size_t bytes, size_t offset = 0);
  Error download(const VulkanMemory &source, void *data, size_t bytes, size_t offset = 0);
  Error fillMapped(const VulkanMemory &target, uint8_t value, size_t bytes, size_t offset);
  Error copy(const VulkanMemory &target, size_t offset, const VulkanMemory &source, size_t sourceOffset, size_t bytes);

  /// Whether the device's Fma of floats of 32 or 64 bits rounds once. Asked for the first time it runs a kernel; `name`
  /// is for messages.
  bool fuses(uint32_t width, const std::string &name);
  /// Whether the driver is right about zeros that it sees in code, by a kernel alike.
  bool knowsZeros(const std::string &name);
  /// Whether the driver rounds an f32 that becomes an f16 and an f32 again, by a kernel alike.
  bool roundsHalves(const std::string &name);

  std::shared_ptr<VulkanInstance> instance;
  VulkanFacts facts;
  VulkanFeatures features;
  VulkanFunctions vk;
  VkDevice device = VK_NULL_HANDLE;

private:
  Expected<VulkanMemory *> staging(Use use);
  Error createPool(VkCommandPoolCreateFlags flags, VkCommandPool &result);

  /// A submission that is under way or was not asked for yet; a serial of 0 is free.
  struct Submission {
    VkFence fence = VK_NULL_HANDLE;
    Serial serial = 0;
    unsigned waiters = 0;
  };

  VkPhysicalDeviceMemoryProperties memoryTypes = {};
  VkQueue queue = VK_NULL_HANDLE;

  /// Guards the queue and its submissions.
  std::mutex queueMutex;
  std::condition_variable slotIdle;
  std::array<Submission, 64> submissions;
  std::atomic<Serial> submitted{0};
  Serial finished = 0;

  /// Guards `recordPool`, whose command buffers live as their users want.
  std::mutex recordMutex;
  VkCommandPool recordPool = VK_NULL_HANDLE;

  /// Guards what trials found.
  std::mutex trialMutex;
  std::optional<bool> fused32, fused64, zeros, halves;

  /// Guards what `run` and staged copies use.
  std::recursive_mutex runMutex;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  VulkanMemory uploadStaging, downloadStaging;
};

class VulkanBuffer : public Buffer {
public:
  VulkanBuffer(VulkanContext &context, VulkanMemory memory, size_t bytes)
      : Buffer(bytes, &context), context(context), memory(memory) {}
  ~VulkanBuffer() override {
    (void)context.waitForAll();
    context.free(memory);
  }
  const VulkanMemory &storage() const { return memory; }

  void *mapped() const override { return memory.mapped; }

protected:
  Error doUpload(const void *data, size_t bytes, size_t offset) override {
    return context.upload(memory, data, bytes, offset);
  }
  Error doDownload(void *data, size_t bytes, size_t offset) override {
    return context.download(memory, data, bytes, offset);
  }
  Error doFill(uint8_t value, size_t bytes, size_t offset) override {
    return memory.mapped ? context.fillMapped(memory, value, bytes, offset) : Buffer::doFill(value, bytes, offset);
  }
  Error doCopyFrom(Buffer &source, size_t bytes, size_t offset, size_t sourceOffset) override {
    return context.copy(memory, offset, static_cast<VulkanBuffer &>(source).memory, sourceOffset, bytes);
  }

private:
  VulkanContext &context;
  VulkanMemory memory;
};

/// A kernel's pipeline; owned by its module.
struct VulkanPipeline {
  VkDescriptorSetLayout setLayout = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline handle = VK_NULL_HANDLE;
};

/// A launch's descriptor set, parameters and, where it is prepared, command buffer.
class VulkanLaunch : public Launch {
public:
  VulkanLaunch(VulkanContext &context, const Module &module, const Kernel &kernel, const VulkanPipeline &pipeline,
               Grid grid, std::vector<Argument> arguments)
      : Launch(module, kernel, grid, std::move(arguments)), context(context), pipeline(pipeline),
        device(module.device()) {}
  ~VulkanLaunch() override;

  /// To be called once, first: what `recordTo` needs.
  Error setUp();
  /// The same, and records the command buffer that `submit` needs.
  Error bind() override;
  /// The kernel alone, without barriers.
  void recordTo(VkCommandBuffer commands) const;
  Expected<VulkanContext::Serial> submit();
  Error failure(const std::string &why) const;

private:
  void tearDown();

  VulkanContext &context;
  const VulkanPipeline &pipeline;
  std::string device;
  std::vector<uint8_t> block;
  VulkanMemory blockMemory;
  VkDescriptorPool pool = VK_NULL_HANDLE;
  VkDescriptorSet set = VK_NULL_HANDLE;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  bool isBound = false;
  VulkanContext::Serial last = 0;
};

Expected<std::unique_ptr<Stream>> createVulkanStream(VulkanContext &context);
Expected<std::unique_ptr<Event>> createVulkanEvent(VulkanContext &context);
std::unique_ptr<Graph> createVulkanGraph(VulkanContext &context);

/// Runs a kernel that finds out whether Fma of floats of 32 or 64 bits rounds once; VulkanContext::fuses remembers it.
Expected<bool> tryFusing(VulkanContext &context, uint32_t width, const std::string &device);
/// Runs a kernel that finds out whether sums, products, quotients and choices are right where an operand is a constant
/// zero of f32; VulkanContext::knowsZeros remembers it.
Expected<bool> tryZeros(VulkanContext &context, const std::string &device);
/// Runs a kernel that finds out whether an f32 which becomes an f16 and an f32 again is rounded, on a device that has
/// f16; VulkanContext::roundsHalves remembers it.
Expected<bool> tryHalves(VulkanContext &context, const std::string &device);

/// Loads a variant's SPIR-V. The driver takes it on trust: what it needs must have been checked.
Expected<std::unique_ptr<Module>> loadVulkanModule(VulkanContext &context, const std::string &device,
                                                   const Variant &variant, std::string warnings);

} // namespace qd::rt

#endif // QD_RUNTIME_VULKAN_H
