//===- Races.h - finds accesses that nothing puts in order ---------------------------------===//
//
// Purpose: remembers, for each element of memory, who last wrote and read it, and reports two accesses of
// different threads, one of them a write, with no barrier or sync of both in between. Two writes of the same value are
// let pass.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_INTERP_RACES_H
#define QD_CODEGEN_INTERP_RACES_H

#include "llvm/ADT/DenseMap.h"
#include <cstdint>

namespace qd::interp {

class Block;
struct Array;
struct Instruction;
struct Thread;

class RaceDetector {
public:
  /// Whether the access is in order with all earlier ones; if not, it is reported.
  bool checkRead(const Thread &thread, const Array &array, int64_t element);
  bool checkWrite(const Thread &thread, const Array &array, int64_t element, uint64_t bits);
  /// The block's shared memory ends with it.
  void forget(const Block &block);

private:
  /// Which thread did what, and how many barriers its block, and syncs its subgroup, had passed.
  struct Access {
    const Instruction *instruction = nullptr;
    uint64_t block = 0;
    unsigned thread = 0;
    uint64_t barriers = 0;
    unsigned firstOfSubgroup = 0;
    uint64_t syncs = 0;
  };
  struct History {
    Access write;
    uint64_t bits = 0;
    /// Two readers stand for all: a later writer is another thread than one of them at least.
    Access reads[2];
  };

  static Access describe(const Thread &thread);
  static bool isOrdered(const Access &earlier, const Access &later);
  static bool report(const Thread &thread, const Array &array, int64_t element, const Access &earlier,
                     const char *verb);

  llvm::DenseMap<const uint8_t *, History> memory;
};

} // namespace qd::interp

#endif
