//===- Compiler.cpp - from QIR text to an artifact ---------------------------------------------------===//

#include "compiler/Compiler.h"

#include "codegen/Codegen.h"
#include "codegen/Interface.h"
#include "codegen/cpu/CPU.h"
#include "compiler/BlockSizes.h"
#include "compiler/Bundle.h"
#include "compiler/Pipeline.h"
#include "compiler/Ptxas.h"
#include "compiler/Session.h"
#include "compiler/Stats.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace qd {

const std::vector<EmitKind> &getEmitKinds() {
  static const std::vector<EmitKind> kinds = {
      {"qir", "the input, verified and printed in canonical form"},
      {"expanded", "QIR after the expansions for the target"},
      {"llvm", "LLVM IR as instruction selection gets it (nvptx, amdgcn, cpu)"},
      {"asm", "the target's assembly text"},
      {"ptx", "PTX text (nvptx)"},
      {"cubin", "machine code by ptxas, where it is found (nvptx)"},
      {"hsaco", "a linked code object (amdgcn)"},
      {"spirv", "a SPIR-V binary (spirv)"},
      {"spirv-asm", "SPIR-V as text (spirv)"},
      {"qdb", "a bundle of all targets, for qdc-run and libqdruntime"},
      {"stats", "instructions, shuffles, barriers and memory of each kernel, as a table"},
      {"stats-json", "the same as JSON"},
  };
  return kinds;
}

namespace {
/// Compiles one parsed module for one target after the other.
class Compilation {
public:
  Compilation(Session &session, ModuleOp module, const CompileOptions &options)
      : session(session), module(module), options(options) {}

  FailureOr<std::string> emit(const Target &target, StringRef kind);
  FailureOr<std::string> emitBundle(ArrayRef<SmallVector<Target>> requests);
  FailureOr<std::string> emitStats(ArrayRef<Target> targets, bool asJSON);

private:
  FailureOr<OwningOpRef<ModuleOp>> expand(const Target &target);
  FailureOr<std::string> emitVariant(const Target &target);
  FailureOr<std::string> emitSizes(ArrayRef<Target> sizes);
  LogicalResult refuse(const Target &target, StringRef kind);
  FailureOr<std::vector<KernelStats>> count(const Target &target);
  FailureOr<std::string> emitLLVM(ModuleOp expanded, const Target &target, StringRef kind);
  FailureOr<std::string> emitVulkan(ModuleOp expanded, const Target &target, StringRef kind);
  FailureOr<std::string> emitCode(ModuleOp expanded, const Target &target, StringRef kind);

  Session &session;
  ModuleOp module;
  const CompileOptions &options;
};
} // namespace

static std::string print(ModuleOp module) {
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

LogicalResult Compilation::refuse(const Target &target, StringRef kind) {
  session.error("target " + getBackendName(target.getBackend()) + " has no '" + kind + "' output");
  return failure();
}

FailureOr<std::string> Compilation::emitLLVM(ModuleOp expanded, const Target &target, StringRef kind) {
  CodegenOptions codegen{options.optLevel};
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
    llvm::Expected<Assembled> assembled = assemblePTX(*ptx, target, options.optLevel);
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
  FailureOr<std::string> code = emitSPIRV(expanded, target, CodegenOptions{options.optLevel});
  if (failed(code) || kind == "spirv")
    return code;
  FailureOr<std::string> text = disassembleSPIRV(*code);
  if (failed(text))
    session.error("internal error: the SPIR-V module cannot be disassembled");
  return text;
}

FailureOr<std::string> Compilation::emit(const Target &target, StringRef kind) {
  FailureOr<OwningOpRef<ModuleOp>> expanded = expand(target);
  if (failed(expanded))
    return failure();
  if (kind == "expanded")
    return print(**expanded);
  return emitCode(**expanded, target, kind);
}

FailureOr<std::string> Compilation::emitCode(ModuleOp expanded, const Target &target, StringRef kind) {
  switch (target.getBackend()) {
  case Backend::NVPTX:
  case Backend::AMDGCN:
    return emitLLVM(expanded, target, kind);
  case Backend::SPIRV:
    return emitVulkan(expanded, target, kind);
  case Backend::CPU:
    if (kind == "llvm" || kind == "asm")
      return emitCPUText(expanded, target, CodegenOptions{options.optLevel},
                         kind == "llvm" ? CPUText::LLVM : CPUText::Assembly);
    return refuse(target, kind);
  case Backend::Interp:
    return refuse(target, kind);
  }
  return failure();
}

/// One target's entry of a bundle.
FailureOr<std::string> Compilation::emitVariant(const Target &target) {
  FailureOr<OwningOpRef<ModuleOp>> expanded = expand(target);
  if (failed(expanded))
    return failure();
  // What the expansions add or remove (shared arrays, uses of a buffer's size) is part of the interface.
  std::string interface = printInterface(describeKernels(**expanded, target));
  FailureOr<std::string> code;
  CodeKind kind = CodeKind::PTX;
  if (target.getBackend() == Backend::NVPTX) {
    code = emitCode(**expanded, target, "ptx");
  } else if (target.getBackend() == Backend::AMDGCN) {
    code = emitCode(**expanded, target, "hsaco");
    kind = CodeKind::HSACO;
  } else if (target.getBackend() == Backend::SPIRV) {
    code = emitCode(**expanded, target, "spirv");
    kind = CodeKind::SPIRV;
  } else {
    session.error("target " + getBackendName(target.getBackend()) + " runs from a bundle's QIR; leave it out");
    return failure();
  }
  if (failed(code))
    return failure();
  return packVariant(target, kind, *code, interface);
}

/// Every subgroup size that the module can be compiled for; the others are left out with a warning.
FailureOr<std::string> Compilation::emitSizes(ArrayRef<Target> sizes) {
  std::string variants;
  SmallVector<std::pair<Location, std::string>> refusals;
  for (const Target &target : sizes) {
    std::optional<std::pair<Location, std::string>> refusal;
    FailureOr<std::string> variant = failure();
    {
      ScopedDiagnosticHandler handler(&session.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        if (!refusal)
          refusal = {diagnostic.getLocation(), diagnostic.str()};
        return success();
      });
      variant = emitVariant(target);
    }
    if (succeeded(variant))
      variants += *variant;
    else if (refusal && !llvm::is_contained(refusals, *refusal))
      refusals.push_back(*refusal);
  }
  for (const auto &[location, reason] : refusals) {
    if (variants.empty())
      emitError(location) << reason;
    else
      emitWarning(location) << "left out of the bundle: " << reason;
  }
  if (variants.empty())
    return failure();
  return variants;
}

