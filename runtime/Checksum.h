// XXH64, the hash of bundles' entries (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md), with seed 0.
#ifndef QD_RUNTIME_CHECKSUM_H
#define QD_RUNTIME_CHECKSUM_H

#include <cstddef>
#include <cstdint>

namespace qd::rt {

uint64_t xxHash64(const uint8_t *bytes, size_t size);

} // namespace qd::rt

#endif // QD_RUNTIME_CHECKSUM_H
