//===- Zeros.cpp - zeros of floats that drivers do not see, on SPIR-V ------------------===//
//
// Mesa's software device keeps infinities, NaNs and zeros' signs, but not where it sees a zero while it compiles: there
// x + 0.0 is x, x * 0.0 and 0.0 / x are 0.0, x / 0.0 is anything, and a choice between 1.0 and -0.0 is one between 1.0 and
// 0.0, even of integers with these bits. So zeros are or-ed with an integer of which no compiler knows that it is 0:
// whether the grid is empty. Behind a specialization constant it is 0 after all, for devices that are right about zeros.
// The runtime tries them out, and whoever sets nothing gets right results too.
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

/// The number of the specialization constant.
static constexpr uint32_t knowsZeros = 1;

Id KernelLowering::getUnknownZero() {
  return cached(unknownZero, [&] {
    Id isEmpty = emitBool(Op::OpIEqual, {getGridDim(0), getU32(0)});
    Id unknown = select(getU32Type(), isEmpty, getU32(1), getU32(0));
    return select(getU32Type(), b.getSpecBool(knowsZeros), getU32(0), unknown);
  });
}

Id KernelLowering::hide(Id value, Type type) {
  Id zero = getUnknownZero();
  if (type.isF64()) {
    Id halves = toHalves(value), low = emitU32(Op::OpBitwiseOr, {getHalf(halves, 0), zero});
    return fromHalves(emit(Op::OpCompositeInsert, b.getVectorType(getU32Type(), 2), {low, halves, 0}), type);
  }
  if (type.isF32() || type.isF16())
    return fromWord(*this, emitU32(Op::OpBitwiseOr, {toWord(*this, value, type), zero}), type);
  unsigned width = type.getIntOrFloatBitWidth();
  return emit(Op::OpBitwiseOr, getType(type), {value, resize(zero, 32, width)});
}

/// Whether drivers may compute a value while they compile: it comes from constants, or from the counter of a loop that
/// they unroll.
bool KernelLowering::isFoldable(Value value) {
  auto known = foldable.find(value);
  if (known != foldable.end())
    return known->second;
  foldable[value] = false;
  bool result = false;
  if (Operation *op = value.getDefiningOp()) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      result = !matchPattern(value, m_AnyZeroFloat());
    else
      result = isPure(op) && op->getNumOperands() && !op->getNumRegions() &&
               llvm::all_of(op->getOperands(), [&](Value operand) { return isFoldable(operand); });
  } else {
    auto argument = cast<BlockArgument>(value);
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto forOp = dyn_cast<scf::ForOp>(parent))
      result = isFoldable(argument == forOp.getInductionVar() ? forOp.getLowerBound()
                                                              : forOp.getTiedLoopInit(argument)->get());
    else if (auto whileOp = dyn_cast<scf::WhileOp>(parent))
      result = isFoldable(argument.getOwner() == whileOp.getBeforeBody()
                              ? whileOp.getInits()[argument.getArgNumber()]
                              : whileOp.getConditionOp().getArgs()[argument.getArgNumber()]);
  }
  return foldable[value] = result;
}

Id KernelLowering::getOperand(Value value) {
  Id id = get(value);
  return !isFoldable(value) || matchPattern(value, m_Constant()) ? id : hide(id, value.getType());
}

} // namespace qd::spirv
