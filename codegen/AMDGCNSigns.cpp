//===- AMDGCNSigns.cpp - copied signs between float formats -----------------------------------===//
//
// Purpose: copies of a sign that instruction selection of LLVM 22 cannot carry out. It takes the sign from in front of
// conversions, and rounds what has the sign before it is copied:
//
//   copysign(m, fptrunc(fpext(s)))     ->     copysign(m, s)
//   fptrunc(copysign(m, fpext(s)))     ->     copysign(fptrunc(m), s)
//
// Between f16 and bf16 it has no instructions for that then. Of a uniform f32 it copies the upper half of a scalar
// register alone, which on gfx1151 is a register that no copy can read.
//
// A constant with the sign of a float that is added as an integer it makes two additions, one behind the other; here
// it stays one operand, made beside the other.
//
// Input: optimised LLVM IR. Output: the same with such copies written as operations on integers.
//
//===----------------------------------------------------------------------===//

#include "codegen/AMDGCNSigns.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace qd {

namespace {
/// A sign is that of `value`, or the other one.
struct Sign {
  Value *value;
  bool isNegated = false;
  bool isConverted = false; ///< since it was in `value`
};
} // namespace

/// The sign of `value` where it comes from.
static Sign findSign(Value *value) {
  Sign sign{value};
  for (Value *x;; sign.value = x) {
    if (match(sign.value, m_FNeg(m_Value(x))))
      sign.isNegated = !sign.isNegated;
    else if (match(sign.value, m_FPExt(m_Value(x))) || match(sign.value, m_FPTrunc(m_Value(x))))
      sign.isConverted = true;
    else if (!match(sign.value, m_CopySign(m_Value(), m_Value(x))))
      return sign;
  }
}

/// Whether `value` is rounded to the type, in one step or more.
static bool isRoundedTo(const Value *value, Type::TypeID id) {
  return any_of(value->users(), [id](const User *u) {
    return isa<FPTruncInst>(u) && (u->getType()->getScalarType()->getTypeID() == id || isRoundedTo(u, id));
  });
}

/// Whether instruction selection would give a 16-bit float the sign of a float of another format.
static bool changesFormat(const IntrinsicInst &copy, const Sign &sign) {
  if (copy.getType()->getScalarSizeInBits() == 16)
    return sign.isConverted;
  if (isRoundedTo(&copy, Type::BFloatTyID))
    return true;
  // From f16 to f16 there is an instruction, and selection, which looks at one block, finds the f16 there.
  auto *extension = dyn_cast<FPExtInst>(copy.getArgOperand(1));
  bool isFromF16 = extension && extension->getSrcTy()->getScalarType()->isHalfTy() &&
                   extension->getParent() == copy.getParent();
  return !isFromF16 && isRoundedTo(&copy, Type::HalfTyID);
}

/// `magnitude` with the sign, in the 32 bits or more that instructions on bits have.
static Value *copyByBits(IRBuilder<> &b, Value *magnitude, const Sign &sign) {
  Type *type = magnitude->getType();
  auto integer = [&](unsigned width) { return type->getWithNewType(b.getIntNTy(width)); };
  auto toBits = [&](Value *x) { return b.CreateBitCast(x, integer(x->getType()->getScalarSizeInBits())); };
  unsigned width = type->getScalarSizeInBits(), from = sign.value->getType()->getScalarSizeInBits();
  Type *word = integer(std::max(width, 32u));

  Value *bits = toBits(sign.value);
  if (from > width)
    bits = b.CreateLShr(bits, from - width);
  bits = b.CreateZExtOrTrunc(bits, word);
  if (from < width)
    bits = b.CreateShl(bits, width - from);
  if (sign.isNegated)
    bits = b.CreateNot(bits);
  Constant *mask = ConstantInt::get(word, APInt::getSignMask(width).zext(word->getScalarSizeInBits()));
  Value *rest = b.CreateAnd(b.CreateZExt(toBits(magnitude), word), ConstantExpr::getNot(mask));
  Value *result = b.CreateOr(rest, b.CreateAnd(bits, mask));
  return b.CreateBitCast(b.CreateTrunc(result, integer(width)), type);
}

/// add(x, bitcast(copysign(c, s))): the sum's second operand out of LLVM's sight.
static bool keepAddend(IntrinsicInst &copy) {
  auto *magnitude = dyn_cast<ConstantFP>(copy.getArgOperand(0));
  auto *bits = copy.hasOneUse() ? dyn_cast<BitCastInst>(copy.user_back()) : nullptr;
  if (!magnitude || !copy.getType()->isFloatTy() || !bits || !bits->hasOneUse() ||
      cast<Instruction>(bits->user_back())->getOpcode() != Instruction::Add)
    return false;
  IRBuilder<> b(bits);
  APInt sign = APInt::getSignMask(32);
  Value *added = b.CreateOr(b.CreateAnd(b.CreateBitCast(copy.getArgOperand(1), bits->getType()), b.getInt(sign)),
                            b.getInt(magnitude->getValueAPF().bitcastToAPInt() & ~sign));
  auto *type = FunctionType::get(bits->getType(), {bits->getType()}, /*isVarArg=*/false);
  bits->replaceAllUsesWith(b.CreateCall(InlineAsm::get(type, "", "=v,0", /*hasSideEffects=*/false), {added}));
  bits->eraseFromParent();
  copy.eraseFromParent();
  return true;
}

void copySignsByBits(Function &kernel) {
  SmallVector<IntrinsicInst *> copies;
  for (Instruction &instruction : instructions(kernel))
    if (auto *copy = dyn_cast<IntrinsicInst>(&instruction); copy && copy->getIntrinsicID() == Intrinsic::copysign)
      copies.push_back(copy);
  for (IntrinsicInst *copy : copies) {
    if (keepAddend(*copy))
      continue;
    Sign sign = findSign(copy->getArgOperand(1));
    if (!changesFormat(*copy, sign))
      continue;
    IRBuilder<> b(copy);
    copy->replaceAllUsesWith(copyByBits(b, copy->getArgOperand(0), sign));
    copy->eraseFromParent();
  }
}

} // namespace qd
