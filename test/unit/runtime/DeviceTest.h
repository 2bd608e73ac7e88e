// What tests through the C interface share that run on every device: cpu with a stand-in for the compiler library, cuda
// and hip with stand-ins for the drivers, and the Vulkan device of this machine. Each has the kernel y = a x and three
// buffers.
#ifndef QD_TEST_UNIT_RUNTIME_DEVICETEST_H
#define QD_TEST_UNIT_RUNTIME_DEVICETEST_H

#include "Samples.h"
#include "runtime/File.h"
#include "runtime/qdrt.h"

#include <cstdlib>
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace qd::rt {

constexpr int count = 64;
constexpr uint32_t twoBlocks[3] = {2, 1, 1};

struct DeviceCase {
  const char *device;
  const char *library;
};

class DeviceTest : public testing::TestWithParam<DeviceCase> {
public:
  static bool isHost() { return std::string(GetParam().device) == "cpu"; }
  /// As errors name the device.
  static std::string label() { return GetParam().device + std::string(isHost() ? "" : ":0"); }
  /// Holds scale() as the device takes it.
  static std::vector<uint8_t> makeProgram() {
    std::string name = GetParam().device;
    if (name == "cuda")
      return sampleEntry(ImageKind::PTX, nvptxTriple, "sm_80", 32, bytesOf("good"));
    if (name == "hip")
      return sampleEntry(ImageKind::Object, amdgcnTriple, "gfx90a", 64, bytesOf("good"));
    if (name != "vulkan")
      return bytesOf("good");
    auto code = readFile(SCALE_SPV);
    EXPECT_TRUE(code) << code.message();
    std::vector<uint8_t> program;
    for (unsigned lanes : {4, 8, 16, 32, 64})
      append(program, sampleEntry(ImageKind::SPIRV, vulkanTriple, "vulkan1.1", lanes, *code));
    return program;
  }

protected:
  void SetUp() override {
    setenv("QDC_COMPILER_LIBRARY", FAKE_COMPILER, 1);
    if (GetParam().library) {
      ASSERT_TRUE(dlopen(GetParam().library, RTLD_NOW | RTLD_LOCAL)) << dlerror();
    }
    ASSERT_EQ(qdrtDeviceOpen(GetParam().device, nullptr, &device), QDRT_OK) << qdrtErrorText();
    std::vector<uint8_t> program = makeProgram();
    ASSERT_EQ(qdrtModuleLoad(device, program.data(), program.size(), "f", &module), QDRT_OK) << qdrtErrorText();
    ASSERT_EQ(qdrtModuleGetKernel(module, "scale", &scale), QDRT_OK) << qdrtErrorText();
    for (qdrtBuffer *buffer : {&x, &y, &z})
      ASSERT_EQ(qdrtBufferAllocate(device, count * sizeof(float), buffer), QDRT_OK) << qdrtErrorText();
    std::vector<float> ones(count, 1);
    for (qdrtBuffer buffer : {x, y, z})
      ASSERT_EQ(qdrtBufferUpload(buffer, 0, ones.data(), count * sizeof(float)), QDRT_OK) << qdrtErrorText();
  }
  void TearDown() override {
    for (qdrtBuffer buffer : {x, y, z})
      qdrtBufferFree(buffer);
    qdrtModuleFree(module);
    qdrtDeviceClose(device);
  }

  /// y = a x. The stand-in for the compiler has no number of elements.
  qdrtPrepared prepare(qdrtBuffer from, qdrtBuffer to, float a) {
    qdrtArgument arguments[] = {qdrtArray(from, QDRT_F32, count), qdrtArray(to, QDRT_F32, count), qdrtScalarF32(a),
                                qdrtScalarI32(count)};
    qdrtPrepared prepared;
    EXPECT_EQ(qdrtPrepare(scale, twoBlocks, arguments, isHost() ? 3 : 4, &prepared), QDRT_OK) << qdrtErrorText();
    return prepared;
  }
  float firstOf(qdrtBuffer buffer) {
    float value = -1, last = -1;
    EXPECT_EQ(qdrtBufferDownload(buffer, 0, &value, 4), QDRT_OK) << qdrtErrorText();
    EXPECT_EQ(qdrtBufferDownload(buffer, (count - 1) * 4, &last, 4), QDRT_OK) << qdrtErrorText();
    EXPECT_EQ(value, last);
    return value;
  }
  qdrtStream makeStream() {
    qdrtStream stream;
    EXPECT_EQ(qdrtStreamCreate(device, &stream), QDRT_OK) << qdrtErrorText();
    return stream;
  }

  qdrtDevice device = nullptr;
  qdrtModule module = nullptr;
  qdrtKernel scale = nullptr;
  qdrtBuffer x = nullptr, y = nullptr, z = nullptr;
};

inline auto everyDevice() {
  return testing::Values(DeviceCase{"cpu", nullptr}, DeviceCase{"cuda", FAKE_CUDA}, DeviceCase{"hip", FAKE_HIP},
                         DeviceCase{"vulkan", nullptr});
}
inline std::string nameOf(const testing::TestParamInfo<DeviceCase> &info) { return info.param.device; }

} // namespace qd::rt

#endif // QD_TEST_UNIT_RUNTIME_DEVICETEST_H
