//===- Races.cpp - finds accesses that nothing puts in order ---------------------------------===//

#include "codegen/interp/Races.h"

#include "codegen/interp/Machine.h"

using namespace mlir;

namespace qd::interp {

//===----------------------------------------------------------------------===//
// Names of threads, subgroups and blocks in what a thread knows
//===----------------------------------------------------------------------===//

/// A block has at most 1024 threads.
static constexpr unsigned numberBits = 12, subgroupTag = 1 << 11, blockTag = (1 << numberBits) - 1,
                          sharedTag = blockTag - 1;

static uint64_t nameThread(uint64_t block, unsigned thread) { return block << numberBits | thread; }
static uint64_t nameSubgroup(uint64_t block, unsigned first) { return block << numberBits | subgroupTag | first; }
/// A block has two counts of barriers: of those that order all memory, and of those that order shared memory.
static uint64_t nameBlock(uint64_t block, bool isShared) {
  return block << numberBits | (isShared ? sharedTag : blockTag);
}

template <typename Map> static void join(Map &into, const Map &from) {
  for (auto [name, count] : from) {
    uint64_t &known = into[name];
    known = std::max(known, count);
  }
}

RaceDetector::Access RaceDetector::describe(const Thread &thread, const Array *array) {
  Block &block = thread.block();
  Access access{&thread.instruction,  block.number(),              thread.index(),       block.barriers,
                block.sharedBarriers, thread.subgroup.firstThread, thread.subgroup.syncs};
  access.isShared = array && array->isShared();
  if (auto clock = clocks.find(nameThread(access.block, access.thread)); clock != clocks.end())
    access.releases = clock->second.releases;
  return access;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

bool RaceDetector::isOrdered(const Access &earlier, const Access &later) {
  if (!earlier.instruction)
    return true;
  // Both access one element.
  auto countBarriers = [&](const Access &access) { return later.isShared ? access.sharedBarriers : access.barriers; };
  if (earlier.block == later.block) {
    if (earlier.thread == later.thread || countBarriers(earlier) < countBarriers(later))
      return true;
    if (earlier.firstOfSubgroup == later.firstOfSubgroup && earlier.syncs < later.syncs)
      return true;
  }
  auto isKnownTo = [&](const Knowledge &known) {
    return earlier.releases < known.lookup(nameThread(earlier.block, earlier.thread)) ||
           earlier.syncs < known.lookup(nameSubgroup(earlier.block, earlier.firstOfSubgroup)) ||
           countBarriers(earlier) < known.lookup(nameBlock(earlier.block, later.isShared));
  };
  auto clock = clocks.find(nameThread(later.block, later.thread));
  auto block = blockKnown.find(later.block);
  return (clock != clocks.end() && isKnownTo(clock->second.known)) ||
         (block != blockKnown.end() && isKnownTo(block->second));
}

/// How far two threads are from each other.
template <typename A, typename B> static Scope getDistance(const A &a, const B &b) {
  if (a.block != b.block)
    return Scope::device;
  return a.firstOfSubgroup == b.firstOfSubgroup ? Scope::subgroup : Scope::block;
}

bool RaceDetector::conflicts(const Access &earlier, const Access &later) {
  if (!(earlier.isWrite || later.isWrite) || isOrdered(earlier, later))
    return false;
  bool areAtomic = earlier.isAtomic && later.isAtomic;
  return !areAtomic || getDistance(earlier, later) > std::min(earlier.scope, later.scope);
}

bool RaceDetector::report(const Thread &thread, const Array &array, int64_t element, const Access &earlier) {
  Launch &launch = thread.block().launch;
  std::string place = launch.printPlace(earlier.block, earlier.thread);
  bool areAtomic = earlier.isAtomic && thread.instruction.op->hasAttr("order");
  thread.fail("races on element " + llvm::Twine(element) + " of " + array.name + ": " + place + " " +
              (earlier.isWrite ? "writes" : "reads") + " it at " +
              printLocation(earlier.instruction->op->getLoc()) +
              (areAtomic ? ", and one of both is outside the other's scope" : ", with no barrier of both in between"));
  return false;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

static const uint8_t *getAddress(const Array &array, int64_t element) {
  return array.data + element * getStorageBytes(array.scalar);
}

bool RaceDetector::check(const Thread &thread, const Array &array, int64_t element, History &history,
                         const Access &access) {
  for (const Access &other : history.others)
    if (conflicts(other, access))
      return report(thread, array, element, other);
  return !conflicts(history.write, access) || report(thread, array, element, history.write);
}

/// Keeps what a later access may race with. A write of what stands there already takes the earlier one's place.
void RaceDetector::record(History &history, const Access &access, bool isRepeated) {
  // More accesses that nothing orders would only find the race earlier.
  constexpr unsigned maxOthers = 8;
  auto isCovered = [&](const Access &other) {
    bool isStronger = access.isWrite || (!other.isWrite && (other.isAtomic || !access.isAtomic));
    return isStronger && isOrdered(other, access);
  };
  llvm::erase_if(history.others, isCovered);
  if (access.isWrite) {
    if (!isRepeated && !isCovered(history.write) && history.others.size() < maxOthers)
      history.others.push_back(history.write);
    history.write = access;
  } else if (history.others.size() < maxOthers) {
    history.others.push_back(access);
  }
}

bool RaceDetector::checkRead(const Thread &thread, const Array &array, int64_t element) {
  History &history = memory[getAddress(array, element)];
  Access access = describe(thread, &array);
  if (!check(thread, array, element, history, access))
    return false;
  record(history, access);
  return true;
}

bool RaceDetector::checkWrite(const Thread &thread, const Array &array, int64_t element, uint64_t bits) {
  History &history = memory[getAddress(array, element)];
  Access access = describe(thread, &array);
  access.isWrite = true;
  bool isRepeated = history.write.instruction && !history.write.isAtomic && history.bits == bits;
  for (const Access &other : history.others)
    if (!(isRepeated && other.isWrite && !other.isAtomic) && conflicts(other, access))
      return report(thread, array, element, other);
  if (!isRepeated && conflicts(history.write, access))
    return report(thread, array, element, history.write);
  record(history, access, isRepeated);
  history.bits = bits;
  history.messages.clear();
  return true;
}

//===----------------------------------------------------------------------===//
// Releases and acquires
//===----------------------------------------------------------------------===//

void RaceDetector::acquire(const Access &access, Clock &clock, const Message &message) {
  if (getDistance(message, access) <= message.scope)
    join(clock.known, *message.knowledge);
}

std::shared_ptr<const RaceDetector::Knowledge> RaceDetector::release(const Access &access, Clock &clock) {
  Knowledge knowledge = blockKnown.lookup(access.block);
  join(knowledge, clock.known);
  knowledge[nameThread(access.block, access.thread)] = ++clock.releases;
  if (access.syncs)
    knowledge[nameSubgroup(access.block, access.firstOfSubgroup)] = access.syncs;
  if (access.barriers)
    knowledge[nameBlock(access.block, /*isShared=*/false)] = access.barriers;
  if (access.sharedBarriers)
    knowledge[nameBlock(access.block, /*isShared=*/true)] = access.sharedBarriers;
  return std::make_shared<const Knowledge>(std::move(knowledge));
}

bool RaceDetector::checkAtomic(const Thread &thread, const Array &array, int64_t element, AtomicAccess atomic) {
  History &history = memory[getAddress(array, element)];
  Access access = describe(thread, &array);
  access.isAtomic = true;
  access.isWrite = atomic.writes;
  access.scope = atomic.scope;
  if (!check(thread, array, element, history, access))
    return false;
  record(history, access);

  Clock &clock = clocks[nameThread(access.block, access.thread)];
  bool acquires = atomic.order == Order::acquire || atomic.order == Order::acq_rel;
  bool releases = atomic.order == Order::release || atomic.order == Order::acq_rel;
  if (atomic.reads)
    for (Message message : history.messages) {
      message.scope = std::min(message.scope, atomic.scope);
      auto isSame = [&](const Message &other) {
        return other.knowledge == message.knowledge && other.scope == message.scope;
      };
      if (acquires)
        acquire(access, clock, message);
      else if (llvm::none_of(clock.pending, isSame))
        clock.pending.push_back(message);
    }
  if (!atomic.writes)
    return true;
  // A store starts anew what others receive; a change of what is there adds to it.
  if (!atomic.reads)
    history.messages.clear();
  if (releases) {
    // Who receives this one has all that it has acquired, too.
    if (acquires && atomic.scope == Scope::device)
      history.messages.clear();
    history.messages.push_back({access.block, access.firstOfSubgroup, atomic.scope, release(access, clock)});
    return true;
  }
  for (Scope scope : {Scope::subgroup, Scope::block, Scope::device})
    if (auto knowledge = clock.fenced[unsigned(scope)])
      history.messages.push_back(
          {access.block, access.firstOfSubgroup, std::min(scope, atomic.scope), std::move(knowledge)});
  return true;
}

void RaceDetector::fence(const Thread &thread, Scope scope) {
  Access access = describe(thread, nullptr);
  Clock &clock = clocks[nameThread(access.block, access.thread)];
  for (Message message : clock.pending) {
    message.scope = std::min(message.scope, scope);
    acquire(access, clock, message);
  }
  if (scope == Scope::device)
    clock.pending.clear();
  for (unsigned narrower = 0; narrower < unsigned(scope); ++narrower)
    clock.fenced[narrower].reset();
  clock.fenced[unsigned(scope)] = release(access, clock);
}

//===----------------------------------------------------------------------===//
// Meetings and ends
//===----------------------------------------------------------------------===//

void RaceDetector::meet(const Block &block) {
  if (clocks.empty())
    return;
  Knowledge &together = blockKnown[block.number()];
  for (unsigned thread = 0; thread < block.numThreads(); ++thread)
    if (auto clock = clocks.find(nameThread(block.number(), thread)); clock != clocks.end()) {
      join(together, clock->second.known);
      clock->second.known.clear();
    }
}

void RaceDetector::meet(const Subgroup &subgroup) {
  Knowledge together;
  for (uint64_t lanes = subgroup.lanes; lanes; lanes &= lanes - 1) {
    unsigned thread = subgroup.firstThread + llvm::countr_zero(lanes);
    if (auto clock = clocks.find(nameThread(subgroup.block.number(), thread)); clock != clocks.end())
      join(together, clock->second.known);
  }
  if (together.empty())
    return;
  for (uint64_t lanes = subgroup.lanes; lanes; lanes &= lanes - 1)
    clocks[nameThread(subgroup.block.number(), subgroup.firstThread + llvm::countr_zero(lanes))].known = together;
}

void RaceDetector::meetAll() { memory.clear(); }

void RaceDetector::forget(const Block &block) {
  for (const Array &array : block.arrays)
    if (array.isStatic())
      for (int64_t element = 0; element < array.count() * array.perElement; ++element)
        memory.erase(getAddress(array, element));
  for (unsigned thread = 0; thread < block.numThreads() && !clocks.empty(); ++thread)
    clocks.erase(nameThread(block.number(), thread));
  blockKnown.erase(block.number());
}

} // namespace qd::interp
