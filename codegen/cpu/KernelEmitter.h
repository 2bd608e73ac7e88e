//===- KernelEmitter.h - a kernel as LLVM IR, its subgroups as vectors -------------------===//
//
// Purpose: emits one kernel directly with an IRBuilder. A subgroup of N lanes is a vector of N elements; values that
// all lanes share stay scalar (LaneShape.h); control flow that diverges runs under masks.
// Input: a verified kernel after the expansions: no reductions, no tile wider than the subgroup.
// Output: `void kernel(ptr launch, ptr worker, i64 begin, i64 end)`, which runs the blocks [begin, end) of the grid,
// counted x fastest. Barriers: Slots.cpp, Coroutines.cpp. Where blocks wait for each other (qd.grid.sync), `worker` is an array with
// each block's own memory, and a call only takes blocks on their way: to that op, or to their end.
//
// Invariants of the emitted code:
// - `mask` is null while all lanes are active. Code under a mask runs with at least one lane active, except in regions
//   that are flattened, so scalar loads and loops over uniform conditions need no guard.
// - Lanes outside the mask hold anything, poison too; a mask itself never has a poison bit. So masks are combined with
//   selects, not `and`, and a condition is frozen before its bits are used together.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_CPU_KERNELEMITTER_H
#define QD_CODEGEN_CPU_KERNELEMITTER_H

#include "codegen/DebugInfo.h"
#include "codegen/cpu/LaneShape.h"
#include "codegen/cpu/Segments.h"
#include "ir/SharedStorage.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include <cstddef>
#include <optional>

namespace qd {

/// The names that generated code and its driver agree on.
namespace cpu {
/// Before a kernel's name in its entry's: no kernel takes the name of a library function.
constexpr llvm::StringLiteral entryPrefix = "kernel.", factsPrefix = "facts.";
/// `ptr qd_cpu_frame(i64 size, i64 align)`: memory for a suspended subgroup, kept for the worker's next block.
constexpr llvm::StringLiteral allocateFrame = "qd_cpu_frame";
/// Functions that Reports.h declares.
constexpr llvm::StringLiteral printLine = "qd_cpu_print", failAssert = "qd_cpu_fail_assert",
                              checkLaunch = "qd_cpu_check_launch", pause = "qd_cpu_pause";
/// After about as many instructions, code in loops that may not end calls `checkLaunch`.
constexpr uint32_t instructionsPerCheck = 1 << 16;
/// Bytes before the arguments in a launch record: the grid as three i32 and padding, the address of the launch's Reports
/// and padding; then 32 bytes an argument: a scalar's bits, or a buffer's address and extents.
constexpr unsigned recordReports = 16, recordHeader = 32, recordArg = 32;
/// Alignment of a block's shared memory and of each array in it.
constexpr unsigned sharedAlignment = 64;

/// How far a block has come, in the memory of a block whose kernel has `qd.grid.sync`.
enum class Progress : uint32_t { NotStarted, Running, AtGrid, Done };

/// Behind the shared arrays of a block whose subgroups take turns. A grid's driver sets the block that waits at
/// `qd.grid.sync` going: it raises `phase`, and clears `atGrid` and `progress` to Running.
struct BlockState {
  uint32_t arrivals;   ///< subgroups that have come to a barrier, all of the block's barriers together
  uint32_t departures; ///< and those that have gone on
  uint32_t atGrid;     ///< subgroups that wait for the other blocks
  uint32_t phase;      ///< of the grid: how often all blocks have met
  Progress progress;
};
} // namespace cpu

/// Instructions of this machine that the emitter asks for by name, beside what LLVM finds by itself.
struct NativeFeatures {
  bool avx2 = false, avx512 = false;
  bool tables = false; ///< NEON's lookups of bytes in up to four registers
  bool fp16 = false; ///< arithmetic on f16
  bool fma = true;   ///< of f32 and f64
};

/// A value over the lanes: `base` (lane 0's, where the shape is known) or `vector` (where it varies).
struct LaneValue {
  llvm::Value *base = nullptr;
  llvm::Value *vector = nullptr;
};

/// Turns of a loop whose bounds are known; nothing for other loops.
std::optional<uint64_t> getTurns(mlir::scf::ForOp loop);
/// An op's code in instructions, by the widest registers that there are.
unsigned getCodeSize(mlir::Operation *op, unsigned lanes, bool isTally);

class KernelEmitter {
public:
  /// `mayUnroll`: code may grow for speed. `debug` is null where nobody asks for the source's lines.
  KernelEmitter(KernelOp kernel, const Target &target, NativeFeatures features, llvm::Module &module, bool mayUnroll,
                DebugInfo *debug);

