//===- SmallFloats.cpp - bf16, and fused arithmetic without instructions --------------------------===//
//
// A bf16 is its 16 bits in the emitted code. LLVM without native bf16 splits vectors of it into lanes, and the native
// conversion flushes subnormals. Operations run in f32 and round to bf16 once more, which gives the correctly rounded
// result: f32 has more than twice the bits. Where the exact result has more bits still (fused multiply-add, f64 and
// wide integers), it is rounded to odd in between: then the last rounding sees on which side of a tie the exact result
// lies. On processors that do not fuse, f32 goes by f64 in the same way; f64 is left to the C library, lane by lane.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/KernelEmitter.h"

#include "codegen/lower/Elementwise.h"
#include "codegen/lower/RoundToOdd.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace qd {

namespace {
/// Emits on scalars and vectors alike.
struct Rounding {
  llvm::IRBuilder<> &b;

  llvm::Type *typeOf(llvm::Value *like, llvm::Type *element) { return like->getType()->getWithNewType(element); }
  llvm::Value *cast(llvm::Value *value, llvm::Type *element) { return b.CreateBitCast(value, typeOf(value, element)); }
  llvm::Value *toDouble(llvm::Value *value) { return b.CreateFPExt(value, typeOf(value, b.getDoubleTy())); }

  /// bf16 to f32, exactly.
  llvm::Value *widen(llvm::Value *value) {
    llvm::Value *bits = b.CreateShl(b.CreateZExt(value, typeOf(value, b.getInt32Ty())), 16);
    return cast(bits, b.getFloatTy());
  }

  /// f32 to bf16, to nearest even; a NaN stays one, quiet.
  llvm::Value *narrow(llvm::Value *value) {
    llvm::Value *bits = cast(value, b.getInt32Ty());
    auto constant = [&](uint32_t c) { return llvm::ConstantInt::get(bits->getType(), c); };
    llvm::Value *high = b.CreateLShr(bits, constant(16));
    llvm::Value *even = b.CreateAnd(high, constant(1));
    llvm::Value *rounded = b.CreateLShr(b.CreateAdd(bits, b.CreateAdd(even, constant(0x7fff))), constant(16));
    llvm::Value *quiet = b.CreateOr(high, constant(0x40));
    llvm::Value *result = b.CreateSelect(b.CreateFCmpUNO(value, value), quiet, rounded);
    return b.CreateTrunc(result, typeOf(result, b.getInt16Ty()));
  }

  /// f64 to f32, rounded to odd.
  llvm::Value *shorten(llvm::Value *value) {
    llvm::Value *nearest = b.CreateFPTrunc(value, typeOf(value, b.getFloatTy()));
    return roundToOdd(b, nearest, b.CreateFSub(value, toDouble(nearest)));
  }

  /// x * y + z of f32 values, rounded once. The sum is zero only where it is exact.
  llvm::Value *fuseSingle(llvm::ArrayRef<llvm::Value *> operands) {
    auto [sum, error] = fuseInDouble(b, operands);
    return b.CreateFPTrunc(roundToOdd(b, sum, error), operands[0]->getType());
  }

  /// An integer to f32, rounded to odd where it has more bits.
  llvm::Value *fromInteger(llvm::Value *value, bool isSigned) {
    unsigned width = value->getType()->getScalarSizeInBits();
    auto convert = [&](llvm::Value *v, llvm::Type *element) {
      return isSigned ? b.CreateSIToFP(v, typeOf(v, element)) : b.CreateUIToFP(v, typeOf(v, element));
    };
    if (width <= 16)
      return convert(value, b.getFloatTy());
    if (width == 32)
      return shorten(convert(value, b.getDoubleTy()));
    // More bits than f64 has: the low ones leave a last bit that says whether any was set.
    constexpr unsigned lowBits = 12;
    auto constant = [&](uint64_t c) { return llvm::ConstantInt::get(value->getType(), c); };
    llvm::Value *low = b.CreateAnd(value, constant((1 << lowBits) - 1));
    llvm::Value *sticky = b.CreateZExt(b.CreateICmpNE(low, constant(0)), value->getType());
    llvm::Value *high = isSigned ? b.CreateAShr(value, lowBits) : b.CreateLShr(value, lowBits);
    llvm::Value *scaled = convert(b.CreateOr(high, sticky), b.getDoubleTy());
    scaled = b.CreateFMul(scaled, llvm::ConstantFP::get(scaled->getType(), double(1 << lowBits)));
    llvm::Value *biased = isSigned ? b.CreateAdd(value, constant(uint64_t(1) << 40)) : value;
    llvm::Value *isSmall = b.CreateICmpULT(biased, constant(uint64_t(1) << 41));
    return shorten(b.CreateSelect(isSmall, convert(value, b.getDoubleTy()), scaled));
  }
};
} // namespace

