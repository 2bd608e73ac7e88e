//===- Subscripts.cpp - assembly and checks of an array's element ------------===//

#include "ir/ops/Subscripts.h"

using namespace mlir;

namespace qd {

static constexpr int64_t dynamic = ShapedType::kDynamic;

Type getElementType(Type array) {
  if (auto buffer = dyn_cast<BufferType>(array))
    return buffer.getElementType();
  return cast<SharedType>(array).getElementType();
}

ParseResult parseSubscripts(OpAsmParser &parser, Subscripts &subscripts) {
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

void printSubscripts(OpAsmPrinter &printer, OperandRange indices, ArrayRef<int64_t> literals) {
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

ParseResult parseArrayType(OpAsmParser &parser, Type &type) {
  SMLoc location;
  if (parser.parseColon() || parser.getCurrentLocation(&location) || parser.parseType(type))
    return failure();
  if (!isa<BufferType, SharedType>(type))
    return parser.emitError(location) << "expected !qd.buffer or !qd.shared, found " << type;
  return success();
}

LogicalResult verifyAccess(Operation *op, Type array, OperandRange indices, ArrayRef<int64_t> literals,
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

int32_t getDeclaredAccess(Value array) {
  auto argument = dyn_cast<BlockArgument>(array);
  if (!argument)
    return 0;
  auto kernel = dyn_cast<KernelOp>(argument.getOwner()->getParentOp());
  if (!kernel || kernel.getArgAccess().size() <= argument.getArgNumber())
    return 0;
  return kernel.getAccess(argument.getArgNumber());
}

} // namespace qd
