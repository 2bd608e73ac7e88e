//===- Races.h - finds accesses that nothing puts in order ---------------------------------===//
//
// Purpose: remembers, for each element of memory, who accessed it last, and reports two accesses of different threads,
// one of them a write, that nothing puts in order. In order are accesses with a barrier or sync of both in between, and
// those with a release and an acquire in between, as in C++: a thread that acquires, by an access or by a fence behind
// it, what another one wrote after or by a release, knows what that one knew. Two atomic accesses of one element do not
// race where each is in the other's scope; two plain writes of the same value are let pass.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_INTERP_RACES_H
#define QD_CODEGEN_INTERP_RACES_H

#include "ir/Dialect.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <array>
#include <cstdint>
#include <memory>

namespace qd::interp {

class Block;
class Subgroup;
struct Array;
struct Instruction;
struct Thread;

/// How an atomic access is meant.
struct AtomicAccess {
  Order order;
  Scope scope;
  bool reads, writes;
};

class RaceDetector {
public:
  /// Whether the access is in order with all earlier ones; if not, it is reported.
  bool checkRead(const Thread &thread, const Array &array, int64_t element);
  bool checkWrite(const Thread &thread, const Array &array, int64_t element, uint64_t bits);
  /// The same for an atomic access, which also releases and acquires.
  bool checkAtomic(const Thread &thread, const Array &array, int64_t element, AtomicAccess atomic);
  void fence(const Thread &thread, Scope scope);
  /// A barrier of the block, a sync of the subgroup: its threads know what each of them knew.
  void meet(const Block &block);
  void meet(const Subgroup &subgroup);
  /// A barrier of the grid: what came before it comes before all that follows.
  void meetAll();
  /// The block has ended, and its shared memory with it.
  void forget(const Block &block);

private:
  /// Who did what, and when: how many barriers its block, syncs its subgroup and releases itself had passed.
  struct Access {
    const Instruction *instruction = nullptr;
    uint64_t block = 0;
    unsigned thread = 0;
    uint64_t barriers = 0;       ///< that order all memory
    uint64_t sharedBarriers = 0; ///< that order shared memory
    unsigned firstOfSubgroup = 0;
    uint64_t syncs = 0;
    uint64_t releases = 0;
    bool isWrite = false, isAtomic = false, isShared = false;
    Scope scope = Scope::device;
  };

  /// What comes before now: for a thread, subgroup or block its accesses with a smaller count of releases, syncs or
  /// barriers.
  using Knowledge = llvm::DenseMap<uint64_t, uint64_t>;

  /// What a thread released: for those in its scope who acquire it.
  struct Message {
    uint64_t block;
    unsigned firstOfSubgroup;
    Scope scope;
    std::shared_ptr<const Knowledge> knowledge;
  };

  struct History {
    Access write;
    uint64_t bits = 0;
    /// Earlier accesses that `write` is not in order with, and later reads.
    llvm::SmallVector<Access, 2> others;
    llvm::SmallVector<Message, 1> messages; ///< that a read of what is there receives
  };

  /// A thread that has released or acquired.
  struct Clock {
    uint64_t releases = 0;
    Knowledge known;
    std::array<std::shared_ptr<const Knowledge>, 3> fenced; ///< by scope: at its last fence
    llvm::SmallVector<Message, 1> pending;                  ///< read, for its next fence to acquire
  };

  Access describe(const Thread &thread, const Array *array);
  bool isOrdered(const Access &earlier, const Access &later);
  bool conflicts(const Access &earlier, const Access &later);
  bool check(const Thread &thread, const Array &array, int64_t element, History &history, const Access &access);
  void record(History &history, const Access &access, bool isRepeated = false);
  void acquire(const Access &access, Clock &clock, const Message &message);
  std::shared_ptr<const Knowledge> release(const Access &access, Clock &clock);
  bool report(const Thread &thread, const Array &array, int64_t element, const Access &earlier);

  llvm::DenseMap<const uint8_t *, History> memory;
  llvm::DenseMap<uint64_t, Clock> clocks;        ///< by thread
  llvm::DenseMap<uint64_t, Knowledge> blockKnown; ///< by block: at its last barrier
};

} // namespace qd::interp

#endif