/// Returns null where the op's usual lowering is right.
llvm::Value *KernelEmitter::emitSmallFloat(Operation &op, llvm::ArrayRef<llvm::Value *> operands) {
  auto isBF16 = [](Type type) { return type.isBF16(); };
  Rounding rounding{b};
  Type type = op.getResult(0).getType();
  if (isa<math::FmaOp>(op) && type.isF16() && !features.fp16) {
    SmallVector<llvm::Value *> wide;
    for (llvm::Value *operand : operands)
      wide.push_back(b.CreateFPExt(operand, rounding.typeOf(operand, b.getFloatTy())));
    llvm::Value *odd = fuseToOdd(b, wide);
    return b.CreateFPTrunc(odd, rounding.typeOf(odd, b.getHalfTy()));
  }
  // Without arithmetic on f16 LLVM calls the C library for each lane.
  if (isa<arith::MinNumFOp, arith::MaxNumFOp>(op) && type.isF16() && !features.fp16) {
    SmallVector<llvm::Value *> wide, results;
    for (llvm::Value *operand : operands)
      wide.push_back(b.CreateFPExt(operand, rounding.typeOf(operand, b.getFloatTy())));
    if (!lowerElementwise(b, &op, wide, results) || results.size() != 1)
      return nullptr;
    return b.CreateFPTrunc(results.front(), operands[0]->getType());
  }
  if (isa<math::FmaOp>(op) && type.isF32() && !features.fma)
    return rounding.fuseSingle(operands);
  bool takesBF16 = llvm::any_of(op.getOperandTypes(), isBF16);
  if ((!takesBF16 && !type.isBF16()) || isa<arith::SelectOp>(op))
    return nullptr;

  auto bits = [&](uint16_t c) { return llvm::ConstantInt::get(operands[0]->getType(), c); };
  constexpr uint16_t sign = 0x8000;
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return llvm::ConstantInt::get(b.getInt16Ty(), cast<FloatAttr>(constant.getValue()).getValue().bitcastToAPInt());
  if (isa<arith::BitcastOp>(op))
    return operands[0];
  if (isa<arith::NegFOp>(op))
    return b.CreateXor(operands[0], bits(sign));
  if (isa<math::AbsFOp>(op))
    return b.CreateAnd(operands[0], bits(uint16_t(~sign)));
  if (isa<math::CopySignOp>(op))
    return b.CreateOr(b.CreateAnd(operands[0], bits(uint16_t(~sign))), b.CreateAnd(operands[1], bits(sign)));
  if (isa<arith::TruncFOp>(op))
    return rounding.narrow(op.getOperand(0).getType().isF64() ? rounding.shorten(operands[0]) : operands[0]);
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return rounding.narrow(rounding.fromInteger(operands[0], isa<arith::SIToFPOp>(op)));

  SmallVector<llvm::Value *> wide, results;
  for (auto [value, operand] : llvm::zip_equal(op.getOperands(), operands))
    wide.push_back(isBF16(value.getType()) ? rounding.widen(operand) : operand);
  if (isa<arith::ExtFOp>(op))
    return type.isF64() ? rounding.toDouble(wide[0]) : wide[0];
  if (isa<math::FmaOp>(op))
    return rounding.narrow(fuseToOdd(b, wide));
  if (!lowerElementwise(b, &op, wide, results) || results.size() != 1)
    return nullptr;
  return type.isBF16() ? rounding.narrow(results.front()) : results.front();
}

} // namespace qd
