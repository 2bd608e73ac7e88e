//===- CoreTest.cpp - the core language on every NVIDIA chip and Vulkan version ----===//
//
// Every op with every type compiles or is refused at its place in the source; compilation is in this process, so a
// backend that dies fails the test. AMD's chips have a test of their own, which also reassembles their code.
//
//===----------------------------------------------------------------------===//

#include "../CoreLanguage.h"

#include "compiler/Compiler.h"
#include "ir/Targets.h"

#include "gtest/gtest.h"

namespace qd::test {
namespace {

std::vector<Target> getTargets(Backend backend) {
  std::vector<Target> targets;
  for (const Chip &chip : getChips())
    for (unsigned size = 4; chip.backend == backend && size <= 64; size *= 2)
      if (chip.hasSubgroupSize(size))
        targets.push_back({&chip, size});
  return targets;
}

std::string getName(const testing::TestParamInfo<Target> &info) {
  std::string name = info.param.chip->name.str() + "_" + std::to_string(info.param.subgroupSize);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

CompileResult compileFor(const Target &target, StringRef text, unsigned optLevel) {
  CompileOptions options;
  options.targets = {formatv("{0}:{1}@{2}", getBackendName(target.getBackend()), target.chip->name,
                             target.subgroupSize)};
  options.optLevel = optLevel;
  return compile({text.data(), text.size()}, "core.qir", options);
}

Kernels getCoreLanguage(unsigned subgroupSize) {
  Kernels kernels;
  addElementwise(kernels);
  addMemoryAndControl(kernels);
  addVotes(kernels, subgroupSize);
  addReductions(kernels);
  return kernels;
}

class NVPTXCore : public testing::TestWithParam<Target> {};

TEST_P(NVPTXCore, Compiles) {
  Kernels kernels = getCoreLanguage(32);
  for (unsigned optLevel : {0u, 2u}) {
    CompileResult result = compileFor(GetParam(), kernels.text, optLevel);
    ASSERT_TRUE(result.ok) << result.diagnostics.substr(0, 3000);
    EXPECT_EQ(result.diagnostics, "");
    for (unsigned i = 0; i < kernels.number; ++i)
      EXPECT_NE(result.data.find(".visible .entry k" + std::to_string(i) + "("), std::string::npos) << kernels.all[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, NVPTXCore, testing::ValuesIn(getTargets(Backend::NVPTX)), getName);

class VulkanCore : public testing::TestWithParam<Target> {};

// The emitter validates what it makes, so a module that comes out is a valid one.
TEST_P(VulkanCore, CompilesOrIsDiagnosed) {
  Kernels kernels = getCoreLanguage(GetParam().subgroupSize);
  unsigned compiled = 0;
  for (const std::string &kernel : kernels.all) {
    CompileResult result = compileFor(GetParam(), kernel, 2);
    compiled += result.ok;
    if (!result.ok) {
      EXPECT_NE(result.diagnostics.find("is not supported on spirv"), std::string::npos) << result.diagnostics;
      EXPECT_TRUE(StringRef(kernel).contains("bf16") || StringRef(result.diagnostics).contains("_extended' on 'i1'"))
          << result.diagnostics << kernel;
    }
  }
  EXPECT_GT(compiled, kernels.number * 9 / 10);
}

INSTANTIATE_TEST_SUITE_P(Versions, VulkanCore, testing::ValuesIn(getTargets(Backend::SPIRV)), getName);

} // namespace
} // namespace qd::test
