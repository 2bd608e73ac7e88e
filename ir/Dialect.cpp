//===- Dialect.cpp - registration, types and attributes of qd --------------===//

#include "ir/Dialect.h"

#include "ir/Arrays.h"
#include "ir/RareAttribute.h"
#include "ir/SharedStorage.h"
#include "ir/Version.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "ir/Dialect.cpp.inc"
#include "ir/Enums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/Attrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/Types.cpp.inc"

using namespace mlir;

namespace qd {

void QDDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/Attrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/Types.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/Ops.cpp.inc"
      >();
}

bool isScalarType(Type type) {
  if (type.isSignlessInteger())
    return llvm::is_contained({1u, 8u, 16u, 32u, 64u}, type.getIntOrFloatBitWidth());
  return isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type);
}

bool isVectorType(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getRank() == 1 && !vector.isScalable() && isScalarType(vector.getElementType()) &&
         llvm::is_contained({2, 3, 4, 8, 16}, vector.getNumElements());
}

bool isElementType(Type type) {
  constexpr unsigned maxBytes = 16;
  return isScalarType(type) || (isVectorType(type) && getStorageBytes(type) <= maxBytes);
}

Type getScalarOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getElementType() : type;
}

unsigned getNumScalars(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() : 1;
}

unsigned getStorageBytes(Type element) {
  return getNumScalars(element) * ((getScalarOf(element).getIntOrFloatBitWidth() + 7) / 8);
}

bool isArrayType(Type type) { return isa<BufferType, SharedType, PrivateType, ConstantType>(type); }

Type getElementType(Type array) {
  return TypeSwitch<Type, Type>(array).Case<BufferType, SharedType, PrivateType, ConstantType>(
      [](auto type) { return type.getElementType(); });
}

ArrayRef<int64_t> getStaticShape(Type array) {
  return TypeSwitch<Type, ArrayRef<int64_t>>(array)
      .Case<SharedType, PrivateType, ConstantType>([](auto type) { return type.getShape(); })
      .Default([](Type) { return ArrayRef<int64_t>(); });
}

bool needsUniformControl(Operation *op) {
  if (!op->hasTrait<Convergent>() || isa<ActiveMaskOp>(op))
    return false;
  Value members = TypeSwitch<Operation *, Value>(op)
                      .Case<BallotOp, MatchAnyOp, MatchAllOp, ShuffleOp>([](auto voter) { return voter.getMembers(); })
                      .Default([](Operation *) { return Value(); });
  return !members;
}

//===----------------------------------------------------------------------===//
// Attributes on ops of other dialects
//===----------------------------------------------------------------------===//

static constexpr int64_t maxUnrolled = 1024, maxUnrolledFully = 4096;

static LogicalResult verifyStorage(Operation *op, Attribute value) {
  if (!isa<SharedAllocOp>(op))
    return op->emitOpError() << "has '" << storageAttribute << "', expected it on qd.shared.alloc alone";
  constexpr int64_t limit = int64_t(1) << 30;
  auto place = dyn_cast<DenseI64ArrayAttr>(value);
  if (place && place.size() == 2 && place[0] >= 0 && place[1] >= 0 && place[1] < limit &&
      place[1] % sharedArrayAlignment == 0)
    return success();
  return op->emitOpError() << "expected '" << storageAttribute << "' to be a piece's number and an offset in it, a "
                           << "multiple of " << sharedArrayAlignment << " bytes, found " << value;
}

LogicalResult QDDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == storageAttribute)
    return verifyStorage(op, attribute.getValue());
  StringRef name = attribute.getName();
  if (name == rareAttribute && isa<arith::SelectOp>(op) && op->getResult(0).getType().isF32())
    return success();
  if (name == subscriptAttribute || (name == versionAttribute && isa<ModuleOp>(op)))
    return success();
  if (name != unrollAttribute)
    return op->emitOpError() << "has '" << name << "', which QIR does not know here; hints are '" << unrollAttribute
                             << "'";
  if (!isa<scf::ForOp>(op))
    return op->emitOpError() << "has '" << unrollAttribute << "', expected it on scf.for alone";
  Attribute value = attribute.getValue();
  if (auto text = dyn_cast<StringAttr>(value); text && text.getValue() == "full") {
    std::optional<APInt> turns = cast<scf::ForOp>(op).getStaticTripCount();
    if (!turns || turns->ule(maxUnrolledFully))
      return success();
    return op->emitOpError() << "has '" << unrollAttribute << "' \"full\" and " << llvm::toString(*turns, 10, false)
                             << " rounds, expected at most " << maxUnrolledFully;
  }
  auto count = dyn_cast<IntegerAttr>(value);
  if (count && count.getType().isSignlessInteger() && count.getInt() >= 1 && count.getInt() <= maxUnrolled)
    return success();
  return op->emitOpError() << "expected '" << unrollAttribute << "' to be \"full\" or from 1 to " << maxUnrolled
                           << ", found " << value;
}

