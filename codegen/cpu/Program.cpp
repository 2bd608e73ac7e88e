//===- Program.cpp - the cpu device --------------------------------------------------------------------------------===//
//
// Purpose: implements createCPUProgram and emitCPUText. IR for all kernels is made at once, so that what is not
// supported is known before a launch; a kernel is optimised and compiled at its first launch.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CPU.h"

#include "codegen/HostProgram.h"
#include "codegen/Interface.h"
#include "codegen/LaunchWatch.h"
#include "codegen/TargetMachine.h"
#include "codegen/Waits.h"
#include "codegen/cpu/KernelEmitter.h"
#include "codegen/cpu/Native.h"
#include "codegen/cpu/Reports.h"
#include "codegen/cpu/ThreadPool.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/FormatVariadic.h"
#include <cfenv>
#include <map>
#include <tuple>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

using namespace mlir;

namespace qd {

namespace {
/// What a launch must know of a kernel beside its code.
struct KernelFacts {
  bool hasCoroutines = false;
  bool isCooperative = false;
  bool hasAsserts = false;
  bool mayWait = false; ///< for what other blocks write
  bool hasTallies = false;
  unsigned sharedBytes = 0, stateOffset = 0;
  std::array<unsigned, 3> block = {};
  std::array<bool, 3> narrowDims = {}; ///< dimensions in which an i32 numbers all threads
};
} // namespace

/// Emits one kernel.
static LogicalResult emitKernel(KernelOp kernel, const Target &target, const cpu::Processor &processor,
                                unsigned optLevel, llvm::Module &module, KernelFacts &facts,
                                DebugInfo *debug = nullptr) {
  if (failed(checkParameters(kernel, describeKernel(kernel, target), target)))
    return failure();
  cpu::prepare(module, processor);
  KernelEmitter emitter(kernel, target, processor.features, module, /*mayUnroll=*/optLevel > 1, debug);
  if (failed(emitter.emit()))
    return failure();
  facts.hasCoroutines |= emitter.usesCoroutines();
  facts.isCooperative = emitter.isCooperative();
  facts.hasAsserts |= emitter.hasAsserts();
  facts.mayWait = mayWait(kernel);
  facts.hasTallies = emitter.hasTallies();
  facts.sharedBytes = emitter.getSharedBytes();
  facts.stateOffset = emitter.getStateOffset();
  llvm::copy(emitter.getNarrowDims(), facts.narrowDims.begin());
  facts.block = {unsigned(kernel.getBlockDim(0)), unsigned(kernel.getBlockDim(1)), unsigned(kernel.getBlockDim(2))};
  return success();
}

static LogicalResult verify(Operation *op, const llvm::Module &module) {
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream))
    return op->emitError() << "internal error: invalid LLVM IR for cpu: " << problem;
  return success();
}

static FailureOr<cpu::Processor> findProcessor(ModuleOp module, unsigned optLevel, llvm::StringRef cpu) {
  llvm::Expected<std::shared_ptr<llvm::TargetMachine>> machine = cpu::acquireMachine(optLevel, cpu);
  if (!machine)
    return module.emitError() << "no code for this machine: " << llvm::toString(machine.takeError());
  return cpu::describe(std::move(*machine));
}

bool isThisMachine(const Target &target) { return target.chip == &getDefaultChip(Backend::CPU); }

/// What a launch needs to know, as a constant beside the kernel's code (docs/cpu.md).
static void addFacts(KernelOp kernel, const Target &target, const KernelFacts &facts, llvm::Module &module) {
  uint32_t words[] = {facts.sharedBytes, facts.stateOffset,
                      uint32_t(llvm::divideCeil(kernel.getNumThreads(), target.subgroupSize)), facts.isCooperative};
  llvm::Constant *value = llvm::ConstantDataArray::get(module.getContext(), words);
  new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage, value,
                           cpu::factsPrefix + kernel.getSymName());
}

