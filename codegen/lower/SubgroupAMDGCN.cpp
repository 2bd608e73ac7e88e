//===- SubgroupAMDGCN.cpp - subgroup ops on AMDGCN -----------------------------------------===//
//
// Moves by constants follow LaneMove's plans. All others are a general shuffle, of which there are four:
// - readlane, where all lanes read the same lane;
// - ds_bpermute, where it reaches the whole wave;
// - RDNA3 at 64 lanes: ds_bpermute reaches the own half only, so the value and its copy with the halves swapped
//   are both read. The swap writes active lanes only, so all lanes must take part;
// - otherwise a store to and a load from the block's shared memory.
//
//===----------------------------------------------------------------------===//

#include "codegen/lower/LaneMove.h"
#include "codegen/lower/Subgroup.h"

#include "mlir/IR/Matchers.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"

using namespace mlir;
namespace Intrinsic = llvm::Intrinsic;

namespace qd {

/// An identity that the optimiser cannot look through.
static llvm::Value *emitOpaque(GPUEmitter &e, llvm::Value *word, bool isPinned = false) {
  auto *type = llvm::FunctionType::get(word->getType(), {word->getType()}, /*isVarArg=*/false);
  return e.b.CreateCall(llvm::InlineAsm::get(type, "", "=v,0", /*hasSideEffects=*/isPinned), {word});
}

llvm::Value *amdgcn::emitPinned(GPUEmitter &e, llvm::Value *moved) { return emitOpaque(e, moved, /*isPinned=*/true); }

/// Only the 64-bit ballot selects on every wave size.
static llvm::Value *emitBallot(GPUEmitter &e, llvm::Value *predicate) {
  return e.b.CreateIntrinsic(Intrinsic::amdgcn_ballot, {e.b.getInt64Ty()}, {predicate});
}

/// In waves of 64 a mask takes two instructions, and a comparison hardly more, but for those of one bit.
llvm::Value *amdgcn::emitLaneBit(GPUEmitter &e, arith::CmpIOp compare) {
  Value lane = compare.getLhs();
  llvm::APInt kept(32, ~0u), limit;
  bool isMasked = false;
  if (auto masked = lane.getDefiningOp<arith::AndIOp>();
      masked && matchPattern(masked.getRhs(), m_ConstantInt(&kept))) {
    lane = masked.getLhs();
    isMasked = true;
  }
  if (!isa_and_nonnull<LaneIdOp, ThreadIndexOp>(lane.getDefiningOp()) || kept.getBitWidth() != 32 ||
      !matchPattern(compare.getRhs(), m_ConstantInt(&limit)))
    return nullptr;
  // A thread's number has its lane's in the low bits.
  unsigned size = e.target.subgroupSize;
  if (!isMasked || !kept.ult(size) || (size == 64 && !(kept.isPowerOf2() && limit.isZero())))
    return nullptr;
  uint64_t lanes = 0;
  for (unsigned i = 0; i < size; ++i)
    lanes |= uint64_t(arith::applyCmpPredicate(compare.getPredicate(), llvm::APInt(32, i & kept.getZExtValue()), limit))
             << i;
  return e.b.CreateIntrinsic(Intrinsic::amdgcn_inverse_ballot, {e.b.getInt64Ty()}, {e.b.getInt64(lanes)});
}

llvm::Value *amdgcn::emitLaneDifference(GPUEmitter &e, arith::XOrIOp difference) {
  uint64_t lanes = 0;
  for (Value operand : difference.getOperands()) {
    if (!operand.getType().isInteger(1))
      return nullptr;
    auto *mask = llvm::dyn_cast<llvm::IntrinsicInst>(e.get(operand));
    auto *constant = mask && mask->getIntrinsicID() == Intrinsic::amdgcn_inverse_ballot
                         ? llvm::dyn_cast<llvm::ConstantInt>(mask->getArgOperand(0))
                         : nullptr;
    if (!constant)
      return nullptr;
    lanes ^= constant->getZExtValue();
  }
  return e.b.CreateIntrinsic(Intrinsic::amdgcn_inverse_ballot, {e.b.getInt64Ty()}, {e.b.getInt64(lanes)});
}

//===----------------------------------------------------------------------===//
// Fixed moves
//===----------------------------------------------------------------------===//

/// One instruction on an i32. With `old`, lanes to which it gives nothing have that; else anything.
static llvm::Value *emitMove(GPUEmitter &e, LaneMove move, llvm::Value *word, llvm::Value *old) {
  llvm::IRBuilder<> &b = e.b;
  llvm::Type *i32 = b.getInt32Ty();
  llvm::Value *poison = llvm::PoisonValue::get(i32);
  switch (move.instr) {
  case LaneInstr::DPP:
    // Zero in place of `old` lets the move fold into the operation that uses it.
    return b.CreateIntrinsic(Intrinsic::amdgcn_update_dpp, {i32},
                             {old ? old : poison, word, b.getInt32(move.control), b.getInt32(15), b.getInt32(15),
                              b.getInt1(!old)});
  case LaneInstr::DPP8:
    return amdgcn::emitPinned(e,
                              b.CreateIntrinsic(Intrinsic::amdgcn_mov_dpp8, {i32}, {word, b.getInt32(move.control)}));
  case LaneInstr::PermLane16:
  case LaneInstr::PermLaneX16:
    return b.CreateIntrinsic(move.instr == LaneInstr::PermLane16 ? Intrinsic::amdgcn_permlane16
                                                                 : Intrinsic::amdgcn_permlanex16,
                             {i32},
                             {poison, word, b.getInt32(uint32_t(move.control)), b.getInt32(move.control >> 32),
                              b.getFalse(), b.getFalse()});
  case LaneInstr::PermLane64:
    return amdgcn::emitPinned(e, b.CreateIntrinsic(Intrinsic::amdgcn_permlane64, {i32}, {word}));
  case LaneInstr::RowSwap: {
    // Of two copies of the value one ends with the lower rows twice, the other with the upper rows.
    Intrinsic::ID id =
        move.control == 16 ? Intrinsic::amdgcn_permlane16_swap : Intrinsic::amdgcn_permlane32_swap;
    llvm::Value *pair = b.CreateIntrinsic(id, {}, {word, word, b.getFalse(), b.getFalse()});
    llvm::Value *isUpper =
        b.CreateICmpNE(b.CreateAnd(e.getLaneId(), b.getInt32(move.control)), b.getInt32(0));
    return b.CreateSelect(isUpper, b.CreateExtractValue(pair, 0), b.CreateExtractValue(pair, 1));
  }
  case LaneInstr::ReadLane:
    return b.CreateIntrinsic(Intrinsic::amdgcn_readlane, {i32}, {word, b.getInt32(move.control)});
  case LaneInstr::Swizzle:
    return b.CreateIntrinsic(Intrinsic::amdgcn_ds_swizzle, {}, {word, b.getInt32(move.control)});
  }
  return poison;
}

static llvm::Value *emitPlan(GPUEmitter &e, const MovePlan &plan, llvm::Value *value) {
  return moveAsWords(e, value, [&](llvm::Value *word) {
    llvm::Value *old = plan.filler ? emitMove(e, *plan.filler, word, nullptr) : plan.keepsOwn ? word : nullptr;
    for (LaneMove hop : plan.hops)
      word = emitMove(e, hop, word, old);
    return word;
  });
}

//===----------------------------------------------------------------------===//
// General shuffles
//===----------------------------------------------------------------------===//

/// RDNA3's pair of reads. `lane` is a lane of the wave.
static llvm::Value *emitReadPair(GPUEmitter &e, llvm::Value *value, llvm::Value *lane) {
  llvm::IRBuilder<> &b = e.b;
  // A lane that turns out to be uniform would make a readlane of each read, which is not confined to its half.
  lane = emitOpaque(e, lane);
  llvm::Value *address = b.CreateShl(lane, 2);
  llvm::Value *isUpper = b.CreateICmpNE(b.CreateAnd(lane, b.getInt32(32)), b.getInt32(0));
  llvm::Value *crosses = b.CreateXor(emitBallot(e, isUpper), b.getInt64(0xffffffff00000000));
  llvm::Value *fromOther = b.CreateIntrinsic(Intrinsic::amdgcn_inverse_ballot, {b.getInt64Ty()}, {crosses});
  return moveAsWords(e, value, [&](llvm::Value *word) {
    llvm::Value *swapped =
        amdgcn::emitPinned(e, b.CreateIntrinsic(Intrinsic::amdgcn_permlane64, {b.getInt32Ty()}, {word}));
    llvm::Value *own = b.CreateIntrinsic(Intrinsic::amdgcn_ds_bpermute, {address, word});
    llvm::Value *other = b.CreateIntrinsic(Intrinsic::amdgcn_ds_bpermute, {address, swapped});
    return b.CreateSelect(fromOther, other, own);
  });
}

/// The block's array for shuffles through shared memory: a word a thread.
static llvm::GlobalVariable *getExchangeArray(GPUEmitter &e) {
  std::string name = (e.getKernel().getSymName() + ".exchange").str();
  if (llvm::GlobalVariable *array = e.module.getGlobalVariable(name, /*AllowInternal=*/true))
    return array;
  uint64_t threads = llvm::alignTo(e.getKernel().getNumThreads(), e.target.subgroupSize);
  auto *type = llvm::ArrayType::get(e.b.getInt32Ty(), threads);
  auto *array = new llvm::GlobalVariable(e.module, type, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
                                         llvm::PoisonValue::get(type), name, /*InsertBefore=*/nullptr,
                                         llvm::GlobalValue::NotThreadLocal, /*LDS*/ 3);
  array->setAlignment(llvm::Align(16));
  return array;
}

/// A wave's LDS accesses execute in order; atomics keep the compiler from reordering what it takes for accesses of
/// one thread, and the barrier, of which no instruction comes, from a copy of them for lanes that came another way:
/// those would read before the others have written.
static llvm::Value *emitReadThroughLDS(GPUEmitter &e, llvm::Value *value, llvm::Value *lane) {
  llvm::IRBuilder<> &b = e.b;
  llvm::GlobalVariable *array = getExchangeArray(e);
  llvm::SyncScope::ID wavefront = e.module.getContext().getOrInsertSyncScopeID("wavefront");
  uint32_t size = e.target.subgroupSize;
  llvm::Value *base = b.CreateAnd(e.getThreadIndex(), b.getInt32(~(size - 1)));
  auto getSlot = [&](llvm::Value *thread) { return b.CreateInBoundsGEP(b.getInt32Ty(), array, thread); };
  llvm::Value *own = getSlot(e.getThreadIndex()),
              *source = getSlot(b.CreateOr(base, b.CreateAnd(lane, b.getInt32(size - 1))));
  return moveAsWords(e, value, [&](llvm::Value *word) -> llvm::Value * {
    // Lanes past an edge may hold poison here, which nobody reads.
    word = b.CreateFreeze(word);
    b.CreateAlignedStore(word, own, llvm::Align(4))->setAtomic(llvm::AtomicOrdering::Monotonic, wavefront);
    b.CreateFence(llvm::AtomicOrdering::AcquireRelease, wavefront);
    b.CreateIntrinsic(Intrinsic::amdgcn_wave_barrier, {});
    llvm::LoadInst *load = b.CreateAlignedLoad(b.getInt32Ty(), source, llvm::Align(4));
    load->setAtomic(llvm::AtomicOrdering::Monotonic, wavefront);
    return load;
  });
}

/// Whether `ds_bpermute` is what moves between any lanes. It ignores the bits of an address above the wave's.
static bool movesByBpermute(GPUEmitter &e) { return e.target.subgroupSize == 32 || e.target.has(BpermuteWave); }

/// Each lane reads the lane `lane + offset` modulo the wave's size, 0 <= offset < size.
static llvm::Value *emitRead(GPUEmitter &e, bool hasAllLanes, llvm::Value *value, llvm::Value *lane,
                             unsigned offset = 0) {
  llvm::IRBuilder<> &b = e.b;
  if (movesByBpermute(e)) {
    // An addend on the address becomes the instruction's offset.
    llvm::Value *address = b.CreateShl(lane, 2);
    if (offset)
      address = b.CreateAdd(address, b.getInt32(4 * offset));
    return moveAsWords(e, value, [&](llvm::Value *word) {
      return b.CreateIntrinsic(Intrinsic::amdgcn_ds_bpermute, {address, word});
    });
  }
  if (offset)
    lane = b.CreateAdd(lane, b.getInt32(offset));
  return e.target.has(PermLane64) && hasAllLanes ? emitReadPair(e, value, lane) : emitReadThroughLDS(e, value, lane);
}

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

namespace {
/// What a shuffle op asks for.
struct Shuffle {
  template <typename Op> Shuffle(GPUEmitter &e, Op op) : tile(getTile(e, op)) {
    value = e.get(op.getValue());
    hasAllLanes = e.hasAllLanes(op);
    // Members may be some of the lanes even where the conditions do not tell.
    if constexpr (std::is_same_v<Op, ShuffleOp>)
      hasAllLanes = hasAllLanes && (!op.getMembers() || e.isReachedByAll(op));
    if constexpr (!std::is_same_v<Op, BroadcastFirstOp>) {
      constant = op.getConstantLane();
      isUniform = op.getLane() && e.isUniform(op.getLane());
      lane = constant ? e.b.getInt32(*constant) : e.get(op.getLane());
    }
  }

