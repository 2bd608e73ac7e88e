//===- Zeros.cpp - zeros of floats that drivers do not see, on SPIR-V ------------------===//
//
// Mesa's software device keeps infinities, NaNs and zeros' signs, but not where it sees a zero while it compiles:
// there x + 0.0 is x, x * 0.0 and 0.0 / x are 0.0, x / 0.0 is anything, and a choice between 1.0 and -0.0 is one
// between 1.0 and 0.0, even of integers with these bits. So zeros are or-ed with an integer of which no compiler knows
// that it is 0: whether the grid is empty. Behind a specialization constant it is 0 after all, for devices that are
// right about zeros. The runtime tries them out, and whoever sets nothing gets right results too.
//
//===----------------------------------------------------------------------===//

#include "codegen/spirv/KernelLowering.h"
#include "codegen/spirv/Memory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace spv;

namespace qd::spirv {

Id KernelLowering::getUnknownZero(Trust trust) {
  Id unknown = cached(unknownZero, [&] {
    Id isEmpty = emitBool(Op::OpIEqual, {getGridDim(0), getU32(0)});
    return select(getU32Type(), isEmpty, getU32(1), getU32(0));
  });
  return cached(unknownZeros[uint32_t(trust)],
                [&] { return select(getU32Type(), b.getSpecBool(uint32_t(trust)), getU32(0), unknown); });
}

Id KernelLowering::hide(Id value, Type type, Trust trust) {
  Id zero = getUnknownZero(trust);
  if (type.isF64()) {
    Id halves = toHalves(value), low = emitU32(Op::OpBitwiseOr, {getHalf(halves, 0), zero});
    return fromHalves(emit(Op::OpCompositeInsert, b.getVectorType(getU32Type(), 2), {low, halves, 0}), type);
  }
  if (type.isF32() || type.isF16())
    return fromWord(*this, emitU32(Op::OpBitwiseOr, {toWord(*this, value, type), zero}), type);
  unsigned width = type.getIntOrFloatBitWidth();
  return emit(Op::OpBitwiseOr, getType(type), {value, resize(zero, 32, width)});
}

/// Where a loop's argument or result has its values from.
static SmallVector<Value, 2> getSources(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  Operation *op = argument ? argument.getOwner()->getParentOp() : value.getDefiningOp();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (argument == loop.getInductionVar())
      return {loop.getLowerBound()};
    unsigned number = argument ? argument.getArgNumber() - 1 : cast<OpResult>(value).getResultNumber();
    return {loop.getInitArgs()[number], loop.getYieldedValues()[number]};
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    unsigned number = argument ? argument.getArgNumber() : cast<OpResult>(value).getResultNumber();
    if (argument && argument.getOwner() == loop.getBeforeBody())
      return {loop.getInits()[number], loop.getYieldOp().getOperand(number)};
    return {loop.getConditionOp().getArgs()[number]};
  }
  return {};
}

/// Whether drivers may compute a value while they compile: it comes from constants, tables included, or from the
/// counter of a loop that they unroll. Of a chain without an end it is not asked.
bool KernelLowering::isFoldable(Value value, unsigned depth) {
  constexpr unsigned deepest = 64;
  if (depth == deepest)
    return false;
  auto [known, isNew] = foldable.try_emplace(value, false);
  if (!isNew)
    return known->second;
  auto check = [&](Value operand) { return isFoldable(operand, depth + 1); };
  Operation *op = value.getDefiningOp();
  bool result;
  if (SmallVector<Value, 2> sources = getSources(value); !sources.empty())
    result = llvm::any_of(sources, check);
  else if (isa_and_nonnull<arith::ConstantOp>(op))
    result = !matchPattern(value, m_AnyZeroFloat());
  else if (auto load = dyn_cast_or_null<LoadOp>(op))
    result = isa_and_nonnull<ConstantGetOp>(load.getArray().getDefiningOp()) && llvm::all_of(load.getIndices(), check);
  else if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) // of a condition like x < x, too
    result = check(select.getTrueValue()) && check(select.getFalseValue());
  else
    result = op && isPure(op) && op->getNumOperands() && !op->getNumRegions() && llvm::all_of(op->getOperands(), check);
  return foldable[value] = result;
}

/// Whether a value is a constant or a choice between two; a zero among them is hidden where it is made.
static bool isConstant(Value value) {
  if (auto select = value.getDefiningOp<arith::SelectOp>())
    return matchPattern(select.getTrueValue(), m_Constant()) && matchPattern(select.getFalseValue(), m_Constant());
  return matchPattern(value, m_Constant());
}

Id KernelLowering::getOperand(Value value) {
  Id id = get(value);
  return isConstant(value) || !isFoldable(value) ? id : hide(id, value.getType());
}

} // namespace qd::spirv
