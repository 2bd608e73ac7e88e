#include "HipMachine.h"

#include "runtime/Compiler.h"

#include <cstdlib>
#include <dlfcn.h>

namespace qd::rt {

const char *const scaleProgram = R"(
qd.kernel @scale(%n: i32, %a: f32, %x: !qd.buffer<f32> readonly, %y: !qd.buffer<f32>) block(64) {
  %i = qd.global_thread_id x : i32
  %inside = arith.cmpi ult, %i, %n : i32
  scf.if %inside {
    %v = qd.load %x[%i] : !qd.buffer<f32>
    %w = arith.mulf %v, %a : f32
    qd.store %w, %y[%i] : !qd.buffer<f32>
  }
  qd.return
}
qd.kernel @wild(%i: i32, %y: !qd.buffer<f32>) block(1) {
  %v = arith.constant 1.0 : f32
  qd.store %v, %y[%i] : !qd.buffer<f32>
  qd.return
}
)";

const char *const cooperativeProgram = R"(
qd.kernel @turn(%y: !qd.buffer<f32>) block(64) {
  %i = qd.global_thread_id x : i32
  %n = arith.constant 256 : i32
  %one = arith.constant 1 : i32
  %last = arith.subi %n, %one : i32
  %other = arith.subi %last, %i : i32
  %v = qd.load %y[%other] : !qd.buffer<f32>
  qd.grid.sync
  qd.store %v, %y[%i] : !qd.buffer<f32>
  qd.return
}
)";

static void *library() {
  static void *loaded = [] {
    // The runtime finds by its name what is loaded already, and the compiler through it.
    setenv("QDC_COMPILER_LIBRARY", HIP_DOUBLE, 1);
    void *handle = dlopen(HIP_DOUBLE, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      ADD_FAILURE() << dlerror();
    return handle;
  }();
  return loaded;
}

void *hipFunction(const char *name) {
  void *function = dlsym(library(), name);
  if (!function)
    ADD_FAILURE() << name;
  return function;
}

hipdouble::Control &HipMachine::control() {
  return *reinterpret_cast<decltype(&hipDoubleControl)>(hipFunction("hipDoubleControl"))();
}

void HipMachine::TearDown() {
  EXPECT_EQ(control().live(), std::vector<std::string>());
  EXPECT_EQ(control().problems(), std::vector<std::string>());
}

std::unique_ptr<Device> HipMachine::open(const std::string &name, uint32_t subgroupSize) {
  DeviceOptions options;
  options.subgroupSize = subgroupSize;
  auto device = Device::open(name, options);
  EXPECT_TRUE(device) << device.message();
  return device ? std::move(*device) : nullptr;
}

Program HipMachine::compile(const std::string &text, const std::string &target) {
  static std::map<std::string, std::vector<uint8_t>> compiled;
  std::vector<uint8_t> &bundle = compiled[target + "\n" + text];
  if (bundle.empty()) {
    auto compiler = Compiler::get();
    EXPECT_TRUE(compiler) << compiler.message();
    std::string warnings;
    auto made = (*compiler)->compileToBundle({text.begin(), text.end()}, "test.qir", target, 0, {}, warnings);
    EXPECT_TRUE(made) << made.message();
    bundle = *made;
  }
  return {bundle, "test.qdb"};
}

std::unique_ptr<Module> HipMachine::load(Device &device, const std::string &text) {
  auto module = device.load(compile(text, device.properties().target));
  EXPECT_TRUE(module) << module.message();
  return module ? std::move(*module) : nullptr;
}

std::unique_ptr<Buffer> HipMachine::allocate(Device &device, size_t bytes) {
  auto buffer = device.allocate(bytes);
  EXPECT_TRUE(buffer) << buffer.message();
  return buffer ? std::move(*buffer) : nullptr;
}

std::unique_ptr<Buffer> HipMachine::allocate(Device &device, float value) {
  std::unique_ptr<Buffer> buffer = allocate(device);
  std::vector<float> values(count, value);
  EXPECT_OK(buffer->upload(values.data(), count * sizeof(float)));
  return buffer;
}

std::vector<float> HipMachine::read(Buffer &buffer) {
  std::vector<float> values(count);
  EXPECT_OK(buffer.download(values.data(), count * sizeof(float)));
  return values;
}

} // namespace qd::rt
