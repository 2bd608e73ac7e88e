#include "Samples.h"
#include "runtime/Device.h"
#include "runtime/File.h"
#include "runtime/VulkanAbi.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace qd::rt;

namespace {

class PlainBuffer : public Buffer {
public:
  using Buffer::Buffer;

protected:
  Error doUpload(const void *, size_t, size_t) override { return Error::success(); }
  Error doDownload(void *, size_t, size_t) override { return Error::success(); }
};

Interface sample() { return *parseInterface(sampleInterface(32)); }

std::string messageOf(Error error) { return error ? error.message() : ""; }

TEST(Launch, ChecksArguments) {
  Interface interface = sample();
  const Kernel &kernel = *interface.find("scale");
  PlainBuffer x(16), y(16);
  auto buffer = [](Buffer &memory, int64_t count) {
    return Argument::buffer(memory, {ScalarType::F32, 1}, count);
  };
  EXPECT_EQ(messageOf(checkArguments(
                kernel, {buffer(x, 4), buffer(y, 4), Argument::of(1.0f), Argument::of(int32_t(4))})),
            "");
  EXPECT_EQ(messageOf(checkArguments(kernel, {buffer(x, 4)})), "kernel 'scale' takes 4 arguments, got 1");
  EXPECT_EQ(messageOf(checkArguments(
                kernel, {buffer(x, 4), Argument::of(1.0f), Argument::of(1.0f), Argument::of(int32_t(4))})),
            "argument 'y' of kernel 'scale' is a buffer, got a scalar");
  EXPECT_EQ(messageOf(checkArguments(
                kernel, {buffer(x, 4), buffer(y, 4), Argument::of(1.0), Argument::of(int32_t(4))})),
            "argument 'a' of kernel 'scale' is of f32, got f64");
  EXPECT_EQ(messageOf(checkArguments(
                kernel, {buffer(x, 5), buffer(y, 4), Argument::of(1.0f), Argument::of(int32_t(4))})),
            "argument 'x' of kernel 'scale' is given as 5 elements of 4 bytes, its buffer has 16 bytes");
  EXPECT_NE(messageOf(checkArguments(
                kernel, {buffer(x, -1), buffer(y, 4), Argument::of(1.0f), Argument::of(int32_t(4))})),
            "");
}

TEST(Launch, RefusesSharedBuffersUnderNoalias) {
  Interface interface = sample();
  Kernel kernel = *interface.find("scale");
  PlainBuffer x(16);
  Argument both = Argument::buffer(x, {ScalarType::F32, 1}, 4);
  std::vector<Argument> arguments = {both, both, Argument::of(1.0f), Argument::of(int32_t(4))};
  EXPECT_EQ(messageOf(checkArguments(kernel, arguments)), "");
  kernel.parameters[1].noalias = true;
  EXPECT_EQ(messageOf(checkArguments(kernel, arguments)),
            "argument 'y' of kernel 'scale' is noalias, but shares its buffer with 'x'");
}

TEST(Launch, ChecksTheGrid) {
  Interface interface = sample();
  Kernel kernel = *interface.find("lanes");
  LaunchLimits limits;
  limits.grid = {100, 10, 1};
  EXPECT_EQ(messageOf(checkGrid(kernel, {100, 10, 1}, limits, "d")), "");
  EXPECT_EQ(messageOf(checkGrid(kernel, {1, 0, 1}, limits, "d")),
            "the grid is 1 x 0 x 1, expected at least one block in y");
  EXPECT_EQ(messageOf(checkGrid(kernel, {1, 1, 2}, limits, "d")),
            "the grid has 2 blocks in z, d launches at most 1");
  limits.blockThreads = 16;
  EXPECT_EQ(messageOf(checkGrid(kernel, {1, 1, 1}, limits, "d")),
            "kernel 'lanes' has blocks of 32 threads, d launches at most 16");
  limits.blockThreads = 1024;
  limits.sharedBytes = 100;
  kernel.sharedBytes = 101;
  EXPECT_EQ(messageOf(checkGrid(kernel, {1, 1, 1}, limits, "d")),
            "kernel 'lanes' needs 101 bytes of shared memory a block, d has 100");
}

TEST(VulkanAbi, PacksParameters) {
  Interface interface = sample();
  const Kernel &kernel = *interface.find("wide");
  ASSERT_FALSE(checkVulkanKernel(kernel));
  PlainBuffer x(8), y(24);
  auto block = packParameters(kernel, {Argument::buffer(x, {ScalarType::F64, 1}, 1),
                                       Argument::buffer(y, {ScalarType::F64, 1}, 3), Argument::of(0.5),
                                       Argument::of(int64_t(-2))});
  ASSERT_EQ(block.size(), 24u);
  uint64_t words[3];
  std::memcpy(words, block.data(), sizeof words);
  EXPECT_EQ(words[0], floatBits(ScalarType::F64, 0.5));
  EXPECT_EQ(words[1], static_cast<uint64_t>(-2));
  EXPECT_EQ(words[2], 3u);
}

TEST(VulkanAbi, NarrowScalarsAreZeroExtended) {
  auto interface =
      parseInterface(R"({"version":1,"kernels":[{"name":"k","block":[1,1,1],"params_bytes":8,"args":[
    {"name":"a","kind":"scalar","type":"i8","offset":0},{"name":"b","kind":"scalar","type":"f16","offset":4}]}]})");
  ASSERT_TRUE(interface) << interface.message();
  auto block = packParameters(interface->kernels[0], {Argument::scalar(ScalarType::I8, 0xFF),
                                                      Argument::scalar(ScalarType::F16, 0x3C00)});
  EXPECT_EQ(block, (std::vector<uint8_t>{0xFF, 0, 0, 0, 0, 0x3C, 0, 0}));
}

