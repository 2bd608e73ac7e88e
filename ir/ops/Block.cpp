//===- Block.cpp - assembly and checks of block ops -----------------------------===//

#include "ir/ops/Combine.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace qd {

/// An array of 1024 counts, one a thread of the largest block.
static constexpr int32_t maxRadixBits = 10;

QD_COMBINE(BlockReduceOp)
QD_COMBINE(BlockReduceAllOp)
QD_COMBINE(BlockInclusiveScanOp)
QD_COMBINE(BlockExclusiveScanOp)
QD_COMBINE(BlockSegmentedScanOp)

LogicalResult BlockBroadcastOp::verify() {
  if (bool(getLane()) == bool(getStaticLane()))
    return emitOpError() << "expected a thread either as an operand or as a literal";
  APInt constant;
  int64_t threads =
      (*this)->getParentOfType<KernelOp>() ? (*this)->getParentOfType<KernelOp>().getNumThreads() : maxTile;
  if (getStaticLane())
    constant = APInt(64, *getStaticLane());
  else if (!matchPattern(getLane(), m_ConstantInt(&constant)))
    return success();
  if (constant.isNegative() || constant.sge(threads))
    return emitOpError() << "expected a thread from 0 to " << threads - 1 << ", found " << constant.getSExtValue();
  return success();
}

LogicalResult BlockBitonicSortOp::verify() { return verifySigns(*this, getUnsignedKeys(), getKey().getType()); }

LogicalResult BlockBitonicSortKVOp::verify() {
  if (failed(verifySigns(*this, getUnsignedKeys(), getKey().getType())))
    return failure();
  return verifySigns(*this, getUnsignedValues(), getValue().getType());
}

//===----------------------------------------------------------------------===//
// Radix ranks and sorts
//===----------------------------------------------------------------------===//

static ParseResult parseLiteral(OpAsmParser &parser, OperationState &state, StringRef name) {
  int32_t value;
  if (parser.parseLParen() || parser.parseInteger(value) || parser.parseRParen())
    return failure();
  state.addAttribute(name, parser.getBuilder().getI32IntegerAttr(value));
  return success();
}

static ParseResult parseParenthesized(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands) {
  return parser.parseOperandList(operands, AsmParser::Delimiter::Paren);
}

/// (keys) radix_bits(8) [num_bits(n)] [begin(%b | n)] [bins(%s)] [prefix(%s)] attr-dict : key-type[, shared types]
ParseResult BlockRadixRankOp::parse(OpAsmParser &parser, OperationState &state) {
  OpBuilder builder(parser.getContext());
  SmallVector<OpAsmParser::UnresolvedOperand> keys, begin, bins, prefix;
  SMLoc start = parser.getCurrentLocation();
  if (parseParenthesized(parser, keys) || parser.parseKeyword("radix_bits") ||
      parseLiteral(parser, state, "radix_bits"))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("num_bits")) && parseLiteral(parser, state, "num_bits"))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("begin"))) {
    OpAsmParser::UnresolvedOperand operand;
    int32_t literal;
    if (parser.parseLParen())
      return failure();
    OptionalParseResult isOperand = parser.parseOptionalOperand(operand);
    if (isOperand.has_value()) {
      if (failed(*isOperand))
        return failure();
      begin.push_back(operand);
    } else {
      if (parser.parseInteger(literal))
        return failure();
      state.addAttribute("static_begin", builder.getI32IntegerAttr(literal));
    }
    if (parser.parseRParen())
      return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("bins")) && parseParenthesized(parser, bins))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("prefix")) && parseParenthesized(parser, prefix))
    return failure();
  Type keyType;
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseColonType(keyType))
    return failure();
  if (bins.size() > 1 || prefix.size() > 1)
    return parser.emitError(start, "expected one array as 'bins' and one as 'prefix'");
  auto bits = dyn_cast_or_null<IntegerAttr>(state.attributes.get("radix_bits"));
  if (bits.getInt() < 1 || bits.getInt() > maxRadixBits)
    return parser.emitError(start) << "expected 'radix_bits' from 1 to " << maxRadixBits << ", found " << bits.getInt();
  Type arrayType = SharedType::get(builder.getContext(), {int64_t(1) << bits.getInt()}, builder.getI32Type());
  if (parser.resolveOperands(keys, keyType, state.operands) ||
      parser.resolveOperands(begin, builder.getI32Type(), state.operands) ||
      parser.resolveOperands(bins, arrayType, state.operands) ||
      parser.resolveOperands(prefix, arrayType, state.operands))
    return failure();
  state.addTypes(SmallVector<Type>(keys.size(), builder.getI32Type()));
  state.addAttribute("operandSegmentSizes",
                     builder.getDenseI32ArrayAttr({int32_t(keys.size()), int32_t(begin.size()), int32_t(bins.size()),
                                                   int32_t(prefix.size())}));
  return success();
}

void BlockRadixRankOp::print(OpAsmPrinter &printer) {
  printer << " (" << getKeys() << ") radix_bits(" << getRadixBits() << ')';
  if (getNumBits())
    printer << " num_bits(" << *getNumBits() << ')';
  if (getBegin())
    printer << " begin(" << getBegin() << ')';
  else if (getStaticBegin())
    printer << " begin(" << *getStaticBegin() << ')';
  if (getBins())
    printer << " bins(" << getBins() << ')';
  if (getPrefix())
    printer << " prefix(" << getPrefix() << ')';
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {"radix_bits", "num_bits", "static_begin", "operandSegmentSizes"});
  printer << " : " << getKeys().front().getType();
}

