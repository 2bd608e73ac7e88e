//===- LaneMove.cpp - AMD instructions for moves between fixed lanes -------------------===//
//
// DPP controls, permlane selectors and the swizzle's masks are those of AMD's ISA manuals ("Data-Parallel
// Processing", "V_PERMLANE16_B32", "DS_SWIZZLE_B32").
//
//===----------------------------------------------------------------------===//

#include "codegen/lower/LaneMove.h"

using namespace llvm;

namespace qd {

LaneMap::LaneMap(unsigned size, function_ref<int(unsigned)> source) : size(size) {
  sources.fill(any);
  for (unsigned lane = 0; lane < size; ++lane)
    sources[lane] = int8_t(source(lane));
}

//===----------------------------------------------------------------------===//
// What an instruction does
//===----------------------------------------------------------------------===//

/// dpp_ctrl, where the low bits hold a number.
namespace dpp {
enum : uint64_t {
  RowShl = 0x100, ///< |n: lane i reads i + n of its row
  RowShr = 0x110, ///< |n: lane i reads i - n of its row
  RowRor = 0x120, ///< |n: lane i reads i - n of its row, modulo 16
  WaveShl = 0x130,
  WaveRol = 0x134,
  WaveShr = 0x138,
  WaveRor = 0x13c,
  RowMirror = 0x140,
  RowHalfMirror = 0x141,
  RowShare = 0x150, ///< |n: all lanes of a row read its lane n
  RowXmask = 0x160, ///< |m: lane i reads i ^ m
};
} // namespace dpp

static std::optional<unsigned> getDppSource(uint64_t control, unsigned lane, unsigned waveSize) {
  unsigned row = lane & ~15u, inRow = lane & 15, n = control & 15;
  if (control < 0x100) // quad_perm
    return (lane & ~3u) | ((control >> 2 * (lane & 3)) & 3);
  switch (control) {
  case dpp::WaveShl: return lane + 1 < waveSize ? std::optional(lane + 1) : std::nullopt;
  case dpp::WaveShr: return lane ? std::optional(lane - 1) : std::nullopt;
  case dpp::WaveRol: return (lane + 1) % waveSize;
  case dpp::WaveRor: return (lane + waveSize - 1) % waveSize;
  case dpp::RowMirror: return row | (15 - inRow);
  case dpp::RowHalfMirror: return (lane & ~7u) | (7 - (lane & 7));
  default: break;
  }
  switch (control & ~15u) {
  case dpp::RowShl: return inRow + n < 16 ? std::optional(lane + n) : std::nullopt;
  case dpp::RowShr: return inRow >= n ? std::optional(lane - n) : std::nullopt;
  case dpp::RowRor: return row | ((inRow - n) & 15);
  case dpp::RowShare: return row | n;
  case dpp::RowXmask: return lane ^ n;
  default: return std::nullopt;
  }
}

std::optional<unsigned> getSource(LaneMove move, unsigned lane, unsigned waveSize) {
  uint64_t control = move.control;
  switch (move.instr) {
  case LaneInstr::DPP: return getDppSource(control, lane, waveSize);
  case LaneInstr::DPP8: return (lane & ~7u) | ((control >> 3 * (lane & 7)) & 7);
  case LaneInstr::PermLane16: return (lane & ~15u) | ((control >> 4 * (lane & 15)) & 15);
  case LaneInstr::PermLaneX16: return ((lane ^ 16) & ~15u) | ((control >> 4 * (lane & 15)) & 15);
  case LaneInstr::PermLane64: return lane ^ 32;
  case LaneInstr::RowSwap: return lane ^ unsigned(control);
  case LaneInstr::ReadLane: return unsigned(control);
  case LaneInstr::Swizzle: {
    unsigned andMask = control & 31, orMask = (control >> 5) & 31, xorMask = (control >> 10) & 31;
    return (lane & 32) | ((((lane & 31) & andMask) | orMask) ^ xorMask);
  }
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Proposals: the only control with which an instruction could realise a map
//===----------------------------------------------------------------------===//

static bool isCared(const LaneMap &map, unsigned lane) { return map.sources[lane] != LaneMap::any; }

/// The first lane that reads another lane; none where all keep their value.
static std::optional<unsigned> getFirstMoved(const LaneMap &map) {
  for (unsigned lane = 0; lane < map.size; ++lane)
    if (isCared(map, lane) && map.sources[lane] != int(lane))
      return lane;
  return std::nullopt;
}

/// For each place in a group of `group` lanes, the place that it reads in its group or another.
static uint64_t packSelectors(const LaneMap &map, unsigned group, unsigned bits) {
  uint64_t packed = 0;
  for (unsigned place = 0; place < group; ++place) {
    unsigned selector = place;
    for (unsigned lane = place; lane < map.size; lane += group)
      if (isCared(map, lane)) {
        selector = map.sources[lane] & (group - 1);
        break;
      }
    packed |= uint64_t(selector) << (bits * place);
  }
  return packed;
}

static uint64_t packSwizzle(const LaneMap &map) {
  uint64_t andMask = 0, orMask = 0, xorMask = 0;
  for (unsigned bit = 1; bit < 32; bit *= 2) {
    // What the source's bit is where the lane's bit is 0 and where it is 1; unknown where no lane cares.
    std::optional<bool> seen[2];
    for (unsigned lane = 0; lane < map.size; ++lane)
      if (isCared(map, lane))
        seen[(lane & bit) != 0] = (map.sources[lane] & bit) != 0;
    bool low = seen[0].value_or(seen[1] ? !*seen[1] : false), high = seen[1].value_or(!low);
    if (low != high)
      andMask |= bit;
    if (low == high && low)
      orMask |= bit;
    if (low && !high)
      xorMask |= bit;
  }
  return andMask | orMask << 5 | xorMask << 10;
}

namespace {
struct Row {
  LaneInstr instr;
  uint32_t capability; ///< all of these; 0 for every chip
  unsigned cost;
  bool wave64;         ///< only where the wave has 64 lanes
  uint64_t (*propose)(const LaneMap &map, unsigned moved); ///< `moved`: a lane that reads another
};
} // namespace

static uint64_t proposeNone(const LaneMap &, unsigned) { return 0; }
template <uint64_t control> static uint64_t propose(const LaneMap &, unsigned) { return control; }
template <uint64_t base> static uint64_t proposeUp(const LaneMap &map, unsigned moved) {
  return base | ((moved - map.sources[moved]) & 15);
}
template <uint64_t base> static uint64_t proposeDown(const LaneMap &map, unsigned moved) {
  return base | ((map.sources[moved] - moved) & 15);
}
template <uint64_t base> static uint64_t proposeXor(const LaneMap &map, unsigned moved) {
  return base | ((map.sources[moved] ^ moved) & 15);
}
template <uint64_t base> static uint64_t proposeShare(const LaneMap &map, unsigned moved) {
  return base | (map.sources[moved] & 15);
}
template <unsigned group, unsigned bits> static uint64_t proposeSelectors(const LaneMap &map, unsigned) {
  return packSelectors(map, group, bits);
}
static uint64_t proposeSwizzle(const LaneMap &map, unsigned) { return packSwizzle(map); }
static uint64_t proposeRead(const LaneMap &map, unsigned moved) { return map.sources[moved]; }

/// Cheapest first. A permlane's selectors take two scalar moves, which loops share; an LDS access waits.
static constexpr Row rows[] = {
    // instruction, capability, cost, wave64, proposal
    {LaneInstr::DPP, 0, 1, false, proposeSelectors<4, 2>},
    {LaneInstr::DPP, 0, 1, false, propose<dpp::RowHalfMirror>},
    {LaneInstr::DPP, 0, 1, false, propose<dpp::RowMirror>},
    {LaneInstr::DPP, Capability::PermLane16, 1, false, proposeXor<dpp::RowXmask>},
    {LaneInstr::DPP, 0, 1, false, proposeUp<dpp::RowShr>},
    {LaneInstr::DPP, 0, 1, false, proposeDown<dpp::RowShl>},
    {LaneInstr::DPP, 0, 1, false, proposeUp<dpp::RowRor>},
    {LaneInstr::DPP, Capability::WaveShift, 1, true, propose<dpp::WaveShr>},
    {LaneInstr::DPP, Capability::WaveShift, 1, true, propose<dpp::WaveShl>},
    {LaneInstr::DPP, Capability::WaveShift, 1, true, propose<dpp::WaveRor>},
    {LaneInstr::DPP, Capability::WaveShift, 1, true, propose<dpp::WaveRol>},
    {LaneInstr::DPP, Capability::RowShare, 1, false, proposeShare<dpp::RowShare>},
    {LaneInstr::PermLane64, Capability::PermLane64, 1, true, proposeNone},
    {LaneInstr::DPP8, Capability::PermLane16, 1, false, proposeSelectors<8, 3>},
    {LaneInstr::PermLaneX16, Capability::PermLane16, 2, false, proposeSelectors<16, 4>},
    {LaneInstr::PermLane16, Capability::PermLane16, 2, false, proposeSelectors<16, 4>},
    {LaneInstr::ReadLane, 0, 2, false, proposeRead}, // and a copy to the vector registers
    {LaneInstr::RowSwap, Capability::PermLaneSwap, 3, true, propose<16>},
    {LaneInstr::RowSwap, Capability::PermLaneSwap, 3, true, propose<32>},
    {LaneInstr::Swizzle, 0, 8, false, proposeSwizzle},
};

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

static bool isAvailable(const Row &row, const Target &target) {
  return (target.chip->capabilities & row.capability) == row.capability &&
         (!row.wave64 || target.subgroupSize == 64);
}

/// The lanes that `move` does not serve, `any` elsewhere; none where it gives a lane the wrong value.
static std::optional<LaneMap> getRest(const LaneMap &wanted, LaneMove move) {
  bool fits = true;
  LaneMap rest(wanted.size, [&](unsigned lane) -> int {
    std::optional<unsigned> source = getSource(move, lane, wanted.size);
    if (!isCared(wanted, lane) || !source)
      return wanted.sources[lane];
    fits &= *source == unsigned(wanted.sources[lane]);
    return LaneMap::any;
  });
  return fits ? std::optional(rest) : std::nullopt;
}

static bool isEmpty(const LaneMap &map) {
  for (unsigned lane = 0; lane < map.size; ++lane)
    if (isCared(map, lane))
      return false;
  return true;
}

static void keepCheaper(std::optional<MovePlan> &best, MovePlan plan) {
  if (!best || plan.cost < best->cost)
    best = std::move(plan);
}

/// Moves that serve every lane by one instruction.
static std::optional<MovePlan> planOne(const LaneMap &wanted, const Target &target) {
  std::optional<MovePlan> best;
  std::optional<unsigned> moved = getFirstMoved(wanted);
  if (!moved)
    return best;
  for (const Row &row : rows) {
    if (!isAvailable(row, target))
      continue;
    LaneMove move{row.instr, row.propose(wanted, *moved)};
    std::optional<LaneMap> rest = getRest(wanted, move);
    if (!rest)
      continue;
    MovePlan plan;
    plan.hops = {move};
    plan.cost = row.cost;
    plan.keepsOwn = !isEmpty(*rest);
    if (!getFirstMoved(*rest))
      keepCheaper(best, plan);
  }
  return best;
}

/// A DPP move inside rows, and another instruction for the lanes at whose row's end it stops.
static void planFilled(std::optional<MovePlan> &best, const LaneMap &wanted, const Target &target, unsigned moved) {
  for (const Row &row : rows) {
    if (row.instr != LaneInstr::DPP || !isAvailable(row, target))
      continue;
    LaneMove move{row.instr, row.propose(wanted, moved)};
    std::optional<LaneMap> rest = getRest(wanted, move);
    if (!rest || isEmpty(*rest))
      continue;
    std::optional<MovePlan> filler = planOne(*rest, target);
    if (!filler || filler->keepsOwn)
      continue;
    MovePlan plan;
    plan.hops = {move};
    plan.filler = filler->hops.front();
    plan.cost = row.cost + filler->cost;
    keepCheaper(best, plan);
  }
}

/// Two moves in turn, of which the first is its own inverse.
static void planTwo(std::optional<MovePlan> &best, const LaneMap &wanted, const Target &target) {
  struct First {
    LaneMove move;
    uint32_t capability;
    bool wave64;
  };
  static constexpr First firsts[] = {
      {{LaneInstr::PermLane64, 0}, Capability::PermLane64, true}, // a DPP move behind it is part of what follows
      {{LaneInstr::DPP, dpp::RowHalfMirror}, 0, false},
      {{LaneInstr::DPP, dpp::RowRor | 8}, 0, false},
      {{LaneInstr::DPP, dpp::RowMirror}, 0, false},
  };
  for (const First &first : firsts) {
    if ((target.chip->capabilities & first.capability) != first.capability ||
        (first.wave64 && target.subgroupSize != 64))
      continue;
    LaneMap remaining(wanted.size, [&](unsigned lane) -> int {
      return isCared(wanted, lane) ? int(*getSource(first.move, wanted.sources[lane], wanted.size)) : LaneMap::any;
    });
    std::optional<MovePlan> second = planOne(remaining, target);
    if (!second || second->keepsOwn)
      continue;
    MovePlan plan;
    plan.hops = {first.move, second->hops.front()};
    plan.cost = 2 + second->cost; // gfx9 waits between DPP moves
    keepCheaper(best, plan);
  }
}

std::optional<MovePlan> planMove(const LaneMap &wanted, const Target &target, bool fullWaves) {
  std::optional<unsigned> moved = getFirstMoved(wanted);
  if (!moved)
    return MovePlan{};
  std::optional<MovePlan> best = planOne(wanted, target);
  if (best && best->cost <= 2)
    return best;
  planFilled(best, wanted, target, *moved);
  if (fullWaves)
    planTwo(best, wanted, target);
  return best;
}

} // namespace qd
