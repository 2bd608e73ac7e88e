//===----------------------------------------------------------------------===//
// SimProgram: takes a module in, lays out its globals, compiles its functions,
// and binds arguments to a launch.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Compile.h"
#include "codegen/sim/Sim.h"
#include "codegen/sim/Wave.h"
#include <cstring>

using namespace llvm;

namespace qd {

struct SimProgram::Impl {
  sim::Image image;
  SimStats stats;
};

SimProgram::SimProgram(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
SimProgram::~SimProgram() = default;
const SimStats &SimProgram::stats() const { return impl->stats; }

Expected<std::unique_ptr<SimProgram>> SimProgram::create(const Module &module, const SimOptions &options) {
  auto impl = std::make_unique<Impl>();
  sim::Image &image = impl->image;
  image.options = options;
  auto chip = sim::chipByName(options.chip);
  if (!chip)
    return chip.takeError();
  image.chip = *chip;
  const Triple &triple = module.getTargetTriple();
  if (image.chip->nvptx ? !triple.isNVPTX() : !triple.isAMDGCN())
    return createStringError("module for '" + triple.str() + "' does not fit chip " + options.chip);
  image.wave = options.waveSize ? options.waveSize : image.chip->defaultWave;
  if (!(image.wave == 32 && image.chip->wave32) && !(image.wave == 64 && image.chip->wave64))
    return createStringError("waves of " + Twine(image.wave) + " lanes do not exist on " + options.chip);
  if (Error error = sim::ModuleCompiler(module, image).run())
    return error;
  return std::unique_ptr<SimProgram>(new SimProgram(std::move(impl)));
}

namespace {

Error bindArgument(sim::Launch &launch, const sim::Param &param, const SimArg &arg, unsigned number) {
  auto wrong = [&](const Twine &what) {
    return createStringError("argument " + Twine(number) + " of kernel '" + launch.kernel.name +
                             "': " + what);
  };
  uint64_t *words = launch.params.data() + param.word;
  if (param.pointer) {
    if (!arg.isBuffer)
      return wrong("found a scalar, expected a buffer");
    if (arg.bytes < 0 || (arg.bytes && !arg.data) || uint64_t(arg.bytes) > sim::offsetMask >> 2)
      return wrong("found a buffer of " + Twine(arg.bytes) + " bytes without its memory");
    if (param.byValBytes && uint64_t(arg.bytes) != param.byValBytes)
      return wrong("found " + Twine(arg.bytes) + " bytes, expected " + Twine(param.byValBytes));
    if (param.space == sim::SharedSpace || param.space == sim::PrivateSpace)
      return wrong("a pointer into address space " + Twine(param.space) + " cannot be passed");
    if (!arg.data) {
      words[0] = 0;
      return Error::success();
    }
    words[0] = uint64_t(launch.allocations.size()) << sim::allocationShift;
    launch.allocations.push_back({static_cast<uint8_t *>(arg.data), uint64_t(arg.bytes),
                                  param.space != sim::ConstantSpace && !param.byValBytes,
                                  ("the buffer of argument " + Twine(number)).str()});
    return Error::success();
  }
  if (arg.isBuffer)
    return wrong("found a buffer, expected a scalar");
  if (!arg.data && param.pieces.size() == 1) {
    words[0] = arg.bits & sim::lowBits(param.pieces[0].bits);
    return Error::success();
  }
  if (!arg.data)
    return wrong("found a scalar of 64 bits, expected " + Twine(param.bytes) + " bytes of memory");
  if (uint64_t(arg.bytes) != param.bytes)
    return wrong("found " + Twine(arg.bytes) + " bytes, expected " + Twine(param.bytes));
  for (auto [index, piece] : enumerate(param.pieces)) {
    words[index] = 0;
    std::memcpy(&words[index], static_cast<const uint8_t *>(arg.data) + piece.offset,
                divideCeil(piece.bits, 8));
    words[index] &= sim::lowBits(piece.bits);
  }
  return Error::success();
}

} // namespace

Error SimProgram::run(StringRef kernel, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                      ArrayRef<SimArg> args, function_ref<Error()> findEnd) {
  sim::Image &image = impl->image;
  auto found = image.kernels.find(kernel);
  if (found == image.kernels.end())
    return createStringError("the module has no kernel '" + kernel + "'");
  const sim::FunctionCode &code = image.functions[found->second];
  uint64_t threads = 1;
  for (unsigned i = 0; i < 3; ++i) {
    if (!grid[i] || !block[i])
      return createStringError("grid and block of kernel '" + kernel +
                               "' need at least 1 in every dimension");
    threads *= std::min(block[i], 4096u);
  }
  if (threads > 1024)
    return createStringError("blocks of " + Twine(threads) + " threads, expected at most 1024 on " +
                             image.options.chip);
  for (unsigned i = 0; i < 3; ++i)
    if (code.requiredBlock[i] && code.requiredBlock[i] != block[i])
      return createStringError("kernel '" + kernel + "' was compiled for blocks of (" +
                               Twine(code.requiredBlock[0]) + ", " + Twine(code.requiredBlock[1]) + ", " +
                               Twine(code.requiredBlock[2]) + ") threads, found (" + Twine(block[0]) + ", " +
                               Twine(block[1]) + ", " + Twine(block[2]) + ")");
  if (code.mostThreads && (threads < code.leastThreads || threads > code.mostThreads))
    return createStringError("kernel '" + kernel + "' was compiled for blocks of " +
                             Twine(code.leastThreads) + " to " + Twine(code.mostThreads) +
                             " threads, found " + Twine(threads));
  if (args.size() != code.params.size())
    return createStringError("kernel '" + kernel + "' takes " + Twine(code.params.size()) +
                             " arguments, found " + Twine(args.size()));

  sim::Launch launch(image, code);
  launch.findEnd = findEnd;
  launch.grid = grid;
  launch.blockSize = block;
  launch.params.resize(code.words);
  // Block counts, then the block's size; the rest of the hidden arguments is 0.
  launch.implicitArgs.resize(256);
  for (unsigned i = 0; i < 3; ++i) {
    uint16_t size = uint16_t(block[i]);
    std::memcpy(launch.implicitArgs.data() + 4 * i, &grid[i], 4);
    std::memcpy(launch.implicitArgs.data() + 12 + 2 * i, &size, 2);
  }
  uint16_t dimensions = grid[2] * block[2] > 1 ? 3 : grid[1] * block[1] > 1 ? 2 : 1;
  std::memcpy(launch.implicitArgs.data() + 64, &dimensions, 2);
  // The dispatch packet lies behind them.
  uint8_t *packet = launch.implicitArgs.data() + 128;
  for (unsigned i = 0; i < 3; ++i) {
    uint16_t size = uint16_t(block[i]);
    uint32_t items = grid[i] * block[i];
    std::memcpy(packet + 4 + 2 * i, &size, 2);
    std::memcpy(packet + 12 + 4 * i, &items, 4);
  }
  launch.allocations.resize(sim::FirstAllocation);
  launch.allocations[sim::ImplicitArgs] = {launch.implicitArgs.data(), launch.implicitArgs.size(), false,
                                           "the hidden arguments"};
  for (sim::GlobalMemory &global : image.globals)
    launch.allocations.push_back({global.bytes.data(), global.bytes.size(), !global.constant,
                                  "global variable '" + global.name + "'"});
  for (auto [index, arg] : enumerate(args))
    if (Error error = bindArgument(launch, code.params[index], arg, index))
      return error;
  Error error = launch.run();
  impl->stats.waveInstructions = launch.executed;
  return error;
}

} // namespace qd
