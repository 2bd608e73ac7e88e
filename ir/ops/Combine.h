//===- Combine.h - assembly and checks that families of ops share --------------===//
//
// Purpose: the assembly of enums and of reductions and scans, of subgroups and of blocks alike.
//
//===----------------------------------------------------------------------===//

#ifndef QD_IR_OPS_COMBINE_H
#define QD_IR_OPS_COMBINE_H

#include "ir/Dialect.h"
#include "ir/Kind.h"

namespace qd {
using namespace mlir;

//===----------------------------------------------------------------------===//
// Assembly: an enum is its bare keyword (MLIR's own printer puts a second space before it)
//===----------------------------------------------------------------------===//

inline constexpr unsigned getMaxValue(Kind) { return getMaxEnumValForKind(); }
inline constexpr unsigned getMaxValue(Dim) { return getMaxEnumValForDim(); }
inline constexpr unsigned getMaxValue(Scope) { return getMaxEnumValForScope(); }

template <typename EnumAttr> ParseResult parseEnum(OpAsmParser &parser, EnumAttr &attribute) {
  using Enum = decltype(attribute.getValue());
  StringRef keyword;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Enum> value = symbolizeEnum<Enum>(keyword);
  if (!value) {
    InFlightDiagnostic error = parser.emitError(location) << "unknown keyword '" << keyword << "', expected ";
    for (unsigned i = 0; i <= getMaxValue(Enum()); ++i)
      error << (i == 0 ? "" : i == getMaxValue(Enum()) ? " or " : ", ") << stringifyEnum(Enum(i));
    return error;
  }
  attribute = EnumAttr::get(parser.getContext(), *value);
  return success();
}

template <typename EnumAttr> void printEnum(OpAsmPrinter &printer, Operation *, EnumAttr attribute) {
  printer << stringifyEnum(attribute.getValue());
}

//===----------------------------------------------------------------------===//
// Tiles and signs
//===----------------------------------------------------------------------===//

/// The largest tile: a whole block.
constexpr int32_t maxTile = 1024;

template <typename Op> LogicalResult verifyTile(Op op) {
  std::optional<int32_t> tile = op.getTile();
  if (!tile || (*tile >= 1 && *tile <= maxTile && llvm::isPowerOf2_32(*tile)))
    return success();
  return op.emitOpError() << "expected a power of two from 1 to " << maxTile << " as the tile, found " << *tile;
}

/// `unsigned` stands before integers.
inline LogicalResult verifySigns(Operation *op, bool isUnsigned, Type type) {
  if (isUnsigned && !type.isInteger())
    return op->emitOpError() << "expected an integer after 'unsigned', found " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions and scans: a kind, or a region
//===----------------------------------------------------------------------===//

template <typename Op> constexpr bool isSegmented = std::is_same_v<Op, SegmentedScanOp> ||
                                                  std::is_same_v<Op, SegmentedReduceAllOp> ||
                                                  std::is_same_v<Op, BlockSegmentedScanOp>;
template <typename Op>
constexpr bool isSegmentedScan = std::is_same_v<Op, SegmentedScanOp> || std::is_same_v<Op, BlockSegmentedScanOp>;
/// Ops of the block have no tile.
template <typename Op, typename = void> constexpr bool hasTile = false;
template <typename Op> constexpr bool hasTile<Op, std::void_t<decltype(std::declval<Op>().getTile())>> = true;

/// Whether lanes with nothing to combine hold the identity.
inline bool isExclusive(Operation *op) {
  return isa<ExclusiveScanOp, BlockExclusiveScanOp>(op) || op->hasAttr("exclusive");
}

template <typename Op> LogicalResult verifyCombine(Op op) {
  if constexpr (hasTile<Op>)
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
inline bool namesThread(Operation *op) {
  if (isa<LaneMaskLtOp, LaneMaskLeOp, LaneMaskEqOp, LaneMaskGeOp, LaneMaskGtOp>(op))
    return op->getNumOperands() == 0;
  return isa<ThreadIdOp, GlobalThreadIdOp, ThreadIndexOp, LaneIdOp, SubgroupIdOp, ElectOp, BlockElectOp>(op);
}

/// The region takes two of each operand and yields one, touches no memory and does the same on all lanes.
inline LogicalResult verifyCombiner(Operation *op, Region &region, TypeRange types) {
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
    if (isMemoryEffectFree(inner) || inner->hasTrait<OpTrait::IsTerminator>() ||
        inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return WalkResult::advance();
    inner->emitOpError() << "expected ops without effects in a 'combine' region";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// NAME [exclusive] (KIND operand | '(' operands ')') [head %h] [tile(n)] [identity(operands)] attr-dict
///   : types [combine (lower), (higher) region]
template <typename Op> ParseResult parseCombine(OpAsmParser &parser, OperationState &state) {
  using Operand = OpAsmParser::UnresolvedOperand;
  OpBuilder builder(parser.getContext());
  SMLoc start = parser.getCurrentLocation();
  SmallVector<Operand> values, identity, heads;
  if constexpr (isSegmentedScan<Op>)
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
  if (hasTile<Op> && succeeded(parser.parseOptionalKeyword("tile"))) {
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

template <typename Op> void printCombine(OpAsmPrinter &printer, Op op) {
  SmallVector<StringRef> elided = {"kind", "tile", "exclusive", "operandSegmentSizes"};
  SmallVector<Type> types(op.getValues().getTypes());
  if constexpr (isSegmentedScan<Op>)
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
  if constexpr (hasTile<Op>)
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

} // namespace qd

#endif
