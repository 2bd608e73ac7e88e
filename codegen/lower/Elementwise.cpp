//===- Elementwise.cpp - the table of arith and math ops ----------------------------===//

#include "codegen/lower/Elementwise.h"

#include "codegen/RareBranch.h"
#include "ir/RowIndex.h"
#include "ir/RareAttribute.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/IR/Intrinsics.h"

using namespace mlir;
using llvm::Instruction;
namespace Intrinsic = llvm::Intrinsic;

namespace qd {

llvm::Type *convertScalarType(llvm::LLVMContext &context, Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return llvm::IntegerType::get(context, integer.getWidth());
  if (type.isF16())
    return llvm::Type::getHalfTy(context);
  if (type.isBF16())
    return llvm::Type::getBFloatTy(context);
  return type.isF64() ? llvm::Type::getDoubleTy(context) : llvm::Type::getFloatTy(context);
}

llvm::Constant *convertConstant(llvm::LLVMContext &context, TypedAttr value) {
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return llvm::ConstantInt::get(context, integer.getValue());
  return llvm::ConstantFP::get(context, cast<FloatAttr>(value).getValue());
}

namespace {
/// What a lowering function works with.
struct Site {
  llvm::IRBuilderBase &builder;
  Operation *op;
  llvm::ArrayRef<llvm::Value *> operands;
  llvm::SmallVectorImpl<llvm::Value *> &results;
  unsigned code; ///< the row's opcode or intrinsic

