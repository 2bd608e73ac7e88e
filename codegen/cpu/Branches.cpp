//===- Branches.cpp - scf.if as branches and masks ------------------------------------------------------------===//
//
// A condition that all lanes share is a branch. Otherwise each arm runs under the mask of its lanes, skipped where no
// lane takes it.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/KernelEmitter.h"

#include "codegen/lower/Elementwise.h"

using namespace mlir;

namespace qd {

LogicalResult KernelEmitter::emitIf(scf::IfOp op) {
  return analysis.isUniform(op.getCondition()) ? emitUniformIf(op) : emitDivergentIf(op);
}

/// Emits one arm under `armMask` and gives its yields in the representation of `results`.
LogicalResult KernelEmitter::emitArm(Block *block, llvm::Value *armMask, ValueRange results,
                                     SmallVectorImpl<llvm::Value *> &yielded) {
  llvm::Value *outer = mask;
  mask = armMask;
  LogicalResult done = emitBlock(*block);
  mask = outer;
  if (failed(done))
    return failure();
  for (auto [result, value] : llvm::zip_equal(results, block->getTerminator()->getOperands()))
    yielded.push_back(convertTo(value, result));
  return success();
}

LogicalResult KernelEmitter::emitUniformIf(scf::IfOp op) {
  llvm::Function *function = b.GetInsertBlock()->getParent();
  auto *thenStart = llvm::BasicBlock::Create(context, "then", function);
  auto *elseStart = llvm::BasicBlock::Create(context, "else", function);
  auto *merge = llvm::BasicBlock::Create(context, "endif", function);
  b.CreateCondBr(getBase(op.getCondition()), thenStart, elseStart);

  SmallVector<llvm::Value *> thenValues, elseValues;
  b.SetInsertPoint(thenStart);
  if (failed(emitArm(op.thenBlock(), mask, op.getResults(), thenValues)))
    return failure();
  llvm::BasicBlock *thenEnd = b.GetInsertBlock();
  b.CreateBr(merge);
  b.SetInsertPoint(elseStart);
  if (op.elseBlock() && failed(emitArm(op.elseBlock(), mask, op.getResults(), elseValues)))
    return failure();
  llvm::BasicBlock *elseEnd = b.GetInsertBlock();
  b.CreateBr(merge);

  b.SetInsertPoint(merge);
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    llvm::PHINode *phi = b.CreatePHI(thenValues[i]->getType(), 2);
    phi->addIncoming(thenValues[i], thenEnd);
    phi->addIncoming(elseValues[i], elseEnd);
    define(result, phi);
  }
  return success();
}

/// Whether running `block` with no lane active is harmless and cheaper than a branch round it.
bool KernelEmitter::isCheap(Block &block) {
  constexpr unsigned maxOps = 16, maxAccesses = 4;
  unsigned ops = 0, accesses = 0;
  for (Operation &op : block.without_terminator()) {
    if (isa<LoadOp, StoreOp>(op)) {
      if (op.hasAttr("is_volatile"))
        return false;
      OperandRange indices = isa<LoadOp>(op) ? cast<LoadOp>(op).getIndices() : cast<StoreOp>(op).getIndices();
      // One subscript of unit stride: a masked access, which touches nothing under an empty mask.
      if (indices.size() != 1 || !isContiguous(analysis.getShape(indices.front()).offsets) || ++accesses > maxAccesses)
        return false;
    } else if (!isElementwise(op.getName()) ||
               isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp,
                   arith::CeilDivSIOp, arith::CeilDivUIOp, arith::RemFOp>(op)) {
      return false;
    }
    if (!isa<arith::ConstantOp>(op) && ++ops > maxOps)
      return false;
  }
  return true;
}

/// The store that ends a block, if nothing behind it touches memory.
static StoreOp getLastStore(Block &block) {
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (auto store = dyn_cast<StoreOp>(op))
      return store.getIsVolatile() || store.getPredicate() ? StoreOp() : store;
    if (!isElementwise(op.getName()))
      return {};
  }
  return {};
}

/// Both arms' last stores, where they are to the same element.
static std::pair<StoreOp, StoreOp> getCommonStore(scf::IfOp op) {
  if (!op.elseBlock())
    return {};
  StoreOp first = getLastStore(*op.thenBlock()), second = getLastStore(*op.elseBlock());
  bool same = first && second && first.getArray() == second.getArray() && first.getIndices() == second.getIndices() &&
              first.getStaticIndices() == second.getStaticIndices();
  return same ? std::pair(first, second) : std::pair<StoreOp, StoreOp>();
}

