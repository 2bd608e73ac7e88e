//===- Machine.h - the state of a running grid -----------------------------------------===//
//
// Purpose: a subgroup steps in lock-step under a mask of active lanes, with its control flow on an explicit
// stack, so that it can stop at barriers and loop back edges and others go on. Blocks in flight and their
// subgroups take turns, which ends every wait that another started thread can end.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_INTERP_MACHINE_H
#define QD_CODEGEN_INTERP_MACHINE_H

#include "codegen/LaunchWatch.h"
#include "codegen/PrintText.h"
#include "codegen/interp/Code.h"
#include "codegen/interp/Races.h"

#include "llvm/ADT/Twine.h"
#include <array>
#include <deque>
#include <list>
#include <map>
#include <string>
#include <vector>

namespace qd::interp {

class Block;
class Launch;

/// What is looked for beyond what memory safety and termination need.
struct Checks {
  bool poison = true;        ///< poison stored, branched on, or used as an address
  bool divergence = true;    ///< a collective op with lanes missing
  bool uninitialized = true; ///< shared memory read before it is written
  bool promises = true;      ///< assume_uniform, noalias, and what a `combine` region uses from around it
  bool races = false;        ///< accesses that nothing puts in order; slow
  uint64_t steps = uint64_t(1) << 28; ///< instructions of subgroups between two that end
};

/// "-5", "true", "1.5" or "poison", for messages.
std::string printValue(LaneValue value, mlir::Type type);

/// Who copies to an element.
struct Arrival {
  const Instruction *instruction;
  unsigned thread;
};

/// A buffer, a view of one, a block's shared array, a thread's private one, or a table. What is accessed of it are
/// scalars, counted from `data`.
struct Array {
  uint8_t *data = nullptr;
  mlir::Type scalar;
  unsigned perElement = 1;               ///< scalars
  llvm::SmallVector<int64_t, 3> extents; ///< elements by dimension
  llvm::SmallVector<int64_t, 3> strides; ///< distance of neighbours, in scalars
  int32_t access = 0;                    ///< buffers: KernelOp::Access bits
  std::string name;
  std::vector<uint8_t> storage;          ///< of all but buffers
  std::vector<bool> written;             ///< of all but buffers, by scalar
  bool isSeenByAll = true;               ///< other threads may write it
  std::map<int64_t, Arrival> arriving;   ///< shared arrays: scalars that asynchronous copies have yet to write

  bool isStatic() const { return !storage.empty(); }
  bool isShared() const { return isStatic() && isSeenByAll; }
  /// Sets what follows from the type of elements and the extents, row by row.
  void setShape(mlir::Type element, llvm::ArrayRef<int64_t> shape);
  /// Elements of all dimensions together.
  int64_t count() const;
};

/// A copy that is under way, with what it found in its source.
struct AsyncTransfer {
  const Instruction *instruction;
  Array *source; ///< null where zeros are copied
  int64_t firstOfSource;
  Array *target;
  int64_t firstOfTarget;
  llvm::SmallVector<uint64_t, 4> bits;
};

/// The copies that a thread has started and not waited for.
struct AsyncQueue {
  std::vector<AsyncTransfer> open; ///< in no group yet
  std::deque<std::vector<AsyncTransfer>> groups;
};

/// A value of one thread of a block, whose origin a report explains.
struct Cause {
  unsigned slot;
  unsigned thread;
};

/// A line behind a report.
struct Note {
  mlir::Operation *op;
  unsigned thread; ///< of the report's block
  std::string message;
};

/// One region that a subgroup is in.
struct Frame {
  const Body *body;
  size_t next;                ///< the instruction to carry out
  uint64_t active;            ///< lanes
  const Instruction *owner;   ///< the op whose region it is; null for the kernel's body
  uint64_t iteration = 0;     ///< of a loop's region
  /// scf.while: its last iteration began and ended in the same state, with memory at this version.
  bool isIdle = false;
  uint64_t memoryVersion = 0;
};

/// One thread at one instruction.
struct Thread {
  Subgroup &subgroup;
  const Instruction &instruction;
  unsigned lane;
  llvm::ArrayRef<LaneValue> in;
  llvm::MutableArrayRef<LaneValue> out;

