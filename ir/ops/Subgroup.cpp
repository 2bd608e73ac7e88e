//===- Subgroup.cpp - assembly and checks of subgroup ops --------------------===//

#include "ir/ops/Combine.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

//===----------------------------------------------------------------------===//
// Assembly: a lane is an operand or a literal
//===----------------------------------------------------------------------===//

static ParseResult parseLaneOperand(OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> &lane,
                                    IntegerAttr &literal) {
  OpAsmParser::UnresolvedOperand operand;
  OptionalParseResult isOperand = parser.parseOptionalOperand(operand);
  if (isOperand.has_value()) {
    lane = operand;
    return *isOperand;
  }
  int32_t value;
  if (parser.parseInteger(value))
    return failure();
  literal = parser.getBuilder().getI32IntegerAttr(value);
  return success();
}

static void printLaneOperand(OpAsmPrinter &printer, Operation *, Value lane, IntegerAttr literal) {
  if (lane)
    printer << lane;
  else
    printer << literal.getInt();
}

#define GET_OP_CLASSES
#include "ir/Ops.cpp.inc"

namespace qd {

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

LogicalResult AssumeUniformOp::verify() {
  if (getScope() == Scope::device)
    return emitOpError() << "expected subgroup or block as the scope, found device";
  return success();
}

LogicalResult ElectOp::verify() { return verifyTile(*this); }
LogicalResult BroadcastFirstOp::verify() { return verifyTile(*this); }
LogicalResult AllOp::verify() { return verifyTile(*this); }
LogicalResult AnyOp::verify() { return verifyTile(*this); }

template <typename Op> static LogicalResult verifyLane(Op op, StringRef what) {
  if (failed(verifyTile(op)))
    return failure();
  if (bool(op.getLane()) == bool(op.getStaticLane()))
    return op.emitOpError() << "expected " << what << " either as an operand or as a literal";
  return success();
}

template <typename Op> static LogicalResult verifyDistance(Op op, StringRef what) {
  if (failed(verifyLane(op, what)))
    return failure();
  if (std::optional<int32_t> constant = op.getConstantLane(); constant && *constant < 0)
    return op.emitOpError() << "expected " << what << " of at least 0, found " << *constant;
  return success();
}

LogicalResult BroadcastOp::verify() { return verifyLane(*this, "a lane"); }
LogicalResult RotateOp::verify() { return verifyLane(*this, "an offset"); }
LogicalResult ShuffleUpOp::verify() { return verifyDistance(*this, "an offset"); }
LogicalResult ShuffleDownOp::verify() { return verifyDistance(*this, "an offset"); }

LogicalResult ShuffleXorOp::verify() {
  if (failed(verifyDistance(*this, "a mask")))
    return failure();
  std::optional<int32_t> mask = getConstantLane(), tile = getTile();
  if (mask && tile && *mask >= *tile)
    return emitOpError() << "mask " << *mask << " leaves the tile of " << *tile << " lanes";
  return success();
}

/// A mask with a bit a lane.
template <typename Op> static LogicalResult verifyMask(Op op) {
  constexpr int32_t bits = 64;
  if (failed(verifyTile(op)))
    return failure();
  if (std::optional<int32_t> tile = op.getTile(); tile && *tile > bits)
    return op.emitOpError() << "expected a tile of at most " << bits << " lanes, one a bit of the mask, found "
                            << *tile;
  return success();
}

template <typename Op> static LogicalResult verifyMembers(Op op) {
  if (failed(verifyMask(op)))
    return failure();
  if (op.getMembers() && op.getTile())
    return op.emitOpError() << "expected either 'members' or 'tile', found both";
  return success();
}

LogicalResult BallotOp::verify() { return verifyMembers(*this); }
LogicalResult MatchAnyOp::verify() { return verifyMembers(*this); }
LogicalResult MatchAllOp::verify() { return verifyMembers(*this); }
LogicalResult AllEqualOp::verify() { return verifyTile(*this); }

LogicalResult ShuffleOp::verify() {
  if (failed(verifyLane(*this, "a lane")))
    return failure();
  if (getMembers() && getTile())
    return emitOpError() << "expected either 'members' or 'tile', found both";
  return success();
}

LogicalResult BallotFirstNOp::verify() {
  if (getN() >= 1 && getN() <= 32)
    return success();
  return emitOpError() << "expected from 1 to 32 lanes, found " << int32_t(getN());
}

template <typename Op> static LogicalResult verifyLaneMask(Op op) {
  int64_t bits = op.getType().getIntOrFloatBitWidth();
  if (failed(verifyTile(op)))
    return failure();
  if (op.getLane() && op.getTile())
    return op.emitOpError() << "expected either a lane or 'tile', found both";
  if (std::optional<int32_t> tile = op.getTile(); tile && *tile > bits)
    return op.emitOpError() << "expected a tile of at most " << bits << " lanes, one a bit of the mask, found "
                            << *tile;
  APInt lane;
  if (op.getLane() && matchPattern(op.getLane(), m_ConstantInt(&lane)) && (lane.isNegative() || lane.sge(bits)))
    return op.emitOpError() << "expected a lane from 0 to " << bits - 1 << ", found " << lane.getSExtValue();
  return success();
}

LogicalResult LaneMaskLtOp::verify() { return verifyLaneMask(*this); }
LogicalResult LaneMaskLeOp::verify() { return verifyLaneMask(*this); }
LogicalResult LaneMaskEqOp::verify() { return verifyLaneMask(*this); }
LogicalResult LaneMaskGeOp::verify() { return verifyLaneMask(*this); }
LogicalResult LaneMaskGtOp::verify() { return verifyLaneMask(*this); }

LogicalResult BitonicSortOp::verify() {
  if (failed(verifyTile(*this)))
    return failure();
  return verifySigns(*this, getUnsignedKeys(), getKey().getType());
}

LogicalResult BitonicSortKVOp::verify() {
  if (failed(verifyTile(*this)) || failed(verifySigns(*this, getUnsignedKeys(), getKey().getType())))
    return failure();
  return verifySigns(*this, getUnsignedValues(), getValue().getType());
}

//===----------------------------------------------------------------------===//
// Reductions and scans
//===----------------------------------------------------------------------===//

QD_COMBINE(ReduceOp)
QD_COMBINE(ReduceAllOp)
QD_COMBINE(InclusiveScanOp)
QD_COMBINE(ExclusiveScanOp)
QD_COMBINE(SegmentedScanOp)
QD_COMBINE(SegmentedReduceAllOp)

//===----------------------------------------------------------------------===//
// Lanes and builders
//===----------------------------------------------------------------------===//

template <typename Op> static std::optional<int32_t> getConstantLaneOf(Op op) {
  if (op.getStaticLane())
    return op.getStaticLane();
  APInt constant;
  if (op.getLane() && matchPattern(op.getLane(), m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

static IntegerAttr toAttr(OpBuilder &builder, std::optional<int32_t> value) {
  return value ? builder.getI32IntegerAttr(*value) : IntegerAttr();
}

#define QD_SHUFFLE_LIKE(OP)                                                                                  \
  std::optional<int32_t> OP::getConstantLane() { return getConstantLaneOf(*this); }                          \
  void OP::build(OpBuilder &builder, OperationState &state, Value value, Value lane,                         \
                 std::optional<int32_t> tile) {                                                              \
    build(builder, state, value.getType(), value, lane, IntegerAttr(), toAttr(builder, tile));               \
  }                                                                                                          \
  void OP::build(OpBuilder &builder, OperationState &state, Value value, int32_t lane,                       \
                 std::optional<int32_t> tile) {                                                              \
    build(builder, state, value.getType(), value, Value(), toAttr(builder, lane), toAttr(builder, tile));    \
  }

#define QD_SHUFFLE_EDGE(OP)                                                                                  \
  std::optional<int32_t> OP::getConstantLane() { return getConstantLaneOf(*this); }                          \
  void OP::build(OpBuilder &builder, OperationState &state, Value value, Value lane,                         \
                 std::optional<int32_t> tile, bool poisonEdge) {                                             \
    build(builder, state, value.getType(), value, lane, IntegerAttr(), toAttr(builder, tile),                \
          poisonEdge ? builder.getUnitAttr() : UnitAttr());                                                  \
  }                                                                                                          \
  void OP::build(OpBuilder &builder, OperationState &state, Value value, int32_t lane,                       \
                 std::optional<int32_t> tile, bool poisonEdge) {                                             \
    build(builder, state, value.getType(), value, Value(), toAttr(builder, lane), toAttr(builder, tile),     \
          poisonEdge ? builder.getUnitAttr() : UnitAttr());                                                  \
  }

#define QD_FOLD(OP)                                                                                          \
  void OP::build(OpBuilder &builder, OperationState &state, Kind kind, Value value, std::optional<int32_t> tile) { \
    build(builder, state, value.getType(), KindAttr::get(builder.getContext(), kind), value, ValueRange(),   \
          toAttr(builder, tile));                                                                            \
  }

QD_FOLD(ReduceOp)
QD_FOLD(ReduceAllOp)
QD_FOLD(InclusiveScanOp)
QD_FOLD(ExclusiveScanOp)

void BallotOp::build(OpBuilder &builder, OperationState &state, Value predicate, std::optional<int32_t> tile) {
  build(builder, state, builder.getI64Type(), predicate, Value(), toAttr(builder, tile));
}

std::optional<int32_t> ShuffleOp::getConstantLane() { return getConstantLaneOf(*this); }

void ShuffleOp::build(OpBuilder &builder, OperationState &state, Value value, Value lane,
                      std::optional<int32_t> tile) {
  build(builder, state, value.getType(), value, lane, Value(), IntegerAttr(), toAttr(builder, tile));
}

void ShuffleOp::build(OpBuilder &builder, OperationState &state, Value value, int32_t lane,
                      std::optional<int32_t> tile) {
  build(builder, state, value.getType(), value, Value(), Value(), toAttr(builder, lane), toAttr(builder, tile));
}

QD_SHUFFLE_LIKE(ShuffleXorOp)
QD_SHUFFLE_LIKE(RotateOp)
QD_SHUFFLE_LIKE(BroadcastOp)
QD_SHUFFLE_EDGE(ShuffleUpOp)
QD_SHUFFLE_EDGE(ShuffleDownOp)

} // namespace qd
