//===- Compilation.cpp - from a parsed module to code ------------------------------------------------===//

#include "compiler/Compilation.h"

#include "codegen/AMDGCNCodeObject.h"
#include "codegen/Codegen.h"
#include "codegen/Interface.h"
#include "codegen/cpu/CPU.h"
#include "compiler/Bundle.h"
#include "compiler/Pipeline.h"
#include "compiler/Ptxas.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/OffloadBinary.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace qd {

std::string printModule(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  stream << "\n";
  return text;
}

static std::vector<KernelInterface> describeKernels(ModuleOp module, const Target &target) {
  std::vector<KernelInterface> kernels;
  for (KernelOp kernel : module.getOps<KernelOp>())
    kernels.push_back(describeKernel(kernel, target));
  return kernels;
}

FailureOr<OwningOpRef<ModuleOp>> Compilation::expand(const Target &target) {
  OwningOpRef<ModuleOp> expanded = module.clone();
  PipelineOptions pipeline;
  pipeline.divergence = options.divergent == "allow"  ? DivergencePolicy::Allow
                        : options.divergent == "warn" ? DivergencePolicy::Warn
                                                      : DivergencePolicy::Error;
  pipeline.remarks = options.remarks == "expand";
  if (failed(runPipeline(*expanded, target, pipeline)))
    return failure();
  return expanded;
}

/// A processor of another kind than this machine's.
static bool isForeign(const Target &target) { return target.getBackend() == Backend::CPU && !isThisMachine(target); }

LogicalResult Compilation::refuse(const Target &target, StringRef kind) {
  StringRef backend = getBackendName(target.getBackend());
  session.error("target " + (isForeign(target) ? backend + ":" + target.chip->name : backend) + " has no '" + kind +
                "' output" + (isForeign(target) ? ", expected 'llvm' or 'expanded'" : ""));
  return failure();
}

static CodegenOptions getCodegenOptions(const CompileOptions &options) {
  CodegenOptions codegen;
  codegen.optLevel = options.optLevel;
  codegen.debug = options.debug;
  return codegen;
}

FailureOr<std::string> Compilation::emitLLVM(ModuleOp expanded, const Target &target, StringRef kind) {
  CodegenOptions codegen = getCodegenOptions(options);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> lowered = lowerToLLVM(expanded, target, codegen, context);
  if (!lowered)
    return failure();
  if (kind == "llvm") {
    std::string text;
    llvm::raw_string_ostream stream(text);
    lowered->print(stream, nullptr);
    return text;
  }
  if (target.getBackend() == Backend::NVPTX && (kind == "ptx" || kind == "asm"))
    return emitPTX(expanded, *lowered, target, codegen);
  if (target.getBackend() == Backend::NVPTX && kind == "cubin") {
    FailureOr<std::string> ptx = emitPTX(expanded, *lowered, target, codegen);
    if (failed(ptx))
      return failure();
    llvm::Expected<Assembled> assembled = assemblePTX(*ptx, target, options.optLevel, options.debug);
    if (assembled)
      return std::move(assembled->cubin);
    session.error(llvm::toString(assembled.takeError()));
    return failure();
  }
  if (target.getBackend() == Backend::AMDGCN && (kind == "hsaco" || kind == "asm")) {
    AMDGCNOutput output = kind == "asm" ? AMDGCNOutput::Assembly : AMDGCNOutput::HSACO;
    llvm::Expected<std::string> code = emitAMDGCN(*lowered, target, output, codegen);
    if (!code)
      return expanded.emitError() << llvm::toString(code.takeError());
    return std::move(*code);
  }
  return refuse(target, kind);
}

FailureOr<std::string> Compilation::emitVulkan(ModuleOp expanded, const Target &target, StringRef kind) {
  if (kind != "spirv" && kind != "spirv-asm" && kind != "asm")
    return refuse(target, kind);
  FailureOr<std::string> code = emitSPIRV(expanded, target, getCodegenOptions(options));
  if (failed(code) || kind == "spirv")
    return code;
  FailureOr<std::string> text = disassembleSPIRV(*code);
  if (failed(text))
    session.error("internal error: the SPIR-V module cannot be disassembled");
  return text;
}

