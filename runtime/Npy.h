// NumPy's .npy files, format versions 1 and 2 (and 3, the same layout with a UTF-8 header).
//
// Read: little-endian C-order bool, int8..int64, uint8..uint64, float16, float32, float64; two-byte void
// ('V2', which is how a bfloat16 array is saved) as bf16. Anything else, and any damage, is an error.
// Written: the same types; bf16 as uint16.
#ifndef QD_RUNTIME_NPY_H
#define QD_RUNTIME_NPY_H

#include "runtime/Array.h"

namespace qd::rt {

Expected<Array> parseNpy(const uint8_t *bytes, size_t size);
std::vector<uint8_t> formatNpy(const Array &array);

/// Errors name the file.
Expected<Array> readNpy(const std::string &path);
Error writeNpy(const std::string &path, const Array &array);

} // namespace qd::rt

#endif // QD_RUNTIME_NPY_H
