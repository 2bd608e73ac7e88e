// Loading and launching on HIP: devices, modules, the arguments' places, geometry.
#include "HipMachine.h"

#include <cstring>
#include <numeric>

using namespace qd::rt;

namespace {

using LaunchTest = HipMachine;

TEST_F(LaunchTest, DevicesTellWhatTheyAre) {
  boot("gfx942:sramecc+:xnack-,gfx1100");
  DeviceProperties first = open("hip:0")->properties(), second = open("hip:1", 64)->properties();
  EXPECT_EQ(first.description, "stand-in 0, gfx942:sramecc+:xnack-, 8 multiprocessors, 8192 MiB, subgroups of 64");
  EXPECT_EQ(first.target, "amdgcn:gfx942");
  EXPECT_EQ(first.smallestSubgroup, 64u);
  EXPECT_EQ(first.largestSubgroup, 64u);
  EXPECT_EQ(first.memoryBytes, uint64_t(8) << 30);
  EXPECT_EQ(first.limits.sharedBytes, 65536u);
  EXPECT_EQ(first.limits.blockThreads, 1024u);
  EXPECT_EQ(first.limits.grid[1], 65536u);
  EXPECT_EQ(second.description, "stand-in 1, gfx1100, 8 multiprocessors, 8192 MiB, subgroups of 32 or 64");
  EXPECT_EQ(second.smallestSubgroup, 32u);
  EXPECT_EQ(second.largestSubgroup, 64u);
  EXPECT_EQ(second.defaultSubgroup, 64u);

  DeviceOptions options;
  options.subgroupSize = 32;
  EXPECT_EQ(Device::open("hip:0", options).message(), "hip:0 has subgroups of 64, not 32");
  options.subgroupSize = 16;
  EXPECT_EQ(Device::open("hip:1", options).message(), "hip:1 has subgroups of 32 or 64, not 16");
  EXPECT_EQ(Device::open("hip:2").message(), "device 'hip:2' is absent: the machine has hip:0 to 1");
  boot("");
  EXPECT_EQ(Device::open("hip").message(), "device 'hip' is absent: the HIP runtime finds no AMD GPU: no ROCm-capable "
                                           "device is detected (hipErrorNoDevice)");
}

/// Scalars of every size between buffers with and without extents: the code reads what the launch put there.
TEST_F(LaunchTest, ArgumentsLieWhereTheCodeReadsThem) {
  const char *text = R"(
qd.kernel @mixed(%a: i8, %out: !qd.buffer<f64>, %b: i1, %c: f16, %m: !qd.buffer<?x?xf32>, %d: i16, %e: f64, %f: i64,
                 %v: !qd.buffer<vector<4xf32>> readonly, %g: f32, %h: bf16, %i: i32) block(1) {
  %n0 = arith.constant 0 : i32
  %n1 = arith.constant 1 : i32
  %n2 = arith.constant 2 : i32
  %n3 = arith.constant 3 : i32
  %n4 = arith.constant 4 : i32
  %n5 = arith.constant 5 : i32
  %n6 = arith.constant 6 : i32
  %n7 = arith.constant 7 : i32
  %n8 = arith.constant 8 : i32
  %n9 = arith.constant 9 : i32
  %n10 = arith.constant 10 : i32
  %n11 = arith.constant 11 : i32
  %a64 = arith.sitofp %a : i8 to f64
  qd.store %a64, %out[%n0] : !qd.buffer<f64>
  %b64 = arith.uitofp %b : i1 to f64
  qd.store %b64, %out[%n1] : !qd.buffer<f64>
  %c64 = arith.extf %c : f16 to f64
  qd.store %c64, %out[%n2] : !qd.buffer<f64>
  %d64 = arith.sitofp %d : i16 to f64
  qd.store %d64, %out[%n3] : !qd.buffer<f64>
  qd.store %e, %out[%n4] : !qd.buffer<f64>
  %f64 = arith.sitofp %f : i64 to f64
  qd.store %f64, %out[%n5] : !qd.buffer<f64>
  %g64 = arith.extf %g : f32 to f64
  qd.store %g64, %out[%n6] : !qd.buffer<f64>
  %h64 = arith.extf %h : bf16 to f64
  qd.store %h64, %out[%n7] : !qd.buffer<f64>
  %i64 = arith.sitofp %i : i32 to f64
  qd.store %i64, %out[%n8] : !qd.buffer<f64>
  %w = qd.load %v[%n1] : !qd.buffer<vector<4xf32>>
  %x = vector.extract %w[2] : f32 from vector<4xf32>
  %x64 = arith.extf %x : f32 to f64
  qd.store %x64, %out[%n9] : !qd.buffer<f64>
  %y = qd.load %m[%n1, %n2] : !qd.buffer<?x?xf32>
  %y64 = arith.extf %y : f32 to f64
  qd.store %y64, %out[%n10] : !qd.buffer<f64>
  qd.return
}
)";
  for (const char *chip : {"gfx942", "gfx1030"}) {
    boot(chip);
    std::unique_ptr<Device> device = open();
    std::unique_ptr<Module> module = load(*device, text);
    ASSERT_TRUE(module);
    std::vector<float> values(12);
    std::iota(values.begin(), values.end(), 0.0f);
    std::vector<double> out(11, -1);
    auto m = allocate(*device, size_t(24)), v = allocate(*device, size_t(48)), results = allocate(*device, size_t(88));
    EXPECT_OK(m->upload(values.data(), 24));
    EXPECT_OK(v->upload(values.data(), 48));
    auto scalar = [](ScalarType type, uint64_t bits) { return Argument::scalar(type, bits); };
    auto seconds = module->launch(
        "mixed", {1, 1, 1},
        {scalar(ScalarType::I8, 0x85), Argument::buffer(*results, {ScalarType::F64, 1}, 11), scalar(ScalarType::I1, 1),
         scalar(ScalarType::F16, 0x3E00), Argument::buffer(*m, {ScalarType::F32, 1}, std::vector<int64_t>{2, 3}),
         scalar(ScalarType::I16, 0x8001), Argument::of(1.25), Argument::of(-(int64_t(1) << 40)),
         Argument::buffer(*v, {ScalarType::F32, 4}, 3), Argument::of(-0.5f), scalar(ScalarType::BF16, 0x4040),
         Argument::of(int32_t(-77))});
    ASSERT_TRUE(seconds) << seconds.message();
    EXPECT_OK(results->download(out.data(), 88));
    EXPECT_EQ(out, (std::vector<double>{-123, 1, 1.5, -32767, 1.25, -1099511627776, -0.5, 3, -77, 6, 5})) << chip;
  }
}

