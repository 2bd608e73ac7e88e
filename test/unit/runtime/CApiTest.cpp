// The C interface, with a stand-in for the compiler library: bad handles, wrong arguments, closed devices and sizes of
// zero are errors with a text, and what works is what Device.h does.
#include "Samples.h"
#include "runtime/qdrt.h"

#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

namespace {

const uint32_t oneBlock[3] = {1, 1, 1};

class CApiTest : public testing::Test {
protected:
  void SetUp() override {
    setenv("QDC_COMPILER_LIBRARY", FAKE_COMPILER, 1);
    ASSERT_EQ(qdrtDeviceOpen("cpu", nullptr, &device), QDRT_OK) << qdrtErrorText();
    ASSERT_EQ(qdrtModuleLoad(device, "good", 4, "f.qir", &module), QDRT_OK) << qdrtErrorText();
    ASSERT_EQ(qdrtModuleGetKernel(module, "scale", &scale), QDRT_OK) << qdrtErrorText();
  }
  void TearDown() override {
    qdrtModuleFree(module);
    qdrtDeviceClose(device);
  }
  qdrtBuffer bufferOf(const std::vector<float> &values) {
    qdrtBuffer buffer;
    uint64_t bytes = values.size() * sizeof(float);
    EXPECT_EQ(qdrtBufferAllocate(device, bytes, &buffer), QDRT_OK) << qdrtErrorText();
    EXPECT_EQ(qdrtBufferUpload(buffer, 0, values.data(), bytes), QDRT_OK) << qdrtErrorText();
    return buffer;
  }
  std::vector<float> valuesOf(qdrtBuffer buffer) {
    std::vector<float> values(qdrtBufferBytes(buffer) / sizeof(float));
    EXPECT_EQ(qdrtBufferDownload(buffer, 0, values.data(), values.size() * sizeof(float)), QDRT_OK);
    return values;
  }

