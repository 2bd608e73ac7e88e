//===- Memory.cpp - assembly and checks of loads and stores ------------------===//

#include "ir/Dialect.h"

using namespace mlir;

namespace qd {

static constexpr int64_t dynamic = ShapedType::kDynamic;

static Type getElementType(Type array) {
  if (auto buffer = dyn_cast<BufferType>(array))
    return buffer.getElementType();
  return cast<SharedType>(array).getElementType();
}

//===----------------------------------------------------------------------===//
// Assembly of %array[%i, 4 : i64]
//===----------------------------------------------------------------------===//

namespace {
struct Subscripts {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<int64_t> literals;
  Type type;
};
} // namespace

static ParseResult parseSubscripts(OpAsmParser &parser, Subscripts &subscripts) {
  subscripts.type = parser.getBuilder().getI32Type();
  auto parseOne = [&]() -> ParseResult {
    OpAsmParser::UnresolvedOperand operand;
    OptionalParseResult isOperand = parser.parseOptionalOperand(operand);
    if (isOperand.has_value()) {
      subscripts.operands.push_back(operand);
      subscripts.literals.push_back(dynamic);
      return *isOperand;
    }
    return parser.parseInteger(subscripts.literals.emplace_back());
  };
  if (parser.parseLSquare() || parser.parseCommaSeparatedList(parseOne))
    return failure();
  if (succeeded(parser.parseOptionalColon()) && parser.parseType(subscripts.type))
    return failure();
  return parser.parseRSquare();
}

static void printSubscripts(OpAsmPrinter &printer, OperandRange indices, ArrayRef<int64_t> literals) {
  printer << '[';
  auto next = indices.begin();
  llvm::interleaveComma(literals, printer, [&](int64_t literal) {
    if (literal == dynamic)
      printer << *next++;
    else
      printer << literal;
  });
  if (!indices.empty() && !indices.front().getType().isInteger(32))
    printer << " : " << indices.front().getType();
  printer << ']';
}

static LogicalResult verifyAccess(Operation *op, Type array, OperandRange indices, ArrayRef<int64_t> literals,
                                  Type element) {
  int64_t operands = llvm::count(literals, dynamic);
  if (operands != int64_t(indices.size()))
    return op->emitOpError() << "expected " << operands << " subscript operands, found " << indices.size();
  for (Value index : indices)
    if (index.getType() != indices.front().getType())
      return op->emitOpError() << "subscripts have different types " << indices.front().getType() << " and "
                               << index.getType();
  ArrayRef<int64_t> shape;
  if (auto shared = dyn_cast<SharedType>(array))
    shape = shared.getShape();
  size_t rank = shape.empty() ? 1 : shape.size();
  if (literals.size() != rank)
    return op->emitOpError() << "expected " << rank << " subscripts for " << array << ", found " << literals.size();
  for (auto [i, literal] : llvm::enumerate(literals)) {
    if (literal == dynamic)
      continue;
    if (literal < 0 || (!shape.empty() && literal >= shape[i]))
      return op->emitOpError() << "subscript " << literal << " is out of bounds of " << array;
  }
  if (element != getElementType(array))
    return op->emitOpError() << "value has type " << element << ", expected the element type of " << array;
  return success();
}

/// The access qualifiers of the kernel argument that `array` is, or 0.
static int32_t getDeclaredAccess(Value array) {
  auto argument = dyn_cast<BlockArgument>(array);
  if (!argument)
    return 0;
  auto kernel = dyn_cast<KernelOp>(argument.getOwner()->getParentOp());
  if (!kernel || kernel.getArgAccess().size() <= argument.getArgNumber())
    return 0;
  return kernel.getAccess(argument.getArgNumber());
}

//===----------------------------------------------------------------------===//
// qd.load
//===----------------------------------------------------------------------===//

void LoadOp::build(OpBuilder &builder, OperationState &state, Value array, ValueRange indices) {
  SmallVector<int64_t> literals(indices.size(), dynamic);
  build(builder, state, getElementType(array.getType()), array, indices, builder.getDenseI64ArrayAttr(literals),
        Value(), Value());
}

ParseResult LoadOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &builder = parser.getBuilder();
  OpAsmParser::UnresolvedOperand array, predicate, otherwise;
  Subscripts subscripts;
  Type arrayType;
  if (parser.parseOperand(array) || parseSubscripts(parser, subscripts))
    return failure();
  bool isPredicated = succeeded(parser.parseOptionalKeyword("if"));
  if (isPredicated &&
      (parser.parseOperand(predicate) || parser.parseKeyword("else") || parser.parseOperand(otherwise)))
    return failure();
  SMLoc typeLocation;
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseColon() ||
      parser.getCurrentLocation(&typeLocation) || parser.parseType(arrayType))
    return failure();
  if (!isa<BufferType, SharedType>(arrayType))
    return parser.emitError(typeLocation) << "expected !qd.buffer or !qd.shared, found " << arrayType;
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
  llvm::copy(ArrayRef<int32_t>{1, int32_t(subscripts.operands.size()), isPredicated, isPredicated},
             properties.operandSegmentSizes.begin());
  return success();
}

void LoadOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getArray();
  printSubscripts(printer, getIndices(), getStaticIndices());
  if (getPredicate())
    printer << " if " << getPredicate() << " else " << getOtherwise();
  printer.printOptionalAttrDict((*this)->getAttrs(), {getStaticIndicesAttrName(), getOperandSegmentSizesAttrName()});
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
  SmallVector<int64_t> literals(indices.size(), dynamic);
  build(builder, state, value, array, indices, builder.getDenseI64ArrayAttr(literals), Value());
}

ParseResult StoreOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &builder = parser.getBuilder();
  OpAsmParser::UnresolvedOperand value, array, predicate;
  Subscripts subscripts;
  Type arrayType;
  if (parser.parseOperand(value) || parser.parseComma() || parser.parseOperand(array) ||
      parseSubscripts(parser, subscripts))
    return failure();
  bool isPredicated = succeeded(parser.parseOptionalKeyword("if"));
  if (isPredicated && parser.parseOperand(predicate))
    return failure();
  SMLoc typeLocation;
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseColon() ||
      parser.getCurrentLocation(&typeLocation) || parser.parseType(arrayType))
    return failure();
  if (!isa<BufferType, SharedType>(arrayType))
    return parser.emitError(typeLocation) << "expected !qd.buffer or !qd.shared, found " << arrayType;
  if (parser.resolveOperand(value, getElementType(arrayType), state.operands) ||
      parser.resolveOperand(array, arrayType, state.operands) ||
      parser.resolveOperands(subscripts.operands, subscripts.type, state.operands))
    return failure();
  if (isPredicated && parser.resolveOperand(predicate, builder.getI1Type(), state.operands))
    return failure();
  auto &properties = state.getOrAddProperties<StoreOp::Properties>();
  properties.static_indices = builder.getDenseI64ArrayAttr(subscripts.literals);
  llvm::copy(ArrayRef<int32_t>{1, 1, int32_t(subscripts.operands.size()), isPredicated},
             properties.operandSegmentSizes.begin());
  return success();
}

void StoreOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getValue() << ", " << getArray();
  printSubscripts(printer, getIndices(), getStaticIndices());
  if (getPredicate())
    printer << " if " << getPredicate();
  printer.printOptionalAttrDict((*this)->getAttrs(), {getStaticIndicesAttrName(), getOperandSegmentSizesAttrName()});
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
