//===- Coroutines.cpp - subgroups that wait for each other ----------------------------------------------------===//
//
// Where it is not certain that all threads take the same way to a barrier, or where they wait for each other, each
// subgroup is an LLVM coroutine that suspends, and the block resumes all of them in turn until all are done. Against
// threads or fibers this needs no stacks and no switching code: a subgroup keeps only the values that live across a
// barrier, and the optimiser sees through all of it.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/KernelEmitter.h"

#include "llvm/IR/Intrinsics.h"

using namespace mlir;
namespace Intrinsic = llvm::Intrinsic;

namespace qd {

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
  llvm::Function *caller = b.GetInsertBlock()->getParent();
  Frame outer = frame;
  frame.countdown = nullptr;
  beginLines(*function);

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
  if (debug)
    debug->resume(*caller);
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
void KernelEmitter::emitWait(llvm::Value *counter, llvm::Value *wanted) {
  llvm::Type *i32 = b.getInt32Ty();
  llvm::Function *function = b.GetInsertBlock()->getParent();
  auto *check = llvm::BasicBlock::Create(context, "barrier", function);
  auto *wait = llvm::BasicBlock::Create(context, "barrier.wait", function);
  auto *done = llvm::BasicBlock::Create(context, "barrier.end", function);
  b.CreateBr(check);
  b.SetInsertPoint(check);
  llvm::Value *now = b.CreateLoad(i32, counter, /*isVolatile=*/true);
  b.CreateCondBr(b.CreateICmpUGE(now, wanted), done, wait);
  b.SetInsertPoint(wait);
  emitSuspend(/*final=*/false);
  b.CreateBr(check);
  b.SetInsertPoint(done);
}

static void addTo(llvm::IRBuilder<> &b, llvm::Value *counter, uint32_t number, bool isVolatile) {
  llvm::Value *now = b.CreateLoad(b.getInt32Ty(), counter, isVolatile);
  b.CreateStore(b.CreateAdd(now, b.getInt32(number)), counter, isVolatile);
}

/// Where subgroups suspend at barriers alone, each round of resumes takes all of them from one barrier to the next.
/// Where they also do so in loops, a barrier counts who has come, lets nobody on before all have, and then all in the
/// order of their numbers: without that the last one to come would go on first.
void KernelEmitter::emitBarrier() {
  // Within one subgroup, instruction order is all there is to wait for.
  if (!suspends)
    return;
  if (!waits)
    return emitSuspend(/*final=*/false);
  uint32_t count = llvm::divideCeil(kernel.getNumThreads(), lanes);
  addTo(b, stateField(offsetof(cpu::BlockState, arrivals)), 1, /*isVolatile=*/true);
  addTo(b, frame.passed, count, /*isVolatile=*/false);
  llvm::Value *passed = b.CreateLoad(b.getInt32Ty(), frame.passed);
  emitWait(stateField(offsetof(cpu::BlockState, arrivals)), passed);
  llvm::Value *before = b.CreateUDiv(frame.firstThread, b.getInt32(lanes));
  emitWait(stateField(offsetof(cpu::BlockState, departures)),
           b.CreateAdd(b.CreateSub(passed, b.getInt32(count)), before));
  addTo(b, stateField(offsetof(cpu::BlockState, departures)), 1, /*isVolatile=*/true);
}

/// The block stops here until the grid's driver sets it going again.
void KernelEmitter::emitGridBarrier() {
  addTo(b, stateField(offsetof(cpu::BlockState, atGrid)), 1, /*isVolatile=*/true);
  addTo(b, frame.phase, 1, /*isVolatile=*/false);
  emitWait(stateField(offsetof(cpu::BlockState, phase)), b.CreateLoad(b.getInt32Ty(), frame.phase));
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
    for (size_t counter : {offsetof(cpu::BlockState, arrivals), offsetof(cpu::BlockState, departures)})
      b.CreateStore(b.getInt32(0), stateField(counter));
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
  constexpr unsigned instructionsPerTurn = 64;
  emitCheck(instructionsPerTurn * count);
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
  roundNumber->addIncoming(nextRound, b.GetInsertBlock());
  b.CreateCondBr(goesOn, round, after);
  b.SetInsertPoint(after);
  return success();
}

} // namespace qd
