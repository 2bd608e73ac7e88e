//===- AMDGCN.cpp - from LLVM IR to AMD code objects -----------------------------===//

#include "codegen/AMDGCN.h"

#include "codegen/AMDGCNBorrow.h"
#include "codegen/AMDGCNCodeObject.h"
#include "codegen/AMDGCNMachine.h"
#include "codegen/AMDGCNReleases.h"
#include "codegen/AMDGCNSigns.h"
#include "codegen/AMDGCNVotes.h"
#include "codegen/FloatSelects.h"
#include "codegen/TargetMachine.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FormatVariadic.h"
#include <mutex>

using namespace llvm;

extern "C" {
void LLVMInitializeAMDGPUTarget();
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUAsmPrinter();
}

namespace qd {

static constexpr StringLiteral tripleText = "amdgcn-amd-amdhsa";
static constexpr unsigned codeObjectVersion = 500;

//===----------------------------------------------------------------------===//
// ABI
//===----------------------------------------------------------------------===//

static const llvm::Target *getLLVMTarget(std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
  });
  return TargetRegistry::lookupTarget(Triple(tripleText), error);
}

/// The wave size is a feature only where the chip has a choice.
static std::string getFeatures(const Target &target) {
  if (target.chip->subgroupSizes == target.subgroupSize)
    return "";
  return formatv("+wavefrontsize{0}", target.subgroupSize);
}

Expected<std::unique_ptr<TargetMachine>> createAMDGCNMachine(const Target &target, unsigned optLevel) {
  // The backend would drop kernels of a wave size that the chip lacks without a word.
  if (target.getBackend() != Backend::AMDGCN || !target.chip->hasSubgroupSize(target.subgroupSize))
    return createStringError(formatv("{0} has no subgroups of {1} lanes for amdgcn, expected {2}", target.chip->name,
                                     target.subgroupSize, listSubgroupSizes(*target.chip)));
  std::string error;
  const llvm::Target *llvmTarget = getLLVMTarget(error);
  if (!llvmTarget)
    return createStringError(error);

  std::optional<CodeGenOptLevel> level = CodeGenOpt::getLevel(int(optLevel));
  std::unique_ptr<TargetMachine> machine(
      llvmTarget->createTargetMachine(Triple(tripleText), target.chip->name, getFeatures(target), TargetOptions(),
                                      Reloc::PIC_, std::nullopt, level.value_or(CodeGenOptLevel::Default)));
  if (!machine)
    return createStringError(formatv("LLVM has no machine for {0}", target.str()));
  return machine;
}

void setAMDGCNModuleABI(llvm::Module &module, const TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  if (!module.getModuleFlag("amdhsa_code_object_version"))
    module.addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", codeObjectVersion);
}

void setAMDGCNKernelABI(Function &function, const Target &target, unsigned numThreads) {
  function.setCallingConv(CallingConv::AMDGPU_KERNEL);
  function.addFnAttr("target-cpu", target.chip->name);
  if (std::string features = getFeatures(target); !features.empty())
    function.addFnAttr("target-features", features);
  // Without the exact range the code is built for blocks of up to 1024 threads, at the cost of registers.
  function.addFnAttr("amdgpu-flat-work-group-size", formatv("{0},{0}", numThreads).str());
  function.addFnAttr("uniform-work-group-size", "true");
}

void setAMDGCNKernelHints(Function &function, const Target &target, unsigned numThreads,
                          std::optional<unsigned> minBlocks, std::optional<unsigned> maxRegisters) {
  if (maxRegisters)
    function.addFnAttr("amdgpu-num-vgpr", std::to_string(*maxRegisters));
  if (!minBlocks)
    return;
  // LLVM ignores what no chip of the family can do: 8 waves on each of a multiprocessor's 4 units, from gfx10 on 16.
  constexpr unsigned units = 4;
  unsigned most = target.has(PermLane16) ? 16 : 8;
  unsigned waves = divideCeil(*minBlocks * divideCeil(numThreads, target.subgroupSize), units);
  function.addFnAttr("amdgpu-waves-per-eu", std::to_string(std::min(waves, most)));
}

namespace {
/// A value that the hardware or the runtime passes to a kernel unless the attribute says that it is unused.
struct ImplicitInput {
  StringLiteral attribute;
  Intrinsic::ID intrinsic; ///< the only way to ask for it
};
} // namespace

