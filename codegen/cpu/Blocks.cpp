//===- Blocks.cpp - the grid's blocks and the subgroups of a block ----------------------------===//
//
// A block runs its subgroups one after the other in a loop; barriers split it into several loops (Segments.h). Where it
// is not certain that all threads take the same way to a barrier, or where they wait for each other, each subgroup is an
// LLVM coroutine that suspends, and the block resumes all of them in turn until all are done. Against threads or fibers
// this needs no stacks and no switching code: a subgroup keeps only the values that live across a barrier, and the
// optimiser sees through all of it. One host thread runs a block, so a barrier needs no memory fence: suspending keeps
// the compiler from moving accesses, and program order does the rest.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/KernelEmitter.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Intrinsics.h"

using namespace mlir;
namespace Intrinsic = llvm::Intrinsic;

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
  frame.record = function->getArg(0);
  if (!cooperates)
    frame.shared = b.CreateLoad(b.getPtrTy(), worker, "shared");
  loadLaunch();
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
  if (cooperates) {
    worker = b.CreateLoad(b.getPtrTy(), b.CreateGEP(b.getPtrTy(), worker, number));
    frame.shared = b.CreateLoad(b.getPtrTy(), worker, "shared");
  }
  Frame outer = frame;
  if (failed(suspends ? emitCoroutineDriver(worker) : emitSubgroups()))
    return failure();
  frame = outer;

  llvm::Value *next = b.CreateNUWAdd(number, b.getInt64(1));
  llvm::Value *zero = b.getInt32(0), *one = b.getInt32(1);
  llvm::Value *x = b.CreateAdd(ids[0], one);
  llvm::Value *endsRow = b.CreateICmpEQ(x, frame.grid[0]);
  llvm::Value *y = b.CreateAdd(ids[1], b.CreateZExt(endsRow, i32));
  llvm::Value *endsPlane = b.CreateICmpEQ(y, frame.grid[1]);
  llvm::Value *z = b.CreateAdd(ids[2], b.CreateZExt(endsPlane, i32));
  llvm::Value *following[] = {b.CreateSelect(endsRow, zero, x), b.CreateSelect(endsPlane, zero, y), z};
  for (unsigned dim = 0; dim < 3; ++dim)
    ids[dim]->addIncoming(following[dim], b.GetInsertBlock());
  number->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpULT(next, end), loop, exit);
  b.SetInsertPoint(exit);
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

/// Turns of a loop that the block enters and whose bounds are known; nothing for other loops.
static std::optional<uint64_t> getTurns(scf::ForOp loop) {
  APInt lower, upper, step;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) || !matchPattern(loop.getStep(), m_ConstantInt(&step)) ||
      !step.isStrictlyPositive())
    return std::nullopt;
  if (loop.getUnsignedCmp() ? lower.uge(upper) : lower.sge(upper))
    return 0;
  return llvm::divideCeil((upper - lower).getZExtValue(), step.getZExtValue());
}

/// An op's code in instructions, by the widest registers that there are.
static unsigned getCodeSize(Operation *op, unsigned lanes) {
  constexpr unsigned registerBits = 512;
  if (isa<AtomicRMWOp, AtomicCASOp>(op))
    return 4 * lanes;
  auto store = dyn_cast<StoreOp>(op);
  Type type = store ? store.getValue().getType() : op->getNumResults() ? op->getResult(0).getType() : Type();
  unsigned bits = type && type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 1;
  return std::max(1u, lanes * bits / registerBits);
}

