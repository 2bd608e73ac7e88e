// Runs scale.spvasm on the Vulkan device of this machine, at the subgroup size it has. Mesa's software device
// takes it from LP_NATIVE_VECTOR_WIDTH; CTest runs all three.
#include "runtime/Vulkan.h"
#include "Samples.h"
#include "runtime/Device.h"
#include "runtime/File.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <numeric>
#include <optional>

using namespace qd::rt;

namespace {

class VulkanTest : public testing::Test {
protected:
  void SetUp() override {
    auto opened = Device::open("vulkan");
    if (!opened)
      GTEST_SKIP() << opened.message();
    device = std::move(*opened);
    auto code = readFile(SCALE_SPV);
    ASSERT_TRUE(code) << code.message();
    for (unsigned lanes : {4, 8, 16, 32, 64})
      append(program.bytes, sampleEntry(ImageKind::SPIRV, vulkanTriple, "vulkan1.1", lanes, *code));
    auto loaded = device->load(program);
    ASSERT_TRUE(loaded) << loaded.message();
    module = std::move(*loaded);
  }

  template <typename T> std::unique_ptr<Buffer> bufferOf(const std::vector<T> &values) {
    auto buffer = device->allocate(values.size() * sizeof(T));
    EXPECT_TRUE(buffer) << buffer.message();
    EXPECT_FALSE((*buffer)->upload(values.data(), values.size() * sizeof(T)));
    return std::move(*buffer);
  }
  template <typename T> std::vector<T> valuesOf(Buffer &buffer) {
    std::vector<T> values(buffer.bytes() / sizeof(T));
    EXPECT_FALSE(buffer.download(values.data(), buffer.bytes()));
    return values;
  }

