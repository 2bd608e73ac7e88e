//===- Block.cpp - operations of a whole block on NVPTX and AMDGCN ------------------------===//

#include "codegen/lower/GPUEmitter.h"
#include "codegen/lower/Subgroup.h"

#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/MemoryModelRelaxationAnnotations.h"

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

/// Orders memory as bar.sync does (PTX ISA, 9.7.13). Blocks of one subgroup vote by other means.
template <Intrinsic::ID id> static void lowerVoteNVPTX(GPUEmitter &e, Operation *op) {
  llvm::Value *predicate = e.get(op->getOperand(0));
  e.set(op->getResult(0), e.b.CreateIntrinsic(id, {e.b.getInt32(0), predicate}));
}

/// s_barrier alone orders no memory: fences do. What they order is all memory, or LDS where they say so (LLVM, User
/// Guide for AMDGPU Backend, "Memory Model Relaxation Annotations").
static void emitBarrierAMDGCN(GPUEmitter &e, bool ordersGlobal) {
  llvm::LLVMContext &context = e.module.getContext();
  llvm::SyncScope::ID workgroup = context.getOrInsertSyncScopeID("workgroup");
  auto fence = [&](llvm::AtomicOrdering order) {
    llvm::FenceInst *fence = e.b.CreateFence(order, workgroup);
    if (!ordersGlobal)
      fence->setMetadata(llvm::LLVMContext::MD_mmra,
                         llvm::MMRAMetadata::getTagMD(context, "amdgpu-synchronize-as", "local"));
  };
  fence(llvm::AtomicOrdering::Release);
  e.b.CreateIntrinsic(Intrinsic::amdgcn_s_barrier, {});
  fence(llvm::AtomicOrdering::Acquire);
}

static void lowerSyncAMDGCN(GPUEmitter &e, Operation *) { emitBarrierAMDGCN(e, /*ordersGlobal=*/true); }
static void lowerSyncSharedAMDGCN(GPUEmitter &e, Operation *) { emitBarrierAMDGCN(e, /*ordersGlobal=*/false); }

void emitBlockSync(GPUEmitter &e) { e.isNVPTX() ? lowerSyncNVPTX(e, nullptr) : lowerSyncAMDGCN(e, nullptr); }

llvm::ArrayRef<LoweringRow> getBlockLowerings() {
  static constexpr LoweringRow rows[] = {
      // op, nvptx, amdgcn, needs
      {"qd.block.sync", lowerSyncNVPTX, lowerSyncAMDGCN},
      {"qd.block.sync_shared", lowerSyncNVPTX, lowerSyncSharedAMDGCN},
      {"qd.block.sync_all", lowerVoteNVPTX<Intrinsic::nvvm_barrier_cta_red_and_aligned_all>, nullptr, BarrierVote},
      {"qd.block.sync_any", lowerVoteNVPTX<Intrinsic::nvvm_barrier_cta_red_or_aligned_all>, nullptr, BarrierVote},
      {"qd.block.sync_count", lowerVoteNVPTX<Intrinsic::nvvm_barrier_cta_red_popc_aligned_all>, nullptr, BarrierVote},
  };
  return rows;
}

} // namespace qd