TEST_F(LaunchTest, BothWavesOfAChip) {
  const char *text = R"(
qd.kernel @size(%y: !qd.buffer<f32>) block(64) {
  %zero = arith.constant 0 : i32
  %n = qd.subgroup.size : i32
  %v = arith.sitofp %n : i32 to f32
  qd.store %v, %y[%zero] : !qd.buffer<f32>
  qd.return
}
)";
  boot("gfx1100");
  for (uint32_t lanes : {32, 64}) {
    std::unique_ptr<Device> device = open("hip", lanes);
    // Compiled where it is loaded.
    auto module = device->load({std::vector<uint8_t>(text, text + strlen(text)), "size.qir"});
    ASSERT_TRUE(module) << module.message();
    auto y = allocate(*device, 0.0f);
    auto seconds = (*module)->launch("size", {1, 1, 1}, {array(*y)});
    EXPECT_TRUE(seconds) << seconds.message();
    EXPECT_EQ(read(*y)[0], float(lanes));
  }
}

TEST_F(LaunchTest, WhatFitsNoDeviceIsRefused) {
  std::unique_ptr<Device> device = open();
  std::unique_ptr<Module> module = load(*device, scaleProgram);
  auto x = allocate(*device, 1.0f), y = allocate(*device, 2.0f);
  auto launch = [&](Grid grid, Buffer &to) {
    return module->launch("scale", grid, {Argument::of(int32_t(count)), Argument::of(3.0f), array(*x), array(to)})
        .message();
  };
  EXPECT_EQ(launch({1, 65537, 1}, *y), "the grid has 65537 blocks in y, hip:0 launches at most 65536");
  EXPECT_EQ(launch({1u << 31, 1, 1}, *y), "the grid has 2147483648 blocks in x, hip:0 launches at most 2147483647");
  EXPECT_EQ(launch({1u << 26, 1, 1}, *y), "the grid has 4294967296 threads in x, hip:0 launches at most 4294967295");

  auto other = device->load(compile(scaleProgram, "amdgcn:gfx1100"));
  EXPECT_TRUE(other) << "its QIR is compiled; " << other.message();
  Program broken = compile(scaleProgram, "amdgcn:gfx942");
  auto bundle = parseBundle(broken.bytes.data(), broken.bytes.size());
  ASSERT_TRUE(bundle);
  const Variant &variant = bundle->variants[0];
  std::vector<uint8_t> image = variant.image;
  auto loadImage = [&](const std::string &arch) {
    return device
        ->load({formatEntry(ImageKind::Object,
                            {{"triple", std::string(amdgcnTriple)},
                             {"arch", arch},
                             {"qdb.version", std::string(bundleVersion)},
                             {"subgroup_size", "64"},
                             {"qdb.interface", variant.interface.json}},
                            image),
                "f.qdb"})
        .message();
  };
  image[0] = 'X';
  EXPECT_EQ(loadImage("gfx942"), "the driver of hip:0 refuses the code for gfx942 in 'f.qdb': device kernel image is "
                                 "invalid (hipErrorInvalidImage)");
  // The chip in the header of the file.
  image = variant.image;
  image[48] = 0x3F;
  EXPECT_EQ(loadImage("gfx942"), "the driver of hip:0 refuses the code for gfx942 in 'f.qdb': device kernel image is "
                                 "invalid (hipErrorInvalidImage)");
  auto foreign = compile(scaleProgram, "amdgcn:gfx90a");
  image = parseBundle(foreign.bytes.data(), foreign.bytes.size())->variants[0].image;
  EXPECT_EQ(loadImage("gfx942"), "the driver of hip:0 refuses the code for gfx942 in 'f.qdb': no kernel image is "
                                 "available for execution on the device (hipErrorNoBinaryForGpu)");
}

