// The stand-in's devices, memory and streams.
#include "Control.h"
#include "Double.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace hipdouble {

namespace {

constexpr size_t memoryBytes = size_t(8) << 30, filledBytes = 1 << 20, alignment = 256;
constexpr uint8_t freshByte = 0xA5;

size_t roundUp(size_t value, size_t step) { return (value + step - 1) / step * step; }

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  for (char c : text + separator) {
    if (c != separator) {
      part += c;
    } else if (!part.empty()) {
      parts.push_back(std::move(part));
      part.clear();
    }
  }
  return parts;
}

std::vector<std::string> listLive() {
  Machine &all = machine();
  std::vector<std::string> rows;
  for (auto &[address, memory] : all.allocations)
    rows.push_back("memory of " + std::to_string(memory.bytes) + " bytes");
  static const char *const names[] = {"stream", "event", "module", "graph", "executable graph"};
  for (auto &[handle, object] : all.objects)
    rows.push_back(names[size_t(object->kind)]);
  return rows;
}

/// What QD_HIP_FAIL says.
std::vector<Failure> readFailures(const char *text) {
  std::vector<Failure> failures;
  for (const std::string &entry : split(text, ',')) {
    std::vector<std::string> parts = split(entry, ':');
    if (parts.size() == 3)
      failures.push_back({parts[0], unsigned(std::atoi(parts[1].c_str())), std::atoi(parts[2].c_str()),
                          parts[1].back() == '+'});
  }
  return failures;
}

/// At the end of the process.
struct Strict {
  ~Strict() {
    const char *strict = std::getenv("QD_HIP_STRICT");
    if (!strict || !*strict)
      return;
    std::vector<std::string> left = listLive();
    for (const std::string &row : left)
      std::fprintf(stderr, "stand-in for HIP: left behind: %s\n", row.c_str());
    if (!left.empty() || !machine().problems.empty())
      _exit(99);
  }
};

class ControlOfMachine final : public Control {
public:
  void reset(const std::string &chips) override {
    std::lock_guard<std::mutex> lock(machine().lock);
    machine().reset(chips);
    currentDevice = 0;
  }
  void fail(const std::string &function, unsigned call, int code, bool laterToo) override {
    std::lock_guard<std::mutex> lock(machine().lock);
    machine().failures.push_back({function, call, code, laterToo});
  }
  std::map<std::string, unsigned> calls() override { return machine().calls; }
  std::vector<std::string> problems() override { return machine().problems; }
  std::vector<std::string> live() override { return listLive(); }
  uint64_t pending() override {
    uint64_t count = 0;
    for (auto &queue : machine().defaults)
      count += queue->commands.size();
    for (auto &[handle, object] : machine().objects)
      if (object->kind == Object::Kind::Stream)
        count += static_cast<StreamObject &>(*object).queue->commands.size();
    return count;
  }
  void addBundle(const void *bytes, size_t size) override { hipdouble::addBundle(bytes, size, /*optLevel=*/2); }
};

} // namespace

thread_local int currentDevice = 0;

Machine &machine() {
  // Never destroyed: programs may call at their very end.
  static Machine *all = [] {
    static Strict atEnd;
    auto *made = new Machine;
    const char *chips = std::getenv("QD_HIP_DEVICES"), *failures = std::getenv("QD_HIP_FAIL");
    made->reset(chips ? chips : "gfx942");
    made->failures = readFailures(failures ? failures : "");
    return made;
  }();
  return *all;
}

void Machine::reset(const std::string &chipNames) {
  chips.clear();
  defaults.clear();
  for (const std::string &id : split(chipNames, ',')) {
    Chip chip;
    chip.id = id;
    chip.name = id.substr(0, id.find(':'));
    chip.lanes = chip.name.size() == 6 ? 64 : 32; // gfx9 and its numbers of three digits, gfx10 and later of four
    if (chip.name == "gfx950")
      chip.ldsBytes = 160 << 10;
    chips.push_back(chip);
    defaults.push_back(std::make_shared<Queue>());
    defaults.back()->device = int(defaults.size()) - 1;
  }
  errors.assign(chips.size(), success);
  for (auto &[address, memory] : allocations)
    munmap(memory.pages, memory.mapped);
  allocations.clear();
  allocated = 0;
  objects.clear();
  functions.clear();
  calls.clear();
  failures.clear();
  problems.clear();
}