  qdrtDevice device = nullptr;
  qdrtModule module = nullptr;
  qdrtKernel scale = nullptr;
};

TEST_F(CApiTest, Launches) {
  EXPECT_EQ(qdrtApiVersion(), uint32_t(QDRT_API_VERSION));
  EXPECT_NE(std::strstr(qdrtModuleInterface(module), "\"scale\""), nullptr);
  EXPECT_EQ(qdrtModuleNumKernels(module), 1u);
  EXPECT_STREQ(qdrtModuleKernelName(module, 0), "scale");
  EXPECT_EQ(qdrtModuleKernelName(module, 1), nullptr);
  EXPECT_STREQ(qdrtModuleWarnings(module), "");
  qdrtKernel again;
  ASSERT_EQ(qdrtModuleGetKernel(module, "scale", &again), QDRT_OK);
  EXPECT_EQ(again, scale);

  qdrtBuffer x = bufferOf({1, 2, 3, 4}), y = bufferOf({0, 0, 0, 0});
  qdrtArgument arguments[] = {qdrtArray(x, QDRT_F32, 4), qdrtArray(y, QDRT_F32, 3), qdrtScalarF32(2)};
  double seconds = -1;
  ASSERT_EQ(qdrtLaunch(scale, oneBlock, arguments, 3, &seconds), QDRT_OK) << qdrtErrorText();
  EXPECT_GE(seconds, 0);
  EXPECT_EQ(valuesOf(y), (std::vector<float>{2, 4, 6, 0}));

  float host[4] = {1, 2, 3, 4};
  arguments[0].kind = QDRT_POINTER;
  arguments[0].buffer = nullptr;
  arguments[0].pointer = host;
  arguments[1].offset = 4;
  ASSERT_EQ(qdrtLaunch(scale, oneBlock, arguments, 3, nullptr), QDRT_OK) << qdrtErrorText();
  EXPECT_EQ(valuesOf(y), (std::vector<float>{2, 2, 4, 6})) << "the buffer is bound from its second element on";

  uint64_t blocks, processors;
  EXPECT_EQ(qdrtKernelOccupancy(scale, &blocks, &processors), QDRT_OK);
  EXPECT_EQ(blocks, 1u);
  qdrtBufferFree(x);
  qdrtBufferFree(y);
}

TEST_F(CApiTest, Buffers) {
  float host[4] = {1, 2, 3, 4};
  qdrtBuffer wrapped, other = bufferOf({5, 6, 7, 8}), empty;
  ASSERT_EQ(qdrtBufferWrap(device, host, sizeof host, &wrapped), QDRT_OK) << qdrtErrorText();
  EXPECT_EQ(qdrtBufferMap(wrapped), host);
  EXPECT_EQ(qdrtBufferAddress(wrapped), reinterpret_cast<uint64_t>(host));
  EXPECT_EQ(qdrtBufferCopy(wrapped, 4, other, 8, 8), QDRT_OK);
  EXPECT_EQ(host[1], 7);
  EXPECT_EQ(host[2], 8);
  EXPECT_EQ(qdrtBufferFill(wrapped, 0, 0, 4), QDRT_OK);
  EXPECT_EQ(host[0], 0);
  EXPECT_EQ(qdrtBufferCopy(wrapped, 0, wrapped, 4, 8), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "a copy of 8 bytes inside a buffer from byte 4 to byte 0 overlaps itself");
  EXPECT_EQ(qdrtBufferDownload(wrapped, 12, host, 5), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "a copy of 5 bytes at byte 12 exceeds the buffer of 16");
  EXPECT_EQ(qdrtBufferUpload(wrapped, 0, nullptr, 4), QDRT_INVALID);
  EXPECT_EQ(qdrtBufferWrap(device, nullptr, 4, &empty), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "a buffer of 4 bytes at a null pointer");
  EXPECT_EQ(qdrtBufferAllocate(device, 0, &empty), QDRT_OK);
  EXPECT_EQ(qdrtBufferUpload(empty, 0, nullptr, 0), QDRT_OK);
  EXPECT_EQ(qdrtBufferFill(empty, 0, 0, 0), QDRT_OK);
  EXPECT_EQ(qdrtBufferFill(empty, 1, 0, 0), QDRT_INVALID);
  EXPECT_EQ(qdrtBufferAllocate(device, UINT64_MAX / 2, &empty), QDRT_FAILED);
  qdrtBufferFree(wrapped);
  qdrtBufferFree(other);
}

TEST_F(CApiTest, WrongArguments) {
  qdrtBuffer x = bufferOf({1, 2});
  auto launch = [&](std::vector<qdrtArgument> arguments) {
    EXPECT_EQ(qdrtLaunch(scale, oneBlock, arguments.data(), arguments.size(), nullptr), QDRT_INVALID);
    return std::string(qdrtErrorText());
  };
  qdrtArgument array = qdrtArray(x, QDRT_F32, 2), two = qdrtScalarF32(2);
  EXPECT_EQ(launch({}), "kernel 'scale' takes 3 arguments, got 0");
  EXPECT_EQ(launch({array, array, qdrtScalarF64(2)}), "argument 'a' of kernel 'scale' is of f32, got f64");
  qdrtArgument wide = two;
  wide.bits |= uint64_t(1) << 32;
  EXPECT_EQ(launch({array, array, wide}),
            "argument 'a' of kernel 'scale' is of f32, got 5368709120, which has more than 32 bits");
  EXPECT_EQ(launch({array, two, two}), "argument 'y' of kernel 'scale' is a buffer, got a scalar");
  EXPECT_EQ(launch({array, qdrtArray(x, QDRT_F32, 3), two}),
            "argument 'y' of kernel 'scale' is given as 3 elements of 4 bytes, its buffer has 8 bytes");
  EXPECT_EQ(launch({array, qdrtArray(nullptr, QDRT_F32, 3), two}),
            "argument 'y' of kernel 'scale' has no buffer: expected a buffer, got null");
  qdrtArgument bad = array;
  bad.kind = 7;
  EXPECT_EQ(launch({bad, array, two}),
            "argument 'x' of kernel 'scale' has kind 7, expected QDRT_SCALAR, QDRT_BUFFER or QDRT_POINTER");
  bad = array;
  bad.type = 9;
  EXPECT_EQ(launch({bad, array, two}), "argument 'x' of kernel 'scale' has type 9, expected QDRT_I1 to QDRT_F64");
  bad = array;
  bad.rank = 4;
  EXPECT_EQ(launch({bad, array, two}), "argument 'x' of kernel 'scale' has 4 dimensions, expected at most 3");
  bad = array;
  bad.offset = 2;
  bad.extents[0] = 1;
  EXPECT_EQ(launch({bad, array, two}),
            "argument 'x' of kernel 'scale' begins at an address that is no multiple of 4 bytes");
  bad = array;
  bad.kind = QDRT_POINTER;
  bad.buffer = nullptr;
  EXPECT_EQ(launch({bad, array, two}), "argument 'x' of kernel 'scale' is given as 2 elements at a null pointer");
  bad.pointer = &bad;
  bad.extents[0] = -5;
  EXPECT_EQ(launch({bad, array, two}), "argument 'x' of kernel 'scale' is given as -5 elements, which no memory has");
  bad.extents[0] = INT64_MAX;
  EXPECT_EQ(launch({bad, array, two}),
            "argument 'x' of kernel 'scale' is given as 9223372036854775807 elements of 4 bytes, which no memory has");
  qdrtArgument good[] = {array, array, two};
  EXPECT_EQ(qdrtLaunch(scale, nullptr, good, 3, nullptr), QDRT_INVALID);
  EXPECT_EQ(qdrtLaunch(scale, oneBlock, nullptr, 3, nullptr), QDRT_INVALID);
  const uint32_t none[3] = {1, 0, 1};
  EXPECT_EQ(qdrtLaunch(scale, none, good, 3, nullptr), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "the grid is 1 x 0 x 1, expected at least one block in y");

  qdrtDevice other;
  qdrtBuffer foreign;
  ASSERT_EQ(qdrtDeviceOpen("interp", nullptr, &other), QDRT_OK) << qdrtErrorText();
  ASSERT_EQ(qdrtBufferAllocate(other, 8, &foreign), QDRT_OK);
  EXPECT_EQ(launch({qdrtArray(foreign, QDRT_F32, 2), array, two}),
            "argument 'x' of kernel 'scale' is a buffer of interp, expected one of cpu, the kernel's");
  EXPECT_EQ(qdrtBufferCopy(foreign, 0, x, 0, 8), QDRT_OK) << "copies go between devices";
  EXPECT_EQ(valuesOf(foreign), (std::vector<float>{1, 2}));
  qdrtBufferFree(foreign);
  qdrtDeviceClose(other);
  qdrtBufferFree(x);
}

TEST_F(CApiTest, FieldsWithoutAMeaningAreZero) {
  qdrtBuffer x = bufferOf({1, 2});
  float memory[2] = {1, 2};
  const qdrtArgument array = qdrtArray(x, QDRT_F32, 2), two = qdrtScalarF32(2);
  qdrtArgument pointer = array;
  pointer.kind = QDRT_POINTER;
  pointer.buffer = nullptr;
  pointer.pointer = memory;
  auto launch = [&](const qdrtArgument &first, const qdrtArgument &last) {
    const qdrtArgument arguments[] = {first, array, last};
    return qdrtLaunch(scale, oneBlock, arguments, 3, nullptr) ? std::string(qdrtErrorText()) : std::string();
  };
  EXPECT_EQ(launch(pointer, two), "");
  auto changed = [](qdrtArgument argument, auto change) {
    change(argument);
    return argument;
  };
  using A = qdrtArgument &;
  const std::string ofX = "argument 'x' of kernel 'scale' ", ofA = "argument 'a' of kernel 'scale' ";
  EXPECT_EQ(launch(array, changed(two, [](A a) { a.rank = 1; })), ofA + "has 'rank' 1, expected 0 in a scalar");
  EXPECT_EQ(launch(array, changed(two, [](A a) { a.extents[0] = -2; })),
            ofA + "has 'extents[0]' -2, expected 0 in a scalar");
  EXPECT_EQ(launch(array, changed(two, [&](A a) { a.buffer = x; })),
            ofA + "has a 'buffer', expected null in a scalar");
  EXPECT_EQ(launch(array, changed(two, [](A a) { a.offset = 4; })), ofA + "has 'offset' 4, expected 0 in a scalar");
  EXPECT_EQ(launch(array, changed(two, [&](A a) { a.pointer = memory; })),
            ofA + "has a 'pointer', expected null in a scalar");
  EXPECT_EQ(launch(array, changed(two, [](A a) { a.reserved[1] = 1; })), ofA + "has reserved fields that are not 0");
  EXPECT_EQ(launch(changed(array, [](A a) { a.extents[1] = 1; }), two),
            ofX + "has 'extents[1]' 1, expected 0 in a buffer of rank 1");
  EXPECT_EQ(launch(changed(array, [](A a) { a.rank = 2, a.extents[1] = 1, a.extents[2] = 7; }), two),
            ofX + "has 'extents[2]' 7, expected 0 in a buffer of rank 2");
  EXPECT_EQ(launch(changed(array, [](A a) { a.bits = 3; }), two), ofX + "has 'bits' 3, expected 0 in a buffer");
  EXPECT_EQ(launch(changed(array, [&](A a) { a.pointer = memory; }), two),
            ofX + "has a 'pointer', expected null in a buffer");
  EXPECT_EQ(launch(changed(pointer, [](A a) { a.offset = 4; }), two), ofX + "has 'offset' 4, expected 0 in a pointer");
  EXPECT_EQ(launch(changed(pointer, [&](A a) { a.buffer = x; }), two),
            ofX + "has a 'buffer', expected null in a pointer");
  qdrtBufferFree(x);
}

TEST_F(CApiTest, BadHandles) {
  qdrtBuffer x = bufferOf({1, 2});
  qdrtBufferFree(x);
  EXPECT_EQ(qdrtBufferUpload(x, 0, "1234", 4), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "expected a buffer, got a handle that is freed or of something else");
  qdrtBufferFree(x);
  qdrtBufferFree(nullptr);
  EXPECT_EQ(qdrtBufferBytes(reinterpret_cast<qdrtBuffer>(device)), 0u);
  EXPECT_EQ(qdrtBufferMap(reinterpret_cast<qdrtBuffer>(&x)), nullptr);
  qdrtModule none;
  EXPECT_EQ(qdrtModuleLoad(nullptr, "good", 4, nullptr, &none), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "expected a device, got null");
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(qdrtModuleLoad(device, nullptr, 4, nullptr, &none), QDRT_INVALID);
  EXPECT_EQ(qdrtModuleLoad(device, "good", 4, nullptr, nullptr), QDRT_INVALID);
  EXPECT_EQ(qdrtModuleLoad(device, "bad", 3, "f.qir", &none), QDRT_FAILED);
  EXPECT_STREQ(qdrtErrorText(), "'f.qir' does not compile for cpu:\nf.qir:1:1: error: bad program");
  qdrtKernel kernel;
  EXPECT_EQ(qdrtModuleGetKernel(module, "scal", &kernel), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "the module has no kernel 'scal'; did you mean 'scale'?");
  EXPECT_EQ(qdrtModuleGetKernel(module, nullptr, &kernel), QDRT_INVALID);
  qdrtModuleFree(module);
  EXPECT_EQ(qdrtLaunch(scale, oneBlock, nullptr, 0, nullptr), QDRT_INVALID) << "kernels end with their module";
  EXPECT_EQ(qdrtModuleInterface(module), nullptr);
}

TEST_F(CApiTest, ClosedDevices) {
  qdrtBuffer x = bufferOf({1, 2});
  qdrtDeviceClose(device);
  EXPECT_EQ(qdrtBufferFill(x, 0, 0, 4), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "device 'cpu' is closed");
  EXPECT_EQ(qdrtLaunch(scale, oneBlock, nullptr, 0, nullptr), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "device 'cpu' is closed");
  qdrtBuffer none;
  EXPECT_EQ(qdrtBufferAllocate(device, 4, &none), QDRT_INVALID);
  qdrtBufferFree(x);
}

TEST_F(CApiTest, OptionsAndProperties) {
  qdrtDeviceOptions options;
  qdrtInitDeviceOptions(&options);
  EXPECT_EQ(options.optLevel, 2u);
  options.threads = 3;
  qdrtDevice other;
  ASSERT_EQ(qdrtDeviceOpen("cpu", &options, &other), QDRT_OK) << qdrtErrorText();
  qdrtDeviceProperties properties;
  properties.structSize = sizeof properties;
  ASSERT_EQ(qdrtDeviceGetProperties(other, &properties), QDRT_OK) << qdrtErrorText();
  EXPECT_STREQ(properties.name, "cpu");
  EXPECT_EQ(properties.multiprocessors, 3u);
  EXPECT_TRUE(properties.takesPointers && properties.isHostMemory && !properties.isGpu);
  qdrtDeviceClose(other);
  properties.structSize = 0;
  EXPECT_EQ(qdrtDeviceGetProperties(device, &properties), QDRT_INVALID);

  // What a newer program has is taken while it is zero.
  struct {
    qdrtDeviceOptions known;
    uint64_t later;
  } newer;
  qdrtInitDeviceOptionsSized(&newer.known, sizeof newer);
  ASSERT_EQ(qdrtDeviceOpen("cpu", &newer.known, &other), QDRT_OK) << qdrtErrorText();
  qdrtDeviceClose(other);
  newer.later = 1;
  EXPECT_EQ(qdrtDeviceOpen("cpu", &newer.known, &other), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "the options set a field that this library does not know");
  options.bind = "n=4";
  ASSERT_EQ(qdrtDeviceOpen("cpu", &options, &other), QDRT_OK) << qdrtErrorText();
  qdrtModule none;
  EXPECT_EQ(qdrtModuleLoad(other, "good", 4, "f.qir", &none), QDRT_FAILED);
  EXPECT_STREQ(qdrtErrorText(), "'f.qir' does not compile for cpu:\nerror: nothing binds n=4");
  qdrtDeviceClose(other);
  // What an older program has.
  options.structSize = offsetof(qdrtDeviceOptions, bind);
  ASSERT_EQ(qdrtDeviceOpen("cpu", &options, &other), QDRT_OK) << qdrtErrorText();
  EXPECT_EQ(qdrtModuleLoad(other, "good", 4, "f.qir", &none), QDRT_OK) << qdrtErrorText();
  qdrtModuleFree(none);
  qdrtDeviceClose(other);
  options.structSize = sizeof options;
  options.optLevel = 4;
  EXPECT_EQ(qdrtDeviceOpen("cpu", &options, &other), QDRT_INVALID);
  options.structSize = 0;
  EXPECT_EQ(qdrtDeviceOpen("cpu", &options, &other), QDRT_INVALID);
  EXPECT_EQ(qdrtDeviceOpen("vulcan", nullptr, &other), QDRT_INVALID);
  EXPECT_STREQ(qdrtErrorText(), "no device is called 'vulcan'; did you mean 'vulkan'?");
}

TEST_F(CApiTest, Enumerates) {
  qdrtDeviceList list;
  ASSERT_EQ(qdrtListDevices(&list), QDRT_OK);
  size_t count = qdrtDeviceListSize(list);
  ASSERT_GE(count, 4u);
  EXPECT_STREQ(qdrtDeviceListName(list, 0), "cpu");
  EXPECT_NE(qdrtDeviceListPresent(list, 0), 0);
  EXPECT_NE(qdrtDeviceListText(list, count - 1), nullptr);
  EXPECT_EQ(qdrtDeviceListName(list, count), nullptr);
  EXPECT_EQ(qdrtListDevices(nullptr), QDRT_INVALID);
  qdrtDeviceListFree(list);
  EXPECT_EQ(qdrtDeviceListSize(list), 0u);
  qdrtDevice best;
  ASSERT_EQ(qdrtDeviceOpen(nullptr, nullptr, &best), QDRT_OK) << qdrtErrorText();
  qdrtDeviceClose(best);
}

} // namespace
