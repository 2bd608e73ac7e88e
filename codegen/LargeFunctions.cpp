//===- LargeFunctions.cpp - bounds on the time of LLVM's passes -------------------------------------===//
//
// Purpose: see the header. Schedulers of machine code do not cross a label. So one stands in large blocks every so many
// instructions, from where values get registers to where all schedulers are done:
//
//   load; store; ... load; store        ->        load; store; ... label; load; store ... label; ...
//
//===----------------------------------------------------------------------===//

#include "codegen/LargeFunctions.h"

#include "codegen/MachinePass.h"

#include "llvm/CodeGen/LiveInterval.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/RegAllocEvictionAdvisor.h"
#include "llvm/CodeGen/RegisterClassInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCContext.h"
#include <memory>
#include <mutex>

using namespace llvm;

namespace qd {

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Instructions of LLVM IR in a function that is not large, and in one of which loops are optimised.
static constexpr unsigned maxFunction = 4096, maxWithLoops = 16384;

LargeFunctions::LargeFunctions(Module &module)
    : context(module.getContext()), previous(context.getOptPassGate()) {
  for (Function &function : module) {
    unsigned size = function.getInstructionCount();
    if (size > maxFunction)
      large.insert(("function (" + function.getName() + ")").str());
    leavesLoops |= size > maxWithLoops;
  }
  context.setOptPassGate(*this);
}

LargeFunctions::~LargeFunctions() { context.setOptPassGate(previous); }

bool LargeFunctions::shouldRunPass(StringRef pass, StringRef description) const {
  // Which function a loop is of is not said.
  if (pass == "Loop Strength Reduction")
    return !leavesLoops;
  bool isSlow = pass == "slsr" || pass == "nary-reassociate";
  return !isSlow || !large.contains(description);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

namespace {
struct Size {
  unsigned accesses = 0, instructions = 0;

  void add(const MachineInstr &instruction) {
    accesses += instruction.mayLoadOrStore();
    ++instructions;
  }
  bool exceeds(const Size &most) const {
    return accesses > most.accesses || instructions > most.instructions;
  }
};
constexpr Size maxBlock{512, 4096}, maxPiece{256, 2048};

class CutBlocks : public MachinePass {
public:
  static char ID;
  CutBlocks() : MachinePass(ID) {}

  StringRef getPassName() const override { return "cuts of large blocks"; }
  bool runOnMachineFunction(MachineFunction &function) override;
};
char CutBlocks::ID = 0;

class JoinBlocks : public MachinePass {
public:
  static char ID;
  JoinBlocks() : MachinePass(ID) {}

  StringRef getPassName() const override { return "no cuts of large blocks"; }
  bool runOnMachineFunction(MachineFunction &function) override;
};
char JoinBlocks::ID = 0;
} // namespace

bool CutBlocks::runOnMachineFunction(MachineFunction &function) {
  const TargetInstrInfo &instructions = *function.getSubtarget().getInstrInfo();
  bool hasChanged = false;
  for (MachineBasicBlock &block : function) {
    Size whole;
    for (const MachineInstr &instruction : block)
      whole.add(instruction);
    if (!whole.exceeds(maxBlock))
      continue;
    Size piece;
    for (MachineInstr &instruction : make_range(block.getFirstNonPHI(), block.getFirstTerminator())) {
      piece.add(instruction);
      if (!piece.exceeds(maxPiece))
        continue;
      BuildMI(block, instruction, instruction.getDebugLoc(), instructions.get(TargetOpcode::ANNOTATION_LABEL))
          .addSym(function.getContext().createTempSymbol());
      piece = Size();
      piece.add(instruction);
      hasChanged = true;
    }
  }
  return hasChanged;
}

bool JoinBlocks::runOnMachineFunction(MachineFunction &function) {
  bool hasChanged = false;
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : make_early_inc_range(block))
      if (instruction.isAnnotationLabel()) {
        instruction.eraseFromParent();
        hasChanged = true;
      }
  return hasChanged;
}

void cutLargeBlocks(TargetPassConfig &config) {
  static std::once_flag once;
  std::call_once(once, [] {
    registerMachinePass<CutBlocks>("cuts of large blocks", "qd-cut-blocks");
    registerMachinePass<JoinBlocks>("no cuts of large blocks", "qd-join-blocks");
  });
  config.insertPass(&ProcessImplicitDefsID, &CutBlocks::ID);
  config.insertPass(&PatchableFunctionID, &JoinBlocks::ID);
}

//===----------------------------------------------------------------------===//
// Register allocation
//===----------------------------------------------------------------------===//

namespace {
/// LLVM's advisor, while it is not asked too often. Values that can be spilled are then, rather than evict others.
class BoundedAdvisor : public RegAllocEvictionAdvisor {
public:
  BoundedAdvisor(const MachineFunction &function, const RAGreedy &allocator)
      : RegAllocEvictionAdvisor(function, allocator),
        advisor(std::make_unique<DefaultEvictionAdvisor>(function, allocator)) {}

  MCRegister tryFindEvictionCandidate(const LiveInterval &value, const AllocationOrder &order, uint8_t costLimit,
                                      const SmallVirtRegSet &fixed) const override {
    // It asks for each register what holds it, and whether any other register could.
    uint64_t registers = RegClassInfo.getNumAllocatableRegs(MRI->getRegClass(value.reg()));
    asked += registers * registers;
    if (asked > maxAsked && value.isSpillable())
      return MCRegister();
    return advisor->tryFindEvictionCandidate(value, order, costLimit, fixed);
  }
  bool canEvictHintInterference(const LiveInterval &value, MCRegister hint,
                                const SmallVirtRegSet &fixed) const override {
    return advisor->canEvictHintInterference(value, hint, fixed);
  }

private:
  static constexpr uint64_t maxAsked = 1 << 25;

  std::unique_ptr<RegAllocEvictionAdvisor> advisor;
  mutable uint64_t asked = 0;
};

class BoundedProvider : public RegAllocEvictionAdvisorProvider {
public:
  using RegAllocEvictionAdvisorProvider::RegAllocEvictionAdvisorProvider;

  std::unique_ptr<RegAllocEvictionAdvisor> getAdvisor(const MachineFunction &function, const RAGreedy &allocator,
                                                      MachineBlockFrequencyInfo *, MachineLoopInfo *) override {
    return std::make_unique<BoundedAdvisor>(function, allocator);
  }
};

class BoundedAnalysis : public RegAllocEvictionAdvisorAnalysisLegacy {
public:
  explicit BoundedAnalysis(LLVMContext &context) : RegAllocEvictionAdvisorAnalysisLegacy(AdvisorMode::Default) {
    Provider = std::make_unique<BoundedProvider>(RegAllocEvictionAdvisorProvider::AdvisorMode::Default, context);
  }
};
} // namespace

Pass *createBoundedEviction(LLVMContext &context) { return new BoundedAnalysis(context); }

} // namespace qd
