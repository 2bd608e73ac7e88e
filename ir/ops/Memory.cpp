//===- Memory.cpp - assembly and checks of loads and stores ------------------===//

#include "ir/ops/Subscripts.h"

using namespace mlir;

namespace qd {

static constexpr unsigned maxAccessAlignment = 16;

//===----------------------------------------------------------------------===//
// qd.size
//===----------------------------------------------------------------------===//

LogicalResult SizeOp::verify() {
  std::optional<uint32_t> dim = getDim();
  if (!dim || *dim < getBuffer().getType().getRank())
    return success();
  return emitOpError() << "asks for dimension " << int32_t(*dim) << " of " << getBuffer().getType()
                       << ", expected one below " << getBuffer().getType().getRank();
}

//===----------------------------------------------------------------------===//
// qd.load
//===----------------------------------------------------------------------===//

void LoadOp::build(OpBuilder &builder, OperationState &state, Value array, ValueRange indices) {
  SmallVector<int64_t> literals(indices.size(), ShapedType::kDynamic);
  build(builder, state, getElementType(array.getType()), array, indices, builder.getDenseI64ArrayAttr(literals),
        Value(), Value(), /*is_volatile=*/nullptr, /*align=*/nullptr);
}

ParseResult LoadOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &builder = parser.getBuilder();
  OpAsmParser::UnresolvedOperand array, predicate, otherwise;
  Subscripts subscripts;
  Type arrayType, type;
  IntegerAttr align;
  bool isVolatile = succeeded(parser.parseOptionalKeyword("volatile"));
  if (parser.parseOperand(array) || parseSubscripts(parser, subscripts) || parseAlign(parser, align))
    return failure();
  bool isPredicated = succeeded(parser.parseOptionalKeyword("if"));
  if (isPredicated &&
      (parser.parseOperand(predicate) || parser.parseKeyword("else") || parser.parseOperand(otherwise)))
    return failure();
  if (parser.parseOptionalAttrDict(state.attributes) || parseArrayType(parser, arrayType))
    return failure();
  type = getElementType(arrayType);
  if (succeeded(parser.parseOptionalArrow()) && parser.parseType(type))
    return failure();
  state.addTypes(type);
  if (parser.resolveOperand(array, arrayType, state.operands) ||
      parser.resolveOperands(subscripts.operands, subscripts.type, state.operands))
    return failure();
  if (isPredicated && (parser.resolveOperand(predicate, builder.getI1Type(), state.operands) ||
                       parser.resolveOperand(otherwise, type, state.operands)))
    return failure();
  auto &properties = state.getOrAddProperties<LoadOp::Properties>();
  properties.static_indices = builder.getDenseI64ArrayAttr(subscripts.literals);
  properties.align = align;
  if (isVolatile)
    properties.is_volatile = builder.getUnitAttr();
  llvm::copy(ArrayRef<int32_t>{1, int32_t(subscripts.operands.size()), isPredicated, isPredicated},
             properties.operandSegmentSizes.begin());
  return success();
}

void LoadOp::print(OpAsmPrinter &printer) {
  printer << (getIsVolatile() ? " volatile " : " ") << getArray();
  printSubscripts(printer, getIndices(), getStaticIndices());
  if (getAlign())
    printer << " align(" << *getAlign() << ')';
  if (getPredicate())
    printer << " if " << getPredicate() << " else " << getOtherwise();
  printer.printOptionalAttrDict((*this)->getAttrs(), {getStaticIndicesAttrName(), getIsVolatileAttrName(),
                                                     getAlignAttrName(), getOperandSegmentSizesAttrName()});
  printer << " : " << getArray().getType();
  if (getType() != getElementType(getArray().getType()))
    printer << " -> " << getType();
}

LogicalResult LoadOp::verify() {
  if (failed(verifyAccess(*this, getArray().getType(), getIndices(), getStaticIndices(), getType(),
                          /*takesVectors=*/true)) ||
      failed(verifyAlign(*this, getAlign(), maxAccessAlignment)))
    return failure();
  if (!getPredicate() != !getOtherwise())
    return emitOpError() << "expected 'if' and 'else' together";
  if (getOtherwise() && getOtherwise().getType() != getType())
    return emitOpError() << "'else' value has type " << getOtherwise().getType() << ", expected " << getType();
  if (getDeclaredAccess(getArray()) & KernelOp::WriteOnly)
    return emitOpError() << "reads a buffer that is declared writeonly";
  return success();
}

