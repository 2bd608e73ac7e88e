// The devices that Device::open chooses from, one source file each.
#ifndef QD_RUNTIME_BACKENDS_H
#define QD_RUNTIME_BACKENDS_H

#include "runtime/Device.h"

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

/// The bundle of a program: itself, or its QIR compiled for `targets`.
Expected<Bundle> bundleFor(const Program &program, const std::string &targets, uint32_t subgroupSize,
                           const DeviceOptions &options, std::string &warnings);

} // namespace qd::rt

#endif // QD_RUNTIME_BACKENDS_H
