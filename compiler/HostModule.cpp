//===- HostModule.cpp - modules for the devices of this machine ---------------------------------------------------===//

#include "compiler/HostModule.h"

#include "compiler/BindArguments.h"
#include "compiler/BlockSizes.h"
#include "compiler/Bytes.h"
#include "compiler/Pipeline.h"
#include "compiler/ResultCache.h"

#include "codegen/Interface.h"
#include <algorithm>
#include <map>
#include <mutex>

using namespace llvm;

namespace qd {

/// "sim:gfx942" is a sim of that chip; "cpu" and "interp" are targets of their own.
static Expected<Target> findHostTarget(StringRef device, unsigned subgroupSize) {
  auto [kind, chip] = device.split(':');
  if (kind == "cpu" || kind == "interp")
    return findTarget(device, subgroupSize);
  if (kind != "sim")
    return createStringError("unknown host device '" + device + "', expected cpu, interp or sim:CHIP");
  if (chip.empty())
    return createStringError("device sim needs a chip, as in sim:sm_80 or sim:gfx942");
  for (auto [beginning, backend] : {std::pair("gfx", "amdgcn:"), std::pair("sm_", "nvptx:")})
    if (chip.starts_with(beginning))
      return findTarget(backend + chip.str(), subgroupSize);
  return createStringError("unknown chip '" + chip + "' for device sim, expected one of targets nvptx and amdgcn, as in "
                           "sim:sm_80 or sim:gfx942");
}

bool loadHostModule(HostModule &host, StringRef qir, StringRef name, const HostRequest &request, HostOptions options) {
  StringRef device = request.device;
  Expected<Target> target = findHostTarget(device, request.options.subgroupSize);
  if (!target) {
    host.session.error(toString(target.takeError()));
    return false;
  }
  mlir::ModuleOp module = host.session.parse(qir, name);
  if (!module || !resizeBlocks(host.session, module, request.options.blocks) ||
      !bindArguments(host.session, module, request.options.bind))
    return false;
  if (module.getOps<KernelOp>().empty()) {
    module.emitError() << "expected at least one qd.kernel";
    return false;
  }
  options.optLevel = std::min(request.options.optLevel, 3u);
  options.checks = request.checks;
  std::vector<KernelInterface> kernels;
  for (KernelOp kernel : module.getOps<KernelOp>())
    kernels.push_back(describeKernel(kernel, *target));
  host.interface = printInterface(kernels);
  if (target->getBackend() == Backend::Interp) {
    host.program = createInterpProgram(module, *target, options);
    return bool(host.program);
  }
  if (failed(runPipeline(module, *target, {})))
    return false;
  host.program = device.starts_with("sim") ? createSimProgram(module, *target, options)
                                           : createCPUProgram(module, *target, options);
  return bool(host.program);
}

//===----------------------------------------------------------------------===//
// Code that another process made
//===----------------------------------------------------------------------===//

namespace {
/// Keeps what is made, beside another store that may be null.
class Collector : public CodeStore {
public:
  explicit Collector(std::shared_ptr<CodeStore> next) : next(std::move(next)) {}

  std::optional<std::string> load(StringRef key) override {
    std::optional<std::string> code = next ? next->load(key) : std::nullopt;
    if (code)
      keep(key, *code);
    return code;
  }
  void store(StringRef key, StringRef code) override {
    keep(key, code);
    if (next)
      next->store(key, code);
  }
  std::string write() {
    std::lock_guard<std::mutex> lock(mutex);
    ByteWriter writer;
    writer.number(codes.size());
    for (auto &[key, code] : codes) {
      writer.text(key);
      writer.text(code);
    }
    return writer.take();
  }

private:
  void keep(StringRef key, StringRef code) {
    std::lock_guard<std::mutex> lock(mutex);
    codes[key.str()] = code.str();
  }

  std::shared_ptr<CodeStore> next;
  std::mutex mutex;
  std::map<std::string, std::string> codes;
};

/// What a collector has written; read only.
class Collection : public CodeStore {
public:
  explicit Collection(StringRef data) {
    ByteReader reader(data);
    for (uint64_t left = reader.count(); left; --left) {
      std::string key = reader.text();
      codes[key] = reader.text();
    }
  }
  std::optional<std::string> load(StringRef key) override {
    auto found = codes.find(key.str());
    return found == codes.end() ? std::nullopt : std::optional(found->second);
  }
  void store(StringRef, StringRef) override {}

private:
  std::map<std::string, std::string> codes;
};
} // namespace

CompileResult prepareHostModule(StringRef qir, StringRef name, const HostRequest &request) {
  HostModule host;
  HostOptions options;
  auto collector = std::make_shared<Collector>(getHostStore(request));
  options.store = collector;
  CompileResult result;
  result.ok = loadHostModule(host, qir, name, request, options);
  if (result.ok)
    if (Error error = host.program->makeCode()) {
      host.session.error(toString(std::move(error)));
      result.ok = false;
    }
  if (result.ok)
    result.data = collector->write();
  result.diagnostics = host.session.getDiagnostics();
  result.messages = host.session.getMessages();
  return result;
}

std::shared_ptr<CodeStore> getHostStore(const HostRequest &request) {
  return request.device == "cpu" ? getCodeStore(request.options) : nullptr;
}

std::shared_ptr<CodeStore> readHostCode(StringRef data) { return std::make_shared<Collection>(data); }

} // namespace qd
