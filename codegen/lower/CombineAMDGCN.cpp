//===- CombineAMDGCN.cpp - reductions and scans by a kind on AMDGCN ------------------------===//
//
// Purpose: the chains of moves and operations that reduce or scan a tile, as one table each: what stands in it for a
// distance is the first row that the chip has.
//
// Input invariant: the op has a kind; its tile is whole. Scans of less than a row of 16 lanes are those of integers by
// add, xor and or, and of f32 and f64 by add, as passes/Scan.cpp chooses them.
//
// Within rows of 16 lanes a move is part of the operation (DPP): what lanes without a source then combine with is the
// kind's neutral value. Across rows a lane of the lower rows is told to all of the higher.
//
//   reduce add, gfx942                        inclusive_scan add, gfx1100
//     v_add_f32_dpp v, v, v quad_perm:[1,0,3,2]    v_add_u32_dpp v, v, v row_shr:8 ... :1
//     ... [2,3,0,1], row_half_mirror, row_mirror   v_permlanex16_b32 x, v, -1, -1
//     ... row_bcast:15, row_bcast:31               v_add_u32_dpp v, x, v quad_perm:[0,1,2,3] row_mask:0xa
//     v_readlane_b32 s, v, 63
//
//===----------------------------------------------------------------------===//

#include "codegen/lower/Elementwise.h"
#include "codegen/lower/Subgroup.h"
#include "ir/Kind.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"

using namespace mlir;
namespace Intrinsic = llvm::Intrinsic;

namespace qd {

namespace {

/// How lanes of different groups get together.
enum class Meet : uint8_t {
  DPP,        ///< control: dpp_ctrl
  RowBcast,   ///< the same; only the last lane of the wave has all there is
  OtherRow,   ///< permlanex16 of one lane, control: which
  RowSwap,    ///< permlane16.swap, permlane32.swap: both values of all lanes, in two registers
  OtherHalf,  ///< permlane64
  Swizzle,    ///< ds_swizzle, control: its offset
  ReadLanes,  ///< readlane of a lane of each half
  ReadHigher, ///< readlane of the last lane of the lower half, for the upper half
};

struct Step {
  unsigned distance;
  uint32_t needs;      ///< Capability bits
  bool wholeWave;      ///< only where the tile is a wave of 64
  Meet meet;
  uint32_t control;
  uint8_t rows = 15;   ///< that combine; others keep what they have
};

/// All lanes of two groups of `distance` lanes, each of which holds its group's result, get that of both.
constexpr Step butterfly[] = {
    {1, 0, false, Meet::DPP, 0xb1},   // quad_perm:[1,0,3,2]
    {2, 0, false, Meet::DPP, 0x4e},   // quad_perm:[2,3,0,1]
    {4, 0, false, Meet::DPP, 0x141},  // row_half_mirror
    {8, 0, false, Meet::DPP, 0x140},  // row_mirror
    {16, WaveShift, true, Meet::RowBcast, 0x142},
    {16, PermLane16, false, Meet::OtherRow, 0},
    {16, PermLaneSwap, false, Meet::RowSwap, 16},
    {16, 0, false, Meet::Swizzle, 0x401f}, // xor 16
    {32, WaveShift, true, Meet::RowBcast, 0x143},
    {32, PermLane64, true, Meet::OtherHalf, 0},
    {32, 0, true, Meet::ReadLanes, 0},
};

/// Each lane gets what the lanes below it hold. In a row the larger distances come first: lanes without a source at a
/// small distance had none at a larger one, so that one register with the neutral value serves all steps.
constexpr Step ladder[] = {
    {8, 0, false, Meet::DPP, 0x118}, // row_shr:8
    {4, 0, false, Meet::DPP, 0x114},
    {2, 0, false, Meet::DPP, 0x112},
    {1, 0, false, Meet::DPP, 0x111},
    {16, WaveShift, false, Meet::DPP, 0x142, 0xa}, // row_bcast:15
    {16, PermLane16, false, Meet::OtherRow, 0xffffffff, 0xa},
    {32, WaveShift, true, Meet::DPP, 0x143, 0xc}, // row_bcast:31
    {32, 0, true, Meet::ReadHigher, 31, 0xc},
};

/// Builds one op's chain.
class Chain {
public:
  Chain(GPUEmitter &e, Kind kind, mlir::Value operand, unsigned lanes)
      : e(e), b(e.b), kind(kind), operand(operand), lanes(lanes), isInteger(isa<IntegerType>(operand.getType())),
        type(e.get(operand)->getType()) {
    value = widen(e.get(operand));
    numWords = value->getType()->getScalarSizeInBits() == 64 ? 2 : 1;
    llvm::Constant *neutral = llvm::cast<llvm::Constant>(widen(convertConstant(b.getContext(), getNeutral())));
    llvm::APInt bits = isInteger ? llvm::cast<llvm::ConstantInt>(neutral)->getValue()
                                 : llvm::cast<llvm::ConstantFP>(neutral)->getValueAPF().bitcastToAPInt();
    for (unsigned i = 0; i < numWords; ++i)
      neutralWords.push_back(b.getInt32(bits.zext(64).extractBitsAsZExtValue(32, 32 * i)));
  }

