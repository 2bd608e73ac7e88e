//===- Blocks.cpp - the grid's blocks and the subgroups of a block ----------------------------===//
//
// A block runs its subgroups one after the other in a loop; barriers split it into several loops (Segments.h, Slots.cpp),
// or make coroutines of the subgroups (Coroutines.cpp). One host thread runs a block, so a barrier needs no memory fence.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/KernelEmitter.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace qd {

llvm::Function *KernelEmitter::createEntry() {
  llvm::Type *pointer = b.getPtrTy(), *i64 = b.getInt64Ty();
  auto *type = llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, i64, i64}, false);
  auto *function = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                          cpu::entryPrefix + kernel.getSymName(), module);
  function->getArg(0)->setName("launch");
  function->getArg(1)->setName("worker");
  function->getArg(2)->setName("begin");
  function->getArg(3)->setName("end");
  return function;
}

/// Reads the grid and the arguments from the launch record.
void KernelEmitter::loadLaunch() {
  auto load = [&](llvm::Type *type, unsigned offset) -> llvm::Value * {
    llvm::LoadInst *value = b.CreateLoad(type, b.CreateConstGEP1_64(b.getInt8Ty(), frame.record, offset));
    value->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context, {}));
    value->setMetadata(llvm::LLVMContext::MD_noundef, llvm::MDNode::get(context, {}));
    return value;
  };
  for (unsigned dim = 0; dim < 3; ++dim)
    frame.grid[dim] = load(b.getInt32Ty(), 4 * dim);
  frame.args.clear();
  frame.extents.clear();
  for (unsigned i = 0; i < kernel.getNumArgs(); ++i) {
    unsigned offset = cpu::recordHeader + cpu::recordArg * i;
    Type type = kernel.getArg(i).getType();
    if (isa<BufferType>(type)) {
      frame.args.push_back({load(b.getPtrTy(), offset), nullptr});
      for (unsigned dim = 0; dim < 3; ++dim)
        frame.extents[{i, dim}] = load(b.getInt64Ty(), offset + 8 * (dim + 1));
    } else if (type.isInteger(1)) {
      frame.args.push_back({b.CreateTrunc(load(b.getInt8Ty(), offset), b.getInt1Ty()), nullptr});
    } else {
      frame.args.push_back({load(scalarType(type), offset), nullptr});
    }
  }
}

LogicalResult KernelEmitter::emit() {
  createAliasScopes();
  llvm::Function *function = createEntry();
  llvm::Value *begin = function->getArg(2), *end = function->getArg(3);
  llvm::Value *worker = function->getArg(1);
  auto *entry = llvm::BasicBlock::Create(context, "entry", function);
  auto *loop = llvm::BasicBlock::Create(context, "block", function);
  auto *exit = llvm::BasicBlock::Create(context, "exit", function);

  b.SetInsertPoint(entry);
  beginLines(*function);
  frame.record = function->getArg(0);
  if (!cooperates)
    frame.shared = b.CreateLoad(b.getPtrTy(), worker, "shared");
  loadLaunch();
  createTallies();
  llvm::Type *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty();
  llvm::Value *gridX = b.CreateZExt(frame.grid[0], i64), *gridY = b.CreateZExt(frame.grid[1], i64);
  llvm::Value *rows = b.CreateUDiv(begin, gridX);
  llvm::Value *first[] = {b.CreateTrunc(b.CreateURem(begin, gridX), i32),
                          b.CreateTrunc(b.CreateURem(rows, gridY), i32),
                          b.CreateTrunc(b.CreateUDiv(rows, gridY), i32)};
  b.CreateBr(loop);

  b.SetInsertPoint(loop);
  llvm::PHINode *number = b.CreatePHI(i64, 2, "number");
  number->addIncoming(begin, entry);
  llvm::PHINode *ids[3];
  for (unsigned dim = 0; dim < 3; ++dim) {
    frame.block[dim] = ids[dim] = b.CreatePHI(i32, 2, "block_id");
    ids[dim]->addIncoming(first[dim], entry);
  }
  llvm::Value *next = nullptr, *following[3];
  auto count = [&] {
    next = b.CreateNUWAdd(number, b.getInt64(1));
    llvm::Value *zero = b.getInt32(0), *one = b.getInt32(1);
    llvm::Value *x = b.CreateAdd(ids[0], one);
    llvm::Value *endsRow = b.CreateICmpEQ(x, frame.grid[0]);
    llvm::Value *y = b.CreateAdd(ids[1], b.CreateZExt(endsRow, i32));
    llvm::Value *endsPlane = b.CreateICmpEQ(y, frame.grid[1]);
    following[0] = b.CreateSelect(endsRow, zero, x);
    following[1] = b.CreateSelect(endsPlane, zero, y);
    following[2] = b.CreateAdd(ids[2], b.CreateZExt(endsPlane, i32));
  };
  // A block with barriers reads at once. With its number counted first, the next one's addresses are known when the
  // processor gets there, and its loads start in order. Others gain nothing.
  bool countsFirst = segments.hasBarriers();
  if (countsFirst)
    count();
  if (cooperates) {
    worker = b.CreateLoad(b.getPtrTy(), b.CreateGEP(b.getPtrTy(), worker, number));
    frame.shared = b.CreateLoad(b.getPtrTy(), worker, "shared");
  }
  Frame outer = frame;
  if (failed(suspends ? emitCoroutineDriver(worker) : emitSubgroups()))
    return failure();
  frame = outer;

  if (!countsFirst)
    count();
  for (unsigned dim = 0; dim < 3; ++dim)
    ids[dim]->addIncoming(following[dim], b.GetInsertBlock());
  number->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpULT(next, end), loop, exit);
  b.SetInsertPoint(exit);
  if (failed(addTallies()))
    return failure();
  b.CreateRetVoid();
  return success();
}

