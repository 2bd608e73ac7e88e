//===- Fma.cpp - multiplication and addition with one rounding, on SPIR-V -------------===//
//
// GLSL.std.450's Fma may round the product as well. A function of the module takes it where a specialization constant
// says that the device fuses, and computes by integers elsewhere. The constant's number is the width of the floats; the
// runtime tries devices out, and whoever sets nothing gets right results too.
//
//===----------------------------------------------------------------------===//

#include "codegen/spirv/KernelLowering.h"
#include "passes/MathFunctions.h"

using namespace mlir;
using namespace spv;

namespace qd::spirv {

Id KernelLowering::emitFma(unsigned width, ArrayRef<Id> operands, bool toOdd) {
  bool isNew;
  Id helper = b.getHelper(("fma" + Twine(width) + (toOdd ? "_to_odd" : "")).str(), isNew);
  if (isNew)
    fmaHelpers.push_back({helper, width, toOdd});
  SmallVector<Id> words{helper};
  words.append(operands.begin(), operands.end());
  return emit(Op::OpFunctionCall, getFloatType(width), words);
}

/// The arithmetic as ops, which are lowered like a kernel's.
template <unsigned width> static void buildBody(Block &block, MLIRContext *context, Value &result, bool toOdd) {
  Location loc = UnknownLoc::get(context);
  OpBuilder builder(context);
  builder.setInsertionPointToEnd(&block);
  math::Place at{builder, loc};
  math::Real<width> operands[3];
  for (math::Real<width> &operand : operands)
    operand = {&at, block.addArgument(math::getRealType<width>(at), loc)};
  result = math::buildFma(operands[0], operands[1], operands[2], toOdd).v;
}

LogicalResult KernelLowering::lowerFmaHelper(Id helper, unsigned width, bool toOdd) {
  Block block;
  Value result;
  (width == 64 ? buildBody<64> : buildBody<32>)(block, kernel.getContext(), result, toOdd);
  Id type = getFloatType(width);
  SmallVector<Id> operands;
  b.beginFunction(helper, type, {type, type, type}, operands);
  for (auto [argument, operand] : llvm::zip_equal(block.getArguments(), operands))
    set(argument, operand);
  if (toOdd) {
    if (failed(lowerBlock(block)))
      return failure();
    b.emitVoid(Op::OpReturnValue, get(result));
    b.endFunction();
    return success();
  }

  Id fused = b.createId(), separate = b.createId(), end = b.createId();
  b.emitVoid(Op::OpSelectionMerge, {end, uint32_t(SelectionControlMask::MaskNone)});
  b.emitVoid(Op::OpBranchConditional, {b.getSpecBool(width), fused, separate});
  b.startBlock(fused);
  Id byDevice = b.emitExt(GLSLstd450Fma, type, operands);
  // With this a device has to treat it as one operation, always alike.
  b.decorate(byDevice, Decoration::NoContraction);
  b.emitVoid(Op::OpBranch, end);
  b.startBlock(separate);
  if (failed(lowerBlock(block)))
    return failure();
  b.emitVoid(Op::OpBranch, end);
  b.startBlock(end);
  b.emitVoid(Op::OpReturnValue, b.emitPhi(type, {{byDevice, fused}, {get(result), separate}}));
  b.endFunction();
  return success();
}

} // namespace qd::spirv
