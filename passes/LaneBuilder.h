//===- LaneBuilder.h - the steps that expansions are written in -----------------------===//
//
// Purpose: lane moves and choices on several values at once, and the arithmetic on lane numbers around them.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_LANEBUILDER_H
#define QD_PASSES_LANEBUILDER_H

#include "ir/Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

namespace qd {

/// What takes the place of an op's results; empty for none.
struct Values : llvm::SmallVector<mlir::Value, 2> {
  Values() = default;
  Values(mlir::Value value) {
    if (value)
      push_back(value);
  }
  Values(mlir::ValueRange values) { append(values.begin(), values.end()); }
};

/// Runs of `firstRun` to `lastRun` lanes that a sort merges stand in another order: in lanes whose number has the bit
/// `by`, the bits `turned` of it, all of them lower, are turned around.
struct Turn {
  int32_t turned, by, firstRun, lastRun;
};

/// How a kernel's threads fall into subgroups, and what a subgroup can do: constants of the compilation.
struct BlockShape {
  int32_t threads;      ///< of the block
  int32_t subgroupSize; ///< of the target
  /// From groups of this many lanes on, all lanes read a lane of each group, where another shuffle costs the target
  /// more; 0 for never.
  int32_t readLanes = 0;
  /// Lanes of a row, within which moves are cheap, where the target has such; 0 for none.
  int32_t rowLanes = 0;
  bool comparesPairs = false;      ///< a comparison of 64 bits is one operation, as one of 32 is
  bool subtractsMoved = false;     ///< a subtraction with borrow takes a move within a row, as a choice does
  bool hasRedux = false;           ///< reductions of a subgroup's 32-bit integers
  bool hasGroupArithmetic = false; ///< the same, and scans
  /// The lanes are elements of vectors: halves of them combine in fewer instructions than neighbours do. Between two
  /// barriers the block's threads carry out their accesses in the order of their numbers.
  bool isVector = false;
  /// NVIDIA's: shuffles and accesses of shared memory wait for the same part of a processor, one a clock. Memory is
  /// accessed by halves of words, and by several neighbours of those at once.
  bool isWarp = false;
  llvm::ArrayRef<Turn> turns = {}; ///< what spares moves in sorts
  /// The same for a whole subgroup, with fewer constants: bits of a lane's number whose sums, modulo 2, are the bits of
  /// its place at first, and those that each step compares by.
  llvm::ArrayRef<int32_t> sums = {};

  /// Lanes of the block's partial last subgroup; 0 where all subgroups are whole.
  int32_t getPartialLanes() const { return threads % subgroupSize; }

  int32_t getNumSubgroups() const { return (threads + subgroupSize - 1) / subgroupSize; }

  /// Lanes that every subgroup of the block has.
  int32_t getLeastLanes() const { return getPartialLanes() ? getPartialLanes() : subgroupSize; }

  /// Lanes of the group that are present where it is partial, else 0.
  int32_t getPartialLanes(int32_t lanes) const { return lanes == subgroupSize ? getPartialLanes() : 0; }

  /// A block smaller than the subgroup whose size is a power of two is a tile of which nothing is missing.
  int32_t narrowToBlock(int32_t lanes) const {
    bool blockIsTile = threads < lanes && llvm::isPowerOf2_32(threads);
    return blockIsTile ? threads : lanes;
  }

  /// The `tile` clause of an op on aligned groups of `lanes`; none where a group is the whole subgroup.
  std::optional<int32_t> getTileClause(int32_t lanes) const {
    return lanes == subgroupSize ? std::nullopt : std::optional(lanes);
  }
};

/// Builds ops at one place.
struct LaneBuilder {
  LaneBuilder(mlir::OpBuilder &builder, mlir::Location loc, const BlockShape &shape)
      : b(builder), loc(loc), shape(shape), i32(builder.getI32Type()) {}

