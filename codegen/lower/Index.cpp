//===- Index.cpp - ids and sizes on NVPTX and AMDGCN -----------------------------------===//

#include "codegen/lower/GPUEmitter.h"

#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace mlir;
namespace Intrinsic = llvm::Intrinsic;

namespace qd {

//===----------------------------------------------------------------------===//
// Index values, each read once in the entry block
//===----------------------------------------------------------------------===//

/// Moves the builder to the end of the entry block while it lives, so that what is emitted dominates all uses.
namespace {
class EntryScope {
public:
  explicit EntryScope(GPUEmitter &emitter) : guard(emitter.b) {
    llvm::BasicBlock &entry = emitter.getFunction()->getEntryBlock();
    if (llvm::Instruction *terminator = entry.getTerminator())
      emitter.b.SetInsertPoint(terminator);
    else
      emitter.b.SetInsertPoint(&entry);
  }

private:
  llvm::IRBuilderBase::InsertPointGuard guard;
};
} // namespace

static llvm::Value *readId(GPUEmitter &e, Intrinsic::ID id, int64_t limit) {
  EntryScope scope(e);
  llvm::CallInst *call = e.b.CreateIntrinsic(id, {});
  call->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt(32, limit)));
  return call;
}

llvm::Value *GPUEmitter::getThreadId(unsigned dim) {
  static constexpr Intrinsic::ID nvptx[] = {Intrinsic::nvvm_read_ptx_sreg_tid_x, Intrinsic::nvvm_read_ptx_sreg_tid_y,
                                            Intrinsic::nvvm_read_ptx_sreg_tid_z};
  static constexpr Intrinsic::ID amdgcn[] = {Intrinsic::amdgcn_workitem_id_x, Intrinsic::amdgcn_workitem_id_y,
                                             Intrinsic::amdgcn_workitem_id_z};
  int64_t extent = kernel.getBlockDim(dim);
  if (extent == 1)
    return b.getInt32(0);
  if (!threadIds[dim])
    threadIds[dim] = readId(*this, isNVPTX() ? nvptx[dim] : amdgcn[dim], extent);
  return threadIds[dim];
}

llvm::Value *GPUEmitter::getBlockId(unsigned dim) {
  static constexpr Intrinsic::ID nvptx[] = {Intrinsic::nvvm_read_ptx_sreg_ctaid_x,
                                            Intrinsic::nvvm_read_ptx_sreg_ctaid_y,
                                            Intrinsic::nvvm_read_ptx_sreg_ctaid_z};
  static constexpr Intrinsic::ID amdgcn[] = {Intrinsic::amdgcn_workgroup_id_x, Intrinsic::amdgcn_workgroup_id_y,
                                             Intrinsic::amdgcn_workgroup_id_z};
  if (!blockIds[dim])
    blockIds[dim] = readId(*this, isNVPTX() ? nvptx[dim] : amdgcn[dim], INT32_MAX);
  return blockIds[dim];
}

llvm::Value *GPUEmitter::getGridDim(unsigned dim) {
  static constexpr Intrinsic::ID nvptx[] = {Intrinsic::nvvm_read_ptx_sreg_nctaid_x,
                                            Intrinsic::nvvm_read_ptx_sreg_nctaid_y,
                                            Intrinsic::nvvm_read_ptx_sreg_nctaid_z};
  if (gridDims[dim])
    return gridDims[dim];
  if (isNVPTX())
    return gridDims[dim] = readId(*this, nvptx[dim], INT32_MAX);
  // Code object v5 keeps the numbers of blocks as three i32 at the start of the implicit arguments.
  EntryScope scope(*this);
  llvm::Value *implicit = b.CreateIntrinsic(Intrinsic::amdgcn_implicitarg_ptr, {});
  llvm::Value *address = b.CreateConstInBoundsGEP1_32(b.getInt32Ty(), implicit, dim);
  llvm::LoadInst *load = b.CreateAlignedLoad(b.getInt32Ty(), address, llvm::Align(4));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(module.getContext(), {}));
  return gridDims[dim] = load;
}

llvm::Value *GPUEmitter::getThreadIndex() {
  if (threadIndex)
    return threadIndex;
  llvm::Value *x = getThreadId(0), *y = getThreadId(1), *z = getThreadId(2);
  EntryScope scope(*this);
  auto muladd = [&](llvm::Value *outer, int64_t extent, llvm::Value *inner) {
    return b.CreateNUWAdd(b.CreateNUWMul(outer, b.getInt32(extent)), inner);
  };
  return threadIndex = muladd(muladd(z, kernel.getBlockDim(1), y), kernel.getBlockDim(0), x);
}

