//===----------------------------------------------------------------------===//
// The chip table. Facts are those of the PTX ISA and the vendors' ISA manuals.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Chips.h"

using namespace llvm;

namespace qd::sim {

namespace {
constexpr ChipRules nv(const char *name, bool redux, bool elect, bool reduxFloat = false) {
  return {name, true, true, false, 32, redux, reduxFloat, elect, false, false, false, false, false, false, 0};
}
constexpr ChipRules gfx9(const char *name, bool rowShare, bool swap) {
  return {name, false, false, true, 64, false, false, false, false, false, swap, rowShare, true, false, 64};
}
constexpr ChipRules gfx10(const char *name) {
  return {name, false, true, true, 32, false, false, false, false, true, false, true, false, false, 32};
}
constexpr ChipRules gfx11(const char *name) {
  return {name, false, true, true, 32, false, false, false, true, true, false, true, false, false, 32};
}
constexpr ChipRules gfx12(const char *name) {
  return {name, false, true, true, 32, false, false, false, true, true, false, true, false, true, 64};
}

constexpr ChipRules chips[] = {
    nv("sm_70", false, false),
    nv("sm_72", false, false),
    nv("sm_75", false, false),
    nv("sm_80", true, false),
    nv("sm_86", true, false),
    nv("sm_87", true, false),
    nv("sm_89", true, false),
    nv("sm_90", true, true),
    nv("sm_90a", true, true),
    nv("sm_100", true, true),
    nv("sm_100a", true, true, true),
    nv("sm_101", true, true),
    nv("sm_101a", true, true, true),
    nv("sm_103", true, true),
    nv("sm_103a", true, true, true),
    nv("sm_120", true, true),
    nv("sm_120a", true, true),
    nv("sm_121", true, true),

    gfx9("gfx906", false, false),
    gfx9("gfx908", false, false),
    gfx9("gfx90a", true, false),
    gfx9("gfx942", true, false),
    gfx9("gfx950", true, true),

    gfx10("gfx1030"),
    gfx10("gfx1031"),
    gfx10("gfx1032"),
    gfx11("gfx1100"),
    gfx11("gfx1101"),
    gfx11("gfx1102"),
    gfx11("gfx1150"),
    gfx11("gfx1151"),
    gfx12("gfx1200"),
    gfx12("gfx1201"),
};
} // namespace

Expected<const ChipRules *> chipByName(StringRef name) {
  std::string known;
  for (const ChipRules &chip : chips) {
    if (name == chip.name)
      return &chip;
    known += known.empty() ? "" : ", ";
    known += chip.name;
  }
  return createStringError("unknown chip '" + name + "', expected one of " + known);
}

} // namespace qd::sim
