// What the stand-in itself notices.
#include "HipMachine.h"

#include <cstring>

using namespace qd::rt;

namespace {

class DoubleTest : public HipMachine {
protected:
  void TearDown() override { boot(""); }
  /// How often a misuse was noticed since the last time.
  size_t noticed() {
    size_t all = control().problems().size();
    return all - std::exchange(known, all);
  }
  size_t known = 0;
};

TEST_F(DoubleTest, Handles) {
  uint64_t memory = 0;
  void *stream = nullptr, *event = nullptr, *function = nullptr;
  ASSERT_EQ(callHip("hipMalloc", &memory, size_t(100)), 0);
  EXPECT_EQ(callHip("hipFree", memory), 0);
  EXPECT_EQ(callHip("hipFree", memory), 1);
  EXPECT_EQ(noticed(), 1u) << "freed twice";
  EXPECT_EQ(callHip("hipMemsetD8", memory, static_cast<unsigned char>(0), size_t(1)), 1);
  ASSERT_EQ(callHip("hipMalloc", &memory, size_t(100)), 0);
  EXPECT_EQ(callHip("hipMemsetD8", memory + 99, static_cast<unsigned char>(0), size_t(2)), 1);
  EXPECT_EQ(control().live().size(), 1u);

  ASSERT_EQ(callHip("hipStreamCreateWithFlags", &stream, 0u), 0);
  ASSERT_EQ(callHip("hipEventCreateWithFlags", &event, 0u), 0);
  EXPECT_EQ(callHip("hipEventRecord", event, stream), 0);
  EXPECT_EQ(callHip("hipEventQuery", event), 600);
  EXPECT_EQ(callHip("hipStreamDestroy", event), 709);
  EXPECT_EQ(noticed(), 1u) << "an event is no stream";
  EXPECT_EQ(callHip("hipMemsetD8Async", memory, static_cast<unsigned char>(0), size_t(1), stream), 0);
  EXPECT_EQ(callHip("hipStreamDestroy", stream), 0);
  EXPECT_EQ(noticed(), 1u) << "it had work";
  EXPECT_EQ(callHip("hipStreamSynchronize", stream), 709);
  EXPECT_EQ(callHip("hipEventRecord", event, stream), 709);
  EXPECT_EQ(noticed(), 2u) << "used when it was destroyed";
  EXPECT_EQ(callHip("hipEventDestroy", event), 0);
  EXPECT_EQ(callHip("hipEventDestroy", event), 709);
  EXPECT_EQ(callHip("hipModuleLaunchKernel", function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, stream,
                    static_cast<void **>(nullptr), static_cast<void **>(nullptr)),
            400);
  EXPECT_EQ(noticed(), 2u);
}

TEST_F(DoubleTest, Launches) {
  Program program = compile(scaleProgram, "amdgcn:gfx942");
  auto bundle = parseBundle(program.bytes.data(), program.bytes.size());
  ASSERT_TRUE(bundle);
  const void *image = bundle->variants[0].image.data();
  void *module = nullptr, *scale = nullptr, *none = nullptr;
  uint64_t memory = 0;
  ASSERT_EQ(
      callHip("hipModuleLoadDataEx", &module, image, 0u, static_cast<int *>(nullptr), static_cast<void **>(nullptr)),
      0);
  ASSERT_EQ(callHip("hipModuleGetFunction", &scale, module, "scale"), 0);
  EXPECT_EQ(callHip("hipModuleGetFunction", &none, module, "none"), 500);
  ASSERT_EQ(callHip("hipMalloc", &memory, size_t(256)), 0);
  uint32_t n = 64;
  float a = 1;
  void *parameters[] = {&n, &a, &memory, &memory};
  auto launch = [&](unsigned gridX, unsigned gridY, unsigned blockX, unsigned shared) {
    return callHip("hipModuleLaunchKernel", scale, gridX, gridY, 1u, blockX, 1u, 1u, shared, none, parameters + 0,
                   static_cast<void **>(nullptr));
  };
  EXPECT_EQ(launch(1, 1, 64, 0), 0);
  EXPECT_EQ(callHip("hipDeviceSynchronize"), 0);
  EXPECT_EQ(launch(0, 1, 64, 0), 1);
  EXPECT_EQ(launch(1, 65537, 64, 0), 1);
  EXPECT_EQ(launch(1u << 26, 1, 64, 0), 9);
  EXPECT_EQ(launch(1, 1, 65, 0), 719) << "more threads than it was compiled for";
  EXPECT_EQ(launch(1, 1, 2048, 0), 1);
  EXPECT_EQ(launch(1, 1, 64, 65537), 1);
  EXPECT_EQ(noticed(), 0u);
  EXPECT_EQ(launch(1, 1, 32, 0), 0);
  EXPECT_EQ(callHip("hipDeviceSynchronize"), 719) << "other blocks than it was compiled for";
  EXPECT_EQ(noticed(), 1u);
  EXPECT_EQ(callHip("hipDeviceSynchronize"), 0) << "told once";
  memory += 512;
  EXPECT_EQ(launch(1, 1, 64, 0), 0);
  EXPECT_EQ(callHip("hipDeviceSynchronize"), 700) << "no memory of the device's";
  memory -= 512;
  EXPECT_EQ(launch(1, 1, 64, 0), 0);
  EXPECT_EQ(callHip("hipModuleUnload", module), 0);
  EXPECT_EQ(callHip("hipDeviceSynchronize"), 719) << "unloaded under it";
  EXPECT_EQ(noticed(), 1u);
}

/// Each part of a code object that a launch relies on.
TEST_F(DoubleTest, CodeObjects) {
  Program program = compile(scaleProgram, "amdgcn:gfx942");
  auto bundle = parseBundle(program.bytes.data(), program.bytes.size());
  ASSERT_TRUE(bundle);
  const std::vector<uint8_t> &good = bundle->variants[0].image;
  auto load = [](const std::vector<uint8_t> &image) {
    void *module = nullptr;
    int code = callHip("hipModuleLoadDataEx", &module, static_cast<const void *>(image.data()), 0u,
                       static_cast<int *>(nullptr), static_cast<void **>(nullptr));
    if (!code)
      callHip("hipModuleUnload", module);
    return code;
  };
  EXPECT_EQ(load(good), 0);
  auto changed = [&](const std::string &text, size_t behind, uint8_t value) {
    std::vector<uint8_t> image = good;
    size_t at = std::string(good.begin(), good.end()).find(text);
    EXPECT_NE(at, std::string::npos) << text;
    image[at + text.size() + behind] = value;
    return load(image);
  };
  EXPECT_EQ(changed("\x7F" "ELF", 44, 0x3F), 200) << "another chip in the header than in the metadata";
  EXPECT_EQ(changed(".kernarg_segment_size", 0, 16), 200) << "a segment that does not hold the arguments";
  EXPECT_EQ(changed(".kernarg_segment_size", 0, 32), 200) << "another segment than the descriptor's";
  EXPECT_EQ(changed(".wavefront_size", 0, 32), 200);
  EXPECT_EQ(changed(".group_segment_fixed_size", 0, 4), 200);
  EXPECT_EQ(changed(".offset\x04", 0, 0xC1), 200) << "metadata that is not whole";
  EXPECT_EQ(changed("global_buffe", 0, 'x'), 200) << "a kind of arguments that nobody knows";
  EXPECT_EQ(changed("scale.k", 0, 'x'), 200) << "a descriptor of another name";
  EXPECT_EQ(noticed(), 0u);

  // What the launch will hand over is not what the code reads.
  for (auto [from, to] : {std::pair("\"type\":\"f32\",\"offset\"", "\"type\":\"f64\",\"offset\""),
                          std::pair("\"name\":\"x\"", "\"name\":\"z\""), std::pair("[64,1,1]", "[32,1,1]"),
                          std::pair("\"size\":false", "\"size\":true,\"size_offset\":8")}) {
    std::string json = bundle->variants[0].interface.json;
    size_t at = json.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    json.replace(at, std::strlen(from), to);
    std::vector<uint8_t> bytes = formatEntry(ImageKind::Object,
                                             {{"triple", std::string(amdgcnTriple)},
                                              {"arch", "gfx942"},
                                              {"qdb.version", std::string(bundleVersion)},
                                              {"subgroup_size", "64"},
                                              {"qdb.interface", json}},
                                             good);
    std::vector<uint8_t> qir = formatEntry(
        ImageKind::None, {{"triple", "qir"}, {"qdb.version", std::string(bundleVersion)}}, bundle->qir);
    bytes.insert(bytes.end(), qir.begin(), qir.end());
    control().addBundle(bytes.data(), bytes.size());
    EXPECT_EQ(load(good), 200) << from;
    EXPECT_EQ(noticed(), 1u) << from;
  }
  control().addBundle(program.bytes.data(), program.bytes.size());
}

} // namespace