  /// Diagnoses what it cannot lower at the op.
  mlir::LogicalResult emit();

  bool usesCoroutines() const { return suspends; }
  bool isCooperative() const { return cooperates; }
  /// Where in a block's memory its cpu::BlockState is.
  unsigned getStateOffset() const { return stateOffset; }
  bool hasAsserts() const { return asserts; }
  bool hasTallies() const { return !tallies.empty(); }

private:
  DebugInfo *debug;
  KernelOp kernel;
  unsigned lanes;
  NativeFeatures features;
  llvm::Module &module;
  llvm::LLVMContext &context;
  llvm::IRBuilder<> b;
  LaneAnalysis analysis;
  Segments segments;
  SharedStorage storage;
  /// What outlives a segment: an element for each subgroup.
  struct Slot {
    uint64_t offset = 0; ///< in the worker's memory, if it is there
    llvm::Value *place = nullptr;
  };
  llvm::MapVector<mlir::Value, Slot> slots;
  bool slotsAreShared = false; ///< in the worker's memory
  /// What is copied instead of repeated, where the kernel has barriers.
  struct {
    bool subgroups = false, loops = false;
  } unroll;
  bool suspends = false; ///< subgroups are coroutines
  bool waits = false;    ///< subgroups may wait for each other by memory: they take turns in such loops too
  bool cooperates = false; ///< blocks wait for each other: all of them are under way at once
  bool asserts = false;  ///< a thread may end the launch

  llvm::DenseMap<mlir::Value, LaneValue> values;
  llvm::DenseMap<mlir::Value, LaneValue> ofBlock; ///< variables of loops that the block has entered
  llvm::SmallVector<llvm::Value *, 3> entering;   ///< a condition, or the bounds and step of a loop, from a segment
  llvm::DenseMap<mlir::Operation *, unsigned> sharedOffsets;
  /// A shared array's variable and the place in it, where it is not in the worker's memory.
  llvm::MapVector<mlir::Operation *, std::pair<llvm::AllocaInst *, uint64_t>> localArrays;
  llvm::Value *mask = nullptr;

  /// What a subgroup's code refers to.
  struct Frame {
    llvm::Value *record = nullptr, *shared = nullptr;
    std::array<llvm::Value *, 3> grid, block;  ///< i32
    llvm::Value *firstThread = nullptr;        ///< i32: the subgroup's number times its lanes
    llvm::SmallVector<LaneValue> args;         ///< scalars, or buffers' addresses
    llvm::DenseMap<std::pair<unsigned, unsigned>, llvm::Value *> extents; ///< i64: of buffers, by argument and dimension
    llvm::Value *handle = nullptr;             ///< of the coroutine
    llvm::BasicBlock *suspendBlock = nullptr;
    llvm::AllocaInst *passed = nullptr;        ///< `waits`: i32, all subgroups' arrivals at the barriers it came to
    llvm::AllocaInst *phase = nullptr;         ///< `cooperates`: i32, barriers of the grid that it has passed
    llvm::AllocaInst *countdown = nullptr;     ///< i32, instructions until the next look at the launch; null before loops
  } frame;

  // Types and values
  llvm::Type *scalarType(mlir::Type type);
  llvm::VectorType *vectorOf(llvm::Type *element) { return llvm::FixedVectorType::get(element, lanes); }
  llvm::Type *representation(mlir::Value value);
  llvm::Constant *offsetsVector(const LaneOffsets &offsets, llvm::Type *element);
  llvm::Constant *lanesVector(llvm::function_ref<int64_t(unsigned lane)> element, llvm::Type *type);
  llvm::Constant *maskVector(llvm::function_ref<bool(unsigned lane)> element);
  llvm::Value *splat(llvm::Value *scalar) { return b.CreateVectorSplat(lanes, scalar); }
  llvm::Value *getBase(mlir::Value value) { return values.lookup(value).base; }
  llvm::Value *getVector(mlir::Value value);
  llvm::Value *getFirstLane(mlir::Value value);
  void define(mlir::Value value, llvm::Value *scalarOrVector);
  llvm::Value *convertTo(mlir::Value from, mlir::Value shapedLike);
  llvm::SmallVector<llvm::Value *> convertAll(mlir::ValueRange from, mlir::ValueRange shapedLike);

