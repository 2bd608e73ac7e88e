//===- AMDGCNReleases.cpp - releases wait for what they release ------------------------------===//
//
// Purpose: two waits of gfx9's chips that LLVM 22 leaves out.
//
// gfx942 and gfx950 have an L2 cache for each of their dies. What is released to the whole device is written back
// first, and must have been before the store, atomic operation or barrier that tells of it. LLVM does not count the
// writeback among the accesses that a wave waits for, and drops the wait as needless where nothing else is pending:
//
//   s_waitcnt vmcnt(0)  (a loaded value)           s_waitcnt vmcnt(0)
//   buffer_wbl2 sc1                         ->     buffer_wbl2 sc1
//   global_atomic_add                              s_waitcnt vmcnt(0)
//                                                  global_atomic_add
//
// A release to the block waits for no store, as all waves of a block use one L1 cache. But once another wave releases
// to the device, what it knows from the first must be there too, and that wave waits for its own stores alone: one of
// another wave may still be under way to the L2 cache. Chips from gfx10 on wait at each release. Here kernels do that
// release to the device as well:
//
//   global_store           (each wave)             global_store
//   s_barrier                               ->     s_waitcnt vmcnt(0)
//   a release to the device (one wave)             s_barrier
//                                                  a release to the device
//
// Input: machine code behind LLVM's pass that writes the memory model's instructions, whose waits are proposals; and
// the LLVM IR of a kernel. Output: the same with waits that the pass which decides on them keeps, each as one with
// those that it finds next to it.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNReleases.h"

#include "codegen/AMDGCNMachine.h"
#include "codegen/AMDGCNPasses.h"
#include "codegen/MachinePass.h"

#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"

using namespace llvm;

namespace qd {

namespace {
class WaitForWritebacks : public MachinePass {
public:
  static char ID;
  WaitForWritebacks() : MachinePass(ID) {}

  StringRef getPassName() const override { return "waits for writebacks"; }
  bool runOnMachineFunction(MachineFunction &function) override;
};
char WaitForWritebacks::ID = 0;
} // namespace

static constexpr int64_t waitForMemory = 0xf70; ///< vmcnt(0), and the most of expcnt and lgkmcnt

bool WaitForWritebacks::runOnMachineFunction(MachineFunction &function) {
  if (!StringRef(function.getSubtarget().getCPU()).starts_with("gfx9"))
    return false;
  const TargetInstrInfo &instructions = *function.getSubtarget().getInstrInfo();
  unsigned writeback = machine::findOpcode(instructions, "BUFFER_WBL2"),
           wait = machine::findOpcode(instructions, "S_WAITCNT");
  bool hasChanged = false;
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : block)
      if (instruction.getOpcode() == writeback) {
        BuildMI(block, std::next(instruction.getIterator()), instruction.getDebugLoc(), instructions.get(wait))
            .addImm(waitForMemory);
        hasChanged = true;
      }
  return hasChanged;
}

char &registerWaitForWritebacks() {
  registerMachinePass<WaitForWritebacks>("waits for writebacks", "qd-wait-for-writebacks");
  return WaitForWritebacks::ID;
}

/// Whether the instruction releases accesses to global memory to `scope`.
static bool isRelease(const Instruction &instruction, SyncScope::ID scope) {
  if (auto *fence = dyn_cast<FenceInst>(&instruction))
    // One that is annotated orders shared memory alone.
    return fence->getSyncScopeID() == scope && isReleaseOrStronger(fence->getOrdering()) &&
           !fence->hasMetadata(LLVMContext::MD_mmra);
  if (auto *access = dyn_cast<AtomicRMWInst>(&instruction))
    return access->getSyncScopeID() == scope && isReleaseOrStronger(access->getOrdering());
  if (auto *access = dyn_cast<AtomicCmpXchgInst>(&instruction))
    return access->getSyncScopeID() == scope && isReleaseOrStronger(access->getSuccessOrdering());
  auto *store = dyn_cast<StoreInst>(&instruction);
  return store && store->isAtomic() && store->getSyncScopeID() == scope && isReleaseOrStronger(store->getOrdering());
}

void waitForBlockReleases(Function &kernel) {
  LLVMContext &context = kernel.getContext();
  SyncScope::ID block = context.getOrInsertSyncScopeID("workgroup"), device = context.getOrInsertSyncScopeID("agent");
  SmallVector<Instruction *> releases;
  bool releasesToDevice = false;
  for (Instruction &instruction : instructions(kernel)) {
    releasesToDevice |= isRelease(instruction, device);
    if (isRelease(instruction, block))
      releases.push_back(&instruction);
  }
  if (!releasesToDevice)
    return;
  for (Instruction *release : releases) {
    // What a fence orders stands in front of it.
    IRBuilder<> builder(isa<FenceInst>(release) ? release->getNextNode() : release);
    builder.CreateIntrinsic(Intrinsic::amdgcn_s_waitcnt, {builder.getInt32(waitForMemory)});
  }
}

} // namespace qd
