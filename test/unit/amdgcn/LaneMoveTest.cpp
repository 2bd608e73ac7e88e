//===- LaneMoveTest.cpp - plans carried out lane by lane --------------------------===//
//
// Executes each plan by the ISA manuals' pseudocode, written here a second time, and compares with the map.
//
//===----------------------------------------------------------------------===//

#include "TestModule.h"

#include "codegen/lower/LaneMove.h"

namespace qd::test {
namespace {

constexpr int garbage = -7;
using Wave = std::vector<int>;

/// One instruction on all lanes; `old` is what the destination held. Lanes from `active` on do not exist.
Wave execute(LaneMove move, const Wave &value, const Wave &old, unsigned active) {
  int size = int(value.size());
  Wave result = old;
  for (int lane = 0; lane < int(active); ++lane) {
    int row = lane / 16 * 16, place = lane % 16, source = -1;
    unsigned control = unsigned(move.control);
    switch (move.instr) {
    case LaneInstr::DPP:
      if (control <= 0xff)
        source = lane / 4 * 4 + (control >> (lane % 4 * 2)) % 4;
      else if (control >= 0x101 && control <= 0x10f)
        source = place + int(control - 0x100) <= 15 ? lane + int(control - 0x100) : -1;
      else if (control >= 0x111 && control <= 0x11f)
        source = place - int(control - 0x110) >= 0 ? lane - int(control - 0x110) : -1;
      else if (control >= 0x121 && control <= 0x12f)
        source = row + (place + 16 - int(control - 0x120)) % 16;
      else if (control == 0x130)
        source = lane < size - 1 ? lane + 1 : -1;
      else if (control == 0x134)
        source = (lane + 1) % size;
      else if (control == 0x138)
        source = lane - 1;
      else if (control == 0x13c)
        source = (lane + size - 1) % size;
      else if (control == 0x140)
        source = row + 15 - place;
      else if (control == 0x141)
        source = lane / 8 * 8 + 7 - lane % 8;
      else if (control >= 0x150 && control <= 0x15f)
        source = row + int(control - 0x150);
      else if (control >= 0x160 && control <= 0x16f)
        source = row + (place ^ int(control - 0x160));
      else
        ADD_FAILURE() << "dpp_ctrl " << control;
      break;
    case LaneInstr::DPP8: source = lane / 8 * 8 + (move.control >> (lane % 8 * 3)) % 8; break;
    case LaneInstr::PermLane16: source = row + (move.control >> (place * 4)) % 16; break;
    case LaneInstr::PermLaneX16: source = (row ^ 16) + (move.control >> (place * 4)) % 16; break;
    case LaneInstr::PermLane64: source = (lane + 32) % 64; break;
    case LaneInstr::RowSwap: source = control == 16 ? lane ^ 16 : (lane + 32) % 64; break;
    case LaneInstr::ReadLane: source = int(control); break;
    case LaneInstr::Swizzle:
      source = lane / 32 * 32 + (((lane & control & 31) | (control >> 5 & 31)) ^ (control >> 10 & 31));
      break;
    }
    if (source >= 0)
      result[lane] = source < int(active) ? value[source] : garbage;
  }
  return result;
}

/// What the instruction exists on, from section headings of the ISA manuals.
bool isLegal(LaneMove move, const Target &target) {
  bool gfx10 = target.chip->name.starts_with("gfx1"), wave64 = target.subgroupSize == 64;
  bool gfx11 = gfx10 && !target.chip->name.starts_with("gfx10");
  switch (move.instr) {
  case LaneInstr::DPP:
    if (move.control >= 0x130 && move.control < 0x140)
      return !gfx10;
    if (move.control >= 0x160)
      return gfx10;
    if (move.control >= 0x150)
      return target.chip->name != "gfx906" && target.chip->name != "gfx908";
    return true;
  case LaneInstr::DPP8:
  case LaneInstr::PermLane16:
  case LaneInstr::PermLaneX16: return gfx10;
  case LaneInstr::PermLane64: return gfx11 && wave64;
  case LaneInstr::RowSwap: return target.chip->name == "gfx950";
  case LaneInstr::ReadLane:
  case LaneInstr::Swizzle: return true;
  }
  return false;
}

void check(const MovePlan &plan, const LaneMap &map, const Target &target, unsigned active) {
  Wave value(map.size), poison(map.size, garbage);
  for (unsigned lane = 0; lane < map.size; ++lane)
    value[lane] = lane < active ? int(lane) : garbage;
  Wave old = poison, result = value;
  if (plan.filler) {
    EXPECT_TRUE(isLegal(*plan.filler, target));
    old = execute(*plan.filler, value, poison, active);
  } else if (plan.keepsOwn) {
    old = value;
  }
  for (LaneMove hop : plan.hops) {
    EXPECT_TRUE(isLegal(hop, target)) << int(hop.instr) << " " << hop.control;
    result = execute(hop, result, old, active);
  }
  for (unsigned lane = 0; lane < active; ++lane)
    if (map.sources[lane] != LaneMap::any && unsigned(map.sources[lane]) < active)
      ASSERT_EQ(result[lane], map.sources[lane]) << "lane " << lane;
}

/// All maps of the ops with a constant operand, by a name for messages.
void forEachMap(unsigned size, llvm::function_ref<void(std::string, const LaneMap &)> visit) {
  for (int tile = 2; tile <= int(size); tile *= 2)
    for (int n = 0; n < tile; ++n) {
      std::string suffix = " " + std::to_string(n) + " tile " + std::to_string(tile);
      auto base = [&](int lane) { return lane & ~(tile - 1); };
      visit("xor" + suffix, LaneMap(size, [&](int lane) { return lane ^ n; }));
      visit("broadcast" + suffix, LaneMap(size, [&](int lane) { return base(lane) + n; }));
      visit("rotate" + suffix, LaneMap(size, [&](int lane) { return base(lane) + (lane + n) % tile; }));
      for (bool own : {false, true}) {
        auto edge = [&](int lane, int source) {
          return base(lane) == (source & ~(tile - 1)) ? source : own ? lane : LaneMap::any;
        };
        visit((own ? "up own" : "up") + suffix, LaneMap(size, [&](int lane) { return edge(lane, lane - n); }));
        visit((own ? "down own" : "down") + suffix, LaneMap(size, [&](int lane) { return edge(lane, lane + n); }));
      }
    }
}

TEST(LaneMove, PlansDoWhatTheMapSays) {
  for (const Target &target : getTargets()) {
    unsigned planned = 0, all = 0;
    forEachMap(target.subgroupSize, [&](std::string name, const LaneMap &map) {
      SCOPED_TRACE(target.str() + ": " + name);
      ++all;
      for (bool fullWaves : {true, false})
        if (std::optional<MovePlan> plan = planMove(map, target, fullWaves)) {
          planned += fullWaves;
          for (unsigned active = fullWaves ? map.size : 1; active <= map.size; ++active)
            check(*plan, map, target, active);
        }
    });
    EXPECT_GT(planned * 3, all) << target.str();
  }
}

struct Promise {
  const char *chip;
  unsigned size;
  const char *what; ///< xor, up, down (poison past the edge) or broadcast
  int n, tile;
  unsigned cost;
  LaneInstr last;
};

TEST(LaneMove, CheapPatterns) {
  const Promise promises[] = {
      {"gfx906", 64, "xor", 1, 64, 1, LaneInstr::DPP},
      {"gfx906", 64, "xor", 7, 64, 1, LaneInstr::DPP},
      {"gfx906", 64, "xor", 15, 64, 1, LaneInstr::DPP},
      {"gfx906", 64, "xor", 4, 64, 3, LaneInstr::DPP},
      {"gfx906", 64, "xor", 12, 64, 3, LaneInstr::DPP},
      {"gfx90a", 64, "xor", 16, 64, 8, LaneInstr::Swizzle},
      {"gfx950", 64, "xor", 16, 64, 3, LaneInstr::RowSwap},
      {"gfx950", 64, "xor", 32, 64, 3, LaneInstr::RowSwap},
      {"gfx90a", 64, "up", 1, 64, 1, LaneInstr::DPP},
      {"gfx90a", 64, "down", 1, 64, 1, LaneInstr::DPP},
      {"gfx90a", 64, "broadcast", 5, 64, 2, LaneInstr::ReadLane},
      {"gfx90a", 64, "broadcast", 5, 16, 1, LaneInstr::DPP},
      {"gfx906", 64, "broadcast", 5, 16, 8, LaneInstr::Swizzle},
      {"gfx1030", 32, "xor", 4, 32, 1, LaneInstr::DPP},
      {"gfx1030", 32, "xor", 16, 32, 2, LaneInstr::PermLaneX16},
      {"gfx1030", 32, "up", 3, 32, 3, LaneInstr::DPP},
      {"gfx1030", 32, "down", 3, 32, 3, LaneInstr::DPP},
      {"gfx1030", 32, "down", 16, 32, 2, LaneInstr::PermLaneX16},
      {"gfx1030", 32, "broadcast", 5, 8, 1, LaneInstr::DPP8},
      {"gfx1100", 64, "xor", 32, 64, 1, LaneInstr::PermLane64},
      {"gfx1200", 64, "xor", 63, 64, 4, LaneInstr::PermLaneX16},
  };
  for (const Promise &promise : promises) {
    SCOPED_TRACE(std::string(promise.chip) + " " + promise.what + " " + std::to_string(promise.n));
    int n = promise.n, tile = promise.tile;
    LaneMap map(promise.size, [&](int lane) {
      llvm::StringRef what = promise.what;
      int base = lane & ~(tile - 1), source = what == "xor" ? lane ^ n : what == "broadcast" ? base + n
                                              : what == "up" ? lane - n : lane + n;
      return source >= base && source < base + tile ? source : LaneMap::any;
    });
    std::optional<MovePlan> plan = planMove(map, getTarget(promise.chip, promise.size), true);
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->cost, promise.cost);
    EXPECT_EQ(plan->hops.back().instr, promise.last);
  }
}

} // namespace
} // namespace qd::test