/// The size of all copies that a block's code would consist of.
uint64_t KernelEmitter::getSizeOfCopies(Block &block, bool unrollLoops) {
  uint64_t size = 0;
  unsigned subgroups = llvm::divideCeil(kernel.getNumThreads(), lanes);
  for (const Segments::Step &step : segments.getSteps(block)) {
    const Segment &segment = segments.get(step.segment);
    uint64_t inSegment = segment.again.size();
    for (Operation *op : segment.ops) {
      if (segments.isEntered(op))
        ++inSegment;
      else
        op->walk([&](Operation *inner) { inSegment += getCodeSize(inner, lanes); });
    }
    size += inSegment * subgroups;
    if (!step.entered)
      continue;
    uint64_t inside = 0;
    for (Region &region : step.entered->getRegions())
      for (Block &inner : region)
        inside += getSizeOfCopies(inner, unrollLoops);
    auto loop = dyn_cast<scf::ForOp>(step.entered);
    size += inside * (loop && unrollLoops ? getTurns(loop).value_or(1) : 1);
  }
  return size;
}

/// With a copy for each subgroup, places in shared memory and masks are constants, and arrays become registers. Short
/// code gains too: what a subgroup costs beside its own instructions.
void KernelEmitter::chooseUnrolling(bool allowed) {
  constexpr uint64_t maxCopies = 4800, maxCopiesWithoutBarriers = 1024;
  if (!allowed || suspends)
    return;
  Block &body = kernel.getBodyBlock();
  if (!segments.hasBarriers()) {
    unroll.subgroups = getSizeOfCopies(body, /*unrollLoops=*/false) <= maxCopiesWithoutBarriers;
    return;
  }
  unroll.loops = getSizeOfCopies(body, /*unrollLoops=*/true) <= maxCopies;
  unroll.subgroups = unroll.loops || getSizeOfCopies(body, /*unrollLoops=*/false) <= maxCopies;
}

/// A slot for each subgroup and each value that outlives a segment. A loop's results are what it carries.
void KernelEmitter::createSlots() {
  llvm::BasicBlock &entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> atEntry(&entry, entry.begin());
  unsigned subgroups = llvm::divideCeil(kernel.getNumThreads(), lanes);
  auto create = [&](Value value) {
    llvm::AllocaInst *&slot = slots[value];
    if (!slot)
      slot = atEntry.CreateAlloca(llvm::ArrayType::get(representation(value), subgroups));
    return slot;
  };
  for (Value value : segments.getKept())
    create(getSlotOwner(value));
  kernel.getBody().walk([&](scf::ForOp loop) {
    if (segments.isEntered(loop))
      for (Value argument : loop.getRegionIterArgs())
        create(argument);
  });
}

/// The value as which another one is kept.
Value KernelEmitter::getSlotOwner(Value value) {
  auto loop = value.getDefiningOp<scf::ForOp>();
  if (!loop || !segments.isEntered(loop))
    return value;
  return loop.getRegionIterArgs()[cast<OpResult>(value).getResultNumber()];
}

uint64_t KernelEmitter::getSlotBytes() {
  uint64_t bytes = 0;
  for (Value value : segments.getKept())
    bytes += module.getDataLayout().getTypeAllocSize(representation(value));
  return bytes * llvm::divideCeil(kernel.getNumThreads(), lanes);
}

/// Shared arrays that nobody else sees are variables: their elements may become registers.
void KernelEmitter::createLocalArrays() {
  constexpr uint64_t maxLocalBytes = 32 * 1024;
  uint64_t bytes = 0;
  for (const SharedStorage::Piece &piece : storage.getPieces())
    bytes += llvm::alignTo(piece.bytes, cpu::sharedAlignment);
  if (suspends || bytes > maxLocalBytes)
    return;
  llvm::BasicBlock &entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> atEntry(&entry, entry.begin());
  for (const SharedStorage::Piece &piece : storage.getPieces()) {
    llvm::AllocaInst *array = atEntry.CreateAlloca(llvm::ArrayType::get(b.getInt8Ty(), std::max<uint64_t>(piece.bytes, 1)));
    array->setAlignment(llvm::Align(cpu::sharedAlignment));
    for (SharedAllocOp alloc : piece.arrays)
      localArrays[alloc] = {array, storage.getOffset(alloc)};
  }
}

