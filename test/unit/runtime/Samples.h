// Interfaces and bundles that several tests share.
#ifndef QD_TEST_UNIT_RUNTIME_SAMPLES_H
#define QD_TEST_UNIT_RUNTIME_SAMPLES_H

#include "runtime/Bundle.h"

namespace qd::rt {

/// scale, lanes, big and wide of scale.spvasm for a subgroup size; as CUDA and HIP kernels, the same arguments.
std::string sampleInterface(unsigned subgroupSize);

/// One entry of a bundle with that interface.
std::vector<uint8_t> sampleEntry(ImageKind kind, std::string_view triple, const std::string &arch,
                                 unsigned subgroupSize, const std::vector<uint8_t> &image);

inline void append(std::vector<uint8_t> &bundle, const std::vector<uint8_t> &entry) {
  bundle.insert(bundle.end(), entry.begin(), entry.end());
}

inline std::vector<uint8_t> bytesOf(std::string_view text) { return {text.begin(), text.end()}; }

} // namespace qd::rt

#endif // QD_TEST_UNIT_RUNTIME_SAMPLES_H