FailureOr<std::string> emitCPUText(ModuleOp module, const Target &target, const CodegenOptions &options,
                                   CPUText form) {
  FailureOr<cpu::Processor> processor = isThisMachine(target) ? findProcessor(module, options.optLevel, options.cpu)
                                                              : cpu::describeForeign(target.chip->name);
  if (failed(processor))
    return failure();
  llvm::LLVMContext context;
  llvm::Module code("qir", context);
  bool hasCoroutines = false;
  std::optional<DebugInfo> debug;
  if (options.debug)
    debug.emplace(module, code, /*isOptimised=*/options.optLevel > 0);
  for (KernelOp kernel : module.getOps<KernelOp>()) {
    KernelFacts facts;
    if (failed(emitKernel(kernel, target, *processor, options.optLevel, code, facts, debug ? &*debug : nullptr)))
      return failure();
    addFacts(kernel, target, facts, code);
    hasCoroutines |= facts.hasCoroutines;
  }
  if (debug)
    debug->finish();
  if (failed(verify(module, code)))
    return failure();
  cpu::optimise(code, *processor, options.optLevel, hasCoroutines);

  if (form == CPUText::LLVM) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    code.print(stream, nullptr);
    return text;
  }
  llvm::Expected<std::string> assembly = runCodeGenerator(code, *processor->machine, llvm::CodeGenFileType::AssemblyFile);
  if (!assembly)
    return module.emitError() << llvm::toString(assembly.takeError());
  return std::move(*assembly);
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

namespace {
/// What a worker needs while it runs blocks of a kernel, or a block of a cooperative one; generated code reads the
/// first two members.
struct WorkerMemory {
  void *shared;
  void **frames;
  std::vector<void *> frameStorage;

  WorkerMemory(unsigned sharedBytes, unsigned subgroups) : frameStorage(subgroups, nullptr) {
    size_t bytes = llvm::alignTo(std::max(sharedBytes, 1u), cpu::sharedAlignment);
    shared = std::aligned_alloc(cpu::sharedAlignment, bytes);
    frames = frameStorage.data();
  }
  ~WorkerMemory() {
    std::free(shared);
    for (void *frame : frameStorage)
      std::free(frame);
  }
};

using Entry = void (*)(const void *launch, const void *worker, uint64_t begin, uint64_t end);

struct Kernel;

/// What a worker reads of a launch, in a cache line of its own: the others hold what most kernels do not need.
struct alignas(64) Blocks {
  Entry entry = nullptr;
  const void *record = nullptr;
  std::unique_ptr<WorkerMemory> *memories = nullptr;
  const Kernel *kernel = nullptr;
  cpu::Reports *reports = nullptr;
  LaunchWatch *watch = nullptr;
  bool hasAsserts = false, isWatched = false;

  bool operator()(uint64_t begin, uint64_t end, unsigned worker) const;
  bool operator==(const Blocks &other) const {
    auto all = [](const Blocks &b) {
      return std::tuple(b.entry, b.record, b.memories, b.kernel, b.reports, b.watch, b.hasAsserts, b.isWatched);
    };
    return all(*this) == all(other);
  }
};

/// Of one launch. The next one has the same, and each worker its part in its caches; what stays the same is not written.
struct LaunchMemory {
  Blocks blocks;
  alignas(64) llvm::SmallVector<uint64_t, 30> record;
  std::vector<std::unique_ptr<WorkerMemory>> workers;

  explicit LaunchMemory(unsigned threads) : workers(threads) {}
};

struct Kernel {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module; ///< until the first launch
  KernelFacts facts;
  unsigned subgroups = 0;
  std::vector<unsigned> ranks; ///< by argument: a buffer's dimensions, 0 for a scalar

  std::once_flag compiled;
  Entry entry = nullptr;
  std::string problem;

  cpu::ThreadPool::Pace pace;
  std::mutex mutex;
  std::vector<std::unique_ptr<LaunchMemory>> idle;

