// The devices of the compiler library, with a stand-in for it.
#include "Samples.h"
#include "runtime/Device.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace qd::rt;

namespace {

class HostTest : public testing::Test {
protected:
  // The library is looked for once a process: all tests of this file share the stand-in.
  void SetUp() override { setenv("QDC_COMPILER_LIBRARY", FAKE_COMPILER, 1); }
};

TEST_F(HostTest, RunsAndLeavesTheCallersMemoryAlone) {
  auto device = Device::open("cpu");
  ASSERT_TRUE(device) << device.message();
  auto module = (*device)->load({bytesOf("good"), "good.qir"});
  ASSERT_TRUE(module) << module.message();
  const std::vector<float> x = {1, 2, 3};
  std::vector<float> y(3);
  auto in = (*device)->allocate(12), out = (*device)->allocate(12);
  ASSERT_TRUE(in && out);
  ASSERT_FALSE((*in)->upload(x.data(), 12));
  auto seconds = (*module)->launch("scale", {1, 1, 1},
                                   {Argument::buffer(**in, {ScalarType::F32, 1}, 3),
                                    Argument::buffer(**out, {ScalarType::F32, 1}, 3), Argument::of(2.0f)});
  ASSERT_TRUE(seconds) << seconds.message();
  ASSERT_FALSE((*out)->download(y.data(), 12));
  EXPECT_EQ(y, (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(x, (std::vector<float>{1, 2, 3}))
      << "even a kernel that writes a readonly buffer cannot reach it";
  EXPECT_NE((*in)->upload(x.data(), 13).message(), "");
}

TEST_F(HostTest, DiagnosticsComeThrough) {
  auto device = Device::open("sim:sm_80");
  ASSERT_TRUE(device) << device.message();
  EXPECT_EQ((*device)->load({bytesOf("bad"), "f.qir"}).message(),
            "'f.qir' does not compile for sim:sm_80:\nf.qir:1:1: error: bad program");
  auto module = (*device)->load({bytesOf("good"), "f.qir"});
  ASSERT_TRUE(module);
  auto buffer = (*device)->allocate(4);
  ASSERT_TRUE(buffer);
  Argument argument = Argument::buffer(**buffer, {ScalarType::F32, 1}, 1);
  EXPECT_EQ((*module)->launch("scale", {1, 2, 1}, {argument, argument, Argument::of(1.0f)}).message(),
            "kernel 'scale' failed on sim:sm_80: a launch that the interface does not allow");
}

TEST_F(HostTest, WhatNoProgramRunsOnIsNotOpened) {
  EXPECT_EQ(Device::open("sim:sm_1").message(), "device 'sim:sm_1' cannot be opened: unknown chip 'sm_1'");
}

TEST_F(HostTest, Grids) {
  auto device = Device::open("cpu");
  ASSERT_TRUE(device) << device.message();
  EXPECT_EQ((*device)->properties().limits.grid[2], uint64_t(1) << 31);
  auto module = (*device)->load({bytesOf("good"), "f.qir"});
  ASSERT_TRUE(module);
  auto buffer = (*device)->allocate(4);
  ASSERT_TRUE(buffer);
  Argument argument = Argument::buffer(**buffer, {ScalarType::F32, 1}, 1);
  EXPECT_EQ((*module)->launch("scale", {1, 1, (1u << 31) + 1}, {argument, argument, Argument::of(1.0f)}).message(),
            "the grid has 2147483649 blocks in z, cpu launches at most 2147483648");
}

TEST_F(HostTest, SimulatedChipsHaveTheGridsOfTheirDrivers) {
  auto launch = [](const char *name, Grid grid) {
    auto device = Device::open(name);
    auto module = (*device)->load({bytesOf("good"), "f.qir"});
    auto buffer = (*device)->allocate(4);
    Argument argument = Argument::buffer(**buffer, {ScalarType::F32, 1}, 1);
    return (*module)->launch("scale", grid, {argument, argument, Argument::of(1.0f)}).message();
  };
  EXPECT_EQ(launch("sim:sm_80", {1u << 31, 1, 1}),
            "the grid has 2147483648 blocks in x, sim:sm_80 launches at most 2147483647");
  EXPECT_EQ(launch("sim:sm_80", {1, 65536, 1}), "the grid has 65536 blocks in y, sim:sm_80 launches at most 65535");
  EXPECT_EQ(launch("sim:gfx942", {1, 1, 65537}), "the grid has 65537 blocks in z, sim:gfx942 launches at most 65536");
  EXPECT_EQ(launch("sim:gfx942", {1u << 30, 1, 1}),
            "the grid has 4294967296 threads in x, sim:gfx942 launches at most 4294967295");
}

TEST_F(HostTest, ABundleRunsFromItsQir) {
  auto device = Device::open("interp");
  ASSERT_TRUE(device);
  Program program;
  append(program.bytes, sampleEntry(ImageKind::PTX, nvptxTriple, "sm_80", 32, bytesOf("ptx")));
  EXPECT_EQ((*device)->load(program).message(),
            "'<memory>' holds no QIR, which interp runs from; it holds sm_80 PTX");
  append(program.bytes, formatEntry(ImageKind::None,
                                    {{"triple", "qir"}, {"qdb.version", std::string(bundleVersion)}}, bytesOf("good")));
  EXPECT_TRUE((*device)->load(program));
}

TEST_F(HostTest, ACompileErrorIsHandedOn) {
  auto device = Device::open("vulkan");
  if (!device)
    GTEST_SKIP() << device.message();
  // Which version is asked for depends on the device.
  std::string message = (*device)->load({bytesOf("anything"), "f.qir"}).message();
  std::string target = message.find("vulkan1.3") == std::string::npos ? "spirv" : "spirv:vulkan1.3";
  EXPECT_EQ(message, "'f.qir' does not compile for " + target + ":\nf.qir:1:1: error: nothing compiles for " + target +
                         "\n");
}

TEST(DeviceNames, AreChecked) {
  EXPECT_EQ(Device::open("cpu:1").message(), "device 'cpu:1' takes nothing after 'cpu'");
  EXPECT_EQ(Device::open("vulcan").message(), "no device is called 'vulcan'; did you mean 'vulkan'?");
  EXPECT_EQ(Device::open("cuda:").message(), "device 'cuda:': '' is not a device number");
  EXPECT_EQ(Device::open("hip:1x").message(), "device 'hip:1x': '1x' is not a device number");
  EXPECT_NE(Device::open("sim").message(), "");
}

} // namespace
