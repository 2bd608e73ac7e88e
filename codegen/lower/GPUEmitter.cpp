//===- GPUEmitter.cpp - kernels, arguments and the walk over ops ---------------------===//

#include "codegen/lower/GPUEmitter.h"

#include "codegen/LoopHint.h"
#include "codegen/LoopStep.h"
#include "codegen/Waits.h"
#include "codegen/lower/Elementwise.h"
#include "codegen/lower/RoundToOdd.h"
#include "codegen/lower/Subgroup.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"

using namespace mlir;

namespace qd {

static constexpr unsigned globalSpace = 1, sharedSpace = 3;

//===----------------------------------------------------------------------===//
// Kernels and their arguments
//===----------------------------------------------------------------------===//

void GPUEmitter::createFunction(const KernelInterface &interface) {
  llvm::LLVMContext &context = module.getContext();
  SmallVector<llvm::Type *> types;
  for (const ArgInterface &arg : interface.args) {
    if (arg.isBuffer)
      types.push_back(llvm::PointerType::get(context, globalSpace));
    else
      types.push_back(arg.type.isInteger(1) ? b.getInt8Ty() : convertScalarType(context, arg.type));
    if (arg.isBuffer && arg.passesSize)
      types.append(arg.rank, b.getInt64Ty());
  }
  auto *type = llvm::FunctionType::get(b.getVoidTy(), types, /*isVarArg=*/false);
  function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, interface.name, module);
  function->setCallingConv(isNVPTX() ? llvm::CallingConv::PTX_Kernel : llvm::CallingConv::AMDGPU_KERNEL);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr(llvm::Attribute::Convergent);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  if (debug) {
    debug->begin(interface.name, kernel.getLoc(), *function);
    b.SetCurrentDebugLocation(debug->get(kernel.getLoc()));
  }

  llvm::Argument *next = function->arg_begin();
  for (auto [i, arg] : llvm::enumerate(interface.args)) {
    Value argument = kernel.getArg(i);
    next->setName(arg.name);
    next->addAttr(llvm::Attribute::NoUndef);
    if (!arg.isBuffer) {
      set(argument, arg.type.isInteger(1) ? b.CreateTrunc(next, b.getInt1Ty()) : next);
      ++next;
      continue;
    }
    if (arg.access & KernelOp::NoAlias)
      next->addAttr(llvm::Attribute::NoAlias);
    if (arg.access & KernelOp::ReadOnly)
      next->addAttr(llvm::Attribute::ReadOnly);
    if (arg.access & KernelOp::WriteOnly)
      next->addAttr(llvm::Attribute::WriteOnly);
    next->addAttr(llvm::Attribute::getWithAlignment(context, llvm::Align(arg.align)));
    set(argument, next++);
    for (unsigned dim = 0; arg.passesSize && dim < arg.rank; ++dim) {
      next->setName(arg.name + ".size" + (arg.rank > 1 ? std::to_string(dim) : ""));
      extents[{argument, dim}] = next++;
    }
  }
}

LogicalResult GPUEmitter::emitKernel(KernelOp op, const KernelInterface &interface) {
  kernel = op;
  values.clear();
  extents.clear();
  operands.clear();
  std::fill_n(threadIds, 3, nullptr);
  std::fill_n(blockIds, 3, nullptr);
  std::fill_n(gridDims, 3, nullptr);
  threadIndex = laneId = nullptr;
  uniformity.reset();
  declareSharedMemory(interface);
  createFunction(interface);
  if (failed(emitRegion(kernel.getBody())))
    return failure();
  if (debug)
    b.SetCurrentDebugLocation(debug->get(kernel.getBodyBlock().getTerminator()->getLoc()));
  b.CreateRetVoid();
  return success();
}

