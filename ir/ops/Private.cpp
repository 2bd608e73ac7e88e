//===- Private.cpp - private arrays, tables and their types -------------------===//

#include "ir/Dialect.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include <cstring>

using namespace mlir;

namespace qd {

static constexpr int64_t maxTableBytes = 65536;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

template <typename ArrayType> static Type parseStaticArray(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(elementType) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<ArrayType>(location, parser.getContext(), ArrayRef<int64_t>(shape), elementType);
}

template <typename ArrayType> static void printStaticArray(AsmPrinter &printer, ArrayType type) {
  printer << "<";
  printer.printDimensionList(type.getShape());
  printer << "x" << type.getElementType() << ">";
}

static LogicalResult verifyStaticArray(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape,
                                       Type elementType, StringRef name, bool takesVectors = false) {
  if (!isScalarType(elementType) && !(takesVectors && isElementType(elementType)))
    return emitError() << "expected i1, i8, i16, i32, i64, f16, bf16, f32 or f64 as the element of " << name
                       << ", found " << elementType;
  if (shape.empty())
    return emitError() << "expected a shape of at least one dimension, as in 64xf32";
  int64_t bytes = getStorageBytes(elementType);
  for (int64_t extent : shape) {
    if (extent < 1)
      return emitError() << "expected extents of at least 1, found " << extent;
    if (extent > maxTableBytes / bytes)
      return emitError() << name << " takes more than " << maxTableBytes << " bytes";
    bytes *= extent;
  }
  return success();
}

static int64_t countElements(ArrayRef<int64_t> shape) {
  int64_t elements = 1;
  for (int64_t extent : shape)
    elements *= extent;
  return elements;
}

Type PrivateType::parse(AsmParser &parser) { return parseStaticArray<PrivateType>(parser); }
void PrivateType::print(AsmPrinter &printer) const { printStaticArray(printer, *this); }
int64_t PrivateType::getNumElements() const { return countElements(getShape()); }
LogicalResult PrivateType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, Type type) {
  return verifyStaticArray(emitError, shape, type, "a private array", /*takesVectors=*/true);
}

Type ConstantType::parse(AsmParser &parser) { return parseStaticArray<ConstantType>(parser); }
void ConstantType::print(AsmPrinter &printer) const { printStaticArray(printer, *this); }
int64_t ConstantType::getNumElements() const { return countElements(getShape()); }
LogicalResult ConstantType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, Type type) {
  return verifyStaticArray(emitError, shape, type, "a table");
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

LogicalResult ConstantOp::verify() {
  if (!isa_and_nonnull<ModuleOp>((*this)->getParentOp()))
    return emitOpError() << "expected to stand beside the kernels";
  auto elements = dyn_cast<DenseElementsAttr>(getValue());
  if (!elements)
    return emitOpError() << "expected 'dense<..>', found " << getValue();
  ShapedType type = elements.getType();
  return verifyStaticArray([&] { return emitOpError(); }, type.getShape(), type.getElementType(), "a table");
}

ConstantType ConstantOp::getArrayType() {
  auto type = cast<ShapedType>(cast<DenseElementsAttr>(getValue()).getType());
  return ConstantType::get(getContext(), type.getShape(), type.getElementType());
}

std::vector<uint8_t> ConstantOp::getBytes() {
  auto elements = cast<DenseElementsAttr>(getValue());
  Type element = elements.getElementType();
  unsigned bytes = getStorageBytes(element);
  std::vector<uint8_t> data;
  data.reserve(elements.getNumElements() * bytes);
  auto append = [&](const APInt &bits) {
    uint64_t word = bits.getZExtValue();
    for (unsigned i = 0; i < bytes; ++i)
      data.push_back(word >> 8 * i);
  };
  if (isa<FloatType>(element))
    for (const APFloat &value : elements.getValues<APFloat>())
      append(value.bitcastToAPInt());
  else
    for (const APInt &value : elements.getValues<APInt>())
      append(value);
  return data;
}

LogicalResult ConstantGetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto table = symbols.lookupNearestSymbolFrom<ConstantOp>(*this, getTableAttr());
  if (!table)
    return emitOpError() << "expected a 'qd.constant' named '" << getTable() << "', found none";
  if (table.getArrayType() != getType())
    return emitOpError() << "expected " << table.getArrayType() << ", the type of '" << getTable() << "', found "
                         << getType();
  return success();
}

ConstantOp ConstantGetOp::getConstant() {
  return SymbolTable::lookupNearestSymbolFrom<ConstantOp>(*this, getTableAttr());
}

} // namespace qd
