//===- Compiler.cpp - from QIR text to an artifact ---------------------------------------------------===//

#include "compiler/Compiler.h"

#include "codegen/cpu/CPU.h"
#include "compiler/BindArguments.h"
#include "compiler/BlockSizes.h"
#include "compiler/Bytecode.h"
#include "compiler/Compilation.h"
#include "compiler/ResultCache.h"
#include "compiler/Worker.h"
#include "ir/Dialect.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace qd {

const std::vector<EmitKind> &getEmitKinds() {
  static const std::vector<EmitKind> kinds = {
      {"qir", "the input, verified and printed in canonical form"},
      {"bytecode", "the same as bytes, with a checksum"},
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

/// What a target gives when no output is asked for.
static StringRef getDefaultEmit(const Target &target) {
  switch (target.getBackend()) {
  case Backend::NVPTX:
    return "ptx";
  case Backend::AMDGCN:
    return "hsaco";
  case Backend::SPIRV:
    return "spirv";
  case Backend::CPU:
    return isThisMachine(target) ? "asm" : "llvm";
  case Backend::Interp:
    return "expanded";
  }
  return "expanded";
}

static bool checkOptions(Session &session, const CompileOptions &options) {
  auto isOneOf = [](StringRef value, ArrayRef<StringRef> legal) { return llvm::is_contained(legal, value); };
  if (!options.emit.empty() &&
      llvm::none_of(getEmitKinds(), [&](const EmitKind &k) { return options.emit == k.name; })) {
    auto names = llvm::map_range(getEmitKinds(), [](const EmitKind &k) { return StringRef(k.name); });
    std::string target = options.targets.size() == 1 ? " of target " + options.targets.front() : "";
    session.error("unknown output '" + options.emit + "'" + target + ", expected one of " + llvm::join(names, ", "));
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
  if (unsigned(options.cache) > unsigned(CachePolicy::Disk)) {
    session.error("cache policy " + llvm::Twine(unsigned(options.cache)) + " is not one of 0, 1, 2, 3");
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

static FailureOr<std::string> emit(Session &session, Compilation &compilation,
                                   ArrayRef<SmallVector<Target>> requests, bool isBundle,
                                   const CompileOptions &options) {
  if (isBundle)
    return compilation.emitBundle(requests);
  SmallVector<Target> targets;
  for (ArrayRef<Target> request : requests)
    targets.push_back(request.front());
  if (options.emit == "stats" || options.emit == "stats-json")
    return compilation.emitStats(targets, options.emit == "stats-json");
  if (targets.size() > 1) {
    session.error("output '" + options.emit + "' takes one target, found " + llvm::Twine(targets.size()) +
                  "; only a bundle (qdb) and stats take several");
    return failure();
  }
  const Target &target = targets.front();
  return compilation.emit(target, options.emit.empty() ? getDefaultEmit(target) : StringRef(options.emit));
}

static FailureOr<std::string> run(Session &session, std::string_view qir, std::string_view name,
                                  const CompileOptions &options, std::vector<Variant> &variants) {
  if (!checkOptions(session, options))
    return failure();
  bool isBundle = options.emit == "qdb" || (options.emit.empty() && options.targets.size() > 1);
  FailureOr<SmallVector<SmallVector<Target>>> requests = findTargets(session, options, isBundle);
  if (failed(requests))
    return failure();
  ModuleOp module = session.parse(StringRef(qir.data(), qir.size()), StringRef(name.data(), name.size()));
  if (!module || !resizeBlocks(session, module, options.blocks) || !bindArguments(session, module, options.bind))
    return failure();
  if (options.emit == "qir")
    return printModule(module);
  if (options.emit == "bytecode")
    return writeBytecode(module);
  if (requests->empty()) {
    session.error("no target: name one with -target=nvptx, amdgcn, spirv or cpu");
    return failure();
  }
  if (module.getOps<KernelOp>().empty())
    return module.emitError() << "expected at least one qd.kernel";
  Compilation compilation(session, module, options);
  FailureOr<std::string> data = emit(session, compilation, *requests, isBundle, options);
  variants = compilation.takeVariants();
  return data;
}

CompileResult compileInProcess(std::string_view qir, std::string_view name, const CompileOptions &options) {
  Session session;
  CompileResult result;
  FailureOr<std::string> data = run(session, qir, name, options, result.variants);
  result.ok = succeeded(data);
  if (result.ok)
    result.data = std::move(*data);
  else
    result.variants.clear();
  result.diagnostics = std::move(session.getDiagnostics());
  result.messages = std::move(session.getMessages());
  return result;
}

CompileResult compile(std::string_view qir, std::string_view name, const CompileOptions &options) {
  return lookUpOrCompile(qir, name, options, [&] {
    bool isIsolated = options.isolate || options.timeLimit || options.memoryLimit;
    return isIsolated ? compileInWorker(qir, name, options) : compileInProcess(qir, name, options);
  });
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
