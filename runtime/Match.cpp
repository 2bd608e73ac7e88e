// Matching a bundle's variants with a device.
#include "runtime/Match.h"

#include <charconv>

namespace qd::rt {

namespace {

/// The number in "sm_90" and "sm_90a" (with the letter: code for just that chip), or nothing.
struct SmName {
  unsigned number = 0;
  bool exactOnly = false;
};

std::optional<SmName> parseSm(std::string_view arch) {
  if (arch.substr(0, 3) != "sm_")
    return std::nullopt;
  arch.remove_prefix(3);
  SmName name;
  auto result = std::from_chars(arch.data(), arch.data() + arch.size(), name.number);
  std::string_view rest(result.ptr, arch.data() + arch.size() - result.ptr);
  if (result.ec != std::errc() || rest.size() > 1)
    return std::nullopt;
  name.exactOnly = !rest.empty();
  return name;
}

/// "gfx90a:sramecc+:xnack-" runs code for "gfx90a" and for any subset of its features.
bool chipRuns(const std::string &chip, const std::string &code) {
  auto split = [](const std::string &name) {
    std::vector<std::string> parts(1);
    for (char c : name) {
      if (c == ':')
        parts.emplace_back();
      else
        parts.back() += c;
    }
    return parts;
  };
  std::vector<std::string> have = split(chip), want = split(code);
  if (have[0] != want[0])
    return false;
  for (size_t i = 1; i < want.size(); ++i) {
    bool found = false;
    for (size_t j = 1; j < have.size(); ++j)
      found |= have[j] == want[i];
    if (!found)
      return false;
  }
  return true;
}

} // namespace

Expected<const Variant *> matchCuda(const Bundle &bundle, unsigned sm) {
  const Variant *best = nullptr;
  unsigned bestNumber = 0;
  for (const Variant &variant : bundle.variants) {
    if (variant.triple != nvptxTriple)
      continue;
    auto name = parseSm(variant.arch);
    if (!name || name->number > sm || (name->exactOnly && name->number != sm))
      continue;
    if (variant.kind == ImageKind::Cubin && name->number == sm)
      return &variant;
    if (variant.kind == ImageKind::PTX && (!best || name->number > bestNumber)) {
      best = &variant;
      bestNumber = name->number;
    }
  }
  if (best)
    return best;
  return fail("no variant fits an sm_", sm, " device: it needs PTX of sm_", sm,
              " or older, or a cubin of sm_", sm, ", and the bundle holds ", describeVariants(bundle));
}

Expected<const Variant *> matchHip(const Bundle &bundle, const std::string &chip, uint32_t subgroupSize) {
  for (const Variant &variant : bundle.variants)
    if (variant.triple == amdgcnTriple && chipRuns(chip, variant.arch) &&
        (!subgroupSize || variant.subgroupSize == subgroupSize))
      return &variant;
  std::string lanes = subgroupSize ? text(" with subgroups of ", subgroupSize) : "";
  return fail("no variant fits a ", chip, " device", lanes, ", and the bundle holds ",
              describeVariants(bundle));
}

Expected<const Variant *> matchVulkan(const Bundle &bundle, uint32_t smallest, uint32_t largest,
                                      uint32_t preferred, uint32_t apiMinor,
                                      const std::function<Error(const Variant &)> &runs) {
  const Variant *best = nullptr;
  uint32_t bestMinor = 0;
  bool tooNew = false;
  Error refused;
  auto isBetter = [&](const Variant &variant, uint32_t minor) {
    if (!best)
      return true;
    if (variant.subgroupSize == best->subgroupSize)
      return minor > bestMinor;
    return best->subgroupSize != preferred &&
           (variant.subgroupSize == preferred || variant.subgroupSize > best->subgroupSize);
  };
  for (const Variant &variant : bundle.variants) {
    if (variant.triple != vulkanTriple || variant.subgroupSize < smallest || variant.subgroupSize > largest)
      continue;
    uint32_t minor = 0;
    constexpr std::string_view prefix = "vulkan1.";
    if (variant.arch.compare(0, prefix.size(), prefix) == 0)
      std::from_chars(variant.arch.data() + prefix.size(), variant.arch.data() + variant.arch.size(), minor);
    if (minor > apiMinor) {
      tooNew = true;
      continue;
    }
    if (!isBetter(variant, minor))
      continue;
    if (Error error = runs(variant)) {
      if (!refused)
        refused = error;
      continue;
    }
    best = &variant;
    bestMinor = minor;
  }
  if (best)
    return best;
  if (refused)
    return fail("no variant fits: ", refused.message());
  std::string lanes = smallest == largest ? text(smallest) : text(smallest, " to ", largest);
  if (tooNew)
    return fail("no variant fits: the device has Vulkan 1.", apiMinor,
                ", and the bundle's variants for its subgroup size need a newer one");
  return fail("no variant fits: the device has subgroups of ", lanes, " lanes, and the bundle holds ",
              describeVariants(bundle));
}

} // namespace qd::rt
