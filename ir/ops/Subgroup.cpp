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
static constexpr unsigned getMaxValue(qd::Scope) { return qd::getMaxEnumValForScope(); }

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
    return op.emitOpError() << "expected a tile of at most " << bits << " lanes, one a bit of the mask, found " << *tile;
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
    return op.emitOpError() << "expected a tile of at most " << bits << " lanes, one a bit of the mask, found " << *tile;
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

/// `unsigned` stands before integers.
static LogicalResult verifySigns(Operation *op, bool isUnsigned, Type type) {
  if (isUnsigned && !type.isInteger())
    return op->emitOpError() << "expected an integer after 'unsigned', found " << type;
  return success();
}

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
// Reductions and scans: a kind, or a region
//===----------------------------------------------------------------------===//

template <typename Op> static constexpr bool isSegmented = std::is_same_v<Op, SegmentedScanOp> ||
                                                           std::is_same_v<Op, SegmentedReduceAllOp>;

/// Whether lanes with nothing to combine hold the identity.
static bool isExclusive(Operation *op) {
  auto segmented = dyn_cast<SegmentedScanOp>(op);
  return isa<ExclusiveScanOp>(op) || (segmented && segmented.getExclusive());
}

template <typename Op> static LogicalResult verifyCombine(Op op) {
  if (failed(verifyTile(op)))
    return failure();
  OperandRange values = op.getValues();
  if (values.getTypes() != op.getResultTypes())
    return op.emitOpError() << "expected results of the operands' types";
  if (op.getKind()) {
    if (!op.getCombiner().empty())
      return op.emitOpError() << "expected a kind or a 'combine' region, found both";
    if (values.size() != 1)
      return op.emitOpError() << "expected one operand beside a kind, found " << values.size();
    if (!isLegalKind(*op.getKind(), values.front().getType()))
      return op.emitOpError() << "kind '" << stringifyKind(*op.getKind()) << "' does not apply to "
                              << values.front().getType();
    if (!op.getIdentity().empty())
      return op.emitOpError() << "kind '" << stringifyKind(*op.getKind())
                              << "' has an identity of its own, found another";
    return success();
  }
  if (op.getCombiner().empty())
    return op.emitOpError() << "expected a kind or a 'combine' region, found neither";
  if (values.empty())
    return op.emitOpError() << "expected at least one operand";
  if (op.getIdentity().empty() ? isExclusive(op) : op.getIdentity().getTypes() != values.getTypes())
    return op.emitOpError() << "expected an identity of the operands' types " << values.getTypes() << ", found "
                            << (op.getIdentity().empty() ? "none" : "another");
  return success();
}

/// Whether an op's result depends on the thread alone.
static bool namesThread(Operation *op) {
  if (isa<LaneMaskLtOp, LaneMaskLeOp, LaneMaskEqOp, LaneMaskGeOp, LaneMaskGtOp>(op))
    return op->getNumOperands() == 0;
  return isa<ThreadIdOp, GlobalThreadIdOp, ThreadIndexOp, LaneIdOp, SubgroupIdOp, ElectOp>(op);
}

