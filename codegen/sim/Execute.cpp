//===----------------------------------------------------------------------===//
// Runs waves, blocks and launches: divergence, calls, barriers, scheduling.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Wave.h"
#include "llvm/ADT/bit.h"
#include <deque>

using namespace llvm;

namespace qd::sim {

namespace {
constexpr uint64_t sliceOperations = 4096;
constexpr unsigned yieldTurns = 32;
constexpr unsigned idleTurns = 2048;
constexpr unsigned holdBranches = 256;
constexpr unsigned idleRounds = 64;
constexpr unsigned mostBlocks = 4096;
constexpr uint64_t usualBytes = uint64_t(256) << 20, mostBytes = uint64_t(2) << 30; // of all blocks in flight
constexpr unsigned deepestCall = 256;
} // namespace

Wave::Wave(Launch &launch, Block &block, unsigned index, unsigned lanes)
    : launch(launch), block(block), image(launch.image), width(launch.image.wave), index(index),
      full(lowBits(width)), existing(lowBits(lanes)), live(existing), mask(live) {
  const auto &size = launch.blockSize;
  for (unsigned l = 0; l < width; ++l) {
    uint64_t linear = uint64_t(index) * width + l;
    tid[0][l] = linear % size[0];
    tid[1][l] = linear / size[0] % size[1];
    tid[2][l] = linear / size[0] / size[1];
  }
}

Wave::~Wave() { launch.spareWords.push_back(std::move(words)); }

void Wave::fail(const Op &op, unsigned lane, const Twine &what) { fail(lane, what, ": " + image.texts[op.text]); }

void Wave::fail(unsigned lane, const Twine &what, const Twine &behind) {
  stop = true;
  if (!launch.error.empty())
    return;
  auto triple = [](uint64_t x, uint64_t y, uint64_t z) {
    return ("(" + Twine(x) + ", " + Twine(y) + ", " + Twine(z) + ")").str();
  };
  std::string race = launch.raceNote.empty() ? "" : " (after a race: " + launch.raceNote + ")";
  launch.error = (what + race + " in kernel '" + launch.kernel.name + "', block " +
                  triple(block.id[0], block.id[1], block.id[2]) + ", thread " +
                  triple(tid[0][lane], tid[1][lane], tid[2][lane]) + behind)
                     .str();
}

void Wave::noteRace(const Op &op, uint64_t offset, const char *verb) {
  if (!launch.raceNote.empty())
    return;
  const LastWrite &last = block.lastWrites[offset];
  launch.raceNote = ("wave " + Twine(index) + " " + verb + " byte " + Twine(offset) +
                     " of shared memory by " + image.texts[op.text] + ", which wave " + Twine(last.wave) +
                     " wrote by " + image.texts[last.text] + " with no barrier between")
                        .str();
}

bool Wave::needsValue(const Op &op, Ref r, const char *use) {
  uint64_t bad = poisonOf(r) & mask;
  if (!bad)
    return true;
  fail(op, countr_zero(bad), Twine("poison used as ") + use);
  return false;
}

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

void Wave::selectFrame() {
  Frame &top = frames.back();
  fn = top.fn;
  regs = words.data() + top.base * width;
  poison = poisons.data() + top.base;
}

void Wave::start(const FunctionCode &kernel) {
  frames.emplace_back();
  frames.back().fn = &kernel;
  // Register files are large: one that a wave leaves serves the next as it is.
  if (!launch.spareWords.empty()) {
    words = std::move(launch.spareWords.back());
    launch.spareWords.pop_back();
  }
  words.resize(size_t(kernel.words) * width);
  poisons.assign(kernel.words, ~uint64_t(0));
  growPrivate(kernel.privateBytes);
  selectFrame();
  for (const Param &param : kernel.params)
    for (unsigned i = 0; i < param.pieces.size(); ++i) {
      std::fill_n(out(param.word + i), width, launch.params[param.word + i]);
      poison[param.word + i] = 0;
    }
}

void Wave::call(const Op &op) {
  if (frames.size() > deepestCall)
    return fail(op, countr_zero(mask), "calls nest deeper than " + Twine(deepestCall));
  const FunctionCode &callee = image.functions[op.imm];
  const Frame &caller = frames.back();
  size_t callerBase = caller.base;
  Frame frame;
  frame.fn = &callee;
  frame.base = callerBase + caller.fn->words;
  frame.returnPc = pc;
  frame.callMask = mask;
  frame.result = op.dst;
  frame.privateBase = caller.privateBase + caller.fn->privateBytes;
  words.resize((frame.base + callee.words) * width);
  poisons.resize(frame.base + callee.words);
  std::fill(poisons.begin() + frame.base, poisons.end(), ~uint64_t(0));
  growPrivate(frame.privateBase + callee.privateBytes);
  selectFrame(); // the words may have moved
  uint64_t *target = words.data() + frame.base * width;
  for (unsigned i = 0; i < op.nargs; ++i) {
    std::copy_n(val(arg(op, i)), width, target + size_t(i) * width);
    poisons[frame.base + i] = poisonOf(arg(op, i));
  }
  frames.push_back(std::move(frame));
  selectFrame();
  pc = 0;
}

void Wave::ret(const Op &op) {
  if (frames.size() == 1)
    return exitLanes();
  Frame &frame = frames.back();
  const Frame &caller = frames[frames.size() - 2];
  for (unsigned i = 0; i < op.nargs; ++i) {
    size_t slot = caller.base + frame.result + i;
    const uint64_t *from = val(arg(op, i));
    uint64_t *to = words.data() + slot * width;
    each([&](unsigned l) { to[l] = from[l]; });
    poisons[slot] = (poisons[slot] & ~mask) | (poisonOf(arg(op, i)) & mask);
  }
  if (!frame.ready.empty() || !frame.parked.empty())
    return resumeNext();
  pc = frame.returnPc;
  mask = frame.callMask & live;
  frames.pop_back();
  words.resize((frames.back().base + frames.back().fn->words) * width);
  selectFrame();
  if (!mask)
    resumeNext();
}

void Wave::exitLanes() {
  live &= ~mask;
  // Lanes that wait for these need wait no longer.
  Frame &frame = frames.back();
  for (const Fragment &fragment : std::exchange(frame.parked, {}))
    addReady(fragment.pc, fragment.mask);
  if (!live) {
    state = Done;
    stop = true;
    launch.progress();
    return;
  }
  resumeNext();
}

//===----------------------------------------------------------------------===//
// Divergence
//===----------------------------------------------------------------------===//

void Wave::takeEdge(const Edge &edge, uint64_t lanes) {
  const Copy *copy = fn->copies.data() + edge.copies;
  for (const Copy *end = copy + edge.copyCount; copy != end; ++copy) {
    const uint64_t *from = val(copy->src);
    uint64_t *to = out(copy->dst);
    eachOf(lanes, [&](unsigned l) { to[l] = from[l]; });
    poison[copy->dst] = (poison[copy->dst] & ~lanes) | (poisonOf(copy->src) & lanes);
  }
}

void Wave::addReady(uint32_t target, uint64_t lanes) {
  auto &ready = frames.back().ready;
  auto at = ready.end();
  while (at != ready.begin() && (at - 1)->pc < target)
    --at;
  if (at != ready.begin() && (at - 1)->pc == target)
    (at - 1)->mask |= lanes;
  else
    ready.insert(at, {target, lanes});
}

void Wave::goTo(uint32_t target) {
  auto &ready = frames.back().ready;
  if (ready.empty() || target < ready.back().pc) {
    pc = target;
    return;
  }
  if (hold) {
    --hold;
    for (size_t i = 0; i < ready.size(); ++i)
      if (ready[i].pc == target) {
        mask |= ready[i].mask;
        ready.erase(ready.begin() + i);
        break;
      }
    pc = target;
    return;
  }
  addReady(target, mask);
  resumeNext();
}

void Wave::split(const Edge &first, uint64_t firstLanes, const Edge &second, uint64_t secondLanes) {
  takeEdge(first, firstLanes);
  takeEdge(second, secondLanes);
  addReady(first.pc, firstLanes);
  addReady(second.pc, secondLanes);
  resumeNext();
}

void Wave::resumeNext() {
  Frame &frame = frames.back();
  if (!frame.ready.empty()) {
    pc = frame.ready.back().pc;
    mask = frame.ready.back().mask;
    frame.ready.pop_back();
    return;
  }
  if (frame.parked.empty()) {
    // Only a callee all of whose lanes left the kernel ends here.
    frames.pop_back();
    selectFrame();
    return resumeNext();
  }
  const Fragment &waiting = frame.parked.front();
  uint64_t missing = live;
  for (const Fragment &fragment : frame.parked)
    missing &= ~fragment.mask;
  const Op &op = fn->ops[waiting.pc];
  std::string where = frame.parked.size() > 1
                          ? "lanes of one wave wait for each other at different operations"
                          : "lanes wait here for lanes of their wave that never arrive";
  if (missing)
    where += " (missing lane mask 0x" + utohexstr(missing, true) + ")";
  fail(op, countr_zero(waiting.mask), where);
}

void Wave::turnLoop(uint32_t header) {
  Frame &frame = frames.back();
  pc = header;
  if (turnProgress != launch.lastProgress) {
    turnProgress = launch.lastProgress;
    turns = 0;
  }
  // A wave that only waits leaves the time to those it waits for.
  if (++turns % yieldTurns == 0)
    stop = true;
  if (turns < idleTurns || frame.ready.empty() || !image.chip->nvptx)
    return;
  // Lanes of one warp make progress independently of each other: where this
  // fragment only spins, let those go on that wait for it to leave the loop.
  turns = 0;
  hold = holdBranches;
  Fragment other = frame.ready.front();
  frame.ready.erase(frame.ready.begin());
  addReady(pc, mask);
  pc = other.pc;
  mask = other.mask;
}

void Wave::park(uint32_t at, uint64_t lanes) { frames.back().parked.push_back({at, lanes}); }

uint64_t Wave::joinParked() {
  auto &parked = frames.back().parked;
  for (size_t i = 0; i < parked.size(); ++i)
    if (parked[i].pc == pc - 1) {
      mask |= parked[i].mask;
      parked.erase(parked.begin() + i);
      break;
    }
  return mask;
}

uint64_t Wave::proceed(uint64_t ready) {
  if (uint64_t rest = mask & ~ready)
    park(pc - 1, rest);
  if (!ready) {
    resumeNext();
    return 0;
  }
  return mask = ready;
}

uint64_t Wave::rendezvous(const Op &op, Ref maskRef) {
  if (!needsValue(op, maskRef, "the member mask"))
    return 0;
  joinParked();
  const uint64_t *masks = val(maskRef);
  uint64_t ready = 0;
  for (uint64_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = countr_zero(rest);
    uint64_t named = masks[lane] & full;
    if (!(named >> lane & 1)) {
      fail(op, lane, "lane " + Twine(lane) + " is not in its own member mask 0x" + utohexstr(named, true));
      return 0;
    }
    if (uint64_t missing = named & ~existing; missing && image.options.membersMustArrive) {
      fail(op, lane,
           "lane " + Twine(countr_zero(missing)) + " of member mask 0x" + utohexstr(named, true) +
               " does not exist");
      return 0;
    }
    if (uint64_t left = named & existing & ~live; left && image.options.membersMustArrive) {
      fail(op, lane,
           "lane " + Twine(countr_zero(left)) + " of member mask 0x" + utohexstr(named, true) +
               " has left the kernel");
      return 0;
    }
    if ((named & live) & ~mask)
      continue;
    for (uint64_t others = named & live; others; others &= others - 1) {
      unsigned other = countr_zero(others);
      if ((masks[other] & full) == named)
        continue;
      fail(op, lane,
           "lane " + Twine(lane) + " names member mask 0x" + utohexstr(named, true) + " but lane " +
               Twine(other) + " in it names 0x" + utohexstr(masks[other] & full, true));
      return 0;
    }
    ready |= uint64_t(1) << lane;
  }
  return proceed(ready);
}

uint64_t Wave::rendezvousAll(const Op &) {
  joinParked();
  return proceed(mask == live ? mask : 0);
}

void Wave::runSlice(uint64_t operations) {
  stop = touchesMemory = false;
  uint64_t left = operations;
  while (!stop && left) {
    const Op &op = fn->ops[pc++];
    --left;
    ++launch.executed;
    op.run(*this, op);
  }
  const SimOptions &options = image.options;
  if (state == Done || !launch.error.empty())
    return;
  // Who computes without a look at memory does not wait.
  if (touchesMemory)
    launch.waited += std::min(operations - left, launch.executed - launch.lastProgress);
  if (launch.waited > options.idleLimit)
    fail(fn->ops[pc], countr_zero(mask),
         "endless wait: no memory changed for " + Twine(options.idleLimit) + " wave instructions");
  else if (launch.executed > options.instructionLimit)
    fail(fn->ops[pc], countr_zero(mask),
         "more than " + Twine(options.instructionLimit) + " wave instructions executed");
}

//===----------------------------------------------------------------------===//
// Blocks and launches
//===----------------------------------------------------------------------===//

Block::Block(Launch &launch, std::array<uint32_t, 3> id) : launch(launch), id(id) {
  const Image &image = launch.image;
  shared.resize(image.sharedBytes);
  sharedShadow.assign(image.sharedBytes, 2);
  for (const Image::SharedVariable &variable : image.shared)
    std::fill_n(sharedShadow.begin() + variable.offset, variable.bytes, image.options.sharedStartsPoison);
  if (!launch.spareWrites.empty()) {
    lastWrites = std::move(launch.spareWrites.back()); // of earlier epochs
    launch.spareWrites.pop_back();
  }
  lastWrites.resize(image.sharedBytes);
  order();
  uint64_t threads = uint64_t(launch.blockSize[0]) * launch.blockSize[1] * launch.blockSize[2];
  for (uint64_t first = 0; first < threads; first += image.wave) {
    waves.push_back(
        std::make_unique<Wave>(launch, *this, waves.size(), std::min<uint64_t>(image.wave, threads - first)));
    waves.back()->start(launch.kernel);
  }
}

Block::~Block() { launch.spareWrites.push_back(std::move(lastWrites)); }

bool Block::done() const {
  return llvm::all_of(waves, [](const auto &wave) { return wave->state == Wave::Done; });
}

bool Block::releaseBarriers() {
  unsigned alive = 0, running = 0;
  for (auto &wave : waves) {
    alive += wave->state != Wave::Done;
    running += wave->state == Wave::Running;
  }
  if (signalled && signalled >= alive) {
    signalled = 0;
    ++phase;
    order();
  }
  for (auto &wave : waves)
    if (wave->state == Wave::AtSplitBarrier && phase > wave->splitPhase) {
      wave->state = Wave::Running;
      ++running;
    }
  for (unsigned id = 0; id < arrivedOnly.size(); ++id) {
    std::vector<Wave *> waiting;
    for (auto &wave : waves)
      if (wave->state == Wave::AtBarrier && wave->barrierId == id)
        waiting.push_back(wave.get());
    if (waiting.empty())
      continue;
    unsigned count = waiting[0]->barrierCount;
    bool complete =
        count ? arrivedOnly[id] + waiting.size() * launch.image.wave >= count : waiting.size() == alive;
    if (!complete)
      continue;
    arrivedOnly[id] = 0;
    order();
    unsigned votes = 0, voters = 0;
    for (Wave *wave : waiting) {
      votes += popcount(wave->barrierVotes & wave->mask);
      voters += popcount(wave->mask);
    }
    for (Wave *wave : waiting) {
      const Op &op = *wave->barrierOp;
      if (op.sub) { // 1 counts, 2 is true for all, 3 for any
        uint64_t result = op.sub == 1 ? votes : op.sub == 2 ? votes == voters : votes != 0;
        wave->each([&](unsigned l) { wave->out(op.dst)[l] = result; });
        wave->setPoison(op.dst, 0);
      }
      wave->state = Wave::Running;
      ++running;
    }
  }
  return running || !alive;
}

Error Launch::run() {
  uint64_t total = uint64_t(grid[0]) * grid[1] * grid[2], next = 0;
  std::deque<std::unique_ptr<Block>> active;
  uint64_t threads = uint64_t(blockSize[0]) * blockSize[1] * blockSize[2];
  uint64_t waveBytes = uint64_t(image.wave) * (8 * kernel.words + 2 * kernel.privateBytes);
  uint64_t blockBytes = divideCeil(threads, image.wave) * waveBytes + 2 * image.sharedBytes + 1;
  size_t limit = std::clamp<uint64_t>(usualBytes / blockBytes, 1, std::max(1u, image.options.blocksInFlight));
  size_t most = std::clamp<uint64_t>(mostBytes / blockBytes, limit, mostBlocks);
  unsigned rounds = 0;
  while (next < total || !active.empty()) {
    while (next < total && active.size() < limit) {
      std::array<uint32_t, 3> id = {uint32_t(next % grid[0]), uint32_t(next / grid[0] % grid[1]),
                                    uint32_t(next / grid[0] / grid[1])};
      active.push_back(std::make_unique<Block>(*this, id));
      ++next;
    }
    bool ended = false;
    uint64_t progressBefore = lastProgress;
    for (auto &block : active) {
      // Every second block runs its waves in reverse, so that a missing order
      // between two waves shows either way round.
      size_t count = block->waves.size();
      bool reverse = (block->id[0] + block->id[1] + block->id[2]) & 1;
      for (size_t i = 0; i < count; ++i) {
        Wave &wave = *block->waves[reverse ? count - 1 - i : i];
        if (wave.state != Wave::Running)
          continue;
        if (findEnd)
          if (Error end = findEnd())
            return end;
        wave.runSlice(sliceOperations);
        if (!error.empty())
          return createStringError(error);
      }
      if (!block->releaseBarriers()) {
        for (auto &wave : block->waves)
          if (wave->barrierOp && wave->state != Wave::Done) {
            wave->fail(*wave->barrierOp, countr_zero(wave->live),
                       "deadlock: every wave of the block waits at a barrier that the others never reach");
            return createStringError(error);
          }
      }
      if (block->done()) {
        block.reset();
        ended = true;
      }
    }
    llvm::erase_if(active, [](const auto &block) { return !block; });
    rounds = ended ? 0 : rounds + 1;
    // Blocks may wait for blocks that have not started yet.
    bool idle = lastProgress == progressBefore;
    if ((idle || rounds > idleRounds) && limit < most && next < total) {
      limit = std::min(most, limit + (idle ? limit : 1));
      rounds = 0;
    }
  }
  return Error::success();
}

} // namespace qd::sim