  // Masks
  llvm::Value *allLanes() { return llvm::Constant::getAllOnesValue(vectorOf(b.getInt1Ty())); }
  llvm::Value *activeLanes(llvm::Value *mask) { return mask ? mask : allLanes(); }
  llvm::Value *both(llvm::Value *outer, llvm::Value *inner);
  llvm::Value *freeze(llvm::Value *value);
  llvm::Value *bits(llvm::Value *mask);
  llvm::Value *anyLane(llvm::Value *mask);
  llvm::Value *extractLane(llvm::Value *vector, llvm::Value *lane);
  std::optional<uint64_t> constantBits(llvm::Value *mask);

  // Blocks.cpp: the launch record, the loop over blocks and their subgroups
  llvm::Function *createEntry();
  void loadLaunch();
  mlir::LogicalResult emitSubgroups();
  mlir::LogicalResult emitSteps(mlir::Block &block);
  mlir::LogicalResult emitSubgroupLoop(unsigned count, llvm::function_ref<mlir::LogicalResult(llvm::Value *)> body);
  void enterSubgroup(llvm::Value *number, bool partial);

  // Copies.cpp
  uint64_t getSizeOfCopies(mlir::Block &block, bool unrollLoops);
  void chooseUnrolling(bool allowed);

  // Checks.cpp
  uint64_t getLength(mlir::Block &block);
  bool mayTakeLong(mlir::scf::ForOp loop);
  bool goesInParts(mlir::scf::ForOp loop);
  void emitCheck(uint64_t length);

  // Slots.cpp
  llvm::SmallSetVector<mlir::Value, 8> getSlotOwners();
  mlir::Value getSlotOwner(mlir::Value value);
  void placeSlots();
  void createSlots();
  void createLocalArrays();
  mlir::LogicalResult emitSegment(const Segment &segment, llvm::Value *number, bool partial);

  // Coroutines.cpp
  mlir::LogicalResult emitCoroutine(llvm::StringRef name, bool partial, llvm::Function *&result);
  mlir::LogicalResult emitCoroutineDriver(llvm::Value *worker);
  void emitSuspend(bool final);
  void emitWait(llvm::Value *counter, llvm::Value *wanted);
  void emitBarrier();
  void emitGridBarrier();
  llvm::Value *stateField(size_t offset);
  unsigned sharedBytes = 0, stateOffset = 0;
  /// Of a subgroup's private arrays; where the first subgroup's begin in the block's memory.
  uint64_t privateBytes = 0, privateStart = 0;
  llvm::DenseMap<mlir::Operation *, uint64_t> privateOffsets;

public:
  unsigned getSharedBytes() const { return sharedBytes; }
  llvm::ArrayRef<bool> getNarrowDims() const { return analysis.getNarrowDims(); }

private:
  // One op
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitOp(mlir::Operation &op);
  void beginLines(llvm::Function &function);
  mlir::LogicalResult unsupported(mlir::Operation &op);
  mlir::LogicalResult emitElementwise(mlir::Operation &op);
  llvm::Value *emitBaseOp(mlir::Operation &op);
  llvm::Value *emitDivision(mlir::Operation &op, llvm::ArrayRef<llvm::Value *> operands);
  llvm::Value *emitSmallFloat(mlir::Operation &op, llvm::ArrayRef<llvm::Value *> operands);