LogicalResult KernelEmitter::emitDivergentIf(scf::IfOp op) {
  llvm::Value *condition = freeze(getVector(op.getCondition()));
  bool flatten = isCheap(*op.thenBlock()) && (!op.elseBlock() || isCheap(*op.elseBlock()));
  // One store of what the lanes choose, instead of one for each arm.
  auto [thenStore, elseStore] = flatten ? getCommonStore(op) : std::pair<StoreOp, StoreOp>();
  if (thenStore) {
    postponed.insert(thenStore);
    postponed.insert(elseStore);
  }

  // An arm's results are poison where it is skipped: then no lane selects them.
  auto arm = [&](Block *block, llvm::Value *armMask, SmallVectorImpl<llvm::Value *> &yielded) -> LogicalResult {
    std::optional<uint64_t> known = constantBits(armMask);
    if (known && !*known) {
      for (Value result : op.getResults())
        yielded.push_back(llvm::PoisonValue::get(representation(result)));
      return success();
    }
    if (flatten || known)
      return emitArm(block, known && llvm::popcount(*known) == int(lanes) ? nullptr : armMask, op.getResults(),
                     yielded);
    llvm::Function *function = b.GetInsertBlock()->getParent();
    auto *start = llvm::BasicBlock::Create(context, "some", function);
    auto *merge = llvm::BasicBlock::Create(context, "skip", function);
    llvm::BasicBlock *before = b.GetInsertBlock();
    b.CreateCondBr(anyLane(armMask), start, merge);
    b.SetInsertPoint(start);
    if (failed(emitArm(block, armMask, op.getResults(), yielded)))
      return failure();
    llvm::BasicBlock *end = b.GetInsertBlock();
    b.CreateBr(merge);
    b.SetInsertPoint(merge);
    for (auto [result, value] : llvm::zip_equal(op.getResults(), yielded)) {
      if (!analysis.getShape(result).isVarying())
        continue;
      llvm::PHINode *phi = b.CreatePHI(value->getType(), 2);
      phi->addIncoming(value, end);
      phi->addIncoming(llvm::PoisonValue::get(value->getType()), before);
      value = phi;
    }
    return success();
  };
  SmallVector<llvm::Value *> thenValues, elseValues;
  if (failed(arm(op.thenBlock(), both(mask, condition), thenValues)))
    return failure();
  if (op.elseBlock() && failed(arm(op.elseBlock(), both(mask, b.CreateNot(condition)), elseValues)))
    return failure();
  if (thenStore) {
    postponed.erase(thenStore);
    postponed.erase(elseStore);
    // Which of the arms was skipped, if one was, is known: its value is not there.
    auto valueOf = [&](StoreOp store) {
      Value value = store.getValue();
      return values.contains(value) ? getVector(value) : llvm::PoisonValue::get(vectorOf(scalarType(value.getType())));
    };
    storeValue(thenStore, b.CreateSelect(condition, valueOf(thenStore), valueOf(elseStore)));
  }
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    define(result, analysis.getShape(result).isVarying()
                       ? b.CreateSelect(condition, thenValues[i], elseValues[i])
                       : getBase(op.thenYield().getOperand(i))); // the same value on both sides, from before the op
  return success();
}

/// What holds barriers, once for the block. What its parts yield is in slots.
LogicalResult KernelEmitter::emitEnteredIf(scf::IfOp op) {
  llvm::Value *condition = entering.front();
  if (auto *constant = dyn_cast<llvm::ConstantInt>(condition)) {
    Block *taken = constant->isOne() ? op.thenBlock() : op.elseBlock();
    return taken ? emitSteps(*taken) : success();
  }
  llvm::Function *function = b.GetInsertBlock()->getParent();
  auto *thenStart = llvm::BasicBlock::Create(context, "then", function);
  auto *elseStart = llvm::BasicBlock::Create(context, "else", function);
  auto *merge = llvm::BasicBlock::Create(context, "endif", function);
  b.CreateCondBr(condition, thenStart, elseStart);
  for (auto [start, block] : {std::pair(thenStart, op.thenBlock()), std::pair(elseStart, op.elseBlock())}) {
    b.SetInsertPoint(start);
    if (block && failed(emitSteps(*block)))
      return failure();
    b.CreateBr(merge);
  }
  b.SetInsertPoint(merge);
  return success();
}

} // namespace qd