  std::unique_ptr<LaunchMemory> acquire(unsigned threads) {
    std::lock_guard<std::mutex> lock(mutex);
    if (idle.empty())
      return std::make_unique<LaunchMemory>(threads);
    std::unique_ptr<LaunchMemory> memory = std::move(idle.back());
    idle.pop_back();
    return memory;
  }
  void release(std::unique_ptr<LaunchMemory> memory) {
    std::lock_guard<std::mutex> lock(mutex);
    idle.push_back(std::move(memory));
  }
};

/// Round to nearest and no flushing of subnormals, whatever the calling thread is set to. On x86 generated code only
/// knows one of the two control words, and setting the other one takes longer than a small block.
class StrictFloats {
#ifdef __x86_64__
public:
  StrictFloats() : saved(_mm_getcsr()) { set(0x1F80); }
  ~StrictFloats() { set(saved); }

private:
  void set(unsigned word) {
    if (_mm_getcsr() != word)
      _mm_setcsr(word);
  }
  unsigned saved;
#else
public:
  StrictFloats() {
    std::fegetenv(&saved);
    std::fesetenv(FE_DFL_ENV);
  }
  ~StrictFloats() { std::fesetenv(&saved); }

private:
  std::fenv_t saved;
#endif
};

/// Programs with the same number of threads share one pool while any of them lives.
std::shared_ptr<cpu::ThreadPool> getPool(unsigned threads) {
  static std::mutex mutex;
  static std::map<unsigned, std::weak_ptr<cpu::ThreadPool>> pools;
  std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<cpu::ThreadPool> &slot = pools[threads];
  std::shared_ptr<cpu::ThreadPool> pool = slot.lock();
  if (!pool)
    slot = pool = std::make_shared<cpu::ThreadPool>(threads);
  return pool;
}

class CPUProgram : public HostProgram {
public:
  CPUProgram(const HostOptions &options) : options(options) {}

  LogicalResult build(ModuleOp module, const Target &target);
  llvm::Error makeCode() override;
  llvm::Error launch(StringRef name, std::array<uint32_t, 3> grid, ArrayRef<HostArg> args) override;

private:
  HostOptions options;
  cpu::Processor processor;
  std::mutex compiling;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  llvm::StringMap<Kernel> kernels;
  std::once_flag pooled;
  std::shared_ptr<cpu::ThreadPool> pool;

  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> makeObject(Kernel &kernel);
  void compile(Kernel &kernel, StringRef name);
  llvm::Error makeCode(Kernel &kernel, StringRef name);
  llvm::Error runTogether(Kernel &kernel, StringRef name, const void *record, uint64_t blocks, cpu::Reports &reports,
                          LaunchWatch &watch);
  void runApart(Kernel &kernel, ArrayRef<uint64_t> record, uint64_t blocks, cpu::Reports &reports, LaunchWatch &watch);
};
} // namespace

LogicalResult CPUProgram::build(ModuleOp module, const Target &target) {
  FailureOr<cpu::Processor> found = findProcessor(module, options.optLevel, options.cpu);
  if (failed(found))
    return failure();
  processor = std::move(*found);
  for (KernelOp op : module.getOps<KernelOp>()) {
    Kernel &kernel = kernels[op.getSymName()];
    kernel.context = std::make_unique<llvm::LLVMContext>();
    kernel.module = std::make_unique<llvm::Module>(op.getSymName(), *kernel.context);
    if (failed(emitKernel(op, target, processor, options.optLevel, *kernel.module, kernel.facts)) ||
        failed(verify(op, *kernel.module)))
      return failure();
    kernel.subgroups = llvm::divideCeil(op.getNumThreads(), target.subgroupSize);
    for (Type type : op.getBodyBlock().getArgumentTypes())
      kernel.ranks.push_back(isa<BufferType>(type) ? cast<BufferType>(type).getRank() : 0);
  }
  llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> createdJIT = cpu::createJIT(processor.machine);
  if (!createdJIT)
    return module.emitError() << "no code for this machine: " << llvm::toString(createdJIT.takeError());
  jit = std::move(*createdJIT);
  return success();
}

