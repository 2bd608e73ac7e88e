// A machine of AMD GPUs that are stood in for, and programs for them.
#ifndef QD_TEST_UNIT_HIP_HIPMACHINE_H
#define QD_TEST_UNIT_HIP_HIPMACHINE_H

#include "runtime/Device.h"
#include "runtime/Stream.h"
#include "test/hip/Control.h"

#include <gtest/gtest.h>

namespace qd::rt {

/// A function of the stand-in, by its name.
void *hipFunction(const char *name);
template <typename... Types> int callHip(const char *name, Types... arguments) {
  return reinterpret_cast<int (*)(Types...)>(hipFunction(name))(arguments...);
}

class HipMachine : public testing::Test {
protected:
  static constexpr int count = 256;

  HipMachine() { boot("gfx942"); }
  /// Nothing stays behind, and nothing was done that a real driver need not survive.
  void TearDown() override;

  void boot(const std::string &chips) { control().reset(chips); }
  static hipdouble::Control &control();

  static std::unique_ptr<Device> open(const std::string &name = "hip", uint32_t subgroupSize = 0);
  /// As a bundle for a chip; compiled once a process.
  static Program compile(const std::string &text, const std::string &target);
  static std::unique_ptr<Module> load(Device &device, const std::string &text);
  static std::unique_ptr<Buffer> allocate(Device &device, size_t bytes = count * sizeof(float));
  /// All with one value.
  static std::unique_ptr<Buffer> allocate(Device &device, float value);
  static std::vector<float> read(Buffer &buffer);
  static Argument array(Buffer &buffer) { return Argument::buffer(buffer, {ScalarType::F32, 1}, count); }
};

/// `scale` multiplies by a number, `wild` stores behind its array.
extern const char *const scaleProgram;
/// A kernel whose blocks wait for each other.
extern const char *const cooperativeProgram;

#define EXPECT_OK(...)                                                                                                 \
  do {                                                                                                                 \
    Error expectedNone = (__VA_ARGS__);                                                                                \
    EXPECT_FALSE(expectedNone) << expectedNone.message();                                                              \
  } while (false)

} // namespace qd::rt

#endif // QD_TEST_UNIT_HIP_HIPMACHINE_H
