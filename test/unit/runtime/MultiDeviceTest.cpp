// Two GPUs in one process, with stand-ins for the drivers whose calls fail where an object is of another device than
// the thread's current one: each call makes its device current, whatever was before; objects of the other are refused
// with both named; copies go between them.
#include "DeviceTest.h"

#include <thread>

using namespace qd::rt;

namespace {

struct Gpu {
  explicit Gpu(const std::string &name, const std::vector<uint8_t> &program) {
    EXPECT_EQ(qdrtDeviceOpen(name.c_str(), nullptr, &device), QDRT_OK) << qdrtErrorText();
    EXPECT_EQ(qdrtModuleLoad(device, program.data(), program.size(), "f.qdb", &module), QDRT_OK) << qdrtErrorText();
    EXPECT_EQ(qdrtModuleGetKernel(module, "scale", &kernel), QDRT_OK) << qdrtErrorText();
    for (qdrtBuffer *buffer : {&x, &y})
      EXPECT_EQ(qdrtBufferAllocate(device, count * 4, buffer), QDRT_OK) << qdrtErrorText();
    EXPECT_EQ(qdrtStreamCreate(device, &stream), QDRT_OK) << qdrtErrorText();
    EXPECT_EQ(qdrtEventCreate(device, &event), QDRT_OK) << qdrtErrorText();
    EXPECT_EQ(qdrtGraphCreate(device, &graph), QDRT_OK) << qdrtErrorText();
    auto arguments = argumentsOf(x, y, 2);
    EXPECT_EQ(qdrtPrepare(kernel, twoBlocks, arguments.data(), 4, &prepared), QDRT_OK) << qdrtErrorText();
  }
  ~Gpu() {
    qdrtGraphFree(graph);
    qdrtPreparedFree(prepared);
    qdrtEventFree(event);
    qdrtStreamFree(stream);
    qdrtBufferFree(x);
    qdrtBufferFree(y);
    qdrtModuleFree(module);
    qdrtDeviceClose(device);
  }
  static std::array<qdrtArgument, 4> argumentsOf(qdrtBuffer x, qdrtBuffer y, float a) {
    return {qdrtArray(x, QDRT_F32, count), qdrtArray(y, QDRT_F32, count), qdrtScalarF32(a), qdrtScalarI32(count)};
  }
  void upload(float value) {
    std::vector<float> values(count, value);
    EXPECT_EQ(qdrtBufferUpload(x, 0, values.data(), count * 4), QDRT_OK) << qdrtErrorText();
  }
  float result() {
    float value = -1;
    EXPECT_EQ(qdrtBufferDownload(y, (count - 1) * 4, &value, 4), QDRT_OK) << qdrtErrorText();
    return value;
  }

