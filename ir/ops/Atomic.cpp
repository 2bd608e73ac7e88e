//===- Atomic.cpp - assembly and checks of atomic accesses --------------------===//

#include "ir/Kind.h"
#include "ir/ops/Subscripts.h"

using namespace mlir;

namespace qd {

//===----------------------------------------------------------------------===//
// Assembly: values, %array[..], if %p, ORDER, scope(SCOPE)
//===----------------------------------------------------------------------===//

/// Reports `keyword`, with all that could stand there.
template <typename Enum>
static ParseResult refuseKeyword(OpAsmParser &parser, SMLoc location, StringRef keyword, unsigned last) {
  InFlightDiagnostic error = parser.emitError(location) << "unknown keyword '" << keyword << "', expected ";
  for (unsigned i = 0; i <= last; ++i)
    error << (i == 0 ? "" : i == last ? " or " : ", ") << stringifyEnum(Enum(i));
  return error;
}

template <typename Properties> static ParseResult parseOrderAndScope(OpAsmParser &parser, Properties &properties) {
  MLIRContext *context = parser.getContext();
  StringRef keyword;
  SMLoc location = parser.getCurrentLocation();
  properties.order = OrderAttr::get(context, Order::relaxed);
  while (succeeded(parser.parseOptionalKeyword(&keyword))) {
    if (keyword != "scope") {
      std::optional<Order> order = symbolizeOrder(keyword);
      if (!order)
        return refuseKeyword<Order>(parser, location, keyword, getMaxEnumValForOrder());
      properties.order = OrderAttr::get(context, *order);
      location = parser.getCurrentLocation();
      continue;
    }
    if (parser.parseLParen() || parser.getCurrentLocation(&location) || parser.parseKeyword(&keyword))
      return failure();
    std::optional<Scope> scope = symbolizeScope(keyword);
    if (!scope)
      return refuseKeyword<Scope>(parser, location, keyword, getMaxEnumValForScope());
    properties.scope = ScopeAttr::get(context, *scope);
    return parser.parseRParen();
  }
  return success();
}

namespace {
/// The operands as they are parsed.
struct Access {
  SmallVector<OpAsmParser::UnresolvedOperand, 2> values;
  OpAsmParser::UnresolvedOperand array, predicate, otherwise;
  Subscripts subscripts;
  bool isPredicated = false, hasOtherwise = false;
  Type arrayType;
};
} // namespace

/// Parses all but the kind and resolves the operands; `numValues` stand before the array.
template <typename Op>
static ParseResult parseAccess(OpAsmParser &parser, OperationState &state, unsigned numValues, bool takesElse) {
  Access access;
  auto &properties = state.getOrAddProperties<typename Op::Properties>();
  for (unsigned i = 0; i < numValues; ++i)
    if (parser.parseOperand(access.values.emplace_back()) || parser.parseComma())
      return failure();
  if (parser.parseOperand(access.array) || parseSubscripts(parser, access.subscripts))
    return failure();
  access.isPredicated = succeeded(parser.parseOptionalKeyword("if"));
  if (access.isPredicated && parser.parseOperand(access.predicate))
    return failure();
  access.hasOtherwise = access.isPredicated && takesElse;
  if (access.hasOtherwise && (parser.parseKeyword("else") || parser.parseOperand(access.otherwise)))
    return failure();
  if (parseOrderAndScope(parser, properties) || parser.parseOptionalAttrDict(state.attributes) ||
      parseArrayType(parser, access.arrayType))
    return failure();

  Type element = getElementType(access.arrayType), i1 = parser.getBuilder().getI1Type();
  if (parser.resolveOperands(access.values, element, state.operands) ||
      parser.resolveOperand(access.array, access.arrayType, state.operands) ||
      parser.resolveOperands(access.subscripts.operands, access.subscripts.type, state.operands) ||
      (access.isPredicated && parser.resolveOperand(access.predicate, i1, state.operands)) ||
      (access.hasOtherwise && parser.resolveOperand(access.otherwise, element, state.operands)))
    return failure();
  properties.static_indices = parser.getBuilder().getDenseI64ArrayAttr(access.subscripts.literals);
  SmallVector<int32_t> segments(numValues, 1);
  segments.append({1, int32_t(access.subscripts.operands.size()), access.isPredicated});
  if (takesElse)
    segments.push_back(access.hasOtherwise);
  llvm::copy(segments, properties.operandSegmentSizes.begin());
  return success();
}

/// Prints what follows the values.
template <typename Op> static void printAccess(Op op, OpAsmPrinter &printer, Value otherwise = {}) {
  printer << op.getArray();
  printSubscripts(printer, op.getIndices(), op.getStaticIndices());
  if (op.getPredicate())
    printer << " if " << op.getPredicate();
  if (otherwise)
    printer << " else " << otherwise;
  if (op.getOrder() != Order::relaxed)
    printer << ' ' << stringifyEnum(op.getOrder());
  if (op.getScope())
    printer << " scope(" << stringifyEnum(*op.getScope()) << ')';
  printer.printOptionalAttrDict(op->getAttrs(), {"kind", "order", "scope", op.getStaticIndicesAttrName(),
                                                 op.getOperandSegmentSizesAttrName()});
  printer << " : " << op.getArray().getType();
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

enum Direction { Reads = 1, Writes = 2 };

template <typename Op> static LogicalResult verifyAtomic(Op op, Type element, unsigned direction) {
  Value array = op.getArray();
  if (failed(verifyAccess(op, array.getType(), op.getIndices(), op.getStaticIndices(), element)))
    return failure();
  if (!isa<BufferType, SharedType>(array.getType()))
    return op.emitOpError() << "expected !qd.buffer or !qd.shared, which other threads see, found " << array.getType();
  if (op.getEffectiveScope() == Scope::device && isa<SharedType>(array.getType()))
    return op.emitOpError() << "scope device exceeds the block, which alone sees " << array.getType()
                            << "; expected subgroup or block";
  int32_t access = getDeclaredAccess(array);
  if ((direction & Reads) && (access & KernelOp::WriteOnly))
    return op.emitOpError() << "reads a buffer that is declared writeonly";
  if ((direction & Writes) && (access & KernelOp::ReadOnly))
    return op.emitOpError() << "writes a buffer that is declared readonly";
  return success();
}

//===----------------------------------------------------------------------===//
// qd.atomic_rmw
//===----------------------------------------------------------------------===//

ParseResult AtomicRMWOp::parse(OpAsmParser &parser, OperationState &state) {
  StringRef keyword;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<AtomicKind> kind = symbolizeAtomicKind(keyword);
  if (!kind)
    return refuseKeyword<AtomicKind>(parser, location, keyword, getMaxEnumValForAtomicKind());
  state.getOrAddProperties<Properties>().kind = AtomicKindAttr::get(parser.getContext(), *kind);
  if (parseAccess<AtomicRMWOp>(parser, state, /*numValues=*/1, /*takesElse=*/false))
    return failure();
  state.addTypes(state.operands[0].getType());
  return success();
}

void AtomicRMWOp::print(OpAsmPrinter &printer) {
  printer << ' ' << stringifyEnum(getKind()) << ' ' << getValue() << ", ";
  printAccess(*this, printer);
}

LogicalResult AtomicRMWOp::verify() {
  Type type = getType();
  if (failed(verifyAtomic(*this, getValue().getType(), Reads | Writes)))
    return failure();
  if (type != getValue().getType())
    return emitOpError() << "result has type " << type << ", expected " << getValue().getType();
  if (!isLegalAtomicKind(getKind(), type))
    return emitOpError() << "kind " << stringifyEnum(getKind()) << " is not defined on " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// qd.atomic_cas
//===----------------------------------------------------------------------===//

ParseResult AtomicCASOp::parse(OpAsmParser &parser, OperationState &state) {
  if (parseAccess<AtomicCASOp>(parser, state, /*numValues=*/2, /*takesElse=*/false))
    return failure();
  state.addTypes({state.operands[0].getType(), parser.getBuilder().getI1Type()});
  return success();
}

void AtomicCASOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getExpected() << ", " << getDesired() << ", ";
  printAccess(*this, printer);
}

LogicalResult AtomicCASOp::verify() {
  if (failed(verifyAtomic(*this, getExpected().getType(), Reads | Writes)))
    return failure();
  for (Value value : {getDesired(), getOld()})
    if (value.getType() != getExpected().getType())
      return emitOpError() << "has values of types " << getExpected().getType() << " and " << value.getType()
                           << ", expected one type";
  return success();
}

//===----------------------------------------------------------------------===//
// qd.atomic_load and qd.atomic_store
//===----------------------------------------------------------------------===//

ParseResult AtomicLoadOp::parse(OpAsmParser &parser, OperationState &state) {
  if (parseAccess<AtomicLoadOp>(parser, state, /*numValues=*/0, /*takesElse=*/true))
    return failure();
  state.addTypes(getElementType(state.operands[0].getType()));
  return success();
}

void AtomicLoadOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printAccess(*this, printer, getOtherwise());
}

LogicalResult AtomicLoadOp::verify() {
  if (failed(verifyAtomic(*this, getType(), Reads)))
    return failure();
  if (!getPredicate() != !getOtherwise())
    return emitOpError() << "expected 'if' and 'else' together";
  if (getOtherwise() && getOtherwise().getType() != getType())
    return emitOpError() << "'else' value has type " << getOtherwise().getType() << ", expected " << getType();
  if (getOrder() == Order::release || getOrder() == Order::acq_rel)
    return emitOpError() << "order " << stringifyEnum(getOrder())
                         << " releases, expected relaxed or acquire for a load";
  return success();
}

ParseResult AtomicStoreOp::parse(OpAsmParser &parser, OperationState &state) {
  return parseAccess<AtomicStoreOp>(parser, state, /*numValues=*/1, /*takesElse=*/false);
}

void AtomicStoreOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getValue() << ", ";
  printAccess(*this, printer);
}

LogicalResult AtomicStoreOp::verify() {
  if (failed(verifyAtomic(*this, getValue().getType(), Writes)))
    return failure();
  if (getOrder() == Order::acquire || getOrder() == Order::acq_rel)
    return emitOpError() << "order " << stringifyEnum(getOrder())
                         << " acquires, expected relaxed or release for a store";
  return success();
}

} // namespace qd
