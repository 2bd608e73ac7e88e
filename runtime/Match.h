// Which of a bundle's variants a device runs. Pure functions of the bundle and the device's facts; the error
// says what the device needs and what the bundle holds.
#ifndef QD_RUNTIME_MATCH_H
#define QD_RUNTIME_MATCH_H

#include "runtime/Bundle.h"

#include <functional>

namespace qd::rt {

/// `sm` is ten times the compute capability plus the minor: 90 for 9.0. The cubin of just this chip, else the
/// PTX of the newest chip that is not newer than this one.
Expected<const Variant *> matchCuda(const Bundle &bundle, unsigned sm);

/// `chip` as the driver names it, features included ("gfx90a:sramecc+:xnack-"). Subgroup size 0 takes any.
Expected<const Variant *> matchHip(const Bundle &bundle, const std::string &chip, uint32_t subgroupSize);

/// A variant whose subgroup size lies in [smallest, largest], the `preferred` one first, else the largest; of one size
/// the one for the newest Vulkan. `runs` says what the device lacks of a variant's needs: the first such variant is
/// the error where none is left.
Expected<const Variant *> matchVulkan(const Bundle &bundle, uint32_t smallest, uint32_t largest,
                                      uint32_t preferred, uint32_t apiMinor,
                                      const std::function<Error(const Variant &)> &runs);

} // namespace qd::rt

#endif // QD_RUNTIME_MATCH_H
