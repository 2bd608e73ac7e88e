// The devices that Device::open chooses from, one source file each.
#ifndef QD_RUNTIME_BACKENDS_H
#define QD_RUNTIME_BACKENDS_H

#include "runtime/Device.h"

#include <functional>

namespace qd::rt {

using DeviceResult = Expected<std::unique_ptr<Device>>;

/// `index` is the number after the colon, absent for the default device.
DeviceResult openCuda(std::optional<unsigned> index, const DeviceOptions &options);
DeviceResult openHip(std::optional<unsigned> index, const DeviceOptions &options);
DeviceResult openVulkan(std::optional<unsigned> index, const DeviceOptions &options);
/// `name` is "cpu", "interp" or "sim:CHIP".
DeviceResult openHost(const std::string &name, const DeviceOptions &options);

std::vector<DeviceEntry> listCuda();
std::vector<DeviceEntry> listHip();
std::vector<DeviceEntry> listVulkan();
std::vector<DeviceEntry> listHost();

/// How a device takes its code.
struct VariantRequest {
  /// For messages: "vulkan:0".
  std::string device;
  /// What the compiler is asked for where no ready code fits.
  std::string targets;
  uint32_t subgroupSize = 0;
  /// How it is compiled, but for the subgroup size.
  DeviceOptions options;
  /// Picks a variant out of a bundle.
  std::function<Expected<const Variant *>(const Bundle &)> match;
};

/// The code of a program for a device: a bundle's variant, or its QIR compiled. The compiler's warnings are
/// added to `warnings`.
Expected<Variant> variantFor(const Program &program, const VariantRequest &request, std::string &warnings);

} // namespace qd::rt

#endif // QD_RUNTIME_BACKENDS_H
