//===- ExpandedKernel.cpp ---------------------------------------------------------------------===//

#include "ExpandedKernel.h"

#include "passes/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace mlir;

namespace qd::test {

unsigned getBits(StringRef type) {
  unsigned bits = 0;
  type.drop_while([](char c) { return !isdigit(c); }).getAsInteger(10, bits);
  return bits;
}

static unsigned getBytes(StringRef type) { return (getBits(type) + 7) / 8; }

std::string makeKernel(unsigned threads, const std::vector<Buffer> &inputs, const std::string &body,
                       const std::vector<std::pair<std::string, std::string>> &stores) {
  std::string arguments, loads, ends;
  for (size_t n = 0; n < inputs.size(); ++n) {
    arguments += llvm::formatv("%in{0}: !qd.buffer<{1}> readonly, ", n, inputs[n].type);
    loads += llvm::formatv("  %v{0} = qd.load %in{0}[%i] : !qd.buffer<{1}>\n", n, inputs[n].type);
  }
  for (size_t n = 0; n < stores.size(); ++n) {
    auto &[value, type] = stores[n];
    arguments += llvm::formatv("%out{0}: !qd.buffer<{1}>{2}", n, type, n + 1 < stores.size() ? ", " : "");
    ends += llvm::formatv("  qd.store {0}, %out{1}[%i] : !qd.buffer<{2}>\n", value, n, type);
  }
  return llvm::formatv("qd.kernel @k({0}) block({1}) {{\n  %i = qd.thread_index : i32\n{2}  {3}\n{4}  qd.return\n}\n",
                       arguments, threads, loads, body, ends);
}

ExpandedKernel::ExpandedKernel(const std::string &text, const std::string &targetName)
    : target(llvm::cantFail(findTarget(targetName))) {
  DialectRegistry registry;
  registerDialects(registry);
  context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  module = parseSourceString<ModuleOp>(text, context.get());
  if (!module) {
    ADD_FAILURE() << text;
    return;
  }
  PassManager passes(context.get());
  passes.addPass(createExpandCollectivesPass(target));
  legal = succeeded(passes.run(*module));
  EXPECT_TRUE(legal) << target.str() << "\n" << text;
  for (KernelOp kernel : module->getOps<KernelOp>())
    threads = kernel.getNumThreads();
}

ExpandedKernel::~ExpandedKernel() = default;

unsigned ExpandedKernel::count(StringRef op) const {
  unsigned number = 0;
  (*module)->walk([&](Operation *candidate) { number += candidate->getName().getStringRef() == op; });
  return number;
}

unsigned ExpandedKernel::countShuffles() const {
  unsigned number = 0;
  (*module)->walk([&](Operation *op) {
    if (isa<ShuffleOp, ShuffleXorOp, ShuffleUpOp, ShuffleDownOp, BroadcastOp>(op))
      number += op->getResult(0).getType().getIntOrFloatBitWidth() == 64 ? 2 : 1;
  });
  return number;
}

bool ExpandedKernel::isPlain() const {
  bool isPlain = true;
  (*module)->walk([&](Operation *op) {
    isPlain &= !isa<SharedAllocOp, BlockSyncOp>(op) && !isa<scf::SCFDialect>(op->getDialect());
  });
  return isPlain;
}

std::vector<Buffer> ExpandedKernel::run(const std::vector<Buffer> &inputs, const std::vector<std::string> &outputs,
                                        Backend device) {
  std::vector<Buffer> buffers = inputs;
  for (const std::string &type : outputs)
    buffers.push_back({type, std::vector<uint64_t>(threads)});
  std::vector<std::vector<uint8_t>> bytes;
  std::vector<HostArg> args;
  for (Buffer &buffer : buffers) {
    unsigned size = getBytes(buffer.type);
    std::vector<uint8_t> &data = bytes.emplace_back(buffer.elements.size() * size);
    for (size_t n = 0; n < buffer.elements.size(); ++n)
      memcpy(&data[n * size], &buffer.elements[n], size);
    args.push_back({true, data.data(), int64_t(buffer.elements.size()), 0});
  }
  std::unique_ptr<HostProgram> program = device == Backend::CPU ? createCPUProgram(*module, target, {})
                                                                : createInterpProgram(*module, target, {});
  if (!program) {
    ADD_FAILURE() << str();
    return {};
  }
  llvm::Error error = program->launch("k", {1, 1, 1}, args);
  EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error)) << str();
  for (size_t b = 0; b < buffers.size(); ++b) {
    unsigned size = getBytes(buffers[b].type);
    for (size_t n = 0; n < buffers[b].elements.size(); ++n)
      memcpy(&buffers[b].elements[n], &bytes[b][n * size], size);
  }
  return {buffers.begin() + inputs.size(), buffers.end()};
}

std::string ExpandedKernel::str() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  return text;
}

} // namespace qd::test