llvm::Value *GPUEmitter::getLaneId() {
  if (laneId)
    return laneId;
  if (!isNVPTX() && (kernel.getBlockDim(1) > 1 || kernel.getBlockDim(2) > 1)) {
    // Cheaper than the thread index: all lanes of the wave before this one, counted.
    EntryScope scope(*this);
    llvm::Value *all = b.getInt32(~0u);
    llvm::CallInst *count = b.CreateIntrinsic(Intrinsic::amdgcn_mbcnt_lo, {all, b.getInt32(0)});
    if (target.subgroupSize == 64)
      count = b.CreateIntrinsic(Intrinsic::amdgcn_mbcnt_hi, {all, count});
    count->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt(32, target.subgroupSize)));
    return laneId = count;
  }
  llvm::Value *index = getThreadIndex();
  EntryScope scope(*this);
  return laneId = b.CreateAnd(index, b.getInt32(target.subgroupSize - 1));
}

llvm::Value *GPUEmitter::widen(llvm::Value *value, Type type) {
  return type.isInteger(64) ? b.CreateZExt(value, b.getInt64Ty()) : value;
}

//===----------------------------------------------------------------------===//
// The ops
//===----------------------------------------------------------------------===//

template <typename Op, llvm::Value *(GPUEmitter::*read)(unsigned)> static void lowerId(GPUEmitter &e, Operation *op) {
  auto id = cast<Op>(op);
  e.set(id, e.widen((e.*read)(unsigned(id.getDim())), id.getType()));
}

static void lowerBlockDim(GPUEmitter &e, Operation *op) {
  auto dim = cast<BlockDimOp>(op);
  e.set(dim, e.widen(e.b.getInt32(e.getKernel().getBlockDim(unsigned(dim.getDim()))), dim.getType()));
}

static void lowerGlobalThreadId(GPUEmitter &e, Operation *op) {
  auto id = cast<GlobalThreadIdOp>(op);
  unsigned dim = unsigned(id.getDim());
  llvm::Value *block = e.widen(e.getBlockId(dim), id.getType()), *thread = e.widen(e.getThreadId(dim), id.getType());
  llvm::Value *extent = e.widen(e.b.getInt32(e.getKernel().getBlockDim(dim)), id.getType());
  e.set(id, e.b.CreateAdd(e.b.CreateMul(block, extent), thread));
}

static void lowerThreadIndex(GPUEmitter &e, Operation *op) {
  auto index = cast<ThreadIndexOp>(op);
  e.set(index, e.widen(e.getThreadIndex(), index.getType()));
}

static void lowerLaneId(GPUEmitter &e, Operation *op) { e.set(op->getResult(0), e.getLaneId()); }

static void lowerSubgroupSize(GPUEmitter &e, Operation *op) {
  e.set(op->getResult(0), e.b.getInt32(e.target.subgroupSize));
}

static void lowerElect(GPUEmitter &e, Operation *op) {
  unsigned tile = cast<ElectOp>(op).getTile().value_or(e.target.subgroupSize);
  llvm::Value *lane = e.b.CreateAnd(e.getLaneId(), e.b.getInt32(tile - 1));
  e.set(op->getResult(0), e.b.CreateICmpEQ(lane, e.b.getInt32(0)));
}

llvm::ArrayRef<LoweringRow> getIndexLowerings() {
  constexpr Lowering threadId = lowerId<ThreadIdOp, &GPUEmitter::getThreadId>;
  constexpr Lowering blockId = lowerId<BlockIdOp, &GPUEmitter::getBlockId>;
  constexpr Lowering gridDim = lowerId<GridDimOp, &GPUEmitter::getGridDim>;
  static constexpr LoweringRow rows[] = {
      // op, nvptx, amdgcn
      {"qd.thread_id", threadId, threadId},
      {"qd.block_id", blockId, blockId},
      {"qd.block_dim", lowerBlockDim, lowerBlockDim},
      {"qd.grid_dim", gridDim, gridDim},
      {"qd.global_thread_id", lowerGlobalThreadId, lowerGlobalThreadId},
      {"qd.thread_index", lowerThreadIndex, lowerThreadIndex},
      {"qd.subgroup.lane_id", lowerLaneId, lowerLaneId},
      {"qd.subgroup.size", lowerSubgroupSize, lowerSubgroupSize},
      {"qd.subgroup.elect", lowerElect, lowerElect},
  };
  return rows;
}

} // namespace qd
