//===- Native.cpp - target machine, pipeline and JIT ---------------------------------------------------------===//

#include "codegen/cpu/Native.h"

#include "codegen/FloatSelects.h"
#include "codegen/LargeFunctions.h"
#include "codegen/cpu/LibraryCalls.h"

#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/IR/PassManager.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include "llvm/Transforms/Coroutines/CoroCleanup.h"
#include "llvm/Transforms/Coroutines/CoroEarly.h"
#include "llvm/Transforms/Coroutines/CoroSplit.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include <cstdlib>
#include <mutex>
#include <optional>

using namespace llvm;

namespace qd::cpu {

/// This machine, found out once a process.
static Expected<orc::JITTargetMachineBuilder> detectHost() {
  static std::once_flag detected;
  static std::optional<orc::JITTargetMachineBuilder> host;
  static std::string problem;
  std::call_once(detected, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    Expected<orc::JITTargetMachineBuilder> builder = orc::JITTargetMachineBuilder::detectHost();
    if (builder)
      host = std::move(*builder);
    else
      problem = toString(builder.takeError());
  });
  if (!host)
    return createStringError(problem);
  return *host;
}

namespace {
/// Target machines that no program uses at the moment, by level: making one takes longer than compiling a small kernel.
struct IdleMachines {
  std::mutex mutex;
  std::vector<std::unique_ptr<TargetMachine>> byLevel[4];
};
} // namespace

static std::shared_ptr<IdleMachines> getIdleMachines() {
  static const auto machines = std::make_shared<IdleMachines>();
  return machines;
}

/// The processor of this architecture that QDC_CPU names, "" for the machine's own. This machine must run its code.
static Expected<StringRef> getNamedProcessor() {
  const char *text = std::getenv("QDC_CPU");
  StringRef name = text ? text : "";
#if defined(__x86_64__)
  if (name.empty())
    return name;
  if (X86::parseArchX86(name, /*Only64Bit=*/true) == X86::CK_None)
    return createStringError("QDC_CPU names the processor '" + name + "', which is none of x86-64 that LLVM knows");
  SmallVector<StringRef> wanted;
  X86::getFeaturesForCPU(name, wanted);
  StringMap<bool> present = sys::getHostCPUFeatures();
  for (StringRef feature : wanted)
    if (auto found = present.find(feature); found != present.end() && !found->second)
      return createStringError("QDC_CPU names the processor '" + name + "', which has " + feature + ", and this one has not");
#endif
  return name;
}

Expected<std::shared_ptr<TargetMachine>> acquireMachine(unsigned optLevel, StringRef cpu) {
  optLevel = std::min(optLevel, 3u);
  if (cpu.empty()) {
    Expected<StringRef> named = getNamedProcessor();
    if (!named)
      return named.takeError();
    cpu = *named;
  }
  std::shared_ptr<IdleMachines> idle = getIdleMachines();
  auto share = [&](std::unique_ptr<TargetMachine> machine) {
    return std::shared_ptr<TargetMachine>(machine.release(), [idle, optLevel](TargetMachine *machine) {
      std::lock_guard<std::mutex> lock(idle->mutex);
      idle->byLevel[optLevel].emplace_back(machine);
    });
  };
  if (cpu.empty()) {
    std::lock_guard<std::mutex> lock(idle->mutex);
    if (auto &machines = idle->byLevel[optLevel]; !machines.empty()) {
      std::unique_ptr<TargetMachine> machine = std::move(machines.back());
      machines.pop_back();
      return share(std::move(machine));
    }
  }
  Expected<orc::JITTargetMachineBuilder> builder = detectHost();
  if (!builder)
    return builder.takeError();
  if (!cpu.empty())
    *builder = orc::JITTargetMachineBuilder(builder->getTargetTriple()).setCPU(cpu.str());
  // LLVM 22 turns some chains of permutes of 64 bytes into each other without end where there are instructions for them.
  if (builder->getTargetTriple().isX86())
    builder->addFeatures({"-avx512vbmi"});
  builder->getOptions().AllowFPOpFusion = FPOpFusion::Strict;
  // The JIT's linker places code and constants next to each other.
  builder->setRelocationModel(Reloc::PIC_);
  builder->setCodeModel(CodeModel::Small);
  builder->setCodeGenOptLevel(optLevel == 0   ? CodeGenOptLevel::None
                              : optLevel == 1 ? CodeGenOptLevel::Less
                                              : CodeGenOptLevel::Default);
  Expected<std::unique_ptr<TargetMachine>> machine = builder->createTargetMachine();
  if (!machine)
    return machine.takeError();
  if (!cpu.empty())
    return std::shared_ptr<TargetMachine>(std::move(*machine));
  return share(std::move(*machine));
}

/// Those that all processors of an architecture have.
static NativeFeatures getFeatures(const Triple &triple) {
  NativeFeatures features;
  features.tables = triple.isAArch64();
  return features;
}

static NativeFeatures getFeatures(const TargetMachine &machine) {
  NativeFeatures features = getFeatures(machine.getTargetTriple());
  if (machine.getTargetTriple().isX86()) {
    const MCSubtargetInfo &info = *machine.getMCSubtargetInfo();
    features.avx2 = info.checkFeatures("+avx2");
    features.avx512 = info.checkFeatures("+avx512f");
    features.fp16 = info.checkFeatures("+avx512fp16");
    features.fma = info.checkFeatures("+fma");
  }
  return features;
}