/// Without an intrinsic: parts of the block behind `implicitarg.ptr` that only the device library asks for, and
/// what generic pointers to private memory need.
static constexpr ImplicitInput implicitInputs[] = {
    {"amdgpu-no-workitem-id-x", Intrinsic::amdgcn_workitem_id_x},
    {"amdgpu-no-workitem-id-y", Intrinsic::amdgcn_workitem_id_y},
    {"amdgpu-no-workitem-id-z", Intrinsic::amdgcn_workitem_id_z},
    {"amdgpu-no-workgroup-id-x", Intrinsic::amdgcn_workgroup_id_x},
    {"amdgpu-no-workgroup-id-y", Intrinsic::amdgcn_workgroup_id_y},
    {"amdgpu-no-workgroup-id-z", Intrinsic::amdgcn_workgroup_id_z},
    {"amdgpu-no-dispatch-ptr", Intrinsic::amdgcn_dispatch_ptr},
    {"amdgpu-no-dispatch-id", Intrinsic::amdgcn_dispatch_id},
    {"amdgpu-no-queue-ptr", Intrinsic::amdgcn_queue_ptr},
    {"amdgpu-no-implicitarg-ptr", Intrinsic::amdgcn_implicitarg_ptr},
    {"amdgpu-no-lds-kernel-id", Intrinsic::amdgcn_lds_kernel_id},
    {"amdgpu-no-flat-scratch-init", Intrinsic::not_intrinsic},
    {"amdgpu-no-hostcall-ptr", Intrinsic::not_intrinsic},
    {"amdgpu-no-heap-ptr", Intrinsic::not_intrinsic},
    {"amdgpu-no-default-queue", Intrinsic::not_intrinsic},
    {"amdgpu-no-completion-action", Intrinsic::not_intrinsic},
    {"amdgpu-no-multigrid-sync-arg", Intrinsic::not_intrinsic},
};

/// Kernels call nothing but intrinsics, so what they do not ask for themselves nobody needs. The attributor finds
/// the same, but only when the optimiser runs.
static void dropUnusedInputs(Function &kernel) {
  DenseSet<unsigned> used;
  for (Instruction &instruction : instructions(kernel))
    if (auto *call = dyn_cast<CallBase>(&instruction)) {
      if (!isa<IntrinsicInst>(call) && !call->isInlineAsm())
        return;
      used.insert(call->getIntrinsicID());
    }
  for (const ImplicitInput &input : implicitInputs)
    if (input.intrinsic == Intrinsic::not_intrinsic || !used.contains(input.intrinsic))
      kernel.addFnAttr(input.attribute);
}

/// Whether the backend may make `user` an addition that gives or takes a carry.
static bool mayUseCarry(const User *user) {
  if (isa<CmpInst, SelectInst, StoreInst, TruncInst, PHINode>(user))
    return false;
  if (auto *cast = dyn_cast<BitCastInst>(user))
    return cast->getType()->isVectorTy();
  if (auto *binary = dyn_cast<BinaryOperator>(user)) {
    // Of an addition that is compared with an operand the overflow is wanted.
    bool isSum = binary->getOpcode() == Instruction::Add || binary->getOpcode() == Instruction::Sub;
    // A product that is added to something is v_mad_u64_u32 on gfx12, which has a carry too.
    if (binary->getOpcode() == Instruction::Mul && !binary->getType()->isIntegerTy(16))
      return any_of(binary->users(), [](const User *u) {
        auto *sum = dyn_cast<BinaryOperator>(u);
        return sum && sum->getOpcode() == Instruction::Add;
      });
    return isSum && any_of(binary->users(), [](const User *u) { return isa<CmpInst>(u); });
  }
  return true;
}

/// Whether a DPP move gives every lane something.
static bool movesToAll(const CallInst &move) {
  auto get = [&](unsigned at) { return cast<ConstantInt>(move.getArgOperand(at))->getZExtValue(); };
  return get(3) == 15 && get(4) == 15 && get(5);
}

/// Whether `user` only makes the moved word part of a number of two words that is added to others or taken off one, or,
/// where it may, compared with one and selected. AMDGCNFuseSums and AMDGCNLegalMoves mend what LLVM makes of that.
static bool isWordOfSum(const User *user, bool mayCompare) {
  auto isPart = [&](const User *u) { return isWordOfSum(u, mayCompare); };
  if (isa<InsertElementInst>(user) || (isa<BitCastInst>(user) && user->getType()->isIntegerTy(64)))
    return all_of(user->users(), isPart);
  if (auto *compare = dyn_cast<ICmpInst>(user))
    return mayCompare && compare->isUnsigned() && compare->getOperand(0)->getType()->isIntegerTy(64);
  if (isa<SelectInst>(user))
    return mayCompare;
  auto *sum = dyn_cast<BinaryOperator>(user);
  return sum && (sum->getOpcode() == Instruction::Add || sum->getOpcode() == Instruction::Sub) &&
         sum->getType()->isIntegerTy(64) && none_of(sum->users(), [](const User *u) { return isa<CmpInst>(u); });
}