  qdrtDevice device = nullptr;
  qdrtModule module = nullptr;
  qdrtKernel kernel = nullptr;
  qdrtBuffer x = nullptr, y = nullptr;
  qdrtStream stream = nullptr;
  qdrtEvent event = nullptr;
  qdrtGraph graph = nullptr;
  qdrtPrepared prepared = nullptr;
};

class MultiDeviceTest : public testing::TestWithParam<DeviceCase> {
protected:
  void SetUp() override {
    ASSERT_TRUE(dlopen(GetParam().library, RTLD_NOW | RTLD_LOCAL)) << dlerror();
    setenv("FAKE_DEVICES", "2", 1);
  }
  void TearDown() override { unsetenv("FAKE_DEVICES"); }
  std::string name(int index) const { return text(GetParam().device, ":", index); }
  std::vector<uint8_t> program() const {
    return GetParam().device == std::string("cuda")
               ? sampleEntry(ImageKind::PTX, nvptxTriple, "sm_80", 32, bytesOf("good"))
               : sampleEntry(ImageKind::Object, amdgcnTriple, "gfx90a", 64, bytesOf("good"));
  }
};

TEST_P(MultiDeviceTest, EachCallMakesItsDeviceCurrent) {
  Gpu first(name(0), program()), second(name(1), program());
  qdrtDevice third;
  EXPECT_EQ(qdrtDeviceOpen(name(2).c_str(), nullptr, &third), QDRT_FAILED);
  EXPECT_EQ(qdrtErrorText(), text("device '", name(2), "' is absent: the machine has ", name(0), " to 1"));
  first.upload(1);
  second.upload(10);
  for (int turn = 1; turn < 4; ++turn)
    for (Gpu *gpu : {&first, &second}) {
      float factor = static_cast<float>(turn), in = gpu == &first ? 1.0f : 10.0f;
      auto arguments = Gpu::argumentsOf(gpu->x, gpu->y, factor);
      ASSERT_EQ(qdrtLaunch(gpu->kernel, twoBlocks, arguments.data(), 4, nullptr), QDRT_OK) << qdrtErrorText();
      EXPECT_EQ(gpu->result(), factor * in);
      ASSERT_EQ(qdrtStreamFill(gpu->stream, gpu->y, 0, 0, count * 4), QDRT_OK) << qdrtErrorText();
      ASSERT_EQ(qdrtPreparedLaunch(gpu->prepared, gpu->stream), QDRT_OK) << qdrtErrorText();
      ASSERT_EQ(qdrtEventRecord(gpu->event, gpu->stream), QDRT_OK) << qdrtErrorText();
    }
  for (Gpu *gpu : {&first, &second}) {
    ASSERT_EQ(qdrtEventSynchronize(gpu->event), QDRT_OK) << qdrtErrorText();
    ASSERT_EQ(qdrtStreamSynchronize(gpu->stream), QDRT_OK) << qdrtErrorText();
    ASSERT_EQ(qdrtDeviceSynchronize(gpu->device), QDRT_OK) << qdrtErrorText();
  }
  EXPECT_EQ(first.result(), 2);
  EXPECT_EQ(second.result(), 20);
  for (int turn = 0; turn < 2; ++turn)
    for (Gpu *gpu : {&first, &second}) {
      if (!turn) {
        ASSERT_EQ(qdrtGraphAddFill(gpu->graph, gpu->y, 0, 0, count * 4), QDRT_OK) << qdrtErrorText();
        ASSERT_EQ(qdrtGraphAddLaunch(gpu->graph, gpu->prepared), QDRT_OK) << qdrtErrorText();
      }
      ASSERT_EQ(qdrtGraphLaunch(gpu->graph, gpu->stream), QDRT_OK) << qdrtErrorText();
    }
  EXPECT_EQ(first.result(), 2);
  EXPECT_EQ(second.result(), 20);
}

TEST_P(MultiDeviceTest, CopiesAndEventsGoBetween) {
  Gpu first(name(0), program()), second(name(1), program());
  first.upload(3);
  second.upload(0);
  ASSERT_EQ(qdrtBufferCopy(second.y, 0, first.x, 0, count * 4), QDRT_OK) << qdrtErrorText();
  EXPECT_EQ(second.result(), 3);
  ASSERT_EQ(qdrtEventRecord(first.event, first.stream), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtStreamWaitEvent(second.stream, first.event), QDRT_OK) << "the host waits; " << qdrtErrorText();
}

TEST_P(MultiDeviceTest, RefusesTheOthersObjects) {
  Gpu first(name(0), program()), second(name(1), program());
  auto expectRefused = [&](qdrtStatus status, const char *before, const char *behind, bool secondFound = true) {
    EXPECT_EQ(status, QDRT_INVALID);
    EXPECT_EQ(qdrtErrorText(),
              text(before, name(secondFound), ", expected one of ", name(!secondFound), ", the ", behind, "'s"));
  };
  auto arguments = Gpu::argumentsOf(first.x, second.y, 2);
  const char *argument = "argument 'y' of kernel 'scale' is a buffer of ";
  expectRefused(qdrtLaunch(first.kernel, twoBlocks, arguments.data(), 4, nullptr), argument, "kernel");
  qdrtPrepared none;
  expectRefused(qdrtPrepare(first.kernel, twoBlocks, arguments.data(), 4, &none), argument, "kernel");
  expectRefused(qdrtPreparedSetArgument(first.prepared, 1, &arguments[1]), argument, "kernel");
  expectRefused(qdrtPreparedLaunch(first.prepared, second.stream), "the launch is of ", "stream", false);
  expectRefused(qdrtStreamFill(first.stream, second.y, 0, 0, 4), "the buffer is of ", "stream");
  expectRefused(qdrtStreamCopy(first.stream, first.y, 0, second.y, 0, 4), "the buffer is of ", "stream");
  expectRefused(qdrtStreamCopy(first.stream, second.y, 0, first.y, 0, 4), "the buffer is of ", "stream");
  expectRefused(qdrtEventRecord(second.event, first.stream), "the event is of ", "stream");
  expectRefused(qdrtGraphAddLaunch(first.graph, second.prepared), "the launch is of ", "graph");
  expectRefused(qdrtGraphAddFill(first.graph, second.y, 0, 0, 4), "the buffer is of ", "graph");
  expectRefused(qdrtGraphAddCopy(first.graph, first.y, 0, second.y, 0, 4), "the source is of ", "target");
  expectRefused(qdrtGraphLaunch(first.graph, second.stream), "the stream is of ", "graph");
  ASSERT_EQ(qdrtEventRecord(first.event, first.stream), QDRT_OK);
  ASSERT_EQ(qdrtEventRecord(second.event, second.stream), QDRT_OK);
  double seconds;
  expectRefused(qdrtEventElapsed(second.event, first.event, &seconds), "the first event is of ", "second");
}

TEST_P(MultiDeviceTest, ThreadsUseOneDeviceEach) {
  Gpu first(name(0), program()), second(name(1), program());
  first.upload(1);
  second.upload(10);
  auto work = [](Gpu &gpu) {
    for (int turn = 0; turn < 200; ++turn) {
      ASSERT_EQ(qdrtPreparedLaunch(gpu.prepared, gpu.stream), QDRT_OK) << qdrtErrorText();
      ASSERT_EQ(qdrtStreamSynchronize(gpu.stream), QDRT_OK) << qdrtErrorText();
    }
  };
  std::thread one([&] { work(first); }), other([&] { work(second); });
  one.join();
  other.join();
  // A thread that has just used the other device, and one that has used none.
  work(second);
  work(first);
  EXPECT_EQ(first.result(), 2);
  EXPECT_EQ(second.result(), 20);
}

INSTANTIATE_TEST_SUITE_P(Drivers, MultiDeviceTest,
                         testing::Values(DeviceCase{"cuda", FAKE_CUDA}, DeviceCase{"hip", FAKE_HIP}), nameOf);

} // namespace
