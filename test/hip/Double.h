// The stand-in for libamdhip64: what its files share. One lock guards everything; the functions here are called with it
// held.
//
// A stream's commands are carried out when somebody waits for them, and no earlier: what a program reads without
// waiting, it reads unchanged. Handles are numbers that are never used again. Memory of a device cannot be touched by
// the host, begins with other bytes than zeros, and stays away when it is freed.
#ifndef QD_TEST_HIP_DOUBLE_H
#define QD_TEST_HIP_DOUBLE_H

#include "CodeObject.h"

#include "test/amdgcn/Launch.h"

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace hipdouble {

/// Statuses, by HIP's numbers.
enum Status : int {
  success = 0,
  invalidValue = 1,
  outOfMemory = 2,
  invalidConfiguration = 9,
  noDevice = 100,
  invalidDevice = 101,
  invalidImage = 200,
  noBinaryForGpu = 209,
  invalidHandle = 400,
  notFound = 500,
  notReady = 600,
  illegalAddress = 700,
  contextIsDestroyed = 709,
  launchFailure = 719,
  cooperativeTooLarge = 720,
  captureUnsupported = 900,
  captureInvalidated = 901,
  captureUnmatched = 903,
  captureImplicit = 906
};
const char *statusName(int code);
const char *statusWords(int code);

struct Chip {
  /// "gfx90a:sramecc+:xnack-", and the part before the first colon.
  std::string id, name;
  unsigned lanes = 64;
  uint64_t ldsBytes = 64 << 10;
};

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

struct Object {
  enum class Kind { Stream, Event, Module, Graph, Executable } kind;
  int device;
};

/// A point in a stream's commands.
struct Queue;
struct Point {
  std::shared_ptr<Queue> queue;
  uint64_t number = 0;
};

struct Command {
  /// Its failure is reported by the next call that waits.
  std::function<int()> run;
  std::vector<Point> after;
};
using Steps = std::vector<std::function<int()>>;

struct Queue : std::enable_shared_from_this<Queue> {
  int device = 0;
  /// Waits for the default stream, and that for it.
  bool isBlocking = true;
  std::deque<Command> commands;
  uint64_t given = 0, done = 0;
  /// What is recorded instead of being given.
  std::unique_ptr<Steps> captured;
  bool isInvalidated = false;
};

struct StreamObject : Object {
  static constexpr Kind ownKind = Kind::Stream;
  std::shared_ptr<Queue> queue;
};
struct EventObject : Object {
  static constexpr Kind ownKind = Kind::Event;
  Point point;
  /// When the command was carried out, in nanoseconds.
  std::shared_ptr<int64_t> time;
};
/// A bundle's variant and its QIR.
struct Program;
struct ModuleObject : Object {
  static constexpr Kind ownKind = Kind::Module;
  CodeObject code;
  /// Null where no bundle holds this code.
  std::shared_ptr<Program> program;
  /// Null before the code itself is carried out.
  std::unique_ptr<amdgcn::Program> machine;
};
struct GraphObject : Object {
  static constexpr Kind ownKind = Kind::Graph;
  Steps steps;
};
struct ExecutableObject : Object {
  static constexpr Kind ownKind = Kind::Executable;
  Steps steps;
};
struct Function {
  std::weak_ptr<ModuleObject> module;
  const KernelCode *kernel;
};

struct Allocation {
  int device;
  size_t bytes, mapped;
  /// Of the mapping, which ends with the allocation.
  uint8_t *pages;
};

struct Failure {
  std::string function;
  unsigned call;
  int code;
  bool laterToo;
};

struct Machine {
  std::mutex lock;
  std::vector<Chip> chips;
  std::vector<std::shared_ptr<Queue>> defaults;
  /// The failure of a command, by device, until it is reported.
  std::vector<int> errors;
  std::map<uint64_t, Allocation> allocations;
  uint64_t allocated = 0;
  std::map<uint64_t, std::shared_ptr<Object>> objects;
  std::map<uint64_t, Function> functions;
  uint64_t nextHandle = 0x7d00000000001000;
  std::map<std::string, unsigned> calls;
  std::vector<Failure> failures;
  std::vector<std::string> problems;
  /// The last bundle's come first.
  std::deque<std::shared_ptr<Program>> programs;

  void reset(const std::string &chipNames);
};
Machine &machine();
extern thread_local int currentDevice;

/// Notes a use of the interface that a real driver need not survive.
int misuse(int code, const std::string &words);

template <typename T> void *addObject(std::shared_ptr<T> object) {
  object->kind = T::ownKind;
  object->device = currentDevice;
  uint64_t handle = machine().nextHandle += 16;
  machine().objects[handle] = std::move(object);
  return reinterpret_cast<void *>(handle);
}
/// Null where the handle is no live object of that kind.
template <typename T> std::shared_ptr<T> findObject(void *handle) {
  auto at = machine().objects.find(reinterpret_cast<uint64_t>(handle));
  if (at == machine().objects.end() || at->second->kind != T::ownKind)
    return nullptr;
  return std::static_pointer_cast<T>(at->second);
}
inline void removeObject(void *handle) { machine().objects.erase(reinterpret_cast<uint64_t>(handle)); }

//===----------------------------------------------------------------------===//
// Memory and streams
//===----------------------------------------------------------------------===//

int allocate(uint64_t &address, size_t bytes);
int release(uint64_t address);
/// The allocation that `bytes` bytes at the address lie in, or null.
const Allocation *findMemory(uint64_t address, size_t bytes);
/// Bytes from the address to its allocation's end.
size_t bytesFrom(uint64_t address);

/// Lets the process touch the devices' memory.
class Access {
public:
  Access();
  ~Access();
};

/// The stream of a handle, of which null is the current device's default one; null where there is none.
std::shared_ptr<Queue> queueOf(void *stream);
/// Gives it a command, or captures that; `mayCapture` is false for what is never captured.
int give(Queue &queue, std::function<int()> run, const std::vector<Point> &after = {}, bool mayCapture = true);
/// Carries out all up to a command, and what that waits for.
void finish(const std::shared_ptr<Queue> &queue, uint64_t number);
/// All that a device's default stream waits for, or all streams of the device.
void finishDevice(int device, bool blockingOnly);
/// The failure of a device's command that was not reported yet.
int takeError(int device);
/// Ends all captures with the status where there are any, as calls do that wait by themselves.
int breakCaptures(int code);

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

struct Geometry {
  std::array<uint32_t, 3> grid, block;
  uint32_t sharedBytes;
};

void addBundle(const void *bytes, size_t size, unsigned optLevel);
/// Where the code of a module comes from; null where no bundle tells.
std::shared_ptr<Program> findProgram(const std::string &code);
/// Whether the code object's arguments are those that the interface describes; notes where not.
bool checkLayout(const Program &program, const CodeObject &code);
/// Carries out a launch of the program by sim, with the segment of arguments.
int runKernel(Program &program, const KernelCode &kernel, const Geometry &geometry, const std::string &segment,
              int device);
/// Whether launches carry out the code itself, as QD_HIP_EXECUTE=code says.
bool executesCode();
/// Carries a launch out by the module's machine code.
int runCode(ModuleObject &module, const KernelCode &kernel, const Geometry &geometry, const std::string &segment,
            bool isCooperative);
/// Checks that the addresses in the segment are the device's.
int checkAddresses(const KernelCode &kernel, const std::string &segment, int device);

} // namespace hipdouble

#endif // QD_TEST_HIP_DOUBLE_H