FailureOr<std::string> Compilation::emitCode(ModuleOp expanded, const Target &target, StringRef kind) {
  switch (target.getBackend()) {
  case Backend::NVPTX:
  case Backend::AMDGCN:
    return emitLLVM(expanded, target, kind);
  case Backend::SPIRV:
    return emitVulkan(expanded, target, kind);
  case Backend::CPU:
    if (kind == "llvm" || (kind == "asm" && isThisMachine(target)))
      return emitCPUText(expanded, target, getCodegenOptions(options),
                         kind == "llvm" ? CPUText::LLVM : CPUText::Assembly);
    return refuse(target, kind);
  case Backend::Interp:
    return refuse(target, kind);
  }
  return failure();
}

/// A target as `-target=` names it in full.
static std::string nameTarget(const Target &target) {
  return llvm::formatv("{0}:{1}@{2}", getBackendName(target.getBackend()), target.chip->name, target.subgroupSize);
}

static bool hasStats(Backend backend) {
  return backend == Backend::NVPTX || backend == Backend::AMDGCN || backend == Backend::SPIRV;
}

/// All of a variant but for its place.
FailureOr<Variant> Compilation::describe(ModuleOp expanded, const Target &target, StringRef kind, StringRef code) {
  Variant variant;
  variant.target = nameTarget(target);
  variant.kind = kind.str();
  // What the expansions add or remove (shared arrays, uses of a buffer's size) is part of the interface.
  std::vector<KernelInterface> kernels = describeKernels(expanded, target);
  if (kind == "hsaco") {
    llvm::Expected<llvm::StringMap<uint64_t>> bytes = readAMDGCNSharedBytes(code);
    if (!bytes) {
      session.error("internal error: " + toString(bytes.takeError()));
      return failure();
    }
    for (KernelInterface &kernel : kernels)
      kernel.sharedBytes = std::max(kernel.sharedBytes, bytes->lookup(kernel.name) + kernel.dynamicSharedBytes);
  }
  variant.interface = printInterface(kernels);
  if (!options.statistics || !hasStats(target.getBackend()))
    return variant;
  bool isCounted = kind == "ptx" || kind == "spirv" || (kind == "asm" && target.getBackend() != Backend::SPIRV);
  FailureOr<std::vector<KernelStats>> stats = count(expanded, target, isCounted ? code : "");
  if (failed(stats))
    return failure();
  variant.statistics = printStatsJSON(*stats);
  return variant;
}

FailureOr<std::string> Compilation::emit(const Target &target, StringRef kind) {
  FailureOr<OwningOpRef<ModuleOp>> expanded = expand(target);
  if (failed(expanded))
    return failure();
  FailureOr<std::string> code = kind == "expanded" ? printModule(**expanded) : emitCode(**expanded, target, kind);
  if (failed(code))
    return failure();
  FailureOr<Variant> variant = describe(**expanded, target, kind, *code);
  if (failed(variant))
    return failure();
  variant->size = code->size();
  variants.push_back(std::move(*variant));
  return code;
}

//===----------------------------------------------------------------------===//
// Bundles
//===----------------------------------------------------------------------===//

/// Appends one target's entry to the bundle.
LogicalResult Compilation::addVariant(const Target &target) {
  // This machine's processor runs the QIR that a bundle holds; code for another one is LLVM IR alone.
  if (isForeign(target))
    return refuse(target, "qdb");
  FailureOr<OwningOpRef<ModuleOp>> expanded = expand(target);
  if (failed(expanded))
    return failure();
  StringRef name;
  CodeKind kind;
  switch (target.getBackend()) {
  case Backend::NVPTX:
    name = "ptx";
    kind = CodeKind::PTX;
    break;
  case Backend::AMDGCN:
    name = "hsaco";
    kind = CodeKind::HSACO;
    break;
  case Backend::SPIRV:
    name = "spirv";
    kind = CodeKind::SPIRV;
    break;
  default:
    session.error("target " + getBackendName(target.getBackend()) + " runs from a bundle's QIR; leave it out");
    return failure();
  }
  FailureOr<std::string> code = emitCode(**expanded, target, name);
  if (failed(code))
    return failure();
  FailureOr<Variant> variant = describe(**expanded, target, name, *code);
  if (failed(variant))
    return failure();
  size_t inEntry = 0;
  std::string entry = packVariant(target, kind, *code, variant->interface, inEntry);
  variant->offset = bundle.size() + inEntry;
  variant->size = code->size();
  bundle += entry;
  variants.push_back(std::move(*variant));
  return success();
}

