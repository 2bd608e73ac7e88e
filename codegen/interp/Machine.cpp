//===- Machine.cpp - steps subgroups, blocks and the grid ------------------------------===//

#include "codegen/interp/Explain.h"

#include "codegen/Interface.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace qd::interp {

/// Blocks that take turns; the others start as these end.
static constexpr unsigned blocksInFlight = 16;
/// Instructions of subgroups between two looks at the clock: a few milliseconds at most.
static constexpr unsigned ticksPerLook = 512;

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

Block &Thread::block() const { return subgroup.block; }
unsigned Thread::index() const { return subgroup.firstThread + lane; }

void Thread::fail(const llvm::Twine &message, ArrayRef<unsigned> operands) const {
  SmallVector<Cause, 2> causes;
  for (unsigned operand : operands)
    causes.push_back({instruction.operands[operand], index()});
  subgroup.fail(instruction, lane, message, causes);
}

//===----------------------------------------------------------------------===//
// Subgroups
//===----------------------------------------------------------------------===//

Subgroup::Subgroup(Block &block, unsigned firstThread)
    : block(block), firstThread(firstThread), size(block.launch.code.subgroupSize) {
  const Code &code = block.launch.code;
  unsigned existing = std::min(size, block.numThreads() - firstThread);
  lanes = llvm::maskTrailingOnes<uint64_t>(existing);
  slots.resize(size_t(code.numSlots) * size);
  for (auto [slot, value] : llvm::zip_equal(code.body.arguments, block.launch.arguments))
    for (unsigned lane = 0; lane < existing; ++lane)
      at(slot, lane) = value;
  frames.push_back({&code.body, 0, lanes, nullptr});
}

void Subgroup::enter(const Instruction &owner, unsigned region, uint64_t active) {
  frames.push_back({&owner.regions[region], 0, active, &owner});
}

void Subgroup::startIteration(const Body &body, uint64_t active) {
  frame().body = &body;
  frame().next = 0;
  frame().active = active;
  ++frame().iteration;
}

void Subgroup::copy(ArrayRef<unsigned> from, ArrayRef<unsigned> to, uint64_t mask) {
  SmallVector<LaneValue, 8> values(from.size());
  for (; mask; mask &= mask - 1) {
    unsigned lane = llvm::countr_zero(mask);
    for (auto [slot, value] : llvm::zip_equal(from, values))
      value = at(slot, lane);
    for (auto [slot, value] : llvm::zip_equal(to, values))
      at(slot, lane) = value;
  }
}

void Subgroup::rememberPoison(ArrayRef<unsigned> from, ArrayRef<unsigned> to, uint64_t mask) {
  // A bound on memory; what exceeds it is only explained less well.
  static constexpr unsigned most = 4096;
  if (!block.launch.checks.poison)
    return;
  for (; mask; mask &= mask - 1) {
    unsigned lane = llvm::countr_zero(mask);
    for (auto [source, target] : llvm::zip_equal(from, to)) {
      if (!at(source, lane).poison || at(target, lane).poison)
        continue;
      block.carriedPoison.erase({target, firstThread + lane});
      if (block.launch.poisonRemembered++ >= most)
        continue;
      Explainer explainer(block, firstThread + lane);
      explainer.explain({source, firstThread + lane});
      block.carriedPoison[{target, firstThread + lane}] = explainer.take();
    }
  }
}

void Subgroup::fail(const Instruction &instruction, unsigned lane, const llvm::Twine &message,
                    ArrayRef<Cause> causes) {
  block.fail(instruction.op, firstThread + lane, message, causes);
}

bool Subgroup::isSpinning() const {
  return llvm::any_of(frames, [&](const Frame &frame) {
    return frame.isIdle && frame.memoryVersion == block.launch.memoryVersion;
  });
}

void Subgroup::run() {
  isPaused = false;
  while (state == State::Ready && !isPaused && !block.launch.failed())
    step();
}

