// Making host arrays. Memory is taken only for sizes that this machine could hold: a failing allocation would
// end the process.
#include "runtime/Array.h"

#include <unistd.h>

namespace qd::rt {

Expected<Array> makeArray(ScalarType type, std::vector<int64_t> shape) {
  uint64_t bytes = scalarBytes(type);
  bool tooLarge = false;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0)
      return fail("shape ", shapeText(shape), " has a negative extent");
    empty |= extent == 0;
    tooLarge |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes);
  }
  uint64_t memory =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (!empty && (tooLarge || bytes > memory))
    return fail("an array of ", shapeText(shape), " ", scalarName(type), " exceeds this machine's memory of ",
                memory >> 20, " MiB");
  Array array;
  array.type = type;
  array.shape = std::move(shape);
  array.data.resize(empty ? 0 : bytes);
  return array;
}

} // namespace qd::rt
