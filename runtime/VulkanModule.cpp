// Vulkan modules: a kernel's pipeline is made at its first launch and kept. A launch is timed by the device.
#include "runtime/Vulkan.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

namespace qd::rt {

namespace {

/// Runs its function at the end of a scope.
class AtExit {
public:
  explicit AtExit(std::function<void()> function) : function(std::move(function)) {}
  ~AtExit() { function(); }
  AtExit(const AtExit &) = delete;
  AtExit &operator=(const AtExit &) = delete;

private:
  std::function<void()> function;
};

class VulkanModule : public Module {
public:
  VulkanModule(VulkanContext &context, const std::string &device, std::vector<uint32_t> words, SpirvSummary code,
               const Variant &variant, std::string warnings)
      : Module(variant.interface, context.facts.launchLimits(), device, &context, /*takesPointers=*/false),
        context(context), vk(context.vk),
        device(device), words(std::move(words)), code(std::move(code)), subgroupSize(variant.subgroupSize) {
    moduleWarnings = std::move(warnings);
  }

  ~VulkanModule() override {
    (void)context.waitForAll();
    for (auto &[name, pipeline] : pipelines)
      destroy(pipeline);
  }

protected:
  Expected<double> doLaunch(const Kernel &kernel, Grid grid, const std::vector<Argument> &arguments) override;
  Expected<std::unique_ptr<Launch>> doPrepare(const Kernel &kernel, Grid grid,
                                              const std::vector<Argument> &arguments) override;

private:
  Expected<const VulkanPipeline *> pipelineFor(const Kernel &kernel);
  Error createPipeline(const Kernel &kernel, VulkanPipeline &pipeline);
  void destroy(VulkanPipeline &pipeline);
  Error check(const Kernel &kernel);
  /// Only a device with a choice is told the size: telling it limits the workgroup.
  bool requiresSubgroupSize() const {
    const VulkanFacts &facts = context.facts;
    return facts.subgroupSizeControl && facts.smallestSubgroup != facts.largestSubgroup;
  }