/// Code whose QIR nobody knows is loaded and its launches are checked.
TEST_F(LaunchTest, WithoutItsQirALaunchIsCheckedOnly) {
  std::unique_ptr<Device> device = open();
  Program program = compile(scaleProgram, "amdgcn:gfx942");
  auto bundle = parseBundle(program.bytes.data(), program.bytes.size());
  ASSERT_TRUE(bundle);
  Variant &variant = bundle->variants[0];
  // Behind the code, so that it is another file.
  for (size_t at = 0; at + 5 < variant.image.size(); ++at)
    if (!std::memcmp(&variant.image[at], "Linke", 5))
      variant.image[at] = 'l';
  auto module = device->load({formatEntry(ImageKind::Object,
                                          {{"triple", std::string(amdgcnTriple)},
                                           {"arch", "gfx942"},
                                           {"qdb.version", std::string(bundleVersion)},
                                           {"subgroup_size", "64"},
                                           {"qdb.interface", variant.interface.json}},
                                          variant.image),
                              "f.qdb"});
  ASSERT_TRUE(module) << module.message();
  auto x = allocate(*device, 1.0f), y = allocate(*device, 2.0f);
  auto seconds =
      (*module)->launch("scale", {4, 1, 1}, {Argument::of(int32_t(count)), Argument::of(3.0f), array(*x), array(*y)});
  EXPECT_TRUE(seconds) << seconds.message();
  EXPECT_EQ(read(*y)[0], 2.0f);
}

TEST_F(LaunchTest, CooperativeLaunches) {
  std::unique_ptr<Device> device = open();
  std::unique_ptr<Module> module = load(*device, cooperativeProgram);
  auto occupancy = module->occupancy("turn");
  ASSERT_TRUE(occupancy) << occupancy.message();
  EXPECT_EQ(occupancy->blocks, 32u);
  EXPECT_EQ(occupancy->multiprocessors, 8u);
  auto y = allocate(*device);
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  EXPECT_OK(y->upload(values.data(), count * sizeof(float)));
  auto seconds = module->launch("turn", {count / 64, 1, 1}, {array(*y)});
  ASSERT_TRUE(seconds) << seconds.message();
  EXPECT_EQ(read(*y)[0], float(count - 1));
  EXPECT_EQ(control().calls()["hipModuleLaunchCooperativeKernel"], 1u);
  EXPECT_EQ(module->launch("turn", {257, 1, 1}, {array(*y)}).message(),
            "the grid has 257 blocks, hip:0 runs at most 256 of kernel 'turn' at once, which waits for its whole grid");
}

