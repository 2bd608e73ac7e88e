//===- Differential.h - the cpu device against the interpreter -----------------------------===//

#ifndef QD_TEST_UNIT_CPU_DIFFERENTIAL_H
#define QD_TEST_UNIT_CPU_DIFFERENTIAL_H

#include "TestKernel.h"

#include <random>

namespace qd::test {

/// A buffer of any QIR scalar, as bytes.
struct Array {
  std::string type;
  int64_t count;
  std::vector<uint8_t> bytes;
};

unsigned getBytes(llvm::StringRef type);
unsigned getBits(llvm::StringRef type);
bool isFloat(llvm::StringRef type);

enum class Values {
  Zero,
  Any,      ///< random bits and the type's edge cases
  Small,    ///< -60 to 60, or 0 to 120 where unsigned is meant by the reader
  Positive, ///< 1 to 100
  Shift,    ///< 0 to the type's bits less 1
};
Array makeArray(llvm::StringRef type, int64_t count, Values values, unsigned seed = 1);

/// Runs kernel @k of `text` on both devices and compares all buffers: NaNs are equal, and zeros with
/// `zerosAreEqual` whatever their sign.
void expectLikeInterp(llvm::StringRef text, unsigned lanes, std::array<uint32_t, 3> grid,
                      const std::vector<Array> &arrays, bool zerosAreEqual = false, unsigned optLevel = 2,
                      llvm::StringRef cpu = "");

} // namespace qd::test

#endif
