//===- Kind.cpp - the table of reduction kinds --------------------------------===//

#include "ir/Kind.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace qd {

namespace {
enum class Identity { Zero, One, AllOnes, SMax, SMin, Infinity, MinusInfinity };

struct Row {
  Kind kind;
  const char *integerOp; ///< arith op on integers, or null
  const char *floatOp;   ///< arith op on floats, or null
  Identity identity;
};

constexpr Row rows[] = {
    {Kind::add, "arith.addi", "arith.addf", Identity::Zero},
    {Kind::mul, "arith.muli", "arith.mulf", Identity::One},
    {Kind::minsi, "arith.minsi", nullptr, Identity::SMax},
    {Kind::minui, "arith.minui", nullptr, Identity::AllOnes},
    {Kind::maxsi, "arith.maxsi", nullptr, Identity::SMin},
    {Kind::maxui, "arith.maxui", nullptr, Identity::Zero},
    {Kind::minnumf, nullptr, "arith.minnumf", Identity::Infinity},
    {Kind::maxnumf, nullptr, "arith.maxnumf", Identity::MinusInfinity},
    {Kind::minimumf, nullptr, "arith.minimumf", Identity::Infinity},
    {Kind::maximumf, nullptr, "arith.maximumf", Identity::MinusInfinity},
    {Kind::andi, "arith.andi", nullptr, Identity::AllOnes},
    {Kind::ori, "arith.ori", nullptr, Identity::Zero},
    {Kind::xori, "arith.xori", nullptr, Identity::Zero},
};

constexpr bool rowsAreInOrder() {
  for (unsigned i = 0; i < std::size(rows); ++i)
    if (unsigned(rows[i].kind) != i)
      return false;
  return true;
}
static_assert(rowsAreInOrder(), "a kind's number is its row");
static_assert(std::size(rows) == getMaxEnumValForKind() + 1, "every kind has a row");
} // namespace

static const Row &getRow(Kind kind) { return rows[unsigned(kind)]; }

StringRef getKindOpName(Kind kind, Type type) {
  const char *name = isa<FloatType>(type) ? getRow(kind).floatOp : getRow(kind).integerOp;
  return name ? name : "";
}

bool isLegalKind(Kind kind, Type type) { return !getKindOpName(kind, type).empty(); }

Value createKindOp(OpBuilder &builder, Location loc, Kind kind, Value lhs, Value rhs) {
  OperationState state(loc, getKindOpName(kind, lhs.getType()));
  state.addOperands({lhs, rhs});
  state.addTypes(lhs.getType());
  return builder.create(state)->getResult(0);
}

TypedAttr getIdentity(Kind kind, Type type) {
  if (auto floatType = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
    switch (getRow(kind).identity) {
    case Identity::One:
      return FloatAttr::get(type, APFloat(semantics, 1));
    case Identity::Infinity:
      return FloatAttr::get(type, APFloat::getInf(semantics));
    case Identity::MinusInfinity:
      return FloatAttr::get(type, APFloat::getInf(semantics, /*Negative=*/true));
    default:
      return FloatAttr::get(type, APFloat::getZero(semantics));
    }
  }
  unsigned width = type.getIntOrFloatBitWidth();
  switch (getRow(kind).identity) {
  case Identity::One:
    return IntegerAttr::get(type, APInt(width, 1));
  case Identity::AllOnes:
    return IntegerAttr::get(type, APInt::getAllOnes(width));
  case Identity::SMax:
    return IntegerAttr::get(type, APInt::getSignedMaxValue(width));
  case Identity::SMin:
    return IntegerAttr::get(type, APInt::getSignedMinValue(width));
  default:
    return IntegerAttr::get(type, APInt::getZero(width));
  }
}

} // namespace qd