/// LLVM 22 folds a DPP move into instructions that no chip encodes with it, as additions with carry whose other operand
/// is scalar, and the backend writes an object all the same; nor is it established what the carry holds on lanes that
/// the move leaves out. Keeps such moves by themselves.
static void keepMovesFromCarry(Function &kernel) {
  SmallVector<CallInst *> moves;
  for (Instruction &instruction : instructions(kernel))
    if (auto *call = dyn_cast<CallInst>(&instruction))
      if (call->getIntrinsicID() == Intrinsic::amdgcn_update_dpp) {
        bool toAll = movesToAll(*call);
        if (all_of(call->users(), [&](const User *u) { return isWordOfSum(u, /*mayCompare=*/toAll); }))
          continue;
        bool isCompared = any_of(call->users(), [](const User *u) { return isa<ICmpInst>(u); });
        bool isSubtracted = any_of(call->users(), [](const User *u) {
          auto *binary = dyn_cast<BinaryOperator>(u);
          return binary && binary->getOpcode() == Instruction::Sub;
        });
        if ((isCompared && isSubtracted) || any_of(call->users(), mayUseCarry))
          moves.push_back(call);
      }
  for (CallInst *move : moves) {
    IRBuilder<> builder(move->getNextNode());
    auto *type = FunctionType::get(move->getType(), {move->getType()}, /*isVarArg=*/false);
    CallInst *opaque = builder.CreateCall(InlineAsm::get(type, "", "=v,0", /*hasSideEffects=*/false), {move});
    move->replaceUsesWithIf(opaque, [&](Use &use) { return use.getUser() != opaque; });
  }
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

Expected<std::string> emitAMDGCN(llvm::Module &module, const Target &target, AMDGCNOutput output,
                                 const CodegenOptions &options) {
  Expected<std::shared_ptr<TargetMachine>> machine = getTargetMachine(target, options.optLevel);
  if (!machine)
    return machine.takeError();
  setAMDGCNModuleABI(module, **machine);
  // The name ends up in the object's symbol table.
  module.setSourceFileName("qd");
  module.setModuleIdentifier("qd");

  std::string problem;
  raw_string_ostream problemStream(problem);
  if (verifyModule(module, &problemStream))
    return createStringError(formatv("invalid LLVM IR for amdgcn: {0}", StringRef(problem).rtrim()));

  std::vector<std::string> kernels;
  for (Function &function : module)
    if (!function.isDeclaration() && function.getCallingConv() == CallingConv::AMDGPU_KERNEL) {
      dropUnusedInputs(function);
      if (target.has(DppCarry))
        keepMovesFromCarry(function);
      compareByBorrow(function, /*comparesLower=*/machine::waitsForMasks(target.chip->name),
                      /*comparesPairs=*/target.has(WaveShift) && target.has(RowShare));
      copySignsByBits(function);
      voteOnUnequal(function, target.subgroupSize);
      keepSelects(function);
      if (target.chip->name.starts_with("gfx9"))
        waitForBlockReleases(function);
      kernels.push_back(function.getName().str());
    }

  bool isText = output == AMDGCNOutput::Assembly;
  Expected<std::string> code =
      runCodeGenerator(module, **machine, isText ? CodeGenFileType::AssemblyFile : CodeGenFileType::ObjectFile);
  if (!code)
    return createStringError(formatv("code generation for {0} failed: {1}", target.str(), toString(code.takeError())));
  if (isText) {
    if (Error error = checkAMDGCNAssembly(*code, kernels))
      return error;
    // No directive tells the assembler, which takes a chip with both sizes to have waves of 32.
    if (target.subgroupSize == 64 && target.chip->hasSubgroupSize(32))
      code->insert(0, "\t; waves of 64: assembles with -mattr=+wavefrontsize64\n");
    return code;
  }
  if (output == AMDGCNOutput::HSACO) {
    code = linkAMDGCN(*code);
    if (!code)
      return code.takeError();
  }
  if (Error error = checkAMDGCNCodeObject(*code, kernels))
    return error;
  return code;
}

} // namespace qd