/// The region takes two of each operand and yields one, touches no memory and does the same on all lanes.
static LogicalResult verifyCombiner(Operation *op, Region &region, TypeRange types) {
  if (region.empty())
    return success();
  Block &block = region.front();
  SmallVector<Type> expected(types);
  llvm::append_range(expected, types);
  if (block.getArgumentTypes() != TypeRange(expected))
    return op->emitOpError() << "expected a 'combine' region with two arguments of each operand's type";
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return op->emitOpError() << "expected 'qd.yield' at the end of the 'combine' region";
  if (yield.getOperandTypes() != types)
    return yield.emitOpError() << "expected values of the operands' types " << types << ", found "
                               << yield.getOperandTypes();
  WalkResult result = region.walk([&](Operation *inner) {
    if (namesThread(inner)) {
      inner->emitOpError() << "expected ops that do the same on all lanes in a 'combine' region";
      return WalkResult::interrupt();
    }
    if (isMemoryEffectFree(inner) || inner->hasTrait<OpTrait::IsTerminator>() || inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return WalkResult::advance();
    inner->emitOpError() << "expected ops without effects in a 'combine' region";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// NAME [exclusive] (KIND operand | '(' operands ')') [head %h] [tile(n)] [identity(operands)] attr-dict
///   : types [combine (lower), (higher) region]
template <typename Op> static ParseResult parseCombine(OpAsmParser &parser, OperationState &state) {
  using Operand = OpAsmParser::UnresolvedOperand;
  OpBuilder builder(parser.getContext());
  SMLoc start = parser.getCurrentLocation();
  SmallVector<Operand> values, identity, heads;
  if constexpr (std::is_same_v<Op, SegmentedScanOp>)
    if (succeeded(parser.parseOptionalKeyword("exclusive")))
      state.addAttribute("exclusive", builder.getUnitAttr());
  if (succeeded(parser.parseOptionalLParen())) {
    if (parser.parseOperandList(values) || parser.parseRParen())
      return failure();
  } else {
    KindAttr kind;
    if (parseEnum(parser, kind) || parser.parseOperand(values.emplace_back()))
      return failure();
    state.addAttribute("kind", kind);
  }
  if constexpr (isSegmented<Op>)
    if (parser.parseKeyword("head") || parser.parseOperand(heads.emplace_back()))
      return failure();
  if (succeeded(parser.parseOptionalKeyword("tile"))) {
    int32_t tile;
    if (parser.parseLParen() || parser.parseInteger(tile) || parser.parseRParen())
      return failure();
    state.addAttribute("tile", builder.getI32IntegerAttr(tile));
  }
  if (succeeded(parser.parseOptionalKeyword("identity")) &&
      (parser.parseLParen() || parser.parseOperandList(identity) || parser.parseRParen()))
    return failure();

  SmallVector<Type> types;
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseColonTypeList(types))
    return failure();
  SmallVector<Type> headTypes;
  if (!heads.empty() && !types.empty())
    headTypes.push_back(types.pop_back_val());
  if (types.size() != values.size() || headTypes.size() != heads.size())
    return parser.emitError(start) << "expected " << values.size() + heads.size() << " types, found "
                                   << types.size() + headTypes.size();
  if (!identity.empty() && identity.size() != values.size())
    return parser.emitError(start) << "expected an identity of " << values.size() << " values, found "
                                   << identity.size();
  if (parser.resolveOperands(values, types, start, state.operands) ||
      parser.resolveOperands(identity, identity.empty() ? TypeRange() : TypeRange(types), start, state.operands) ||
      parser.resolveOperands(heads, headTypes, start, state.operands))
    return failure();
  state.addTypes(types);
  SmallVector<int32_t> segments = {int32_t(values.size()), int32_t(identity.size())};
  if constexpr (isSegmented<Op>)
    segments.push_back(1);
  state.addAttribute("operandSegmentSizes", builder.getDenseI32ArrayAttr(segments));

  Region *region = state.addRegion();
  if (failed(parser.parseOptionalKeyword("combine")))
    return success();
  SmallVector<OpAsmParser::Argument> arguments;
  for (StringRef side : {"lower", "higher"}) {
    SMLoc location = parser.getCurrentLocation();
    size_t before = arguments.size();
    if ((before && parser.parseComma()) ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                       [&] { return parser.parseArgument(arguments.emplace_back()); }))
      return failure();
    if (arguments.size() - before != types.size())
      return parser.emitError(location) << "expected " << types.size() << " arguments for the " << side
                                        << " lane, found " << arguments.size() - before;
    for (size_t i = 0; i < types.size(); ++i)
      arguments[before + i].type = types[i];
  }
  return parser.parseRegion(*region, arguments);
}

template <typename Op> static void printCombine(OpAsmPrinter &printer, Op op) {
  SmallVector<StringRef> elided = {"kind", "tile", "exclusive", "operandSegmentSizes"};
  SmallVector<Type> types(op.getValues().getTypes());
  if constexpr (std::is_same_v<Op, SegmentedScanOp>)
    if (op.getExclusive())
      printer << " exclusive";
  if (op.getKind())
    printer << ' ' << stringifyKind(*op.getKind()) << ' ' << op.getValues();
  else
    printer << " (" << op.getValues() << ')';
  if constexpr (isSegmented<Op>) {
    printer << " head " << op.getHead();
    types.push_back(op.getHead().getType());
  }
  if (op.getTile())
    printer << " tile(" << *op.getTile() << ')';
  if (!op.getIdentity().empty())
    printer << " identity(" << op.getIdentity() << ')';
  printer.printOptionalAttrDict(op->getAttrs(), elided);
  printer << " : " << types;
  if (op.getCombiner().empty())
    return;
  printer << " combine ";
  Block::BlockArgListType arguments = op.getCombiner().getArguments();
  size_t half = arguments.size() / 2;
  auto printSide = [&](Block::BlockArgListType side) {
    printer << '(';
    llvm::interleaveComma(side, printer, [&](Value argument) { printer.printOperand(argument); });
    printer << ')';
  };
  printSide(arguments.take_front(half));
  printer << ", ";
  printSide(arguments.drop_front(half));
  printer << ' ';
  printer.printRegion(op.getCombiner(), /*printEntryBlockArgs=*/false);
}

#define QD_COMBINE(OP)                                                                                       \
  LogicalResult OP::verify() { return verifyCombine(*this); }                                                \
  LogicalResult OP::verifyRegions() { return verifyCombiner(*this, getCombiner(), getResultTypes()); }       \
  ParseResult OP::parse(OpAsmParser &parser, OperationState &state) { return parseCombine<OP>(parser, state); } \
  void OP::print(OpAsmPrinter &printer) { printCombine(printer, *this); }

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