  VulkanContext &context;
  const VulkanFunctions &vk;
  std::string device;
  std::vector<uint32_t> words;
  SpirvSummary code;
  uint32_t subgroupSize;
  std::mutex mutex;
  /// Guarded by the mutex; their places stay.
  std::map<std::string, VulkanPipeline> pipelines;
};

void VulkanModule::destroy(VulkanPipeline &pipeline) {
  if (pipeline.handle)
    vk.DestroyPipeline(context.device, pipeline.handle, nullptr);
  if (pipeline.layout)
    vk.DestroyPipelineLayout(context.device, pipeline.layout, nullptr);
  if (pipeline.setLayout)
    vk.DestroyDescriptorSetLayout(context.device, pipeline.setLayout, nullptr);
}

/// A driver trusts the module it is given: all that it may assume is checked first.
Error VulkanModule::check(const Kernel &kernel) {
  if (Error error = checkVulkanKernel(kernel))
    return error;
  const SpirvSummary::EntryPoint *entry = code.find(kernel.name);
  if (!entry)
    return fail("the SPIR-V module has no entry point '", kernel.name, "'");
  const auto &size = entry->localSize;
  if (size[0] && (size[0] != kernel.localSize || size[1] != 1 || size[2] != 1))
    return fail("kernel '", kernel.name, "' has workgroups of ", size[0], " x ", size[1], " x ", size[2],
                " in its code and of ", kernel.localSize, " in its interface");
  if (Error error = checkVulkanFeatures(code, kernel, context.features, context.facts))
    return error;
  uint32_t subgroups = (kernel.localSize + subgroupSize - 1) / subgroupSize;
  if (requiresSubgroupSize() && subgroups > context.facts.mostSubgroups)
    return fail("kernel '", kernel.name, "' has ", subgroups, " subgroups of ", subgroupSize, " a block, ",
                device, " runs at most ", context.facts.mostSubgroups);
  const VkPhysicalDeviceLimits &limits = context.facts.limits;
  if (!kernel.paramsBinding && kernel.paramsBytes > limits.maxPushConstantsSize)
    return fail("kernel '", kernel.name, "' has ", kernel.paramsBytes, " bytes of parameters, ", device,
                " takes at most ", limits.maxPushConstantsSize, " as push constants");
  auto buffers = std::count_if(kernel.parameters.begin(), kernel.parameters.end(),
                               [](const Parameter &parameter) { return parameter.isBuffer(); }) +
                 (kernel.paramsBinding ? 1 : 0);
  if (static_cast<uint64_t>(buffers) > limits.maxPerStageDescriptorStorageBuffers)
    return fail("kernel '", kernel.name, "' has ", buffers, " buffers, ", device, " binds at most ",
                limits.maxPerStageDescriptorStorageBuffers);
  return Error::success();
}

Error VulkanModule::createPipeline(const Kernel &kernel, VulkanPipeline &pipeline) {
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  auto bind = [&](uint32_t binding) {
    bindings.push_back({binding, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  };
  for (const Parameter &parameter : kernel.parameters)
    if (parameter.isBuffer())
      bind(*parameter.binding);
  if (kernel.paramsBinding)
    bind(*kernel.paramsBinding);
  auto failed = [&](VkResult result) {
    return fail("the driver of ", device, " makes no pipeline of kernel '", kernel.name, "' (",
                vulkanStatus(result), ")");
  };

  VkDescriptorSetLayoutCreateInfo setInfo = {};
  setInfo.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  setInfo.bindingCount = static_cast<uint32_t>(bindings.size());
  setInfo.pBindings = bindings.data();
  if (VkResult result = vk.CreateDescriptorSetLayout(context.device, &setInfo, nullptr, &pipeline.setLayout))
    return failed(result);

  VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, (kernel.paramsBytes + 3) / 4 * 4};
  VkPipelineLayoutCreateInfo layoutInfo = {};
  layoutInfo.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layoutInfo.setLayoutCount = 1;
  layoutInfo.pSetLayouts = &pipeline.setLayout;
  if (range.size && !kernel.paramsBinding) {
    layoutInfo.pushConstantRangeCount = 1;
    layoutInfo.pPushConstantRanges = &range;
  }
  if (VkResult result = vk.CreatePipelineLayout(context.device, &layoutInfo, nullptr, &pipeline.layout))
    return failed(result);

  std::vector<uint32_t> kernelWords = keepKernel(words, kernel.name);
  VkShaderModuleCreateInfo shaderInfo = {};
  shaderInfo.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  shaderInfo.codeSize = kernelWords.size() * 4;
  shaderInfo.pCode = kernelWords.data();
  VkShaderModule shader = VK_NULL_HANDLE;
  if (VkResult result = vk.CreateShaderModule(context.device, &shaderInfo, nullptr, &shader))
    return fail("the driver of ", device, " refuses the SPIR-V of kernel '", kernel.name, "' (", vulkanStatus(result),
                ")");
  AtExit destroyShader([&] { vk.DestroyShaderModule(context.device, shader, nullptr); });

  std::vector<VkSpecializationMapEntry> constants;
  std::vector<VkBool32> answers;
  for (uint32_t number : code.constants) {
    if (number != 1 && number != 16 && number != 32 && number != 64)
      continue;
    constants.push_back({number, static_cast<uint32_t>(answers.size() * sizeof(VkBool32)), sizeof(VkBool32)});
    answers.push_back(number == 1    ? context.knowsZeros(device)
                      : number == 16 ? context.roundsHalves(device)
                                     : context.fuses(number, device));
  }
  VkSpecializationInfo specialization = {static_cast<uint32_t>(constants.size()), constants.data(),
                                         answers.size() * sizeof(VkBool32), answers.data()};

  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo required = {};
  required.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  required.requiredSubgroupSize = subgroupSize;
  VkComputePipelineCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = shader;
  info.stage.pName = kernel.name.c_str();
  if (!constants.empty())
    info.stage.pSpecializationInfo = &specialization;
  info.layout = pipeline.layout;
  if (requiresSubgroupSize())
    info.stage.pNext = &required;
  // Full subgroups make lane = thread index mod subgroup size; the flag is legal for whole subgroups only.
  if (context.features.subgroupSize.computeFullSubgroups && kernel.localSize % subgroupSize == 0)
    info.stage.flags |= VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  if (VkResult result =
          vk.CreateComputePipelines(context.device, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline.handle))
    return failed(result);
  return Error::success();
}

Expected<const VulkanPipeline *> VulkanModule::pipelineFor(const Kernel &kernel) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = pipelines.find(kernel.name);
  if (found != pipelines.end())
    return &found->second;
  if (Error error = check(kernel))
    return error;
  VulkanPipeline pipeline;
  if (Error error = createPipeline(kernel, pipeline)) {
    destroy(pipeline);
    return error;
  }
  return &pipelines.emplace(kernel.name, pipeline).first->second;
}

Expected<std::unique_ptr<Launch>> VulkanModule::doPrepare(const Kernel &kernel, Grid grid,
                                                          const std::vector<Argument> &arguments) {
  auto pipeline = pipelineFor(kernel);
  if (!pipeline)
    return pipeline.error();
  auto launch = std::make_unique<VulkanLaunch>(context, *this, kernel, **pipeline, grid, arguments);
  if (Error error = launch->bind())
    return error;
  return std::unique_ptr<Launch>(std::move(launch));
}

Expected<double> VulkanModule::doLaunch(const Kernel &kernel, Grid grid,
                                        const std::vector<Argument> &arguments) {
  auto pipeline = pipelineFor(kernel);
  if (!pipeline)
    return pipeline.error();
  VulkanLaunch launch(context, *this, kernel, **pipeline, grid, arguments);
  if (Error error = launch.setUp())
    return error;
  auto failed = [&](const std::string &why) { return launch.failure(why); };

  VkQueryPool queries = VK_NULL_HANDLE;
  AtExit destroyQueries([&] {
    if (queries)
      vk.DestroyQueryPool(context.device, queries, nullptr);
  });
  if (context.facts.timestampBits) {
    VkQueryPoolCreateInfo queryInfo = {};
    queryInfo.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    queryInfo.queryType = VK_QUERY_TYPE_TIMESTAMP;
    queryInfo.queryCount = 2;
    if (VkResult result = vk.CreateQueryPool(context.device, &queryInfo, nullptr, &queries))
      return failed(vulkanStatus(result));
  }

  auto started = std::chrono::steady_clock::now();
  Error error = context.run([&](VkCommandBuffer commands) {
    if (queries)
      vk.CmdResetQueryPool(commands, queries, 0, 2);
    context.barrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
    if (queries)
      vk.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, queries, 0);
    launch.recordTo(commands);
    if (queries)
      vk.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, queries, 1);
    context.barrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                    VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_HOST_BIT);
  });
  std::chrono::duration<double> wall = std::chrono::steady_clock::now() - started;
  if (error)
    return failed(error.message());
  if (!queries)
    return wall.count();
  uint64_t ticks[2] = {};
  VkResult result =
      vk.GetQueryPoolResults(context.device, queries, 0, 2, sizeof ticks, ticks, sizeof ticks[0],
                             VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  if (result != VK_SUCCESS)
    return failed(vulkanStatus(result));
  uint64_t mask =
      context.facts.timestampBits >= 64 ? UINT64_MAX : (uint64_t(1) << context.facts.timestampBits) - 1;
  return static_cast<double>((ticks[1] - ticks[0]) & mask) * context.facts.limits.timestampPeriod * 1e-9;
}

} // namespace