void Subgroup::step() {
  Launch &launch = block.launch;
  const Instruction &instruction = current();
  if (++launch.steps > launch.checks.steps)
    return fail(instruction, llvm::countr_zero(frame().active),
                "does not come to an end: " + llvm::Twine(launch.checks.steps) + " steps since a subgroup ended");
  if (++launch.ticks % ticksPerLook == 0 && launch.watch.mustEnd()) {
    launch.error = llvm::toString(launch.watch.takeError());
    return;
  }
  if (instruction.rule->isCollective)
    return runCollective(instruction);
  ++frame().next;
  if (instruction.rule->control)
    instruction.rule->control(*this, instruction);
  else
    runLanes(instruction);
  if (frames.empty()) {
    state = State::Done;
    launch.steps = 0;
  }
}

void Subgroup::runLanes(const Instruction &instruction) {
  for (uint64_t mask = frame().active; mask && !block.launch.failed(); mask &= mask - 1) {
    unsigned lane = llvm::countr_zero(mask);
    for (auto [slot, value] : llvm::zip_equal(instruction.results, compute(instruction, lane)))
      at(slot, lane) = value;
  }
}

SmallVector<LaneValue, 2> Subgroup::compute(const Instruction &instruction, unsigned lane) {
  const Rule &rule = *instruction.rule;
  SmallVector<LaneValue, 4> in;
  SmallVector<LaneValue, 2> out(instruction.results.size());
  for (unsigned slot : instruction.operands)
    in.push_back(at(slot, lane));
  bool isStrict = rule.ints || rule.floats || rule.strict;
  bool isPoisoned = isStrict && llvm::any_of(in, [](LaneValue value) { return value.poison; });
  Thread thread{*this, instruction, lane, in, out};

  if (!isPoisoned && rule.ints) {
    SmallVector<APInt, 3> ints;
    for (unsigned i = 0; i < in.size(); ++i)
      ints.push_back(toInt(in[i].bits, thread.inType(i)));
    if (MaybeInt result = rule.ints(instruction.op, ints))
      out[0] = LaneValue::of(*result);
  } else if (!isPoisoned && rule.floats) {
    SmallVector<APFloat, 3> floats;
    for (unsigned i = 0; i < in.size(); ++i)
      floats.push_back(toFloat(in[i].bits, thread.inType(i)));
    if (MaybeFloat result = rule.floats(instruction.op, floats))
      out[0] = LaneValue::of(*result);
  } else if (!isPoisoned) {
    rule.thread(thread);
  }
  return out;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Block::Block(Launch &launch, std::array<uint32_t, 3> id)
    : launch(launch), id(id), arrays(launch.buffers.begin(), launch.buffers.end()) {
  auto add = [&](Type type, StringRef name) -> Array & {
    Array &array = arrays.emplace_back();
    array.setShape(getElementType(type), getStaticShape(type));
    array.name = name.str();
    int64_t scalars = array.count() * array.perElement;
    array.storage.resize(scalars * getStorageBytes(array.scalar));
    array.data = array.storage.data();
    array.written.resize(scalars);
    return array;
  };
  for (SharedAllocOp alloc : launch.code.shared)
    add(alloc.getType(), "the shared array");
  for (ConstantGetOp get : launch.code.tables) {
    Array &table = add(get.getType(), "the table");
    llvm::copy(get.getConstant().getBytes(), table.storage.begin());
    table.written.flip();
    table.isSeenByAll = false;
  }
  for (PrivateAllocOp alloc : launch.code.privates)
    for (unsigned thread = 0; thread < numThreads(); ++thread)
      add(alloc.getType(), "the private array").isSeenByAll = false;
  for (unsigned thread = 0; thread < numThreads(); thread += launch.code.subgroupSize)
    subgroups.emplace_back(*this, thread);
}

void Array::setShape(Type element, ArrayRef<int64_t> shape) {
  scalar = getScalarOf(element);
  perElement = getNumScalars(element);
  extents.assign(shape.begin(), shape.end());
  strides.assign(shape.size(), perElement);
  for (int dim = int(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
}

int64_t Array::count() const {
  int64_t all = 1;
  for (int64_t extent : extents)
    all *= extent;
  return all;
}

unsigned Block::numThreads() const { return KernelOp(launch.code.kernel).getNumThreads(); }

uint64_t Block::number() const { return (uint64_t(id[2]) * launch.grid[1] + id[1]) * launch.grid[0] + id[0]; }

bool Block::isDone() const {
  return llvm::all_of(subgroups, [](const Subgroup &s) { return s.state == Subgroup::State::Done; });
}

void Block::passBarrier(bool ordersGlobal) {
  ++sharedBarriers;
  if (!ordersGlobal)
    return;
  ++barriers;
  if (launch.checks.races)
    launch.races.meet(*this);
}

void Block::meet() {
  if (atGrid)
    return;
  Subgroup *first = nullptr;
  unsigned waiting = 0;
  for (Subgroup &subgroup : subgroups) {
    if (subgroup.state == Subgroup::State::Ready)
      return;
    if (subgroup.state == Subgroup::State::Waiting) {
      ++waiting;
      if (!first)
        first = &subgroup;
    }
  }
  if (!first)
    return;
  const Instruction *meeting = &first->current();

  auto reportDetour = [&](Subgroup &subgroup) {
    Explainer explainer(*this, subgroup.firstThread);
    explainer.explainDetour(*meeting, *first);
    explainer.report();
  };
  for (Subgroup &subgroup : subgroups) {
    if (subgroup.state == Subgroup::State::Done) {
      fail(meeting->op, subgroup.firstThread, "is reached by " + llvm::Twine(waiting) + " of the block's " +
                                                  llvm::Twine(subgroups.size()) +
                                                  " subgroups, expected all of them: this thread has ended");
      return reportDetour(subgroup);
    }
    if (&subgroup.current() != meeting) {
      Operation *other = subgroup.current().op;
      fail(meeting->op, subgroup.firstThread,
           "is not reached by all of the block's subgroups: this thread waits at another op, '" +
               other->getName().getStringRef() + "' at " + printLocation(other->getLoc()));
      return reportDetour(subgroup);
    }
  }

  if (TileRule rule = meeting->rule->tile) {
    unsigned size = meeting->scope ? meeting->scope : numThreads();
    for (unsigned thread = 0; thread < numThreads() && !launch.failed(); thread += size) {
      Tile tile(*this, *meeting, thread, size);
      rule(tile);
    }
  }
  if (meeting->rule->isBarrier)
    passBarrier(!isa<BlockSyncSharedOp>(meeting->op));
  if (meeting->rule->isGridWide) {
    atGrid = meeting;
    return;
  }
  for (Subgroup &subgroup : subgroups)
    subgroup.resume();
}

void Block::leaveGrid() {
  atGrid = nullptr;
  for (Subgroup &subgroup : subgroups)
    subgroup.resume();
}

std::string printValue(LaneValue value, Type type) {
  if (value.poison)
    return "poison";
  if (type.isInteger(1))
    return value.bits ? "true" : "false";
  SmallString<32> text;
  if (isa<FloatType>(type))
    toFloat(value.bits, type).toString(text);
  else
    toInt(value.bits, type).toStringSigned(text);
  return text.str().str();
}

LaneValue &Block::at(const Cause &cause) {
  Subgroup &subgroup = subgroups[cause.thread / launch.code.subgroupSize];
  return subgroup.at(cause.slot, cause.thread - subgroup.firstThread);
}

void Block::fail(Operation *op, unsigned thread, const llvm::Twine &message, ArrayRef<Cause> causes) {
  if (launch.failed())
    return;
  llvm::raw_string_ostream(launch.error)
      << printLocation(op->getLoc()) << ": '" << op->getName() << "' op " << message << " (kernel '"
      << KernelOp(launch.code.kernel).getSymName() << "', " << launch.printPlace(number(), thread) << ")";
  Explainer explainer(*this, thread);
  for (const Cause &cause : causes)
    explainer.explain(cause);
  explainer.report();
}

//===----------------------------------------------------------------------===//
// The grid
//===----------------------------------------------------------------------===//

/// Lets every subgroup that can run take its turn; whether one of them did more than wait.
static bool takeTurns(std::list<Block> &blocks) {
  SmallVector<const Subgroup *> ran;
  for (Block &block : blocks) {
    for (Subgroup &subgroup : block.subgroups) {
      if (subgroup.state != Subgroup::State::Ready)
        continue;
      subgroup.run();
      ran.push_back(&subgroup);
    }
    block.meet();
  }
  return !llvm::all_of(ran, [](const Subgroup *subgroup) { return subgroup->isSpinning(); });
}

static void reportEndlessWait(std::list<Block> &blocks) {
  for (Block &block : blocks)
    for (Subgroup &subgroup : block.subgroups)
      if (subgroup.state == Subgroup::State::Ready && subgroup.isSpinning()) {
        const Frame &frame = subgroup.frame();
        return subgroup.fail(*frame.owner, llvm::countr_zero(frame.active),
                             "waits without end: all other threads that have started wait too or have ended");
      }
}

std::string Launch::printThread(unsigned thread) const {
  KernelOp kernel = code.kernel;
  unsigned x = kernel.getBlockDim(0), y = kernel.getBlockDim(1);
  return llvm::formatv("thread ({0}, {1}, {2})", thread % x, thread / x % y, thread / x / y);
}

std::string Launch::printBlock(uint64_t block) const {
  return llvm::formatv("block ({0}, {1}, {2})", block % grid[0], block / grid[0] % grid[1], block / grid[0] / grid[1]);
}

std::string Launch::printPlace(uint64_t block, unsigned thread) const {
  return printBlock(block) + ", " + printThread(thread);
}

/// Lets the blocks go on once all of them wait at the same op of the grid.
void Launch::meetBlocks(std::list<Block> &blocks) {
  auto waits = [](const Block &block) { return block.atGrid != nullptr; };
  auto first = llvm::find_if(blocks, waits);
  if (first == blocks.end())
    return;
  std::string message = "is not reached by all blocks of the grid: ";
  if (ended)
    return first->fail(first->atGrid->op, 0, message + printBlock(*ended) + " has ended");
  for (Block &block : blocks)
    if (block.atGrid && block.atGrid != first->atGrid)
      return first->fail(first->atGrid->op, 0, message + printBlock(block.number()) + " waits at another one, at " +
                                                   printLocation(block.atGrid->op->getLoc()));
  if (!llvm::all_of(blocks, waits))
    return;
  if (checks.races)
    races.meetAll();
  for (Block &block : blocks)
    block.leaveGrid();
}

void Launch::run() {
  uint64_t numBlocks = uint64_t(grid[0]) * grid[1] * grid[2], started = 0;
  if (code.isCooperative && numBlocks > maxCooperativeBlocks) {
    error = llvm::formatv("the grid has {0} blocks, interp runs at most {1} of a kernel with 'qd.grid.sync'", numBlocks,
                          maxCooperativeBlocks);
    return;
  }
  uint64_t mostInFlight = code.isCooperative ? numBlocks : blocksInFlight;
  std::list<Block> blocks;
  while (!failed()) {
    while (blocks.size() < mostInFlight && started < numBlocks) {
      std::array<uint32_t, 3> id = {uint32_t(started % grid[0]), uint32_t(started / grid[0] % grid[1]),
                                    uint32_t(started / grid[0] / grid[1])};
      blocks.emplace_back(*this, id);
      ++started;
    }
    if (blocks.empty())
      return;
    bool progress = takeTurns(blocks);
    if (!progress && !failed())
      reportEndlessWait(blocks);
    blocks.remove_if([&](const Block &block) {
      if (block.isDone()) {
        races.forget(block);
        ended = block.number();
      }
      return block.isDone();
    });
    if (code.isCooperative && !failed())
      meetBlocks(blocks);
  }
}

} // namespace qd::interp
