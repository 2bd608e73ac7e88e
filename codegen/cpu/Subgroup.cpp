//===- Subgroup.cpp - shuffles and votes on vectors -----------------------------------------------------===//
//
// A shuffle whose sources are known is a shufflevector; one by varying lanes permutes registers, or goes through a
// table in memory. A vote is arithmetic on the mask as an integer.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/KernelEmitter.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IntrinsicsAArch64.h"
#include "llvm/IR/IntrinsicsX86.h"

using namespace mlir;
namespace Intrinsic = llvm::Intrinsic;

namespace qd {

/// `sources` names a lane, or -1 for poison.
llvm::Value *KernelEmitter::permute(llvm::Value *vector, ArrayRef<int> sources) {
  return b.CreateShuffleVector(vector, sources);
}

/// `sources` are i32 lanes below the subgroup's size.
llvm::Value *KernelEmitter::permute(llvm::Value *vector, llvm::Value *sources) {
  if (auto *constant = dyn_cast<llvm::Constant>(sources)) {
    SmallVector<int> lanesRead;
    for (unsigned lane = 0; lane < lanes; ++lane)
      if (auto *source = dyn_cast_or_null<llvm::ConstantInt>(constant->getAggregateElement(lane)))
        lanesRead.push_back(source->getZExtValue());
    if (lanesRead.size() == lanes)
      return permute(vector, lanesRead);
  }
  // A predicate: each lane tests a bit.
  auto *type = cast<llvm::VectorType>(vector->getType());
  unsigned width = type->getScalarSizeInBits();
  if (width == 1) {
    llvm::Type *word = lanes <= 32 ? b.getInt32Ty() : b.getInt64Ty();
    llvm::Value *set = splat(b.CreateZExt(bits(vector), word));
    return b.CreateTrunc(b.CreateLShr(set, b.CreateZExt(sources, vectorOf(word))), type);
  }
  llvm::Value *integers = b.CreateBitCast(vector, type->getWithNewType(b.getIntNTy(width)));
  llvm::Type *words = vectorOf(b.getInt32Ty()), *longs = vectorOf(b.getInt64Ty());
  llvm::Value *result;
  if (width <= 32) {
    result = b.CreateZExtOrTrunc(permuteWords(b.CreateZExt(integers, words), sources), integers->getType());
  } else {
    llvm::Value *low = permuteWords(b.CreateTrunc(integers, words), sources);
    llvm::Value *high = permuteWords(b.CreateTrunc(b.CreateLShr(integers, 32), words), sources);
    result = b.CreateOr(b.CreateZExt(low, longs), b.CreateShl(b.CreateZExt(high, longs), 32));
  }
  return b.CreateBitCast(result, type);
}

/// i32 elements, by instructions that permute registers where the machine has them for this many lanes.
llvm::Value *KernelEmitter::permuteWords(llvm::Value *words, llvm::Value *sources) {
  auto part = [&](llvm::Value *vector, unsigned first, unsigned size) {
    return b.CreateShuffleVector(vector, llvm::to_vector(llvm::seq<int>(first, first + size)));
  };
  if (features.avx2 && lanes == 4) {
    llvm::Value *floats = b.CreateBitCast(words, vectorOf(b.getFloatTy()));
    llvm::Value *result = b.CreateIntrinsic(Intrinsic::x86_avx_vpermilvar_ps, {}, {floats, sources});
    return b.CreateBitCast(result, words->getType());
  }
  if (features.avx2 && lanes == 8)
    return b.CreateIntrinsic(Intrinsic::x86_avx2_permd, {}, {words, sources});
  if (features.avx2 && !features.avx512 && lanes <= 32) {
    // Registers of 8: what each of them holds at the wanted places, and the one that is meant.
    SmallVector<llvm::Value *> results;
    for (unsigned first = 0; first < lanes; first += 8) {
      llvm::Value *wanted = part(sources, first, 8), *picked = nullptr;
      llvm::Value *meant = b.CreateLShr(wanted, 3);
      for (unsigned from = 0; from < lanes; from += 8) {
        llvm::Value *held = b.CreateIntrinsic(Intrinsic::x86_avx2_permd, {}, {part(words, from, 8), wanted});
        llvm::Value *isMeant = b.CreateICmpEQ(meant, b.CreateVectorSplat(8, b.getInt32(from / 8)));
        picked = picked ? b.CreateSelect(isMeant, held, picked) : held;
      }
      results.push_back(picked);
    }
    return llvm::concatenateVectors(b, results);
  }
  if (features.avx512 && lanes == 16)
    return b.CreateIntrinsic(Intrinsic::x86_avx512_permvar_si_512, {}, {words, sources});
  if (features.avx512 && lanes >= 32) {
    // Registers of 16; one instruction picks from two of them by 5 bits.
    SmallVector<llvm::Value *> registers, results;
    for (unsigned first = 0; first < lanes; first += 16)
      registers.push_back(part(words, first, 16));
    for (unsigned first = 0; first < lanes; first += 16) {
      llvm::Value *wanted = part(sources, first, 16);
      auto pick = [&](unsigned pair) {
        return b.CreateIntrinsic(Intrinsic::x86_avx512_vpermi2var_d_512, {},
                                 {registers[pair], wanted, registers[pair + 1]});
      };
      llvm::Value *picked = pick(0);
      if (lanes == 64)
        picked = b.CreateSelect(b.CreateICmpUGE(wanted, b.CreateVectorSplat(16, b.getInt32(32))), pick(2), picked);
      results.push_back(picked);
    }
    return llvm::concatenateVectors(b, results);
  }
  if (features.tables) {
    // Tables of 16 words; a lookup outside one keeps what the others gave. The subscripts are of bytes.
    auto *bytes = llvm::FixedVectorType::get(b.getInt8Ty(), 16);
    unsigned inTable = std::min(lanes, 16u);
    SmallVector<llvm::Value *> registers, results;
    for (unsigned first = 0; first < lanes; first += 4)
      registers.push_back(b.CreateBitCast(part(words, first, 4), bytes));
    constexpr Intrinsic::ID firstLookup[] = {0, Intrinsic::aarch64_neon_tbl1, Intrinsic::aarch64_neon_tbl2, 0,
                                             Intrinsic::aarch64_neon_tbl4};
    for (unsigned first = 0; first < lanes; first += 4) {
      llvm::Value *wanted = part(sources, first, 4), *picked = nullptr;
      wanted = b.CreateAdd(b.CreateMul(wanted, b.CreateVectorSplat(4, b.getInt32(0x04040404))),
                           b.CreateVectorSplat(4, b.getInt32(0x03020100)));
      wanted = b.CreateBitCast(wanted, bytes);
      for (unsigned from = 0; from < lanes; from += inTable) {
        SmallVector<llvm::Value *> operands(ArrayRef(registers).slice(from / 4, inTable / 4));
        operands.push_back(from ? b.CreateSub(wanted, b.CreateVectorSplat(16, b.getInt8(from * 4))) : wanted);
        if (from)
          operands.insert(operands.begin(), picked);
        picked = b.CreateIntrinsic(from ? unsigned(Intrinsic::aarch64_neon_tbx4) : firstLookup[inTable / 4], {bytes},
                                   operands);
      }
      results.push_back(b.CreateBitCast(picked, llvm::FixedVectorType::get(b.getInt32Ty(), 4)));
    }
    return llvm::concatenateVectors(b, results);
  }

  llvm::BasicBlock &entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> atEntry(&entry, entry.begin());
  llvm::AllocaInst *table = atEntry.CreateAlloca(words->getType());
  table->setAlignment(llvm::Align(64));
  b.CreateLifetimeStart(table);
  b.CreateAlignedStore(words, table, llvm::Align(64));
  llvm::Value *pointers = b.CreateGEP(b.getInt32Ty(), table, sources);
  llvm::Value *result = b.CreateMaskedGather(words->getType(), pointers, llvm::Align(4));
  b.CreateLifetimeEnd(table);
  return result;
}

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

/// `lane` is null where `constant` is given.
void KernelEmitter::emitShuffle(Operation &op, llvm::Value *lane, std::optional<int32_t> constant, unsigned tile,
                                bool poisonEdge) {
  Value value = op.getOperand(0);
  bool toOneLane = isa<ShuffleOp, BroadcastOp, BroadcastFirstOp>(op);
  if (!analysis.getShape(op.getResult(0)).isVarying()) {
    if (analysis.isUniform(value))
      return define(op.getResult(0), getBase(value));
    llvm::Value *last = b.getInt32(lanes - 1);
    llvm::Value *source = constant ? b.getInt32(*constant & (lanes - 1)) : b.CreateAnd(freeze(lane), last);
    return define(op.getResult(0), extractLane(getVector(value), source));
  }

  llvm::Value *vector = getVector(value);
  if (constant) {
    uint32_t operand = *constant;
    SmallVector<int> sources;
    for (unsigned own = 0; own < lanes; ++own) {
      unsigned inTile = own % tile, first = own - inTile;
      int edge = poisonEdge ? -1 : int(own);
      if (toOneLane)
        sources.push_back(first + operand % tile);
      else if (isa<ShuffleXorOp>(op))
        sources.push_back(own ^ (operand % tile));
      else if (isa<ShuffleUpOp>(op))
        sources.push_back(inTile >= operand ? int(own - operand) : edge);
      else
        sources.push_back(operand < tile - inTile ? int(own + operand) : edge);
    }
    return define(op.getResult(0), permute(vector, sources));
  }

  llvm::Type *i32 = b.getInt32Ty();
  if (!lane->getType()->isVectorTy())
    lane = splat(lane);
  llvm::Value *own = lanesVector([](unsigned lane) { return lane; }, i32);
  llvm::Value *inTile = lanesVector([&](unsigned lane) { return lane % tile; }, i32);
  llvm::Value *first = lanesVector([&](unsigned lane) { return lane - lane % tile; }, i32);
  llvm::Value *wrapped = b.CreateAnd(lane, splat(b.getInt32(tile - 1)));
  llvm::Value *sources;
  if (toOneLane)
    sources = b.CreateOr(first, wrapped);
  else if (isa<ShuffleXorOp>(op))
    sources = b.CreateXor(own, wrapped);
  else if (isa<ShuffleUpOp>(op))
    sources = b.CreateSelect(b.CreateICmpULE(lane, inTile), b.CreateSub(own, lane), own);
  else
    sources = b.CreateSelect(b.CreateICmpULT(b.CreateAdd(inTile, lane), splat(b.getInt32(tile))),
                             b.CreateAdd(own, lane), own);
  // Lanes that are off may hold anything, but a table is read in bounds.
  define(op.getResult(0), permute(vector, b.CreateAnd(freeze(sources), splat(b.getInt32(lanes - 1)))));
}

//===----------------------------------------------------------------------===//
// Votes
//===----------------------------------------------------------------------===//

void KernelEmitter::emitVote(Operation &op, Value predicate, unsigned tile, bool all) {
  Value result = op.getResult(0);
  if (analysis.isUniform(predicate))
    return define(result, getBase(predicate));
  // "All" is "none that is present fails".
  llvm::Value *vote = freeze(getVector(predicate));
  llvm::Value *set = bits(both(mask, all ? b.CreateNot(vote) : vote));
  llvm::Type *word = set->getType();
  if (tile >= lanes) {
    llvm::Value *zero = llvm::ConstantInt::get(word, 0);
    return define(result, all ? b.CreateICmpEQ(set, zero) : b.CreateICmpNE(set, zero));
  }
  // Gathers each tile's bits in its lowest one, then spreads that over the tile.
  for (unsigned shift = 1; shift < tile; shift *= 2)
    set = b.CreateOr(set, b.CreateLShr(set, shift));
  APInt lowest = APInt::getSplat(lanes, APInt(tile, 1));
  set = b.CreateMul(b.CreateAnd(set, b.getInt(lowest)), b.getInt(APInt::getLowBitsSet(lanes, tile)));
  if (all)
    set = b.CreateNot(set);
  define(result, b.CreateBitCast(set, vectorOf(b.getInt1Ty())));
}

/// The lanes that are here, of which an op's members are a part.
void KernelEmitter::emitBallot(BallotOp op) {
  llvm::Value *set = b.CreateZExt(bits(both(mask, getVector(op.getPredicate()))), b.getInt64Ty());
  Value members = op.getMembers();
  if (!members)
    return define(op, set);
  bool same = analysis.isUniform(members);
  define(op, b.CreateAnd(same ? set : splat(set), same ? getBase(members) : getVector(members)));
}

/// The first active lane's value stands for all.
void KernelEmitter::emitAssumeUniform(AssumeUniformOp op) {
  Value value = op.getValue();
  if (analysis.isUniform(value))
    return define(op, getBase(value));
  llvm::Value *lane = b.getInt32(0);
  if (mask) {
    // Where LLVM computes this ahead of a branch, the mask may be empty: the lane stays one of the vector's.
    llvm::Value *first = b.CreateBinaryIntrinsic(Intrinsic::cttz, bits(mask), b.getFalse());
    lane = b.CreateAnd(b.CreateZExtOrTrunc(first, b.getInt32Ty()), b.getInt32(lanes - 1));
  }
  define(op, extractLane(getVector(value), lane));
}

LogicalResult KernelEmitter::emitSubgroupOp(Operation &op, bool &handled) {
  handled = true;
  auto tileOf = [&](auto tiled) { return unsigned(tiled.getTile().value_or(lanes)); };
  auto shuffle = [&](auto shuffle, bool poisonEdge) {
    std::optional<int32_t> constant = shuffle.getConstantLane();
    llvm::Value *lane = nullptr;
    if (!constant)
      lane = analysis.isUniform(shuffle.getLane()) ? getBase(shuffle.getLane()) : getVector(shuffle.getLane());
    emitShuffle(op, lane, constant, tileOf(shuffle), poisonEdge);
  };
  if (auto tile = op.getAttrOfType<IntegerAttr>("tile"); tile && tile.getInt() > int64_t(lanes))
    return unsupported(op);

  llvm::TypeSwitch<Operation *>(&op)
      .Case([&](ElectOp elect) {
        define(elect, maskVector([&](unsigned lane) { return lane % tileOf(elect) == 0; }));
      })
      .Case<ShuffleOp, ShuffleXorOp, BroadcastOp>([&](auto op) { shuffle(op, false); })
      .Case<ShuffleUpOp, ShuffleDownOp>([&](auto op) { shuffle(op, op.getPoisonEdge()); })
      .Case([&](BroadcastFirstOp first) { emitShuffle(op, nullptr, 0, tileOf(first), false); })
      .Case([&](BallotOp ballot) { emitBallot(ballot); })
      .Case([&](ActiveMaskOp op) { define(op, b.CreateZExt(bits(activeLanes(mask)), b.getInt64Ty())); })
      .Case([&](AssumeUniformOp assumed) { emitAssumeUniform(assumed); })
      // One thread carries out all lanes, each access for all of them: program order is what these ask for, and LLVM
      // keeps it between accesses that may touch the same bytes.
      .Case([](SubgroupSyncOp) {})
      .Case([&](AllOp all) { emitVote(op, all.getPredicate(), tileOf(all), true); })
      .Case([&](AnyOp any) { emitVote(op, any.getPredicate(), tileOf(any), false); })
      .Default([&](Operation *) { handled = false; });
  return success();
}

} // namespace qd
