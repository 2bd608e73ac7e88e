//===- Memory.cpp - assembly and checks of loads and stores ------------------===//

#include "ir/ops/Subscripts.h"

using namespace mlir;

namespace qd {

//===----------------------------------------------------------------------===//
// qd.load
//===----------------------------------------------------------------------===//

void LoadOp::build(OpBuilder &builder, OperationState &state, Value array, ValueRange indices) {
  SmallVector<int64_t> literals(indices.size(), ShapedType::kDynamic);
  build(builder, state, getElementType(array.getType()), array, indices, builder.getDenseI64ArrayAttr(literals),
        Value(), Value(), /*is_volatile=*/nullptr);
}

ParseResult LoadOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &builder = parser.getBuilder();
  OpAsmParser::UnresolvedOperand array, predicate, otherwise;
  Subscripts subscripts;
  Type arrayType;
  bool isVolatile = succeeded(parser.parseOptionalKeyword("volatile"));
  if (parser.parseOperand(array) || parseSubscripts(parser, subscripts))
    return failure();
  bool isPredicated = succeeded(parser.parseOptionalKeyword("if"));
  if (isPredicated &&
      (parser.parseOperand(predicate) || parser.parseKeyword("else") || parser.parseOperand(otherwise)))
    return failure();
  if (parser.parseOptionalAttrDict(state.attributes) || parseArrayType(parser, arrayType))
    return failure();
  Type element = getElementType(arrayType);
  state.addTypes(element);
  if (parser.resolveOperand(array, arrayType, state.operands) ||
      parser.resolveOperands(subscripts.operands, subscripts.type, state.operands))
    return failure();
  if (isPredicated && (parser.resolveOperand(predicate, builder.getI1Type(), state.operands) ||
                       parser.resolveOperand(otherwise, element, state.operands)))
    return failure();
  auto &properties = state.getOrAddProperties<LoadOp::Properties>();
  properties.static_indices = builder.getDenseI64ArrayAttr(subscripts.literals);
  if (isVolatile)
    properties.is_volatile = builder.getUnitAttr();
  llvm::copy(ArrayRef<int32_t>{1, int32_t(subscripts.operands.size()), isPredicated, isPredicated},
             properties.operandSegmentSizes.begin());
  return success();
}

void LoadOp::print(OpAsmPrinter &printer) {
  printer << (getIsVolatile() ? " volatile " : " ") << getArray();
  printSubscripts(printer, getIndices(), getStaticIndices());
  if (getPredicate())
    printer << " if " << getPredicate() << " else " << getOtherwise();
  printer.printOptionalAttrDict((*this)->getAttrs(), {getStaticIndicesAttrName(), getIsVolatileAttrName(),
                                                     getOperandSegmentSizesAttrName()});
  printer << " : " << getArray().getType();
}

LogicalResult LoadOp::verify() {
  if (failed(verifyAccess(*this, getArray().getType(), getIndices(), getStaticIndices(), getType())))
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
        /*is_volatile=*/nullptr);
}

ParseResult StoreOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &builder = parser.getBuilder();
  OpAsmParser::UnresolvedOperand value, array, predicate;
  Subscripts subscripts;
  Type arrayType;
  bool isVolatile = succeeded(parser.parseOptionalKeyword("volatile"));
  if (parser.parseOperand(value) || parser.parseComma() || parser.parseOperand(array) ||
      parseSubscripts(parser, subscripts))
    return failure();
  bool isPredicated = succeeded(parser.parseOptionalKeyword("if"));
  if (isPredicated && parser.parseOperand(predicate))
    return failure();
  if (parser.parseOptionalAttrDict(state.attributes) || parseArrayType(parser, arrayType))
    return failure();
  if (parser.resolveOperand(value, getElementType(arrayType), state.operands) ||
      parser.resolveOperand(array, arrayType, state.operands) ||
      parser.resolveOperands(subscripts.operands, subscripts.type, state.operands))
    return failure();
  if (isPredicated && parser.resolveOperand(predicate, builder.getI1Type(), state.operands))
    return failure();
  auto &properties = state.getOrAddProperties<StoreOp::Properties>();
  properties.static_indices = builder.getDenseI64ArrayAttr(subscripts.literals);
  if (isVolatile)
    properties.is_volatile = builder.getUnitAttr();
  llvm::copy(ArrayRef<int32_t>{1, 1, int32_t(subscripts.operands.size()), isPredicated},
             properties.operandSegmentSizes.begin());
  return success();
}

void StoreOp::print(OpAsmPrinter &printer) {
  printer << (getIsVolatile() ? " volatile " : " ") << getValue() << ", " << getArray();
  printSubscripts(printer, getIndices(), getStaticIndices());
  if (getPredicate())
    printer << " if " << getPredicate();
  printer.printOptionalAttrDict((*this)->getAttrs(), {getStaticIndicesAttrName(), getIsVolatileAttrName(),
                                                     getOperandSegmentSizesAttrName()});
  printer << " : " << getArray().getType();
}

LogicalResult StoreOp::verify() {
  if (failed(verifyAccess(*this, getArray().getType(), getIndices(), getStaticIndices(), getValue().getType())))
    return failure();
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
