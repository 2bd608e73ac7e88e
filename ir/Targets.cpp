//===- Targets.cpp - the table of chips -----------------------------------------===//

#include "ir/Targets.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace qd {

namespace {
constexpr uint32_t KiB = 1024;

constexpr uint32_t sm70 = MatchSync | VoteUni | LaneMaskRegister | BarrierVote | AtomicF16Add | AtomicF32Add |
                          AtomicF64Add | SharedF32Add | SharedF64Add | CooperativeLaunch;
constexpr uint32_t sm80 = sm70 | ReduxSync | AsyncCopy;
constexpr uint32_t sm90 = sm80 | AtomicBF16Add;

constexpr uint32_t gfx9 = WaveShift | BpermuteWave | SharedF32Add | SharedFloatMinMax | CooperativeLaunch;
constexpr uint32_t gfx908 = gfx9 | AtomicF32AddVoid;
constexpr uint32_t gfx90a = gfx9 | RowShare | AtomicF32Add | AtomicF64Add | AtomicF64MinMax | SharedF64Add;
constexpr uint32_t gfx950 = gfx90a | PermLaneSwap;
constexpr uint32_t gfxRDNA =
    RowShare | PermLane16 | SharedF32Add | SharedFloatMinMax | AtomicF32MinMax | CooperativeLaunch;
constexpr uint32_t gfx10 = gfxRDNA | AtomicF64MinMax;
constexpr uint32_t gfx11 = gfxRDNA | PermLane64 | DppCarry | AtomicF32Add;
constexpr uint32_t gfx12 = gfx11 | BpermuteWave | PermLane16Var;

/// Processors have atomic additions of integers; LLVM makes loops of those of floats.
constexpr uint32_t processor =
    SubWordAtomics | AtomicF32Add | AtomicF64Add | SharedF32Add | SharedF64Add | CooperativeLaunch;

constexpr uint8_t anySize = 4 | 8 | 16 | 32 | 64;

constexpr Chip chips[] = {
    // name, backend, sizes, default, shared, capabilities, note
    {"sm_70", Backend::NVPTX, 32, 32, 96 * KiB, sm70, "V100"},
    {"sm_72", Backend::NVPTX, 32, 32, 96 * KiB, sm70, "Xavier"},
    {"sm_75", Backend::NVPTX, 32, 32, 64 * KiB, sm70, "T4, RTX 20"},
    {"sm_80", Backend::NVPTX, 32, 32, 163 * KiB, sm80, "A100 (default)"},
    {"sm_86", Backend::NVPTX, 32, 32, 99 * KiB, sm80, "A10, RTX 30"},
    {"sm_87", Backend::NVPTX, 32, 32, 163 * KiB, sm80, "Orin"},
    {"sm_89", Backend::NVPTX, 32, 32, 99 * KiB, sm80, "L4, L40, RTX 40"},
    {"sm_90", Backend::NVPTX, 32, 32, 227 * KiB, sm90, "H100, H200"},
    {"sm_100", Backend::NVPTX, 32, 32, 227 * KiB, sm90, "B200"},
    {"sm_103", Backend::NVPTX, 32, 32, 227 * KiB, sm90, "B300"},
    {"sm_120", Backend::NVPTX, 32, 32, 99 * KiB, sm90, "RTX 50"},

    {"gfx906", Backend::AMDGCN, 64, 64, 64 * KiB, gfx9, "MI50"},
    {"gfx908", Backend::AMDGCN, 64, 64, 64 * KiB, gfx908, "MI100"},
    {"gfx90a", Backend::AMDGCN, 64, 64, 64 * KiB, gfx90a, "MI200 (default)"},
    {"gfx942", Backend::AMDGCN, 64, 64, 64 * KiB, gfx90a, "MI300"},
    {"gfx950", Backend::AMDGCN, 64, 64, 160 * KiB, gfx950, "MI350"},
    {"gfx1030", Backend::AMDGCN, 32 | 64, 32, 64 * KiB, gfx10, "RX 6800, 6900"},
    {"gfx1100", Backend::AMDGCN, 32 | 64, 32, 64 * KiB, gfx11, "RX 7900"},
    {"gfx1151", Backend::AMDGCN, 32 | 64, 32, 64 * KiB, gfx11, "Strix Halo"},
    {"gfx1200", Backend::AMDGCN, 32 | 64, 32, 64 * KiB, gfx12, "RX 9060"},
    {"gfx1201", Backend::AMDGCN, 32 | 64, 32, 64 * KiB, gfx12, "RX 9070"},

    {"vulkan1.1", Backend::SPIRV, anySize, 32, 64 * KiB, 0, "SPIR-V 1.3 (default)"},
    {"vulkan1.2", Backend::SPIRV, anySize, 32, 64 * KiB, 0, "SPIR-V 1.5"},
    {"vulkan1.3", Backend::SPIRV, anySize, 32, 64 * KiB, GroupArithmetic, "SPIR-V 1.6"},

    {"native", Backend::CPU, anySize, 32, 1024 * KiB, processor, "this machine's processor"},
    {"aarch64", Backend::CPU, anySize, 32, 1024 * KiB, processor, "64-bit Arm, as LLVM IR"},
    {"reference", Backend::Interp, anySize, 32, 1024 * KiB, CooperativeLaunch, "the interpreter"},
};

constexpr bool defaultsAreLegal() {
  for (const Chip &chip : chips)
    if (!(chip.subgroupSizes & chip.defaultSubgroupSize))
      return false;
  return true;
}
static_assert(defaultsAreLegal(), "a chip's default subgroup size is one of its sizes");

struct BackendRow {
  Backend backend;
  StringLiteral name, defaultChip;
};
constexpr BackendRow backends[] = {
    {Backend::NVPTX, "nvptx", "sm_80"},    {Backend::AMDGCN, "amdgcn", "gfx90a"},
    {Backend::SPIRV, "spirv", "vulkan1.1"}, {Backend::CPU, "cpu", "native"},
    {Backend::Interp, "interp", "reference"},
};
} // namespace

