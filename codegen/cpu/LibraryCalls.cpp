//===- LibraryCalls.cpp - the list -------------------------------------------------------------------------------===//

#include "codegen/cpu/LibraryCalls.h"

#include "codegen/cpu/KernelEmitter.h"

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

/// The bits of a bf16 in the low half of a vector register, which is where the calling convention returns it.
static float returnHalfWord(uint16_t bits) { return llvm::bit_cast<float>(uint32_t(bits)); }

/// f32 to bf16, to nearest even; LLVM calls it where the processor has no such conversion.
static float truncateToBF16(float value) {
  uint32_t bits = llvm::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return returnHalfWord(uint16_t(bits >> 16 | 0x40));
  return returnHalfWord(uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}

/// Through f32 rounded to odd, so that the second rounding sees whether the first one lost anything.
static float truncateDoubleToBF16(double value) {
  float narrow = float(value);
  uint32_t bits = llvm::bit_cast<uint32_t>(narrow);
  if (!std::isnan(value) && !std::isinf(narrow) && double(narrow) != value) {
    bool tooFar = std::fabs(double(narrow)) > std::fabs(value);
    bits = tooFar ? bits - 1 : bits;
    bits |= 1;
  }
  return truncateToBF16(llvm::bit_cast<float>(bits));
}

template <typename F> static void *addressOf(F *function) { return reinterpret_cast<void *>(function); }

llvm::ArrayRef<LibraryCall> getLibraryCalls() {
  static const LibraryCall calls[] = {
      {allocateFrame.data(), addressOf(allocateFrameMemory)},
      {"memcpy", addressOf<void *(void *, const void *, size_t)>(std::memcpy)},
      {"memmove", addressOf<void *(void *, const void *, size_t)>(std::memmove)},
      {"memset", addressOf<void *(void *, int, size_t)>(std::memset)},
      {"fmod", addressOf<double(double, double)>(::fmod)},
      {"fmodf", addressOf<float(float, float)>(::fmodf)},
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
      {"__truncsfbf2", addressOf(truncateToBF16)},
      {"__truncdfbf2", addressOf(truncateDoubleToBF16)},
  };
  return calls;
}

} // namespace qd::cpu
