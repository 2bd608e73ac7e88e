//===- Checks.cpp - whether the launch has to end, in loops that may not ------------------------------------------===//
//
// A launch whose time is up, or that its caller wants no longer, ends inside a block as well. So loops count down the
// instructions of their rounds, all of a function's in one variable, which is a register when the code is made, and
// call the library where it falls below zero: it leaves the worker's blocks, or returns. Loops that are known to be
// short count as part of what is around them.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/KernelEmitter.h"

#include "mlir/IR/Matchers.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

/// Loops of so many instructions need no check.
static constexpr uint64_t few = 16 * cpu::instructionsPerCheck;

/// How many turns a loop takes at most, where its bound says so: a constant, or one that a constant limits.
static std::optional<uint64_t> getMostTurns(scf::ForOp loop) {
  if (std::optional<uint64_t> turns = getTurns(loop))
    return turns;
  Type type = loop.getInductionVar().getType();
  if (!type.isIndex() && type.getIntOrFloatBitWidth() <= 16)
    return uint64_t(1) << type.getIntOrFloatBitWidth();
  APInt lower, most;
  Operation *upper = loop.getUpperBound().getDefiningOp();
  bool isLimited = isa_and_nonnull<arith::AndIOp, arith::MinUIOp>(upper) ||
                   (isa_and_nonnull<arith::MinSIOp>(upper) && !loop.getUnsignedCmp());
  if (!isLimited || !matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) || lower.isNegative())
    return std::nullopt;
  for (Value operand : upper->getOperands())
    if (matchPattern(operand, m_ConstantInt(&most)) && !most.isNegative())
      return most.getLimitedValue();
  return std::nullopt;
}

/// The instructions of a loop whose rounds take so many, where it is known to be short.
static std::optional<uint64_t> getShortLength(scf::ForOp loop, uint64_t round) {
  std::optional<uint64_t> turns = getMostTurns(loop);
  uint64_t length = turns ? llvm::SaturatingMultiply(round, *turns) : few + 1;
  return length > few ? std::nullopt : std::optional(length);
}

/// About how many instructions the block's ops take, loops that are not known to be short for one round.
uint64_t KernelEmitter::getLength(Block &block) {
  uint64_t length = 1;
  for (Operation &op : block) {
    // Whoever lets others run may be away for long.
    length += isa<SleepOp>(op) ? cpu::instructionsPerCheck / 16 : getCodeSize(&op, lanes, tallies.contains(&op));
    uint64_t round = 0;
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        round += getLength(inner);
    auto loop = dyn_cast<scf::ForOp>(op);
    length += loop ? getShortLength(loop, round).value_or(round) : round;
  }
  return length;
}

/// Whether it has to count its rounds.
bool KernelEmitter::mayTakeLong(scf::ForOp loop) { return !getShortLength(loop, getLength(*loop.getBody())); }

/// Whether it counts parts of many rounds instead, so that a round costs no more: by a step that is known.
bool KernelEmitter::goesInParts(scf::ForOp loop) {
  return mayTakeLong(loop) && matchPattern(loop.getStep(), m_Constant()) && !segments.isEntered(loop) &&
         (!analysis.isDivergent(loop) || analysis.isUniform(loop.getLowerBound()));
}

/// At the end of a round of so many instructions.
void KernelEmitter::emitCheck(uint64_t length) {
  llvm::Type *i32 = b.getInt32Ty();
  llvm::Function *function = b.GetInsertBlock()->getParent();
  llvm::Value *all = b.getInt32(cpu::instructionsPerCheck);
  if (!frame.countdown) {
    llvm::BasicBlock &entry = function->getEntryBlock();
    llvm::IRBuilder<> atEntry(&entry, entry.begin());
    frame.countdown = atEntry.CreateAlloca(i32, nullptr, "countdown");
    atEntry.CreateStore(all, frame.countdown);
  }
  auto *check = llvm::BasicBlock::Create(context, "check", function);
  auto *goOn = llvm::BasicBlock::Create(context, "check.end", function);
  llvm::Value *left = b.CreateLoad(i32, frame.countdown);
  llvm::Value *spent = b.getInt32(std::min<uint64_t>(length, cpu::instructionsPerCheck));
  b.CreateStore(b.CreateSub(left, spent), frame.countdown);
  b.CreateCondBr(b.CreateICmpULT(left, spent), check, goOn, llvm::MDBuilder(context).createUnlikelyBranchWeights());
  b.SetInsertPoint(check);
  // A launch that it ends has no use for what is around the call, so code may be moved across it.
  llvm::CallInst *call = b.CreateCall(getCallee(cpu::checkLaunch, {b.getPtrTy()}), {getReports()});
  call->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  for (auto attribute : {llvm::Attribute::Cold, llvm::Attribute::NoUnwind, llvm::Attribute::WillReturn})
    call->addFnAttr(attribute);
  b.CreateStore(all, frame.countdown);
  b.CreateBr(goOn);
  b.SetInsertPoint(goOn);
}

} // namespace qd
