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
#include "llvm/CodeGen/StackProtector.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/MC/MCContext.h"
#include <memory>
#include <mutex>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace qd {

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Instructions of LLVM IR in a function that is not large, and in one of which loops are optimised.
static constexpr unsigned maxFunction = 4096, maxWithLoops = 16384;

bool hasTooMuchForLoops(const Function &function) { return function.getInstructionCount() > maxWithLoops; }

LargeFunctions::LargeFunctions(Module &module)
    : context(module.getContext()), previous(context.getOptPassGate()) {
  for (Function &function : module) {
    unsigned size = function.getInstructionCount();
    if (size > maxFunction)
      large.insert(("function (" + function.getName() + ")").str());
    leavesLoops |= hasTooMuchForLoops(function);
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
// Freezes
//===----------------------------------------------------------------------===//

/// Freezes times instructions: about the milliseconds that it takes to move them, times a million.
static constexpr uint64_t maxMoved = 1 << 24;

HiddenFreezes::HiddenFreezes(Module &module) {
  DenseMap<Type *, Function *> byType;
  SmallVector<FreezeInst *> freezes;
  for (Function &function : module) {
    size_t before = freezes.size();
    for (Instruction &instruction : instructions(function))
      if (auto *freeze = dyn_cast<FreezeInst>(&instruction))
        freezes.push_back(freeze);
    if (uint64_t(freezes.size() - before) * function.getInstructionCount() <= maxMoved)
      freezes.truncate(before);
  }
  for (FreezeInst *freeze : freezes) {
    Type *type = freeze->getType();
    Function *&callee = byType[type];
    if (!callee) {
      callee = Function::Create(FunctionType::get(type, type, false), Function::ExternalLinkage, "qd.freeze", module);
      callee->setDoesNotAccessMemory();
      callee->setDoesNotThrow();
      callee->setWillReturn();
      callee->setNoSync();
      callee->setSpeculatable();
      callees.push_back(callee);
    }
    freeze->replaceAllUsesWith(CallInst::Create(callee, freeze->getOperand(0), "", freeze->getIterator()));
    freeze->eraseFromParent();
  }
}

HiddenFreezes::~HiddenFreezes() {
  for (Function *callee : callees) {
    for (User *user : make_early_inc_range(callee->users())) {
      auto *call = cast<CallInst>(user);
      call->replaceAllUsesWith(new FreezeInst(call->getArgOperand(0), "", call->getIterator()));
      call->eraseFromParent();
    }
    callee->eraseFromParent();
  }
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

namespace {
class SplitBlocks : public FunctionPass {
public:
  static char ID;
  SplitBlocks() : FunctionPass(ID) {}

  StringRef getPassName() const override { return "pieces of large blocks"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override { usage.addPreserved<StackProtector>(); }
  bool runOnFunction(Function &function) override;
};
char SplitBlocks::ID = 0;
} // namespace

/// What nothing is known of becomes zero. Registers for it would have no value, which between blocks not even a freeze
/// changes: each user would read something else.
static void fillUnknown(Function &function) {
  for (Instruction &instruction : instructions(function)) {
    if (auto *shuffle = dyn_cast<ShuffleVectorInst>(&instruction)) {
      if (!is_contained(shuffle->getShuffleMask(), PoisonMaskElem))
        continue;
      SmallVector<int> sources(shuffle->getShuffleMask());
      if (isa<UndefValue>(shuffle->getOperand(1)))
        replace(sources, -1, int(cast<FixedVectorType>(shuffle->getOperand(0)->getType())->getNumElements()));
      else
        replace(sources, -1, 0);
      shuffle->setShuffleMask(sources);
    }
    for (Use &operand : instruction.operands()) {
      auto *constant = dyn_cast<Constant>(operand);
      bool isWhole = constant && match(constant, m_Undef());
      if (!isWhole && !(constant && constant->containsUndefOrPoisonElement()))
        continue;
      Type *type = constant->getType();
      operand = Constant::replaceUndefsWith(constant, Constant::getNullValue(isWhole ? type : type->getScalarType()));
    }
  }
}

bool SplitBlocks::runOnFunction(Function &function) {
  constexpr unsigned most = 4096, piece = 512;
  SmallVector<Instruction *> firsts;
  for (BasicBlock &block : function) {
    if (block.size() <= most)
      continue;
    // Behind the first block an alloca would be one of a size that is not known.
    unsigned count = 0;
    for (Instruction &instruction : make_range(block.getFirstNonPHIOrDbgOrAlloca(), block.end()))
      if (++count % piece == 0 && !instruction.isTerminator())
        firsts.push_back(&instruction);
  }
  if (firsts.empty())
    return false;
  fillUnknown(function);
  // What is behind a first one moves: the last ones first.
  for (Instruction *first : reverse(firsts))
    first->getParent()->splitBasicBlock(first->getIterator());
  return true;
}

void splitLargeBlocks(TargetPassConfig &config) {
  static std::once_flag once;
  std::call_once(once, [] { registerMachinePass<SplitBlocks>("pieces of large blocks", "qd-split-blocks"); });
  // Behind the last pass over LLVM IR that would join them.
  config.insertPass(&StackProtector::ID, &SplitBlocks::ID);
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
