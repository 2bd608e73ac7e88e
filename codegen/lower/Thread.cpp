//===- Thread.cpp - copies, reports and pauses of a thread on NVPTX and AMDGCN ------------===//

#include "codegen/PrintText.h"
#include "codegen/lower/GPUEmitter.h"
#include "codegen/lower/Memory.h"

#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/Path.h"

using namespace mlir;
namespace Intrinsic = llvm::Intrinsic;

namespace qd {

static constexpr unsigned globalSpace = 1;

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

/// 16 bytes pass by the first cache, which they would only fill: their thread reads them from shared memory.
static void lowerAsyncCopy(GPUEmitter &e, Operation *op) {
  auto copy = cast<AsyncCopyOp>(op);
  unsigned bytes = copy.getNumBytes();
  bool isPredicated = bool(copy.getPredicate());
  Intrinsic::ID plain = bytes == 16  ? Intrinsic::nvvm_cp_async_cg_shared_global_16
                        : bytes == 8 ? Intrinsic::nvvm_cp_async_ca_shared_global_8
                                     : Intrinsic::nvvm_cp_async_ca_shared_global_4;
  Intrinsic::ID sized = bytes == 16  ? Intrinsic::nvvm_cp_async_cg_shared_global_16_s
                        : bytes == 8 ? Intrinsic::nvvm_cp_async_ca_shared_global_8_s
                                     : Intrinsic::nvvm_cp_async_ca_shared_global_4_s;
  Type element = copy.getTarget().getType().getElementType();
  SmallVector<llvm::Value *> operands = {
      emitAddress(e, copy.getTarget(), copy.getTargetIndices(), copy.getStaticTarget(), element),
      emitAddress(e, copy.getSource(), copy.getSourceIndices(), copy.getStaticSource(), element)};
  // The rest of a shorter source is zeros (PTX ISA, cp.async).
  if (isPredicated)
    operands.push_back(e.b.CreateSelect(e.get(copy.getPredicate()), e.b.getInt32(bytes), e.b.getInt32(0)));
  e.b.CreateIntrinsic(isPredicated ? sized : plain, operands);
}

static void lowerAsyncCommit(GPUEmitter &e, Operation *) {
  e.b.CreateIntrinsic(Intrinsic::nvvm_cp_async_commit_group, {});
}

static void lowerAsyncWait(GPUEmitter &e, Operation *op) {
  e.b.CreateIntrinsic(Intrinsic::nvvm_cp_async_wait_group, {e.b.getInt32(cast<AsyncWaitOp>(op).getGroups())});
}

//===----------------------------------------------------------------------===//
// Prints and asserts
//===----------------------------------------------------------------------===//

static llvm::Value *getText(GPUEmitter &e, StringRef text) {
  llvm::Constant *constant = createText(e.module, text, globalSpace);
  return llvm::ConstantExpr::getAddrSpaceCast(constant, e.b.getPtrTy());
}

/// vprintf and __assertfail are functions of the driver (PTX Writer's Guide to Interoperability, "System Calls").
static void lowerPrint(GPUEmitter &e, Operation *op) {
  auto print = cast<PrintOp>(op);
  TypeRange types = print.getValues().getTypes();
  llvm::Value *memory = llvm::ConstantPointerNull::get(e.b.getPtrTy());
  if (!types.empty()) {
    llvm::BasicBlock &entry = e.getFunction()->getEntryBlock();
    llvm::IRBuilder<> atEntry(&entry, entry.begin());
    llvm::AllocaInst *slot = atEntry.CreateAlloca(llvm::ArrayType::get(e.b.getInt8Ty(), layOutPrint(types).bytes));
    slot->setAlignment(llvm::Align(8));
    memory = atEntry.CreateAddrSpaceCast(slot, e.b.getPtrTy());
  }
  auto emit = [&]() -> llvm::Value * {
    SmallVector<llvm::Value *> values;
    for (Value value : print.getValues())
      values.push_back(e.get(value));
    storePrintValues(e.b, types, values, memory);
    llvm::FunctionCallee callee =
        e.module.getOrInsertFunction("vprintf", e.b.getInt32Ty(), e.b.getPtrTy(), e.b.getPtrTy());
    e.b.CreateCall(callee, {getText(e, getPrintfText(print)), memory});
    return nullptr;
  };
  if (print.getPredicate())
    e.emitIf(e.get(print.getPredicate()), emit, nullptr);
  else
    emit();
}

static void lowerAssert(GPUEmitter &e, Operation *op) {
  auto assertion = cast<AssertOp>(op);
  auto emit = [&]() -> llvm::Value * {
    llvm::Type *pointer = e.b.getPtrTy(), *i32 = e.b.getInt32Ty(), *i64 = e.b.getInt64Ty();
    llvm::FunctionCallee callee = e.module.getOrInsertFunction("__assertfail", e.b.getVoidTy(), pointer, pointer, i32,
                                                               pointer, i64);
    auto place = op->getLoc()->findInstanceOf<FileLineColLoc>();
    // Artifacts hold no folders.
    StringRef file = place ? llvm::sys::path::filename(place.getFilename().getValue()) : "unknown location";
    e.b.CreateCall(callee, {getText(e, assertion.getMessage()), getText(e, file),
                            e.b.getInt32(place ? place.getLine() : 0), getText(e, e.getKernel().getSymName()),
                            e.b.getInt64(/*bytes of a character=*/1)});
    return nullptr;
  };
  e.emitIf(e.b.CreateNot(e.get(assertion.getCondition())), emit, nullptr);
}

//===----------------------------------------------------------------------===//
// Pauses
//===----------------------------------------------------------------------===//

static llvm::Value *getDuration(GPUEmitter &e, SleepOp sleep) {
  return sleep.getDuration() ? e.get(sleep.getDuration()) : e.b.getInt32(*sleep.getStaticDuration());
}

static void lowerSleepNVPTX(GPUEmitter &e, Operation *op) {
  e.b.CreateIntrinsic(Intrinsic::nvvm_nanosleep, {getDuration(e, cast<SleepOp>(op))});
}

/// s_sleep pauses for 64 clocks as often as its literal says: a time that is known only when the code runs is a loop.
static void lowerSleepAMDGCN(GPUEmitter &e, Operation *op) {
  constexpr unsigned longest = 1000000, nanosecondsAUnit = 32, units = 4, mostUnits = 127;
  auto sleep = cast<SleepOp>(op);
  auto pause = [&](unsigned units) { e.b.CreateIntrinsic(Intrinsic::amdgcn_s_sleep, {e.b.getInt32(units)}); };
  if (!sleep.getDuration()) {
    unsigned left = llvm::divideCeil(std::min(*sleep.getStaticDuration(), longest), nanosecondsAUnit);
    if (left <= mostUnits)
      return pause(left);
  }
  llvm::Value *time = e.b.CreateBinaryIntrinsic(Intrinsic::umin, getDuration(e, sleep), e.b.getInt32(longest));
  e.emitRounds(e.b.CreateUDiv(time, e.b.getInt32(nanosecondsAUnit * units)), [&] { pause(units); });
}

llvm::ArrayRef<LoweringRow> getThreadLowerings() {
  static constexpr LoweringRow rows[] = {
      // op, nvptx, amdgcn, needs
      {"qd.async_copy", lowerAsyncCopy, nullptr, AsyncCopy},
      {"qd.async_commit", lowerAsyncCommit, nullptr, AsyncCopy},
      {"qd.async_wait", lowerAsyncWait, nullptr, AsyncCopy},
      {"qd.print", lowerPrint, nullptr},
      {"qd.assert", lowerAssert, nullptr},
      {"qd.sleep", lowerSleepNVPTX, lowerSleepAMDGCN},
  };
  return rows;
}

} // namespace qd