  // Branches.cpp, ForLoops.cpp, WhileLoops.cpp
  mlir::LogicalResult emitIf(mlir::scf::IfOp op);
  mlir::LogicalResult emitUniformIf(mlir::scf::IfOp op);
  mlir::LogicalResult emitDivergentIf(mlir::scf::IfOp op);
  mlir::LogicalResult emitArm(mlir::Block *block, llvm::Value *armMask, mlir::ValueRange results,
                              llvm::SmallVectorImpl<llvm::Value *> &yielded);
  bool isCheap(mlir::Block &block);
  mlir::LogicalResult emitFor(mlir::scf::ForOp op);
  void emitRoundEnd(mlir::scf::ForOp op);
  llvm::BasicBlock *endLoop(mlir::scf::ForOp op, llvm::PHINode *variable, llvm::Value *upper, llvm::BasicBlock *after,
                            llvm::function_ref<llvm::Value *(llvm::Value *upper)> goesOn);
  mlir::LogicalResult emitUniformFor(mlir::scf::ForOp op);
  mlir::LogicalResult emitEnteredIf(mlir::scf::IfOp op);
  mlir::LogicalResult emitEnteredFor(mlir::scf::ForOp op);
  struct MaskedLoop;
  mlir::LogicalResult emitCountedFor(mlir::scf::ForOp op);
  mlir::LogicalResult emitDivergentFor(mlir::scf::ForOp op);
  mlir::LogicalResult emitWhile(mlir::scf::WhileOp op);
  void emitTurn(mlir::scf::WhileOp op);
  mlir::LogicalResult emitUniformWhile(mlir::scf::WhileOp op);
  mlir::LogicalResult emitDivergentWhile(mlir::scf::WhileOp op);

  // Index.cpp
  void emitThreadId(mlir::Value result, Dim dim, bool global);
  mlir::LogicalResult emitIndexOp(mlir::Operation &op, bool &handled);

  // Memory.cpp
  struct Address {
    llvm::Value *pointer = nullptr;        ///< the array's start, or lane 0's element where `isKnown`
    bool isKnown = false;                  ///< the elements stand at `offsets` from `pointer`
    const LaneOffsets *offsets = nullptr;
    llvm::Value *elements = nullptr;       ///< otherwise: a vector of subscripts
    int64_t stride = 1;                    ///< elements from one value of the last subscript to the next
  };
  /// Arrays that overlap no other: shared ones of their own place and buffers that are declared so.
  llvm::MapVector<mlir::Value, llvm::MDNode *> aliasScopes;
  void createAliasScopes();
  /// Tells an access of `array` apart from those of arrays that it cannot overlap.
  void annotate(llvm::Instruction *access, mlir::Value array);
  /// The type that an element has in memory, and a value or vector on its way there and back.
  llvm::Type *getStorageType(mlir::Type element);
  llvm::Value *fromStorage(llvm::Value *stored, llvm::Type *scalar);
  llvm::Value *toStorage(llvm::Value *value, llvm::Type *storage);
  llvm::Value *arrayPointer(mlir::Value array);
  llvm::Constant *getTable(ConstantOp table);
  Address locate(mlir::Value array, mlir::OperandRange indices, llvm::ArrayRef<int64_t> literals, llvm::Type *element);
  llvm::Value *lanePointers(const Address &address, llvm::Type *element);
  llvm::Value *lanePointer(const Address &address, llvm::Type *element, unsigned lane);
  bool isContiguous(const LaneOffsets *offsets);
  void emitLoad(LoadOp op);
  void emitStore(StoreOp op);
  void storeValue(StoreOp op, llvm::Value *value);
  void storeVector(const Address &address, llvm::Value *vector, llvm::Value *active, mlir::Value array);
  llvm::DenseSet<mlir::Operation *> postponed; ///< stores that follow behind both arms of a branch
  llvm::Instruction *emitVectorLoad(const Address &address, llvm::Type *element, llvm::Value *active,
                                    llvm::Value *otherwise);

  // ReadAhead.cpp
  bool readsAhead = false; ///< a block works for long between its loads and the next block's
  void readAhead(LoadOp op, llvm::Value *pointer);

  // MaskedAccess.cpp
  bool hasMaskedAccess(llvm::Type *element);
  void emitWholeOrSome(llvm::Value *active, llvm::function_ref<void()> whole, llvm::function_ref<void()> some);
  llvm::Value *loadConsecutive(const Address &address, llvm::Type *element, llvm::Value *active, llvm::Value *otherwise,
                               mlir::Value array);
  void storeConsecutive(const Address &address, llvm::Value *vector, llvm::Value *active, mlir::Value array);
  llvm::Value *divertPointers(llvm::Value *pointers, llvm::Value *active);

