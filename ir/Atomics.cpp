//===- Atomics.cpp - what targets have instructions for --------------------------===//

#include "ir/Atomics.h"

using namespace mlir;

namespace qd {

static bool hasFloatAdd(Type type, bool isShared, bool isUsed, const Target &target) {
  if (type.isF16())
    return target.has(AtomicF16Add);
  if (type.isBF16())
    return target.has(AtomicBF16Add);
  if (type.isF64())
    return target.has(isShared ? SharedF64Add : AtomicF64Add);
  return target.has(isShared ? SharedF32Add : AtomicF32Add) ||
         (!isShared && !isUsed && target.has(AtomicF32AddVoid));
}

static bool hasFloatMinMax(Type type, bool isShared, const Target &target) {
  if (type.getIntOrFloatBitWidth() < 32)
    return false;
  if (isShared)
    return target.has(SharedFloatMinMax);
  return target.has(type.isF64() ? AtomicF64MinMax : AtomicF32MinMax);
}

bool isNativeAtomic(AtomicKind kind, Type type, bool isShared, bool isUsed, const Target &target) {
  bool isWord = type.getIntOrFloatBitWidth() >= 32 || target.has(SubWordAtomics);
  switch (kind) {
  case AtomicKind::andi:
  case AtomicKind::ori:
  case AtomicKind::xori:
    return true; // of the word around it
  case AtomicKind::exchange:
    return isWord;
  case AtomicKind::add:
  case AtomicKind::sub:
    return type.isInteger() ? isWord : hasFloatAdd(type, isShared, isUsed, target);
  case AtomicKind::minsi:
  case AtomicKind::minui:
  case AtomicKind::maxsi:
  case AtomicKind::maxui:
    return isWord;
  case AtomicKind::minnumf:
  case AtomicKind::maxnumf:
    return hasFloatMinMax(type, isShared, target);
  case AtomicKind::mul:
  case AtomicKind::minimumf:
  case AtomicKind::maximumf:
    return false;
  }
  return false;
}

bool isNativeAtomic(AtomicRMWOp op, const Target &target) {
  return isNativeAtomic(op.getKind(), op.getType(), isa<SharedType>(op.getArray().getType()), !op.use_empty(), target);
}

} // namespace qd