TEST(VulkanAbi, RefusesAnIncompleteInterface) {
  auto failure = [](const std::string &args, int bytes) {
    auto interface = parseInterface(R"({"version":1,"kernels":[{"name":"k","block":[1,1,1],"params_bytes":)" +
                                    std::to_string(bytes) + R"(,"args":[)" + args + "]}]}");
    return messageOf(checkVulkanKernel(interface->kernels[0]));
  };
  EXPECT_NE(failure(R"({"name":"a","kind":"scalar","type":"i32"})", 4), "");
  EXPECT_NE(failure(R"({"name":"a","kind":"scalar","type":"i32","offset":4})", 4), "");
  EXPECT_NE(failure(R"({"name":"a","kind":"scalar","type":"i64","offset":4})", 16), "");
  EXPECT_NE(failure(R"({"name":"a","kind":"scalar","type":"i32","offset":1073741824})", 4), "");
  EXPECT_EQ(failure(R"({"name":"a","kind":"scalar","type":"i64","offset":8})", 16), "");
  EXPECT_NE(failure(R"({"name":"a","kind":"buffer","type":"i32","access":"readonly"})", 0), "");
  EXPECT_NE(failure(R"({"name":"a","kind":"buffer","type":"i32","access":"readonly","binding":0},
                       {"name":"b","kind":"buffer","type":"i32","access":"readonly","binding":0})",
                    0),
            "");
  EXPECT_NE(
      failure(R"({"name":"a","kind":"buffer","type":"i32","access":"readonly","binding":0,"size":true})", 8),
      "");
}

TEST(VulkanAbi, SummarizesSpirv) {
  auto bytes = readFile(SCALE_SPV);
  ASSERT_TRUE(bytes) << bytes.message();
  auto summary = summarizeSpirv(*bytes);
  ASSERT_TRUE(summary) << summary.message();
  EXPECT_EQ(summary->versionMinor, 3u);
  EXPECT_EQ(summary->capabilities, (std::vector<uint32_t>{1, 61, 10, 11}));
  ASSERT_TRUE(summary->find("lanes"));
  EXPECT_EQ(summary->find("lanes")->localSize[0], 32u);
  EXPECT_FALSE(summary->find("lane"));

  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> damaged = *bytes;
    for (int i = 0; i < 2; ++i)
      damaged[random() % std::min<size_t>(damaged.size(), 400)] = static_cast<uint8_t>(random());
    damaged.resize(random() % 8 ? damaged.size() : random() % damaged.size());
    damaged.shrink_to_fit();
    (void)summarizeSpirv(damaged);
  }
}

