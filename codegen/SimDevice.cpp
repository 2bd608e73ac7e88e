//===- SimDevice.cpp - the sim device: a GPU's code, executed lane by lane -----------------------===//
//
// Purpose: createSimProgram: lowers a module as nvptx and amdgcn do, and gives the LLVM IR that instruction
// selection would get to the executor.
// Input: a verified module after the expansions for `target`.
//
//===----------------------------------------------------------------------===//

#include "codegen/Codegen.h"
#include "codegen/HostProgram.h"
#include "codegen/Interface.h"
#include "codegen/LaunchWatch.h"
#include "codegen/PrintLog.h"
#include "codegen/sim/Sim.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace qd {

namespace {
class SimDevice final : public HostProgram {
public:
  SimDevice(std::unique_ptr<SimProgram> program, std::vector<KernelInterface> kernels, std::unique_ptr<PrintLog> prints,
            const HostOptions &options)
      : program(std::move(program)), kernels(std::move(kernels)), prints(std::move(prints)), options(options) {}

  llvm::Error launch(llvm::StringRef name, std::array<uint32_t, 3> grid, llvm::ArrayRef<HostArg> args) override {
    auto kernel = llvm::find_if(kernels, [&](const KernelInterface &k) { return k.name == name; });
    if (kernel == kernels.end())
      return llvm::createStringError(llvm::formatv("no kernel '{0}' in this module", name));
    llvm::Expected<uint64_t> blocks = countBlocks(grid);
    if (!blocks)
      return blocks.takeError();
    if (kernel->isCooperative && *blocks > maxCooperativeBlocks)
      return llvm::createStringError(
          llvm::formatv("the grid has {0} blocks, sim runs at most {1} of a kernel with 'qd.grid.sync'", *blocks,
                        maxCooperativeBlocks));
    SmallVector<SimArg> parameters;
    for (auto [arg, interface] : llvm::zip_equal(args, kernel->args)) {
      if (!arg.isBuffer) {
        parameters.push_back(SimArg::scalar(arg.bits));
        continue;
      }
      parameters.push_back(SimArg::buffer(arg.data, arg.count * getStorageBytes(interface.type)));
      for (unsigned dim = 0; interface.passesSize && dim < interface.rank; ++dim)
        parameters.push_back(SimArg::scalar(arg.getExtent(dim, interface.rank)));
    }
    LaunchWatch watch(options);
    auto findEnd = [&] { return watch.mustEnd() ? watch.takeError() : llvm::Error::success(); };
    llvm::Error error =
        program->run(name, grid, {kernel->block[0], kernel->block[1], kernel->block[2]}, parameters, findEnd);
    prints->flush();
    return error;
  }

private:
  std::unique_ptr<SimProgram> program;
  std::vector<KernelInterface> kernels;
  std::unique_ptr<PrintLog> prints;
  HostOptions options;
};
} // namespace

std::unique_ptr<HostProgram> createSimProgram(ModuleOp module, const Target &target, const HostOptions &options) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> lowered = lowerToLLVM(module, target, {options.optLevel}, context);
  if (!lowered)
    return nullptr;
  SimOptions simOptions;
  simOptions.chip = target.chip->name.str();
  simOptions.waveSize = target.subgroupSize;
  simOptions.membersMustArrive = true;
  std::vector<KernelInterface> kernels;
  for (KernelOp kernel : module.getOps<KernelOp>()) {
    kernels.push_back(describeKernel(kernel, target));
    simOptions.dynamicSharedBytes =
        std::max<uint64_t>(simOptions.dynamicSharedBytes, kernels.back().dynamicSharedBytes);
  }
  auto prints = std::make_unique<PrintLog>();
  simOptions.print = [log = prints.get()](uint64_t block, llvm::StringRef text,
                                          llvm::function_ref<const uint8_t *(unsigned)> getValues) {
    unsigned bytes = countPrintfBytes(text);
    const uint8_t *values = bytes ? getValues(bytes) : nullptr;
    if (values || !bytes)
      log->add(block, formatPrintf(text, values));
  };
  llvm::Expected<std::unique_ptr<SimProgram>> program = SimProgram::create(*lowered, simOptions);
  if (!program) {
    module.emitError() << "sim of " << target.str() << ": " << llvm::toString(program.takeError());
    return nullptr;
  }
  return std::make_unique<SimDevice>(std::move(*program), std::move(kernels), std::move(prints), options);
}

} // namespace qd