  /// The LLVM type of a result: a vector where the operands are.
  llvm::Type *resultType(unsigned i = 0) const {
    llvm::Type *scalar = convertScalarType(builder.getContext(), op->getResult(i).getType());
    auto *vector = dyn_cast<llvm::VectorType>(operands[0]->getType());
    return vector ? llvm::VectorType::get(scalar, vector->getElementCount()) : scalar;
  }
};
using Lower = void (*)(const Site &);

struct Row {
  const char *name;
  Lower lower;
  unsigned code;
};
} // namespace

//===----------------------------------------------------------------------===//
// One function a shape of op
//===----------------------------------------------------------------------===//

static void binary(const Site &site) {
  llvm::Value *result =
      site.builder.CreateBinOp(Instruction::BinaryOps(site.code), site.operands[0], site.operands[1]);
  auto *instruction = dyn_cast<Instruction>(result);
  if (auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(site.op);
      flags && instruction && isa<llvm::OverflowingBinaryOperator>(instruction)) {
    instruction->setHasNoSignedWrap(flags.hasNoSignedWrap());
    instruction->setHasNoUnsignedWrap(flags.hasNoUnsignedWrap());
  }
  site.results.push_back(result);
}

static void castOp(const Site &site) {
  site.results.push_back(
      site.builder.CreateCast(Instruction::CastOps(site.code), site.operands[0], site.resultType()));
}

/// Conversions to i1 go through i32: AMDGCN selects none from bf16.
static void floatToInteger(const Site &site) {
  llvm::Type *type = site.resultType();
  bool isBit = type->getScalarSizeInBits() == 1;
  llvm::Type *wide = isBit ? llvm::Type::getInt32Ty(type->getContext()) : type->getScalarType();
  if (auto *vector = dyn_cast<llvm::VectorType>(type))
    wide = llvm::VectorType::get(wide, vector->getElementCount());
  llvm::Value *result = site.builder.CreateCast(Instruction::CastOps(site.code), site.operands[0], wide);
  site.results.push_back(isBit ? site.builder.CreateTrunc(result, type) : result);
}

static void intrinsic(const Site &site) {
  site.results.push_back(site.builder.CreateIntrinsic(Intrinsic::ID(site.code), {site.operands[0]->getType()},
                                                      site.operands));
}

/// Intrinsics with a trailing "zero is poison" flag, which QIR does not use.
static void intrinsicWithFalse(const Site &site) {
  site.results.push_back(site.builder.CreateIntrinsic(Intrinsic::ID(site.code), {site.operands[0]->getType()},
                                                      {site.operands[0], site.builder.getFalse()}));
}

static void negate(const Site &site) { site.results.push_back(site.builder.CreateFNeg(site.operands[0])); }

static void select(const Site &site) {
  llvm::Value *condition = site.operands[0];
  if (site.op->hasAttr(rareAttribute))
    condition = markRare(site.builder, condition);
  site.results.push_back(site.builder.CreateSelect(condition, site.operands[1], site.operands[2]));
}

static void compareIntegers(const Site &site) {
  using P = llvm::CmpInst::Predicate;
  static constexpr P predicates[] = {P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_SLT, P::ICMP_SLE, P::ICMP_SGT,
                                     P::ICMP_SGE, P::ICMP_ULT, P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
  auto predicate = cast<arith::CmpIOp>(site.op).getPredicate();
  site.results.push_back(
      site.builder.CreateICmp(predicates[unsigned(predicate)], site.operands[0], site.operands[1]));
}

static void compareFloats(const Site &site) {
  using P = llvm::CmpInst::Predicate;
  static constexpr P predicates[] = {P::FCMP_FALSE, P::FCMP_OEQ, P::FCMP_OGT, P::FCMP_OGE,
                                     P::FCMP_OLT,   P::FCMP_OLE, P::FCMP_ONE, P::FCMP_ORD,
                                     P::FCMP_UEQ,   P::FCMP_UGT, P::FCMP_UGE, P::FCMP_ULT,
                                     P::FCMP_ULE,   P::FCMP_UNE, P::FCMP_UNO, P::FCMP_TRUE};
  auto predicate = cast<arith::CmpFOp>(site.op).getPredicate();
  site.results.push_back(
      site.builder.CreateFCmp(predicates[unsigned(predicate)], site.operands[0], site.operands[1]));
}

/// Division rounding down (code 0) or up (1), without overflow in between:
/// q = a / b, corrected by one where a remainder is left and the signs differ (down) or agree (up).
static void divideRounding(const Site &site) {
  llvm::IRBuilderBase &b = site.builder;
  llvm::Value *lhs = site.operands[0], *rhs = site.operands[1];
  llvm::Value *zero = llvm::Constant::getNullValue(lhs->getType());
  llvm::Value *one = llvm::ConstantInt::get(lhs->getType(), 1);
  llvm::Value *quotient = b.CreateSDiv(lhs, rhs);
  llvm::Value *hasRest = b.CreateICmpNE(b.CreateMul(quotient, rhs), lhs);
  llvm::Value *signsDiffer = b.CreateICmpSLT(b.CreateXor(lhs, rhs), zero);
  bool up = site.code;
  llvm::Value *fix = b.CreateAnd(hasRest, up ? b.CreateNot(signsDiffer) : signsDiffer);
  llvm::Value *fixed = up ? b.CreateAdd(quotient, one) : b.CreateSub(quotient, one);
  site.results.push_back(b.CreateSelect(fix, fixed, quotient));
}

static void divideUpUnsigned(const Site &site) {
  llvm::IRBuilderBase &b = site.builder;
  llvm::Value *quotient = b.CreateUDiv(site.operands[0], site.operands[1]);
  llvm::Value *hasRest = b.CreateICmpNE(b.CreateMul(quotient, site.operands[1]), site.operands[0]);
  site.results.push_back(b.CreateAdd(quotient, b.CreateZExt(hasRest, quotient->getType())));
}

/// Product in twice the width, low and high half; code is the extension.
static void multiplyExtended(const Site &site) {
  llvm::IRBuilderBase &b = site.builder;
  llvm::Type *type = site.operands[0]->getType();
  unsigned width = type->getScalarSizeInBits();
  if (width == 1) {
    // 1 * 1 and -1 * -1 are both 0b01; NVPTX has no pattern for the high half of so narrow a product.
    site.results.push_back(b.CreateAnd(site.operands[0], site.operands[1]));
    site.results.push_back(llvm::Constant::getNullValue(type));
    return;
  }
  llvm::Type *wide = type->getWithNewBitWidth(2 * width);
  auto extension = Instruction::CastOps(site.code);
  llvm::Value *product =
      b.CreateMul(b.CreateCast(extension, site.operands[0], wide), b.CreateCast(extension, site.operands[1], wide));
  site.results.push_back(b.CreateTrunc(product, type));
  site.results.push_back(b.CreateTrunc(b.CreateLShr(product, width), type));
}

static void addExtended(const Site &site) {
  llvm::Value *sum = site.builder.CreateAdd(site.operands[0], site.operands[1]);
  site.results.push_back(sum);
  site.results.push_back(site.builder.CreateICmpULT(sum, site.operands[0]));
}

static void classify(const Site &site) {
  site.results.push_back(site.builder.createIsFPClass(site.operands[0], site.code));
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static constexpr Row rows[] = {
    {"arith.addi", binary, Instruction::Add},
    {"arith.subi", binary, Instruction::Sub},
    {"arith.muli", binary, Instruction::Mul},
    {"arith.divsi", binary, Instruction::SDiv},
    {"arith.divui", binary, Instruction::UDiv},
    {"arith.remsi", binary, Instruction::SRem},
    {"arith.remui", binary, Instruction::URem},
    {"arith.floordivsi", divideRounding, 0},
    {"arith.ceildivsi", divideRounding, 1},
    {"arith.ceildivui", divideUpUnsigned, 0},
    {"arith.andi", binary, Instruction::And},
    {"arith.ori", binary, Instruction::Or},
    {"arith.xori", binary, Instruction::Xor},
    {"arith.shli", binary, Instruction::Shl},
    {"arith.shrsi", binary, Instruction::AShr},
    {"arith.shrui", binary, Instruction::LShr},
    {"arith.minsi", intrinsic, Intrinsic::smin},
    {"arith.minui", intrinsic, Intrinsic::umin},
    {"arith.maxsi", intrinsic, Intrinsic::smax},
    {"arith.maxui", intrinsic, Intrinsic::umax},
    {"arith.addui_extended", addExtended, 0},
    {"arith.mulsi_extended", multiplyExtended, Instruction::SExt},
    {"arith.mului_extended", multiplyExtended, Instruction::ZExt},

    {"arith.addf", binary, Instruction::FAdd},
    {"arith.subf", binary, Instruction::FSub},
    {"arith.mulf", binary, Instruction::FMul},
    {"arith.divf", binary, Instruction::FDiv},
    {"arith.negf", negate, 0},
    {"arith.minnumf", intrinsic, Intrinsic::minnum},
    {"arith.maxnumf", intrinsic, Intrinsic::maxnum},
    {"arith.minimumf", intrinsic, Intrinsic::minimum},
    {"arith.maximumf", intrinsic, Intrinsic::maximum},

    {"arith.cmpi", compareIntegers, 0},
    {"arith.cmpf", compareFloats, 0},
    {"arith.select", select, 0},

    {"arith.extsi", castOp, Instruction::SExt},
    {"arith.extui", castOp, Instruction::ZExt},
    {"arith.trunci", castOp, Instruction::Trunc},
    {"arith.extf", castOp, Instruction::FPExt},
    {"arith.truncf", castOp, Instruction::FPTrunc},
    {"arith.sitofp", castOp, Instruction::SIToFP},
    {"arith.uitofp", castOp, Instruction::UIToFP},
    {"arith.fptosi", floatToInteger, Instruction::FPToSI},
    {"arith.fptoui", floatToInteger, Instruction::FPToUI},
    {"arith.bitcast", castOp, Instruction::BitCast},

    {"math.ctpop", intrinsic, Intrinsic::ctpop},
    {"math.ctlz", intrinsicWithFalse, Intrinsic::ctlz},
    {"math.cttz", intrinsicWithFalse, Intrinsic::cttz},
    {"math.absi", intrinsicWithFalse, Intrinsic::abs},
    {"math.absf", intrinsic, Intrinsic::fabs},
    {"math.copysign", intrinsic, Intrinsic::copysign},
    {"math.sqrt", intrinsic, Intrinsic::sqrt},
    {"math.fma", intrinsic, Intrinsic::fma},
    {"math.floor", intrinsic, Intrinsic::floor},
    {"math.ceil", intrinsic, Intrinsic::ceil},
    {"math.trunc", intrinsic, Intrinsic::trunc},
    {"math.round", intrinsic, Intrinsic::round},
    {"math.roundeven", intrinsic, Intrinsic::roundeven},
    {"math.isnan", classify, llvm::fcNan},
    {"math.isinf", classify, llvm::fcInf},
    {"math.isfinite", classify, llvm::fcFinite},
    {"math.isnormal", classify, llvm::fcNormal},
};

static const Row *findRow(OperationName name) {
  static const llvm::StringMap<const Row *> index = indexByName<Row>(rows);
  return index.lookup(name.getStringRef());
}

bool isElementwise(OperationName name) {
  return findRow(name) || name.getStringRef() == arith::ConstantOp::getOperationName();
}

/// The op's own fast-math flags, as LLVM has them.
static llvm::FastMathFlags convertFlags(Operation *op) {
  llvm::FastMathFlags flags;
  auto holder = dyn_cast<arith::ArithFastMathInterface>(op);
  if (!holder || !holder.getFastMathFlagsAttr())
    return flags;
  arith::FastMathFlags given = holder.getFastMathFlagsAttr().getValue();
  auto has = [&](arith::FastMathFlags flag) { return arith::bitEnumContainsAll(given, flag); };
  flags.setAllowReassoc(has(arith::FastMathFlags::reassoc));
  flags.setNoNaNs(has(arith::FastMathFlags::nnan));
  flags.setNoInfs(has(arith::FastMathFlags::ninf));
  flags.setNoSignedZeros(has(arith::FastMathFlags::nsz));
  flags.setAllowReciprocal(has(arith::FastMathFlags::arcp));
  flags.setAllowContract(has(arith::FastMathFlags::contract));
  flags.setApproxFunc(has(arith::FastMathFlags::afn));
  return flags;
}

bool lowerElementwise(llvm::IRBuilderBase &builder, Operation *op, llvm::ArrayRef<llvm::Value *> operands,
                      llvm::SmallVectorImpl<llvm::Value *> &results) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    results.push_back(convertConstant(builder.getContext(), constant.getValue()));
    return true;
  }
  const Row *row = findRow(op->getName());
  if (!row)
    return false;
  llvm::IRBuilderBase::FastMathFlagGuard guard(builder);
  builder.setFastMathFlags(convertFlags(op));
  row->lower({builder, op, operands, results, row->code});
  return true;
}

} // namespace qd
