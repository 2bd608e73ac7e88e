//===- KernelEmitter.cpp - values, masks and elementwise ops -------------------------------===//

#include "codegen/cpu/KernelEmitter.h"

#include "codegen/Interface.h"
#include "codegen/Waits.h"
#include "codegen/lower/Elementwise.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace qd {

KernelEmitter::KernelEmitter(KernelOp kernel, const Target &target, NativeFeatures features, llvm::Module &module,
                             bool mayUnroll, DebugInfo *debug)
    : debug(debug), kernel(kernel), lanes(target.subgroupSize), features(features), module(module),
      context(module.getContext()), b(context), analysis(kernel, lanes),
      segments(kernel, analysis, /*split=*/kernel.getNumThreads() > int64_t(lanes)),
      storage(kernel, target) {
  for (const SharedStorage::Piece &piece : storage.getPieces()) {
    sharedBytes = llvm::alignTo(sharedBytes, cpu::sharedAlignment);
    for (SharedAllocOp alloc : piece.arrays)
      sharedOffsets[alloc] = sharedBytes + storage.getOffset(alloc);
    sharedBytes += piece.bytes;
  }
  kernel.getBody().walk([&](PrivateAllocOp alloc) {
    privateOffsets[alloc] = privateBytes;
    uint64_t bytes = alloc.getType().getNumElements() * getStorageBytes(alloc.getType().getElementType()) * lanes;
    privateBytes += llvm::alignTo(bytes, cpu::sharedAlignment);
  });
  kernel.getBody().walk([&](AssertOp) { asserts = true; });
  cooperates = qd::isCooperative(kernel);
  waits = cooperates || (kernel.getNumThreads() > int64_t(lanes) && mayWait(kernel));
  stateOffset = llvm::alignTo(sharedBytes, cpu::sharedAlignment);
  if (waits)
    sharedBytes = stateOffset + sizeof(cpu::BlockState);
  privateStart = llvm::alignTo(sharedBytes, cpu::sharedAlignment);
  if (privateBytes)
    sharedBytes = privateStart + privateBytes * llvm::divideCeil(kernel.getNumThreads(), lanes);
  suspends = cooperates || (kernel.getNumThreads() > int64_t(lanes) && (waits || !segments.areSplit()));
  if (!suspends)
    placeSlots();
  chooseTallies();
  chooseUnrolling(mayUnroll);
}

//===----------------------------------------------------------------------===//
// Types and values
//===----------------------------------------------------------------------===//

/// bf16 travels as its bits (SmallFloats.cpp).
llvm::Type *KernelEmitter::scalarType(Type type) {
  return type.isBF16() ? b.getInt16Ty() : convertScalarType(context, type);
}

llvm::Type *KernelEmitter::representation(Value value) {
  llvm::Type *scalar = scalarType(value.getType());
  return analysis.getShape(value).isVarying() ? vectorOf(scalar) : scalar;
}

llvm::Constant *KernelEmitter::lanesVector(llvm::function_ref<int64_t(unsigned)> element, llvm::Type *type) {
  SmallVector<llvm::Constant *> elements;
  for (unsigned lane = 0; lane < lanes; ++lane)
    elements.push_back(llvm::ConstantInt::get(context, APInt(64, element(lane)).trunc(type->getIntegerBitWidth())));
  return llvm::ConstantVector::get(elements);
}

llvm::Constant *KernelEmitter::offsetsVector(const LaneOffsets &offsets, llvm::Type *element) {
  return lanesVector([&](unsigned lane) { return offsets[lane]; }, element);
}

llvm::Constant *KernelEmitter::maskVector(llvm::function_ref<bool(unsigned)> element) {
  return lanesVector([&](unsigned lane) { return element(lane); }, b.getInt1Ty());
}

llvm::Value *KernelEmitter::getVector(Value value) {
  LaneValue lane = values.lookup(value);
  if (lane.vector)
    return lane.vector;
  // Repeated at each use: common subexpressions are removed later, and no use depends on where the first one stood.
  llvm::Value *vector = splat(lane.base);
  if (const LaneOffsets *offsets = analysis.getShape(value).offsets)
    vector = b.CreateAdd(vector, offsetsVector(*offsets, lane.base->getType()));
  return vector;
}

/// Of a value that all active lanes share, whatever its shape; the first lane is always there.
llvm::Value *KernelEmitter::getFirstLane(Value value) {
  return analysis.isUniform(value) ? getBase(value) : extractLane(getVector(value), b.getInt32(0));
}

/// Records an op's result; where the shape asks for a scalar, `scalarOrVector` must be one.
void KernelEmitter::define(Value value, llvm::Value *scalarOrVector) {
  bool varies = analysis.getShape(value).isVarying();
  if (varies && !scalarOrVector->getType()->isVectorTy())
    scalarOrVector = splat(scalarOrVector);
  values[value] = varies ? LaneValue{nullptr, scalarOrVector} : LaneValue{scalarOrVector, nullptr};
}

