// A host array: scalars of one type in C order with a shape. The currency between files, command lines and
// buffers.
#ifndef QD_RUNTIME_ARRAY_H
#define QD_RUNTIME_ARRAY_H

#include "runtime/Types.h"

namespace qd::rt {

struct Array {
  ScalarType type = ScalarType::F32;
  /// Integers carry no sign; this only remembers how a file or printer shows them.
  bool isUnsigned = false;
  std::vector<int64_t> shape;
  /// numScalars() scalars, little-endian.
  std::vector<uint8_t> data;

  size_t numScalars() const { return data.size() / scalarBytes(type); }
  uint64_t bits(size_t index) const { return loadScalar(type, data.data() + index * scalarBytes(type)); }
  void setBits(size_t index, uint64_t bits) {
    storeScalar(type, bits, data.data() + index * scalarBytes(type));
  }
};

/// An array of zeros; fails where the shape's size is negative or does not fit into memory.
Expected<Array> makeArray(ScalarType type, std::vector<int64_t> shape);

} // namespace qd::rt

#endif // QD_RUNTIME_ARRAY_H
