//===- Report.cpp - prints, asserts and pauses of a subgroup -----------------------------------------------===//
//
// The active lanes take their turns, lowest first.
//
//===----------------------------------------------------------------------===//

#include "codegen/PrintText.h"
#include "codegen/cpu/KernelEmitter.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace qd {

llvm::Value *KernelEmitter::getReports() {
  return b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getInt8Ty(), frame.record, cpu::recordReports));
}

/// The block's number in the grid, counting x fastest.
llvm::Value *KernelEmitter::getBlockNumber() {
  auto wide = [&](llvm::Value *value) { return b.CreateZExt(value, b.getInt64Ty()); };
  llvm::Value *row = b.CreateAdd(b.CreateMul(wide(frame.block[2]), wide(frame.grid[1])), wide(frame.block[1]));
  return b.CreateAdd(b.CreateMul(row, wide(frame.grid[0])), wide(frame.block[0]));
}

llvm::FunctionCallee KernelEmitter::getCallee(StringRef name, ArrayRef<llvm::Type *> operands) {
  return module.getOrInsertFunction(name, llvm::FunctionType::get(b.getVoidTy(), operands, /*isVarArg=*/false));
}

void KernelEmitter::emitPrint(PrintOp op) {
  TypeRange types = op.getValues().getTypes();
  llvm::Type *pointer = b.getPtrTy();
  llvm::Value *active = op.getPredicate() ? both(mask, freeze(getVector(op.getPredicate()))) : mask;
  SmallVector<LaneOperand> operands;
  for (Value value : op.getValues()) {
    // Predicates are bytes in memory.
    llvm::Value *lanes = analysis.isUniform(value) ? getBase(value) : getVector(value);
    if (value.getType().isInteger(1))
      lanes = b.CreateZExt(lanes, lanes->getType()->getWithNewType(b.getInt8Ty()));
    operands.push_back(spill(lanes));
  }
  llvm::AllocaInst *memory = nullptr;
  if (!types.empty()) {
    llvm::BasicBlock &entry = b.GetInsertBlock()->getParent()->getEntryBlock();
    memory = llvm::IRBuilder<>(&entry, entry.begin())
                 .CreateAlloca(llvm::ArrayType::get(b.getInt8Ty(), layOutPrint(types).bytes));
    memory->setAlignment(llvm::Align(8));
    b.CreateLifetimeStart(memory);
  }
  llvm::Value *reports = getReports(), *block = getBlockNumber();
  llvm::Constant *text = createText(module, getPrintfText(op), /*addressSpace=*/0);
  llvm::Value *place = memory ? static_cast<llvm::Value *>(memory) : llvm::ConstantPointerNull::get(b.getPtrTy());
  forEachLane(active, /*isCheap=*/false, [&](llvm::Value *lane) {
    SmallVector<llvm::Value *> values;
    for (auto [operand, value] : llvm::zip_equal(operands, op.getValues())) {
      values.push_back(getLane(operand, lane));
      if (value.getType().isInteger(1))
        values.back() = b.CreateTrunc(values.back(), b.getInt1Ty());
    }
    if (memory)
      storePrintValues(b, types, values, memory);
    b.CreateCall(getCallee(cpu::printLine, {pointer, pointer, pointer, b.getInt64Ty()}), {reports, text, place, block});
  });
  for (const LaneOperand &operand : operands)
    if (operand.table)
      b.CreateLifetimeEnd(operand.table);
  if (memory)
    b.CreateLifetimeEnd(memory);
}

void KernelEmitter::emitAssert(AssertOp op) {
  llvm::Type *pointer = b.getPtrTy();
  llvm::Value *failing = both(mask, b.CreateNot(freeze(getVector(op.getCondition()))));
  std::string message = llvm::formatv("{0}: '{1}' op fails: {2} (kernel '{3}', ", printLocation(op.getLoc()),
                                      op->getName().getStringRef(), op.getMessage(), kernel.getSymName());
  llvm::Constant *text = createText(module, message, /*addressSpace=*/0);
  llvm::Value *reports = getReports(), *block = getBlockNumber();
  forEachLane(failing, /*isCheap=*/false, [&](llvm::Value *lane) {
    llvm::Value *thread = b.CreateAdd(frame.firstThread, b.CreateTrunc(lane, b.getInt32Ty()));
    b.CreateCall(getCallee(cpu::failAssert, {pointer, pointer, b.getInt64Ty(), b.getInt32Ty()}),
                 {reports, text, block, thread});
  });
}

bool KernelEmitter::emitReportOp(Operation &op) {
  if (auto print = dyn_cast<PrintOp>(op))
    emitPrint(print);
  else if (auto assertion = dyn_cast<AssertOp>(op))
    emitAssert(assertion);
  else if (isa<SleepOp>(op))
    b.CreateCall(getCallee(cpu::pause, {}));
  else
    return false;
  return true;
}

} // namespace qd