FailureOr<std::string> Compilation::emitBundle(ArrayRef<SmallVector<Target>> requests) {
  std::string bundle;
  for (ArrayRef<Target> request : requests) {
    FailureOr<std::string> variants = request.size() == 1 ? emitVariant(request.front()) : emitSizes(request);
    if (failed(variants))
      return failure();
    bundle += *variants;
  }
  if (!options.stripQir)
    bundle += packQIR(module);
  return bundle;
}

FailureOr<std::vector<KernelStats>> Compilation::count(const Target &target) {
  Backend backend = target.getBackend();
  if (backend != Backend::NVPTX && backend != Backend::AMDGCN && backend != Backend::SPIRV)
    return refuse(target, options.emit);
  FailureOr<OwningOpRef<ModuleOp>> expanded = expand(target);
  if (failed(expanded))
    return failure();
  FailureOr<std::string> code = emitCode(**expanded, target, backend == Backend::SPIRV ? "spirv" : "asm");
  if (failed(code))
    return failure();
  if (backend == Backend::SPIRV)
    return countSPIRV(*code);
  if (backend == Backend::AMDGCN)
    return countAMDGCN(*code);
  std::vector<KernelStats> stats = countPTX(*code);
  // Shared memory that launches provide has no size in the code.
  for (const KernelInterface &kernel : describeKernels(**expanded, target))
    for (KernelStats &counted : stats)
      if (kernel.dynamicSharedBytes && counted.kernel == kernel.name)
        counted.sharedBytes = kernel.dynamicSharedBytes;
  // Without ptxas, or one that knows the chip, registers stay unknown.
  if (findPtxas()) {
    llvm::Expected<Assembled> assembled = assemblePTX(*code, target, options.optLevel);
    if (assembled)
      readPtxasLog(assembled->log, stats);
    else
      llvm::consumeError(assembled.takeError());
  }
  return stats;
}

FailureOr<std::string> Compilation::emitStats(ArrayRef<Target> targets, bool asJSON) {
  std::vector<KernelStats> all;
  for (const Target &target : targets) {
    FailureOr<std::vector<KernelStats>> stats = count(target);
    if (failed(stats))
      return failure();
    for (KernelStats &kernel : *stats) {
      kernel.target = target.str();
      all.push_back(std::move(kernel));
    }
  }
  return asJSON ? printStatsJSON(all) : printStats(all);
}

/// What a target gives when no output is asked for.
static StringRef getDefaultEmit(Backend backend) {
  switch (backend) {
  case Backend::NVPTX:
    return "ptx";
  case Backend::AMDGCN:
    return "hsaco";
  case Backend::SPIRV:
    return "spirv";
  case Backend::CPU:
    return "asm";
  case Backend::Interp:
    return "expanded";
  }
  return "expanded";
}