  // Atomic.cpp
public:
  /// What one lane after the other accesses.
  struct LaneAccess {
    mlir::Operation *op;
    mlir::Value array;
    mlir::OperandRange indices;
    llvm::ArrayRef<int64_t> literals;
    mlir::Value predicate; ///< may be null
    mlir::Type element;
  };

private:
  /// A value that a lane picks at run time: one for all, or its entry of a table in memory.
  struct LaneOperand {
    llvm::Value *uniform = nullptr;
    llvm::AllocaInst *table = nullptr;
  };
  /// One lane's access; a value of the result's type, or null.
  using LaneAccessBody =
      llvm::function_ref<llvm::Value *(llvm::Value *pointer, llvm::ArrayRef<llvm::Value *> operands)>;
  llvm::AllocaInst *createLaneTable(llvm::Type *element);
  LaneOperand spill(llvm::Value *value);
  llvm::Value *getLane(const LaneOperand &operand, llvm::Value *lane);
  bool isCheapByLane(mlir::Value value, mlir::Operation *user, unsigned depth = 0);
  llvm::Value *emitByLane(mlir::Value value, unsigned lane);
  /// Copies of a cheap body take turns without a loop where all lanes are active.
  void forEachLane(llvm::Value *active, bool isCheap, llvm::function_ref<void(llvm::Value *lane)> body);
  /// The lanes' results as a vector; null without `resultType`. Lanes that take no part have `otherwise`, or anything.
  llvm::Value *accessEachLane(const LaneAccess &access, llvm::ArrayRef<llvm::Value *> operands, mlir::Value otherwise,
                              llvm::Type *resultType, LaneAccessBody body);
  llvm::Value *getStored(mlir::Value value, llvm::Type *storage);
  void emitAtomicRMW(AtomicRMWOp op);
  void emitAtomicCAS(AtomicCASOp op);
  template <typename Op> void emitLaneLoad(Op op, llvm::AtomicOrdering order, bool isVolatile);
  template <typename Op> void emitLaneStore(Op op, llvm::AtomicOrdering order, bool isVolatile);
  /// Emits atomic and volatile accesses and fences; false for another op.
  bool emitAtomicOp(mlir::Operation &op);

  // Tallies.cpp
  /// Sums of what threads add in all blocks, a vector for each subgroup, and what computes their subscripts.
  struct Tally {
    llvm::SetVector<mlir::Operation *> subscripts;
    llvm::AllocaInst *sums = nullptr;
  };
  struct TallyPlace {
    llvm::Type *type;
    llvm::Value *pointer;
    llvm::Align alignment;
  };
  llvm::MapVector<mlir::Operation *, Tally> tallies;
  void chooseTallies();
  void createTallies();
  TallyPlace getTallyPlace(const Tally &tally);
  /// Whether the addition is to a tally, which it emits then.
  bool emitTally(AtomicRMWOp op);
  void addTally(AtomicRMWOp op, const Tally &tally);
  mlir::LogicalResult addTallies();

  // Report.cpp
  llvm::Value *getReports();
  llvm::Value *getBlockNumber();
  llvm::FunctionCallee getCallee(llvm::StringRef name, llvm::ArrayRef<llvm::Type *> operands);
  void emitPrint(PrintOp op);
  void emitAssert(AssertOp op);
  /// Emits prints, asserts and pauses; false for another op.
  bool emitReportOp(mlir::Operation &op);

  // Subgroup.cpp
  llvm::Value *permute(llvm::Value *vector, llvm::ArrayRef<int> sources);
  llvm::Value *permute(llvm::Value *vector, llvm::Value *sources);
  llvm::Value *permuteWords(llvm::Value *words, llvm::Value *sources);
  mlir::LogicalResult emitSubgroupOp(mlir::Operation &op, bool &handled);
  void emitShuffle(mlir::Operation &op, llvm::Value *lane, std::optional<int32_t> constant, unsigned tile,
                   bool poisonEdge);
  void emitVote(mlir::Operation &op, mlir::Value predicate, unsigned tile, bool all);
  void emitBallot(BallotOp op);
  void emitAssumeUniform(AssumeUniformOp op);
};

} // namespace qd

#endif
