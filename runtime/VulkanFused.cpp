// Whether a Vulkan device fuses multiplication and addition: its Fma may round the product too, and no property tells.
// Found out once a device and width, by a kernel of one thread whose operands come from memory, so that no compiler
// computes the result.
#include "runtime/Vulkan.h"

#include <cstring>
#include <limits>

namespace qd::rt {

namespace {

/// buffer[3] = Fma(buffer[0], buffer[1], buffer[2]), for floats of `width` bits.
std::vector<uint32_t> probeCode(uint32_t width) {
  enum : uint32_t { glsl = 1, kernel, voidType, kernelType, number, word, elements, block, blockPointer, pointer, buffer,
                    label, result, index, places = index + 4, values = places + 4, bound = values + 3 };
  std::vector<uint32_t> words = {0x07230203, 0x00010300, 0, bound, 0};
  auto op = [&](uint32_t code, std::initializer_list<uint32_t> operands) {
    words.push_back(uint32_t(operands.size() + 1) << 16 | code);
    words.insert(words.end(), operands);
  };
  constexpr uint32_t storageBuffer = 12;
  op(17, {1}); // Capability Shader
  if (width == 64)
    op(17, {10});                                                          // Float64
  op(11, {glsl, 0x4c534c47, 0x6474732e, 0x3035342e, 0});                   // ExtInstImport "GLSL.std.450"
  op(14, {0, 1});                                                          // MemoryModel Logical GLSL450
  op(15, {5, kernel, 'f'});                                                // EntryPoint GLCompute
  op(16, {kernel, 17, 1, 1, 1});                                           // ExecutionMode LocalSize
  op(71, {elements, 6, width / 8});                                        // ArrayStride
  op(71, {block, 2});                                                      // Block
  op(72, {block, 0, 35, 0});                                               // Offset
  op(71, {buffer, 34, 0});                                                 // DescriptorSet
  op(71, {buffer, 33, 0});                                                 // Binding
  op(71, {result, 42});                                                    // NoContraction
  op(19, {voidType});
  op(33, {kernelType, voidType});
  op(22, {number, width});
  op(21, {word, 32, 0});
  op(29, {elements, number}); // TypeRuntimeArray
  op(30, {block, elements});
  op(32, {blockPointer, storageBuffer, block});
  op(32, {pointer, storageBuffer, number});
  for (uint32_t i = 0; i < 4; ++i)
    op(43, {word, index + i, i}); // Constant
  op(59, {blockPointer, buffer, storageBuffer});
  op(54, {voidType, kernel, 0, kernelType});
  op(248, {label});
  for (uint32_t i = 0; i < 4; ++i)
    op(65, {pointer, places + i, buffer, index, index + i}); // AccessChain
  for (uint32_t i = 0; i < 3; ++i)
    op(61, {number, values + i, places + i}); // Load
  op(12, {number, result, glsl, 50, values, values + 1, values + 2});
  op(62, {places + 3, result}); // Store
  op(253, {});
  op(56, {});
  return words;
}

/// (1 + u)^2 - (1 + 2u) for the least u: u^2, which only a fused operation finds.
template <typename Float> Expected<bool> probe(VulkanContext &context, const std::string &device, ScalarType type) {
  constexpr Float unit = std::numeric_limits<Float>::epsilon();
  Float values[4] = {1 + unit, 1 + unit, -(1 + 2 * unit), -1};
  std::vector<uint32_t> words = probeCode(sizeof(Float) * 8);
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
  auto seconds = (*module)->launch("f", {1, 1, 1}, {Argument::buffer(buffer, {type}, 4)});
  if (!seconds)
    return seconds.error();
  if (Error error = buffer.download(values, sizeof values))
    return error;
  if (values[3] != 0 && values[3] != unit * unit)
    return fail("Fma of ", sizeof(Float) * 8, " bits gives ", values[3], " on ", device);
  return values[3] != 0;
}

} // namespace

Expected<bool> tryFusing(VulkanContext &context, uint32_t width, const std::string &device) {
  return width == 64 ? probe<double>(context, device, ScalarType::F64) : probe<float>(context, device, ScalarType::F32);
}

bool VulkanContext::fuses(uint32_t width, const std::string &name) {
  std::lock_guard<std::mutex> lock(fusedMutex);
  std::optional<bool> &known = width == 64 ? fused64 : fused32;
  if (!known) {
    auto found = tryFusing(*this, width, name);
    // A device on which this fails computes like one that does not fuse.
    known = found && *found;
  }
  return *known;
}

} // namespace qd::rt