std::optional<UnrollHint> getUnrollHint(Operation *loop) {
  Attribute value = loop->getAttr(unrollAttribute);
  if (!value)
    return std::nullopt;
  if (auto count = dyn_cast<IntegerAttr>(value))
    return UnrollHint{/*isFull=*/false, unsigned(count.getInt())};
  return UnrollHint{/*isFull=*/true};
}

void registerDialects(DialectRegistry &registry) {
  registry.insert<QDDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect, func::FuncDialect,
                  vector::VectorDialect>();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Reads `<4x?xTYPE>`.
static ParseResult parseArrayShape(AsmParser &parser, SmallVectorImpl<int64_t> &shape, Type &elementType,
                                   bool allowDynamic) {
  return failure(parser.parseLess() || parser.parseDimensionList(shape, allowDynamic) ||
                 parser.parseType(elementType) || parser.parseGreater());
}

static LogicalResult verifyElement(function_ref<InFlightDiagnostic()> emitError, Type type, StringRef array) {
  if (isElementType(type))
    return success();
  if (isVectorType(type))
    return emitError() << "expected at most 16 bytes as " << array << "'s element, found " << type << " of "
                       << getStorageBytes(type);
  return emitError()
         << "expected i1, i8, i16, i32, i64, f16, bf16, f32, f64 or a vector of 2, 3, 4, 8 or 16 of them as " << array
         << "'s element, found " << type;
}

Type BufferType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  SMLoc location = parser.getCurrentLocation();
  if (parseArrayShape(parser, shape, elementType, /*allowDynamic=*/true))
    return {};
  for (int64_t extent : shape)
    if (!ShapedType::isDynamic(extent)) {
      parser.emitError(location) << "expected '?' for a buffer's extents, which are known at run time, found "
                                 << extent;
      return {};
    }
  return parser.getChecked<BufferType>(location, parser.getContext(), elementType,
                                       std::max<unsigned>(shape.size(), 1));
}

void BufferType::print(AsmPrinter &printer) const {
  printer << "<";
  for (unsigned i = 0; getRank() > 1 && i < getRank(); ++i)
    printer << "?x";
  printer << getElementType() << ">";
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError, Type elementType, unsigned rank) {
  if (failed(verifyElement(emitError, elementType, "a buffer")))
    return failure();
  if (rank < 1 || rank > 3)
    return emitError() << "expected a buffer of 1 to 3 dimensions, found " << rank;
  return success();
}

Type SharedType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  SMLoc location = parser.getCurrentLocation();
  if (parseArrayShape(parser, shape, elementType, /*allowDynamic=*/false))
    return {};
  return parser.getChecked<SharedType>(location, parser.getContext(), shape, elementType);
}

void SharedType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList(getShape());
  printer << "x" << getElementType() << ">";
}

LogicalResult SharedType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape,
                                 Type elementType) {
  if (failed(verifyElement(emitError, elementType, "a shared array")))
    return failure();
  if (shape.empty())
    return emitError() << "expected a shape of at least one dimension, as in 64xf32";
  // A bound that every target shares keeps the products below from overflowing.
  constexpr int64_t limit = int64_t(1) << 31;
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (extent < 1)
      return emitError() << "expected extents of at least 1, found " << extent;
    if (extent > limit / elements)
      return emitError() << "shared array has more than 2147483648 elements";
    elements *= extent;
  }
  return success();
}

int64_t SharedType::getNumElements() const {
  int64_t elements = 1;
  for (int64_t extent : getShape())
    elements *= extent;
  return elements;
}

} // namespace qd