TEST(VulkanAbi, KeepsOneKernel) {
  auto op = [](uint32_t code, std::vector<uint32_t> operands) {
    operands.insert(operands.begin(), uint32_t(operands.size() + 1) << 16 | code);
    return operands;
  };
  auto join = [](std::vector<std::vector<uint32_t>> parts) {
    std::vector<uint32_t> words = {0x07230203, 0x00010300, 0, 40, 0};
    for (const auto &part : parts)
      words.insert(words.end(), part.begin(), part.end());
    return words;
  };
  auto entry = [&](uint32_t id, uint32_t letter) { return op(15, {5, id, letter}); };
  auto mode = [&](uint32_t id) { return op(16, {id, 17, 8, 1, 1}); };
  auto name = [&](uint32_t id) { return op(5, {id, 'v'}); };
  auto exact = [&](uint32_t id) { return op(71, {id, 42}); };
  auto shared = [&](uint32_t id) { return op(59, {3, id, 4}); };
  auto buffer = op(59, {4, 20, 12});
  // Kernel `id` adds (result id + 2), stores to its array and returns.
  auto kernel = [&](uint32_t id, uint32_t array) {
    std::vector<uint32_t> words;
    for (const auto &part : {op(54, {1, id, 0, 2}), op(248, {id + 1}), op(128, {5, id + 2, 20, 20}),
                             op(62, {array, id + 2}), op(253, {}), op(56, {})})
      words.insert(words.end(), part.begin(), part.end());
    return words;
  };
  auto module = join({op(17, {1}), entry(7, 'a'), entry(12, 'b'), mode(7), mode(12), name(9), name(14), exact(9),
                      exact(14), exact(20), buffer, shared(25), shared(26), kernel(7, 25), kernel(12, 26)});
  EXPECT_EQ(keepKernel(module, "a"), join({op(17, {1}), entry(7, 'a'), mode(7), name(9), exact(9), exact(20), buffer,
                                           shared(25), kernel(7, 25)}));
  EXPECT_EQ(keepKernel(module, "b"), join({op(17, {1}), entry(12, 'b'), mode(12), name(14), exact(14), exact(20),
                                           buffer, shared(26), kernel(12, 26)}));
  EXPECT_EQ(keepKernel(module, "c"), module);
  auto alone = join({entry(7, 'a'), mode(7), shared(25), kernel(7, 25)});
  EXPECT_EQ(keepKernel(alone, "a"), alone);
  // A function that no entry point names is called.
  auto withHelper = join({entry(7, 'a'), entry(12, 'b'), kernel(7, 25), kernel(12, 26), kernel(30, 26)});
  EXPECT_EQ(keepKernel(withHelper, "a"), join({entry(7, 'a'), kernel(7, 25), kernel(30, 26)}));
}

TEST(VulkanAbi, KeepsSubnormalsWhereTheDeviceOffersIt) {
  constexpr uint32_t capability = 2u << 16 | 17, mode = 4u << 16 | 16, function = 1u << 16 | 54;
  const std::vector<uint32_t> head = {0x07230203, 0x00010300, 0, 9, 0};
  auto module = [&](std::vector<uint32_t> body) {
    body.insert(body.begin(), head.begin(), head.end());
    return body;
  };
  const std::vector<uint32_t> code = module({capability, 1, mode, 7, 4461, 32, mode, 7, 4461, 64, function});
  auto only32 = [](uint32_t width) { return width == 32; };
  EXPECT_EQ(keepSubnormals(code, only32), module({capability, 4464, capability, 1, mode, 7, 4461, 32, mode, 7, 4459, 32,
                                                  mode, 7, 4461, 64, function}));
  EXPECT_EQ(keepSubnormals(code, [](uint32_t) { return false; }), code);
  // Code that says what it wants is left alone.
  const std::vector<uint32_t> explicitCode = module({capability, 4464, mode, 7, 4459, 16, mode, 7, 4461, 32, function});
  EXPECT_EQ(keepSubnormals(explicitCode, only32), explicitCode);
}

} // namespace