LogicalResult BlockRadixRankOp::verify() {
  if (getKeys().empty())
    return emitOpError() << "expected at least one key";
  for (Value key : getKeys())
    if (key.getType() != getKeys().front().getType())
      return emitOpError() << "expected keys of one type, found " << getKeys().front().getType() << " and "
                           << key.getType();
  if (getRanks().size() != getKeys().size())
    return emitOpError() << "expected one rank a key";
  int32_t bits = getRadixBits(), width = getKeys().front().getType().getIntOrFloatBitWidth();
  if (bits < 1 || bits > maxRadixBits)
    return emitOpError() << "expected 'radix_bits' from 1 to " << maxRadixBits << ", found " << bits;
  if (getNumBits() && (int32_t(*getNumBits()) < 1 || int32_t(*getNumBits()) > bits))
    return emitOpError() << "expected 'num_bits' from 1 to the " << bits << " of 'radix_bits', found "
                         << int32_t(*getNumBits());
  if (getBegin() && getStaticBegin())
    return emitOpError() << "expected 'begin' either as an operand or as a literal";
  if (getStaticBegin() && (int32_t(*getStaticBegin()) < 0 || int32_t(*getStaticBegin()) >= width))
    return emitOpError() << "expected 'begin' from 0 to " << width - 1 << ", found " << int32_t(*getStaticBegin());
  for (Value array : {getBins(), getPrefix()}) {
    if (!array)
      continue;
    auto type = cast<SharedType>(array.getType());
    if (type.getShape() != ArrayRef<int64_t>{int64_t(1) << bits} || !type.getElementType().isInteger(32))
      return emitOpError() << "expected !qd.shared<" << (1 << bits) << "xi32> for 'radix_bits' of " << bits
                           << ", found " << type;
  }
  if (getBins() && getBins() == getPrefix())
    return emitOpError() << "expected two arrays, found one as 'bins' and 'prefix'";
  return success();
}

/// [descending] [unsigned] (keys) [values(values)] [begin(n)] [end(n)] attr-dict : key-type[, value-type]
ParseResult BlockRadixSortOp::parse(OpAsmParser &parser, OperationState &state) {
  OpBuilder builder(parser.getContext());
  SmallVector<OpAsmParser::UnresolvedOperand> keys, values;
  for (auto [word, name] : {std::pair("descending", "descending"), std::pair("unsigned", "unsigned_keys")})
    if (succeeded(parser.parseOptionalKeyword(word)))
      state.addAttribute(name, builder.getUnitAttr());
  if (parseParenthesized(parser, keys))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("values")) && parseParenthesized(parser, values))
    return failure();
  for (StringRef name : {"begin", "end"})
    if (succeeded(parser.parseOptionalKeyword(name)) && parseLiteral(parser, state, name))
      return failure();
  Type keyType, valueType;
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseColonType(keyType))
    return failure();
  if (!values.empty() && (parser.parseComma() || parser.parseType(valueType)))
    return failure();
  if (parser.resolveOperands(keys, keyType, state.operands) ||
      (!values.empty() && parser.resolveOperands(values, valueType, state.operands)))
    return failure();
  state.addTypes(SmallVector<Type>(keys.size(), keyType));
  state.addTypes(SmallVector<Type>(values.size(), valueType));
  state.addAttribute("operandSegmentSizes",
                     builder.getDenseI32ArrayAttr({int32_t(keys.size()), int32_t(values.size())}));
  return success();
}

void BlockRadixSortOp::print(OpAsmPrinter &printer) {
  printer << (getDescending() ? " descending" : "") << (getUnsignedKeys() ? " unsigned" : "") << " (" << getKeys()
          << ')';
  if (!getValues().empty())
    printer << " values(" << getValues() << ')';
  if (getBegin())
    printer << " begin(" << *getBegin() << ')';
  if (getEnd())
    printer << " end(" << *getEnd() << ')';
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {"descending", "unsigned_keys", "begin", "end", "operandSegmentSizes"});
  printer << " : " << getKeys().front().getType();
  if (!getValues().empty())
    printer << ", " << getValues().front().getType();
}

LogicalResult BlockRadixSortOp::verify() {
  if (getKeys().empty())
    return emitOpError() << "expected at least one key";
  if (!getValues().empty() && getValues().size() != getKeys().size())
    return emitOpError() << "expected one value a key, found " << getValues().size() << " for " << getKeys().size();
  for (ValueRange group : {ValueRange(getKeys()), ValueRange(getValues())})
    for (Value value : group)
      if (value.getType() != group.front().getType())
        return emitOpError() << "expected keys of one type and values of one type, found " << group.front().getType()
                             << " and " << value.getType();
  SmallVector<Type> types(getKeys().getTypes());
  llvm::append_range(types, getValues().getTypes());
  if (getResultTypes() != TypeRange(types))
    return emitOpError() << "expected results of the operands' types";
  int32_t width = getKeys().front().getType().getIntOrFloatBitWidth();
  int32_t begin = getBegin().value_or(0), end = getEnd().value_or(width);
  if (begin < 0 || begin >= end || end > width)
    return emitOpError() << "expected bits from 0 to " << width << " of " << getKeys().front().getType()
                         << ", found 'begin' " << begin << " and 'end' " << end;
  return verifySigns(*this, getUnsignedKeys(), getKeys().front().getType());
}

} // namespace qd