//===----------------------------------------------------------------------===//
// qd.store
//===----------------------------------------------------------------------===//

void StoreOp::build(OpBuilder &builder, OperationState &state, Value value, Value array, ValueRange indices) {
  SmallVector<int64_t> literals(indices.size(), ShapedType::kDynamic);
  build(builder, state, value, array, indices, builder.getDenseI64ArrayAttr(literals), Value(),
        /*is_volatile=*/nullptr, /*align=*/nullptr);
}

/// `: ARRAY`, or `: VALUE -> ARRAY`.
static ParseResult parseStoredTypes(OpAsmParser &parser, Type &type, Type &arrayType) {
  SMLoc location;
  if (parser.parseColon() || parser.getCurrentLocation(&location) || parser.parseType(arrayType))
    return failure();
  bool hasValueType = succeeded(parser.parseOptionalArrow());
  if (hasValueType) {
    type = arrayType;
    if (parser.getCurrentLocation(&location) || parser.parseType(arrayType))
      return failure();
  }
  if (failed(checkArrayType(parser, location, arrayType)))
    return failure();
  if (!hasValueType)
    type = getElementType(arrayType);
  return success();
}

ParseResult StoreOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &builder = parser.getBuilder();
  OpAsmParser::UnresolvedOperand value, array, predicate;
  Subscripts subscripts;
  Type arrayType, type;
  IntegerAttr align;
  bool isVolatile = succeeded(parser.parseOptionalKeyword("volatile"));
  if (parser.parseOperand(value) || parser.parseComma() || parser.parseOperand(array) ||
      parseSubscripts(parser, subscripts) || parseAlign(parser, align))
    return failure();
  bool isPredicated = succeeded(parser.parseOptionalKeyword("if"));
  if (isPredicated && parser.parseOperand(predicate))
    return failure();
  if (parser.parseOptionalAttrDict(state.attributes) || parseStoredTypes(parser, type, arrayType))
    return failure();
  if (parser.resolveOperand(value, type, state.operands) ||
      parser.resolveOperand(array, arrayType, state.operands) ||
      parser.resolveOperands(subscripts.operands, subscripts.type, state.operands))
    return failure();
  if (isPredicated && parser.resolveOperand(predicate, builder.getI1Type(), state.operands))
    return failure();
  auto &properties = state.getOrAddProperties<StoreOp::Properties>();
  properties.static_indices = builder.getDenseI64ArrayAttr(subscripts.literals);
  properties.align = align;
  if (isVolatile)
    properties.is_volatile = builder.getUnitAttr();
  llvm::copy(ArrayRef<int32_t>{1, 1, int32_t(subscripts.operands.size()), isPredicated},
             properties.operandSegmentSizes.begin());
  return success();
}

void StoreOp::print(OpAsmPrinter &printer) {
  printer << (getIsVolatile() ? " volatile " : " ") << getValue() << ", " << getArray();
  printSubscripts(printer, getIndices(), getStaticIndices());
  if (getAlign())
    printer << " align(" << *getAlign() << ')';
  if (getPredicate())
    printer << " if " << getPredicate();
  printer.printOptionalAttrDict((*this)->getAttrs(), {getStaticIndicesAttrName(), getIsVolatileAttrName(),
                                                     getAlignAttrName(), getOperandSegmentSizesAttrName()});
  printer << " : ";
  if (getValue().getType() != getElementType(getArray().getType()))
    printer << getValue().getType() << " -> ";
  printer << getArray().getType();
}

LogicalResult StoreOp::verify() {
  if (failed(verifyAccess(*this, getArray().getType(), getIndices(), getStaticIndices(), getValue().getType(),
                          /*takesVectors=*/true)) ||
      failed(verifyAlign(*this, getAlign(), maxAccessAlignment)))
    return failure();
  if (isa<ConstantType>(getArray().getType()))
    return emitOpError() << "writes a table of constants";
  if (getDeclaredAccess(getArray()) & KernelOp::ReadOnly)
    return emitOpError() << "writes a buffer that is declared readonly";
  return success();
}

//===----------------------------------------------------------------------===//
// qd.shared.alloc
//===----------------------------------------------------------------------===//

LogicalResult SharedAllocOp::verify() {
  if (!isa_and_nonnull<KernelOp>((*this)->getParentOp()))
    return emitOpError() << "expected to stand at the top level of a kernel's body";
  return success();
}

} // namespace qd