  unsigned tile;
  llvm::Value *value;
  std::optional<int32_t> constant = 0; ///< the lane operand where it is one
  llvm::Value *lane = nullptr;
  bool isUniform = false;
  bool hasAllLanes = false;
};
} // namespace

static std::optional<MovePlan> plan(GPUEmitter &e, const Shuffle &s, llvm::function_ref<int(int lane)> source) {
  LaneMap map(e.target.subgroupSize, [&](unsigned lane) { return source(int(lane)); });
  return planMove(map, e.target, s.hasAllLanes);
}

static llvm::Value *getLaneInTile(GPUEmitter &e, unsigned tile) {
  return tile == e.target.subgroupSize ? e.getLaneId() : e.b.CreateAnd(e.getLaneId(), e.b.getInt32(tile - 1));
}

/// shuffle and broadcast: each lane reads a lane of its tile, modulo the tile.
static llvm::Value *emitShuffle(GPUEmitter &e, const Shuffle &s) {
  llvm::IRBuilder<> &b = e.b;
  unsigned size = e.target.subgroupSize;
  if (s.constant) {
    int n = *s.constant & int(s.tile - 1), tile = int(s.tile);
    if (tile == 32 && size == 64) {
      llvm::Value *lower = emitPlan(e, MovePlan{{{LaneInstr::ReadLane, uint64_t(n)}}, {}, false, 1}, s.value);
      llvm::Value *upper = emitPlan(e, MovePlan{{{LaneInstr::ReadLane, uint64_t(32 + n)}}, {}, false, 1}, s.value);
      return b.CreateSelect(b.CreateICmpULT(e.getLaneId(), b.getInt32(32)), lower, upper);
    }
    if (std::optional<MovePlan> found = plan(e, s, [&](int lane) { return (lane & -tile) + n; }))
      return emitPlan(e, *found, s.value);
  }
  llvm::Value *lane = s.constant ? b.getInt32(*s.constant) : s.lane;
  lane = b.CreateAnd(lane, b.getInt32(s.tile - 1));
  if (s.tile == size && s.isUniform)
    return moveAsWords(e, s.value, [&](llvm::Value *word) {
      return b.CreateIntrinsic(Intrinsic::amdgcn_readlane, {b.getInt32Ty()}, {word, lane});
    });
  if (s.tile < size)
    lane = b.CreateOr(b.CreateAnd(e.getLaneId(), b.getInt32(~(s.tile - 1))), lane);
  return emitRead(e, s.hasAllLanes, s.value, lane);
}

void amdgcn::lowerShuffle(GPUEmitter &e, Operation *op) {
  e.set(op->getResult(0), emitShuffle(e, Shuffle(e, cast<ShuffleOp>(op))));
}

void amdgcn::lowerBroadcast(GPUEmitter &e, Operation *op) {
  e.set(op->getResult(0), emitShuffle(e, Shuffle(e, cast<BroadcastOp>(op))));
}

void amdgcn::lowerBroadcastFirst(GPUEmitter &e, Operation *op) {
  e.set(op->getResult(0), emitShuffle(e, Shuffle(e, cast<BroadcastFirstOp>(op))));
}

void amdgcn::lowerShuffleXor(GPUEmitter &e, Operation *op) {
  Shuffle s(e, cast<ShuffleXorOp>(op));
  if (s.constant)
    if (std::optional<MovePlan> found = plan(e, s, [&](int lane) { return lane ^ *s.constant; })) {
      e.set(op->getResult(0), emitPlan(e, *found, s.value));
      return;
    }
  llvm::Value *mask = e.b.CreateAnd(s.lane, e.b.getInt32(s.tile - 1));
  // Threads' numbers, where those of lanes are their lower bits, take no instruction.
  bool hasRows = e.getKernel().getBlockDim(1) > 1 || e.getKernel().getBlockDim(2) > 1;
  llvm::Value *own = movesByBpermute(e) && !hasRows ? e.getThreadIndex() : e.getLaneId();
  e.set(op->getResult(0), emitRead(e, s.hasAllLanes, s.value, e.b.CreateXor(own, mask)));
}

/// Shifts by a constant below the tile: lanes with no source in their tile keep their value if `keepsOwn`.
static llvm::Value *emitShiftBy(GPUEmitter &e, const Shuffle &s, int n, bool isUp, bool keepsOwn) {
  llvm::IRBuilder<> &b = e.b;
  int tile = int(s.tile), size = int(e.target.subgroupSize);
  auto getSource = [&](int lane, int edge) {
    int source = isUp ? lane - n : lane + n;
    return source >= 0 && (source & -tile) == (lane & -tile) ? source : edge;
  };
  std::optional<MovePlan> loose = plan(e, s, [&](int lane) { return getSource(lane, LaneMap::any); });
  if (keepsOwn) {
    std::optional<MovePlan> exact = plan(e, s, [&](int lane) { return getSource(lane, lane); });
    if (exact && (!loose || exact->cost <= loose->cost + 1))
      return emitPlan(e, *exact, s.value);
  }
  llvm::Value *moved =
      loose ? emitPlan(e, *loose, s.value) : emitRead(e, s.hasAllLanes, s.value, e.getLaneId(), isUp ? size - n : n);
  if (!keepsOwn)
    return moved;
  llvm::Value *inTile = getLaneInTile(e, s.tile);
  llvm::Value *hasSource =
      isUp ? b.CreateICmpUGE(inTile, b.getInt32(n)) : b.CreateICmpULT(inTile, b.getInt32(tile - n));
  return b.CreateSelect(hasSource, moved, s.value);
}

template <typename Op> static void lowerShift(GPUEmitter &e, Op shift, bool isUp) {
  llvm::IRBuilder<> &b = e.b;
  Shuffle s(e, shift);
  bool keepsOwn = !shift.getPoisonEdge();
  if (s.constant) {
    bool isFar = *s.constant >= int(s.tile);
    e.set(shift, isFar ? s.value : emitShiftBy(e, s, *s.constant, isUp, keepsOwn));
    return;
  }
  llvm::Value *lane = e.getLaneId(), *source = isUp ? b.CreateSub(lane, s.lane) : b.CreateAdd(lane, s.lane);
  if (keepsOwn) {
    llvm::Value *inTile = getLaneInTile(e, s.tile);
    llvm::Value *room = isUp ? inTile : b.CreateSub(b.getInt32(s.tile - 1), inTile);
    source = b.CreateSelect(b.CreateICmpULE(s.lane, room), source, lane);
  }
  e.set(shift, emitRead(e, s.hasAllLanes, s.value, source));
}

void amdgcn::lowerShuffleUp(GPUEmitter &e, Operation *op) { lowerShift(e, cast<ShuffleUpOp>(op), true); }

void amdgcn::lowerShuffleDown(GPUEmitter &e, Operation *op) { lowerShift(e, cast<ShuffleDownOp>(op), false); }

//===----------------------------------------------------------------------===//
// Votes
//===----------------------------------------------------------------------===//

/// Lanes that are not here have no bit: EXEC sees to that.
void amdgcn::lowerBallot(GPUEmitter &e, Operation *op) {
  auto ballot = cast<BallotOp>(op);
  llvm::Value *bits = emitBallot(e, e.get(ballot.getPredicate()));
  e.set(ballot, ballot.getMembers() ? e.b.CreateAnd(bits, e.get(ballot.getMembers())) : bits);
}

void amdgcn::lowerActiveMask(GPUEmitter &e, Operation *op) {
  e.set(op->getResult(0), emitBallot(e, e.b.getTrue()));
}

void amdgcn::lowerAny(GPUEmitter &e, Operation *op) {
  e.set(op->getResult(0), e.b.CreateICmpNE(emitBallot(e, e.get(op->getOperand(0))), e.b.getInt64(0)));
}

/// Lanes that do not exist fail nothing.
void amdgcn::lowerAll(GPUEmitter &e, Operation *op) {
  llvm::Value *failing = emitBallot(e, e.b.CreateNot(e.get(op->getOperand(0))));
  e.set(op->getResult(0), e.b.CreateICmpEQ(failing, e.b.getInt64(0)));
}

//===----------------------------------------------------------------------===//
// Uniform values and order
//===----------------------------------------------------------------------===//

/// Integers decide branches, lanes and addresses, which cost less from scalar registers: there the first lane's value
/// goes, and of a predicate whether any lane has it. Arithmetic on floats has no scalar form to gain.
void amdgcn::lowerAssumeUniform(GPUEmitter &e, Operation *op) {
  llvm::Value *value = e.get(op->getOperand(0));
  llvm::Type *type = value->getType();
  if (type->isIntegerTy(1))
    value = e.b.CreateICmpNE(emitBallot(e, value), e.b.getInt64(0));
  else if (type->isIntegerTy(32) || type->isIntegerTy(64))
    value = e.b.CreateIntrinsic(Intrinsic::amdgcn_readfirstlane, {type}, {value});
  e.set(op->getResult(0), value);
}

static void emitWaveFence(GPUEmitter &e, llvm::AtomicOrdering ordering) {
  e.b.CreateFence(ordering, e.module.getContext().getOrInsertSyncScopeID("wavefront"));
}

/// A wave's lanes are never apart: only the compiler must keep the order.
void amdgcn::lowerSync(GPUEmitter &e, Operation *) {
  emitWaveFence(e, llvm::AtomicOrdering::Release);
  e.b.CreateIntrinsic(Intrinsic::amdgcn_wave_barrier, {});
  emitWaveFence(e, llvm::AtomicOrdering::Acquire);
}

void amdgcn::lowerMemFence(GPUEmitter &e, Operation *) { emitWaveFence(e, llvm::AtomicOrdering::AcquireRelease); }

} // namespace qd