/// A variable a piece, so that arrays of different pieces are known not to overlap; or, where the launch provides the
/// memory, one that all kernels share and whose size it decides.
void GPUEmitter::declareSharedMemory(const KernelInterface &interface) {
  storage.emplace(kernel, target);
  sharedPieces.clear();
  auto declare = [&](llvm::Type *type, const llvm::Twine &name, bool isProvided) {
    auto *variable = new llvm::GlobalVariable(
        module, type, /*isConstant=*/false,
        isProvided ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage,
        isProvided ? nullptr : llvm::PoisonValue::get(type), name, /*InsertBefore=*/nullptr,
        llvm::GlobalValue::NotThreadLocal, sharedSpace);
    variable->setAlignment(llvm::Align(sharedArrayAlignment));
    return variable;
  };
  for (const SharedStorage::Piece &piece : storage->getPieces()) {
    if (!interface.dynamicSharedBytes) {
      sharedPieces.push_back(declare(llvm::ArrayType::get(b.getInt8Ty(), piece.bytes), interface.name + ".shared",
                                     /*isProvided=*/false));
      continue;
    }
    // External symbols are not renamed: `$` is what PTX allows and kernels do not have.
    constexpr llvm::StringLiteral name = "qd_$_shared";
    llvm::GlobalVariable *provided = module.getNamedGlobal(name);
    if (!provided)
      provided = declare(llvm::ArrayType::get(b.getInt8Ty(), 0), name, /*isProvided=*/true);
    sharedPieces.push_back(
        llvm::ConstantExpr::getInBoundsGetElementPtr(b.getInt8Ty(), provided, b.getInt32(piece.offset)));
  }
}

llvm::Value *GPUEmitter::getSharedArray(SharedAllocOp alloc) {
  return llvm::ConstantExpr::getInBoundsGetElementPtr(b.getInt8Ty(), sharedPieces[storage->getPiece(alloc)],
                                                      b.getInt32(storage->getOffset(alloc)));
}

UniformityAnalysis &GPUEmitter::getUniformity() {
  if (!uniformity)
    uniformity.emplace(kernel, target.subgroupSize);
  return *uniformity;
}

bool GPUEmitter::isUniform(Value value) { return getUniformity().isUniform(value, Scope::subgroup); }

bool GPUEmitter::isReachedByAll(Operation *op) {
  return op->getParentOp() == kernel ||
         getUniformity().getControl(op, Scope::subgroup).divergence == Divergence::Uniform;
}

