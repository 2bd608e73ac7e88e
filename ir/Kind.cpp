//===- Kind.cpp - the table of reduction kinds --------------------------------===//

#include "ir/Kind.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace qd {

namespace {
enum class Identity { Zero, One, AllOnes, SMax, SMin, Infinity, MinusInfinity };

/// A reduction's kinds are the first of the atomic ones.
struct Row {
  AtomicKind kind;
  const char *integerOp; ///< arith op on integers, or null
  const char *floatOp;   ///< arith op on floats, or null
  Identity identity;
};

constexpr Row rows[] = {
    {AtomicKind::add, "arith.addi", "arith.addf", Identity::Zero},
    {AtomicKind::mul, "arith.muli", "arith.mulf", Identity::One},
    {AtomicKind::minsi, "arith.minsi", nullptr, Identity::SMax},
    {AtomicKind::minui, "arith.minui", nullptr, Identity::AllOnes},
    {AtomicKind::maxsi, "arith.maxsi", nullptr, Identity::SMin},
    {AtomicKind::maxui, "arith.maxui", nullptr, Identity::Zero},
    {AtomicKind::minnumf, nullptr, "arith.minnumf", Identity::Infinity},
    {AtomicKind::maxnumf, nullptr, "arith.maxnumf", Identity::MinusInfinity},
    {AtomicKind::minimumf, nullptr, "arith.minimumf", Identity::Infinity},
    {AtomicKind::maximumf, nullptr, "arith.maximumf", Identity::MinusInfinity},
    {AtomicKind::andi, "arith.andi", nullptr, Identity::AllOnes},
    {AtomicKind::ori, "arith.ori", nullptr, Identity::Zero},
    {AtomicKind::xori, "arith.xori", nullptr, Identity::Zero},
    {AtomicKind::sub, "arith.subi", "arith.subf", Identity::Zero},
    {AtomicKind::exchange, nullptr, nullptr, Identity::Zero},
};

constexpr bool rowsAreInOrder() {
  for (unsigned i = 0; i < std::size(rows); ++i)
    if (unsigned(rows[i].kind) != i)
      return false;
  return true;
}
static_assert(rowsAreInOrder(), "a kind's number is its row");
static_assert(std::size(rows) == getMaxEnumValForAtomicKind() + 1, "every kind has a row");
static_assert(unsigned(Kind::xori) == unsigned(AtomicKind::xori) && Kind(getMaxEnumValForKind()) == Kind::xori,
              "kinds have the numbers of the atomic kinds of their names");
} // namespace

static const Row &getRow(Kind kind) { return rows[unsigned(kind)]; }

StringRef getAtomicKindOpName(AtomicKind kind, Type type) {
  const Row &row = rows[unsigned(kind)];
  const char *name = isa<FloatType>(type) ? row.floatOp : row.integerOp;
  return name ? name : "";
}

StringRef getKindOpName(Kind kind, Type type) { return getAtomicKindOpName(AtomicKind(kind), type); }

bool isLegalKind(Kind kind, Type type) { return !getKindOpName(kind, type).empty(); }

bool isLegalAtomicKind(AtomicKind kind, Type type) {
  if (kind == AtomicKind::exchange)
    return true;
  if (type.isInteger(1))
    return kind == AtomicKind::andi || kind == AtomicKind::ori || kind == AtomicKind::xori;
  return !getAtomicKindOpName(kind, type).empty();
}

Value createAtomicKindOp(OpBuilder &builder, Location loc, AtomicKind kind, Value old, Value value) {
  if (kind == AtomicKind::exchange)
    return value;
  OperationState state(loc, getAtomicKindOpName(kind, old.getType()));
  state.addOperands({old, value});
  state.addTypes(old.getType());
  return builder.create(state)->getResult(0);
}

Value createKindOp(OpBuilder &builder, Location loc, Kind kind, Value lhs, Value rhs) {
  return createAtomicKindOp(builder, loc, AtomicKind(kind), lhs, rhs);
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
