//===- Subgroup.cpp - subgroup ops on NVPTX and AMDGCN ------------------------------------------===//
//
// Purpose: the table of the ops that remain after expansion, and what both columns share.
//
//===----------------------------------------------------------------------===//

#include "codegen/lower/Subgroup.h"

using namespace mlir;

namespace qd {

llvm::Value *moveAsWords(GPUEmitter &e, llvm::Value *value,
                         llvm::function_ref<llvm::Value *(llvm::Value *word)> move) {
  llvm::Type *type = value->getType(), *word = e.b.getInt32Ty();
  unsigned width = type->getScalarSizeInBits();
  if (width == 64) {
    // A vector and not shifts: the halves stay a register pair.
    auto *pairType = llvm::FixedVectorType::get(word, 2);
    llvm::Value *pair = e.b.CreateBitCast(value, pairType), *moved = llvm::PoisonValue::get(pairType);
    for (uint64_t half : {0, 1})
      moved = e.b.CreateInsertElement(moved, move(e.b.CreateExtractElement(pair, half)), half);
    return e.b.CreateBitCast(moved, type);
  }
  llvm::Type *bits = e.b.getIntNTy(width);
  llvm::Value *moved = move(e.b.CreateZExt(e.b.CreateBitCast(value, bits), word));
  return e.b.CreateBitCast(e.b.CreateTrunc(moved, bits), type);
}

llvm::ArrayRef<LoweringRow> getSubgroupLowerings() {
  static constexpr LoweringRow rows[] = {
      // op, nvptx, amdgcn, needs
      {"qd.subgroup.shuffle", nvptx::lowerShuffle, amdgcn::lowerShuffle},
      {"qd.subgroup.broadcast", nvptx::lowerBroadcast, amdgcn::lowerBroadcast},
      {"qd.subgroup.broadcast_first", nvptx::lowerBroadcastFirst, amdgcn::lowerBroadcastFirst},
      {"qd.subgroup.shuffle_xor", nvptx::lowerShuffleXor, amdgcn::lowerShuffleXor},
      {"qd.subgroup.shuffle_up", nvptx::lowerShuffleUp, amdgcn::lowerShuffleUp},
      {"qd.subgroup.shuffle_down", nvptx::lowerShuffleDown, amdgcn::lowerShuffleDown},
      {"qd.subgroup.ballot", nvptx::lowerBallot, amdgcn::lowerBallot},
      {"qd.subgroup.all", nvptx::lowerAll, amdgcn::lowerAll},
      {"qd.subgroup.any", nvptx::lowerAny, amdgcn::lowerAny},
      {"qd.subgroup.all_equal", nvptx::lowerAllEqual, nullptr, VoteUni},
      {"qd.subgroup.active_mask", nvptx::lowerActiveMask, amdgcn::lowerActiveMask},
      {"qd.subgroup.match_any", nvptx::lowerMatchAny, nullptr, MatchSync},
      {"qd.subgroup.match_all", nvptx::lowerMatchAll, nullptr, MatchSync},
      {"qd.subgroup.reduce", nullptr, amdgcn::lowerReduce},
      {"qd.subgroup.reduce_all", nvptx::lowerReduceAll, amdgcn::lowerReduceAll, ReduxSync},
      {"qd.subgroup.inclusive_scan", nullptr, amdgcn::lowerInclusiveScan},
      {"qd.subgroup.lanemask_lt", nvptx::lowerLaneMask, nullptr, LaneMaskRegister},
      {"qd.subgroup.lanemask_le", nvptx::lowerLaneMask, nullptr, LaneMaskRegister},
      {"qd.subgroup.lanemask_eq", nvptx::lowerLaneMask, nullptr, LaneMaskRegister},
      {"qd.subgroup.lanemask_ge", nvptx::lowerLaneMask, nullptr, LaneMaskRegister},
      {"qd.subgroup.lanemask_gt", nvptx::lowerLaneMask, nullptr, LaneMaskRegister},
      {"qd.assume_uniform", nvptx::lowerAssumeUniform, amdgcn::lowerAssumeUniform},
      {"qd.subgroup.sync", nvptx::lowerSync, amdgcn::lowerSync},
      {"qd.subgroup.mem_fence", nvptx::lowerMemFence, amdgcn::lowerMemFence},
  };
  return rows;
}

} // namespace qd