static bool checkOptions(Session &session, const CompileOptions &options) {
  auto isOneOf = [](StringRef value, ArrayRef<StringRef> legal) { return llvm::is_contained(legal, value); };
  if (!options.emit.empty() && llvm::none_of(getEmitKinds(), [&](const EmitKind &k) { return options.emit == k.name; })) {
    auto names = llvm::map_range(getEmitKinds(), [](const EmitKind &k) { return StringRef(k.name); });
    session.error("unknown output '" + options.emit + "', expected one of " + llvm::join(names, ", "));
    return false;
  }
  if (options.optLevel > 3) {
    session.error("optimisation level " + llvm::Twine(options.optLevel) + " is not one of 0, 1, 2, 3");
    return false;
  }
  if (!isOneOf(options.divergent, {"error", "warn", "allow"})) {
    session.error("unknown divergence policy '" + options.divergent + "', expected error, warn or allow");
    return false;
  }
  if (!isOneOf(options.remarks, {"", "expand"})) {
    session.error("unknown pass '" + options.remarks + "' to report on, expected expand");
    return false;
  }
  return true;
}

/// The targets that the options name; for a bundle, a Vulkan target that names no subgroup size stands for all.
static FailureOr<SmallVector<SmallVector<Target>>> findTargets(Session &session, const CompileOptions &options,
                                                               bool isBundle) {
  SmallVector<SmallVector<Target>> requests;
  for (StringRef name : options.targets) {
    llvm::Expected<Target> target = findTarget(name, options.subgroupSize);
    if (!target) {
      session.error(llvm::toString(target.takeError()));
      return failure();
    }
    SmallVector<Target> request;
    if (!isBundle || target->getBackend() != Backend::SPIRV || options.subgroupSize || name.contains('@'))
      request.push_back(*target);
    else
      for (unsigned size = 4; size <= 64; size *= 2)
        request.push_back({target->chip, size});
    for (const Target &wanted : request)
      for (ArrayRef<Target> earlier : requests)
        if (llvm::any_of(earlier, [&](const Target &known) {
              return known.chip == wanted.chip && known.subgroupSize == wanted.subgroupSize;
            })) {
          session.error("target '" + name + "' asks for " + wanted.str() + ", which an earlier target gives");
          return failure();
        }
    requests.push_back(std::move(request));
  }
  return requests;
}

static FailureOr<std::string> run(Session &session, std::string_view qir, std::string_view name,
                                  const CompileOptions &options) {
  if (!checkOptions(session, options))
    return failure();
  bool isBundle = options.emit == "qdb" || (options.emit.empty() && options.targets.size() > 1);
  FailureOr<SmallVector<SmallVector<Target>>> requests = findTargets(session, options, isBundle);
  if (failed(requests))
    return failure();
  ModuleOp module = session.parse(StringRef(qir.data(), qir.size()), StringRef(name.data(), name.size()));
  if (!module || !resizeBlocks(session, module, options.blocks))
    return failure();
  if (options.emit == "qir")
    return print(module);
  if (requests->empty()) {
    session.error("no target: name one with -target=nvptx, amdgcn, spirv or cpu");
    return failure();
  }
  if (module.getOps<KernelOp>().empty())
    return module.emitError() << "expected at least one qd.kernel";
  Compilation compilation(session, module, options);
  if (isBundle)
    return compilation.emitBundle(*requests);
  SmallVector<Target> targets;
  for (ArrayRef<Target> request : *requests)
    targets.push_back(request.front());
  if (options.emit == "stats" || options.emit == "stats-json")
    return compilation.emitStats(targets, options.emit == "stats-json");
  if (targets.size() > 1) {
    session.error("output '" + options.emit + "' takes one target, found " + llvm::Twine(targets.size()) +
                  "; only a bundle (qdb) and stats take several");
    return failure();
  }
  const Target &target = targets.front();
  return compilation.emit(target, options.emit.empty() ? getDefaultEmit(target.getBackend()) : StringRef(options.emit));
}

CompileResult compile(std::string_view qir, std::string_view name, const CompileOptions &options) {
  Session session;
  FailureOr<std::string> data = run(session, qir, name, options);
  CompileResult result;
  result.ok = succeeded(data);
  if (result.ok)
    result.data = std::move(*data);
  result.diagnostics = std::move(session.getDiagnostics());
  return result;
}

std::string describeTargets() {
  std::string text = "target  chip        subgroup sizes          shared memory  known as\n";
  for (const Chip &chip : getChips())
    text += llvm::formatv("{0,-7} {1,-11} {2,-23} {3,4} KiB       {4}\n", getBackendName(chip.backend), chip.name,
                          listSubgroupSizes(chip), chip.sharedBytes / 1024, chip.note);
  return text;
}

std::string getVersionText() { return "qdc 0.1.0 (LLVM " LLVM_VERSION_STRING ")"; }

} // namespace qd