bool GPUEmitter::hasAllLanes(Operation *op) {
  if (hasPartialSubgroup())
    return false;
  return op->getParentOp() == kernel ||
         getUniformity().getControl(op, Scope::subgroup).divergence != Divergence::Varying;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult GPUEmitter::emitRegion(Region &region) {
  llvm::DebugLoc around = b.getCurrentDebugLocation();
  for (Operation &op : region.front().without_terminator()) {
    if (debug)
      b.SetCurrentDebugLocation(debug->get(op.getLoc()));
    if (failed(emitOp(&op)))
      return failure();
  }
  b.SetCurrentDebugLocation(around);
  return success();
}

static Lowering findLowering(Operation *op, const Target &target) {
  static const llvm::StringMap<LoweringRow> index = [] {
    llvm::StringMap<LoweringRow> map;
    for (auto rows : {getIndexLowerings(), getMemoryLowerings(), getAtomicLowerings(), getBlockLowerings(),
                      getGridLowerings(), getSubgroupLowerings(), getThreadLowerings(), getApproximationLowerings()})
      for (const LoweringRow &row : rows)
        map[row.name] = row;
    return map;
  }();
  auto row = index.find(op->getName().getStringRef());
  if (row == index.end())
    return nullptr;
  if (target.getBackend() == Backend::AMDGCN)
    return row->second.amdgcn;
  return row->second.needs & ~target.chip->capabilities ? nullptr : row->second.nvptx;
}

/// NVIDIA's chips fuse bf16 since they reduce integers by an instruction. For all others LLVM rounds to f32 in between.
static bool hasFusedBF16(const Target &target) { return target.has(ReduxSync); }

static llvm::Value *fuseBF16(llvm::IRBuilderBase &b, ArrayRef<llvm::Value *> operands) {
  SmallVector<llvm::Value *> wide;
  for (llvm::Value *operand : operands)
    wide.push_back(b.CreateFPExt(operand, b.getFloatTy()));
  return b.CreateFPTrunc(fuseToOdd(b, wide), operands[0]->getType());
}

LogicalResult GPUEmitter::emitOp(Operation *op) {
  if (Lowering lower = findLowering(op, target)) {
    lower(*this, op);
    return success();
  }
  if (auto compare = dyn_cast<arith::CmpIOp>(op); compare && !isNVPTX())
    if (llvm::Value *lanes = amdgcn::emitLaneBit(*this, compare)) {
      set(compare, lanes);
      return success();
    }
  if (auto difference = dyn_cast<arith::XOrIOp>(op); difference && !isNVPTX())
    if (llvm::Value *lanes = amdgcn::emitLaneDifference(*this, difference)) {
      set(difference, lanes);
      return success();
    }
  if (isa<scf::IfOp>(op))
    return emitScfIf(op);
  if (isa<scf::ForOp>(op))
    return emitScfFor(op);
  if (isa<scf::WhileOp>(op))
    return emitScfWhile(op);

  if (!isElementwise(op->getName()))
    return op->emitOpError() << "is not supported on " << target.str();
  SmallVector<llvm::Value *> lowered, results;
  for (OpOperand &operand : op->getOpOperands()) {
    llvm::Value *given = operands.lookup(&operand);
    lowered.push_back(given ? given : get(operand.get()));
  }
  if (isa<math::FmaOp>(op) && op->getResult(0).getType().isBF16() && !hasFusedBF16(target))
    results.push_back(fuseBF16(b, lowered));
  else
    lowerElementwise(b, op, lowered, results);
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
    set(result, value);
  return success();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

llvm::BasicBlock *GPUEmitter::createBlock(const char *name) {
  return llvm::BasicBlock::Create(module.getContext(), name, function);
}

llvm::Value *GPUEmitter::emitIf(llvm::Value *condition, llvm::function_ref<llvm::Value *()> then,
                                llvm::Value *otherwise) {
  llvm::BasicBlock *before = b.GetInsertBlock(), *thenBlock = createBlock("then"), *join = createBlock("join");
  b.CreateCondBr(condition, thenBlock, join);
  b.SetInsertPoint(thenBlock);
  llvm::Value *value = then();
  llvm::BasicBlock *thenEnd = b.GetInsertBlock();
  b.CreateBr(join);
  b.SetInsertPoint(join);
  if (!value)
    return nullptr;
  llvm::PHINode *phi = b.CreatePHI(value->getType(), 2);
  phi->addIncoming(value, thenEnd);
  phi->addIncoming(otherwise, before);
  return phi;
}

void GPUEmitter::emitRounds(llvm::Value *count, llvm::function_ref<void()> body) {
  llvm::BasicBlock *before = b.GetInsertBlock(), *header = createBlock("rounds"), *round = createBlock("round"),
                   *exit = createBlock("rounds.end");
  b.CreateBr(header);
  b.SetInsertPoint(header);
  llvm::PHINode *left = b.CreatePHI(b.getInt32Ty(), 2);
  left->addIncoming(count, before);
  b.CreateCondBr(b.CreateICmpNE(left, b.getInt32(0)), round, exit);
  b.SetInsertPoint(round);
  body();
  left->addIncoming(b.CreateSub(left, b.getInt32(1)), b.GetInsertBlock());
  b.CreateBr(header);
  b.SetInsertPoint(exit);
}

LogicalResult GPUEmitter::emitScfIf(Operation *op) {
  auto ifOp = cast<scf::IfOp>(op);
  bool hasElse = !ifOp.getElseRegion().empty();
  llvm::BasicBlock *thenBlock = createBlock("then");
  llvm::BasicBlock *elseBlock = hasElse ? createBlock("else") : nullptr;
  llvm::BasicBlock *join = createBlock("join");
  b.CreateCondBr(get(ifOp.getCondition()), thenBlock, hasElse ? elseBlock : join);

  SmallVector<llvm::PHINode *> phis;
  b.SetInsertPoint(join);
  for (Value result : ifOp.getResults()) {
    phis.push_back(b.CreatePHI(convertScalarType(module.getContext(), result.getType()), 2));
    set(result, phis.back());
  }
  auto emitBranch = [&](Region &region, llvm::BasicBlock *block) -> LogicalResult {
    b.SetInsertPoint(block);
    if (failed(emitRegion(region)))
      return failure();
    for (auto [phi, value] : llvm::zip(phis, region.front().getTerminator()->getOperands()))
      phi->addIncoming(get(value), b.GetInsertBlock());
    b.CreateBr(join);
    return success();
  };
  if (failed(emitBranch(ifOp.getThenRegion(), thenBlock)) ||
      (hasElse && failed(emitBranch(ifOp.getElseRegion(), elseBlock))))
    return failure();
  b.SetInsertPoint(join);
  return success();
}

/// The loop variable's next value: past the upper bound it is the bound.
static llvm::Value *advance(llvm::IRBuilderBase &b, scf::ForOp op, llvm::Value *variable, llvm::Value *upper,
                            llvm::Value *step) {
  if (!mayStepWrap(op))
    return b.CreateAdd(variable, step, "", /*HasNUW=*/op.getUnsignedCmp(), /*HasNSW=*/!op.getUnsignedCmp());
  llvm::Value *left = b.CreateSub(upper, variable);
  return b.CreateAdd(variable, b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, step));
}

LogicalResult GPUEmitter::emitScfFor(Operation *op) {
  auto forOp = cast<scf::ForOp>(op);
  llvm::BasicBlock *before = b.GetInsertBlock(), *header = createBlock("loop"), *body = createBlock("body"),
                   *exit = createBlock("exit");
  b.CreateBr(header);
  b.SetInsertPoint(header);
  llvm::PHINode *iv = b.CreatePHI(get(forOp.getLowerBound())->getType(), 2);
  iv->addIncoming(get(forOp.getLowerBound()), before);
  set(forOp.getInductionVar(), iv);
  SmallVector<llvm::PHINode *> carried;
  for (auto [init, argument, result] :
       llvm::zip_equal(forOp.getInitArgs(), forOp.getRegionIterArgs(), forOp.getResults())) {
    llvm::PHINode *phi = b.CreatePHI(get(init)->getType(), 2);
    phi->addIncoming(get(init), before);
    carried.push_back(phi);
    set(argument, phi);
    set(result, phi);
  }
  llvm::Value *bound = get(forOp.getUpperBound());
  b.CreateCondBr(forOp.getUnsignedCmp() ? b.CreateICmpULT(iv, bound) : b.CreateICmpSLT(iv, bound), body, exit);

  b.SetInsertPoint(body);
  if (failed(emitRegion(forOp.getRegion())))
    return failure();
  for (auto [phi, value] : llvm::zip_equal(carried, forOp.getBody()->getTerminator()->getOperands()))
    phi->addIncoming(get(value), b.GetInsertBlock());
  iv->addIncoming(advance(b, forOp, iv, bound, get(forOp.getStep())), b.GetInsertBlock());
  setLoopHint(b.CreateBr(header), forOp);
  b.SetInsertPoint(exit);
  return success();
}

/// Where lanes of a wave wait for each other, what one of them writes in a round must not move behind the loop, where
/// those that wait do not get: LLVM duplicates no block with such a barrier, which is no instruction. NVIDIA's threads
/// get ahead one by one.
void GPUEmitter::meet(scf::WhileOp loop, Region &region) {
  if (!isNVPTX() && mayWait(loop) && writesForOthers(region))
    b.CreateIntrinsic(llvm::Intrinsic::amdgcn_wave_barrier, {});
}

LogicalResult GPUEmitter::emitScfWhile(Operation *op) {
  auto whileOp = cast<scf::WhileOp>(op);
  llvm::BasicBlock *before = b.GetInsertBlock(), *header = createBlock("loop"), *body = createBlock("body"),
                   *exit = createBlock("exit");
  b.CreateBr(header);
  b.SetInsertPoint(header);
  SmallVector<llvm::PHINode *> carried;
  for (auto [init, argument] : llvm::zip_equal(whileOp.getInits(), whileOp.getBeforeArguments())) {
    llvm::PHINode *phi = b.CreatePHI(get(init)->getType(), 2);
    phi->addIncoming(get(init), before);
    carried.push_back(phi);
    set(argument, phi);
  }
  if (failed(emitRegion(whileOp.getBefore())))
    return failure();
  scf::ConditionOp condition = whileOp.getConditionOp();
  for (auto [value, argument, result] :
       llvm::zip_equal(condition.getArgs(), whileOp.getAfterArguments(), whileOp.getResults())) {
    set(argument, get(value));
    set(result, get(value));
  }
  meet(whileOp, whileOp.getBefore());
  b.CreateCondBr(get(condition.getCondition()), body, exit);

  b.SetInsertPoint(body);
  if (failed(emitRegion(whileOp.getAfter())))
    return failure();
  meet(whileOp, whileOp.getAfter());
  for (auto [phi, value] : llvm::zip_equal(carried, whileOp.getAfterBody()->getTerminator()->getOperands()))
    phi->addIncoming(get(value), b.GetInsertBlock());
  b.CreateBr(header);
  b.SetInsertPoint(exit);
  return success();
}

} // namespace qd