  Block &block() const;
  /// Its number in the block, counting x fastest.
  unsigned index() const;
  template <typename Op> Op op() const { return llvm::cast<Op>(instruction.op); }
  mlir::Type inType(unsigned i) const { return instruction.operandTypes[i]; }
  mlir::Type outType() const { return instruction.op->getResult(0).getType(); }
  /// The report also says where these operands come from.
  void fail(const llvm::Twine &message, llvm::ArrayRef<unsigned> operands = {}) const;
};

class Subgroup {
public:
  enum class State { Ready, Waiting, Done };

  Subgroup(Block &block, unsigned firstThread);

  State state = State::Ready;
  Block &block;
  const unsigned firstThread; ///< of its block: lane 0
  const unsigned size;
  uint64_t lanes;             ///< those that exist
  uint64_t syncs = 0;         ///< that its lanes have passed

  LaneValue &at(unsigned slot, unsigned lane) { return slots[slot * size + lane]; }
  Frame &frame() { return frames.back(); }
  llvm::ArrayRef<Frame> stack() const { return frames; }
  const Instruction &current() const { return frames.back().body->instructions[frames.back().next]; }

  /// Steps until the next loop back edge, barrier, failure, or the kernel's end.
  void run();
  /// Whether it goes round in a wait that only a change of memory can end.
  bool isSpinning() const;

  /// What a lane's part of an op of threads makes of the operands in the slots.
  llvm::SmallVector<LaneValue, 2> compute(const Instruction &instruction, unsigned lane);

  // For control rules.
  void enter(const Instruction &owner, unsigned region, uint64_t active);
  void leave() { frames.pop_back(); }
  void startIteration(const Body &body, uint64_t active);
  void pause() { isPaused = true; }
  /// Keeps the origin of poison that a loop's values are about to get in the next iteration.
  void rememberPoison(llvm::ArrayRef<unsigned> from, llvm::ArrayRef<unsigned> to, uint64_t mask);
  /// Copies values between slots, all at once, in the lanes of `mask`.
  void copy(llvm::ArrayRef<unsigned> from, llvm::ArrayRef<unsigned> to, uint64_t mask);
  void fail(const Instruction &instruction, unsigned lane, const llvm::Twine &message,
            llvm::ArrayRef<Cause> causes = {});
  /// Checks what `qd.assume_uniform` promises for the active lanes, and for the block where `isBlockWide`.
  void checkUniform(const Instruction &instruction, bool isBlockWide);

  /// Carries out the `combine` region of `owner` in one lane; what it yields.
  llvm::SmallVector<LaneValue, 4> evaluate(const Instruction &owner, unsigned lane,
                                           llvm::ArrayRef<LaneValue> arguments);

  /// For rendezvous: the collective op is done.
  void resume() {
    ++frames.back().next;
    state = State::Ready;
  }
  /// Reports lanes that do not reach a collective op together with the others.
  bool checkConvergence(const Instruction &instruction);
  /// Reports lanes of `group`, which give the same mask of members, that break the contract of `members`.
  bool checkMembers(const Instruction &instruction, LaneValue members, uint64_t group);

private:
  void step();
  void runLanes(const Instruction &instruction);
  void runCollective(const Instruction &instruction);
  void runAmongMembers(const Instruction &instruction);

  bool isPaused = false;
  std::vector<LaneValue> slots;
  std::vector<Frame> frames;
};

/// The lanes of one scope at a collective op, or those of them that an op with `members` names. Lanes are numbered
/// from the scope's start.
class Tile {
public:
  Tile(Block &block, const Instruction &instruction, unsigned firstThread, unsigned size,
       std::optional<uint64_t> members = std::nullopt, bool isPast = false)
      : block(block), instruction(instruction), firstThread(firstThread), size(size), members(members),
        isPast(isPast) {}

  Block &block;
  const Instruction &instruction;
  const unsigned firstThread;
  const unsigned size;
  const std::optional<uint64_t> members;
  const bool isPast; ///< the op was carried out earlier, so who is active now says nothing