Processor describe(std::shared_ptr<TargetMachine> machine) {
  Triple triple = machine->getTargetTriple();
  NativeFeatures features = getFeatures(*machine);
  return {triple, features, std::move(machine)};
}

Processor describeForeign(StringRef architecture) {
  Triple triple(architecture, "unknown", "linux-gnu");
  return {triple, getFeatures(triple), nullptr};
}

void prepare(Module &module, const Processor &processor) {
  module.setTargetTriple(processor.triple);
  if (processor.machine)
    module.setDataLayout(processor.machine->createDataLayout());
  else
    module.setDataLayout(processor.triple.computeDataLayout());
}

//===----------------------------------------------------------------------===//
// Optimisation
//===----------------------------------------------------------------------===//

/// What pays on code that comes as SSA from the emitter: no inlining, no vectoriser. Shared arrays and what outlives a
/// barrier become registers where all places are known.
static FunctionPassManager buildSimplification() {
  FunctionPassManager passes;
  passes.addPass(SROAPass(SROAOptions::PreserveCFG));
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  // InstCombine sinks values to the block of their only use, and there before what it has sunk earlier: loads of rising
  // addresses would end as falling ones, which processors do not read ahead of as well.
  passes.addPass(SimplifyCFGPass());
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  return passes;
}

namespace {
/// Copies of short loops' turns. What LLVM knows of all loops around one is found out anew after each.
struct FullUnrollPass : PassInfoMixin<FullUnrollPass> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses) {
    if (hasTooMuchForLoops(function))
      return PreservedAnalyses::all();
    LoopPassManager unrolling;
    unrolling.addPass(LoopFullUnrollPass());
    return createFunctionToLoopPassAdaptor(std::move(unrolling)).run(function, analyses);
  }
};
} // namespace

static FunctionPassManager buildLoopOptimisation() {
  FunctionPassManager passes;
  LoopPassManager loops;
  loops.addPass(LICMPass(LICMOptions()));
  passes.addPass(createFunctionToLoopPassAdaptor(std::move(loops), /*UseMemorySSA=*/true));
  passes.addPass(FullUnrollPass());
  passes.addPass(LoopUnrollPass(LoopUnrollOptions(/*OptLevel=*/2, /*OnlyWhenForced=*/true)));
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  passes.addPass(ADCEPass());
  return passes;
}

void optimise(Module &module, const Processor &processor, unsigned optLevel, bool hasCoroutines) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder(processor.machine.get());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    // Wide vectors are what the code consists of; splitting them saves no clock here.
    if (processor.triple.isX86()) {
      function.addFnAttr("prefer-vector-width", "512");
      function.addFnAttr("min-legal-vector-width", "512");
    }
    function.addFnAttr(Attribute::NoUnwind);
  }

  std::optional<HiddenFreezes> freezes;
  std::optional<PartedSelects> selects;
  if (optLevel) {
    freezes.emplace(module);
    selects.emplace(module);
  }
  ModulePassManager passes;
  if (hasCoroutines)
    passes.addPass(CoroEarlyPass());
  if (optLevel)
    passes.addPass(createModuleToFunctionPassAdaptor(buildSimplification()));
  if (hasCoroutines) {
    passes.addPass(createModuleToPostOrderCGSCCPassAdaptor(CoroSplitPass(/*OptimizeFrame=*/optLevel > 0)));
    passes.addPass(CoroCleanupPass());
  }
  if (optLevel)
    passes.addPass(createModuleToFunctionPassAdaptor(buildLoopOptimisation()));
  passes.run(module, modules);
  freezes.reset();
  selects.reset();
  if (optLevel && !processor.features.avx512)
    unravelMasks(module);
  // x86 has selects by `<` as instructions.
  if (!processor.triple.isX86())
    for (Function &function : module)
      keepSelects(function);
}

//===----------------------------------------------------------------------===//
// JIT
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<orc::LLJIT>> createJIT(std::shared_ptr<TargetMachine> machine) {
  Expected<orc::JITTargetMachineBuilder> builder = detectHost();
  if (!builder)
    return builder.takeError();
  using Compiler = std::unique_ptr<orc::IRCompileLayer::IRCompiler>;
  auto compileBy = [machine](orc::JITTargetMachineBuilder) -> Expected<Compiler> {
    return std::make_unique<orc::SimpleCompiler>(*machine);
  };
  Expected<std::unique_ptr<orc::LLJIT>> jit = orc::LLJITBuilder()
                                                  .setJITTargetMachineBuilder(std::move(*builder))
                                                  .setDataLayout(machine->createDataLayout())
                                                  .setCompileFunctionCreator(compileBy)
                                                  .setLinkProcessSymbolsByDefault(false)
                                                  .setPlatformSetUp(orc::setUpInactivePlatform)
                                                  .create();
  if (!jit)
    return jit.takeError();
  orc::SymbolMap symbols;
  for (const LibraryCall &call : getLibraryCalls())
    symbols[(*jit)->mangleAndIntern(call.name)] = {orc::ExecutorAddr::fromPtr(call.address),
                                                   JITSymbolFlags::Exported | JITSymbolFlags::Callable};
  if (Error error = (*jit)->getMainJITDylib().define(orc::absoluteSymbols(std::move(symbols))))
    return error;
  return jit;
}

} // namespace qd::cpu
