//===- RoundToOdd.cpp ------------------------------------------------------------------------------===//

#include "codegen/lower/RoundToOdd.h"

namespace qd {

static llvm::Type *typeOf(llvm::Value *like, llvm::Type *element) { return like->getType()->getWithNewType(element); }

static llvm::Value *toDouble(llvm::IRBuilderBase &b, llvm::Value *value) {
  return b.CreateFPExt(value, typeOf(value, b.getDoubleTy()));
}

llvm::Value *roundToOdd(llvm::IRBuilderBase &b, llvm::Value *nearest, llvm::Value *rest) {
  llvm::Type *element = nearest->getType()->getScalarType();
  llvm::Value *bits = b.CreateBitCast(nearest, typeOf(nearest, b.getIntNTy(element->getScalarSizeInBits())));
  llvm::Value *one = llvm::ConstantInt::get(bits->getType(), 1);
  llvm::Value *none = llvm::Constant::getNullValue(bits->getType());
  llvm::Value *zero = llvm::Constant::getNullValue(rest->getType());
  llvm::Value *isEven = b.CreateICmpEQ(b.CreateAnd(bits, one), none);
  // Beside zero there is nothing that the narrower format holds: it may stay.
  llvm::Value *isZero = b.CreateICmpEQ(b.CreateShl(bits, one), none);
  llvm::Value *outward = b.CreateICmpEQ(b.CreateFCmpOLT(rest, zero), b.CreateICmpSLT(bits, none));
  llvm::Value *odd = b.CreateSelect(outward, b.CreateAdd(bits, one), b.CreateSub(bits, one));
  llvm::Value *moves = b.CreateAnd(b.CreateAnd(b.CreateFCmpONE(rest, zero), isEven), b.CreateNot(isZero));
  return b.CreateBitCast(b.CreateSelect(moves, odd, bits), nearest->getType());
}

std::pair<llvm::Value *, llvm::Value *> fuseInDouble(llvm::IRBuilderBase &b, llvm::ArrayRef<llvm::Value *> operands) {
  llvm::Value *product = b.CreateFMul(toDouble(b, operands[0]), toDouble(b, operands[1])); // exact
  llvm::Value *addend = toDouble(b, operands[2]);
  // The sum's rounding error, exactly (Knuth).
  llvm::Value *sum = b.CreateFAdd(product, addend);
  llvm::Value *back = b.CreateFSub(sum, product);
  return {sum, b.CreateFAdd(b.CreateFSub(product, b.CreateFSub(sum, back)), b.CreateFSub(addend, back))};
}

llvm::Value *fuseToOdd(llvm::IRBuilderBase &b, llvm::ArrayRef<llvm::Value *> operands) {
  auto [sum, error] = fuseInDouble(b, operands);
  llvm::Value *nearest = b.CreateFPTrunc(sum, operands[0]->getType());
  llvm::Value *difference = b.CreateFSub(sum, toDouble(b, nearest));
  llvm::Value *zero = llvm::Constant::getNullValue(sum->getType());
  return roundToOdd(b, nearest, b.CreateSelect(b.CreateFCmpOEQ(difference, zero), error, difference));
}

} // namespace qd
