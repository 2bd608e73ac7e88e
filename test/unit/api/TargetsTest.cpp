//===- TargetsTest.cpp - the table of chips and the names of targets ------------------------------===//

#include "codegen/TargetMachine.h"
#include "ir/Targets.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Target/TargetMachine.h"
#include <gtest/gtest.h>

using namespace qd;

static std::string errorOf(llvm::StringRef name, unsigned size = 0) {
  llvm::Expected<Target> target = findTarget(name, size);
  return target ? "found " + target->str() : llvm::toString(target.takeError());
}

TEST(Targets, NamesAreUnique) {
  llvm::StringSet<> names;
  for (const Chip &chip : getChips())
    EXPECT_TRUE(names.insert(chip.name).second) << chip.name.str();
}

TEST(Targets, RowsAreSensible) {
  for (const Chip &chip : getChips()) {
    EXPECT_TRUE(chip.hasSubgroupSize(chip.defaultSubgroupSize)) << chip.name.str();
    EXPECT_GE(chip.sharedBytes, 16u * 1024) << chip.name.str();
    EXPECT_FALSE(chip.note.empty()) << chip.name.str();
    for (unsigned size : {0u, 1u, 2u, 3u, 5u, 12u, 63u, 128u})
      EXPECT_FALSE(chip.hasSubgroupSize(size)) << chip.name.str() << " " << size;
  }
}

TEST(Targets, LLVMKnowsEveryChip) {
  for (const Chip &chip : getChips()) {
    if (chip.backend != Backend::NVPTX && chip.backend != Backend::AMDGCN)
      continue;
    for (unsigned size : {32u, 64u}) {
      if (!chip.hasSubgroupSize(size))
        continue;
      auto machine = createTargetMachine(Target{&chip, size}, 2);
      ASSERT_TRUE(bool(machine)) << chip.name.str() << ": " << llvm::toString(machine.takeError());
      EXPECT_EQ((*machine)->getTargetCPU(), chip.name);
      EXPECT_TRUE((*machine)->getMCSubtargetInfo()->isCPUStringValid(chip.name)) << chip.name.str();
    }
  }
}

TEST(Targets, EveryBackendHasADefault) {
  for (Backend backend : {Backend::NVPTX, Backend::AMDGCN, Backend::SPIRV, Backend::CPU, Backend::Interp}) {
    const Chip &chip = getDefaultChip(backend);
    EXPECT_EQ(chip.backend, backend);
    llvm::Expected<Target> target = findTarget(getBackendName(backend));
    ASSERT_TRUE(bool(target)) << llvm::toString(target.takeError());
    EXPECT_EQ(target->chip, &chip);
    EXPECT_EQ(target->subgroupSize, chip.defaultSubgroupSize);
  }
}

TEST(Targets, EveryNameIsFound) {
  for (const Chip &chip : getChips())
    for (unsigned size = 4; size <= 64; size *= 2) {
      std::string name = llvm::formatv("{0}:{1}@{2}", getBackendName(chip.backend), chip.name, size);
      llvm::Expected<Target> target = findTarget(name);
      EXPECT_EQ(bool(target), chip.hasSubgroupSize(size)) << name;
      if (target) {
        EXPECT_EQ(target->chip, &chip);
        EXPECT_EQ(target->subgroupSize, size);
      } else {
        EXPECT_NE(llvm::toString(target.takeError()).find("expected " + listSubgroupSizes(chip)), std::string::npos);
      }
    }
}

TEST(Targets, TheNameWinsOverTheOption) {
  llvm::Expected<Target> target = findTarget("spirv@8", 32);
  ASSERT_TRUE(bool(target));
  EXPECT_EQ(target->subgroupSize, 8u);
}

/// As rocminfo and HIP print chips; code is the same for all settings.
TEST(Targets, TargetIDs) {
  for (const char *name : {"amdgcn:gfx942:sramecc+:xnack-", "amdgcn:gfx942:xnack+", "amdgcn:gfx906:sramecc-:xnack-@64",
                           "amdgcn:gfx90a:sramecc+:xnack-", "amdgcn:gfx950:sramecc+"}) {
    llvm::Expected<Target> target = findTarget(name);
    ASSERT_TRUE(bool(target)) << name << llvm::toString(target.takeError());
    EXPECT_EQ(target->chip->name, llvm::StringRef(name).split(':').second.split(':').first);
    EXPECT_EQ(target->subgroupSize, 64u);
  }
  llvm::StringRef expected = "expected sramecc+ or sramecc-, and xnack+ or xnack-, as in "
                             "amdgcn:gfx942:sramecc+:xnack-, or none for code that runs with all";
  auto noSetting = [&](llvm::StringRef setting) {
    return llvm::formatv("'{0}' in target 'amdgcn:gfx942:{0}' is no setting of the chip, {1}", setting, expected).str();
  };
  for (const char *setting : {"", "xnack", "tgsplit+", "xnack+-", "sramecc"})
    EXPECT_EQ(errorOf(("amdgcn:gfx942:" + llvm::StringRef(setting)).str()), noSetting(setting));
  EXPECT_EQ(errorOf("amdgcn:gfx942:xnack-:xnack+"),
            ("'xnack+' in target 'amdgcn:gfx942:xnack-:xnack+' is a second setting, " + expected).str());
  EXPECT_EQ(errorOf("amdgcn:gfx1100:xnack-"),
            "':xnack-' in target 'amdgcn:gfx1100:xnack-' follows a chip without settings, expected amdgcn:gfx1100");
  EXPECT_EQ(errorOf("nvptx:sm_90:a"),
            "':a' in target 'nvptx:sm_90:a' follows a chip without settings, expected nvptx:sm_90");
  EXPECT_EQ(errorOf("amdgcn::xnack-"), "target 'amdgcn::xnack-' ends where a chip is expected");
}

TEST(Targets, Errors) {
  EXPECT_EQ(errorOf(""), "unknown target '', expected nvptx, amdgcn, spirv, cpu or interp");
  EXPECT_EQ(errorOf("cuda"), "unknown target 'cuda', expected nvptx, amdgcn, spirv, cpu or interp");
  EXPECT_EQ(errorOf("spirv:vulkan2"),
            "unknown chip 'vulkan2' for target spirv, expected vulkan1.1, vulkan1.2 or vulkan1.3");
  EXPECT_NE(errorOf("nvptx:gfx90a").find("unknown chip 'gfx90a' for target nvptx, expected sm_70"), std::string::npos);
  EXPECT_EQ(errorOf("nvptx:sm_90@64"), "sm_90 has no subgroups of 64 lanes, expected 32");
  EXPECT_EQ(errorOf("amdgcn:gfx942@32"), "gfx942 has no subgroups of 32 lanes, expected 64");
  EXPECT_EQ(errorOf("amdgcn:gfx1100@16"), "gfx1100 has no subgroups of 16 lanes, expected 32 or 64");
  EXPECT_EQ(errorOf("spirv@7"), "spirv has no subgroups of 7 lanes, expected 4, 8, 16, 32 or 64");
  EXPECT_EQ(errorOf("spirv@eight"),
            "'eight' in target 'spirv@eight' is no subgroup size, expected 4, 8, 16, 32 or 64");
  EXPECT_EQ(errorOf("spirv@0"), "spirv has no subgroups of 0 lanes, expected 4, 8, 16, 32 or 64");
  EXPECT_EQ(errorOf("spirv@"), "'' in target 'spirv@' is no subgroup size, expected 4, 8, 16, 32 or 64");
  EXPECT_EQ(errorOf("nvptx", 16), "sm_80 has no subgroups of 16 lanes, expected 32");
}
