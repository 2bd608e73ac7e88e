//===- CApi.cpp - the C interface over the C++ one ------------------------------------------------===//

#include "compiler/BlockSizes.h"
#include "compiler/Compiler.h"
#include "compiler/Session.h"
#include "compiler/Pipeline.h"
#include "compiler/qdc.h"

#include "codegen/HostProgram.h"
#include "codegen/Interface.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>

using namespace llvm;

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

struct qdcResult_ {
  qd::CompileResult result;
};

uint32_t qdcApiVersion(void) { return QDC_API_VERSION; }

void qdcInitCompileOptions(qdcCompileOptions *options) {
  *options = {};
  options->structSize = sizeof(qdcCompileOptions);
  options->emit = "qdb";
  options->optLevel = 2;
}

qdcResult qdcCompile(const void *qir, size_t size, const char *name, const qdcCompileOptions *options) {
  auto *result = new qdcResult_;
  if (!options || options->structSize != sizeof(qdcCompileOptions)) {
    result->result.diagnostics = "error: options were not set up by qdcInitCompileOptions\n";
    return result;
  }
  qd::CompileOptions converted;
  for (StringRef target : split(options->targets ? options->targets : "", ','))
    if (!target.empty())
      converted.targets.push_back(target.str());
  converted.emit = options->emit ? options->emit : "qdb";
  converted.subgroupSize = options->subgroupSize;
  converted.optLevel = options->optLevel;
  converted.stripQir = options->stripQir;
  converted.blocks = options->blocks ? options->blocks : "";
  result->result = qd::compile({static_cast<const char *>(qir), size}, name ? name : "<input>", converted);
  return result;
}

int qdcResultOk(qdcResult result) { return result->result.ok; }

const void *qdcResultData(qdcResult result, size_t *size) {
  *size = result->result.data.size();
  return result->result.data.data();
}

const char *qdcResultDiagnostics(qdcResult result) { return result->result.diagnostics.c_str(); }

void qdcResultFree(qdcResult result) { delete result; }

//===----------------------------------------------------------------------===//
// Running on this machine
//===----------------------------------------------------------------------===//

struct qdcHostModule_ {
  qd::Session session; ///< keeps the module alive that the interpreter runs
  std::string interface;
  std::unique_ptr<qd::HostProgram> program;
};

void qdcInitHostOptions(qdcHostOptions *options) {
  *options = {};
  options->structSize = sizeof(qdcHostOptions);
  options->optLevel = 2;
}

static char *copyString(StringRef text) {
  auto *copy = static_cast<char *>(malloc(text.size() + 1));
  memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  return copy;
}

static void giveDiagnostics(StringRef text, char **diagnostics) {
  if (diagnostics)
    *diagnostics = text.empty() ? nullptr : copyString(text);
}

/// "sim:gfx942" is a sim of that chip; "cpu" and "interp" are targets of their own.
static Expected<qd::Target> findHostTarget(StringRef device, unsigned subgroupSize) {
  auto [kind, chip] = device.split(':');
  if (kind == "cpu" || kind == "interp")
    return qd::findTarget(device, subgroupSize);
  if (kind != "sim")
    return createStringError("unknown host device '" + device + "', expected cpu, interp or sim:CHIP");
  if (chip.empty())
    return createStringError("device sim needs a chip, as in sim:sm_80 or sim:gfx942");
  return qd::findTarget((chip.starts_with("gfx") ? "amdgcn:" : "nvptx:") + chip.str(), subgroupSize);
}

static bool load(qdcHostModule_ &host, StringRef qir, StringRef name, const qdcHostOptions &options) {
  StringRef device = options.device ? options.device : "";
  Expected<qd::Target> target = findHostTarget(device, options.subgroupSize);
  if (!target) {
    host.session.error(toString(target.takeError()));
    return false;
  }
  mlir::ModuleOp module = host.session.parse(qir, name);
  if (!module || !qd::resizeBlocks(host.session, module, options.blocks ? options.blocks : ""))
    return false;
  qd::HostOptions hostOptions;
  hostOptions.optLevel = std::min(options.optLevel, 3u);
  hostOptions.threads = options.threads;
  hostOptions.checks = options.checks ? options.checks : "";
  std::vector<qd::KernelInterface> kernels;
  for (qd::KernelOp kernel : module.getOps<qd::KernelOp>())
    kernels.push_back(qd::describeKernel(kernel, *target));
  host.interface = qd::printInterface(kernels);
  if (target->getBackend() == qd::Backend::Interp) {
    host.program = qd::createInterpProgram(module, *target, hostOptions);
    return bool(host.program);
  }
  if (failed(qd::runPipeline(module, *target, {})))
    return false;
  host.program = device.starts_with("sim") ? qd::createSimProgram(module, *target, hostOptions)
                                           : qd::createCPUProgram(module, *target, hostOptions);
  return bool(host.program);
}

qdcHostModule qdcHostLoad(const void *qir, size_t size, const char *name, const qdcHostOptions *options,
                          char **diagnostics) {
  if (!options || options->structSize != sizeof(qdcHostOptions)) {
    giveDiagnostics("error: options were not set up by qdcInitHostOptions\n", diagnostics);
    return nullptr;
  }
  auto host = std::make_unique<qdcHostModule_>();
  bool ok = load(*host, StringRef(static_cast<const char *>(qir), size), name ? name : "<input>", *options);
  giveDiagnostics(host->session.getDiagnostics(), diagnostics);
  return ok ? host.release() : nullptr;
}

const char *qdcHostInterface(qdcHostModule module) { return module->interface.c_str(); }

int qdcHostLaunch(qdcHostModule module, const char *kernel, const uint32_t grid[3], const qdcHostArg *args,
                  size_t numArgs, char **diagnostics) {
  SmallVector<qd::HostArg> converted;
  for (const qdcHostArg &arg : ArrayRef(args, numArgs))
    converted.push_back({arg.kind == QDC_ARG_BUFFER, arg.data, arg.count, arg.bits,
                         {arg.extents[0], arg.extents[1], arg.extents[2]}});
  Error error = module->program->launch(kernel, {grid[0], grid[1], grid[2]}, converted);
  bool failed = bool(error);
  giveDiagnostics(failed ? toString(std::move(error)) : "", diagnostics);
  return failed;
}

void qdcHostUnload(qdcHostModule module) { delete module; }

void qdcFreeString(char *string) { free(string); }