/// `from` in the representation that `shapedLike` has: a phi's operand.
llvm::Value *KernelEmitter::convertTo(Value from, Value shapedLike) {
  return analysis.getShape(shapedLike).isVarying() ? getVector(from) : getBase(from);
}

SmallVector<llvm::Value *> KernelEmitter::convertAll(ValueRange from, ValueRange shapedLike) {
  SmallVector<llvm::Value *> converted;
  for (auto [value, as] : llvm::zip_equal(from, shapedLike))
    converted.push_back(convertTo(value, as));
  return converted;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

llvm::Value *KernelEmitter::both(llvm::Value *outer, llvm::Value *inner) {
  if (!outer)
    return inner;
  if (!inner)
    return outer;
  if (auto *constant = dyn_cast<llvm::Constant>(outer); constant && constant->isAllOnesValue())
    return inner;
  return b.CreateSelect(outer, inner, llvm::Constant::getNullValue(outer->getType()));
}

/// A constant stays one, so that its lanes can be told apart.
llvm::Value *KernelEmitter::freeze(llvm::Value *value) {
  auto *constant = dyn_cast<llvm::Constant>(value);
  if (constant && !isa<llvm::UndefValue>(constant) && !constant->containsUndefOrPoisonElement())
    return value;
  return b.CreateFreeze(value);
}

/// The mask as an integer, lane 0 its lowest bit.
llvm::Value *KernelEmitter::bits(llvm::Value *mask) {
  return b.CreateBitCast(freeze(mask), b.getIntNTy(lanes));
}

llvm::Value *KernelEmitter::anyLane(llvm::Value *mask) {
  return b.CreateICmpNE(bits(mask), b.getIntN(lanes, 0));
}

/// A predicate's lane is a bit test: extracting from a vector of i1 makes LLVM's x86 backend copy a mask register's
/// bit to a byte register, which it cannot always do ("Cannot emit physreg copy instruction").
llvm::Value *KernelEmitter::extractLane(llvm::Value *vector, llvm::Value *lane) {
  if (!vector->getType()->getScalarType()->isIntegerTy(1))
    return b.CreateExtractElement(vector, lane);
  llvm::Value *bit = b.CreateShl(b.getIntN(lanes, 1), b.CreateZExtOrTrunc(lane, b.getIntNTy(lanes)));
  return b.CreateICmpNE(b.CreateAnd(bits(vector), bit), b.getIntN(lanes, 0));
}

std::optional<uint64_t> KernelEmitter::constantBits(llvm::Value *mask) {
  auto *constant = dyn_cast<llvm::Constant>(mask);
  if (!constant)
    return std::nullopt;
  uint64_t result = 0;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    auto *bit = dyn_cast_or_null<llvm::ConstantInt>(constant->getAggregateElement(lane));
    if (!bit)
      return std::nullopt;
    result |= uint64_t(bit->getZExtValue()) << lane;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult KernelEmitter::unsupported(Operation &op) {
  return op.emitError() << "'" << op.getName() << "' is not supported on cpu (" << lanes << " lanes)";
}

/// What follows is in `function`, at the kernel's line where no op is at hand.
void KernelEmitter::beginLines(llvm::Function &function) {
  if (!debug)
    return;
  debug->begin(function.getName(), kernel.getLoc(), function);
  b.SetCurrentDebugLocation(debug->get(kernel.getLoc()));
}

LogicalResult KernelEmitter::emitBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(emitOp(op)))
      return failure();
  return success();
}

LogicalResult KernelEmitter::emitOp(Operation &op) {
  llvm::scope_exit leave([&, around = b.getCurrentDebugLocation()] { b.SetCurrentDebugLocation(around); });
  if (debug)
    b.SetCurrentDebugLocation(debug->get(op.getLoc()));
  for (Type type : op.getResultTypes())
    if (!isScalarType(type) && !isa<SharedType, PrivateType, ConstantType>(type) && !isa<ReinterpretOp>(op))
      return op.emitError() << "'" << op.getName() << "' on " << type << " is not supported on cpu (" << lanes
                            << " lanes)";
  if (auto ifOp = dyn_cast<scf::IfOp>(op))
    return emitIf(ifOp);
  if (auto forOp = dyn_cast<scf::ForOp>(op))
    return emitFor(forOp);
  if (auto whileOp = dyn_cast<scf::WhileOp>(op))
    return emitWhile(whileOp);
  if (isElementwise(op.getName()))
    return emitElementwise(op);
  if (emitAtomicOp(op))
    return success();
  if (auto load = dyn_cast<LoadOp>(op))
    return emitLoad(load), success();
  if (auto store = dyn_cast<StoreOp>(op))
    return emitStore(store), success();
  if (isa<SharedAllocOp, PrivateAllocOp, ConstantGetOp, ReinterpretOp>(op) || emitReportOp(op))
    return success();
  if (isa<BlockSyncOp, BlockSyncSharedOp>(op)) {
    emitBarrier();
    return success();
  }
  if (isa<GridSyncOp>(op)) {
    emitGridBarrier();
    return success();
  }
  bool handled = false;
  if (failed(emitIndexOp(op, handled)))
    return failure();
  if (!handled && failed(emitSubgroupOp(op, handled)))
    return failure();
  return handled ? success() : unsupported(op);
}

