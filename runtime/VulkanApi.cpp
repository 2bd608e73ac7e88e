// Opening the Vulkan loader, listing devices, and the table of optional features: one row a feature, with the
// name that a kernel's interface uses, the SPIR-V capability that declares it, and where Vulkan reports it.
#include "runtime/VulkanApi.h"
#include "runtime/Library.h"

#include <algorithm>
#include <cstring>

namespace qd::rt {

namespace {

/// The newest Vulkan 1.x that this code knows.
constexpr uint32_t newestMinor = 3;

struct FeatureRow {
  const char *name;
  /// 0 where no capability declares it; then a kernel's interface lists the name.
  uint32_t capability;
  bool (*has)(const VulkanFeatures &features, const VulkanFacts &facts);
};

#define QD_FEATURE(record)                                                                                   \
  [](const VulkanFeatures &f, const VulkanFacts &) -> bool { return f.record == VK_TRUE; }
#define QD_SUBGROUP(bit)                                                                                     \
  [](const VulkanFeatures &, const VulkanFacts &d) -> bool {                                                 \
    return (d.subgroupOperations & VK_SUBGROUP_FEATURE_##bit##_BIT) != 0;                                    \
  }

const FeatureRow featureTable[] = {
    {"float16", 9, QD_FEATURE(float16Int8.shaderFloat16)},
    {"float64", 10, QD_FEATURE(core.features.shaderFloat64)},
    {"int64", 11, QD_FEATURE(core.features.shaderInt64)},
    {"int16", 22, QD_FEATURE(core.features.shaderInt16)},
    {"int8", 39, QD_FEATURE(float16Int8.shaderInt8)},
    {"storage16", 4433, QD_FEATURE(storage16.storageBuffer16BitAccess)},
    {"uniform_storage16", 4434, QD_FEATURE(storage16.uniformAndStorageBuffer16BitAccess)},
    {"push_constant16", 4435, QD_FEATURE(storage16.storagePushConstant16)},
    {"storage8", 4448, QD_FEATURE(storage8.storageBuffer8BitAccess)},
    {"uniform_storage8", 4449, QD_FEATURE(storage8.uniformAndStorageBuffer8BitAccess)},
    {"push_constant8", 4450, QD_FEATURE(storage8.storagePushConstant8)},
    {"variable_pointers_storage_buffer", 4441, QD_FEATURE(variablePointers.variablePointersStorageBuffer)},
    {"variable_pointers", 4442, QD_FEATURE(variablePointers.variablePointers)},
    {"int64_atomics", 12, QD_FEATURE(atomicInt64.shaderBufferInt64Atomics)},
    {"shared_int64_atomics", 0, QD_FEATURE(atomicInt64.shaderSharedInt64Atomics)},
    {"float32_atomics", 0, QD_FEATURE(atomicFloat.shaderBufferFloat32Atomics)},
    {"float32_atomic_add", 6033, QD_FEATURE(atomicFloat.shaderBufferFloat32AtomicAdd)},
    {"shared_float32_atomic_add", 0, QD_FEATURE(atomicFloat.shaderSharedFloat32AtomicAdd)},
    {"float64_atomics", 0, QD_FEATURE(atomicFloat.shaderBufferFloat64Atomics)},
    {"float64_atomic_add", 6034, QD_FEATURE(atomicFloat.shaderBufferFloat64AtomicAdd)},
    {"shared_float64_atomic_add", 0, QD_FEATURE(atomicFloat.shaderSharedFloat64AtomicAdd)},
    {"float16_atomic_add", 6095, QD_FEATURE(atomicFloat2.shaderBufferFloat16AtomicAdd)},
    {"float32_atomic_min_max", 5612, QD_FEATURE(atomicFloat2.shaderBufferFloat32AtomicMinMax)},
    {"float64_atomic_min_max", 5613, QD_FEATURE(atomicFloat2.shaderBufferFloat64AtomicMinMax)},
    {"memory_model", 5345, QD_FEATURE(memoryModel.vulkanMemoryModel)},
    {"memory_model_device_scope", 5346, QD_FEATURE(memoryModel.vulkanMemoryModelDeviceScope)},
    {"subgroup_extended_types", 0, QD_FEATURE(subgroupTypes.shaderSubgroupExtendedTypes)},
    {"subgroup_basic", 61, QD_SUBGROUP(BASIC)},
    {"subgroup_vote", 62, QD_SUBGROUP(VOTE)},
    {"subgroup_arithmetic", 63, QD_SUBGROUP(ARITHMETIC)},
    {"subgroup_ballot", 64, QD_SUBGROUP(BALLOT)},
    {"subgroup_shuffle", 65, QD_SUBGROUP(SHUFFLE)},
    {"subgroup_shuffle_relative", 66, QD_SUBGROUP(SHUFFLE_RELATIVE)},
    {"subgroup_clustered", 67, QD_SUBGROUP(CLUSTERED)},
};

struct FloatControlRow {
  uint32_t mode;
  const char *name;
  VkBool32 VkPhysicalDeviceFloatControlsProperties::*widths[3]; // 16, 32, 64
};

#define QD_CONTROL(name)                                                                                     \
  {&VkPhysicalDeviceFloatControlsProperties::name##Float16,                                                  \
   &VkPhysicalDeviceFloatControlsProperties::name##Float32,                                                  \
   &VkPhysicalDeviceFloatControlsProperties::name##Float64}

const FloatControlRow floatControlTable[] = {
    {4459, "kept subnormals", QD_CONTROL(shaderDenormPreserve)},
    {4460, "flushed subnormals", QD_CONTROL(shaderDenormFlushToZero)},
    {4461, "kept signed zeros, infinities and NaNs", QD_CONTROL(shaderSignedZeroInfNanPreserve)},
    {4462, "rounding to nearest even", QD_CONTROL(shaderRoundingModeRTE)},
    {4463, "rounding to zero", QD_CONTROL(shaderRoundingModeRTZ)},
};

int rankOf(VkPhysicalDeviceType type) {
  switch (type) {
  case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    return 0;
  case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
    return 1;
  case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
    return 2;
  case VK_PHYSICAL_DEVICE_TYPE_OTHER:
    return 3;
  default:
    return 4;
  }
}

std::vector<VkExtensionProperties> extensionsOf(const VulkanInstance &instance, VkPhysicalDevice device) {
  uint32_t count = 0;
  instance.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  instance.EnumerateDeviceExtensionProperties(device, nullptr, &count, extensions.data());
  extensions.resize(count);
  return extensions;
}

bool contains(const std::vector<VkExtensionProperties> &extensions, const char *name) {
  return std::any_of(extensions.begin(), extensions.end(),
                     [&](const VkExtensionProperties &e) { return !std::strcmp(e.extensionName, name); });
}

/// Appends a record to a chain of Vulkan's.
template <typename Record> void chain(void **&tail, Record &record, VkStructureType type) {
  record = {};
  record.sType = type;
  *tail = &record;
  tail = &record.pNext;
}

VulkanFacts factsOf(const VulkanInstance &instance, VkPhysicalDevice device) {
  VulkanFacts facts;
  facts.handle = device;
  VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, nullptr, {}};
  instance.GetPhysicalDeviceProperties2(device, &properties);
  facts.name = properties.properties.deviceName;
  facts.type = properties.properties.deviceType;
  facts.limits = properties.properties.limits;
  uint32_t version = properties.properties.apiVersion;
  facts.apiMinor =
      VK_API_VERSION_MAJOR(version) > 1 ? newestMinor : std::min(VK_API_VERSION_MINOR(version), newestMinor);
  if (facts.apiMinor < 1)
    return facts;

  std::vector<VkExtensionProperties> extensions = extensionsOf(instance, device);
  bool sizeControl = facts.apiMinor >= 3 || contains(extensions, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  VkPhysicalDeviceSubgroupProperties subgroup;
  VkPhysicalDeviceSubgroupSizeControlProperties sizes;
  void **tail = &properties.pNext;
  chain(tail, subgroup, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
  if (sizeControl)
    chain(tail, sizes, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
  if (facts.apiMinor >= 2 || contains(extensions, VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME))
    chain(tail, facts.floatControls, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES);
  instance.GetPhysicalDeviceProperties2(device, &properties);
  // The record is copied about with the facts; it must not point into this frame.
  facts.floatControls.pNext = nullptr;
  facts.subgroupOperations =
      subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT ? subgroup.supportedOperations : 0;
  facts.defaultSubgroup = facts.smallestSubgroup = facts.largestSubgroup = subgroup.subgroupSize;
  VkPhysicalDeviceSubgroupSizeControlFeatures control = {};
  if (sizeControl) {
    VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &control, {}};
    control.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
    instance.GetPhysicalDeviceFeatures2(device, &features);
  }
  if (control.subgroupSizeControl && (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT)) {
    facts.subgroupSizeControl = true;
    facts.mostSubgroups = sizes.maxComputeWorkgroupSubgroups;
    facts.smallestSubgroup = sizes.minSubgroupSize;
    facts.largestSubgroup = sizes.maxSubgroupSize;
  }

  uint32_t count = 0;
  instance.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  instance.GetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  for (uint32_t i = 0; i < count; ++i) {
    bool computes = families[i].queueCount && (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT);
    if (computes && (!facts.queueFamily || families[i].timestampValidBits > facts.timestampBits)) {
      facts.queueFamily = i;
      facts.timestampBits = families[i].timestampValidBits;
    }
  }
  return facts;
}

} // namespace

VulkanInstance::~VulkanInstance() {
  if (handle)
    DestroyInstance(handle, nullptr);
}

void VulkanFeatures::query(const VulkanInstance &instance, VkPhysicalDevice device, uint32_t apiMinor) {
  std::vector<VkExtensionProperties> available = extensionsOf(instance, device);
  void **tail = &core.pNext;
  auto add = [&](auto &record, VkStructureType type, uint32_t coreMinor,
                 std::initializer_list<const char *> names) {
    if (apiMinor < coreMinor) {
      for (const char *name : names)
        if (!contains(available, name))
          return;
      extensions.insert(extensions.end(), names.begin(), names.end());
    }
    chain(tail, record, type);
  };
  constexpr uint32_t never = UINT32_MAX;
  add(storage16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, 1, {});
  add(variablePointers, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VARIABLE_POINTERS_FEATURES, 1, {});
  add(storage8, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, 2,
      {VK_KHR_8BIT_STORAGE_EXTENSION_NAME});
  add(float16Int8, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, 2,
      {VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME});
  add(atomicInt64, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_INT64_FEATURES, 2,
      {VK_KHR_SHADER_ATOMIC_INT64_EXTENSION_NAME});
  add(subgroupTypes, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES, 2,
      {VK_KHR_SHADER_SUBGROUP_EXTENDED_TYPES_EXTENSION_NAME});
  add(memoryModel, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES, 2,
      {VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME});
  add(subgroupSize, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, 3,
      {VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME});
  add(atomicFloat, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT, never,
      {VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME});
  if (contains(available, VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME))
    add(atomicFloat2, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_2_FEATURES_EXT, never,
        {VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME});
  // Float controls are properties, not features, but their extension must be on before 1.2.
  if (apiMinor < 2 && contains(available, VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME))
    extensions.push_back(VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME);
  instance.GetPhysicalDeviceFeatures2(device, &core);
  // Of the rest, robust accesses for one cost time; kernels use only these.
  VkPhysicalDeviceFeatures used = {};
  used.shaderFloat64 = core.features.shaderFloat64;
  used.shaderInt64 = core.features.shaderInt64;
  used.shaderInt16 = core.features.shaderInt16;
  core.features = used;
}

std::string VulkanFacts::description() const {
  std::string lanes = smallestSubgroup == largestSubgroup ? text(defaultSubgroup)
                                                          : text(smallestSubgroup, " to ", largestSubgroup,
                                                                 " (", defaultSubgroup, " by default)");
  return text(name, ", Vulkan 1.", apiMinor, ", subgroups of ", lanes,
              type == VK_PHYSICAL_DEVICE_TYPE_CPU ? ", a processor" : "");
}

LaunchLimits VulkanFacts::launchLimits() const {
  LaunchLimits result;
  for (int i = 0; i < 3; ++i)
    result.grid[i] = limits.maxComputeWorkGroupCount[i];
  // Workgroups are flattened: their first extent counts.
  result.blockThreads = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  result.sharedBytes = limits.maxComputeSharedMemorySize;
  return result;
}

Expected<std::shared_ptr<VulkanInstance>> openVulkanInstance() {
  auto library = Library::open({"libvulkan.so.1"});
  if (!library)
    return fail("no Vulkan loader: ", library.message());
  auto getInstanceProcAddr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(library->find("vkGetInstanceProcAddr"));
  if (!getInstanceProcAddr)
    return fail(library->name(), " is no Vulkan loader");
  auto global = [&](const char *name) { return getInstanceProcAddr(VK_NULL_HANDLE, name); };
  auto enumerateVersion =
      reinterpret_cast<PFN_vkEnumerateInstanceVersion>(global("vkEnumerateInstanceVersion"));
  auto createInstance = reinterpret_cast<PFN_vkCreateInstance>(global("vkCreateInstance"));
  uint32_t version = VK_API_VERSION_1_0;
  if (!createInstance || !enumerateVersion || enumerateVersion(&version) != VK_SUCCESS ||
      version < VK_API_VERSION_1_1)
    return fail("the Vulkan loader is older than Vulkan 1.1");

  VkApplicationInfo application = {};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "qdc";
  application.apiVersion = std::min(version, VK_MAKE_API_VERSION(0, 1, newestMinor, 0));
  VkInstanceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  auto instance = std::make_shared<VulkanInstance>();
  if (VkResult result = createInstance(&info, nullptr, &instance->handle)) {
    instance->handle = VK_NULL_HANDLE;
    return fail("the Vulkan loader finds no driver (", vulkanStatus(result),
                "); VK_DRIVER_FILES can name a driver's JSON file");
  }
  bool complete = true;
#define QD_VULKAN_LOAD(name)                                                                                 \
  instance->name = reinterpret_cast<PFN_vk##name>(getInstanceProcAddr(instance->handle, "vk" #name));        \
  complete &= instance->name != nullptr;
  QD_VULKAN_INSTANCE_FUNCTIONS(QD_VULKAN_LOAD)
#undef QD_VULKAN_LOAD
  if (!complete)
    return fail("the Vulkan loader lacks functions of Vulkan 1.1");
  return instance;
}

Expected<std::vector<VulkanFacts>> vulkanDevices(const VulkanInstance &instance) {
  uint32_t count = 0;
  VkResult result = instance.EnumeratePhysicalDevices(instance.handle, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  if (result == VK_SUCCESS && count)
    result = instance.EnumeratePhysicalDevices(instance.handle, &count, handles.data());
  if (result != VK_SUCCESS)
    return fail("the Vulkan drivers list no devices (", vulkanStatus(result), ")");
  if (!count)
    return fail("the Vulkan drivers have no device");
  std::vector<VulkanFacts> devices;
  for (uint32_t i = 0; i < count; ++i)
    devices.push_back(factsOf(instance, handles[i]));
  return devices;
}

std::optional<size_t> defaultVulkanDevice(const std::vector<VulkanFacts> &devices) {
  std::optional<size_t> best;
  for (size_t i = 0; i < devices.size(); ++i)
    if (devices[i].queueFamily && (!best || rankOf(devices[i].type) < rankOf(devices[*best].type)))
      best = i;
  return best;
}

Error checkVulkanFeatures(const SpirvSummary &code, const Kernel &kernel, const VulkanFeatures &features,
                          const VulkanFacts &facts) {
  std::string missing;
  auto lack = [&](const std::string &name) {
    if (missing.find("'" + name + "'") == std::string::npos)
      missing += (missing.empty() ? "'" : ", '") + name + "'";
  };
  // What the code declares is decisive: a kernel may list a type that its code gets by without. The list adds
  // what no capability tells apart.
  auto contains = [](const auto &list, const auto &item) {
    return std::find(list.begin(), list.end(), item) != list.end();
  };
  for (const FeatureRow &row : featureTable) {
    bool needed = row.capability ? contains(code.capabilities, row.capability)
                                 : contains(kernel.features, std::string(row.name));
    if (needed && !row.has(features, facts))
      lack(row.name);
  }
  for (const SpirvSummary::FloatControl &control : code.floatControls)
    for (const FloatControlRow &row : floatControlTable)
      if (row.mode == control.mode) {
        int width = control.width == 16 ? 0 : control.width == 32 ? 1 : 2;
        if (!(facts.floatControls.*row.widths[width]))
          lack(text(row.name, " of f", control.width));
      }
  if (missing.empty())
    return Error::success();
  return fail("kernel '", kernel.name, "' needs ", missing, ", which ", facts.name, " lacks");
}

std::string vulkanStatus(VkResult result) {
  switch (result) {
#define QD_STATUS(name)                                                                                      \
  case name:                                                                                                 \
    return #name;
    QD_STATUS(VK_NOT_READY)
    QD_STATUS(VK_TIMEOUT)
    QD_STATUS(VK_ERROR_OUT_OF_HOST_MEMORY)
    QD_STATUS(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    QD_STATUS(VK_ERROR_INITIALIZATION_FAILED)
    QD_STATUS(VK_ERROR_DEVICE_LOST)
    QD_STATUS(VK_ERROR_MEMORY_MAP_FAILED)
    QD_STATUS(VK_ERROR_LAYER_NOT_PRESENT)
    QD_STATUS(VK_ERROR_EXTENSION_NOT_PRESENT)
    QD_STATUS(VK_ERROR_FEATURE_NOT_PRESENT)
    QD_STATUS(VK_ERROR_INCOMPATIBLE_DRIVER)
    QD_STATUS(VK_ERROR_TOO_MANY_OBJECTS)
    QD_STATUS(VK_ERROR_OUT_OF_POOL_MEMORY)
    QD_STATUS(VK_ERROR_INVALID_SHADER_NV)
#undef QD_STATUS
  default:
    return text("VkResult ", static_cast<int>(result));
  }
}

} // namespace qd::rt
