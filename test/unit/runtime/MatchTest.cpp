#include "runtime/Match.h"

#include <gtest/gtest.h>

using namespace qd::rt;

namespace {

Variant variant(std::string_view triple, const std::string &arch, ImageKind kind, uint32_t subgroup = 32) {
  Variant result;
  result.triple = triple;
  result.arch = arch;
  result.kind = kind;
  result.subgroupSize = subgroup;
  return result;
}

Bundle bundleOf(std::vector<Variant> variants) {
  Bundle bundle;
  bundle.variants = std::move(variants);
  return bundle;
}

TEST(Match, CudaTakesTheExactCubinElseTheNewestPtx) {
  Bundle bundle = bundleOf(
      {variant(nvptxTriple, "sm_70", ImageKind::PTX), variant(nvptxTriple, "sm_90", ImageKind::Cubin),
       variant(nvptxTriple, "sm_80", ImageKind::PTX), variant(nvptxTriple, "sm_100a", ImageKind::PTX),
       variant(amdgcnTriple, "gfx942", ImageKind::Object, 64)});
  EXPECT_EQ((*matchCuda(bundle, 90))->kind, ImageKind::Cubin);
  EXPECT_EQ((*matchCuda(bundle, 89))->arch, "sm_80");
  EXPECT_EQ((*matchCuda(bundle, 75))->arch, "sm_70");
  EXPECT_EQ((*matchCuda(bundle, 100))->arch, "sm_100a");
  EXPECT_EQ((*matchCuda(bundle, 120))->arch, "sm_80") << "code with a letter is for one chip";
  EXPECT_EQ(matchCuda(bundle, 60).message(),
            "no variant fits an sm_60 device: it needs PTX of sm_60 or older, or a cubin of sm_60, and the "
            "bundle holds sm_70 PTX, sm_90 cubin, sm_80 PTX, sm_100a PTX, gfx942");
  EXPECT_FALSE(matchCuda(bundleOf({variant(nvptxTriple, "gfx", ImageKind::PTX)}), 90));
}

TEST(Match, HipComparesChipAndFeatures) {
  Bundle bundle = bundleOf({variant(amdgcnTriple, "gfx90a:xnack+", ImageKind::Object, 64),
                            variant(amdgcnTriple, "gfx90a", ImageKind::Object, 64),
                            variant(amdgcnTriple, "gfx1100", ImageKind::Object, 32),
                            variant(amdgcnTriple, "gfx1100", ImageKind::Object, 64)});
  EXPECT_EQ((*matchHip(bundle, "gfx90a:sramecc+:xnack-", 0))->arch, "gfx90a");
  EXPECT_EQ((*matchHip(bundle, "gfx90a:sramecc+:xnack+", 0))->arch, "gfx90a:xnack+");
  EXPECT_EQ((*matchHip(bundle, "gfx1100", 0))->subgroupSize, 32u);
  EXPECT_EQ((*matchHip(bundle, "gfx1100", 64))->subgroupSize, 64u);
  EXPECT_NE(matchHip(bundle, "gfx942", 0).message().find("no variant fits a gfx942 device"),
            std::string::npos);
  EXPECT_FALSE(matchHip(bundle, "gfx90", 0)) << "a prefix is another chip";
}

Error runsAll(const Variant &) { return Error::success(); }

TEST(Match, VulkanFitsTheSubgroupSize) {
  Bundle bundle = bundleOf({variant(vulkanTriple, "vulkan1.1", ImageKind::SPIRV, 8),
                            variant(vulkanTriple, "vulkan1.3", ImageKind::SPIRV, 16),
                            variant(vulkanTriple, "vulkan1.1", ImageKind::SPIRV, 32)});
  EXPECT_EQ((*matchVulkan(bundle, 8, 8, 8, 3, runsAll))->subgroupSize, 8u);
  EXPECT_EQ((*matchVulkan(bundle, 8, 32, 16, 3, runsAll))->subgroupSize, 16u);
  EXPECT_EQ((*matchVulkan(bundle, 8, 32, 64, 3, runsAll))->subgroupSize, 32u);
  EXPECT_EQ(
      matchVulkan(bundle, 4, 4, 4, 3, runsAll).message(),
      "no variant fits: the device has subgroups of 4 lanes, and the bundle holds spirv with subgroups of "
      "8, spirv with subgroups of 16, spirv with subgroups of 32");
  EXPECT_NE(matchVulkan(bundle, 16, 16, 16, 1, runsAll).message().find("need a newer one"), std::string::npos);
}

TEST(Match, VulkanTakesWhatTheDeviceCanRun) {
  Bundle bundle = bundleOf({variant(vulkanTriple, "vulkan1.1", ImageKind::SPIRV, 8),
                            variant(vulkanTriple, "vulkan1.3", ImageKind::SPIRV, 8),
                            variant(vulkanTriple, "vulkan1.3", ImageKind::SPIRV, 16),
                            variant(vulkanTriple, "vulkan1.1", ImageKind::SPIRV, 16)});
  auto runsOld = [](const Variant &variant) {
    return variant.arch == "vulkan1.1" ? Error::success() : fail("it needs 'subgroup_arithmetic'");
  };
  auto runsNone = [](const Variant &variant) { return fail(variant.arch, " at ", variant.subgroupSize); };
  EXPECT_EQ((*matchVulkan(bundle, 8, 8, 8, 3, runsAll))->arch, "vulkan1.3") << "the newest of one size";
  EXPECT_EQ((*matchVulkan(bundle, 8, 16, 16, 3, runsAll))->arch, "vulkan1.3");
  EXPECT_EQ((*matchVulkan(bundle, 8, 8, 8, 2, runsAll))->arch, "vulkan1.1");
  EXPECT_EQ((*matchVulkan(bundle, 8, 8, 8, 3, runsOld))->arch, "vulkan1.1");
  EXPECT_EQ((*matchVulkan(bundle, 8, 16, 8, 3, runsOld))->subgroupSize, 8u);
  EXPECT_EQ((*matchVulkan(bundle, 8, 16, 32, 3, runsOld))->subgroupSize, 16u);
  EXPECT_EQ(matchVulkan(bundle, 16, 16, 16, 3, runsNone).message(), "no variant fits: vulkan1.3 at 16");
}

} // namespace
