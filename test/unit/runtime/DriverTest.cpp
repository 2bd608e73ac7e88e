// The CUDA and HIP devices, with stand-ins for their drivers: a library that is loaded already is what the
// loader finds by its name, so these tests never meet a real one.
#include "Samples.h"
#include "runtime/Device.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

using namespace qd::rt;

namespace {

struct DriverCase {
  const char *library;
  const char *device;
  ImageKind kind;
  std::string_view triple;
  const char *arch;
};

class DriverTest : public testing::TestWithParam<DriverCase> {
protected:
  void SetUp() override {
    ASSERT_TRUE(dlopen(GetParam().library, RTLD_NOW | RTLD_LOCAL)) << dlerror();
    auto opened = Device::open(GetParam().device);
    ASSERT_TRUE(opened) << opened.message();
    device = std::move(*opened);
  }
  Program programOf(std::string_view image) {
    return {sampleEntry(GetParam().kind, GetParam().triple, GetParam().arch, 32, bytesOf(image)), "f.qdb"};
  }

  std::unique_ptr<Device> device;
};

TEST_P(DriverTest, PassesParametersInOrder) {
  auto module = device->load(programOf("good"));
  ASSERT_TRUE(module) << module.message();
  const float x[3] = {1, 2, 3};
  float y[3] = {9, 9, 9};
  auto in = device->allocate(sizeof x), out = device->allocate(sizeof y);
  ASSERT_TRUE(in && out);
  ASSERT_FALSE((*in)->upload(x, sizeof x) || (*out)->upload(y, sizeof y));
  auto seconds = (*module)->launch("scale", {1, 1, 1},
                                   {Argument::buffer(**in, {ScalarType::F32, 1}, 3),
                                    Argument::buffer(**out, {ScalarType::F32, 1}, 3), Argument::of(0.5f),
                                    Argument::of(int32_t(2))});
  ASSERT_TRUE(seconds) << seconds.message();
  EXPECT_DOUBLE_EQ(*seconds, 1.5e-3);
  ASSERT_FALSE((*out)->download(y, sizeof y));
  EXPECT_EQ(y[0], 0.5f);
  EXPECT_EQ(y[1], 1.0f);
  EXPECT_EQ(y[2], 9.0f);

  const double wide[1] = {1.5};
  double results[3] = {};
  auto wideIn = device->allocate(sizeof wide), wideOut = device->allocate(sizeof results);
  ASSERT_TRUE(wideIn && wideOut);
  ASSERT_FALSE((*wideIn)->upload(wide, sizeof wide));
  seconds = (*module)->launch("wide", {1, 1, 1},
                              {Argument::buffer(**wideIn, {ScalarType::F64, 1}, 1),
                               Argument::buffer(**wideOut, {ScalarType::F64, 1}, 3), Argument::of(2.0),
                               Argument::of(int64_t(-7))});
  ASSERT_TRUE(seconds) << seconds.message();
  ASSERT_FALSE((*wideOut)->download(results, sizeof results));
  EXPECT_EQ(results[0], 3);
  EXPECT_EQ(results[1], -7);
  EXPECT_EQ(results[2], 3) << "the element count follows the buffer that takes it";
}

TEST_P(DriverTest, FailuresAreSentences) {
  std::string device = GetParam().device + std::string(":0");
  auto refused = this->device->load(programOf("bad"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.message().find("the driver of " + device + " refuses the code for " + GetParam().arch +
                                   " in 'f.qdb': "),
            std::string::npos)
      << refused.message();

  auto module = this->device->load(programOf("good"));
  ASSERT_TRUE(module);
  auto buffer = this->device->allocate(0);
  ASSERT_TRUE(buffer) << "an empty buffer is fine";
  Argument empty = Argument::buffer(**buffer, {ScalarType::F32, 1}, 0);
  EXPECT_NE((*module)
                ->launch("lanes", {1, 1, 1}, {Argument::buffer(**buffer, {ScalarType::I32, 1}, 0)})
                .message()
                .find("module has no kernel 'lanes'"),
            std::string::npos);
  std::string failed =
      (*module)
          ->launch("scale", {1, 1, 2}, {empty, empty, Argument::of(1.0f), Argument::of(int32_t(0))})
          .message();
  EXPECT_EQ(failed.find("kernel 'scale' failed on " + device + ": "), 0u) << failed;
  EXPECT_NE(this->device->allocate(size_t(1) << 40).message().find("has no memory for a buffer of"),
            std::string::npos);
  EXPECT_NE(Device::open(GetParam().device + std::string(":1")).message().find("the machine has"),
            std::string::npos);
}

TEST_P(DriverTest, AsksForTablesOfLinesInPTX) {
  auto module = device->load(programOf("good\t.loc\t1 2 3"));
  EXPECT_EQ(bool(module), GetParam().kind == ImageKind::PTX);
}

TEST_P(DriverTest, BlocksThatWaitForEachOtherRunAtOnce) {
  const std::string interface = R"({"version":1,"kernels":[
    {"name":"scale","block":[1024,1,1],"subgroup_size":32,"cooperative":true,"resizable":true,"args":[
      {"name":"x","kind":"buffer","type":"f32","access":"readonly","size":false},
      {"name":"y","kind":"buffer","type":"f32","access":"writeonly","size":false},
      {"name":"a","kind":"scalar","type":"f32"},
      {"name":"n","kind":"scalar","type":"i32"}]}]})";
  Program program{formatEntry(GetParam().kind,
                              {{"triple", std::string(GetParam().triple)},
                               {"arch", GetParam().arch},
                               {"qdb.version", std::string(bundleVersion)},
                               {"subgroup_size", "32"},
                               {"qdb.interface", interface}},
                              bytesOf("good")),
                  "f.qdb"};
  auto module = device->load(program);
  ASSERT_TRUE(module) << module.message();
  EXPECT_TRUE((*module)->interface().kernels[0].resizable);
  auto occupancy = (*module)->occupancy("scale");
  ASSERT_TRUE(occupancy) << occupancy.message();
  EXPECT_EQ(occupancy->blocks, 2u);
  EXPECT_EQ((*module)->occupancy("").message().find("the module has no kernel ''"), 0u);

  float x = 3, y = 0;
  auto in = device->allocate(sizeof x), out = device->allocate(sizeof y);
  ASSERT_TRUE(in && out);
  ASSERT_FALSE((*in)->upload(&x, sizeof x));
  auto most = static_cast<uint32_t>(occupancy->total());
  auto launch = [&](Grid grid) {
    return (*module)->launch("scale", grid,
                             {Argument::buffer(**in, {ScalarType::F32, 1}, 1),
                              Argument::buffer(**out, {ScalarType::F32, 1}, 1), Argument::of(2.0f),
                              Argument::of(int32_t(1))});
  };
  auto fits = launch({2, most / 2, 1});
  ASSERT_TRUE(fits) << fits.message();
  ASSERT_FALSE((*out)->download(&y, sizeof y));
  EXPECT_EQ(y, 6.0f);
  EXPECT_EQ(launch({2, most / 2 + 1, 1}).message(),
            text("the grid has ", most + 2, " blocks, ", device->name(), " runs at most ", most,
                 " of kernel 'scale' at once, which waits for its whole grid"));
}