/// The kernel's object file, from the store if it is there.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> CPUProgram::makeObject(Kernel &kernel) {
  llvm::TargetMachine &machine = *processor.machine;
  llvm::SmallString<0> key;
  if (options.store) {
    llvm::raw_svector_ostream stream(key);
    stream << "cpu object 1\n" << machine.getTargetCPU() << '\n' << machine.getTargetFeatureString() << '\n'
           << options.optLevel << kernel.facts.hasCoroutines << '\n';
    llvm::WriteBitcodeToFile(*kernel.module, stream);
    if (std::optional<std::string> code = options.store->load(key))
      return llvm::MemoryBuffer::getMemBufferCopy(*code);
  }
  cpu::optimise(*kernel.module, processor, options.optLevel, kernel.facts.hasCoroutines);
  llvm::Expected<std::string> object = runCodeGenerator(*kernel.module, machine, llvm::CodeGenFileType::ObjectFile);
  if (!object)
    return object.takeError();
  if (options.store)
    options.store->store(key, *object);
  return llvm::MemoryBuffer::getMemBufferCopy(*object);
}

void CPUProgram::compile(Kernel &kernel, StringRef name) {
  std::lock_guard<std::mutex> lock(compiling);
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> object = makeObject(kernel);
  kernel.module.reset();
  kernel.context.reset();
  if (!object) {
    kernel.problem = llvm::toString(object.takeError());
    return;
  }
  if (llvm::Error error = jit->addObjectFile(std::move(*object))) {
    kernel.problem = llvm::toString(std::move(error));
    return;
  }
  llvm::Expected<llvm::orc::ExecutorAddr> address = jit->lookup((cpu::entryPrefix + name).str());
  if (address)
    kernel.entry = address->toPtr<Entry>();
  else
    kernel.problem = llvm::toString(address.takeError());
}

/// Compiles a kernel unless that has been done.
llvm::Error CPUProgram::makeCode(Kernel &kernel, StringRef name) {
  std::call_once(kernel.compiled, [&] { compile(kernel, name); });
  return kernel.entry ? llvm::Error::success()
                      : llvm::createStringError(llvm::formatv("kernel '{0}' cannot run on cpu: {1}", name, kernel.problem));
}

llvm::Error CPUProgram::makeCode() {
  for (auto &entry : kernels)
    if (llvm::Error error = makeCode(entry.second, entry.first()))
      return error;
  return llvm::Error::success();
}

/// Runs blocks of a kernel, which may leave early where it has asserts or the launch is watched.
static void runReporting(bool mayLeave, cpu::Reports &reports, llvm::function_ref<void()> blocks) {
  if (mayLeave)
    reports.run(blocks);
  else
    blocks();
}

/// Calls `run` with parts of a range of blocks that take about a millisecond, until the launch has to end.
static void runWatched(uint64_t begin, uint64_t end, LaunchWatch &watch, llvm::function_ref<void(uint64_t, uint64_t)> run) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds enough(500);
  constexpr uint64_t few = 16;
  for (uint64_t part = few; begin < end && !watch.mustEnd();) {
    uint64_t next = begin + std::min(part, end - begin);
    Clock::time_point start = Clock::now();
    run(begin, next);
    begin = next;
    if (Clock::now() - start < enough)
      part *= 2;
  }
}

bool Blocks::operator()(uint64_t begin, uint64_t end, unsigned worker) const {
  StrictFloats strict;
  std::unique_ptr<WorkerMemory> &memory = memories[worker];
  if (!memory)
    memory = std::make_unique<WorkerMemory>(kernel->facts.sharedBytes, kernel->subgroups);
  if (!hasAsserts && !isWatched) {
    entry(record, memory.get(), begin, end);
    return true;
  }
  auto enter = [&](uint64_t first, uint64_t last) { entry(record, memory.get(), first, last); };
  reports->run([&] {
    if (isWatched)
      runWatched(begin, end, *watch, enter);
    else
      enter(begin, end);
  });
  return !reports->isOver();
}