/// Every subgroup size that the module can be compiled for; the others are left out with a warning.
LogicalResult Compilation::addSizes(ArrayRef<Target> sizes) {
  bool hasVariant = false;
  SmallVector<std::pair<Location, std::string>> refusals;
  for (const Target &target : sizes) {
    std::optional<std::pair<Location, std::string>> refusal;
    LogicalResult added = failure();
    {
      ScopedDiagnosticHandler handler(&session.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        if (!refusal)
          refusal = {diagnostic.getLocation(), diagnostic.str()};
        return success();
      });
      added = addVariant(target);
    }
    if (succeeded(added))
      hasVariant = true;
    else if (refusal && !llvm::is_contained(refusals, *refusal))
      refusals.push_back(*refusal);
  }
  for (const auto &[location, reason] : refusals) {
    if (hasVariant)
      emitWarning(location) << "left out of the bundle: " << reason;
    else
      emitError(location) << reason;
  }
  return success(hasVariant);
}

FailureOr<std::string> Compilation::emitBundle(ArrayRef<SmallVector<Target>> requests) {
  for (ArrayRef<Target> request : requests)
    if (failed(request.size() == 1 ? addVariant(request.front()) : addSizes(request)))
      return failure();
  if (!options.stripQir)
    bundle += packQIR(module);
  return std::move(bundle);
}

//===----------------------------------------------------------------------===//
// Statistics
//===----------------------------------------------------------------------===//

/// Counts `code`: the target's text, or SPIR-V words; "" makes it be emitted.
FailureOr<std::vector<KernelStats>> Compilation::count(ModuleOp expanded, const Target &target, StringRef code) {
  Backend backend = target.getBackend();
  std::string emitted;
  if (code.empty()) {
    FailureOr<std::string> made = emitCode(expanded, target, backend == Backend::SPIRV ? "spirv" : "asm");
    if (failed(made))
      return failure();
    emitted = std::move(*made);
    code = emitted;
  }
  auto label = [&](std::vector<KernelStats> stats) {
    for (KernelStats &kernel : stats)
      kernel.target = target.str();
    return stats;
  };
  if (backend == Backend::SPIRV)
    return label(countSPIRV(code));
  if (backend == Backend::AMDGCN)
    return label(countAMDGCN(code));
  std::vector<KernelStats> stats = countPTX(code);
  // Shared memory that launches provide has no size in the code.
  for (const KernelInterface &kernel : describeKernels(expanded, target))
    for (KernelStats &counted : stats)
      if (kernel.dynamicSharedBytes && counted.kernel == kernel.name)
        counted.sharedBytes = kernel.dynamicSharedBytes;
  // Without ptxas, or one that knows the chip, registers stay unknown.
  if (findPtxas()) {
    llvm::Expected<Assembled> assembled = assemblePTX(code, target, options.optLevel, options.debug);
    if (assembled)
      readPtxasLog(assembled->log, stats);
    else
      llvm::consumeError(assembled.takeError());
  }
  return label(std::move(stats));
}

FailureOr<std::string> Compilation::emitStats(ArrayRef<Target> targets, bool asJSON) {
  std::vector<KernelStats> all;
  for (const Target &target : targets) {
    if (!hasStats(target.getBackend()))
      return refuse(target, asJSON ? "stats-json" : "stats");
    FailureOr<OwningOpRef<ModuleOp>> expanded = expand(target);
    if (failed(expanded))
      return failure();
    FailureOr<std::vector<KernelStats>> stats = count(**expanded, target, "");
    if (failed(stats))
      return failure();
    llvm::move(*stats, std::back_inserter(all));
  }
  return asJSON ? printStatsJSON(all) : printStats(all);
}

} // namespace qd
