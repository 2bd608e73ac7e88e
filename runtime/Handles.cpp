// The table of handles: chunks that are never freed, so that readers need no lock. A place's word is the live handle
// itself, or 0.
#include "runtime/Handles.h"

#include <atomic>
#include <mutex>
#include <pthread.h>

namespace qd::rt {

namespace {

constexpr uint64_t chunkSize = 1024, mostChunks = 4096;
constexpr unsigned generationShift = 24, kindShift = 56;
constexpr uint64_t indexMask = (uint64_t(1) << generationShift) - 1;

struct Slot {
  std::atomic<uint64_t> handle{0};
  uint64_t generation = 0;
  unsigned forks = 0;
  std::shared_ptr<void> object;
};

struct Table {
  std::atomic<Slot *> chunks[mostChunks] = {};
  std::mutex mutex;
  /// Guarded by the mutex.
  std::vector<uint64_t> free;
  uint64_t used = 0;
};

std::atomic<unsigned> forks{0};

Table &table();

/// The mutex is free in the child, and the table whole.
void followForks() {
  pthread_atfork([] { table().mutex.lock(); }, [] { table().mutex.unlock(); },
                 [] {
                   ++forks;
                   table().mutex.unlock();
                 });
}

/// Never destroyed: handles may outlive every other static.
Table &table() {
  static Table *instance = [] {
    auto *made = new Table;
    followForks();
    return made;
  }();
  return *instance;
}

Slot *slotOf(HandleKind kind, uint64_t handle) {
  uint64_t index = handle & indexMask;
  if (!handle || handle >> kindShift != static_cast<uint64_t>(kind) || index >= chunkSize * mostChunks)
    return nullptr;
  Slot *chunk = table().chunks[index / chunkSize].load(std::memory_order_acquire);
  if (!chunk)
    return nullptr;
  Slot &slot = chunk[index % chunkSize];
  return slot.handle.load(std::memory_order_acquire) == handle ? &slot : nullptr;
}

} // namespace

std::string_view handleName(HandleKind kind) {
  switch (kind) {
  case HandleKind::DeviceList:
    return "a list of devices";
  case HandleKind::Device:
    return "a device";
  case HandleKind::Buffer:
    return "a buffer";
  case HandleKind::Module:
    return "a module";
  case HandleKind::Kernel:
    return "a kernel";
  case HandleKind::Launch:
    return "a prepared launch";
  case HandleKind::Stream:
    return "a stream";
  case HandleKind::Event:
    return "an event";
  case HandleKind::Graph:
    break;
  }
  return "a graph";
}

unsigned countForks() { return forks.load(std::memory_order_relaxed); }

uint64_t makeHandle(HandleKind kind, std::shared_ptr<void> object) {
  Table &all = table();
  std::lock_guard<std::mutex> lock(all.mutex);
  uint64_t index;
  if (!all.free.empty()) {
    index = all.free.back();
    all.free.pop_back();
  } else {
    index = all.used;
    if (index == chunkSize * mostChunks)
      return 0;
    if (index % chunkSize == 0)
      all.chunks[index / chunkSize].store(new Slot[chunkSize], std::memory_order_release);
    ++all.used;
  }
  Slot &slot = all.chunks[index / chunkSize].load(std::memory_order_relaxed)[index % chunkSize];
  slot.object = std::move(object);
  slot.forks = countForks();
  ++slot.generation;
  uint64_t handle = static_cast<uint64_t>(kind) << kindShift |
                    (slot.generation << generationShift & ((uint64_t(1) << kindShift) - 1)) | index;
  slot.handle.store(handle, std::memory_order_release);
  return handle;
}

void *findHandle(HandleKind kind, uint64_t handle) {
  Slot *slot = slotOf(kind, handle);
  return slot ? slot->object.get() : nullptr;
}

std::shared_ptr<void> shareHandle(HandleKind kind, uint64_t handle) {
  std::lock_guard<std::mutex> lock(table().mutex);
  Slot *slot = slotOf(kind, handle);
  return slot ? slot->object : nullptr;
}

std::shared_ptr<void> endHandle(HandleKind kind, uint64_t handle) {
  Table &all = table();
  std::lock_guard<std::mutex> lock(all.mutex);
  Slot *slot = slotOf(kind, handle);
  if (!slot)
    return nullptr;
  slot->handle.store(0, std::memory_order_release);
  all.free.push_back(handle & indexMask);
  if (slot->forks != countForks())
    new std::shared_ptr<void>(slot->object);
  return std::move(slot->object);
}

} // namespace qd::rt