//===----------------------------------------------------------------------===//
// Subgroups one after the other
//===----------------------------------------------------------------------===//

/// `body` for the numbers [0, count); no loop for one, or where the copies are worth it.
LogicalResult KernelEmitter::emitSubgroupLoop(unsigned count,
                                              llvm::function_ref<LogicalResult(llvm::Value *)> body) {
  if (count == 1 || unroll.subgroups) {
    for (unsigned number = 0; number < count; ++number)
      if (failed(body(b.getInt32(number))))
        return failure();
    return success();
  }
  llvm::Function *function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock *before = b.GetInsertBlock();
  auto *loop = llvm::BasicBlock::Create(context, "subgroup", function);
  auto *after = llvm::BasicBlock::Create(context, "subgroups.end", function);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode *number = b.CreatePHI(b.getInt32Ty(), 2, "subgroup");
  number->addIncoming(b.getInt32(0), before);
  if (failed(body(number)))
    return failure();
  llvm::Value *next = b.CreateAdd(number, b.getInt32(1), "", true, true);
  number->addIncoming(next, b.GetInsertBlock());
  llvm::Instruction *branch = b.CreateCondBr(b.CreateICmpULT(next, b.getInt32(count)), loop, after);
  // A subgroup's code is wide already; more copies of it only take longer to compile.
  llvm::MDNode *once = llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable"));
  llvm::MDNode *options = llvm::MDNode::getDistinct(context, {nullptr, once});
  options->replaceOperandWith(0, options);
  branch->setMetadata(llvm::LLVMContext::MD_loop, options);
  b.SetInsertPoint(after);
  return success();
}

LogicalResult KernelEmitter::emitSubgroups() {
  createSlots();
  createLocalArrays();
  llvm::SmallSetVector<llvm::AllocaInst *, 8> variables;
  for (auto &[alloc, place] : localArrays)
    variables.insert(place.first);
  for (auto &[value, slot] : slots)
    if (auto *variable = dyn_cast<llvm::AllocaInst>(slot.place))
      variables.insert(variable);
  // What a block leaves behind is nothing to the next one.
  for (llvm::AllocaInst *variable : variables)
    b.CreateLifetimeStart(variable);
  if (failed(emitSteps(kernel.getBodyBlock())))
    return failure();
  for (llvm::AllocaInst *variable : variables)
    b.CreateLifetimeEnd(variable);
  return success();
}

/// The segments of a block of the kernel, and what lies between them.
LogicalResult KernelEmitter::emitSteps(Block &block) {
  unsigned full = kernel.getNumThreads() / lanes;
  for (const Segments::Step &step : segments.getSteps(block)) {
    const Segment &segment = segments.get(step.segment);
    auto body = [&](llvm::Value *number) { return emitSegment(segment, number, /*partial=*/false); };
    if (full && failed(emitSubgroupLoop(full, body)))
      return failure();
    // The block's size is a constant, and so is the mask of its partial last subgroup: that one gets its own code.
    if (kernel.getNumThreads() % lanes && failed(emitSegment(segment, b.getInt32(full), /*partial=*/true)))
      return failure();
    if (auto branch = dyn_cast_or_null<scf::IfOp>(step.entered); branch && failed(emitEnteredIf(branch)))
      return failure();
    if (auto loop = dyn_cast_or_null<scf::ForOp>(step.entered); loop && failed(emitEnteredFor(loop)))
      return failure();
  }
  return success();
}

void KernelEmitter::enterSubgroup(llvm::Value *number, bool partial) {
  values = ofBlock;
  for (auto [argument, value] : llvm::zip_equal(kernel.getBodyBlock().getArguments(), frame.args))
    values[argument] = value;
  frame.firstThread = b.CreateMul(number, b.getInt32(lanes), "", true, true);
  unsigned present = kernel.getNumThreads() % lanes;
  mask = partial ? maskVector([&](unsigned lane) { return lane < present; }) : nullptr;
}

} // namespace qd