  std::unique_ptr<Device> device;
  Program program;
  std::unique_ptr<Module> module;
};

TEST_F(VulkanTest, RunsWithPushConstants) {
  std::vector<float> x(64);
  std::iota(x.begin(), x.end(), 0.0f);
  auto in = bufferOf(x), out = bufferOf(std::vector<float>(64, -1));
  for (int run = 0; run < 3; ++run) {
    auto seconds = module->launch("scale", {2, 1, 1},
                                  {Argument::buffer(*in, {ScalarType::F32, 1}, 64),
                                   Argument::buffer(*out, {ScalarType::F32, 1}, 64), Argument::of(0.5f),
                                   Argument::of(int32_t(40))});
    ASSERT_TRUE(seconds) << seconds.message();
    EXPECT_GE(*seconds, 0);
  }
  auto y = valuesOf<float>(*out);
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(y[i], i < 40 ? x[i] / 2 : -1);
  EXPECT_EQ(valuesOf<float>(*in), x);
}

TEST_F(VulkanTest, LanesFollowTheThreadIndex) {
  auto out = bufferOf(std::vector<int32_t>(64));
  auto seconds = module->launch("lanes", {2, 1, 1}, {Argument::buffer(*out, {ScalarType::I32, 1}, 64)});
  ASSERT_TRUE(seconds) << seconds.message();
  auto y = valuesOf<int32_t>(*out);
  int size = y[0] / 100;
  if (const char *width = std::getenv("LP_NATIVE_VECTOR_WIDTH");
      width && device->description().find("llvmpipe") != std::string::npos) {
    EXPECT_EQ(size, std::atoi(width) / 32);
  }
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(y[i], 100 * size + i % 32 % size);
}

TEST_F(VulkanTest, ABlockMayHaveManySubgroups) {
  auto out = bufferOf(std::vector<int32_t>(256));
  auto seconds = module->launch("big", {1, 1, 1}, {Argument::buffer(*out, {ScalarType::I32, 1}, 256)});
  ASSERT_TRUE(seconds) << seconds.message();
  auto y = valuesOf<int32_t>(*out);
  int size = y[0] / 100;
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(y[i], 100 * size + i % size);
}

TEST_F(VulkanTest, WideScalarsAndCounts) {
  auto in = bufferOf(std::vector<double>{1.5}), out = bufferOf(std::vector<double>(3));
  auto seconds = module->launch("wide", {1, 1, 1},
                                {Argument::buffer(*in, {ScalarType::F64, 1}, 1),
                                 Argument::buffer(*out, {ScalarType::F64, 1}, 3), Argument::of(3.0),
                                 Argument::of(int64_t(-12345678901234))});
  if (!seconds)
    GTEST_SKIP() << seconds.message();
  EXPECT_EQ(valuesOf<double>(*out), (std::vector<double>{4.5, -12345678901234, 3}));
}

TEST_F(VulkanTest, EmptyBuffersAreFine) {
  auto in = bufferOf(std::vector<float>{}), out = bufferOf(std::vector<float>{});
  auto seconds = module->launch("scale", {1, 1, 1},
                                {Argument::buffer(*in, {ScalarType::F32, 1}, 0),
                                 Argument::buffer(*out, {ScalarType::F32, 1}, 0), Argument::of(0.5f),
                                 Argument::of(int32_t(0))});
  EXPECT_TRUE(seconds) << seconds.message();
}

TEST_F(VulkanTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(module->launch("scal", {1, 1, 1}, {}).message(),
            "the module has no kernel 'scal'; did you mean 'scale'?");

  Program damaged;
  append(damaged.bytes, sampleEntry(ImageKind::SPIRV, vulkanTriple, "vulkan1.1", 8, bytesOf("not SPIR-V")));
  for (unsigned lanes : {4, 16, 32, 64})
    append(damaged.bytes,
           sampleEntry(ImageKind::SPIRV, vulkanTriple, "vulkan1.1", lanes, bytesOf("not SPIR-V")));
  EXPECT_NE(device->load(damaged).message().find("not a SPIR-V module"), std::string::npos);

  Program other;
  append(other.bytes, sampleEntry(ImageKind::PTX, nvptxTriple, "sm_80", 32, bytesOf("ptx")));
  EXPECT_NE(device->load(other).message().find("the bundle holds sm_80 PTX"), std::string::npos);

  DeviceOptions options;
  options.subgroupSize = 3;
  EXPECT_NE(Device::open("vulkan", options).message().find("has no subgroups of 3 lanes"), std::string::npos);
  EXPECT_NE(Device::open("vulkan:99").message().find("'vulkan:99' is absent"), std::string::npos);
}

TEST_F(VulkanTest, AMissingFeatureIsNamed) {
  auto code = readFile(SCALE_SPV);
  ASSERT_TRUE(code);
  std::vector<uint8_t> changed = *code;
  // The second capability becomes one that only few devices have, 16-bit atomic addition; the module is not
  // to reach the driver.
  const uint8_t rare[4] = {0xCF, 0x17, 0, 0};
  std::copy(rare, rare + 4, changed.begin() + 8 * 4);
  Program program;
  for (unsigned lanes : {4, 8, 16, 32, 64})
    append(program.bytes, sampleEntry(ImageKind::SPIRV, vulkanTriple, "vulkan1.1", lanes, changed));
  auto loaded = device->load(program);
  if (loaded)
    GTEST_SKIP() << "this device has it";
  EXPECT_NE(loaded.message().find("kernel 'scale' needs 'float16_atomic_add', which "), std::string::npos)
      << loaded.message();
}

TEST(VulkanFeaturesTest, EachSubgroupOperationIsNamed) {
  SpirvSummary code;
  for (uint32_t capability = 61; capability <= 67; ++capability)
    code.capabilities.push_back(capability);
  Kernel kernel;
  kernel.name = "k";
  VulkanFeatures features;
  VulkanFacts facts;
  facts.name = "this device";
  EXPECT_EQ(checkVulkanFeatures(code, kernel, features, facts).message(),
            "kernel 'k' needs 'subgroup_basic', 'subgroup_vote', 'subgroup_arithmetic', 'subgroup_ballot', "
            "'subgroup_shuffle', 'subgroup_shuffle_relative', 'subgroup_clustered', which this device lacks");
  facts.subgroupOperations = 0xFF & ~VkSubgroupFeatureFlags(VK_SUBGROUP_FEATURE_ARITHMETIC_BIT);
  EXPECT_EQ(checkVulkanFeatures(code, kernel, features, facts).message(),
            "kernel 'k' needs 'subgroup_arithmetic', which this device lacks");
  facts.subgroupOperations = 0xFF;
  EXPECT_FALSE(checkVulkanFeatures(code, kernel, features, facts));
}

/// The default device, taken for one of another type where one is given; null after a failure.
static std::unique_ptr<VulkanContext> openDefault(std::optional<VkPhysicalDeviceType> type = {}) {
  auto instance = openVulkanInstance();
  if (!instance) {
    ADD_FAILURE() << instance.message();
    return nullptr;
  }
  auto devices = vulkanDevices(**instance);
  if (!devices || !defaultVulkanDevice(*devices)) {
    ADD_FAILURE() << "no device";
    return nullptr;
  }
  VulkanFacts facts = (*devices)[*defaultVulkanDevice(*devices)];
  facts.type = type.value_or(facts.type);
  auto context = std::make_unique<VulkanContext>(*instance, facts);
  Error error = context->open();
  EXPECT_FALSE(error) << error.message();
  return error ? nullptr : std::move(context);
}

TEST(VulkanContextTest, FusingIsTriedOut) {
  auto opened = openDefault();
  ASSERT_TRUE(opened);
  VulkanContext &context = *opened;
  for (uint32_t width : {32u, 64u}) {
    if (width == 64 && !context.features.core.features.shaderFloat64)
      continue;
    auto fuses = tryFusing(context, width, "vulkan:0");
    ASSERT_TRUE(fuses) << fuses.message();
    EXPECT_EQ(context.fuses(width, "vulkan:0"), *fuses);
    // lavapipe does not.
    if (context.facts.type == VK_PHYSICAL_DEVICE_TYPE_CPU)
      EXPECT_FALSE(*fuses);
  }
}

TEST(VulkanContextTest, ZerosAreTriedOut) {
  auto opened = openDefault();
  ASSERT_TRUE(opened);
  VulkanContext &context = *opened;
  auto knows = tryZeros(context, "vulkan:0");
  ASSERT_TRUE(knows) << knows.message();
  EXPECT_EQ(context.knowsZeros("vulkan:0"), *knows);
  // lavapipe takes x + 0.0 for x.
  if (context.facts.type == VK_PHYSICAL_DEVICE_TYPE_CPU)
    EXPECT_FALSE(*knows);
}

TEST(VulkanContextTest, HalvesAreTriedOut) {
  auto opened = openDefault();
  ASSERT_TRUE(opened);
  VulkanContext &context = *opened;
  ASSERT_TRUE(context.features.float16Int8.shaderFloat16);
  auto rounds = tryHalves(context, "vulkan:0");
  ASSERT_TRUE(rounds) << rounds.message();
  EXPECT_EQ(context.roundsHalves("vulkan:0"), *rounds);
  if (context.facts.type == VK_PHYSICAL_DEVICE_TYPE_CPU)
    EXPECT_TRUE(*rounds);
}

TEST(VulkanContextTest, CopiesToADiscreteDeviceAreStaged) {
  auto opened = openDefault(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
  ASSERT_TRUE(opened);
  VulkanContext &context = *opened;

  // More than one piece, and no multiple of one.
  std::vector<uint8_t> data((40 << 20) + 12), back(data.size());
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<uint8_t>(i * 2654435761u >> 24);
  auto memory = context.allocate(data.size(), VulkanContext::Use::Device);
  ASSERT_TRUE(memory) << memory.message();
  EXPECT_FALSE(memory->mapped);
  Error error = context.upload(*memory, data.data(), data.size());
  EXPECT_FALSE(error) << error.message();
  error = context.download(*memory, back.data(), back.size());
  EXPECT_FALSE(error) << error.message();
  EXPECT_TRUE(data == back);
  context.free(*memory);
}

} // namespace
