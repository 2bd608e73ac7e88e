//===- Memory.h - arrays as plain and atomic accesses see them, on SPIR-V -----------------===//
//
// SPIR-V has no atomic accesses of floats and of less than 32 bits that all devices have. An array that the kernel
// accesses atomically is one of words: a shared array is declared so, with a word for each element; a buffer has a
// second variable of its binding.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_SPIRV_MEMORY_H
#define QD_CODEGEN_SPIRV_MEMORY_H

#include "codegen/spirv/KernelLowering.h"

namespace qd::spirv {

struct ArrayInfo {
  Id variable;
  spv::StorageClass storage;
  mlir::Type element;
  llvm::ArrayRef<int64_t> shape; ///< of an array of static shape
  bool isWords = false;          ///< such an array, of a word an element

  ArrayInfo(KernelLowering &l, mlir::Value array);

  bool isShared() const { return storage == spv::StorageClass::Workgroup; }
  bool isStatic() const { return storage != spv::StorageClass::StorageBuffer; }
  /// The element's type in memory, for plain accesses.
  Id getMemoryType(KernelLowering &l) const;
  unsigned getWordBits() const { return element.getIntOrFloatBitWidth() == 64 ? 64 : 32; }
};

/// An element's position in its array, an integer of `bits`.
struct Subscript {
  Id id;
  unsigned bits;
};
Subscript getSubscript(KernelLowering &l, const ArrayInfo &array, mlir::ValueRange operands,
                       llvm::ArrayRef<int64_t> literals);

/// A value as the low bits of a word (u32, or u64 of 64-bit types), and back.
Id toWord(KernelLowering &l, Id value, mlir::Type element);
Id fromWord(KernelLowering &l, Id word, mlir::Type element);

/// Runs `generate` where `condition` holds. Returns the block that control comes from where it does not, and the
/// last block of the other path.
std::pair<Id, Id> emitIf(KernelLowering &l, Id condition, llvm::function_ref<void()> generate);

} // namespace qd::spirv

#endif
