//===- Async.cpp - assembly and checks of asynchronous copies -------------------===//

#include "ir/ops/Subscripts.h"

using namespace mlir;

namespace qd {

unsigned AsyncCopyOp::getNumBytes() {
  return getElements() * getStorageBytes(getElementType(getTarget().getType()));
}

ParseResult AsyncCopyOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &builder = parser.getBuilder();
  OpAsmParser::UnresolvedOperand source, target, predicate;
  Subscripts from, to;
  BufferType bufferType;
  SharedType sharedType;
  int32_t elements = 1;
  if (parser.parseOperand(source) || parseSubscripts(parser, from) || parser.parseComma() ||
      parser.parseOperand(target) || parseSubscripts(parser, to))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("elements")) &&
      (parser.parseLParen() || parser.parseInteger(elements) || parser.parseRParen()))
    return failure();
  bool isPredicated = succeeded(parser.parseOptionalKeyword("if"));
  if (isPredicated && parser.parseOperand(predicate))
    return failure();
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseColonType(bufferType) ||
      parser.parseKeyword("to") || parser.parseType(sharedType))
    return failure();
  if (parser.resolveOperand(source, bufferType, state.operands) ||
      parser.resolveOperands(from.operands, from.type, state.operands) ||
      parser.resolveOperand(target, sharedType, state.operands) ||
      parser.resolveOperands(to.operands, to.type, state.operands) ||
      (isPredicated && parser.resolveOperand(predicate, builder.getI1Type(), state.operands)))
    return failure();
  auto &properties = state.getOrAddProperties<AsyncCopyOp::Properties>();
  properties.static_source = builder.getDenseI64ArrayAttr(from.literals);
  properties.static_target = builder.getDenseI64ArrayAttr(to.literals);
  properties.elements = builder.getI32IntegerAttr(elements);
  llvm::copy(ArrayRef<int32_t>{1, int32_t(from.operands.size()), 1, int32_t(to.operands.size()), isPredicated},
             properties.operandSegmentSizes.begin());
  return success();
}

void AsyncCopyOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getSource();
  printSubscripts(printer, getSourceIndices(), getStaticSource());
  printer << ", " << getTarget();
  printSubscripts(printer, getTargetIndices(), getStaticTarget());
  if (getElements() != 1)
    printer << " elements(" << int32_t(getElements()) << ')';
  if (getPredicate())
    printer << " if " << getPredicate();
  printer.printOptionalAttrDict((*this)->getAttrs(), {getStaticSourceAttrName(), getStaticTargetAttrName(),
                                                     getElementsAttrName(), getOperandSegmentSizesAttrName()});
  printer << " : " << getSource().getType() << " to " << getTarget().getType();
}

/// The number of the element that subscripts name, counted row by row, where all of them are literals.
static std::optional<int64_t> getLiteralElement(ArrayRef<int64_t> literals, ArrayRef<int64_t> shape) {
  int64_t element = 0;
  for (auto [i, literal] : llvm::enumerate(literals)) {
    if (literal == ShapedType::kDynamic)
      return std::nullopt;
    element = (i < shape.size() ? element * shape[i] : 0) + literal;
  }
  return element;
}

LogicalResult AsyncCopyOp::verify() {
  BufferType bufferType = getSource().getType();
  SharedType sharedType = getTarget().getType();
  Type element = sharedType.getElementType();
  if (failed(verifyAccess(*this, bufferType, getSourceIndices(), getStaticSource(), element)) ||
      failed(verifyAccess(*this, sharedType, getTargetIndices(), getStaticTarget(), element)))
    return failure();
  if (getDeclaredAccess(getSource()) & KernelOp::WriteOnly)
    return emitOpError() << "reads a buffer that is declared writeonly";
  if (!isScalarType(element))
    return emitOpError() << "copies elements of type " << element
                         << ", expected arrays of scalars and their number as 'elements'";
  int64_t elements = int32_t(getElements()), bytes = elements * getStorageBytes(element);
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return emitOpError() << "copies " << elements << " elements of " << element << ", " << bytes
                         << " bytes, expected 4, 8 or 16";
  if (elements > sharedType.getNumElements())
    return emitOpError() << "copies " << elements << " elements to " << sharedType << ", which has "
                         << sharedType.getNumElements();
  std::pair<ArrayRef<int64_t>, ArrayRef<int64_t>> ends[] = {{getStaticSource(), {}},
                                                            {getStaticTarget(), sharedType.getShape()}};
  for (auto [literals, shape] : ends) {
    std::optional<int64_t> first = getLiteralElement(literals, shape);
    if (first && *first % elements != 0)
      return emitOpError() << "copies " << elements << " elements from or to element " << *first
                           << ", expected a multiple of " << elements;
  }
  std::optional<int64_t> first = getLiteralElement(getStaticTarget(), sharedType.getShape());
  if (first && *first + elements > sharedType.getNumElements())
    return emitOpError() << "copies " << elements << " elements to element " << *first << " of " << sharedType
                         << ", past its end";
  return success();
}

ParseResult AsyncWaitOp::parse(OpAsmParser &parser, OperationState &state) {
  int32_t groups;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseInteger(groups))
    return failure();
  if (groups < 0)
    return parser.emitError(location) << "expected a number of groups from 0 on, found " << groups;
  state.getOrAddProperties<AsyncWaitOp::Properties>().groups = parser.getBuilder().getI32IntegerAttr(groups);
  return parser.parseOptionalAttrDict(state.attributes);
}

void AsyncWaitOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getGroups();
  printer.printOptionalAttrDict((*this)->getAttrs(), {getGroupsAttrName()});
}

} // namespace qd
