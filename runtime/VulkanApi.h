// The Vulkan functions that the runtime calls, found through the loader at run time, and the optional
// features of a physical device.
#ifndef QD_RUNTIME_VULKANAPI_H
#define QD_RUNTIME_VULKANAPI_H

#include "runtime/Device.h"
#include "runtime/VulkanAbi.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

namespace qd::rt {

#define QD_VULKAN_INSTANCE_FUNCTIONS(X)                                                                      \
  X(DestroyInstance)                                                                                         \
  X(EnumeratePhysicalDevices)                                                                                \
  X(EnumerateDeviceExtensionProperties)                                                                      \
  X(GetPhysicalDeviceProperties2)                                                                            \
  X(GetPhysicalDeviceFeatures2)                                                                              \
  X(GetPhysicalDeviceMemoryProperties)                                                                       \
  X(GetPhysicalDeviceQueueFamilyProperties)                                                                  \
  X(CreateDevice)                                                                                            \
  X(GetDeviceProcAddr)

#define QD_VULKAN_DEVICE_FUNCTIONS(X)                                                                        \
  X(DestroyDevice)                                                                                           \
  X(GetDeviceQueue)                                                                                          \
  X(DeviceWaitIdle)                                                                                          \
  X(CreateCommandPool)                                                                                       \
  X(DestroyCommandPool)                                                                                      \
  X(AllocateCommandBuffers)                                                                                  \
  X(FreeCommandBuffers)                                                                                      \
  X(ResetCommandPool)                                                                                        \
  X(BeginCommandBuffer)                                                                                      \
  X(EndCommandBuffer)                                                                                        \
  X(QueueSubmit)                                                                                             \
  X(CreateFence)                                                                                             \
  X(DestroyFence)                                                                                            \
  X(ResetFences)                                                                                             \
  X(WaitForFences)                                                                                           \
  X(GetFenceStatus)                                                                                          \
  X(CreateBuffer)                                                                                            \
  X(DestroyBuffer)                                                                                           \
  X(GetBufferMemoryRequirements)                                                                             \
  X(AllocateMemory)                                                                                          \
  X(FreeMemory)                                                                                              \
  X(BindBufferMemory)                                                                                        \
  X(MapMemory)                                                                                               \
  X(CreateShaderModule)                                                                                      \
  X(DestroyShaderModule)                                                                                     \
  X(CreateDescriptorSetLayout)                                                                               \
  X(DestroyDescriptorSetLayout)                                                                              \
  X(CreatePipelineLayout)                                                                                    \
  X(DestroyPipelineLayout)                                                                                   \
  X(CreateComputePipelines)                                                                                  \
  X(DestroyPipeline)                                                                                         \
  X(CreateDescriptorPool)                                                                                    \
  X(DestroyDescriptorPool)                                                                                   \
  X(AllocateDescriptorSets)                                                                                  \
  X(UpdateDescriptorSets)                                                                                    \
  X(CreateQueryPool)                                                                                         \
  X(DestroyQueryPool)                                                                                        \
  X(GetQueryPoolResults)                                                                                     \
  X(CmdBindPipeline)                                                                                         \
  X(CmdBindDescriptorSets)                                                                                   \
  X(CmdPushConstants)                                                                                        \
  X(CmdDispatch)                                                                                             \
  X(CmdCopyBuffer)                                                                                           \
  X(CmdFillBuffer)                                                                                           \
  X(CmdPipelineBarrier)                                                                                      \
  X(CmdResetQueryPool)                                                                                       \
  X(CmdWriteTimestamp)

/// A Vulkan instance and its functions; destroyed with the last owner.
struct VulkanInstance {
  VulkanInstance() = default;
  ~VulkanInstance();
  VulkanInstance(const VulkanInstance &) = delete;
  VulkanInstance &operator=(const VulkanInstance &) = delete;

  VkInstance handle = VK_NULL_HANDLE;
#define QD_VULKAN_MEMBER(name) PFN_vk##name name = nullptr;
  QD_VULKAN_INSTANCE_FUNCTIONS(QD_VULKAN_MEMBER)
};

struct VulkanFunctions {
  QD_VULKAN_DEVICE_FUNCTIONS(QD_VULKAN_MEMBER)
#undef QD_VULKAN_MEMBER
};

/// Optional features, as one chain of Vulkan's records: filled by a device, then handed back to enable them.
/// Not copyable: the records point at each other.
struct VulkanFeatures {
  VulkanFeatures() = default;
  VulkanFeatures(const VulkanFeatures &) = delete;
  VulkanFeatures &operator=(const VulkanFeatures &) = delete;

  /// Chains the records that the device knows and asks it for its features.
  void query(const VulkanInstance &instance, VkPhysicalDevice device, uint32_t apiMinor);

  /// Extensions that the features need on this device.
  std::vector<const char *> extensions;

  VkPhysicalDeviceFeatures2 core = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, nullptr, {}};
  VkPhysicalDevice16BitStorageFeatures storage16 = {};
  VkPhysicalDevice8BitStorageFeatures storage8 = {};
  VkPhysicalDeviceVariablePointersFeatures variablePointers = {};
  VkPhysicalDeviceShaderFloat16Int8Features float16Int8 = {};
  VkPhysicalDeviceShaderAtomicInt64Features atomicInt64 = {};
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomicFloat = {};
  VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT atomicFloat2 = {};
  VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures subgroupTypes = {};
  VkPhysicalDeviceVulkanMemoryModelFeatures memoryModel = {};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroupSize = {};
};

/// A physical device and what matters of it.
struct VulkanFacts {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  std::string name;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  uint32_t apiMinor = 0;
  VkPhysicalDeviceLimits limits = {};
  VkSubgroupFeatureFlags subgroupOperations = 0;
  /// Without size control both ends are the default size.
  uint32_t smallestSubgroup = 0, largestSubgroup = 0, defaultSubgroup = 0;
  bool subgroupSizeControl = false;
  /// Of a workgroup whose subgroup size is asked for.
  uint32_t mostSubgroups = UINT32_MAX;
  VkPhysicalDeviceFloatControlsProperties floatControls = {};
  std::optional<uint32_t> queueFamily;
  uint32_t timestampBits = 0;

  std::string description() const;
  LaunchLimits launchLimits() const;
};

Expected<std::shared_ptr<VulkanInstance>> openVulkanInstance();
/// The devices in the loader's order; those without Vulkan 1.1 or a compute queue have no queueFamily.
Expected<std::vector<VulkanFacts>> vulkanDevices(const VulkanInstance &instance);
/// The device that "vulkan" means: a real GPU before a processor. Nothing when none can compute.
std::optional<size_t> defaultVulkanDevice(const std::vector<VulkanFacts> &devices);

/// Whether a device has all that a module declares and, where that does not tell, what a kernel lists; the
/// error names what it lacks.
Error checkVulkanFeatures(const SpirvSummary &code, const Kernel &kernel, const VulkanFeatures &features,
                          const VulkanFacts &facts);

/// "VK_ERROR_DEVICE_LOST".
std::string vulkanStatus(VkResult result);

} // namespace qd::rt

#endif // QD_RUNTIME_VULKANAPI_H
