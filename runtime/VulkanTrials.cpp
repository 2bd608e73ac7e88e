// What a Vulkan device computes that no property tells: whether it fuses multiplication and addition (its Fma may round
// the product too), and whether its driver is right about zeros and about f16. Each is found out once a device, by a
// kernel of one thread whose operands come from memory, so that no compiler computes the results.
#include "runtime/Vulkan.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace qd::rt {

namespace {

/// A kernel 'f' of one thread on a buffer of floats.
class TrialCode {
public:
  enum : uint32_t { glsl = 1, kernel, voidType, kernelType, number, word, truth, elements, block, blockPointer, pointer,
                    buffer, label, constants, indices = constants + 3, places = indices + 9, values = places + 9,
                    results = values + 4, half = results + 8, bound };

  /// `count` floats of `width` bits; the first `exact` results are not to be fused. Code with constants is told to keep
  /// infinities, NaNs and zeros' signs.
  TrialCode(uint32_t width, uint32_t count, uint32_t exact, const std::vector<uint32_t> &constantBits,
            bool hasHalves = false) {
    bool preserves = !constantBits.empty();
    constexpr uint32_t storageBuffer = 12;
    op(17, {1}); // Capability Shader
    if (width == 64)
      op(17, {10}); // Float64
    if (hasHalves)
      op(17, {9}); // Float16
    if (preserves) {
      op(17, {4466});                                                               // SignedZeroInfNanPreserve
      op(10, {0x5f565053, 0x5f52484b, 0x616f6c66, 0x6f635f74, 0x6f72746e, 0x736c}); // "SPV_KHR_float_controls"
    }
    op(11, {glsl, 0x4c534c47, 0x6474732e, 0x3035342e, 0}); // ExtInstImport "GLSL.std.450"
    op(14, {0, 1});                                        // MemoryModel Logical GLSL450
    op(15, {5, kernel, 'f'});                              // EntryPoint GLCompute
    op(16, {kernel, 17, 1, 1, 1});                         // ExecutionMode LocalSize
    if (preserves)
      op(16, {kernel, 4461, width});  // SignedZeroInfNanPreserve
    op(71, {elements, 6, width / 8}); // ArrayStride
    op(71, {block, 2});               // Block
    op(72, {block, 0, 35, 0});        // Offset
    op(71, {buffer, 34, 0});          // DescriptorSet
    op(71, {buffer, 33, 0});          // Binding
    for (uint32_t i = 0; i < exact; ++i)
      op(71, {results + i, 42}); // NoContraction
    op(19, {voidType});
    op(33, {kernelType, voidType});
    op(22, {number, width});
    if (hasHalves)
      op(22, {half, 16});
    op(21, {word, 32, 0});
    op(20, {truth});
    op(29, {elements, number}); // TypeRuntimeArray
    op(30, {block, elements});
    op(32, {blockPointer, storageBuffer, block});
    op(32, {pointer, storageBuffer, number});
    for (uint32_t i = 0; i < constantBits.size(); ++i)
      op(43, {number, constants + i, constantBits[i]}); // Constant
    for (uint32_t i = 0; i < count; ++i)
      op(43, {word, indices + i, i});
    op(59, {blockPointer, buffer, storageBuffer});
    op(54, {voidType, kernel, 0, kernelType});
    op(248, {label});
    for (uint32_t i = 0; i < count; ++i)
      op(65, {pointer, places + i, buffer, indices, indices + i}); // AccessChain
  }

