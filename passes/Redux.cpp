//===- Redux.cpp - reductions and scans that a target has itself ----------------------===//
//
// Purpose: reductions of a whole subgroup where the target reduces 32-bit integers in one instruction:
//
//   %r = qd.subgroup.reduce maxsi %v : i64
//     ->
//   %h = qd.subgroup.reduce_all maxsi HIGH(%v) : i32
//   %l = qd.subgroup.reduce_all maxui (HIGH(%v) == %h ? LOW(%v) : 0) : i32
//
// Narrow integers are extended, wide ones taken apart; floats become integers of the same order. Reductions of
// predicates are votes on every target.
//
//===----------------------------------------------------------------------===//

#include "passes/Redux.h"

#include "ir/Kind.h"
#include "passes/LaneTree.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace qd {

using Predicate = arith::CmpIPredicate;

bool hasGroupKind(const BlockShape &shape, const Combiner &combiner, ValueRange values, int32_t lanes) {
  return shape.hasGroupArithmetic && lanes == shape.subgroupSize && combiner.getKind() &&
         values.front().getType().isInteger(32);
}

/// Partial groups would move values of lanes that do not exist.
bool hasRowKind(const BlockShape &shape, const Combiner &combiner, ValueRange values, int32_t lanes) {
  return shape.rowLanes && lanes > 1 && combiner.getKind() && !values.front().getType().isInteger(1) &&
         shape.threads % lanes == 0;
}

namespace {
/// Builds reductions over a whole subgroup from those of i32.
class Redux {
public:
  Redux(const LaneBuilder &builder) : at(builder), i32(builder.i32), i64(builder.b.getI64Type()) {}

  Value reduce(Kind kind, Value value);

private:
  Value redux(Kind kind, Value word) {
    return ReduceAllOp::create(at.b, at.loc, kind, word)->getResult(0);
  }
  Value reduceNarrow(Kind kind, Value value);
  Value reduceWide(Kind kind, Value value);
  Value sumWide(Value value);
  Value reduceFloat(Kind kind, Value value);

  Value bitcast(Value value, Type type) { return at.b.createOrFold<arith::BitcastOp>(at.loc, type, value); }
  Value low(Value value) { return arith::TruncIOp::create(at.b, at.loc, i32, value); }
  Value high(Value value) { return low(at.create<arith::ShRUIOp>(value, int64_t(32))); }
  Value join(Value high, Value low) {
    Value upper = at.create<arith::ShLIOp>(arith::ExtUIOp::create(at.b, at.loc, i64, high), int64_t(32));
    return at.create<arith::OrIOp>(upper, arith::ExtUIOp::create(at.b, at.loc, i64, low));
  }

  const LaneBuilder &at;
  Type i32, i64;
};
} // namespace

static bool isMax(Kind kind) {
  return llvm::is_contained({Kind::maxsi, Kind::maxui, Kind::maxnumf, Kind::maximumf}, kind);
}

Value Redux::reduceNarrow(Kind kind, Value value) {
  bool isSigned = kind == Kind::minsi || kind == Kind::maxsi;
  Value word = isSigned ? Value(arith::ExtSIOp::create(at.b, at.loc, i32, value))
                        : Value(arith::ExtUIOp::create(at.b, at.loc, i32, value));
  return arith::TruncIOp::create(at.b, at.loc, value.getType(), redux(kind, word));
}

/// The low word goes in two pieces, whose sums keep their carries: as many lanes as there are cannot overflow them.
Value Redux::sumWide(Value value) {
  Value lowWord = low(value);
  Value pieces[] = {redux(Kind::add, at.create<arith::AndIOp>(lowWord, int64_t(0xffff))),
                    redux(Kind::add, at.create<arith::ShRUIOp>(lowWord, int64_t(16)))};
  Value sum = join(redux(Kind::add, high(value)), pieces[0]);
  Value middle = at.create<arith::ShLIOp>(arith::ExtUIOp::create(at.b, at.loc, i64, pieces[1]), int64_t(16));
  return at.create<arith::AddIOp>(sum, middle);
}

Value Redux::reduceWide(Kind kind, Value value) {
  if (kind == Kind::add)
    return sumWide(value);
  Value highWord = high(value), lowWord = low(value), best = redux(kind, highWord);
  if (kind == Kind::andi || kind == Kind::ori || kind == Kind::xori)
    return join(best, redux(kind, lowWord));
  // Among equal high words the low ones decide, unsigned; other lanes give what loses to everything.
  Kind lowKind = isMax(kind) ? Kind::maxui : Kind::minui;
  Value loser = at.constant(isMax(kind) ? 0 : -1);
  Value isBest = at.compare(Predicate::eq, highWord, best);
  return join(best, redux(lowKind, arith::SelectOp::create(at.b, at.loc, isBest, lowWord, loser)));
}

