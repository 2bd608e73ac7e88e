//===- Bits.cpp - assembly and checks of packed predicates ----------------------===//

#include "ir/Dialect.h"

using namespace mlir;

namespace qd {

static LogicalResult verifyCount(Operation *op, size_t count, Type word, StringRef what) {
  unsigned width = word.getIntOrFloatBitWidth();
  if (count >= 1 && count <= width)
    return success();
  return op->emitOpError() << "expected 1 to " << width << ' ' << what << " for " << word << ", found " << count;
}

LogicalResult PackBitsOp::verify() { return verifyCount(*this, getBits().size(), getType(), "predicates"); }

ParseResult UnpackBitsOp::parse(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::UnresolvedOperand word;
  Type type;
  if (parser.parseOperand(word) || parser.parseOptionalAttrDict(state.attributes) || parser.parseColonType(type) ||
      parser.resolveOperand(word, type, state.operands))
    return failure();
  // Results are what the assignment's left side names.
  state.addTypes(SmallVector<Type>(parser.getNumResults(), parser.getBuilder().getI1Type()));
  return success();
}

void UnpackBitsOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getWord();
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getWord().getType();
}

LogicalResult UnpackBitsOp::verify() { return verifyCount(*this, getBits().size(), getWord().getType(), "results"); }

} // namespace qd
