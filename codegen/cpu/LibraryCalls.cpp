//===- LibraryCalls.cpp - the list -------------------------------------------------------------------------------===//

#include "codegen/cpu/LibraryCalls.h"

#include "codegen/cpu/KernelEmitter.h"
#include "codegen/cpu/Reports.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace qd::cpu {

/// Memory for a suspended subgroup; its slot's owner frees it. A size that is a multiple of the alignment is what
/// aligned_alloc wants.
static void *allocateFrameMemory(uint64_t size, uint64_t alignment) {
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

/// An f16 in the low half of a vector register, where the calling convention has it.
static float halfInRegister(const llvm::APFloat &half) {
  return llvm::bit_cast<float>(uint32_t(half.bitcastToAPInt().getZExtValue()));
}

template <typename T> static float truncateToHalf(T value) {
  llvm::APFloat number(value);
  bool isInexact;
  number.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven, &isInexact);
  return halfInRegister(number);
}

static float extendHalf(float half) {
  llvm::APFloat number(llvm::APFloat::IEEEhalf(), llvm::APInt(16, llvm::bit_cast<uint32_t>(half) & 0xffff));
  bool isInexact;
  number.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &isInexact);
  return number.convertToFloat();
}

template <typename F> static void *addressOf(F *function) { return reinterpret_cast<void *>(function); }

llvm::ArrayRef<LibraryCall> getLibraryCalls() {
  static const LibraryCall calls[] = {
      {allocateFrame.data(), addressOf(allocateFrameMemory)},
      {printLine.data(), addressOf(reportPrint)},
      {failAssert.data(), addressOf(reportFailure)},
      {checkLaunch.data(), addressOf(leaveIfOver)},
      {pause.data(), addressOf(yieldProcessor)},
      {"memcpy", addressOf<void *(void *, const void *, size_t)>(std::memcpy)},
      {"memmove", addressOf<void *(void *, const void *, size_t)>(std::memmove)},
      {"memset", addressOf<void *(void *, int, size_t)>(std::memset)},
      {"fma", addressOf<double(double, double, double)>(::fma)},
      {"fmaf", addressOf<float(float, float, float)>(::fmaf)},
      {"round", addressOf<double(double)>(::round)},
      {"roundf", addressOf<float(float)>(::roundf)},
      {"roundeven", addressOf<double(double)>(::nearbyint)},
      {"roundevenf", addressOf<float(float)>(::nearbyintf)},
      {"floor", addressOf<double(double)>(::floor)},
      {"floorf", addressOf<float(float)>(::floorf)},
      {"ceil", addressOf<double(double)>(::ceil)},
      {"ceilf", addressOf<float(float)>(::ceilf)},
      {"trunc", addressOf<double(double)>(::trunc)},
      {"truncf", addressOf<float(float)>(::truncf)},
      // f16 on processors without it
      {"fminf", addressOf<float(float, float)>(::fminf)},
      {"fmaxf", addressOf<float(float, float)>(::fmaxf)},
      {"__truncsfhf2", addressOf(truncateToHalf<float>)},
      {"__truncdfhf2", addressOf(truncateToHalf<double>)},
      {"__extendhfsf2", addressOf(extendHalf)},
  };
  return calls;
}

} // namespace qd::cpu