/// Bits as a signed integer: those of negative numbers, but for the sign, are flipped, so that integers stand in the
/// floats' order, -0 below +0. Doing it twice does nothing. NaNs take the place at the end that gives them the last
/// or the first word, which no number has.
Value Redux::reduceFloat(Kind kind, Value value) {
  auto type = cast<FloatType>(value.getType());
  Type word = at.b.getIntegerType(type.getWidth());
  APInt largest = APInt::getSignedMaxValue(type.getWidth());
  auto constant = [&](const APInt &bits) -> Value {
    return arith::ConstantOp::create(at.b, at.loc, at.b.getIntegerAttr(word, bits));
  };
  auto flip = [&](Value bits) {
    Value sign = at.create<arith::ShRSIOp>(bits, int64_t(type.getWidth() - 1));
    return at.create<arith::XOrIOp>(bits, at.create<arith::AndIOp>(sign, constant(largest)));
  };
  bool nanWins = kind == Kind::minimumf || kind == Kind::maximumf;
  Value nanKey = constant(nanWins == isMax(kind) ? largest : APInt::getSignedMinValue(type.getWidth()));

  Value isNaN = arith::CmpFOp::create(at.b, at.loc, arith::CmpFPredicate::UNO, value, value);
  Value key = arith::SelectOp::create(at.b, at.loc, isNaN, nanKey, flip(bitcast(value, word)));
  Value best = reduce(isMax(kind) ? Kind::maxsi : Kind::minsi, key);
  Value nan =
      arith::ConstantOp::create(at.b, at.loc, at.b.getFloatAttr(type, APFloat::getNaN(type.getFloatSemantics())));
  Value onlyNaN = at.compare(Predicate::eq, best, nanKey);
  return arith::SelectOp::create(at.b, at.loc, onlyNaN, nan, bitcast(flip(best), type));
}

Value Redux::reduce(Kind kind, Value value) {
  Type type = value.getType();
  unsigned width = type.getIntOrFloatBitWidth();
  if (type.isInteger())
    return width == 32 ? redux(kind, value) : width == 64 ? reduceWide(kind, value) : reduceNarrow(kind, value);
  if (width > 16)
    return reduceFloat(kind, value);
  Value wide = arith::ExtFOp::create(at.b, at.loc, at.b.getF32Type(), value);
  return arith::TruncFOp::create(at.b, at.loc, type, reduceFloat(kind, wide));
}

/// Predicates vote: true is 1 and unsigned, -1 and signed.
static Value reducePredicates(const LaneBuilder &at, Kind kind, Value value, int32_t lanes) {
  switch (kind) {
  case Kind::andi:
  case Kind::mul:
  case Kind::minui:
  case Kind::maxsi:
    return buildVote(at, /*isAll=*/true, value, lanes);
  case Kind::ori:
  case Kind::maxui:
  case Kind::minsi:
    return buildVote(at, /*isAll=*/false, value, lanes);
  default: {
    Value count = math::CtPopOp::create(at.b, at.loc, buildGroupBallot(at, value, lanes).bits);
    return arith::TruncIOp::create(at.b, at.loc, value.getType(), count);
  }
  }
}

bool hasNativeReduce(const BlockShape &shape, const Combiner &combiner, ValueRange values, int32_t lanes) {
  if (!combiner.getKind() || shape.narrowToBlock(lanes) == 1)
    return false;
  Type type = values.front().getType();
  if (type.isInteger(1) || hasGroupKind(shape, combiner, values, lanes))
    return true;
  Kind kind = *combiner.getKind();
  return shape.hasRedux && lanes == shape.subgroupSize && kind != Kind::mul && (kind != Kind::add || type.isInteger());
}

Value buildNativeReduce(const LaneBuilder &builder, const Combiner &combiner, ValueRange values, int32_t lanes) {
  if (!hasNativeReduce(builder.shape, combiner, values, lanes))
    return {};
  Kind kind = *combiner.getKind();
  Value value = values.front();
  if (value.getType().isInteger(1))
    return reducePredicates(builder, kind, value, lanes);
  if (hasGroupKind(builder.shape, combiner, values, lanes))
    return ReduceAllOp::create(builder.b, builder.loc, kind, value)->getResult(0);
  return Redux(builder).reduce(kind, value);
}

} // namespace qd