  llvm::Value *reduce();
  llvm::Value *scan();

private:
  using Words = llvm::SmallVector<llvm::Value *, 2>;

  TypedAttr getNeutral() const;
  llvm::Value *widen(llvm::Value *narrow);
  llvm::Value *narrow(llvm::Value *wide) {
    return isInteger && type != wide->getType() ? b.CreateTrunc(wide, type) : wide;
  }
  llvm::Value *combine(llvm::Value *lhs, llvm::Value *rhs);
  Words split(llvm::Value *whole);
  llvm::Value *join(const Words &words);
  template <typename Move> llvm::Value *eachWord(llvm::Value *whole, Move move) {
    Words words = split(whole);
    for (unsigned i = 0; i < words.size(); ++i)
      words[i] = move(words[i], i);
    return join(words);
  }
  /// Whether the move and the operation are one instruction.
  bool isFused() const {
    if (numWords > 1)
      return false;
    return isInteger ? kind != Kind::mul : type->isFloatTy() && (kind == Kind::add || kind == Kind::mul);
  }

  /// Whether the moves of both words and their sum can be two instructions, of which the second takes a carry.
  bool isFusedSum() const {
    return isInteger && numWords == 2 && kind == Kind::add && (e.target.has(DppCarry) || e.target.has(WaveShift));
  }

  llvm::Value *dpp(llvm::Value *word, llvm::Value *old, unsigned control, unsigned rows, unsigned banks = 15);
  llvm::Value *otherRow(llvm::Value *whole, uint32_t lane);
  llvm::Value *readLane(llvm::Value *whole, unsigned lane);
  void stepAll(const Step &step);
  void stepUp(const Step &step);
  void addFromLane(unsigned lane, unsigned banks);
  llvm::Value *getCount();
  template <typename Move> void addWeighted(Move move, llvm::Value *weight);
  llvm::Value *getWeight(llvm::Value *shift);
  template <typename Move> llvm::Value *moveWeight(llvm::Value *weight, Move move);
  void scanQuad();
  void scanEight();
  void scanByMasks();
  void scanBelowRow();
  void splitRows();
  void splitWindows();

