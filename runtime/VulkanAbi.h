// What a Vulkan launch reads out of a SPIR-V module, and the block of parameters it passes. Free of Vulkan.
#ifndef QD_RUNTIME_VULKANABI_H
#define QD_RUNTIME_VULKANABI_H

#include "runtime/Device.h"

#include <functional>

namespace qd::rt {

/// The declarations at a SPIR-V module's head.
struct SpirvSummary {
  struct EntryPoint {
    std::string name;
    std::array<uint32_t, 3> localSize = {0, 0, 0};
  };
  /// An execution mode of the float controls, and the width it is for.
  struct FloatControl {
    uint32_t mode;
    uint32_t width;
  };
  /// 3 for SPIR-V 1.3.
  uint32_t versionMinor = 0;
  std::vector<uint32_t> capabilities;
  std::vector<EntryPoint> entryPoints;
  std::vector<FloatControl> floatControls;
  /// The numbers of specialization constants. Ours ask whether the device fuses floats of so many bits, 32 or 64, 1
  /// whether its driver is right about zeros, and 16 whether it rounds what becomes an f16 and an f32 again.
  std::vector<uint32_t> constants;

  const EntryPoint *find(std::string_view name) const;
};

/// Reads the head of a little-endian SPIR-V module; damage there is an error.
Expected<SpirvSummary> summarizeSpirv(const std::vector<uint8_t> &bytes);

/// A module as the driver gets it. Drivers may flush subnormals unless told to keep them, and not all can be told:
/// code does not ask for it. Here it is asked of each entry point that keeps infinities and NaNs of a width (16, 32 or
/// 64) for which `offers` is true. `words` is a module that summarizeSpirv read.
std::vector<uint32_t> keepSubnormals(const std::vector<uint32_t> &words, const std::function<bool(uint32_t)> &offers);

/// A module with one of its kernels alone: drivers count the shared arrays of all, NVIDIA's up to the loss of the
/// device. Functions that are no kernels stay, as kernels call them. A module that holds nothing else is returned as it
/// is.
std::vector<uint32_t> keepKernel(const std::vector<uint32_t> &words, std::string_view name);

/// Whether a kernel says all that a Vulkan launch needs: bindings, offsets inside the block, alignment.
Error checkVulkanKernel(const Kernel &kernel);

/// The block of parameters: scalars and counts at their offsets, narrow scalars zero-extended to 32 bits.
std::vector<uint8_t> packParameters(const Kernel &kernel, const std::vector<Argument> &arguments);

} // namespace qd::rt

#endif // QD_RUNTIME_VULKANABI_H
