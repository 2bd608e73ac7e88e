//===- View.cpp - assembly and checks of views and reinterpretations ----------===//

#include "ir/ops/Subscripts.h"

using namespace mlir;

namespace qd {

//===----------------------------------------------------------------------===//
// qd.view
//===----------------------------------------------------------------------===//

ParseResult ViewOp::parse(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::UnresolvedOperand source;
  Subscripts subscripts, sizes, strides;
  Type sourceType, type;
  if (parser.parseOperand(source) || parseSubscripts(parser, subscripts) || parser.parseComma() ||
      parseSubscriptList(parser, sizes))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("strides")) &&
      (parser.parseLParen() || parseSubscriptList(parser, strides) || parser.parseRParen()))
    return failure();
  if (parser.parseOptionalAttrDict(state.attributes) || parseArrayType(parser, sourceType))
    return failure();
  type = sourceType;
  if (succeeded(parser.parseOptionalKeyword("to")) && parser.parseType(type))
    return failure();
  state.addTypes(type);
  if (parser.resolveOperand(source, sourceType, state.operands) ||
      parser.resolveOperands(subscripts.operands, subscripts.type, state.operands) ||
      parser.resolveOperands(sizes.operands, subscripts.type, state.operands) ||
      parser.resolveOperands(strides.operands, subscripts.type, state.operands))
    return failure();
  auto &properties = state.getOrAddProperties<Properties>();
  Builder &builder = parser.getBuilder();
  properties.static_indices = builder.getDenseI64ArrayAttr(subscripts.literals);
  properties.static_sizes = builder.getDenseI64ArrayAttr(sizes.literals);
  properties.static_strides = builder.getDenseI64ArrayAttr(strides.literals);
  llvm::copy(ArrayRef<int32_t>{1, int32_t(subscripts.operands.size()), int32_t(sizes.operands.size()),
                               int32_t(strides.operands.size())},
             properties.operandSegmentSizes.begin());
  return success();
}

void ViewOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getSource();
  Type type = getNumOperands() > 1 ? getOperand(1).getType() : Type();
  printSubscripts(printer, getIndices(), getStaticIndices(), type);
  printer << ", ";
  printSubscriptList(printer, getSizes(), getStaticSizes());
  if (!getStaticStrides().empty()) {
    printer << " strides(";
    printSubscriptList(printer, getStrides(), getStaticStrides());
    printer << ')';
  }
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getStaticIndicesAttrName(), getStaticSizesAttrName(), getStaticStridesAttrName(),
                                 getOperandSegmentSizesAttrName()});
  printer << " : " << getSource().getType();
  if (getType() != getSource().getType())
    printer << " to " << getType();
}

/// Checks one of the lists of numbers: a literal is at least `least`.
static LogicalResult verifyList(ViewOp op, StringRef what, OperandRange operands, ArrayRef<int64_t> literals,
                                size_t expected, int64_t least) {
  size_t dynamic = llvm::count(literals, ShapedType::kDynamic);
  if (dynamic != operands.size())
    return op.emitOpError() << "expected " << dynamic << " operands as " << what << ", found " << operands.size();
  if (literals.size() != expected)
    return op.emitOpError() << "expected " << expected << ' ' << what << ", found " << literals.size();
  for (int64_t literal : literals)
    if (!ShapedType::isDynamic(literal) && literal < least)
      return op.emitOpError() << "expected " << what << " of at least " << least << ", found " << literal;
  return success();
}

LogicalResult ViewOp::verify() {
  BufferType source = getSource().getType(), type = getType();
  if (source.getElementType() != type.getElementType())
    return emitOpError() << "result has elements of " << type.getElementType() << ", expected "
                         << source.getElementType() << "; qd.reinterpret changes the type";
  if (source.getRank() > 1 && type.getRank() > source.getRank())
    return emitOpError() << "result has " << type.getRank() << " dimensions, expected at most the "
                         << source.getRank() << " of its source, or a source of one dimension";
  if (!getStaticStrides().empty() && source.getRank() > 1)
    return emitOpError() << "has strides, expected them with a source of one dimension, found " << source;
  for (Value operand : getOperands().drop_front())
    if (operand.getType() != getOperand(1).getType())
      return emitOpError() << "has subscripts and sizes of different types " << getOperand(1).getType() << " and "
                           << operand.getType();
  if (failed(verifyList(*this, "subscripts", getIndices(), getStaticIndices(), source.getRank(), 0)) ||
      failed(verifyList(*this, "sizes", getSizes(), getStaticSizes(), type.getRank(), 0)))
    return failure();
  if (getStaticStrides().empty() && getStrides().empty())
    return success();
  return verifyList(*this, "strides", getStrides(), getStaticStrides(), type.getRank(), 0);
}

//===----------------------------------------------------------------------===//
// qd.reinterpret
//===----------------------------------------------------------------------===//

LogicalResult ReinterpretOp::verify() {
  if (getType().getRank() != 1)
    return emitOpError() << "expected a result of one dimension, found " << getType()
                         << "; qd.view gives it more of them";
  bool isBool = getScalarOf(getType().getElementType()).isInteger(1);
  if (isBool && !getScalarOf(getSource().getType().getElementType()).isInteger(1))
    return emitOpError() << "takes bytes of " << getSource().getType()
                         << " as i1, which is 0 or 1 in memory; expected another type";
  return success();
}

} // namespace qd
