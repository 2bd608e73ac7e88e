//===- Subgroup.cpp - subgroup ops on NVPTX and AMDGCN ------------------------------------------===//
//
// The rules for edges are those of ir/ops/Subgroup.td. NVPTX has them in shfl.sync itself: its operand c holds a
// segment mask, which confines lanes to a tile, and a clamp, past which a lane keeps its own value (PTX ISA, 9.7.9.6).
// It takes offsets modulo 32 though, so offsets of a tile or more are dealt with here.
//
//===----------------------------------------------------------------------===//

#include "codegen/lower/Subgroup.h"

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
// The table
//===----------------------------------------------------------------------===//

llvm::ArrayRef<LoweringRow> getSubgroupLowerings() {
  static constexpr LoweringRow rows[] = {
      // op, nvptx, amdgcn
      {"qd.subgroup.shuffle", lowerShuffleNVPTX<ShuffleOp>, amdgcn::lowerShuffle},
      {"qd.subgroup.broadcast", lowerShuffleNVPTX<BroadcastOp>, amdgcn::lowerBroadcast},
      {"qd.subgroup.broadcast_first", lowerBroadcastFirstNVPTX, amdgcn::lowerBroadcastFirst},
      {"qd.subgroup.shuffle_xor", lowerShuffleXorNVPTX, amdgcn::lowerShuffleXor},
      {"qd.subgroup.shuffle_up", lowerShuffleEdgeNVPTX<ShuffleUpOp, Shfl::Up>,
       amdgcn::lowerShuffleUp},
      {"qd.subgroup.shuffle_down", lowerShuffleEdgeNVPTX<ShuffleDownOp, Shfl::Down>,
       amdgcn::lowerShuffleDown},
      {"qd.subgroup.ballot", lowerBallotNVPTX, amdgcn::lowerBallot},
      {"qd.subgroup.all", lowerVoteNVPTX<Intrinsic::nvvm_vote_all_sync>, amdgcn::lowerAll},
      {"qd.subgroup.any", lowerVoteNVPTX<Intrinsic::nvvm_vote_any_sync>, amdgcn::lowerAny},
  };
  return rows;
}

} // namespace qd