  void op(uint32_t code, std::initializer_list<uint32_t> operands) {
    words.push_back(uint32_t(operands.size() + 1) << 16 | code);
    words.insert(words.end(), operands);
  }
  void load(uint32_t value, uint32_t at) { op(61, {number, values + value, places + at}); }
  void store(uint32_t result, uint32_t at) { op(62, {places + at, results + result}); }
  const std::vector<uint32_t> &finish() {
    op(253, {});
    op(56, {});
    return words;
  }

private:
  std::vector<uint32_t> words = {0x07230203, 0x00010300, 0, bound, 0};
};

/// Runs the code on `values`.
template <typename Float, size_t count>
Error run(VulkanContext &context, const std::string &device, TrialCode &code, Float (&values)[count]) {
  const std::vector<uint32_t> &words = code.finish();
  ScalarType type = sizeof(Float) == 8 ? ScalarType::F64 : ScalarType::F32;
  Variant variant;
  variant.subgroupSize = context.facts.defaultSubgroup;
  variant.image.resize(words.size() * 4);
  std::memcpy(variant.image.data(), words.data(), variant.image.size());
  Parameter parameter;
  parameter.name = "x";
  parameter.kind = Parameter::Kind::Buffer;
  parameter.type = {type};
  parameter.binding = 0;
  Kernel kernel;
  kernel.name = "f";
  kernel.parameters = {parameter};
  variant.interface.kernels = {kernel};
  auto module = loadVulkanModule(context, device, variant, "");
  if (!module)
    return module.error();
  auto memory = context.allocate(sizeof values, VulkanContext::Use::Device);
  if (!memory)
    return memory.error();
  VulkanBuffer buffer(context, *memory, sizeof values);
  if (Error error = buffer.upload(values, sizeof values))
    return error;
  auto seconds = (*module)->launch("f", {1, 1, 1}, {Argument::buffer(buffer, {type}, count)});
  if (!seconds)
    return seconds.error();
  return buffer.download(values, sizeof values);
}

/// (1 + u)^2 - (1 + 2u) for the least u: u^2, which only a fused operation finds.
template <typename Float> Expected<bool> tryFma(VulkanContext &context, const std::string &device) {
  constexpr Float unit = std::numeric_limits<Float>::epsilon();
  Float values[4] = {1 + unit, 1 + unit, -(1 + 2 * unit), -1};
  TrialCode code(sizeof(Float) * 8, 4, 1, {});
  for (uint32_t i = 0; i < 3; ++i)
    code.load(i, i);
  code.op(12, {TrialCode::number, TrialCode::results, TrialCode::glsl, 50, TrialCode::values, TrialCode::values + 1,
               TrialCode::values + 2});
  code.store(0, 3);
  if (Error error = run(context, device, code, values))
    return error;
  if (values[3] != 0 && values[3] != unit * unit)
    return fail("Fma of ", sizeof(Float) * 8, " bits gives ", values[3], " on ", device);
  return values[3] != 0;
}

} // namespace

Expected<bool> tryFusing(VulkanContext &context, uint32_t width, const std::string &device) {
  return width == 64 ? tryFma<double>(context, device) : tryFma<float>(context, device);
}

Expected<bool> tryZeros(VulkanContext &context, const std::string &device) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float values[9] = {-0.0f, infinity, -1, 7, 7, 7, 7, 7, 7};
  TrialCode code(32, 9, 5, {0x00000000, 0x80000000, 0x3f800000});
  enum : uint32_t { number = TrialCode::number, zero = TrialCode::constants, negativeZero, one,
                    value = TrialCode::values, result = TrialCode::results };
  for (uint32_t i = 0; i < 3; ++i)
    code.load(i, i);
  code.op(129, {number, result, value, zero});                        // -0 + 0 = 0
  code.op(131, {number, result + 1, value, negativeZero});            // -0 - -0 = 0
  code.op(133, {number, result + 2, value + 1, zero});                // inf * 0 = NaN
  code.op(136, {number, result + 3, zero, value + 2});                // 0 / -1 = -0
  code.op(136, {number, result + 4, value + 2, zero});                // -1 / 0 = -inf
  code.op(184, {TrialCode::truth, result + 5, value + 2, value + 1}); // -1 < inf
  code.op(169, {number, result + 6, result + 5, negativeZero, one});  // -0
  for (uint32_t i : {0, 1, 2, 3, 4})
    code.store(i, 3 + i);
  code.store(6, 8);
  if (Error error = run(context, device, code, values))
    return error;
  auto isZero = [](float x, bool isNegative) { return x == 0 && std::signbit(x) == isNegative; };
  return isZero(values[3], false) && isZero(values[4], false) && std::isnan(values[5]) && isZero(values[6], true) &&
         values[7] == -infinity && isZero(values[8], true);
}

Expected<bool> tryHalves(VulkanContext &context, const std::string &device) {
  float values[2] = {2049, 7}; // between 2048 and 2050
  TrialCode code(32, 2, 0, {}, /*hasHalves=*/true);
  code.load(0, 0);
  code.op(115, {TrialCode::half, TrialCode::results, TrialCode::values});        // FConvert
  code.op(115, {TrialCode::number, TrialCode::results + 1, TrialCode::results}); // FConvert
  code.store(1, 1);
  if (Error error = run(context, device, code, values))
    return error;
  return values[1] == 2048 || values[1] == 2050;
}

bool VulkanContext::fuses(uint32_t width, const std::string &name) {
  std::lock_guard<std::mutex> lock(trialMutex);
  std::optional<bool> &known = width == 64 ? fused64 : fused32;
  if (!known) {
    auto found = tryFusing(*this, width, name);
    // A device on which this fails computes like one that does not fuse.
    known = found && *found;
  }
  return *known;
}

bool VulkanContext::knowsZeros(const std::string &name) {
  std::lock_guard<std::mutex> lock(trialMutex);
  if (!zeros) {
    auto found = tryZeros(*this, name);
    zeros = found && *found;
  }
  return *zeros;
}

bool VulkanContext::roundsHalves(const std::string &name) {
  std::lock_guard<std::mutex> lock(trialMutex);
  if (!halves) {
    auto found = tryHalves(*this, name);
    halves = found && *found;
  }
  return *halves;
}

} // namespace qd::rt