  GPUEmitter &e;
  llvm::IRBuilder<> &b;
  Kind kind;
  mlir::Value operand;
  unsigned lanes;
  bool isInteger;
  llvm::Type *type;
  unsigned numWords = 1;
  llvm::Value *value = nullptr;
  llvm::SmallVector<llvm::ConstantInt *, 2> neutralWords;
  Words filled; ///< what a step leaves where it has no source, from one step to the next
};

} // namespace

template <size_t size>
static const Step &findStep(const Step (&steps)[size], unsigned distance, GPUEmitter &e, bool isWave64) {
  return *llvm::find_if(steps, [&](const Step &step) {
    return step.distance == distance && (e.target.chip->capabilities & step.needs) == step.needs &&
           (!step.wholeWave || isWave64);
  });
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// What changes no value that it is combined with, nor a zero's sign.
TypedAttr Chain::getNeutral() const {
  mlir::Type scalar = operand.getType();
  auto floatType = dyn_cast<FloatType>(scalar);
  if (floatType && kind == Kind::add)
    return FloatAttr::get(scalar, llvm::APFloat::getZero(floatType.getFloatSemantics(), /*Negative=*/true));
  if (floatType && (kind == Kind::minnumf || kind == Kind::maxnumf))
    return FloatAttr::get(scalar, llvm::APFloat::getNaN(floatType.getFloatSemantics()));
  return getIdentity(kind, scalar);
}

/// Integers of fewer bits are combined as words.
llvm::Value *Chain::widen(llvm::Value *narrow) {
  if (!isInteger || narrow->getType()->getScalarSizeInBits() >= 32)
    return narrow;
  bool isSigned = kind == Kind::minsi || kind == Kind::maxsi;
  return isSigned ? b.CreateSExt(narrow, b.getInt32Ty()) : b.CreateZExt(narrow, b.getInt32Ty());
}

llvm::Value *Chain::combine(llvm::Value *lhs, llvm::Value *rhs) {
  if (isInteger)
    switch (kind) {
    case Kind::add: return b.CreateAdd(lhs, rhs);
    case Kind::mul: return b.CreateMul(lhs, rhs);
    case Kind::andi: return b.CreateAnd(lhs, rhs);
    case Kind::ori: return b.CreateOr(lhs, rhs);
    case Kind::xori: return b.CreateXor(lhs, rhs);
    case Kind::minsi: return b.CreateBinaryIntrinsic(Intrinsic::smin, lhs, rhs);
    case Kind::maxsi: return b.CreateBinaryIntrinsic(Intrinsic::smax, lhs, rhs);
    case Kind::minui: return b.CreateBinaryIntrinsic(Intrinsic::umin, lhs, rhs);
    default: return b.CreateBinaryIntrinsic(Intrinsic::umax, lhs, rhs);
    }
  // Floats combine as the op of the kind does everywhere.
  OpBuilder builder(operand.getContext());
  Operation *op = createKindOp(builder, operand.getLoc(), kind, operand, operand).getDefiningOp();
  llvm::SmallVector<llvm::Value *> results;
  lowerElementwise(b, op, {lhs, rhs}, results);
  op->erase();
  return results.front();
}

Chain::Words Chain::split(llvm::Value *whole) {
  if (numWords == 1) {
    unsigned width = whole->getType()->getScalarSizeInBits();
    return {b.CreateZExt(b.CreateBitCast(whole, b.getIntNTy(width)), b.getInt32Ty())};
  }
  // A vector and not shifts: the halves stay a register pair.
  llvm::Value *pair = b.CreateBitCast(whole, llvm::FixedVectorType::get(b.getInt32Ty(), 2));
  return {b.CreateExtractElement(pair, uint64_t(0)), b.CreateExtractElement(pair, uint64_t(1))};
}

llvm::Value *Chain::join(const Words &words) {
  llvm::Type *wide = value->getType();
  if (numWords == 1)
    return b.CreateBitCast(b.CreateTrunc(words[0], b.getIntNTy(wide->getScalarSizeInBits())), wide);
  llvm::Value *pair = llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getInt32Ty(), 2));
  for (uint64_t i = 0; i < 2; ++i)
    pair = b.CreateInsertElement(pair, words[i], i);
  return b.CreateBitCast(pair, wide);
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

/// Without `old`, lanes that the move gives nothing have 0.
llvm::Value *Chain::dpp(llvm::Value *word, llvm::Value *old, unsigned control, unsigned rows, unsigned banks) {
  llvm::Type *i32 = b.getInt32Ty();
  return b.CreateIntrinsic(Intrinsic::amdgcn_update_dpp, {i32},
                           {old ? old : llvm::PoisonValue::get(i32), word, b.getInt32(control), b.getInt32(rows),
                            b.getInt32(banks), b.getInt1(!old)});
}

/// Each lane's value is that of one lane of the other row of its pair of rows.
llvm::Value *Chain::otherRow(llvm::Value *whole, uint32_t lane) {
  return eachWord(whole, [&](llvm::Value *word, unsigned) {
    llvm::Type *i32 = b.getInt32Ty();
    return b.CreateIntrinsic(Intrinsic::amdgcn_permlanex16, {i32},
                             {llvm::PoisonValue::get(i32), word, b.getInt32(lane), b.getInt32(lane), b.getFalse(),
                              b.getFalse()});
  });
}

llvm::Value *Chain::readLane(llvm::Value *whole, unsigned lane) {
  return eachWord(whole, [&](llvm::Value *word, unsigned) {
    return b.CreateIntrinsic(Intrinsic::amdgcn_readlane, {b.getInt32Ty()}, {word, b.getInt32(lane)});
  });
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void Chain::stepAll(const Step &step) {
  auto withMoved = [&](auto move) { value = combine(value, eachWord(value, move)); };
  switch (step.meet) {
  case Meet::DPP:
  case Meet::RowBcast:
    return withMoved([&](llvm::Value *word, unsigned) { return dpp(word, nullptr, step.control, 15); });
  case Meet::OtherRow: value = combine(value, otherRow(value, step.control)); return;
  case Meet::OtherHalf:
    return withMoved([&](llvm::Value *word, unsigned) {
      return amdgcn::emitPinned(e, b.CreateIntrinsic(Intrinsic::amdgcn_permlane64, {b.getInt32Ty()}, {word}));
    });
  case Meet::Swizzle:
    return withMoved([&](llvm::Value *word, unsigned) {
      return b.CreateIntrinsic(Intrinsic::amdgcn_ds_swizzle, {}, {word, b.getInt32(step.control)});
    });
  case Meet::RowSwap: {
    Words lower, upper;
    for (llvm::Value *word : split(value)) {
      llvm::Value *pair =
          b.CreateIntrinsic(Intrinsic::amdgcn_permlane16_swap, {}, {word, word, b.getFalse(), b.getFalse()});
      lower.push_back(b.CreateExtractValue(pair, 0));
      upper.push_back(b.CreateExtractValue(pair, 1));
    }
    value = combine(join(lower), join(upper));
    return;
  }
  case Meet::ReadLanes:
  case Meet::ReadHigher: value = combine(readLane(value, 0), readLane(value, 32)); return;
  }
}

llvm::Value *Chain::reduce() {
  bool isWave64 = lanes == 64;
  const Step *last = nullptr;
  for (unsigned distance = 1; distance < lanes; distance *= 2) {
    last = &findStep(butterfly, distance, e, isWave64);
    stepAll(*last);
  }
  return narrow(last->meet == Meet::RowBcast ? readLane(value, 63) : value);
}

/// Lanes of `banks` add what a lane of their row holds.
void Chain::addFromLane(unsigned lane, unsigned banks) {
  llvm::Type *bits = b.getInt64Ty();
  llvm::Value *neutral = b.getInt64(uint64_t(neutralWords[1]->getZExtValue()) << 32 | neutralWords[0]->getZExtValue());
  llvm::Value *moved = b.CreateIntrinsic(Intrinsic::amdgcn_update_dpp, {bits},
                                         {neutral, b.CreateBitCast(value, bits), b.getInt32(0x150 + lane),
                                          b.getInt32(15), b.getInt32(banks), b.getFalse()}); // row_newbcast
  value = combine(b.CreateBitCast(moved, type), value);
}

/// What counts the lanes of a row up.
llvm::Value *Chain::getCount() {
  KernelOp kernel = e.getKernel();
  return kernel.getBlockDim(1) > 1 || kernel.getBlockDim(2) > 1 ? e.getLaneId() : e.getThreadIndex();
}

/// Lanes that a move gives another one's value add it, and those that it gives their own keep that: what they add is
/// far below its last digit, and a zero, an infinity or a NaN of its own kind.
template <typename Move> void Chain::addWeighted(Move move, llvm::Value *weight) {
  value = b.CreateIntrinsic(Intrinsic::fma, {type}, {eachWord(value, move), weight, value});
}

/// 1.0 where the shift is 0, and those bits shifted by 1 elsewhere: less than 2^-60.
llvm::Value *Chain::getWeight(llvm::Value *shift) {
  llvm::APInt one = llvm::APFloat::getOne(type->getFltSemantics()).bitcastToAPInt();
  llvm::Type *bits = b.getIntNTy(one.getBitWidth());
  return b.CreateBitCast(b.CreateLShr(llvm::ConstantInt::get(bits, one), b.CreateZExt(shift, bits)), type);
}

/// Moves a weight, of which the lower word of an f64 is 0 everywhere.
template <typename Move> llvm::Value *Chain::moveWeight(llvm::Value *weight, Move move) {
  Words words = split(weight);
  words.back() = move(words.back(), 0);
  return join(words);
}

/// Floats of up to 4 lanes.
void Chain::scanQuad() {
  auto move = [&](unsigned control) {
    return [this, control](llvm::Value *word, unsigned) { return dpp(word, nullptr, control, 15); };
  };
  llvm::Value *count = getCount();
  llvm::Value *weight = getWeight(b.CreateSub(move(0xf5)(count, 0), count)); // quad_perm:[1,1,3,3]: 1, 0, 1, 0
  addWeighted(move(0xa0), weight);                                           // quad_perm:[0,0,2,2]
  if (lanes > 2)
    addWeighted(move(0x54), moveWeight(weight, move(0x50))); // quad_perm:[0,1,1,1], [0,0,1,1]
}

/// Floats of 8 lanes, where a move gives each of them any other's value. At last the upper half adds the lower one, by
/// bank.
void Chain::scanEight() {
  auto move = [&](uint32_t selectors) {
    return [this, selectors](llvm::Value *word, unsigned) {
      return amdgcn::emitPinned(
          e, b.CreateIntrinsic(Intrinsic::amdgcn_mov_dpp8, {b.getInt32Ty()}, {word, b.getInt32(selectors)}));
    };
  };
  // In octal, from the upper lane down.
  constexpr uint32_t below = 065432100, belowTwo = 054321010, aboveFirst = 076543211;
  llvm::Value *count = getCount();
  llvm::Value *weight = getWeight(b.CreateSub(move(aboveFirst)(count, 0), count));
  addWeighted(move(below), weight);
  weight = moveWeight(weight, move(below));
  addWeighted(move(belowTwo), weight);
  Words fill(neutralWords.begin(), neutralWords.end());
  if (numWords == 2)
    fill.front() = split(weight).front(); // 0 in a register that is free from here
  value = combine(eachWord(value, [&](llvm::Value *word, unsigned i) {
                    return dpp(word, fill[i], 0x114, 15, /*banks=*/0xa); // row_shr:4
                  }),
                  value);
}

/// Integers of less than a row: lanes without lower ones in their group add 0.
void Chain::scanByMasks() {
  auto getMask = [&](unsigned bit) { return b.CreateAShr(b.CreateShl(e.getLaneId(), 31 - bit), 31); };
  auto getMasked = [&](unsigned control, llvm::Value *mask) {
    return eachWord(value, [&](llvm::Value *word, unsigned) {
      return b.CreateAnd(dpp(word, nullptr, control, 15), mask);
    });
  };
  if (lanes == 2 || !(isFused() || (isFusedSum() && e.target.has(DppCarry)))) {
    value = combine(getMasked(0xa0, getMask(0)), value); // quad_perm:[0,0,2,2]
    if (lanes > 2)
      value = combine(getMasked(0x54, getMask(1)), value); // quad_perm:[0,1,1,1]
    return;
  }
  // Each lane's next lower value, or 0, and that of the one and two below: moves of those cost nothing.
  llvm::Value *count = getCount();
  constexpr unsigned below = 0x90; // quad_perm:[0,0,1,2]
  llvm::Value *lower = getMasked(below, b.CreateSub(dpp(count, nullptr, below, 15), count));
  auto move = [&](unsigned control) {
    return eachWord(lower, [&](llvm::Value *word, unsigned) { return dpp(word, nullptr, control, 15); });
  };
  value = combine(move(0x40), value); // quad_perm:[0,0,0,1]
  value = combine(combine(move(below), lower), value);
}

/// Less than a row: scans of quads, of which the upper of 8 lanes add what the last lane of the lower one holds.
void Chain::scanBelowRow() {
  if (!isInteger && lanes == 8 && e.target.has(PermLane16))
    return scanEight();
  isInteger ? scanByMasks() : scanQuad();
  if (lanes < 8)
    return;
  // An addition of f64 takes a move from one lane of each row.
  if (type->isDoubleTy() && e.target.has(RowShare) && e.target.has(WaveShift)) {
    addFromLane(3, 0x2);
    addFromLane(11, 0x8);
    return;
  }
  llvm::Value *lasts =
      eachWord(value, [&](llvm::Value *word, unsigned) { return dpp(word, nullptr, 0xff, 15); }); // quad_perm:[3,3,3,3]
  if (isFused() || isFusedSum() || !isInteger) {
    lasts = eachWord(lasts, [&](llvm::Value *word, unsigned i) {
      return dpp(word, neutralWords[i], 0x114, 15, /*banks=*/0xa); // row_shr:4
    });
  } else {
    llvm::Value *isUpper = b.CreateAShr(b.CreateShl(e.getLaneId(), 29), 31);
    lasts = eachWord(lasts,
                     [&](llvm::Value *word, unsigned) { return b.CreateAnd(dpp(word, nullptr, 0x114, 15), isUpper); });
  }
  value = combine(lasts, value);
}

/// A row's scan becomes that of its halves: the upper gives back what the lower one holds in all.
void Chain::splitRows() {
  auto giveBack = [&](llvm::Value *whole, unsigned control, unsigned banks) {
    llvm::Value *lower =
        eachWord(whole, [&](llvm::Value *word, unsigned) { return dpp(word, b.getInt32(0), control, 15, banks); });
    value = kind == Kind::add ? b.CreateSub(value, lower) : b.CreateXor(value, lower);
  };
  if (e.target.has(RowShare))
    return giveBack(value, 0x157, 0xc); // row_share:7
  llvm::Value *lasts =
      eachWord(value, [&](llvm::Value *word, unsigned) { return dpp(word, nullptr, 0xff, 15); }); // quad_perm:[3,3,3,3]
  giveBack(lasts, 0x114, 0x4); // row_shr:4
  giveBack(lasts, 0x118, 0x8); // row_shr:8
}

/// Sums w of the 8 lanes up to each become the scan of a row's halves: lane n of the upper one takes off what of the
/// lower one is in its sum, w[7] - w[n - 8]. As w[n - 8] - (w[7] - w[n]) that is two subtractions from what is moved;
/// what is taken off something no subtraction moves.
void Chain::splitWindows() {
  auto merge = [&](llvm::Value *lower, llvm::Value *upper, unsigned banks) {
    return dpp(upper, lower, 0xe4, 15, banks); // quad_perm:[0,1,2,3]
  };
  auto lessOwn = [&](llvm::Value *total, unsigned control) {
    return b.CreateSub(dpp(total, nullptr, control, 15), value);
  };
  llvm::Value *rest;
  if (e.target.has(RowShare)) {
    rest = lessOwn(value, 0x157); // row_share:7
  } else {
    llvm::Value *lasts = dpp(value, nullptr, 0xff, 15); // quad_perm:[3,3,3,3]
    // row_shr:4, row_shr:8
    rest = merge(lessOwn(lasts, 0x114), lessOwn(lasts, 0x118), /*banks=*/0x8);
  }
  // Nothing, but that LLVM does not add the difference turned around.
  auto *type = llvm::FunctionType::get(rest->getType(), {rest->getType()}, /*isVarArg=*/false);
  rest = b.CreateCall(llvm::InlineAsm::get(type, "", "=v,0", /*hasSideEffects=*/false), {rest});
  value = merge(value, b.CreateSub(dpp(value, nullptr, 0x118, 15), rest), /*banks=*/0xc); // row_shr:8
}

void Chain::stepUp(const Step &step) {
  llvm::Value *source = value;
  unsigned control = step.control;
  if (step.meet != Meet::DPP) {
    source = step.meet == Meet::OtherRow ? otherRow(value, step.control) : readLane(value, step.control);
    control = 0xe4; // quad_perm:[0,1,2,3]
    if (!isFused() && !isFusedSum()) {
      // One select of the results costs less than a register with the neutral value, and a masked move, of each word.
      uint64_t reached = 0;
      for (unsigned lane = 0; lane < 64; ++lane)
        reached |= uint64_t(step.rows >> lane / 16 & 1) << lane;
      llvm::Value *isReached = b.CreateIntrinsic(Intrinsic::amdgcn_inverse_ballot, {b.getInt64Ty()},
                                                 {b.getInt64(reached)});
      value = b.CreateSelect(isReached, combine(source, value), value);
      return;
    }
  }
  // A neutral value for each step where the operation takes its place, else one register for those of a row.
  if (filled.empty() || isFused() || isFusedSum() || step.rows != 15)
    filled.assign(neutralWords.begin(), neutralWords.end());
  llvm::Value *moved = eachWord(source, [&](llvm::Value *word, unsigned i) {
    bool isZeroFilled = neutralWords[i]->isZero() && step.rows == 15;
    llvm::Value *result = dpp(word, isZeroFilled ? nullptr : filled[i], control, step.rows);
    if (!isZeroFilled)
      filled[i] = result;
    return result;
  });
  value = combine(moved, value);
}

llvm::Value *Chain::scan() {
  constexpr unsigned rowLanes = 16;
  // Of gfx9, some chips add both words of a sum at once and take no move in that.
  bool canSplit =
      lanes == 8 && isInteger && kind != Kind::ori && (isFused() || (isFusedSum() && e.target.has(DppCarry)));
  if (lanes < rowLanes && !canSplit) {
    scanBelowRow();
    return narrow(value);
  }
  bool hasWindows = lanes < rowLanes && kind == Kind::add && numWords == 1;
  for (unsigned distance : {8, 4, 2, 1, 16, 32})
    if (distance < (hasWindows ? lanes : std::max(lanes, rowLanes)))
      stepUp(findStep(ladder, distance, e, lanes == 64));
  if (lanes < rowLanes)
    hasWindows ? splitWindows() : splitRows();
  return narrow(value);
}

template <typename Op> static Chain makeChain(GPUEmitter &e, Op op) {
  return Chain(e, *op.getKind(), op.getValues().front(), getTile(e, op));
}

void amdgcn::lowerReduce(GPUEmitter &e, Operation *op) {
  e.set(op->getResult(0), makeChain(e, cast<ReduceOp>(op)).reduce());
}

void amdgcn::lowerReduceAll(GPUEmitter &e, Operation *op) {
  e.set(op->getResult(0), makeChain(e, cast<ReduceAllOp>(op)).reduce());
}

void amdgcn::lowerInclusiveScan(GPUEmitter &e, Operation *op) {
  e.set(op->getResult(0), makeChain(e, cast<InclusiveScanOp>(op)).scan());
}

} // namespace qd