/// Lane 0's value of a result that differs from it by constants: the op on lane 0's operands. Lane 0 may be off, so what
/// the op promises of active lanes does not hold for it.
llvm::Value *KernelEmitter::emitBaseOp(Operation &op) {
  SmallVector<llvm::Value *> operands, results;
  for (Value operand : op.getOperands())
    operands.push_back(getBase(operand));
  lowerElementwise(b, &op, operands, results);
  if (auto *instruction = dyn_cast<llvm::Instruction>(results.front()))
    instruction->dropPoisonGeneratingFlags();
  return results.front();
}

LogicalResult KernelEmitter::emitElementwise(Operation &op) {
  LaneShape shape = analysis.getShape(op.getResult(0));
  bool fromOffsets = llvm::any_of(op.getOperands(), [&](Value v) { return analysis.getShape(v).offsets != nullptr; });
  if (!shape.isVarying() && fromOffsets)
    return define(op.getResult(0), emitBaseOp(op)), success();

  SmallVector<llvm::Value *> operands, results;
  for (Value operand : op.getOperands())
    operands.push_back(shape.isVarying() ? getVector(operand) : getBase(operand));
  if (llvm::Value *quotient = emitDivision(op, operands))
    results.push_back(quotient);
  else if (llvm::Value *rounded = emitSmallFloat(op, operands))
    results.push_back(rounded);
  else if (!lowerElementwise(b, &op, operands, results))
    return unsupported(op);
  for (auto [result, value] : llvm::zip_equal(op.getResults(), results))
    define(result, value);
  return success();
}

//===----------------------------------------------------------------------===//
// Integer division
//===----------------------------------------------------------------------===//

/// x86 traps on a zero divisor and on the quotient that overflows, in lanes that are off as well: such divisors are
/// replaced by 1 where a trap is possible (the result is poison there). Vectors of up to 32 bits divide as floats of
/// more than twice the bits, which is exact after truncation, never traps and keeps to vector registers.
/// Returns null where the op is no division.
llvm::Value *KernelEmitter::emitDivision(Operation &op, llvm::ArrayRef<llvm::Value *> given) {
  bool isSigned = isa<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>(op);
  if (!isSigned && !isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(op))
    return nullptr;
  llvm::Value *dividend = given[0], *divisor = given[1];
  llvm::Type *type = dividend->getType();
  APInt constant;
  bool isConstant = matchPattern(op.getOperand(1), m_ConstantInt(&constant));
  bool isSafe = isConstant && !constant.isZero() && !(isSigned && constant.isAllOnes());
  unsigned width = type->getScalarSizeInBits();

  bool remainder = isa<arith::RemSIOp, arith::RemUIOp>(op);
  bool plain = remainder || isa<arith::DivSIOp, arith::DivUIOp>(op);
  if (plain && !isSafe && type->isVectorTy() && width >= 8 && width <= 32) {
    llvm::Type *wide = vectorOf(width == 32 ? b.getDoubleTy() : b.getFloatTy());
    auto toFloat = [&](llvm::Value *v) { return isSigned ? b.CreateSIToFP(v, wide) : b.CreateUIToFP(v, wide); };
    llvm::Value *ratio = b.CreateFDiv(toFloat(dividend), toFloat(divisor));
    llvm::Value *quotient = isSigned ? b.CreateFPToSI(ratio, type) : b.CreateFPToUI(ratio, type);
    return remainder ? b.CreateSub(dividend, b.CreateMul(quotient, divisor)) : quotient;
  }

  if (!isSafe) {
    llvm::Value *zero = llvm::Constant::getNullValue(type), *one = llvm::ConstantInt::get(type, 1);
    divisor = freeze(divisor);
    llvm::Value *traps = b.CreateICmpEQ(divisor, zero);
    if (isSigned) {
      dividend = freeze(dividend);
      llvm::Value *smallest = llvm::ConstantInt::get(type, APInt::getSignedMinValue(width));
      llvm::Value *minusOne = llvm::Constant::getAllOnesValue(type);
      traps = b.CreateOr(traps, b.CreateAnd(b.CreateICmpEQ(dividend, smallest), b.CreateICmpEQ(divisor, minusOne)));
    }
    divisor = b.CreateSelect(traps, one, divisor);
  }
  SmallVector<llvm::Value *> results;
  lowerElementwise(b, &op, {dividend, divisor}, results);
  return results.front();
}

} // namespace qd