ArrayRef<Chip> getChips() { return chips; }

StringRef getBackendName(Backend backend) { return backends[unsigned(backend)].name; }

static const Chip *findChip(Backend backend, StringRef name) {
  const Chip *chip = find_if(chips, [&](const Chip &c) { return c.backend == backend && c.name == name; });
  return chip == std::end(chips) ? nullptr : chip;
}

const Chip &getDefaultChip(Backend backend) { return *findChip(backend, backends[unsigned(backend)].defaultChip); }

unsigned Target::getStaticSharedBytes() const {
  return getBackend() == Backend::NVPTX ? std::min(chip->sharedBytes, 48 * KiB) : chip->sharedBytes;
}

std::string Target::str() const {
  if (getBackend() == Backend::NVPTX)
    return chip->name.str();
  if (getBackend() == Backend::AMDGCN)
    return formatv("{0} (wave{1})", chip->name, subgroupSize);
  return formatv("{0} ({1} lanes)", getBackendName(getBackend()), subgroupSize);
}

static std::string joinWithOr(ArrayRef<std::string> words) {
  if (words.size() < 2)
    return join(words, "");
  return join(words.drop_back(), ", ") + " or " + words.back();
}

std::string listSubgroupSizes(const Chip &chip) {
  SmallVector<std::string> sizes;
  for (unsigned size = 4; size <= 64; size *= 2)
    if (chip.hasSubgroupSize(size))
      sizes.push_back(std::to_string(size));
  return joinWithOr(sizes);
}

/// Code is made for every setting of what a chip can have on or off, so that one of them selects nothing.
static Error checkFeatures(StringRef name, const Chip &chip, StringRef settings) {
  bool isGfx9 = chip.backend == Backend::AMDGCN && !chip.hasSubgroupSize(32);
  if (!isGfx9)
    return createStringError(formatv("':{0}' in target '{1}' follows a chip without settings, expected {2}:{3}",
                                     settings, name, getBackendName(chip.backend), chip.name));
  StringSet<> seen;
  for (StringRef setting : split(settings, ':')) {
    StringRef feature = setting.drop_back(setting.empty() ? 0 : 1);
    bool isKnown = is_contained({"sramecc", "xnack"}, feature) && (setting.back() == '+' || setting.back() == '-');
    if (!isKnown || !seen.insert(feature).second)
      return createStringError(formatv("'{0}' in target '{1}' is {2}, expected sramecc+ or sramecc-, and xnack+ or "
                                       "xnack-, as in amdgcn:{3}:sramecc+:xnack-, or none for code that runs with all",
                                       setting, name, isKnown ? "a second setting" : "no setting of the chip",
                                       chip.name));
  }
  return Error::success();
}

Expected<Target> findTarget(StringRef name, unsigned subgroupSize) {
  auto [path, sizeText] = name.split('@');
  auto [backendName, identity] = path.split(':');
  auto [chipName, settings] = identity.split(':');
  StringRef wanted = backendName;
  const BackendRow *row = find_if(backends, [&](const BackendRow &b) { return b.name == wanted; });
  if (row == std::end(backends)) {
    SmallVector<std::string> names;
    for (const BackendRow &backend : backends)
      names.push_back(backend.name.str());
    return createStringError(formatv("unknown target '{0}', expected {1}", backendName, joinWithOr(names)));
  }

  const Chip *chip = chipName.empty() ? &getDefaultChip(row->backend) : findChip(row->backend, chipName);
  if (!chip) {
    SmallVector<std::string> names;
    for (const Chip &candidate : chips)
      if (candidate.backend == row->backend)
        names.push_back(candidate.name.str());
    return createStringError(
        formatv("unknown chip '{0}' for target {1}, expected {2}", chipName, row->name, joinWithOr(names)));
  }

  if (path.contains(':') && chipName.empty())
    return createStringError(formatv("target '{0}' ends where a chip is expected", name));
  if (identity.contains(':'))
    if (Error error = checkFeatures(name, *chip, settings))
      return error;
  if (name.contains('@') && sizeText.getAsInteger(10, subgroupSize))
    return createStringError(
        formatv("'{0}' in target '{1}' is no subgroup size, expected {2}", sizeText, name, listSubgroupSizes(*chip)));
  if (!subgroupSize && !name.contains('@'))
    subgroupSize = chip->defaultSubgroupSize;
  if (!chip->hasSubgroupSize(subgroupSize))
    return createStringError(formatv("{0} has no subgroups of {1} lanes, expected {2}",
                                     chip->backend == Backend::AMDGCN || chip->backend == Backend::NVPTX
                                         ? StringRef(chip->name) : StringRef(row->name),
                                     subgroupSize, listSubgroupSizes(*chip)));
  return Target{chip, subgroupSize};
}

} // namespace qd
