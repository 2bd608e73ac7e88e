//===- GPU.cpp - from expanded QIR to optimised LLVM IR ------------------------------------===//
//
// Purpose: lowerToLLVM: emits each kernel with GPUEmitter, then runs LLVM's function passes.
// Input: a verified module after the expansions. Output: what instruction selection gets.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCN.h"
#include "codegen/Codegen.h"
#include "codegen/FloatSelects.h"
#include "codegen/Interface.h"
#include "codegen/LoopHint.h"
#include "codegen/RareBranch.h"
#include "codegen/SelectLast.h"
#include "codegen/TargetMachine.h"
#include "codegen/lower/GPUEmitter.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SeparateConstOffsetFromGEP.h"

using namespace mlir;

namespace qd {

/// What a thread can have on any chip of the backend; a hint beyond it says nothing.
static constexpr unsigned mostRegistersNVPTX = 255;

static void setKernelAttributes(llvm::Function &function, KernelOp kernel, const KernelInterface &interface,
                                const Target &target) {
  auto [x, y, z] = interface.block;
  std::optional<uint32_t> blocks = kernel.getMinBlocks(), registers = kernel.getMaxRegisters();
  if (target.getBackend() == Backend::NVPTX) {
    if (blocks)
      function.addFnAttr("nvvm.minctasm", std::to_string(*blocks));
    if (registers)
      function.addFnAttr("nvvm.maxnreg", std::to_string(std::min(*registers, mostRegistersNVPTX)));
    function.addFnAttr("nvvm.reqntid", llvm::join(ArrayRef<std::string>{std::to_string(x), std::to_string(y),
                                                                      std::to_string(z)}, ","));
    return;
  }
  setAMDGCNKernelABI(function, target, x * y * z);
  setAMDGCNKernelHints(function, target, x * y * z, blocks, registers);
}

/// Kernels call nothing, so only function passes have work to do.
static void optimize(llvm::Module &module, llvm::TargetMachine &machine, unsigned optLevel) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  static const llvm::OptimizationLevel levels[] = {llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
                                                       llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  llvm::FunctionPassManager passes =
      builder.buildFunctionSimplificationPipeline(levels[optLevel], llvm::ThinOrFullLTOPhase::None);
  // LLVM's code generator does so from level 2 on. Without, each access keeps an address in two registers, and more of
  // them than a chip has take the allocator minutes.
  if (optLevel == 1 && machine.getTargetTriple().isAMDGCN()) {
    passes.addPass(llvm::SeparateConstOffsetFromGEPPass());
    passes.addPass(llvm::EarlyCSEPass());
  }
  PartedSelects parted(module);
  for (llvm::Function &function : module)
    if (!function.isDeclaration()) {
      passes.run(function, functions);
      unrollMarkedLoops(function, functions, optLevel);
    }
}

std::unique_ptr<llvm::Module> lowerToLLVM(ModuleOp module, const Target &target, const CodegenOptions &options,
                                          llvm::LLVMContext &context) {
  llvm::Expected<std::shared_ptr<llvm::TargetMachine>> machine = getTargetMachine(target, options.optLevel);
  if (!machine) {
    module.emitError() << llvm::toString(machine.takeError());
    return nullptr;
  }
  auto lowered = std::make_unique<llvm::Module>("qd", context);
  if (target.getBackend() == Backend::AMDGCN) {
    setAMDGCNModuleABI(*lowered, **machine);
  } else {
    lowered->setTargetTriple((*machine)->getTargetTriple());
    lowered->setDataLayout((*machine)->createDataLayout());
  }
  std::optional<DebugInfo> debug;
  if (options.debug)
    debug.emplace(module, *lowered, /*isOptimised=*/options.optLevel > 0);
  GPUEmitter emitter(*lowered, target, debug ? &*debug : nullptr);
  for (KernelOp kernel : module.getOps<KernelOp>()) {
    KernelInterface interface = describeKernel(kernel, target);
    if (failed(checkParameters(kernel, interface, target)) || failed(emitter.emitKernel(kernel, interface)))
      return nullptr;
    setKernelAttributes(*emitter.getFunction(), kernel, interface, target);
  }

  if (debug)
    debug->finish();

  std::string errors;
  llvm::raw_string_ostream stream(errors);
  if (llvm::verifyModule(*lowered, &stream)) {
    module.emitError() << "internal error: lowering to " << target.str() << " made invalid LLVM IR: " << errors;
    return nullptr;
  }
  if (options.optLevel > 0)
    optimize(*lowered, **machine, options.optLevel);
  branchWhereRare(*lowered);
  if (options.optLevel == 0)
    return lowered;
  if (target.getBackend() == Backend::NVPTX)
    for (llvm::Function &function : *lowered)
      selectLast(function);
  return lowered;
}

} // namespace qd
