//===- Block.cpp - operations of a whole block on NVPTX and AMDGCN ------------------------===//

#include "codegen/lower/GPUEmitter.h"
#include "codegen/lower/Subgroup.h"

#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace mlir;
namespace Intrinsic = llvm::Intrinsic;

namespace qd {

static void lowerSyncNVPTX(GPUEmitter &e, Operation *) {
  // bar.sync and bar.warp.sync order the memory accesses of the threads that take part (PTX ISA, 9.7.13).
  if (e.getKernel().getNumThreads() <= e.target.subgroupSize)
    e.b.CreateIntrinsic(Intrinsic::nvvm_bar_warp_sync, {nvptx::getMemberMask(e)});
  else
    e.b.CreateIntrinsic(Intrinsic::nvvm_barrier_cta_sync_aligned_all, {e.b.getInt32(0)});
}

static void lowerSyncAMDGCN(GPUEmitter &e, Operation *) {
  // s_barrier alone orders no memory: the fences do, for LDS and global memory.
  llvm::SyncScope::ID workgroup = e.module.getContext().getOrInsertSyncScopeID("workgroup");
  e.b.CreateFence(llvm::AtomicOrdering::Release, workgroup);
  e.b.CreateIntrinsic(Intrinsic::amdgcn_s_barrier, {});
  e.b.CreateFence(llvm::AtomicOrdering::Acquire, workgroup);
}

void emitBlockSync(GPUEmitter &e) { e.isNVPTX() ? lowerSyncNVPTX(e, nullptr) : lowerSyncAMDGCN(e, nullptr); }

llvm::ArrayRef<LoweringRow> getBlockLowerings() {
  static constexpr LoweringRow rows[] = {
      // op, nvptx, amdgcn
      {"qd.block.sync", lowerSyncNVPTX, lowerSyncAMDGCN},
  };
  return rows;
}

} // namespace qd
