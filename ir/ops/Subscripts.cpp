//===- Subscripts.cpp - assembly and checks of an array's element ------------===//

#include "ir/ops/Subscripts.h"

using namespace mlir;

namespace qd {

static constexpr int64_t dynamic = ShapedType::kDynamic;

ParseResult parseSubscriptList(OpAsmParser &parser, Subscripts &subscripts) {
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
  return parser.parseCommaSeparatedList(parseOne);
}

ParseResult parseSubscripts(OpAsmParser &parser, Subscripts &subscripts) {
  subscripts.type = parser.getBuilder().getI32Type();
  if (parser.parseLSquare() || parseSubscriptList(parser, subscripts))
    return failure();
  if (succeeded(parser.parseOptionalColon()) && parser.parseType(subscripts.type))
    return failure();
  return parser.parseRSquare();
}

void printSubscriptList(OpAsmPrinter &printer, OperandRange indices, ArrayRef<int64_t> literals) {
  auto next = indices.begin();
  llvm::interleaveComma(literals, printer, [&](int64_t literal) {
    if (literal == dynamic)
      printer << *next++;
    else
      printer << literal;
  });
}

void printSubscripts(OpAsmPrinter &printer, OperandRange indices, ArrayRef<int64_t> literals, Type type) {
  printer << '[';
  printSubscriptList(printer, indices, literals);
  if (!indices.empty())
    type = indices.front().getType();
  if (type && !type.isInteger(32))
    printer << " : " << type;
  printer << ']';
}

ParseResult parseAlign(OpAsmParser &parser, IntegerAttr &align) {
  if (failed(parser.parseOptionalKeyword("align")))
    return success();
  int32_t bytes = 0;
  if (parser.parseLParen() || parser.parseInteger(bytes) || parser.parseRParen())
    return failure();
  align = parser.getBuilder().getI32IntegerAttr(bytes);
  return success();
}

ParseResult parseArrayType(OpAsmParser &parser, Type &type) {
  SMLoc location;
  if (parser.parseColon() || parser.getCurrentLocation(&location) || parser.parseType(type))
    return failure();
  return checkArrayType(parser, location, type);
}

ParseResult checkArrayType(OpAsmParser &parser, SMLoc location, Type type) {
  if (!isArrayType(type))
    return parser.emitError(location) << "expected !qd.buffer, !qd.shared, !qd.private or !qd.constant, found " << type;
  return success();
}

LogicalResult verifyAccess(Operation *op, Type array, OperandRange indices, ArrayRef<int64_t> literals,
                           Type element, bool takesVectors) {
  int64_t operands = llvm::count(literals, dynamic);
  if (operands != int64_t(indices.size()))
    return op->emitOpError() << "expected " << operands << " subscript operands, found " << indices.size();
  for (Value index : indices)
    if (index.getType() != indices.front().getType())
      return op->emitOpError() << "subscripts have different types " << indices.front().getType() << " and "
                               << index.getType();
  ArrayRef<int64_t> shape = getStaticShape(array);
  auto buffer = dyn_cast<BufferType>(array);
  size_t rank = buffer ? buffer.getRank() : shape.size();
  if (literals.size() != rank)
    return op->emitOpError() << "expected " << rank << " subscripts for " << array << ", found " << literals.size();
  for (auto [i, literal] : llvm::enumerate(literals)) {
    if (literal == dynamic)
      continue;
    if (literal < 0 || (!shape.empty() && literal >= shape[i]))
      return op->emitOpError() << "subscript " << literal << " is out of bounds of " << array;
  }
  Type expected = getElementType(array);
  if (element == expected)
    return success();
  if (!takesVectors || getScalarOf(element) != expected)
    return op->emitOpError() << "value has type " << element << ", expected the element type of " << array;
  if (!isElementType(element))
    return op->emitOpError() << "value of type " << element << " takes " << getStorageBytes(element)
                             << " bytes, expected at most 16";
  int64_t last = literals.back();
  if (!shape.empty() && !ShapedType::isDynamic(last) && last + getNumScalars(element) > shape.back())
    return op->emitOpError() << "elements " << last << " to " << last + getNumScalars(element) - 1
                             << " are not all within " << array;
  return success();
}

LogicalResult verifyAlign(Operation *op, std::optional<uint32_t> align, unsigned most) {
  if (!align || (llvm::isPowerOf2_32(*align) && *align <= most))
    return success();
  return op->emitOpError() << "expected an alignment that is a power of two from 1 to " << most << ", found "
                           << int32_t(*align);
}

int32_t getDeclaredAccess(Value array) {
  while (Operation *op = array.getDefiningOp()) {
    if (!isa<ViewOp, ReinterpretOp>(op))
      return 0;
    array = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(array);
  auto kernel = dyn_cast<KernelOp>(argument.getOwner()->getParentOp());
  if (!kernel || kernel.getArgAccess().size() <= argument.getArgNumber())
    return 0;
  return kernel.getAccess(argument.getArgNumber());
}

} // namespace qd
