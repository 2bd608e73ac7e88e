//===- LaneMove.h - AMD instructions for moves between fixed lanes ---------------------===//
//
// Purpose: finds the cheapest AMDGCN instructions that make each lane read the lane that a map names. What an
// instruction moves is one function, `getSource`; a plan is taken only where that agrees with the map.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_LOWER_LANEMOVE_H
#define QD_CODEGEN_LOWER_LANEMOVE_H

#include "ir/Targets.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <array>
#include <optional>

namespace qd {

/// The lane that each lane of a wave reads, or `any` where every value will do.
struct LaneMap {
  static constexpr int8_t any = -1;

  unsigned size;                  ///< the wave's lanes
  std::array<int8_t, 64> sources;

  LaneMap(unsigned size, llvm::function_ref<int(unsigned lane)> source);
};

enum class LaneInstr : uint8_t {
  DPP,         ///< control: dpp_ctrl
  DPP8,        ///< control: eight lane numbers of 3 bits
  PermLane16,  ///< control: sixteen lane numbers of 4 bits, in the own row of 16
  PermLaneX16, ///< the same, in the other row of the row pair
  PermLane64,  ///< swaps the wave's halves
  RowSwap,     ///< swaps rows of 16 or halves of 32 lanes (control), for each lane the one that is not its own
  ReadLane,    ///< control: the lane that all read
  Swizzle,     ///< control: the offset of ds_swizzle in bit-mask mode
};

/// One instruction.
struct LaneMove {
  LaneInstr instr;
  uint64_t control = 0;
};

/// The lane that `lane` reads, or none where the instruction leaves the destination as it was.
std::optional<unsigned> getSource(LaneMove move, unsigned lane, unsigned waveSize);

/// Instructions that realise a map. With a filler, or `keepsOwn`, there is one hop, a DPP move.
struct MovePlan {
  llvm::SmallVector<LaneMove, 2> hops; ///< the first moves the value, the second what the first gave
  std::optional<LaneMove> filler;      ///< of the value, for lanes to which the hop gives nothing
  bool keepsOwn = false;               ///< lanes to which the hop gives nothing keep their own value
  unsigned cost = 0;                   ///< in issue slots; an LDS round trip counts as several
};

/// The cheapest plan for `wanted`; none where only a general shuffle will do. Where lanes may be inactive (not
/// `fullWaves`), no value passes through a third lane.
std::optional<MovePlan> planMove(const LaneMap &wanted, const Target &target, bool fullWaves);

} // namespace qd

#endif