/// The kernel's own fault: it is told by the call that waits, once, and the device goes on.
TEST_F(LaunchTest, FailuresOfKernels) {
  std::unique_ptr<Device> device = open();
  std::unique_ptr<Module> module = load(*device, scaleProgram);
  auto y = allocate(*device, 2.0f);
  std::vector<Argument> arguments = {Argument::of(int32_t(1) << 20), array(*y)};
  const std::string words = "unspecified launch failure (hipErrorLaunchFailure)";
  EXPECT_EQ(module->launch("wild", {1, 1, 1}, arguments).message(), "kernel 'wild' failed on hip:0: " + words);
  auto launch = module->prepare("wild", {1, 1, 1}, arguments);
  ASSERT_TRUE(launch) << launch.message();
  auto stream = device->createStream();
  ASSERT_TRUE(stream);
  EXPECT_OK((*stream)->launch(**launch));
  EXPECT_EQ((*stream)->synchronize().message(), "cannot wait for a stream: " + words);
  EXPECT_OK((*stream)->synchronize());
  EXPECT_OK((*stream)->launch(**launch));
  EXPECT_EQ(device->synchronize().message(), "cannot wait for the device: " + words);
  EXPECT_OK((*stream)->launch(**launch));
  float host = 0;
  EXPECT_EQ(y->download(&host, 4).message(), "cannot copy from the device: " + words);
  EXPECT_EQ(read(*y)[0], 2.0f);

  int foreign = 0;
  arguments = {Argument::of(int32_t(0)),
               Argument::pointer(reinterpret_cast<uint64_t>(&foreign), {ScalarType::F32, 1}, {1})};
  EXPECT_EQ(module->launch("wild", {1, 1, 1}, arguments).message(),
            "kernel 'wild' failed on hip:0: an illegal memory access was encountered (hipErrorIllegalAddress)");
}

TEST_F(LaunchTest, TheDeviceCannotBeMadeCurrent) {
  std::unique_ptr<Device> device = open();
  Program program = compile(scaleProgram, "amdgcn:gfx942");
  auto y = allocate(*device, 2.0f);
  control().fail("hipSetDevice", control().calls()["hipSetDevice"] + 1, 101, /*laterToo=*/true);
  const std::string words = "cannot make the device current: invalid device ordinal (hipErrorInvalidDevice)";
  EXPECT_EQ(device->load(program).message(), words);
  EXPECT_EQ(device->allocate(4).message(), words);
  EXPECT_EQ(y->fill(0, 4).message(),
            "cannot fill memory of the device: invalid device ordinal (hipErrorInvalidDevice)");
}

TEST_F(LaunchTest, Memory) {
  std::unique_ptr<Device> device = open();
  EXPECT_EQ(device->allocate(size_t(1) << 40).message(),
            "hip:0 has no memory for a buffer of 1099511627776 bytes: out of memory (hipErrorOutOfMemory)");
  auto x = allocate(*device, 1.0f), y = allocate(*device, 2.0f), empty = allocate(*device, size_t(0));
  EXPECT_OK(y->fill(0, 8, 4));
  EXPECT_OK(y->copyFrom(*x, 4, 16));
  std::vector<float> values = read(*y);
  EXPECT_EQ(std::vector<float>(values.begin(), values.begin() + 6), (std::vector<float>{2, 0, 0, 2, 1, 2}));
  // Memory of other code of the process.
  auto wrapped = device->wrap(reinterpret_cast<void *>(y->address()), 8);
  ASSERT_TRUE(wrapped) << wrapped.message();
  EXPECT_OK((*wrapped)->fill(0, 8));
  EXPECT_EQ(read(*y)[0], 0.0f);
  wrapped = device->wrap(reinterpret_cast<void *>(y->address() + 1020), 8);
  EXPECT_EQ((*wrapped)->fill(0, 8).message(),
            "cannot fill memory of the device: invalid argument (hipErrorInvalidValue)");
}

} // namespace