/// Runs blocks that wait for none, or for earlier ones.
void CPUProgram::runApart(Kernel &kernel, ArrayRef<uint64_t> record, uint64_t blocks, cpu::Reports &reports, LaunchWatch &watch) {
  std::unique_ptr<LaunchMemory> memory = kernel.acquire(pool->getNumThreads());
  if (record != ArrayRef<uint64_t>(memory->record))
    memory->record.assign(record.begin(), record.end());
  Blocks body;
  body.entry = kernel.entry;
  body.record = memory->record.data();
  body.memories = memory->workers.data();
  body.kernel = &kernel;
  body.reports = &reports;
  body.watch = &watch;
  body.hasAsserts = kernel.facts.hasAsserts;
  body.isWatched = watch.isNeeded();
  if (!(body == memory->blocks))
    memory->blocks = body;
  auto order = kernel.facts.mayWait ? cpu::ThreadPool::Order::Ascending : cpu::ThreadPool::Order::Parts;
  // Adding a worker's sums to memory takes a few microseconds where others have added theirs.
  constexpr std::chrono::microseconds worthAdding(40);
  pool->run(blocks, order, kernel.pace, memory->blocks, [&] { watch.mustEnd(); },
            kernel.facts.hasTallies ? worthAdding : std::chrono::microseconds(0));
  kernel.release(std::move(memory));
}

/// Takes all blocks of a grid from one `qd.grid.sync` to the next; some end before where an assert fails.
llvm::Error CPUProgram::runTogether(Kernel &kernel, StringRef name, const void *record, uint64_t blocks,
                                    cpu::Reports &reports, LaunchWatch &watch) {
  if (blocks > maxCooperativeBlocks)
    return llvm::createStringError(
        llvm::formatv("the grid has {0} blocks, cpu runs at most {1} of a kernel with 'qd.grid.sync'", blocks,
                      maxCooperativeBlocks));
  std::vector<std::unique_ptr<WorkerMemory>> memories;
  std::vector<const WorkerMemory *> addresses;
  std::vector<cpu::BlockState *> states;
  for (uint64_t block = 0; block < blocks; ++block) {
    memories.push_back(std::make_unique<WorkerMemory>(kernel.facts.sharedBytes, kernel.subgroups));
    addresses.push_back(memories.back().get());
    if (!memories.back()->shared)
      return llvm::createStringError(llvm::formatv("no host memory for {0} blocks of kernel '{1}' at once", blocks, name));
    auto *state = reinterpret_cast<cpu::BlockState *>(static_cast<char *>(memories.back()->shared) +
                                                      kernel.facts.stateOffset);
    *state = {};
    states.push_back(state);
  }
  auto isAt = [](cpu::Progress progress) {
    return [progress](const cpu::BlockState *state) { return state->progress == progress; };
  };
  while (true) {
    auto goOn = [&](uint64_t begin, uint64_t end, unsigned) {
      StrictFloats strict;
      runReporting(kernel.facts.hasAsserts || watch.isNeeded(), reports, [&] {
        for (uint64_t block = begin; block < end; ++block)
          if (states[block]->progress == cpu::Progress::NotStarted || states[block]->progress == cpu::Progress::Running)
            kernel.entry(record, addresses.data(), block, block + 1);
      });
      return !reports.isOver();
    };
    pool->run(blocks, cpu::ThreadPool::Order::Ascending, kernel.pace, goOn, [&] { watch.mustEnd(); });
    if (reports.hasFailed())
      return llvm::Error::success();
    if (llvm::any_of(states, isAt(cpu::Progress::Running)) && !watch.mustEnd())
      continue;
    uint64_t ended = llvm::count_if(states, isAt(cpu::Progress::Done));
    if (ended == blocks || watch.mustEnd())
      return llvm::Error::success();
    if (ended)
      return llvm::createStringError(llvm::formatv(
          "'qd.grid.sync' of kernel '{0}' is reached by {1} of the grid's {2} blocks, the others have ended", name,
          blocks - ended, blocks));
    for (cpu::BlockState *state : states) {
      ++state->phase;
      state->atGrid = 0;
      state->progress = cpu::Progress::Running;
    }
  }
}

