//===- Targets.h - the chips, as data ------------------------------------------===//
//
// Purpose: one row a chip: its backend, subgroup sizes, limits and capabilities. Passes and lowerings ask a
// Target for capabilities and never compare chip names.
//
//===----------------------------------------------------------------------===//

#ifndef QD_IR_TARGETS_H
#define QD_IR_TARGETS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace qd {

enum class Backend : uint8_t { NVPTX, AMDGCN, SPIRV, CPU, Interp };

/// The name of a backend as `-target=` takes it.
llvm::StringRef getBackendName(Backend backend);

/// What a chip can do, one bit each.
enum Capability : uint32_t {
  ReduxSync = 1 << 0,        ///< redux.sync on 32-bit integers
  MatchSync = 1 << 1,        ///< match.any/all.sync
  WaveShift = 1 << 3,        ///< DPP wave shifts and row_bcast15/31
  RowShare = 1 << 4,         ///< DPP row_share (row_newbcast)
  PermLane16 = 1 << 5,       ///< permlane16, permlanex16, dpp8, row_xmask
  PermLane64 = 1 << 6,       ///< permlane64
  PermLaneSwap = 1 << 7,     ///< permlane16.swap, permlane32.swap
  BpermuteWave = 1 << 8,     ///< ds_bpermute reaches every lane of the wave, also of 64
  PermLane16Var = 1 << 9,    ///< permlane16.var: any lane of the own row of 16
  DppCarry = 1 << 10,        ///< DPP on additions with carry
  VoteUni = 1 << 11,         ///< vote.uni.sync
  LaneMaskRegister = 1 << 12, ///< special registers with the own lane's masks
  GroupArithmetic = 1 << 13, ///< group reductions and scans
  SubWordAtomics = 1 << 14,  ///< atomic arithmetic and exchange of 8 and 16 bits
  AtomicF16Add = 1 << 15,    ///< atomic additions of f16
  AtomicBF16Add = 1 << 16,   ///< of bf16
  AtomicF32Add = 1 << 17,    ///< of f32, in global memory
  AtomicF32AddVoid = 1 << 18, ///< of f32, in global memory, where nobody reads the old value
  AtomicF64Add = 1 << 19,    ///< of f64, in global memory
  AtomicF32MinMax = 1 << 20, ///< atomic minnumf and maxnumf of f32, in global memory
  AtomicF64MinMax = 1 << 21, ///< of f64
  SharedF32Add = 1 << 22,    ///< atomic additions of f32, in shared memory
  SharedF64Add = 1 << 23,    ///< of f64
  SharedFloatMinMax = 1 << 24, ///< atomic minnumf and maxnumf of f32 and f64, in shared memory
  AsyncCopy = 1 << 26,       ///< copies from global to shared memory beside the thread
  BarrierVote = 1 << 27,     ///< barriers that count or combine a predicate
  CooperativeLaunch = 1 << 28, ///< launches that run all blocks of a grid at once
};

struct Chip {
  llvm::StringLiteral name;
  Backend backend;
  uint8_t subgroupSizes;       ///< the legal sizes, or-ed: each is its own bit
  uint8_t defaultSubgroupSize;
  uint32_t sharedBytes;        ///< shared memory that a block can have
  uint32_t capabilities;       ///< or-ed Capability bits
  llvm::StringLiteral note;    ///< for `qdc --list-targets`

  bool hasSubgroupSize(unsigned size) const {
    return size >= 4 && size <= 64 && (subgroupSizes & size) == size && !(size & (size - 1));
  }
};

/// All chips; a backend's rows stand together, its default first among them by `getDefaultChip`.
llvm::ArrayRef<Chip> getChips();
const Chip &getDefaultChip(Backend backend);

/// What a kernel is compiled for: a chip at one of its subgroup sizes.
struct Target {
  const Chip *chip = nullptr;
  unsigned subgroupSize = 0;

  Backend getBackend() const { return chip->backend; }
  bool has(Capability capability) const { return chip->capabilities & capability; }
  /// The part of the chip's shared memory that a kernel's code may ask for; more of it a launch provides.
  unsigned getStaticSharedBytes() const;
  /// For messages: "sm_90", "gfx1100 (wave64)", "spirv (8 lanes)".
  std::string str() const;
};

/// Finds the target named by "BACKEND", "BACKEND:CHIP" or either with "@SIZE" behind it; AMD's CHIP may be a target ID
/// ("gfx942:sramecc+:xnack-"). A `subgroupSize` other than 0 applies where the name has none. Errors say what is legal.
llvm::Expected<Target> findTarget(llvm::StringRef name, unsigned subgroupSize = 0);

/// "4, 8, 16, 32 or 64": the subgroup sizes of a chip, for messages.
std::string listSubgroupSizes(const Chip &chip);

} // namespace qd

#endif