/// Whether code may ask for a width's subnormals to be kept, whatever it says of the other widths.
static bool offersSubnormals(const VulkanFacts &facts, uint32_t width) {
  const VkPhysicalDeviceFloatControlsProperties &controls = facts.floatControls;
  if (width == 32)
    return controls.shaderDenormPreserveFloat32 &&
           controls.denormBehaviorIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  return (width == 16 ? controls.shaderDenormPreserveFloat16 : controls.shaderDenormPreserveFloat64) &&
         controls.denormBehaviorIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
}

Expected<std::unique_ptr<Module>> loadVulkanModule(VulkanContext &context, const std::string &device,
                                                   const Variant &variant, std::string warnings) {
  auto code = summarizeSpirv(variant.image);
  if (!code)
    return code.error();
  // Vulkan 1.1 takes SPIR-V 1.3, Vulkan 1.2 takes 1.5 and Vulkan 1.3 takes 1.6.
  constexpr uint32_t newestSpirv[] = {0, 3, 5, 6};
  if (code->versionMinor > newestSpirv[context.facts.apiMinor])
    return fail("the code is SPIR-V 1.", code->versionMinor, ", ", device, " takes up to 1.",
                newestSpirv[context.facts.apiMinor]);
  std::vector<uint32_t> words(variant.image.size() / 4);
  std::memcpy(words.data(), variant.image.data(), words.size() * 4);
  words = keepSubnormals(words, [&](uint32_t width) { return offersSubnormals(context.facts, width); });
  return std::unique_ptr<Module>(
      new VulkanModule(context, device, std::move(words), std::move(*code), variant, std::move(warnings)));
}

} // namespace qd::rt
