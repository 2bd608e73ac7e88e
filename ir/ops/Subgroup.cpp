//===- Subgroup.cpp - assembly and checks of subgroup ops --------------------===//

#include "ir/Dialect.h"
#include "ir/Kind.h"

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

//===----------------------------------------------------------------------===//
// Assembly: an enum is its bare keyword (MLIR's own printer puts a second space before it)
//===----------------------------------------------------------------------===//

static constexpr unsigned getMaxValue(qd::Kind) { return qd::getMaxEnumValForKind(); }
static constexpr unsigned getMaxValue(qd::Dim) { return qd::getMaxEnumValForDim(); }

template <typename EnumAttr> static ParseResult parseEnum(OpAsmParser &parser, EnumAttr &attribute) {
  using Enum = decltype(attribute.getValue());
  StringRef keyword;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Enum> value = qd::symbolizeEnum<Enum>(keyword);
  if (!value) {
    InFlightDiagnostic error = parser.emitError(location) << "unknown keyword '" << keyword << "', expected ";
    for (unsigned i = 0; i <= getMaxValue(Enum()); ++i)
      error << (i == 0 ? "" : i == getMaxValue(Enum()) ? " or " : ", ") << stringifyEnum(Enum(i));
    return error;
  }
  attribute = EnumAttr::get(parser.getContext(), *value);
  return success();
}

template <typename EnumAttr> static void printEnum(OpAsmPrinter &printer, Operation *, EnumAttr attribute) {
  printer << stringifyEnum(attribute.getValue());
}

#define GET_OP_CLASSES
#include "ir/Ops.cpp.inc"

namespace qd {

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// The largest tile: a whole block.
static constexpr int32_t maxTile = 1024;

template <typename Op> static LogicalResult verifyTile(Op op) {
  std::optional<int32_t> tile = op.getTile();
  if (!tile || (*tile >= 1 && *tile <= maxTile && llvm::isPowerOf2_32(*tile)))
    return success();
  return op.emitOpError() << "expected a power of two from 1 to " << maxTile << " as the tile, found " << *tile;
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
  if (std::optional<int32_t> constant = op.getConstantLane(); constant && *constant < 0)
    return op.emitOpError() << "expected " << what << " of at least 0, found " << *constant;
  return success();
}

LogicalResult ShuffleOp::verify() { return verifyLane(*this, "a lane"); }
LogicalResult BroadcastOp::verify() { return verifyLane(*this, "a lane"); }
LogicalResult ShuffleUpOp::verify() { return verifyLane(*this, "an offset"); }
LogicalResult ShuffleDownOp::verify() { return verifyLane(*this, "an offset"); }

LogicalResult ShuffleXorOp::verify() {
  if (failed(verifyLane(*this, "a mask")))
    return failure();
  std::optional<int32_t> mask = getConstantLane(), tile = getTile();
  if (mask && tile && *mask >= *tile)
    return emitOpError() << "mask " << *mask << " leaves the tile of " << *tile << " lanes";
  return success();
}

template <typename Op> static LogicalResult verifyReduce(Op op) {
  if (failed(verifyTile(op)))
    return failure();
  if (!isLegalKind(op.getKind(), op.getType()))
    return op.emitOpError() << "kind '" << stringifyKind(op.getKind()) << "' does not apply to " << op.getType();
  return success();
}

LogicalResult ReduceOp::verify() { return verifyReduce(*this); }
LogicalResult ReduceAllOp::verify() { return verifyReduce(*this); }

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

QD_SHUFFLE_LIKE(ShuffleOp)
QD_SHUFFLE_LIKE(ShuffleXorOp)
QD_SHUFFLE_LIKE(BroadcastOp)
QD_SHUFFLE_EDGE(ShuffleUpOp)
QD_SHUFFLE_EDGE(ShuffleDownOp)

} // namespace qd
