//===- Grid.cpp - the barrier of the grid on NVPTX and AMDGCN --------------------------------===//
//
// One word of device memory a kernel, which starts at 0 and needs no reset: the first block adds 2^31 - (blocks - 1),
// the others 1, so that the last one to come turns the top bit over and leaves the lower ones 0.
// Input: a kernel that is launched with all its blocks running at once, and with no other launch of it at the time.
//
//===----------------------------------------------------------------------===//

#include "codegen/lower/GPUEmitter.h"

#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace mlir;
using llvm::AtomicOrdering;
namespace Intrinsic = llvm::Intrinsic;

namespace qd {

static constexpr unsigned globalSpace = 1;
static constexpr uint32_t topBit = 1u << 31;

static llvm::GlobalVariable *getCounter(GPUEmitter &e) {
  // No kernel's name has a dot in it.
  std::string name = (e.getKernel().getSymName() + ".grid").str();
  if (llvm::GlobalVariable *known = e.module.getNamedGlobal(name))
    return known;
  auto *counter = new llvm::GlobalVariable(e.module, e.b.getInt32Ty(), /*isConstant=*/false,
                                           llvm::GlobalValue::InternalLinkage, e.b.getInt32(0), name,
                                           /*InsertBefore=*/nullptr, llvm::GlobalValue::NotThreadLocal, globalSpace,
                                           /*isExternallyInitialized=*/true);
  counter->setAlignment(llvm::Align(4));
  return counter;
}

/// One thread of the block: tells the others of the grid that the block is here, and waits for all blocks.
static void emitArrival(GPUEmitter &e) {
  llvm::SyncScope::ID device =
      e.module.getContext().getOrInsertSyncScopeID(e.isNVPTX() ? "device" : "agent");
  llvm::Value *counter = getCounter(e), *blocks = e.getGridDim(0), *number = e.getBlockId(0);
  for (unsigned dim : {1, 2}) {
    blocks = e.b.CreateMul(blocks, e.getGridDim(dim));
    number = e.b.CreateOr(number, e.getBlockId(dim));
  }
  llvm::Value *isFirst = e.b.CreateICmpEQ(number, e.b.getInt32(0));
  llvm::Value *part = e.b.CreateSelect(isFirst, e.b.CreateSub(e.b.getInt32(topBit + 1), blocks), e.b.getInt32(1));

  // What the block's threads wrote, the barrier before has made known to this one, and the fence makes to all.
  e.b.CreateFence(AtomicOrdering::AcquireRelease, device);
  llvm::AtomicRMWInst *before = e.b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, counter, part, llvm::Align(4),
                                                    AtomicOrdering::Monotonic, device);
  llvm::BasicBlock *wait = llvm::BasicBlock::Create(e.module.getContext(), "grid.wait", e.getFunction());
  llvm::BasicBlock *done = llvm::BasicBlock::Create(e.module.getContext(), "grid.done", e.getFunction());
  e.b.CreateBr(wait);
  e.b.SetInsertPoint(wait);
  llvm::LoadInst *now = e.b.CreateAlignedLoad(e.b.getInt32Ty(), counter, llvm::Align(4));
  now->setAtomic(AtomicOrdering::Monotonic, device);
  llvm::Value *turned = e.b.CreateAnd(e.b.CreateXor(before, now), e.b.getInt32(topBit));
  e.b.CreateCondBr(e.b.CreateICmpEQ(turned, e.b.getInt32(0)), wait, done);
  e.b.SetInsertPoint(done);
  e.b.CreateFence(AtomicOrdering::AcquireRelease, device);
}

static void lowerGridSync(GPUEmitter &e, Operation *) {
  emitBlockSync(e);
  llvm::Value *arrives = e.b.CreateICmpEQ(e.getThreadIndex(), e.b.getInt32(0));
  e.emitIf(
      arrives,
      [&]() -> llvm::Value * {
        emitArrival(e);
        return nullptr;
      },
      nullptr);
  emitBlockSync(e);
}

llvm::ArrayRef<LoweringRow> getGridLowerings() {
  static constexpr LoweringRow rows[] = {
      // op, nvptx, amdgcn
      {"qd.grid.sync", lowerGridSync, lowerGridSync, CooperativeLaunch},
  };
  return rows;
}

} // namespace qd