LogicalResult KernelEmitter::emitSubgroups() {
  createSlots();
  createLocalArrays();
  llvm::SmallSetVector<llvm::AllocaInst *, 8> arrays;
  for (auto &[alloc, place] : localArrays)
    arrays.insert(place.first);
  // What a block leaves behind is nothing to the next one.
  for (llvm::AllocaInst *array : arrays)
    b.CreateLifetimeStart(array);
  for (auto &[value, slot] : slots)
    b.CreateLifetimeStart(slot);
  if (failed(emitSteps(kernel.getBodyBlock())))
    return failure();
  for (llvm::AllocaInst *array : arrays)
    b.CreateLifetimeEnd(array);
  for (auto &[value, slot] : slots)
    b.CreateLifetimeEnd(slot);
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

LogicalResult KernelEmitter::emitSegment(const Segment &segment, llvm::Value *number, bool partial) {
  enterSubgroup(number, partial);
  auto slotOf = [&](Value value) {
    llvm::AllocaInst *slot = slots.lookup(value);
    return b.CreateGEP(slot->getAllocatedType(), slot, {b.getInt32(0), number});
  };
  auto keep = [&](Value value, Value as) { b.CreateStore(convertTo(value, as), slotOf(as)); };
  for (Operation *op : segment.again)
    if (failed(emitOp(*op)))
      return failure();
  for (Value value : segment.kept) {
    Value owner = getSlotOwner(value);
    define(owner, b.CreateLoad(representation(owner), slotOf(owner)));
    if (owner != value)
      define(value, convertTo(owner, value));
  }
  for (Operation *op : segment.ops) {
    if (segments.isEntered(op)) {
      // All subgroups agree on what decides; its last value counts.
      entering.clear();
      if (auto branch = dyn_cast<scf::IfOp>(op)) {
        entering = {getFirstLane(branch.getCondition())};
        continue;
      }
      auto loop = cast<scf::ForOp>(op);
      entering = {getFirstLane(loop.getLowerBound()), getFirstLane(loop.getUpperBound()), getFirstLane(loop.getStep())};
      for (auto [init, argument] : llvm::zip_equal(loop.getInits(), loop.getRegionIterArgs()))
        keep(init, argument);
    } else if (auto yield = dyn_cast<scf::YieldOp>(op)) {
      // All are read before one is written.
      SmallVector<std::pair<llvm::Value *, llvm::Value *>> stores;
      Operation *parent = yield->getParentOp();
      auto loop = dyn_cast<scf::ForOp>(parent);
      for (auto [i, value] : llvm::enumerate(yield.getOperands())) {
        Value as = loop ? Value(loop.getRegionIterArgs()[i]) : Value(parent->getResult(i));
        if (slots.contains(as))
          stores.push_back({convertTo(value, as), slotOf(as)});
      }
      for (auto [value, slot] : stores)
        b.CreateStore(value, slot);
    } else {
      if (failed(emitOp(*op)))
        return failure();
      for (Value result : op->getResults())
        if (slots.contains(result))
          keep(result, result);
    }
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

//===----------------------------------------------------------------------===//
// Subgroups that wait for each other
//===----------------------------------------------------------------------===//

/// `ptr name(ptr launch, ptr shared, ptr slot, i32 x, i32 y, i32 z, i32 subgroup)`: runs to the first barrier and
/// returns the handle. `slot` holds the address of the frame's memory, null before its first use.
LogicalResult KernelEmitter::emitCoroutine(llvm::StringRef name, bool partial, llvm::Function *&result) {
  llvm::Type *pointer = b.getPtrTy(), *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty();
  auto *type = llvm::FunctionType::get(pointer, {pointer, pointer, pointer, i32, i32, i32, i32}, false);
  auto *function = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, module);
  function->setPresplitCoroutine();
  function->setDoesNotThrow();
  result = function;
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  Frame outer = frame;

  auto *entry = llvm::BasicBlock::Create(context, "entry", function);
  auto *allocate = llvm::BasicBlock::Create(context, "allocate", function);
  auto *start = llvm::BasicBlock::Create(context, "start", function);
  frame.suspendBlock = llvm::BasicBlock::Create(context, "suspend", function);
  b.SetInsertPoint(entry);
  llvm::Constant *null = llvm::ConstantPointerNull::get(b.getPtrTy());
  llvm::Value *id = b.CreateIntrinsic(Intrinsic::coro_id, {}, {b.getInt32(0), null, null, null});
  llvm::Value *slot = function->getArg(2);
  llvm::Value *kept = b.CreateLoad(pointer, slot);
  b.CreateCondBr(b.CreateIsNull(kept), allocate, start);
  b.SetInsertPoint(allocate);
  llvm::FunctionCallee allocator = module.getOrInsertFunction(cpu::allocateFrame, pointer, i64, i64);
  llvm::Value *size = b.CreateIntrinsic(Intrinsic::coro_size, {i64}, {});
  llvm::Value *alignment = b.CreateIntrinsic(Intrinsic::coro_align, {i64}, {});
  llvm::Value *fresh = b.CreateCall(allocator, {size, alignment});
  b.CreateStore(fresh, slot);
  b.CreateBr(start);
  b.SetInsertPoint(start);
  llvm::PHINode *memory = b.CreatePHI(pointer, 2);
  memory->addIncoming(kept, entry);
  memory->addIncoming(fresh, allocate);
  frame.handle = b.CreateIntrinsic(Intrinsic::coro_begin, {}, {id, memory});

  frame.record = function->getArg(0);
  frame.shared = function->getArg(1);
  for (unsigned dim = 0; dim < 3; ++dim)
    frame.block[dim] = function->getArg(3 + dim);
  loadLaunch();
  if (waits) {
    frame.passed = llvm::IRBuilder<>(entry, entry->begin()).CreateAlloca(b.getInt32Ty());
    b.CreateStore(b.getInt32(0), frame.passed);
  }
  if (cooperates) {
    frame.phase = llvm::IRBuilder<>(entry, entry->begin()).CreateAlloca(b.getInt32Ty());
    b.CreateStore(b.getInt32(0), frame.phase);
  }
  enterSubgroup(function->getArg(6), partial);
  if (failed(emitBlock(kernel.getBodyBlock())))
    return failure();
  emitSuspend(/*final=*/true);

  b.SetInsertPoint(frame.suspendBlock);
  b.CreateIntrinsic(Intrinsic::coro_end, {}, {frame.handle, b.getFalse(), llvm::ConstantTokenNone::get(context)});
  b.CreateRet(frame.handle);
  frame = outer;
  return success();
}

/// Gives control back to the block until it resumes this subgroup; after a final one nothing follows. Frames are never
/// destroyed: their memory is the worker's.
void KernelEmitter::emitSuspend(bool final) {
  llvm::Function *function = b.GetInsertBlock()->getParent();
  llvm::Value *result =
      b.CreateIntrinsic(Intrinsic::coro_suspend, {}, {llvm::ConstantTokenNone::get(context), b.getInt1(final)});
  auto *resume = llvm::BasicBlock::Create(context, "resume", function);
  llvm::SwitchInst *branch = b.CreateSwitch(result, frame.suspendBlock, 2);
  branch->addCase(b.getInt8(0), resume);
  b.SetInsertPoint(resume);
  if (final)
    b.CreateUnreachable();
}

/// A member of the block's cpu::BlockState.
llvm::Value *KernelEmitter::stateField(size_t offset) {
  return b.CreateConstGEP1_64(b.getInt8Ty(), frame.shared, stateOffset + offset);
}

/// Suspends until `counter` has come to what is wanted.
void KernelEmitter::emitWait(llvm::Value *counter, llvm::AllocaInst *wanted) {
  llvm::Type *i32 = b.getInt32Ty();
  llvm::Function *function = b.GetInsertBlock()->getParent();
  auto *check = llvm::BasicBlock::Create(context, "barrier", function);
  auto *wait = llvm::BasicBlock::Create(context, "barrier.wait", function);
  auto *done = llvm::BasicBlock::Create(context, "barrier.end", function);
  b.CreateBr(check);
  b.SetInsertPoint(check);
  llvm::Value *now = b.CreateLoad(i32, counter, /*isVolatile=*/true);
  b.CreateCondBr(b.CreateICmpUGE(now, b.CreateLoad(i32, wanted)), done, wait);
  b.SetInsertPoint(wait);
  emitSuspend(/*final=*/false);
  b.CreateBr(check);
  b.SetInsertPoint(done);
}

static void addTo(llvm::IRBuilder<> &b, llvm::Value *counter, uint32_t number, bool isVolatile) {
  llvm::Value *now = b.CreateLoad(b.getInt32Ty(), counter, isVolatile);
  b.CreateStore(b.CreateAdd(now, b.getInt32(number)), counter, isVolatile);
}

/// Where subgroups suspend at barriers alone, each round of resumes takes all of them from one barrier to the next. Where
/// they also do so in loops, a barrier counts who has come, and lets nobody on before all have.
void KernelEmitter::emitBarrier() {
  // Within one subgroup, instruction order is all there is to wait for.
  if (!suspends)
    return;
  if (!waits)
    return emitSuspend(/*final=*/false);
  addTo(b, arrivals(), 1, /*isVolatile=*/true);
  addTo(b, frame.passed, llvm::divideCeil(kernel.getNumThreads(), lanes), /*isVolatile=*/false);
  emitWait(arrivals(), frame.passed);
}

/// The block stops here until the grid's driver sets it going again.
void KernelEmitter::emitGridBarrier() {
  addTo(b, stateField(offsetof(cpu::BlockState, atGrid)), 1, /*isVolatile=*/true);
  addTo(b, frame.phase, 1, /*isVolatile=*/false);
  emitWait(stateField(offsetof(cpu::BlockState, phase)), frame.phase);
}

LogicalResult KernelEmitter::emitCoroutineDriver(llvm::Value *worker) {
  unsigned full = kernel.getNumThreads() / lanes, count = llvm::divideCeil(kernel.getNumThreads(), lanes);
  llvm::Function *fullBody = nullptr, *partialBody = nullptr;
  std::string name = kernel.getSymName().str();
  if (full && failed(emitCoroutine(name + ".subgroup", false, fullBody)))
    return failure();
  if (count > full && failed(emitCoroutine(name + ".partial", true, partialBody)))
    return failure();

  // The worker's second word: the slots, one frame address a subgroup.
  llvm::Value *slots =
      b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getInt8Ty(), worker, 8));
  auto slotOf = [&](llvm::Value *number) {
    return b.CreateGEP(b.getPtrTy(), slots, b.CreateZExt(number, b.getInt64Ty()));
  };
  auto start = [&](llvm::Function *body, llvm::Value *number) {
    b.CreateCall(body, {frame.record, frame.shared, slotOf(number), frame.block[0], frame.block[1], frame.block[2],
                        number});
    return success();
  };
  // A block under way goes on where it stopped.
  llvm::Function *function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock *started = nullptr;
  auto progress = [&](cpu::Progress value) { return b.getInt32(uint32_t(value)); };
  if (cooperates) {
    auto *fresh = llvm::BasicBlock::Create(context, "start", function);
    started = llvm::BasicBlock::Create(context, "started", function);
    llvm::Value *now = b.CreateLoad(b.getInt32Ty(), stateField(offsetof(cpu::BlockState, progress)));
    b.CreateCondBr(b.CreateICmpEQ(now, progress(cpu::Progress::NotStarted)), fresh, started);
    b.SetInsertPoint(fresh);
  }
  if (waits)
    b.CreateStore(b.getInt32(0), arrivals());
  if (fullBody)
    (void)emitSubgroupLoop(full, [&](llvm::Value *number) { return start(fullBody, number); });
  if (partialBody)
    (void)start(partialBody, b.getInt32(full));
  if (started) {
    b.CreateBr(started);
    b.SetInsertPoint(started);
  }

  // Rounds until none is left. A subgroup that ends before others, which a correct kernel has none of, drops out.
  llvm::BasicBlock *beforeRounds = b.GetInsertBlock();
  auto *round = llvm::BasicBlock::Create(context, "round", function);
  auto *turn = llvm::BasicBlock::Create(context, "turn", function);
  auto *resume = llvm::BasicBlock::Create(context, "resume", function);
  auto *next = llvm::BasicBlock::Create(context, "next", function);
  auto *roundEnd = llvm::BasicBlock::Create(context, "round.end", function);
  auto *after = llvm::BasicBlock::Create(context, "finished", function);
  b.CreateBr(round);
  b.SetInsertPoint(round);
  llvm::PHINode *roundNumber = b.CreatePHI(b.getInt32Ty(), 2);
  roundNumber->addIncoming(b.getInt32(0), beforeRounds);
  b.CreateBr(turn);

  b.SetInsertPoint(turn);
  llvm::PHINode *number = b.CreatePHI(b.getInt32Ty(), 2);
  llvm::PHINode *waiting = b.CreatePHI(b.getInt1Ty(), 2);
  llvm::Value *handle = b.CreateLoad(b.getPtrTy(), slotOf(number));
  b.CreateCondBr(b.CreateIntrinsic(Intrinsic::coro_done, {}, {handle}), next, resume);

  b.SetInsertPoint(resume);
  b.CreateIntrinsic(Intrinsic::coro_resume, {}, {handle});
  llvm::Value *waits = b.CreateNot(b.CreateIntrinsic(Intrinsic::coro_done, {}, {handle}));
  llvm::Value *orBefore = b.CreateOr(waiting, waits);
  b.CreateBr(next);

  b.SetInsertPoint(next);
  llvm::PHINode *waitingNow = b.CreatePHI(b.getInt1Ty(), 2);
  waitingNow->addIncoming(waiting, turn);
  waitingNow->addIncoming(orBefore, resume);
  llvm::Value *following = b.CreateAdd(number, b.getInt32(1));
  b.CreateCondBr(b.CreateICmpULT(following, b.getInt32(count)), turn, roundEnd);
  number->addIncoming(b.getInt32(0), round);
  number->addIncoming(following, next);
  waiting->addIncoming(b.getFalse(), round);
  waiting->addIncoming(waitingNow, next);

  b.SetInsertPoint(roundEnd);
  llvm::Value *goesOn = waitingNow;
  llvm::Value *nextRound = b.CreateAdd(roundNumber, b.getInt32(1));
  if (cooperates) {
    // Others may have to run before this block gets on: those at its barrier, or whom it waits for by memory.
    constexpr unsigned maxRounds = 64;
    llvm::Value *atGrid =
        b.CreateLoad(b.getInt32Ty(), stateField(offsetof(cpu::BlockState, atGrid)), /*isVolatile=*/true);
    llvm::Value *isAtGrid = b.CreateICmpEQ(atGrid, b.getInt32(count));
    llvm::Value *state = b.CreateSelect(isAtGrid, progress(cpu::Progress::AtGrid), progress(cpu::Progress::Running));
    state = b.CreateSelect(waitingNow, state, progress(cpu::Progress::Done));
    b.CreateStore(state, stateField(offsetof(cpu::BlockState, progress)));
    goesOn = b.CreateAnd(b.CreateICmpEQ(state, progress(cpu::Progress::Running)),
                         b.CreateICmpULT(nextRound, b.getInt32(maxRounds)));
  }
  roundNumber->addIncoming(nextRound, roundEnd);
  b.CreateCondBr(goesOn, round, after);
  b.SetInsertPoint(after);
  return success();
}

} // namespace qd