llvm::Error CPUProgram::launch(StringRef name, std::array<uint32_t, 3> grid, ArrayRef<HostArg> args) {
  auto found = kernels.find(name);
  if (found == kernels.end())
    return llvm::createStringError(llvm::formatv("no kernel '{0}'", name));
  Kernel &kernel = found->second;
  if (args.size() != kernel.ranks.size())
    return llvm::createStringError(
        llvm::formatv("kernel '{0}' takes {1} arguments, found {2}", name, kernel.ranks.size(), args.size()));
  if (llvm::Error error = makeCode(kernel, found->first()))
    return error;

  llvm::SmallVector<uint64_t, 64> record(cpu::recordHeader / 8 + args.size() * (cpu::recordArg / 8));
  std::memcpy(record.data(), grid.data(), sizeof(grid));
  LaunchWatch watch(options);
  cpu::Reports reports(watch);
  record[cpu::recordReports / 8] = reinterpret_cast<uintptr_t>(&reports);
  uint64_t *slot = record.data() + cpu::recordHeader / 8;
  for (auto [arg, rank] : llvm::zip_equal(args, kernel.ranks)) {
    if (arg.isBuffer != (rank != 0))
      return llvm::createStringError(llvm::formatv("kernel '{0}': a buffer stands for a scalar or the reverse", name));
    slot[0] = arg.isBuffer ? reinterpret_cast<uintptr_t>(arg.data) : arg.bits;
    for (unsigned dim = 0; dim < rank; ++dim)
      slot[1 + dim] = arg.getExtent(dim, rank);
    slot += cpu::recordArg / 8;
  }

  llvm::Expected<uint64_t> blocks = countBlocks(grid);
  if (!blocks)
    return blocks.takeError();
  for (unsigned dim = 0; dim < 3; ++dim) {
    constexpr uint64_t limit = uint64_t(1) << 31;
    uint64_t number = uint64_t(grid[dim]) * (kernel.facts.narrowDims[dim] ? kernel.facts.block[dim] : 1);
    if (number > limit)
      return llvm::createStringError(
          llvm::formatv("kernel '{0}': {1} {2} along {3} exceed what an i32 numbers, 2147483648", name, number,
                        kernel.facts.narrowDims[dim] ? "threads" : "blocks", StringRef("xyz").substr(dim, 1)));
  }
  if (!*blocks)
    return llvm::Error::success();
  std::call_once(pooled, [&] {
    pool = getPool(options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency()));
  });
  if (kernel.facts.isCooperative) {
    if (llvm::Error error = runTogether(kernel, name, record.data(), *blocks, reports, watch))
      return error;
  } else {
    runApart(kernel, record, *blocks, reports, watch);
  }
  reports.prints.flush();
  if (!reports.hasFailed())
    return watch.takeError();
  auto place = [](uint64_t number, auto x, auto y) {
    return llvm::formatv("({0}, {1}, {2})", number % x, number / x % y, number / x / y).str();
  };
  return llvm::createStringError(reports.message + ("block " + place(reports.block, grid[0], grid[1])) + ", thread " +
                                 place(reports.thread, kernel.facts.block[0], kernel.facts.block[1]) + ")");
}

std::unique_ptr<HostProgram> createCPUProgram(ModuleOp module, const Target &target, const HostOptions &options) {
  auto program = std::make_unique<CPUProgram>(options);
  if (failed(program->build(module, target)))
    return nullptr;
  return program;
}

} // namespace qd