TEST_P(DriverTest, OtherBlockSizesAreCompiled) {
  DeviceOptions options;
  options.blocks = "scale=64";
  auto other = Device::open(GetParam().device, options);
  ASSERT_TRUE(other) << other.message();
  EXPECT_EQ((*other)->load(programOf("good")).message(),
            "'f.qdb' holds no QIR, which other block sizes are compiled from");
}

INSTANTIATE_TEST_SUITE_P(Drivers, DriverTest,
                         testing::Values(DriverCase{FAKE_CUDA, "cuda", ImageKind::PTX, nvptxTriple, "sm_80"},
                                         DriverCase{FAKE_HIP, "hip", ImageKind::Object, amdgcnTriple,
                                                    "gfx90a"}),
                         [](const auto &info) { return std::string(info.param.device); });

TEST(CudaTest, TheJitLogIsShown) {
  ASSERT_TRUE(dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL)) << dlerror();
  auto device = Device::open("cuda");
  ASSERT_TRUE(device);
  EXPECT_EQ((*device)->description(), "Fake GPU, sm_90, 10 multiprocessors, 1024 MiB, subgroups of 32");
  Program program{sampleEntry(ImageKind::PTX, nvptxTriple, "sm_80", 32, bytesOf("bad")), "f.qdb"};
  EXPECT_EQ((*device)->load(program).message(),
            "the driver of cuda:0 refuses the code for sm_80 in 'f.qdb': a PTX JIT compilation failed "
            "(CUDA_ERROR_INVALID_PTX):\nptxas: line 1: unexpected instruction");
  DeviceOptions options;
  options.subgroupSize = 64;
  EXPECT_EQ(Device::open("cuda", options).message(), "cuda:0 has subgroups of 32, not 64");
}

TEST(HipTest, TheChipIsFoundInTheRecord) {
  ASSERT_TRUE(dlopen(FAKE_HIP, RTLD_NOW | RTLD_LOCAL)) << dlerror();
  auto device = Device::open("hip");
  ASSERT_TRUE(device) << device.message();
  EXPECT_EQ((*device)->description(), "gfx-free name, gfx90a:sramecc+:xnack-, 10 multiprocessors");
}

} // namespace
