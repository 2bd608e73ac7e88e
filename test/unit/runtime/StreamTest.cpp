// Prepared launches, streams, events and graphs through the C interface: with stand-ins for the compiler library and
// the drivers, and on the Vulkan device of this machine. Every device does the same.
#include "DeviceTest.h"

#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace qd::rt;

namespace {

using StreamTest = DeviceTest;

// The stand-in for the compiler overwrites its first argument with -1, so tests look at the chain's last buffer.

/// A driver's objects are the parent's alone, and using or freeing them in the child does not wait for what is not
/// there.
TEST_P(StreamTest, ForkedProcess) {
  qdrtStream stream = makeStream();
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (!child) {
    alarm(20);
    bool isRight = true;
    qdrtStatus expected = isHost() ? QDRT_OK : QDRT_INVALID;
    std::string said = text("device '", GetParam().device, isHost() ? "" : ":0",
                            "' was opened before this process was forked, expected one that this process opened");
    qdrtBuffer buffer;
    for (auto status : {qdrtBufferFill(x, 0, 0, 4), qdrtBufferAllocate(device, 4, &buffer),
                        qdrtStreamSynchronize(stream), qdrtDeviceSynchronize(device)})
      isRight &= status == expected && (isHost() || qdrtErrorText() == said);
    qdrtBufferFree(x);
    qdrtModuleFree(module);
    qdrtDeviceClose(device);
    isRight &= qdrtBufferFill(x, 0, 0, 4) == QDRT_INVALID;
    _exit(!isRight);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(qdrtBufferFill(x, 0, 0, 4), QDRT_OK) << qdrtErrorText();
  qdrtStreamFree(stream);
}

/// Sizes that wrap around when they are rounded up.
TEST_P(StreamTest, LargestSizes) {
  for (uint64_t bytes : {UINT64_MAX, UINT64_MAX - 2, UINT64_MAX - 63, UINT64_MAX / 2 + 1}) {
    qdrtBuffer buffer;
    EXPECT_EQ(qdrtBufferAllocate(device, bytes, &buffer), QDRT_FAILED) << bytes;
    EXPECT_EQ(buffer, nullptr);
  }
}

TEST_P(StreamTest, LaunchesInOrder) {
  qdrtStream stream = makeStream();
  qdrtPrepared first = prepare(x, y, 2), second = prepare(y, z, 3);
  std::vector<float> host(count, 5), back(count);
  for (int turn = 0; turn < 200; ++turn) {
    ASSERT_EQ(qdrtStreamUpload(stream, x, 0, host.data(), count * 4), QDRT_OK) << qdrtErrorText();
    ASSERT_EQ(qdrtPreparedLaunch(first, stream), QDRT_OK) << qdrtErrorText();
    ASSERT_EQ(qdrtPreparedLaunch(second, stream), QDRT_OK) << qdrtErrorText();
  }
  ASSERT_EQ(qdrtStreamDownload(stream, z, 0, back.data(), count * 4), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtStreamSynchronize(stream), QDRT_OK) << qdrtErrorText();
  EXPECT_EQ(back, std::vector<float>(count, 30));
  int finished = 0;
  EXPECT_EQ(qdrtStreamQuery(stream, &finished), QDRT_OK);
  EXPECT_EQ(finished, 1);

  ASSERT_EQ(qdrtStreamFill(stream, x, 0, 0, count * 4), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtStreamFill(stream, x, 1, 0, 2), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtStreamCopy(stream, z, 0, x, 0, count * 4), QDRT_OK) << qdrtErrorText();
  EXPECT_EQ(firstOf(z), 0) << "reading begins after the stream's work";
  EXPECT_EQ(qdrtStreamCopy(stream, z, 4, x, 0, count * 4), QDRT_INVALID);
  EXPECT_EQ(qdrtPreparedLaunch(first, nullptr), QDRT_OK) << "the default stream; " << qdrtErrorText();
  EXPECT_EQ(qdrtDeviceSynchronize(device), QDRT_OK) << qdrtErrorText();
  qdrtStreamFree(stream);
  qdrtPreparedFree(first);
  qdrtPreparedFree(second);
}

TEST_P(StreamTest, LaunchesChange) {
  qdrtPrepared launch = prepare(x, y, 2);
  qdrtArgument seven = qdrtScalarF32(7), wrong = qdrtScalarF64(7), into = qdrtArray(z, QDRT_F32, count);
  ASSERT_EQ(qdrtPreparedSetArgument(launch, 2, &seven), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtPreparedSetArgument(launch, 1, &into), QDRT_OK) << qdrtErrorText();
  EXPECT_EQ(qdrtPreparedSetArgument(launch, 2, &wrong), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "argument 'a' of kernel 'scale' is of f32, got f64");
  EXPECT_EQ(qdrtPreparedSetArgument(launch, 9, &seven), QDRT_INVALID);
  EXPECT_EQ(qdrtPreparedSetArgument(launch, 2, nullptr), QDRT_INVALID);
  const uint32_t none[3] = {0, 1, 1};
  EXPECT_EQ(qdrtPreparedSetGrid(launch, none), QDRT_INVALID);
  EXPECT_EQ(qdrtPreparedSetGrid(launch, twoBlocks), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtPreparedLaunch(launch, nullptr), QDRT_OK) << qdrtErrorText();
  EXPECT_EQ(firstOf(z), 7);
  // What is bound lives on.
  qdrtBufferFree(z);
  qdrtModuleFree(module);
  EXPECT_EQ(qdrtPreparedLaunch(launch, nullptr), QDRT_OK) << qdrtErrorText();
  EXPECT_EQ(qdrtPreparedLaunch(nullptr, nullptr), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "expected a prepared launch, got null");
  qdrtDeviceClose(device);
  EXPECT_EQ(qdrtPreparedLaunch(launch, nullptr), QDRT_INVALID);
  EXPECT_NE(std::string(qdrtErrorText()).find("is closed"), std::string::npos);
  qdrtPreparedFree(launch);
  EXPECT_EQ(qdrtPreparedLaunch(launch, nullptr), QDRT_INVALID);
}

TEST_P(StreamTest, EventsMeasureAndOrder) {
  qdrtStream one = makeStream(), other = makeStream();
  qdrtEvent start, end;
  ASSERT_EQ(qdrtEventCreate(device, &start), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtEventCreate(device, &end), QDRT_OK) << qdrtErrorText();
  double seconds = -1;
  EXPECT_EQ(qdrtEventSynchronize(start), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "the event was never recorded");
  EXPECT_EQ(qdrtEventElapsed(start, end, &seconds), QDRT_INVALID);
  EXPECT_EQ(qdrtStreamWaitEvent(one, start), QDRT_INVALID);
  qdrtPrepared first = prepare(x, y, 2), second = prepare(y, z, 3);
  ASSERT_EQ(qdrtEventRecord(start, one), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtPreparedLaunch(first, one), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtEventRecord(end, one), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtStreamWaitEvent(other, end), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtPreparedLaunch(second, other), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtStreamSynchronize(other), QDRT_OK) << qdrtErrorText();
  EXPECT_EQ(firstOf(z), 6);
  ASSERT_EQ(qdrtEventElapsed(start, end, &seconds), QDRT_OK) << qdrtErrorText();
  EXPECT_GE(seconds, 0);
  EXPECT_LT(seconds, 10);
  int happened = 0;
  EXPECT_EQ(qdrtEventQuery(end, &happened), QDRT_OK);
  EXPECT_EQ(happened, 1);
  ASSERT_EQ(qdrtEventRecord(start, nullptr), QDRT_OK) << qdrtErrorText();
  EXPECT_EQ(qdrtEventSynchronize(start), QDRT_OK) << qdrtErrorText();
  for (qdrtPrepared launch : {first, second})
    qdrtPreparedFree(launch);
  qdrtEventFree(start);
  qdrtEventFree(end);
  qdrtStreamFree(one);
  qdrtStreamFree(other);
}

TEST_P(StreamTest, GraphsReplay) {
  qdrtGraph graph;
  ASSERT_EQ(qdrtGraphCreate(device, &graph), QDRT_OK) << qdrtErrorText();
  qdrtPrepared first = prepare(x, y, 2), second = prepare(y, z, 3);
  std::vector<float> host(count, 1), back(count);
  ASSERT_EQ(qdrtGraphAddUpload(graph, x, 0, host.data(), count * 4), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtGraphAddFill(graph, y, 0, 0, count * 4), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtGraphAddLaunch(graph, first), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtGraphAddLaunch(graph, second), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtGraphAddCopy(graph, y, 0, z, 0, count * 4), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtGraphAddFill(graph, z, 0, 0, 0), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtGraphAddDownload(graph, y, 0, back.data(), count * 4), QDRT_OK) << qdrtErrorText();
  EXPECT_EQ(qdrtGraphAddDownload(graph, y, 4, back.data(), count * 4), QDRT_INVALID);
  EXPECT_EQ(qdrtGraphAddLaunch(graph, nullptr), QDRT_INVALID);
  qdrtArgument seven = qdrtScalarF32(7);
  EXPECT_EQ(qdrtPreparedSetArgument(first, 2, &seven), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "the launch of kernel 'scale' is part of a graph and cannot be changed");
  // Its parts live on.
  qdrtPreparedFree(first);
  qdrtPreparedFree(second);
  qdrtBufferFree(z);

  qdrtStream stream = makeStream();
  for (float value : {1.0f, 4.0f, 9.0f}) {
    host.assign(count, value);
    ASSERT_EQ(qdrtGraphLaunch(graph, stream), QDRT_OK) << qdrtErrorText();
    ASSERT_EQ(qdrtStreamSynchronize(stream), QDRT_OK) << qdrtErrorText();
    EXPECT_EQ(back, std::vector<float>(count, 6 * value));
  }
  ASSERT_EQ(qdrtGraphLaunch(graph, nullptr), QDRT_OK) << qdrtErrorText();
  EXPECT_EQ(qdrtGraphAddFill(graph, y, 0, 0, 4), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "the graph was launched: nothing can be added to it");
  qdrtGraphFree(graph);
  EXPECT_EQ(qdrtGraphLaunch(graph, stream), QDRT_INVALID);
  ASSERT_EQ(qdrtGraphCreate(device, &graph), QDRT_OK);
  EXPECT_EQ(qdrtGraphLaunch(graph, stream), QDRT_OK) << "an empty graph; " << qdrtErrorText();
  qdrtGraphFree(graph);
  qdrtStreamFree(stream);
}

TEST_P(StreamTest, DevicesAreToldApart) {
  qdrtDevice second;
  ASSERT_EQ(qdrtDeviceOpen(isHost() ? "interp" : GetParam().device, nullptr, &second), QDRT_OK) << qdrtErrorText();
  qdrtStream foreign;
  qdrtEvent event;
  qdrtGraph graph;
  ASSERT_EQ(qdrtStreamCreate(second, &foreign), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtEventCreate(second, &event), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtGraphCreate(second, &graph), QDRT_OK) << qdrtErrorText();
  qdrtPrepared launch = prepare(x, y, 2);
  EXPECT_EQ(qdrtPreparedLaunch(launch, foreign), QDRT_INVALID);
  std::string names =
      isHost() ? "cpu, expected one of interp" : text("another opening of ", label(), ", expected one of ", label());
  EXPECT_EQ(qdrtErrorText(), "the launch is of " + names + ", the stream's");
  EXPECT_EQ(qdrtStreamFill(foreign, x, 0, 0, 4), QDRT_INVALID);
  EXPECT_EQ(qdrtErrorText(), "the buffer is of " + names + ", the stream's");
  EXPECT_EQ(qdrtGraphAddLaunch(graph, launch), QDRT_INVALID);
  EXPECT_EQ(qdrtGraphAddFill(graph, x, 0, 0, 4), QDRT_INVALID);
  qdrtStream own = makeStream();
  EXPECT_EQ(qdrtEventRecord(event, own), QDRT_INVALID);
  ASSERT_EQ(qdrtEventRecord(event, foreign), QDRT_OK) << qdrtErrorText();
  EXPECT_EQ(qdrtStreamWaitEvent(own, event), QDRT_OK) << "the host waits; " << qdrtErrorText();
  qdrtPreparedFree(launch);
  qdrtGraphFree(graph);
  qdrtEventFree(event);
  qdrtStreamFree(foreign);
  qdrtStreamFree(own);
  qdrtDeviceClose(second);
}

TEST_P(StreamTest, ThreadsShareADevice) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      qdrtBuffer from, to;
      std::vector<float> host(count, static_cast<float>(t + 1)), back(count);
      ASSERT_EQ(qdrtBufferAllocate(device, count * 4, &from), QDRT_OK) << qdrtErrorText();
      ASSERT_EQ(qdrtBufferAllocate(device, count * 4, &to), QDRT_OK) << qdrtErrorText();
      qdrtPrepared launch = prepare(from, to, 2);
      qdrtStream stream = makeStream();
      for (int turn = 0; turn < 50; ++turn) {
        ASSERT_EQ(qdrtStreamUpload(stream, from, 0, host.data(), count * 4), QDRT_OK) << qdrtErrorText();
        ASSERT_EQ(qdrtPreparedLaunch(launch, stream), QDRT_OK) << qdrtErrorText();
        ASSERT_EQ(qdrtStreamSynchronize(stream), QDRT_OK) << qdrtErrorText();
      }
      ASSERT_EQ(qdrtBufferDownload(to, 0, back.data(), count * 4), QDRT_OK) << qdrtErrorText();
      EXPECT_EQ(back, std::vector<float>(count, static_cast<float>(2 * t + 2)));
      qdrtPreparedFree(launch);
      qdrtStreamFree(stream);
      qdrtBufferFree(from);
      qdrtBufferFree(to);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST_P(StreamTest, ForeignStreams) {
  qdrtStream stream;
  int memory;
  std::string name = GetParam().device;
  if (name != "cuda" && name != "hip") {
    EXPECT_EQ(qdrtStreamWrap(device, &memory, &stream), QDRT_INVALID);
    EXPECT_NE(std::string(qdrtErrorText()).find("takes no streams of its driver"), std::string::npos);
    EXPECT_EQ(qdrtDeviceContext(device), nullptr);
    return;
  }
  if (name == "cuda") {
    EXPECT_EQ(qdrtDeviceContext(device), reinterpret_cast<void *>(uintptr_t(7)));
    // Other code of the process leaves the thread with another context.
    void *driver = dlopen(GetParam().library, RTLD_NOW | RTLD_NOLOAD);
    auto setCurrent = reinterpret_cast<int (*)(void *)>(dlsym(driver, "cuCtxSetCurrent"));
    ASSERT_TRUE(setCurrent);
    setCurrent(nullptr);
    ASSERT_EQ(qdrtDeviceSynchronize(device), QDRT_OK) << qdrtErrorText();
    setCurrent(nullptr);
  }
  qdrtStream own = makeStream();
  void *native = qdrtStreamNative(own);
  EXPECT_NE(native, nullptr);
  ASSERT_EQ(qdrtStreamWrap(device, native, &stream), QDRT_OK) << qdrtErrorText();
  EXPECT_EQ(qdrtStreamNative(stream), native);
  std::vector<float> host(count, 3);
  qdrtBuffer wrapped;
  // The stand-in's memory of the device is the host's.
  ASSERT_EQ(qdrtBufferWrap(device, host.data(), count * 4, &wrapped), QDRT_OK) << qdrtErrorText();
  qdrtPrepared launch = prepare(wrapped, y, 2);
  if (name == "cuda") {
    void *driver = dlopen(GetParam().library, RTLD_NOW | RTLD_NOLOAD);
    reinterpret_cast<int (*)(void *)>(dlsym(driver, "cuCtxSetCurrent"))(nullptr);
  }
  ASSERT_EQ(qdrtPreparedLaunch(launch, stream), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtStreamSynchronize(stream), QDRT_OK);
  EXPECT_EQ(firstOf(y), 6);
  qdrtStreamFree(stream);
  EXPECT_EQ(qdrtStreamSynchronize(own), QDRT_OK) << "a wrapped stream stays its owner's";
  qdrtPreparedFree(launch);
  qdrtBufferFree(wrapped);
  qdrtStreamFree(own);
}

INSTANTIATE_TEST_SUITE_P(Devices, StreamTest, everyDevice(), nameOf);

} // namespace
