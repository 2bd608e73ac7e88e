//===- Subgroup.cpp - subgroup ops on NVPTX and AMDGCN ------------------------------------------===//
//
// The rules for edges are those of ir/ops/Subgroup.td. NVPTX has them in shfl.sync itself: its operand c holds a
// segment mask, which confines lanes to a tile, and a clamp, past which a lane keeps its own value (PTX ISA, 9.7.9.6).
// It takes offsets modulo 32 though, so offsets of a tile or more are dealt with here.
//
//===----------------------------------------------------------------------===//

#include "codegen/lower/Subgroup.h"

#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace mlir;
namespace Intrinsic = llvm::Intrinsic;

namespace qd {

llvm::Value *moveAsWords(GPUEmitter &e, llvm::Value *value,
                         llvm::function_ref<llvm::Value *(llvm::Value *word)> move) {
  llvm::Type *type = value->getType(), *word = e.b.getInt32Ty();
  unsigned width = type->getScalarSizeInBits();
  if (width == 64) {
    // A vector and not shifts: the halves stay a register pair.
    auto *pairType = llvm::FixedVectorType::get(word, 2);
    llvm::Value *pair = e.b.CreateBitCast(value, pairType), *moved = llvm::PoisonValue::get(pairType);
    for (uint64_t half : {0, 1})
      moved = e.b.CreateInsertElement(moved, move(e.b.CreateExtractElement(pair, half)), half);
    return e.b.CreateBitCast(moved, type);
  }
  llvm::Type *bits = e.b.getIntNTy(width);
  llvm::Value *moved = move(e.b.CreateZExt(e.b.CreateBitCast(value, bits), word));
  return e.b.CreateBitCast(e.b.CreateTrunc(moved, bits), type);
}

template <typename Op> static unsigned getTile(GPUEmitter &e, Op op) {
  return op.getTile().value_or(e.target.subgroupSize);
}

/// The lane, offset or mask of a shuffle as an i32.
template <typename Op> static llvm::Value *getLaneOperand(GPUEmitter &e, Op op) {
  return op.getLane() ? e.get(op.getLane()) : e.b.getInt32(*op.getStaticLane());
}

//===----------------------------------------------------------------------===//
// NVPTX
//===----------------------------------------------------------------------===//

llvm::Value *getMemberMask(GPUEmitter &e) {
  int64_t threads = e.getKernel().getNumThreads();
  if (threads % 32 == 0)
    return e.b.getInt32(~0u);
  llvm::Value *partial = e.b.getInt32((1u << (threads % 32)) - 1);
  if (threads < 32)
    return partial;
  llvm::Value *isLast = e.b.CreateICmpUGE(e.getThreadIndex(), e.b.getInt32(threads & ~31));
  return e.b.CreateSelect(isLast, partial, e.b.getInt32(~0u));
}

namespace {
enum class Shfl { Idx, Up, Down, Bfly };
}

static llvm::Value *emitShfl(GPUEmitter &e, Shfl mode, llvm::Value *value, llvm::Value *lane, unsigned tile) {
  static constexpr Intrinsic::ID words[] = {Intrinsic::nvvm_shfl_sync_idx_i32, Intrinsic::nvvm_shfl_sync_up_i32,
                                            Intrinsic::nvvm_shfl_sync_down_i32, Intrinsic::nvvm_shfl_sync_bfly_i32};
  static constexpr Intrinsic::ID floats[] = {Intrinsic::nvvm_shfl_sync_idx_f32, Intrinsic::nvvm_shfl_sync_up_f32,
                                             Intrinsic::nvvm_shfl_sync_down_f32, Intrinsic::nvvm_shfl_sync_bfly_f32};
  llvm::Value *mask = getMemberMask(e);
  llvm::Value *control = e.b.getInt32(((32 - tile) << 8) | (mode == Shfl::Up ? 0 : 31));
  if (value->getType()->isFloatTy())
    return e.b.CreateIntrinsic(floats[unsigned(mode)], {mask, value, lane, control});
  return moveAsWords(e, value, [&](llvm::Value *word) {
    return e.b.CreateIntrinsic(words[unsigned(mode)], {mask, word, lane, control});
  });
}

/// shuffle and broadcast: the lane counts modulo the tile.
template <typename Op> static void lowerShuffleNVPTX(GPUEmitter &e, Operation *op) {
  auto shuffle = cast<Op>(op);
  e.set(shuffle, emitShfl(e, Shfl::Idx, e.get(shuffle.getValue()), getLaneOperand(e, shuffle), getTile(e, shuffle)));
}

static void lowerBroadcastFirstNVPTX(GPUEmitter &e, Operation *op) {
  auto broadcast = cast<BroadcastFirstOp>(op);
  e.set(broadcast, emitShfl(e, Shfl::Idx, e.get(broadcast.getValue()), e.b.getInt32(0), getTile(e, broadcast)));
}

static void lowerShuffleXorNVPTX(GPUEmitter &e, Operation *op) {
  auto shuffle = cast<ShuffleXorOp>(op);
  unsigned tile = getTile(e, shuffle);
  llvm::Value *mask = e.b.CreateAnd(getLaneOperand(e, shuffle), e.b.getInt32(tile - 1));
  e.set(shuffle, emitShfl(e, Shfl::Bfly, e.get(shuffle.getValue()), mask, tile));
}

/// shuffle_up and shuffle_down.
template <typename Op, Shfl mode> static void lowerShuffleEdgeNVPTX(GPUEmitter &e, Operation *op) {
  auto shuffle = cast<Op>(op);
  unsigned tile = getTile(e, shuffle);
  llvm::Value *value = e.get(shuffle.getValue()), *offset = getLaneOperand(e, shuffle);
  llvm::Value *moved = emitShfl(e, mode, value, offset, tile);
  if (!shuffle.getPoisonEdge())
    moved = e.b.CreateSelect(e.b.CreateICmpULT(offset, e.b.getInt32(tile)), moved, value);
  e.set(shuffle, moved);
}

template <Intrinsic::ID vote> static void lowerVoteNVPTX(GPUEmitter &e, Operation *op) {
  e.set(op->getResult(0), e.b.CreateIntrinsic(vote, {getMemberMask(e), e.get(op->getOperand(0))}));
}

static void lowerBallotNVPTX(GPUEmitter &e, Operation *op) {
  llvm::Value *bits =
      e.b.CreateIntrinsic(Intrinsic::nvvm_vote_ballot_sync, {getMemberMask(e), e.get(op->getOperand(0))});
  e.set(op->getResult(0), e.b.CreateZExt(bits, e.b.getInt64Ty()));
}

//===----------------------------------------------------------------------===//
// AMDGCN
//===----------------------------------------------------------------------===//

/// Each lane reads the lane that it names, below the wave's size.
static llvm::Value *emitRead(GPUEmitter &e, llvm::Value *value, llvm::Value *lane) {
  llvm::Value *address = e.b.CreateShl(lane, 2);
  return moveAsWords(e, value, [&](llvm::Value *word) {
    return e.b.CreateIntrinsic(Intrinsic::amdgcn_ds_bpermute, {address, word});
  });
}

/// The first lane of the own tile.
static llvm::Value *getTileBase(GPUEmitter &e, unsigned tile) {
  return e.b.CreateAnd(e.getLaneId(), e.b.getInt32(~(tile - 1)));
}

static llvm::Value *emitReadInTile(GPUEmitter &e, llvm::Value *value, llvm::Value *lane, unsigned tile) {
  lane = e.b.CreateAnd(lane, e.b.getInt32(tile - 1));
  if (tile < e.target.subgroupSize)
    lane = e.b.CreateOr(getTileBase(e, tile), lane);
  return emitRead(e, value, lane);
}

template <typename Op> static void lowerShuffleAMDGCN(GPUEmitter &e, Operation *op) {
  auto shuffle = cast<Op>(op);
  e.set(shuffle, emitReadInTile(e, e.get(shuffle.getValue()), getLaneOperand(e, shuffle), getTile(e, shuffle)));
}

static void lowerBroadcastFirstAMDGCN(GPUEmitter &e, Operation *op) {
  auto broadcast = cast<BroadcastFirstOp>(op);
  e.set(broadcast, emitReadInTile(e, e.get(broadcast.getValue()), e.b.getInt32(0), getTile(e, broadcast)));
}

static void lowerShuffleXorAMDGCN(GPUEmitter &e, Operation *op) {
  auto shuffle = cast<ShuffleXorOp>(op);
  llvm::Value *mask = e.b.CreateAnd(getLaneOperand(e, shuffle), e.b.getInt32(getTile(e, shuffle) - 1));
  e.set(shuffle, emitRead(e, e.get(shuffle.getValue()), e.b.CreateXor(e.getLaneId(), mask)));
}

/// shuffle_up and shuffle_down: lanes whose source lies past the edge read themselves.
template <typename Op, bool up> static void lowerShuffleEdgeAMDGCN(GPUEmitter &e, Operation *op) {
  auto shuffle = cast<Op>(op);
  unsigned tile = getTile(e, shuffle);
  llvm::Value *offset = getLaneOperand(e, shuffle), *lane = e.getLaneId();
  llvm::Value *source = up ? e.b.CreateSub(lane, offset) : e.b.CreateAdd(lane, offset);
  if (!shuffle.getPoisonEdge()) {
    llvm::Value *inTile = e.b.CreateAnd(lane, e.b.getInt32(tile - 1));
    llvm::Value *room = up ? inTile : e.b.CreateSub(e.b.getInt32(tile - 1), inTile);
    source = e.b.CreateSelect(e.b.CreateICmpULE(offset, room), source, lane);
  }
  e.set(shuffle, emitRead(e, e.get(shuffle.getValue()), source));
}

/// Only the 64-bit ballot selects on every wave size.
static llvm::Value *emitBallot(GPUEmitter &e, llvm::Value *predicate) {
  return e.b.CreateIntrinsic(Intrinsic::amdgcn_ballot, {e.b.getInt64Ty()}, {predicate});
}

static void lowerBallotAMDGCN(GPUEmitter &e, Operation *op) {
  e.set(op->getResult(0), emitBallot(e, e.get(op->getOperand(0))));
}

static void lowerAnyAMDGCN(GPUEmitter &e, Operation *op) {
  e.set(op->getResult(0), e.b.CreateICmpNE(emitBallot(e, e.get(op->getOperand(0))), e.b.getInt64(0)));
}

static void lowerAllAMDGCN(GPUEmitter &e, Operation *op) {
  llvm::Value *failing = emitBallot(e, e.b.CreateNot(e.get(op->getOperand(0))));
  e.set(op->getResult(0), e.b.CreateICmpEQ(failing, e.b.getInt64(0)));
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

llvm::ArrayRef<LoweringRow> getSubgroupLowerings() {
  static constexpr LoweringRow rows[] = {
      // op, nvptx, amdgcn
      {"qd.subgroup.shuffle", lowerShuffleNVPTX<ShuffleOp>, lowerShuffleAMDGCN<ShuffleOp>},
      {"qd.subgroup.broadcast", lowerShuffleNVPTX<BroadcastOp>, lowerShuffleAMDGCN<BroadcastOp>},
      {"qd.subgroup.broadcast_first", lowerBroadcastFirstNVPTX, lowerBroadcastFirstAMDGCN},
      {"qd.subgroup.shuffle_xor", lowerShuffleXorNVPTX, lowerShuffleXorAMDGCN},
      {"qd.subgroup.shuffle_up", lowerShuffleEdgeNVPTX<ShuffleUpOp, Shfl::Up>,
       lowerShuffleEdgeAMDGCN<ShuffleUpOp, true>},
      {"qd.subgroup.shuffle_down", lowerShuffleEdgeNVPTX<ShuffleDownOp, Shfl::Down>,
       lowerShuffleEdgeAMDGCN<ShuffleDownOp, false>},
      {"qd.subgroup.ballot", lowerBallotNVPTX, lowerBallotAMDGCN},
      {"qd.subgroup.all", lowerVoteNVPTX<Intrinsic::nvvm_vote_all_sync>, lowerAllAMDGCN},
      {"qd.subgroup.any", lowerVoteNVPTX<Intrinsic::nvvm_vote_any_sync>, lowerAnyAMDGCN},
  };
  return rows;
}

} // namespace qd