  template <typename Op> Op op() const { return llvm::cast<Op>(instruction.op); }
  mlir::Type inType(unsigned i = 0) const { return instruction.op->getOperand(i).getType(); }
  /// False for lanes that a partial last subgroup lacks, and for those that are no members.
  bool has(unsigned lane) const;
  /// The lanes that take part, in their order.
  llvm::SmallVector<unsigned, 64> lanes() const;
  /// An operand; poison where the lane does not exist.
  LaneValue get(unsigned lane, unsigned operand = 0) const;
  void set(unsigned lane, LaneValue value, unsigned result = 0);
  void setAll(LaneValue value, unsigned result = 0) {
    for (unsigned lane = 0; lane < size; ++lane)
      set(lane, value, result);
  }
  /// The `combine` region's result in a lane that takes part.
  llvm::SmallVector<LaneValue, 4> evaluate(unsigned lane, llvm::ArrayRef<LaneValue> arguments) const;
  /// Reports a value that the `combine` region uses where the lanes hold different ones.
  bool checkCaptures() const;
  void fail(unsigned lane, const llvm::Twine &message, llvm::ArrayRef<Cause> causes = {}) const;

private:
  Subgroup &subgroupOf(unsigned lane) const;
  LaneValue &at(unsigned slot, unsigned lane) const;
};

/// A value that `qd.assume_uniform` promises to a block, as its first subgroup to come holds it.
struct UniformPromise {
  LaneValue value;
  unsigned thread;
};

class Block {
public:
  Block(Launch &launch, std::array<uint32_t, 3> id);

  Launch &launch;
  const std::array<uint32_t, 3> id;
  std::deque<Array> arrays; ///< as `Code` numbers them; they stay where they are
  std::vector<Subgroup> subgroups;
  uint64_t barriers = 0;       ///< that its threads have passed and that order all memory
  uint64_t sharedBarriers = 0; ///< those that order shared memory: all
  const Instruction *atGrid = nullptr; ///< the op at which all its threads wait for the other blocks
  std::map<unsigned, AsyncQueue> async; ///< by thread
  /// By the op and the iterations of the loops around it.
  std::map<std::pair<const Instruction *, std::vector<uint64_t>>, UniformPromise> promises;

  unsigned numThreads() const;
  /// Its number in the grid, counting x fastest.
  uint64_t number() const;
  bool isDone() const;
  /// Memory is in order among the threads of the block.
  void passBarrier(bool ordersGlobal = true);
  /// Carries out the op that all threads of the block wait at, once they do.
  void meet();
  /// All blocks have come to the op at which this one waits.
  void leaveGrid();
  void fail(mlir::Operation *op, unsigned thread, const llvm::Twine &message, llvm::ArrayRef<Cause> causes = {});
  /// By slot and thread: how a value that a loop carries round became poison.
  std::map<std::pair<unsigned, unsigned>, std::vector<Note>> carriedPoison;
  LaneValue &at(const Cause &cause);
};

class Launch {
public:
  Launch(const Code &code, std::array<uint32_t, 3> grid, const Checks &checks, LaunchWatch &watch)
      : code(code), grid(grid), checks(checks), watch(watch) {}

  const Code &code;
  const std::array<uint32_t, 3> grid;
  const Checks checks;
  LaunchWatch &watch;
  std::vector<Array> buffers;             ///< by argument; empty rows for scalars
  std::vector<LaneValue> arguments;       ///< scalars, and arrays by number
  uint64_t memoryVersion = 0;             ///< raised by every change of memory
  uint64_t steps = 0;                     ///< since a subgroup last ended
  uint64_t ticks = 0;                     ///< instructions of subgroups so far
  unsigned poisonRemembered = 0;          ///< by blocks' carriedPoison
  RaceDetector races;
  PrintLog prints;

  /// Runs all blocks; `error` is empty where all went well.
  void run();
  bool failed() const { return !error.empty(); }
  /// "block (0, 0, 0), thread (3, 0, 0)", for messages.
  std::string printPlace(uint64_t block, unsigned thread) const;
  std::string printBlock(uint64_t block) const;
  std::string printThread(unsigned thread) const;
  std::string error;

private:
  void meetBlocks(std::list<Block> &blocks);

  std::optional<uint64_t> ended; ///< a block that has
};

} // namespace qd::interp

#endif
