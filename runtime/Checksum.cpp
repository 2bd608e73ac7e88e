// Four sums run side by side over stripes of 32 bytes, so that the hash keeps up with memory.
#include "runtime/Checksum.h"

#include <cstring>

namespace qd::rt {

namespace {

constexpr uint64_t prime1 = 0x9E3779B185EBCA87, prime2 = 0xC2B2AE3D27D4EB4F, prime3 = 0x165667B19E3779F9,
                   prime4 = 0x85EBCA77C2B2AE63, prime5 = 0x27D4EB2F165667C5;

uint64_t rotate(uint64_t value, unsigned bits) { return value << bits | value >> (64 - bits); }

template <typename Word> uint64_t read(const uint8_t *bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

uint64_t round(uint64_t sum, uint64_t word) { return rotate(sum + word * prime2, 31) * prime1; }
uint64_t merge(uint64_t hash, uint64_t sum) { return (hash ^ round(0, sum)) * prime1 + prime4; }

} // namespace

uint64_t xxHash64(const uint8_t *bytes, size_t size) {
  size_t left = size;
  uint64_t hash = prime5;
  if (size >= 32) {
    uint64_t a = prime1 + prime2, b = prime2, c = 0, d = 0 - prime1;
    for (; left >= 32; left -= 32, bytes += 32) {
      a = round(a, read<uint64_t>(bytes));
      b = round(b, read<uint64_t>(bytes + 8));
      c = round(c, read<uint64_t>(bytes + 16));
      d = round(d, read<uint64_t>(bytes + 24));
    }
    hash = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
    hash = merge(merge(merge(merge(hash, a), b), c), d);
  }
  hash += size;
  for (; left >= 8; left -= 8, bytes += 8)
    hash = rotate(hash ^ round(0, read<uint64_t>(bytes)), 27) * prime1 + prime4;
  if (left >= 4) {
    hash = rotate(hash ^ read<uint32_t>(bytes) * prime1, 23) * prime2 + prime3;
    left -= 4;
    bytes += 4;
  }
  for (; left; --left, ++bytes)
    hash = rotate(hash ^ *bytes * prime5, 11) * prime1;
  hash = (hash ^ hash >> 33) * prime2;
  hash = (hash ^ hash >> 29) * prime3;
  return hash ^ hash >> 32;
}

} // namespace qd::rt
