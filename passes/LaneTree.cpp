//===- LaneTree.cpp - reductions and votes inside a subgroup --------------------------===//
//
// Purpose: the tree of a reduction,
//
//   %r = qd.subgroup.reduce add %v tile(4)
//     ->
//   %a = qd.subgroup.shuffle_down %v, 1 tile(2) poison_edge   %b = arith.addf %v, %a
//   %c = qd.subgroup.shuffle_down %b, 2 tile(4) poison_edge   %r = arith.addf %b, %c
//
// and its butterfly, which uses shuffle_xor and leaves the result in every lane. After the step of distance d,
// lane i (a multiple of 2d) holds lanes [i, i + 2d) in order. Only those lanes count, and their source never leaves
// the aligned group of 2d lanes, so the shuffle names that group: the narrower, the cheaper on some targets.
//
// A vote of a tile is one ballot, of which a lane looks at its own tile's bits:
//
//   %any = qd.subgroup.any %p tile(8)
//     ->
//   %b = qd.subgroup.ballot %p   %own = %b & (255 << (lane & -8))   %any = %own != 0
//
//===----------------------------------------------------------------------===//

#include "passes/LaneTree.h"

#include "ir/Kind.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

std::optional<int32_t> getTileClause(const BlockShape &shape, int32_t lanes) {
  if (lanes == shape.subgroupSize)
    return std::nullopt;
  return lanes;
}

/// A block smaller than the subgroup whose size is a power of two is a tile of which nothing is missing.
static int32_t narrowToBlock(const BlockShape &shape, int32_t lanes) {
  bool blockIsTile = shape.threads < lanes && llvm::isPowerOf2_32(shape.threads);
  return blockIsTile ? shape.threads : lanes;
}

/// Lanes of the group that are present where it is partial, else 0.
static int32_t getPartialLanes(const BlockShape &shape, int32_t lanes) {
  return lanes == shape.subgroupSize ? shape.getPartialLanes() : 0;
}

/// Whether the tree of `lanes` lanes ends with reads of its groups of `distance` lanes.
static bool endsWithReads(const BlockShape &shape, int32_t lanes, int32_t distance) {
  return distance == shape.readLanes && lanes == shape.subgroupSize && !shape.getPartialLanes();
}

/// Combines the values of the first lanes of all groups, in every lane of the subgroup.
static Value buildReads(OpBuilder &builder, Location loc, const BlockShape &shape, Kind kind, Value value) {
  SmallVector<Value> groups;
  for (int32_t lane = 0; lane < shape.subgroupSize; lane += shape.readLanes)
    groups.push_back(BroadcastOp::create(builder, loc, value, lane, std::nullopt));
  for (; groups.size() > 1; groups.resize(groups.size() / 2))
    for (size_t i = 0; i < groups.size() / 2; ++i)
      groups[i] = createKindOp(builder, loc, kind, groups[2 * i], groups[2 * i + 1]);
  return groups.front();
}

Value buildReduce(OpBuilder &builder, Location loc, const BlockShape &shape, Kind kind, Value value, int32_t lanes) {
  lanes = narrowToBlock(shape, lanes);
  int32_t partial = getPartialLanes(shape, lanes);
  Value threadIndex;
  // A distance that no thread of the block spans has nothing to combine.
  for (int32_t distance = 1; distance < lanes && distance < shape.threads; distance *= 2) {
    if (endsWithReads(shape, lanes, distance))
      return buildReads(builder, loc, shape, kind, value);
    std::optional<int32_t> clause = getTileClause(shape, 2 * distance);
    if (shape.threads % (2 * distance))
      clause = std::nullopt; // such groups straddle the block's end
    Value other = ShuffleDownOp::create(builder, loc, value, distance, clause, /*poisonEdge=*/true);
    Value combined = createKindOp(builder, loc, kind, value, other);
    // Where the present lanes are whole groups of 2d, each present lane that counts has its partner.
    if (partial % (2 * distance) == 0) {
      value = combined;
      continue;
    }
    if (!threadIndex)
      threadIndex = ThreadIndexOp::create(builder, loc, builder.getI32Type());
    Value bound = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(shape.threads - distance));
    Value hasPartner = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, threadIndex, bound);
    value = arith::SelectOp::create(builder, loc, hasPartner, combined, value);
  }
  return value;
}

Value buildReduceAll(OpBuilder &builder, Location loc, const BlockShape &shape, Kind kind, Value value,
                     int32_t lanes) {
  lanes = narrowToBlock(shape, lanes);
  if (getPartialLanes(shape, lanes)) {
    // A butterfly would read missing lanes on the way to lanes that are present.
    Value reduced = buildReduce(builder, loc, shape, kind, value, lanes);
    return BroadcastOp::create(builder, loc, reduced, int32_t(0), getTileClause(shape, lanes));
  }
  for (int32_t distance = 1; distance < lanes; distance *= 2) {
    if (endsWithReads(shape, lanes, distance))
      return buildReads(builder, loc, shape, kind, value);
    // All lanes of the other group hold the same. Below 16 the group read backwards is one instruction on every
    // AMD chip, which a distance of 4 is not.
    int32_t mask = distance < 16 ? 2 * distance - 1 : distance;
    Value other = ShuffleXorOp::create(builder, loc, value, mask, std::nullopt);
    value = createKindOp(builder, loc, kind, value, other);
  }
  return value;
}

Value buildVote(OpBuilder &builder, Location loc, const BlockShape &shape, bool isAll, Value predicate,
                int32_t lanes) {
  if (lanes == 1)
    return predicate;
  Type i1 = builder.getI1Type();
  // Lanes that a block of one tile lacks do not vote.
  if (lanes == shape.subgroupSize || lanes == shape.threads) {
    if (isAll)
      return AllOp::create(builder, loc, i1, predicate, IntegerAttr());
    return AnyOp::create(builder, loc, i1, predicate, IntegerAttr());
  }

  Type i32 = builder.getI32Type(), word = builder.getI64Type();
  auto constant = [&](Type type, int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
  };
  Value ballot = BallotOp::create(builder, loc, predicate);
  Value tileStart =
      arith::AndIOp::create(builder, loc, LaneIdOp::create(builder, loc, i32), constant(i32, -lanes));
  // Half the work on targets whose registers have 32 bits.
  if (shape.subgroupSize <= 32) {
    word = i32;
    ballot = arith::TruncIOp::create(builder, loc, word, ballot);
  } else {
    tileStart = arith::ExtUIOp::create(builder, loc, word, tileStart);
  }
  Value tileMask =
      arith::ShLIOp::create(builder, loc, constant(word, (int64_t(1) << lanes) - 1), tileStart);
  Value own = arith::AndIOp::create(builder, loc, ballot, tileMask);
  if (isAll)
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, own, tileMask);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, own, constant(word, 0));
}

} // namespace qd