  mlir::Value constant(int64_t value, mlir::Type type = {}) const {
    return mlir::arith::ConstantOp::create(b, loc, b.getIntegerAttr(type ? type : i32, value));
  }
  template <typename Op> mlir::Value create(mlir::Value lhs, mlir::Value rhs) const {
    return b.createOrFold<Op>(loc, lhs, rhs);
  }
  template <typename Op> mlir::Value create(mlir::Value lhs, int64_t rhs) const {
    return b.createOrFold<Op>(loc, lhs, constant(rhs, lhs.getType()));
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value lhs, mlir::Value rhs) const {
    return mlir::arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value lhs, int64_t rhs) const {
    return compare(predicate, lhs, constant(rhs, lhs.getType()));
  }
  Values select(mlir::Value condition, mlir::ValueRange ifTrue, mlir::ValueRange ifFalse) const {
    Values selected;
    for (auto [a, c] : llvm::zip_equal(ifTrue, ifFalse))
      selected.push_back(mlir::arith::SelectOp::create(b, loc, condition, a, c));
    return selected;
  }

  /// The own lane, counted from the start of its aligned group of `lanes`.
  mlir::Value lane(int32_t lanes) const {
    mlir::Value lane = LaneIdOp::create(b, loc, i32);
    return lanes < shape.subgroupSize && lanes < shape.threads ? create<mlir::arith::AndIOp>(lane, lanes - 1) : lane;
  }

  /// The own thread, counted from the start of the block, or of the subgroup where the block is no more than that.
  mlir::Value thread() const {
    if (shape.threads <= shape.subgroupSize)
      return LaneIdOp::create(b, loc, i32);
    return ThreadIndexOp::create(b, loc, i32);
  }

  /// The number of the subgroup that a thread is in.
  mlir::Value subgroup(mlir::Value thread) const {
    return create<mlir::arith::ShRUIOp>(thread, int64_t(llvm::Log2_32(shape.subgroupSize)));
  }

  /// An integer with a bit for every lane: of 32 bits where these are enough, half the work on most targets.
  mlir::Type getWordType() const { return shape.subgroupSize <= 32 ? i32 : b.getI64Type(); }
  mlir::Value toWord(mlir::Value number) const {
    return shape.subgroupSize <= 32 ? number
                                    : mlir::arith::ExtUIOp::create(b, loc, getWordType(), number).getResult();
  }
  mlir::Value fromWord(mlir::Value word) const {
    return word.getType() == i32 ? word : mlir::arith::TruncIOp::create(b, loc, i32, word).getResult();
  }
  mlir::Value ballot(mlir::Value predicate) const {
    mlir::Value bits = BallotOp::create(b, loc, predicate);
    return shape.subgroupSize <= 32 ? fromWord(bits) : bits;
  }

  /// A shuffle_up, shuffle_down, broadcast or shuffle of each value within aligned groups of `lanes`.
  template <typename Op> Values shift(mlir::ValueRange values, int32_t offset, int32_t lanes, bool poisonEdge) const {
    return each(values, [&](mlir::Value value) {
      return Op::create(b, loc, value, offset, shape.getTileClause(lanes), poisonEdge);
    });
  }
  template <typename Lane> Values broadcast(mlir::ValueRange values, Lane lane, int32_t lanes) const {
    return each(values, [&](mlir::Value value) {
      return BroadcastOp::create(b, loc, value, lane, shape.getTileClause(lanes));
    });
  }
  Values shuffle(mlir::ValueRange values, mlir::Value lane, int32_t lanes) const {
    return each(values,
                [&](mlir::Value value) { return ShuffleOp::create(b, loc, value, lane, shape.getTileClause(lanes)); });
  }
  Values shuffleXor(mlir::ValueRange values, int32_t mask) const {
    return each(values, [&](mlir::Value value) { return ShuffleXorOp::create(b, loc, value, mask, std::nullopt); });
  }

  template <typename Make> static Values each(mlir::ValueRange values, Make make) {
    Values made;
    for (mlir::Value value : values)
      made.push_back(make(value));
    return made;
  }

  mlir::OpBuilder &b;
  mlir::Location loc;
  const BlockShape &shape;
  mlir::Type i32;
};

} // namespace qd

#endif
