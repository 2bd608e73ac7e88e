//===- SubgroupNVPTX.cpp - subgroup ops on NVPTX -------------------------------------------------===//
//
// The rules for edges are those of ir/ops/Subgroup.td. shfl.sync has them itself: its operand c holds a segment
// mask, which confines lanes to a tile, and a clamp, past which a lane keeps its own value (PTX ISA, 9.7.9.6). It
// takes offsets modulo 32 though, so offsets of a tile or more are dealt with here.
//
// Every .sync instruction names the lanes that take part and waits for them: the members of an op that has such, so
// that it is right in divergent flow; else the lanes that exist.
//
//===----------------------------------------------------------------------===//

#include "codegen/lower/ShuffleGuard.h"
#include "codegen/lower/Subgroup.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace mlir;
namespace Intrinsic = llvm::Intrinsic;

namespace qd {

llvm::Value *nvptx::getMemberMask(GPUEmitter &e) {
  int64_t threads = e.getKernel().getNumThreads();
  if (threads % 32 == 0)
    return e.b.getInt32(~0u);
  llvm::Value *partial = e.b.getInt32((1u << (threads % 32)) - 1);
  if (threads < 32)
    return partial;
  llvm::Value *isLast = e.b.CreateICmpUGE(e.getThreadIndex(), e.b.getInt32(threads & ~31));
  return e.b.CreateSelect(isLast, partial, e.b.getInt32(~0u));
}

/// The same for an op whose `members` may be null.
static llvm::Value *getMembers(GPUEmitter &e, Value members) {
  return members ? e.b.CreateTrunc(e.get(members), e.b.getInt32Ty()) : nvptx::getMemberMask(e);
}

static llvm::Value *widenMask(GPUEmitter &e, llvm::Value *mask) { return e.b.CreateZExt(mask, e.b.getInt64Ty()); }

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

namespace {
enum class Shfl { Idx, Up, Down, Bfly };
}

/// The form of an up or down shuffle that also says whether the source is in range.
static Intrinsic::ID getWithPredicate(Intrinsic::ID shfl) {
  switch (shfl) {
  case Intrinsic::nvvm_shfl_sync_up_i32: return Intrinsic::nvvm_shfl_sync_up_i32p;
  case Intrinsic::nvvm_shfl_sync_up_f32: return Intrinsic::nvvm_shfl_sync_up_f32p;
  case Intrinsic::nvvm_shfl_sync_down_i32: return Intrinsic::nvvm_shfl_sync_down_i32p;
  case Intrinsic::nvvm_shfl_sync_down_f32: return Intrinsic::nvvm_shfl_sync_down_f32p;
  default: return Intrinsic::not_intrinsic;
  }
}

/// Where `hasSource` is asked for, it becomes whether the lane's source lies in the tile (not null).
static llvm::Value *emitShfl(GPUEmitter &e, Shfl mode, llvm::Value *mask, llvm::Value *value, llvm::Value *lane,
                             unsigned tile, llvm::Value **hasSource = nullptr) {
  static constexpr Intrinsic::ID words[] = {Intrinsic::nvvm_shfl_sync_idx_i32, Intrinsic::nvvm_shfl_sync_up_i32,
                                            Intrinsic::nvvm_shfl_sync_down_i32, Intrinsic::nvvm_shfl_sync_bfly_i32};
  static constexpr Intrinsic::ID floats[] = {Intrinsic::nvvm_shfl_sync_idx_f32, Intrinsic::nvvm_shfl_sync_up_f32,
                                             Intrinsic::nvvm_shfl_sync_down_f32, Intrinsic::nvvm_shfl_sync_bfly_f32};
  llvm::Value *control = e.b.getInt32(((32 - tile) << 8) | (mode == Shfl::Up ? 0 : 31));
  auto move = [&](llvm::Value *word) -> llvm::Value * {
    Intrinsic::ID id = (word->getType()->isFloatTy() ? floats : words)[unsigned(mode)];
    if (!hasSource || *hasSource)
      return e.b.CreateIntrinsic(id, {mask, word, lane, control});
    llvm::Value *pair = e.b.CreateIntrinsic(getWithPredicate(id), {mask, word, lane, control});
    *hasSource = e.b.CreateExtractValue(pair, 1);
    return e.b.CreateExtractValue(pair, 0);
  };
  return value->getType()->isFloatTy() ? move(value) : moveAsWords(e, value, move);
}

void nvptx::lowerShuffle(GPUEmitter &e, Operation *op) {
  auto shuffle = cast<ShuffleOp>(op);
  e.set(shuffle, emitShfl(e, Shfl::Idx, getMembers(e, shuffle.getMembers()), e.get(shuffle.getValue()),
                          getLaneOperand(e, shuffle), getTile(e, shuffle)));
}

void nvptx::lowerBroadcast(GPUEmitter &e, Operation *op) {
  auto broadcast = cast<BroadcastOp>(op);
  e.set(broadcast, emitShfl(e, Shfl::Idx, getMemberMask(e), e.get(broadcast.getValue()),
                            getLaneOperand(e, broadcast), getTile(e, broadcast)));
}

void nvptx::lowerBroadcastFirst(GPUEmitter &e, Operation *op) {
  auto broadcast = cast<BroadcastFirstOp>(op);
  e.set(broadcast, emitShfl(e, Shfl::Idx, getMemberMask(e), e.get(broadcast.getValue()), e.b.getInt32(0),
                            getTile(e, broadcast)));
}

void nvptx::lowerShuffleXor(GPUEmitter &e, Operation *op) {
  auto shuffle = cast<ShuffleXorOp>(op);
  unsigned tile = getTile(e, shuffle);
  llvm::Value *mask = e.b.CreateAnd(getLaneOperand(e, shuffle), e.b.getInt32(tile - 1));
  e.set(shuffle, emitShfl(e, Shfl::Bfly, getMemberMask(e), e.get(shuffle.getValue()), mask, tile));
}

template <typename Op> static void lowerShuffleEdge(GPUEmitter &e, Op shuffle, Shfl mode) {
  unsigned tile = getTile(e, shuffle);
  llvm::Value *value = e.get(shuffle.getValue()), *offset = getLaneOperand(e, shuffle);
  llvm::SmallVector<ShuffleGuard> guards;
  // A value of two words waits for the predicate of one of its two shuffles; comparing lanes ahead is faster there.
  bool isWord = value->getType()->getScalarSizeInBits() <= 32;
  if (std::optional<int32_t> n = shuffle.getConstantLane(); n && isWord)
    guards = findShuffleGuards(shuffle, e.target.subgroupSize, [&](unsigned lane) {
      return mode == Shfl::Up ? lane % tile >= unsigned(*n) : lane % tile + *n < tile;
    });
  llvm::Value *hasSource = nullptr;
  llvm::Value *moved =
      emitShfl(e, mode, nvptx::getMemberMask(e), value, offset, tile, guards.empty() ? nullptr : &hasSource);
  for (auto [condition, isInverted] : guards)
    e.setOperand(*condition, isInverted ? e.b.CreateNot(hasSource) : hasSource);
  if (!shuffle.getPoisonEdge())
    moved = e.b.CreateSelect(e.b.CreateICmpULT(offset, e.b.getInt32(tile)), moved, value);
  e.set(shuffle, moved);
}

void nvptx::lowerShuffleUp(GPUEmitter &e, Operation *op) { lowerShuffleEdge(e, cast<ShuffleUpOp>(op), Shfl::Up); }

void nvptx::lowerShuffleDown(GPUEmitter &e, Operation *op) {
  lowerShuffleEdge(e, cast<ShuffleDownOp>(op), Shfl::Down);
}

//===----------------------------------------------------------------------===//
// Votes and matches
//===----------------------------------------------------------------------===//

static void lowerVote(GPUEmitter &e, Operation *op, Intrinsic::ID vote) {
  e.set(op->getResult(0), e.b.CreateIntrinsic(vote, {nvptx::getMemberMask(e), e.get(op->getOperand(0))}));
}

void nvptx::lowerAll(GPUEmitter &e, Operation *op) { lowerVote(e, op, Intrinsic::nvvm_vote_all_sync); }
void nvptx::lowerAny(GPUEmitter &e, Operation *op) { lowerVote(e, op, Intrinsic::nvvm_vote_any_sync); }

/// Of a predicate only: other values are expanded.
void nvptx::lowerAllEqual(GPUEmitter &e, Operation *op) { lowerVote(e, op, Intrinsic::nvvm_vote_uni_sync); }

void nvptx::lowerBallot(GPUEmitter &e, Operation *op) {
  auto ballot = cast<BallotOp>(op);
  e.set(ballot, widenMask(e, e.b.CreateIntrinsic(Intrinsic::nvvm_vote_ballot_sync,
                                                 {getMembers(e, ballot.getMembers()),
                                                  e.get(ballot.getPredicate())})));
}

/// Where all lanes are here this is known; activemask may miss lanes that the hardware has not yet brought together.
void nvptx::lowerActiveMask(GPUEmitter &e, Operation *op) {
  llvm::Value *mask = e.isReachedByAll(op) ? getMemberMask(e) : e.b.CreateIntrinsic(Intrinsic::nvvm_activemask, {});
  e.set(op->getResult(0), widenMask(e, mask));
}

void nvptx::lowerMatchAny(GPUEmitter &e, Operation *op) {
  auto match = cast<MatchAnyOp>(op);
  llvm::Value *value = e.get(match.getValue());
  Intrinsic::ID id = value->getType()->isIntegerTy(64) ? Intrinsic::nvvm_match_any_sync_i64
                                                       : Intrinsic::nvvm_match_any_sync_i32;
  e.set(match, widenMask(e, e.b.CreateIntrinsic(id, {getMembers(e, match.getMembers()), value})));
}

void nvptx::lowerMatchAll(GPUEmitter &e, Operation *op) {
  auto match = cast<MatchAllOp>(op);
  llvm::Value *value = e.get(match.getValue());
  Intrinsic::ID id = value->getType()->isIntegerTy(64) ? Intrinsic::nvvm_match_all_sync_i64p
                                                       : Intrinsic::nvvm_match_all_sync_i32p;
  llvm::Value *pair = e.b.CreateIntrinsic(id, {getMembers(e, match.getMembers()), value});
  e.set(match.getMask(), widenMask(e, e.b.CreateExtractValue(pair, 0)));
  e.set(match.getSame(), e.b.CreateExtractValue(pair, 1));
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static Intrinsic::ID getRedux(Kind kind) {
  switch (kind) {
  case Kind::add: return Intrinsic::nvvm_redux_sync_add;
  case Kind::minsi: return Intrinsic::nvvm_redux_sync_min;
  case Kind::minui: return Intrinsic::nvvm_redux_sync_umin;
  case Kind::maxsi: return Intrinsic::nvvm_redux_sync_max;
  case Kind::maxui: return Intrinsic::nvvm_redux_sync_umax;
  case Kind::andi: return Intrinsic::nvvm_redux_sync_and;
  case Kind::ori: return Intrinsic::nvvm_redux_sync_or;
  case Kind::xori: return Intrinsic::nvvm_redux_sync_xor;
  default: return Intrinsic::not_intrinsic;
  }
}

/// Of an i32 by one of the kinds above: others are expanded.
void nvptx::lowerReduceAll(GPUEmitter &e, Operation *op) {
  auto reduce = cast<ReduceAllOp>(op);
  e.set(reduce.getResult(0),
        e.b.CreateIntrinsic(getRedux(*reduce.getKind()), {e.get(reduce.getValues()[0]), getMemberMask(e)}));
}

//===----------------------------------------------------------------------===//
// Registers and order
//===----------------------------------------------------------------------===//

void nvptx::lowerLaneMask(GPUEmitter &e, Operation *op) {
  Intrinsic::ID id = llvm::TypeSwitch<Operation *, Intrinsic::ID>(op)
                         .Case([](LaneMaskLtOp) { return Intrinsic::nvvm_read_ptx_sreg_lanemask_lt; })
                         .Case([](LaneMaskLeOp) { return Intrinsic::nvvm_read_ptx_sreg_lanemask_le; })
                         .Case([](LaneMaskEqOp) { return Intrinsic::nvvm_read_ptx_sreg_lanemask_eq; })
                         .Case([](LaneMaskGeOp) { return Intrinsic::nvvm_read_ptx_sreg_lanemask_ge; })
                         .Default([](Operation *) { return Intrinsic::nvvm_read_ptx_sreg_lanemask_gt; });
  e.set(op->getResult(0), e.b.CreateIntrinsic(id, {}));
}

void nvptx::lowerAssumeUniform(GPUEmitter &e, Operation *op) { e.set(op->getResult(0), e.get(op->getOperand(0))); }

/// bar.warp.sync orders the memory accesses of the lanes that it names (PTX ISA, 9.7.13).
void nvptx::lowerSync(GPUEmitter &e, Operation *) {
  e.b.CreateIntrinsic(Intrinsic::nvvm_bar_warp_sync, {getMemberMask(e)});
}

/// PTX has no scope below the block's (.cta), which holds the subgroup.
void nvptx::lowerMemFence(GPUEmitter &e, Operation *) {
  e.b.CreateFence(llvm::AtomicOrdering::AcquireRelease,
                  e.module.getContext().getOrInsertSyncScopeID("block"));
}

} // namespace qd