int misuse(int code, const std::string &words) {
  std::fprintf(stderr, "stand-in for HIP: %s\n", words.c_str());
  machine().problems.push_back(words);
  return code;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

int allocate(uint64_t &address, size_t bytes) {
  Machine &all = machine();
  address = 0;
  if (!bytes)
    return success;
  if (bytes > memoryBytes || all.allocated + bytes > memoryBytes)
    return outOfMemory;
  // What lies behind the last page is nobody's.
  size_t page = size_t(sysconf(_SC_PAGE_SIZE)), used = roundUp(bytes, alignment), mapped = roundUp(used, page) + page;
  void *pages = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED)
    return outOfMemory;
  auto *first = static_cast<uint8_t *>(pages) + (mapped - page - used);
  std::memset(first, freshByte, std::min(bytes, filledBytes));
  mprotect(pages, mapped, PROT_NONE);
  address = reinterpret_cast<uint64_t>(first);
  all.allocations[address] = {currentDevice, bytes, mapped, static_cast<uint8_t *>(pages)};
  all.allocated += bytes;
  return success;
}

int release(uint64_t address) {
  Machine &all = machine();
  if (!address)
    return success;
  auto at = all.allocations.find(address);
  if (at == all.allocations.end())
    return misuse(invalidValue, "memory is freed that is none, or twice");
  finishDevice(at->second.device, /*blockingOnly=*/false);
  all.allocated -= at->second.bytes;
  // The pages go, the addresses stay taken.
  madvise(at->second.pages, at->second.mapped, MADV_DONTNEED);
  all.allocations.erase(at);
  return success;
}

const Allocation *findMemory(uint64_t address, size_t bytes) {
  Machine &all = machine();
  auto at = all.allocations.upper_bound(address);
  if (at == all.allocations.begin())
    return nullptr;
  --at;
  uint64_t offset = address - at->first;
  return offset <= at->second.bytes && bytes <= at->second.bytes - offset ? &at->second : nullptr;
}

size_t bytesFrom(uint64_t address) {
  auto at = machine().allocations.upper_bound(address);
  return at == machine().allocations.begin() ? 0 : std::prev(at)->first + std::prev(at)->second.bytes - address;
}

static void protect(int protection) {
  size_t page = size_t(sysconf(_SC_PAGE_SIZE));
  for (auto &[address, memory] : machine().allocations)
    mprotect(memory.pages, memory.mapped - page, protection);
}

Access::Access() { protect(PROT_READ | PROT_WRITE); }
Access::~Access() { protect(PROT_NONE); }

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

std::shared_ptr<Queue> queueOf(void *stream) {
  if (!stream)
    return machine().defaults[size_t(currentDevice)];
  auto object = findObject<StreamObject>(stream);
  return object ? object->queue : nullptr;
}

int give(Queue &queue, std::function<int()> run, const std::vector<Point> &after, bool mayCapture) {
  Machine &all = machine();
  if (queue.isInvalidated)
    return captureInvalidated;
  if (queue.captured && mayCapture) {
    queue.captured->push_back(std::move(run));
    return success;
  }
  Command command{std::move(run), after};
  std::shared_ptr<Queue> &legacy = all.defaults[size_t(queue.device)];
  if (legacy.get() == &queue) {
    for (auto &[handle, object] : all.objects)
      if (object->kind == Object::Kind::Stream) {
        auto &other = static_cast<StreamObject &>(*object).queue;
        if (other->isBlocking && other->device == queue.device)
          command.after.push_back({other, other->given});
      }
  } else if (queue.isBlocking) {
    command.after.push_back({legacy, legacy->given});
  }
  queue.commands.push_back(std::move(command));
  ++queue.given;
  return success;
}

void finish(const std::shared_ptr<Queue> &queue, uint64_t number) {
  while (queue->done < number) {
    if (queue->commands.empty()) {
      queue->done = queue->given;
      return;
    }
    Command command = std::move(queue->commands.front());
    queue->commands.pop_front();
    for (const Point &point : command.after)
      finish(point.queue, point.number);
    int code = command.run();
    ++queue->done;
    int &error = machine().errors[size_t(queue->device)];
    if (code && !error)
      error = code;
  }
}

void finishDevice(int device, bool blockingOnly) {
  Machine &all = machine();
  std::vector<std::shared_ptr<Queue>> queues{all.defaults[size_t(device)]};
  for (auto &[handle, object] : all.objects)
    if (object->kind == Object::Kind::Stream) {
      auto &queue = static_cast<StreamObject &>(*object).queue;
      if (queue->device == device && (queue->isBlocking || !blockingOnly))
        queues.push_back(queue);
    }
  for (auto &queue : queues)
    finish(queue, queue->given);
}

int takeError(int device) { return std::exchange(machine().errors[size_t(device)], int(success)); }

int breakCaptures(int code) {
  int result = success;
  for (auto &[handle, object] : machine().objects)
    if (object->kind == Object::Kind::Stream) {
      Queue &queue = *static_cast<StreamObject &>(*object).queue;
      if (queue.captured) {
        queue.isInvalidated = true;
        result = code;
      }
    }
  return result;
}

} // namespace hipdouble

extern "C" __attribute__((visibility("default"))) hipdouble::Control *hipDoubleControl() {
  static auto *control = new hipdouble::ControlOfMachine;
  return control;
}
