//===----------------------------------------------------------------------===//
// The machine: a launch holds blocks, a block its shared memory and waves, a
// wave its lanes.
//
// Lanes of a wave run in lock-step under `mask`. Where they part, the parts
// (fragments) wait by program counter and the least one runs. Blocks of code
// are laid out in topological order with every loop contiguous and one latch
// at its end, so the least counter is the rule of structured control flow:
// lanes meet again where their paths join, and at each turn of a loop.
//===----------------------------------------------------------------------===//
#ifndef QD_CODEGEN_SIM_WAVE_H
#define QD_CODEGEN_SIM_WAVE_H

#include "codegen/sim/Code.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include <deque>

namespace qd::sim {

struct Launch;
struct Block;

struct Fragment {
  uint32_t pc;
  uint64_t mask;
};

struct Frame {
  const FunctionCode *fn = nullptr;
  size_t base = 0;              // of its words
  std::vector<Fragment> ready;  // by descending pc
  std::vector<Fragment> parked; // wait at an operation for named lanes
  uint32_t returnPc = 0;
  uint64_t callMask = 0;
  Ref result = 0;
  uint32_t privateBase = 0;
};

class Wave {
public:
  Wave(Launch &launch, Block &block, unsigned index, unsigned lanes);
  ~Wave();

  Launch &launch;
  Block &block;
  const Image &image;
  unsigned width;
  unsigned index;
  uint64_t full; // all lanes the hardware has
  uint64_t existing;
  uint64_t live; // lanes that exist and have not left the kernel
  uint64_t mask; // lanes that execute now
  uint32_t pc = 0;
  const FunctionCode *fn = nullptr;
  uint64_t *regs = nullptr;
  uint64_t *poison = nullptr;
  std::array<std::array<uint32_t, 64>, 3> tid;

  enum State { Running, AtBarrier, AtSplitBarrier, Done };
  State state = Running;
  bool stop = false; // leaves the slice
  bool touchesMemory = false; ///< that others see, in this slice
  // At a barrier.
  unsigned barrierId = 0, barrierCount = 0;
  const Op *barrierOp = nullptr;
  uint64_t barrierVotes = 0;
  uint64_t splitPhase = 0;

  void start(const FunctionCode &kernel);
  /// Runs until the wave waits, ends, fails or has used its slice.
  void runSlice(uint64_t operations);

  const uint64_t *val(Ref r) const {
    return r >= 0 ? regs + size_t(r) * width : image.constants.data() + size_t(~r) * width;
  }
  uint64_t poisonOf(Ref r) const { return r >= 0 ? poison[r] : image.constantPoison[~r]; }
  uint64_t *out(Ref r) { return regs + size_t(r) * width; }
  void setPoison(Ref r, uint64_t lanes) { poison[r] = (poison[r] & ~mask) | (lanes & mask); }
  Ref arg(const Op &op, unsigned i) const { return fn->args[op.args + i]; }

  uint64_t poisonOfArgs(const Op &op) const {
    uint64_t lanes = 0;
    for (unsigned i = 0; i < op.nargs; ++i)
      lanes |= poisonOf(arg(op, i));
    return lanes;
  }

  template <typename F> void each(F f) { eachOf(mask, f); }
  template <typename F> void eachOf(uint64_t lanes, F f) {
    if (lanes == full) {
      for (unsigned l = 0; l < width; ++l)
        f(l);
      return;
    }
    for (; lanes; lanes &= lanes - 1)
      f(unsigned(llvm::countr_zero(lanes)));
  }

  /// Records the first failure of the launch and stops the wave.
  void fail(const Op &op, unsigned lane, const llvm::Twine &what);
  /// What needs no instruction to be understood.
  void fail(unsigned lane, const llvm::Twine &what, const llvm::Twine &behind = "");
  /// Fails if an active lane holds poison in `r`.
  bool needsValue(const Op &op, Ref r, const char *use);

  // Control flow.
  void takeEdge(const Edge &edge, uint64_t lanes);
  void jump(const Edge &edge) {
    if (edge.copyCount)
      takeEdge(edge, mask);
    goTo(edge.pc);
  }
  /// Moves the active lanes to `target`, then runs the least fragment.
  void goTo(uint32_t target);
  void split(const Edge &first, uint64_t firstLanes, const Edge &second, uint64_t secondLanes);
  void addReady(uint32_t target, uint64_t lanes);
  /// Takes the next fragment after the active lanes have gone elsewhere.
  void resumeNext();
  void turnLoop(uint32_t header);
  void call(const Op &op);
  void ret(const Op &op);
  /// The active lanes leave the kernel.
  void exitLanes();

  /// Waits until the live lanes that `maskRef` names have arrived here; returns
  /// the lanes that may go on, which are then the active ones, or 0.
  uint64_t rendezvous(const Op &op, Ref maskRef);
  /// The same for all live lanes of the wave.
  uint64_t rendezvousAll(const Op &op);

