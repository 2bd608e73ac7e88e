//===- CoreTest.cpp - the core language on every NVIDIA chip and Vulkan version ----===//
//
// Every op with every type compiles or is refused at its place in the source; compilation is in this process, so a
// backend that dies fails the test. AMD's chips have a test of their own, which also reassembles their code.
//
//===----------------------------------------------------------------------===//

#include "../CoreLanguage.h"

#include "compiler/Compiler.h"
#include "ir/Targets.h"

#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <cstring>
#include <set>

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

CompileResult compileFor(const Target &target, StringRef text, unsigned optLevel, const char *emit = "") {
  CompileOptions options;
  options.targets = {formatv("{0}:{1}@{2}", getBackendName(target.getBackend()), target.chip->name,
                             target.subgroupSize)};
  options.optLevel = optLevel;
  options.emit = emit;
  return compile({text.data(), text.size()}, "core.qir", options);
}

Kernels getCoreLanguage(unsigned subgroupSize) {
  Kernels kernels;
  addElementwise(kernels);
  addMemoryAndControl(kernels);
  addVotes(kernels, subgroupSize);
  addReductions(kernels);
  addAtomics(kernels);
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

/// Of SPIR-V's capabilities those that are a device's subgroup operations, by the names that interfaces use.
std::set<std::string> getSubgroupCapabilities(StringRef module) {
  static const char *names[] = {"basic", "vote", "arithmetic", "ballot", "shuffle", "shuffle_relative", "clustered"};
  constexpr uint32_t firstCapability = 61, capabilityInstruction = 2 << 16 | 17;
  std::set<std::string> found;
  std::vector<uint32_t> words(module.size() / 4);
  std::memcpy(words.data(), module.data(), 4 * words.size());
  for (size_t at = 5; at + 1 < words.size() && words[at] == capabilityInstruction; at += 2)
    if (words[at + 1] >= firstCapability && words[at + 1] < firstCapability + std::size(names))
      found.insert(std::string("subgroup_") + names[words[at + 1] - firstCapability]);
  return found;
}

/// Those features of a bundle's only kernel.
std::set<std::string> getSubgroupFeatures(StringRef bundle) {
  std::set<std::string> found;
  StringRef list = bundle.split("\"features\":[").second.split(']').first;
  for (StringRef name : llvm::split(list, ','))
    if (name.trim('"').starts_with("subgroup_"))
      found.insert(name.trim('"').str());
  return found;
}

// A runtime tells by the list, without reading code, what a device must have.
TEST_P(VulkanCore, InterfacesListTheSubgroupOperations) {
  const char *bodies[] = {
      "%r = arith.addi %v, %v : i32",
      "%r = qd.subgroup.lane_id : i32",
      "%r = qd.subgroup.shuffle %v, %v : i32",
      "%r = qd.subgroup.shuffle %v, 1 : i32",
      "%r = qd.subgroup.shuffle %v, 1 members(%m) : i32",
      "%r = qd.subgroup.broadcast %v, %v : i32",
      "%r = qd.subgroup.broadcast %v, 2 : i32",
      "%r = qd.subgroup.broadcast %v, 1 tile(2) : i32",
      "%r = qd.subgroup.shuffle_xor %v, 1 : i32",
      "%r = qd.subgroup.shuffle_xor %v, %v tile(2) : i32",
      "%r = qd.subgroup.shuffle_up %v, 1 : i32",
      "%r = qd.subgroup.shuffle_up %v, %v : i32",
      "%r = qd.subgroup.shuffle_down %v, 1 tile(2) : i32",
      "%b = qd.subgroup.ballot %p : i64 %r = arith.trunci %b : i64 to i32",
      "%b = qd.subgroup.ballot %p members(%m) : i64 %r = arith.trunci %b : i64 to i32",
      "%b = qd.subgroup.active_mask : i64 %r = arith.trunci %b : i64 to i32",
      "%b = qd.subgroup.all %p %r = arith.extui %b : i1 to i32",
      "%b = qd.subgroup.any %p %r = arith.extui %b : i1 to i32",
      "%r = qd.subgroup.reduce_all add %v : i32",
      "%r = qd.subgroup.inclusive_scan minui %v : i32",
      "%r = qd.subgroup.exclusive_scan xori %v : i32",
      "%r = qd.assume_uniform %v, subgroup : i32",
      "qd.subgroup.sync %r = arith.addi %v, %v : i32",
      "qd.subgroup.mem_fence %r = arith.addi %v, %v : i32",
  };
  for (const char *body : bodies) {
    SCOPED_TRACE(body);
    std::string text = formatv("qd.kernel @k(%x: !qd.buffer<i32>, %m: i64, %p: i1) block(64) {{\n"
                               "  %i = qd.thread_index : i32\n  %v = qd.load %x[%i] : !qd.buffer<i32>\n  {0}\n"
                               "  qd.store %r, %x[%i] : !qd.buffer<i32>\n  qd.return\n}\n", body);
    CompileResult module = compileFor(GetParam(), text, 2, "spirv"), bundle = compileFor(GetParam(), text, 2, "qdb");
    ASSERT_TRUE(module.ok && bundle.ok) << module.diagnostics << bundle.diagnostics;
    EXPECT_EQ(getSubgroupFeatures(bundle.data), getSubgroupCapabilities(module.data));
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, VulkanCore, testing::ValuesIn(getTargets(Backend::SPIRV)), getName);

} // namespace
} // namespace qd::test