  // Memory.
  struct Place {
    uint8_t *data = nullptr;
    uint8_t *shadow = nullptr; // one byte a byte: 0 written, 1 poison, 2 no memory
    bool isPrivate = false;
    bool isShared() const { return shadow && !isPrivate; }
  };
  bool access(const Op &op, unsigned lane, uint64_t address, unsigned space, uint64_t bytes, uint64_t align,
              bool write, const char *verb, Place &place);
  /// The common case of `access`, global memory without any fault; else null.
  inline uint8_t *globalPlace(uint64_t address, uint64_t bytes, uint64_t align, bool write) const;
  /// Whether another wave wrote one of these shared bytes since the waves last
  /// met; notes the race.
  template <unsigned size> bool readRaces(const Op &op, uint64_t offset, unsigned bytes = size);
  /// Records the write; whether another wave wrote as well, and another value:
  /// then either may win.
  template <unsigned size>
  bool writeRaces(const Op &op, uint64_t offset, bool changes, unsigned bytes = size);
  void noteRace(const Op &op, uint64_t offset, const char *verb);
  void growPrivate(uint32_t bytes);
  /// Makes a new stack slot of the active lanes poison.
  void forgetPrivate(uint64_t offset, uint64_t bytes);
  uint64_t convertPointer(uint64_t value, unsigned from, unsigned to) const;

  std::vector<Frame> frames;

  // Asynchronous copies of one lane.
  struct AsyncCopy {
    const Op *op;
    uint64_t target;
    std::array<uint8_t, 16> bytes;
  };
  struct AsyncQueue {
    std::vector<AsyncCopy> open; // in no group yet
    std::deque<std::vector<AsyncCopy>> groups;
  };
  std::vector<AsyncQueue> async; // by lane; empty before the first copy

private:
  std::vector<uint64_t> words;
  std::vector<uint64_t> poisons;
  std::vector<uint8_t> privateData, privateShadow; // lane after lane
  uint32_t privateSize = 0;
  unsigned hold = 0;  // branches for which a fragment out of turn keeps running
  unsigned turns = 0; // of loops, since memory changed
  uint64_t turnProgress = 0;

  void selectFrame();
  void park(uint32_t at, uint64_t lanes);
  uint64_t joinParked();
  uint64_t proceed(uint64_t ready);
};

/// Who last wrote a byte of shared memory, and when.
struct LastWrite {
  uint32_t epoch = 0, text = 0;
  uint16_t wave = 0;
  bool races = false; // with another wave's write
};

struct Block {
  Launch &launch;
  std::array<uint32_t, 3> id;
  std::vector<std::unique_ptr<Wave>> waves;
  std::vector<uint8_t> shared, sharedShadow;
  std::vector<LastWrite> lastWrites;      // of each shared byte
  uint32_t epoch = 0;                     // counts what orders the waves' accesses
  std::array<unsigned, 16> arrivedOnly{}; // threads at barrier.cta.arrive
  unsigned signalled = 0;
  uint64_t phase = 1;

  Block(Launch &launch, std::array<uint32_t, 3> id);
  ~Block();
  /// A barrier or an atomic access orders what comes after it.
  inline void order();
  /// Lets waves go whose barrier is complete; false where all wait for ever.
  bool releaseBarriers();
  bool done() const;
};

struct Allocation {
  uint8_t *data = nullptr;
  uint64_t bytes = 0;
  bool writable = false;
  std::string what;
};

struct Launch {
  const Image &image;
  const FunctionCode &kernel;
  std::array<uint32_t, 3> grid, blockSize;
  std::vector<Allocation> allocations; // by allocation number
  std::vector<uint8_t> implicitArgs;
  std::vector<uint64_t> params; // words of the kernel's parameters
  std::string error;
  std::vector<std::vector<LastWrite>> spareWrites;
  uint32_t epochs = 0;
  std::string raceNote;                          // the first race
  std::vector<std::vector<uint64_t>> spareWords; // of waves that have ended
  uint64_t executed = 0;                         // wave instructions
  uint64_t lastProgress = 0;
  uint64_t waited = 0; // since then, in slices that touch memory
  llvm::function_ref<llvm::Error()> findEnd;     // may be null

  Launch(const Image &image, const FunctionCode &kernel) : image(image), kernel(kernel) {}
  void progress() {
    lastProgress = executed;
    waited = 0;
  }
  llvm::Error run();
};

inline void Block::order() { epoch = ++launch.epochs; }

template <unsigned size> inline bool Wave::readRaces(const Op &op, uint64_t offset, unsigned bytes) {
  const LastWrite *last = block.lastWrites.data() + offset;
  for (unsigned i = 0; i < (size ? size : bytes); ++i)
    if (last[i].epoch == block.epoch && last[i].wave != index) {
      noteRace(op, offset + i, "reads");
      return true;
    }
  return false;
}

template <unsigned size>
inline bool Wave::writeRaces(const Op &op, uint64_t offset, bool changes, unsigned bytes) {
  LastWrite *last = block.lastWrites.data() + offset;
  bool races = false;
  for (unsigned i = 0; i < (size ? size : bytes); ++i) {
    bool fresh = last[i].epoch == block.epoch;
    bool conflicts = fresh && (last[i].races || (changes && last[i].wave != index));
    if (conflicts && !last[i].races)
      noteRace(op, offset + i, "writes");
    last[i] = {block.epoch, op.text, uint16_t(index), conflicts};
    races |= conflicts;
  }
  return races;
}

inline uint8_t *Wave::globalPlace(uint64_t address, uint64_t bytes, uint64_t align, bool write) const {
  uint64_t allocation = address >> allocationShift, offset = address & offsetMask;
  if (allocation < FirstAllocation || allocation >= launch.allocations.size() || (address & (align - 1)))
    return nullptr;
  const Allocation &memory = launch.allocations[allocation];
  return offset + bytes <= memory.bytes && (memory.writable || !write) ? memory.data + offset : nullptr;
}

} // namespace qd::sim

#endif
