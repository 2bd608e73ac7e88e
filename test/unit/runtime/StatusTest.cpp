// What each function of qdrt.h says of wrong calls, by a table of all of them: QDRT_INVALID for handles that are null,
// freed, of another kind or another device, for closed devices, null places and sizes that do not fit; QDRT_FAILED
// where the driver fails. A function that the header has and no table names fails the test.
#include "DeviceTest.h"

#include <fstream>
#include <functional>
#include <regex>
#include <set>

using namespace qd::rt;

namespace {

enum Kind { List, Dev, Buf, Mod, Kern, Prep, Str, Ev, Gr, numKinds };
using Handles = std::vector<void *>;

template <typename Handle> Handle as(void *handle) { return static_cast<Handle>(handle); }

/// One object of each kind of a device.
struct Objects {
  void *of[numKinds] = {};
  void *other = nullptr; ///< a second buffer

  Objects(const char *name, const std::vector<uint8_t> &program) {
    qdrtDeviceList list;
    qdrtDevice device;
    qdrtModule module;
    qdrtKernel kernel;
    qdrtBuffer x, y;
    qdrtPrepared prepared;
    qdrtStream stream;
    qdrtEvent event;
    qdrtGraph graph;
    auto check = [](qdrtStatus status) { EXPECT_EQ(status, QDRT_OK) << qdrtErrorText(); };
    check(qdrtListDevices(&list));
    check(qdrtDeviceOpen(name, nullptr, &device));
    check(qdrtModuleLoad(device, program.data(), program.size(), "f", &module));
    check(qdrtModuleGetKernel(module, "scale", &kernel));
    check(qdrtBufferAllocate(device, count * 4, &x));
    check(qdrtBufferAllocate(device, count * 4, &y));
    std::vector<qdrtArgument> arguments = argumentsOf(x, y);
    check(qdrtPrepare(kernel, twoBlocks, arguments.data(), arguments.size(), &prepared));
    check(qdrtStreamCreate(device, &stream));
    check(qdrtEventCreate(device, &event));
    check(qdrtEventRecord(event, stream));
    check(qdrtGraphCreate(device, &graph));
    check(qdrtGraphAddFill(graph, x, 0, 0, 4));
    void *all[] = {list, device, x, module, kernel, prepared, stream, event, graph};
    std::copy(std::begin(all), std::end(all), of);
    other = y;
  }
  ~Objects() {
    for (int kind = 0; kind < numKinds; ++kind)
      free(static_cast<Kind>(kind), of[kind]);
    free(Buf, other);
  }
  static std::vector<qdrtArgument> argumentsOf(void *x, void *y) {
    std::vector<qdrtArgument> arguments = {qdrtArray(as<qdrtBuffer>(x), QDRT_F32, count),
                                           qdrtArray(as<qdrtBuffer>(y), QDRT_F32, count), qdrtScalarF32(2)};
    if (!DeviceTest::isHost())
      arguments.push_back(qdrtScalarI32(count));
    return arguments;
  }
  /// Kernels end with their module.
  static void free(Kind kind, void *handle) {
    switch (kind) {
    case List:
      return qdrtDeviceListFree(as<qdrtDeviceList>(handle));
    case Dev:
      return qdrtDeviceClose(as<qdrtDevice>(handle));
    case Buf:
      return qdrtBufferFree(as<qdrtBuffer>(handle));
    case Mod:
      return qdrtModuleFree(as<qdrtModule>(handle));
    case Prep:
      return qdrtPreparedFree(as<qdrtPrepared>(handle));
    case Str:
      return qdrtStreamFree(as<qdrtStream>(handle));
    case Ev:
      return qdrtEventFree(as<qdrtEvent>(handle));
    case Gr:
      return qdrtGraphFree(as<qdrtGraph>(handle));
    case Kern:
    case numKinds:
      return;
    }
  }
};

const std::set<std::string> freeing = {"qdrtDeviceListFree", "qdrtDeviceClose",  "qdrtBufferFree", "qdrtModuleFree",
                                       "qdrtPreparedFree",   "qdrtStreamFree",   "qdrtEventFree",  "qdrtGraphFree"};
const std::set<std::string> withoutErrors = {"qdrtApiVersion", "qdrtErrorText", "qdrtInitDeviceOptionsSized",
                                             "qdrtScalarI32",  "qdrtScalarI64", "qdrtScalarF32",
                                             "qdrtScalarF64",  "qdrtArray"};

//===----------------------------------------------------------------------===//
// Functions with a status
//===----------------------------------------------------------------------===//

/// What a handle may be beside a live one of the call's device.
enum Leave : unsigned { None = 0, MayBeNull = 1, MayBeForeign = 2 };
struct Taken {
  Kind kind;
  unsigned leave = None;
};

struct Function {
  const char *name;
  std::vector<Taken> takes;
  /// All else that it is given is right.
  std::function<qdrtStatus(const Handles &)> call;
  /// Whether it fails where all calls of the driver do.
  bool asksDriver = true;
};

float memory[count];
uint64_t number;
int flag;
double seconds;

/// Places for results; what they get is freed.
template <typename Handle, typename Call> qdrtStatus make(Kind kind, Call &&call) {
  Handle made = reinterpret_cast<Handle>(&flag);
  qdrtStatus status = call(&made);
  EXPECT_EQ(status != QDRT_OK, made == nullptr) << "what is not made is null";
  if (status == QDRT_OK)
    Objects::free(kind, made);
  return status;
}

/// In an order in which each call finds the objects as it needs them.
std::vector<Function> listFunctions() {
  constexpr Taken stream = {Str, MayBeNull};
  return {
      {"qdrtDeviceGetProperties",
       {{Dev}},
       [](const Handles &h) {
         qdrtDeviceProperties properties;
         properties.structSize = sizeof properties;
         return qdrtDeviceGetProperties(as<qdrtDevice>(h[0]), &properties);
       },
       false},
      {"qdrtDeviceSynchronize", {{Dev}}, [](const Handles &h) { return qdrtDeviceSynchronize(as<qdrtDevice>(h[0])); }},
      {"qdrtBufferAllocate",
       {{Dev}},
       [](const Handles &h) {
         return make<qdrtBuffer>(Buf, [&](qdrtBuffer *to) { return qdrtBufferAllocate(as<qdrtDevice>(h[0]), 8, to); });
       }},
      {"qdrtBufferUpload",
       {{Buf}},
       [](const Handles &h) { return qdrtBufferUpload(as<qdrtBuffer>(h[0]), 4, memory, 8); }},
      {"qdrtBufferDownload",
       {{Buf}},
       [](const Handles &h) { return qdrtBufferDownload(as<qdrtBuffer>(h[0]), 4, memory, 8); }},
      {"qdrtBufferFill", {{Buf}}, [](const Handles &h) { return qdrtBufferFill(as<qdrtBuffer>(h[0]), 4, 0, 8); }},
      {"qdrtBufferCopy",
       {{Buf, MayBeForeign}, {Buf, MayBeForeign}},
       [](const Handles &h) { return qdrtBufferCopy(as<qdrtBuffer>(h[0]), 0, as<qdrtBuffer>(h[1]), 8, 8); }},
      {"qdrtModuleLoad",
       {{Dev}},
       [](const Handles &h) {
         std::vector<uint8_t> program = DeviceTest::makeProgram();
         return make<qdrtModule>(Mod, [&](qdrtModule *to) {
           return qdrtModuleLoad(as<qdrtDevice>(h[0]), program.data(), program.size(), nullptr, to);
         });
       }},
      {"qdrtModuleGetKernel",
       {{Mod}},
       [](const Handles &h) {
         return make<qdrtKernel>(
             Kern, [&](qdrtKernel *to) { return qdrtModuleGetKernel(as<qdrtModule>(h[0]), "scale", to); });
       },
       false},
      {"qdrtKernelOccupancy",
       {{Kern}},
       [](const Handles &h) {
         qdrtStatus status = qdrtKernelOccupancy(as<qdrtKernel>(h[0]), &number, nullptr);
         // What a device does not tell is no error of the caller's.
         return status == QDRT_FAILED && DeviceTest::GetParam().device == std::string("vulkan") ? QDRT_OK : status;
       }},
      {"qdrtLaunch",
       {{Kern}, {Buf}, {Buf}},
       [](const Handles &h) {
         auto arguments = Objects::argumentsOf(h[1], h[2]);
         return qdrtLaunch(as<qdrtKernel>(h[0]), twoBlocks, arguments.data(), arguments.size(), &seconds);
       }},
      {"qdrtPrepare",
       {{Kern}, {Buf}, {Buf}},
       [](const Handles &h) {
         auto arguments = Objects::argumentsOf(h[1], h[2]);
         return make<qdrtPrepared>(Prep, [&](qdrtPrepared *to) {
           return qdrtPrepare(as<qdrtKernel>(h[0]), twoBlocks, arguments.data(), arguments.size(), to);
         });
       }},
      {"qdrtPreparedSetArgument",
       {{Prep}, {Buf}},
       [](const Handles &h) {
         qdrtArgument argument = qdrtArray(as<qdrtBuffer>(h[1]), QDRT_F32, count);
         return qdrtPreparedSetArgument(as<qdrtPrepared>(h[0]), 0, &argument);
       },
       false},
      {"qdrtPreparedSetGrid",
       {{Prep}},
       [](const Handles &h) { return qdrtPreparedSetGrid(as<qdrtPrepared>(h[0]), twoBlocks); },
       false},
      {"qdrtPreparedLaunch",
       {{Prep}, stream},
       [](const Handles &h) { return qdrtPreparedLaunch(as<qdrtPrepared>(h[0]), as<qdrtStream>(h[1])); }},
      {"qdrtStreamCreate",
       {{Dev}},
       [](const Handles &h) {
         return make<qdrtStream>(Str, [&](qdrtStream *to) { return qdrtStreamCreate(as<qdrtDevice>(h[0]), to); });
       }},
      {"qdrtStreamSynchronize", {{Str}}, [](const Handles &h) { return qdrtStreamSynchronize(as<qdrtStream>(h[0])); }},
      {"qdrtStreamQuery", {{Str}}, [](const Handles &h) { return qdrtStreamQuery(as<qdrtStream>(h[0]), &flag); }},
      {"qdrtStreamUpload",
       {{Buf}, stream},
       [](const Handles &h) { return qdrtStreamUpload(as<qdrtStream>(h[1]), as<qdrtBuffer>(h[0]), 4, memory, 8); }},
      {"qdrtStreamDownload",
       {{Buf}, stream},
       [](const Handles &h) { return qdrtStreamDownload(as<qdrtStream>(h[1]), as<qdrtBuffer>(h[0]), 4, memory, 8); }},
      {"qdrtStreamFill",
       {{Buf}, stream},
       [](const Handles &h) { return qdrtStreamFill(as<qdrtStream>(h[1]), as<qdrtBuffer>(h[0]), 4, 0, 8); }},
      {"qdrtStreamCopy",
       {{Buf}, {Buf}, stream},
       [](const Handles &h) {
         return qdrtStreamCopy(as<qdrtStream>(h[2]), as<qdrtBuffer>(h[0]), 0, as<qdrtBuffer>(h[1]), 8, 8);
       }},
      {"qdrtEventCreate",
       {{Dev}},
       [](const Handles &h) {
         return make<qdrtEvent>(Ev, [&](qdrtEvent *to) { return qdrtEventCreate(as<qdrtDevice>(h[0]), to); });
       }},
      {"qdrtEventRecord",
       {{Ev}, stream},
       [](const Handles &h) { return qdrtEventRecord(as<qdrtEvent>(h[0]), as<qdrtStream>(h[1])); }},
      {"qdrtEventSynchronize", {{Ev}}, [](const Handles &h) { return qdrtEventSynchronize(as<qdrtEvent>(h[0])); }},
      {"qdrtEventQuery", {{Ev}}, [](const Handles &h) { return qdrtEventQuery(as<qdrtEvent>(h[0]), &flag); }},
      {"qdrtEventElapsed",
       {{Ev}, {Ev}},
       [](const Handles &h) { return qdrtEventElapsed(as<qdrtEvent>(h[0]), as<qdrtEvent>(h[1]), &seconds); }},
      {"qdrtStreamWaitEvent",
       {{Ev, MayBeForeign}, {Str, MayBeNull | MayBeForeign}},
       [](const Handles &h) { return qdrtStreamWaitEvent(as<qdrtStream>(h[1]), as<qdrtEvent>(h[0])); }},
      {"qdrtGraphCreate",
       {{Dev}},
       [](const Handles &h) {
         return make<qdrtGraph>(Gr, [&](qdrtGraph *to) { return qdrtGraphCreate(as<qdrtDevice>(h[0]), to); });
       },
       false},
      {"qdrtGraphAddLaunch",
       {{Gr}, {Prep}},
       [](const Handles &h) { return qdrtGraphAddLaunch(as<qdrtGraph>(h[0]), as<qdrtPrepared>(h[1])); },
       false},
      {"qdrtGraphAddUpload",
       {{Gr}, {Buf}},
       [](const Handles &h) { return qdrtGraphAddUpload(as<qdrtGraph>(h[0]), as<qdrtBuffer>(h[1]), 4, memory, 8); },
       false},
      {"qdrtGraphAddDownload",
       {{Gr}, {Buf}},
       [](const Handles &h) { return qdrtGraphAddDownload(as<qdrtGraph>(h[0]), as<qdrtBuffer>(h[1]), 4, memory, 8); },
       false},
      {"qdrtGraphAddCopy",
       {{Gr}, {Buf}, {Buf}},
       [](const Handles &h) {
         return qdrtGraphAddCopy(as<qdrtGraph>(h[0]), as<qdrtBuffer>(h[1]), 0, as<qdrtBuffer>(h[2]), 8, 8);
       },
       false},
      {"qdrtGraphAddFill",
       {{Gr}, {Buf}},
       [](const Handles &h) { return qdrtGraphAddFill(as<qdrtGraph>(h[0]), as<qdrtBuffer>(h[1]), 4, 0, 8); },
       false},
      {"qdrtGraphLaunch",
       {{Gr}, stream},
       [](const Handles &h) { return qdrtGraphLaunch(as<qdrtGraph>(h[0]), as<qdrtStream>(h[1])); }},
  };
}

//===----------------------------------------------------------------------===//
// Functions that return nothing where they fail
//===----------------------------------------------------------------------===//

struct Question {
  const char *name;
  Kind kind;
  std::function<bool(void *)> getsAnswer;
};

const std::vector<Question> questions = {
    {"qdrtDeviceListSize", List, [](void *h) { return qdrtDeviceListSize(as<qdrtDeviceList>(h)) != 0; }},
    {"qdrtDeviceListName", List, [](void *h) { return qdrtDeviceListName(as<qdrtDeviceList>(h), 0) != nullptr; }},
    {"qdrtDeviceListText", List, [](void *h) { return qdrtDeviceListText(as<qdrtDeviceList>(h), 0) != nullptr; }},
    {"qdrtDeviceListPresent", List, [](void *h) { return qdrtDeviceListPresent(as<qdrtDeviceList>(h), 0) != 0; }},
    {"qdrtDeviceContext", Dev, [](void *h) { return qdrtDeviceContext(as<qdrtDevice>(h)) != nullptr; }},
    {"qdrtBufferBytes", Buf, [](void *h) { return qdrtBufferBytes(as<qdrtBuffer>(h)) != 0; }},
    {"qdrtBufferAddress", Buf, [](void *h) { return qdrtBufferAddress(as<qdrtBuffer>(h)) != 0; }},
    {"qdrtBufferMap", Buf, [](void *h) { return qdrtBufferMap(as<qdrtBuffer>(h)) != nullptr; }},
    {"qdrtModuleInterface", Mod, [](void *h) { return qdrtModuleInterface(as<qdrtModule>(h)) != nullptr; }},
    {"qdrtModuleWarnings", Mod, [](void *h) { return qdrtModuleWarnings(as<qdrtModule>(h)) != nullptr; }},
    {"qdrtModuleNumKernels", Mod, [](void *h) { return qdrtModuleNumKernels(as<qdrtModule>(h)) != 0; }},
    {"qdrtModuleKernelName", Mod, [](void *h) { return qdrtModuleKernelName(as<qdrtModule>(h), 0) != nullptr; }},
    {"qdrtStreamNative", Str, [](void *h) { return qdrtStreamNative(as<qdrtStream>(h)) != nullptr; }},
};

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

class StatusTest : public DeviceTest {
protected:
  void expectInvalid(const Function &function, const Handles &handles, size_t position, const char *what) {
    setText();
    EXPECT_EQ(function.call(handles), QDRT_INVALID) << function.name << ": handle " << position << " is " << what;
    EXPECT_EQ(std::string(qdrtErrorText()).find("many"), std::string::npos)
        << function.name << ": handle " << position << " is " << what;
    EXPECT_STRNE(qdrtErrorText(), "");
  }
  Handles handlesOf(const Function &function, const Objects &objects) {
    Handles handles;
    for (const Taken &taken : function.takes) {
      bool again = taken.kind == Buf && std::count(handles.begin(), handles.end(), objects.of[Buf]);
      handles.push_back(again ? objects.other : objects.of[taken.kind]);
    }
    return handles;
  }

private:
  /// An error that no call below gives.
  void setText() {
    qdrtDevice none;
    qdrtDeviceOpen("cuda:many", nullptr, &none);
  }
};

TEST_P(StatusTest, Handles) {
  std::vector<uint8_t> program = makeProgram();
  Objects own(GetParam().device, program), foreign(isHost() ? "interp" : GetParam().device, program),
      closed(GetParam().device, program);
  void *freed[numKinds];
  {
    Objects gone(GetParam().device, program);
    std::copy(std::begin(gone.of), std::end(gone.of), freed);
  }
  qdrtDeviceClose(as<qdrtDevice>(closed.of[Dev]));
  for (const Function &function : listFunctions()) {
    const Handles good = handlesOf(function, own);
    for (size_t i = 0; i < good.size(); ++i) {
      auto [kind, leave] = function.takes[i];
      auto with = [&](void *handle) {
        Handles handles = good;
        handles[i] = handle;
        return handles;
      };
      if (!(leave & MayBeNull))
        expectInvalid(function, with(nullptr), i, "null");
      expectInvalid(function, with(freed[kind]), i, "freed");
      expectInvalid(function, with(&number), i, "none");
      for (int other = 0; other < numKinds; ++other)
        if (other != kind)
          expectInvalid(function, with(own.of[other]), i, "of another kind");
      expectInvalid(function, with(closed.of[kind]), i, "of a closed device");
      if (good.size() > 1 && !(leave & MayBeForeign))
        expectInvalid(function, with(foreign.of[kind]), i, "of another device");
    }
    EXPECT_EQ(function.call(good), QDRT_OK) << function.name << ": " << qdrtErrorText();
  }
  for (const Question &question : questions) {
    for (void *handle : {static_cast<void *>(nullptr), freed[question.kind], static_cast<void *>(&number)})
      EXPECT_FALSE(question.getsAnswer(handle)) << question.name;
    for (int other = 0; other < numKinds; ++other)
      if (other != question.kind) {
        EXPECT_FALSE(question.getsAnswer(own.of[other])) << question.name;
      }
  }
  // Freeing what is no object is allowed, and frees nothing else.
  for (int kind = 0; kind < numKinds; ++kind)
    for (int other = 0; other < numKinds; ++other) {
      Objects::free(static_cast<Kind>(kind), nullptr);
      Objects::free(static_cast<Kind>(kind), freed[other]);
      if (other != kind)
        Objects::free(static_cast<Kind>(kind), own.of[other]);
    }
  EXPECT_EQ(qdrtGraphLaunch(as<qdrtGraph>(own.of[Gr]), as<qdrtStream>(own.of[Str])), QDRT_OK) << qdrtErrorText();
}

TEST_P(StatusTest, NullPlaces) {
  Objects own(GetParam().device, makeProgram());
  auto dev = as<qdrtDevice>(own.of[Dev]);
  auto kernel = as<qdrtKernel>(own.of[Kern]);
  auto buffer = as<qdrtBuffer>(own.of[Buf]);
  auto stream = as<qdrtStream>(own.of[Str]);
  auto event = as<qdrtEvent>(own.of[Ev]);
  auto graph = as<qdrtGraph>(own.of[Gr]);
  auto prepared = as<qdrtPrepared>(own.of[Prep]);
  std::vector<uint8_t> program = makeProgram();
  std::vector<qdrtArgument> arguments = Objects::argumentsOf(own.of[Buf], own.other);
  size_t size = arguments.size();
  qdrtPrepared none;
  qdrtModule noModule;
  qdrtKernel noKernel;
  const std::pair<const char *, qdrtStatus> results[] = {
      {"list", qdrtListDevices(nullptr)},
      {"open", qdrtDeviceOpen("cpu", nullptr, nullptr)},
      {"properties", qdrtDeviceGetProperties(dev, nullptr)},
      {"allocate", qdrtBufferAllocate(dev, 4, nullptr)},
      {"wrap", qdrtBufferWrap(dev, memory, 4, nullptr)},
      {"upload", qdrtBufferUpload(buffer, 0, nullptr, 4)},
      {"download", qdrtBufferDownload(buffer, 0, nullptr, 4)},
      {"load", qdrtModuleLoad(dev, program.data(), program.size(), nullptr, nullptr)},
      {"load of null", qdrtModuleLoad(dev, nullptr, 4, nullptr, &noModule)},
      {"kernel", qdrtModuleGetKernel(as<qdrtModule>(own.of[Mod]), "scale", nullptr)},
      {"kernel of null", qdrtModuleGetKernel(as<qdrtModule>(own.of[Mod]), nullptr, &noKernel)},
      {"kernel of no name", qdrtModuleGetKernel(as<qdrtModule>(own.of[Mod]), "", &noKernel)},
      {"launch without grid", qdrtLaunch(kernel, nullptr, arguments.data(), size, nullptr)},
      {"launch without arguments", qdrtLaunch(kernel, twoBlocks, nullptr, size, nullptr)},
      {"launch of too few", qdrtLaunch(kernel, twoBlocks, arguments.data(), size - 1, nullptr)},
      {"prepare", qdrtPrepare(kernel, twoBlocks, arguments.data(), size, nullptr)},
      {"prepare without grid", qdrtPrepare(kernel, nullptr, arguments.data(), size, &none)},
      {"prepare without arguments", qdrtPrepare(kernel, twoBlocks, nullptr, size, &none)},
      {"argument", qdrtPreparedSetArgument(prepared, 0, nullptr)},
      {"argument past the end", qdrtPreparedSetArgument(prepared, size, &arguments[0])},
      {"argument of another kind", qdrtPreparedSetArgument(prepared, 0, &arguments[2])},
      {"grid", qdrtPreparedSetGrid(prepared, nullptr)},
      {"stream", qdrtStreamCreate(dev, nullptr)},
      {"wrapped stream", qdrtStreamWrap(dev, nullptr, nullptr)},
      {"query", qdrtStreamQuery(stream, nullptr)},
      {"stream upload", qdrtStreamUpload(stream, buffer, 0, nullptr, 4)},
      {"stream download", qdrtStreamDownload(stream, buffer, 0, nullptr, 4)},
      {"event", qdrtEventCreate(dev, nullptr)},
      {"event query", qdrtEventQuery(event, nullptr)},
      {"elapsed", qdrtEventElapsed(event, event, nullptr)},
      {"graph", qdrtGraphCreate(dev, nullptr)},
      {"graph upload", qdrtGraphAddUpload(graph, buffer, 0, nullptr, 4)},
      {"graph download", qdrtGraphAddDownload(graph, buffer, 0, nullptr, 4)},
  };
  for (auto [what, status] : results)
    EXPECT_EQ(status, QDRT_INVALID) << what;
}

/// Ranges that a buffer has not, of every function that takes one.
TEST_P(StatusTest, Ranges) {
  Objects own(GetParam().device, makeProgram());
  auto x = as<qdrtBuffer>(own.of[Buf]), other = as<qdrtBuffer>(own.other);
  auto stream = as<qdrtStream>(own.of[Str]);
  auto graph = as<qdrtGraph>(own.of[Gr]);
  using Call = std::function<qdrtStatus(uint64_t offset, uint64_t bytes)>;
  const std::pair<const char *, Call> calls[] = {
      {"upload", [&](auto at, auto n) { return qdrtBufferUpload(x, at, memory, n); }},
      {"download", [&](auto at, auto n) { return qdrtBufferDownload(x, at, memory, n); }},
      {"fill", [&](auto at, auto n) { return qdrtBufferFill(x, at, 0, n); }},
      {"copy to", [&](auto at, auto n) { return qdrtBufferCopy(x, at, other, 0, n); }},
      {"copy from", [&](auto at, auto n) { return qdrtBufferCopy(x, 0, other, at, n); }},
      {"stream upload", [&](auto at, auto n) { return qdrtStreamUpload(stream, x, at, memory, n); }},
      {"stream download", [&](auto at, auto n) { return qdrtStreamDownload(stream, x, at, memory, n); }},
      {"stream fill", [&](auto at, auto n) { return qdrtStreamFill(stream, x, at, 0, n); }},
      {"stream copy to", [&](auto at, auto n) { return qdrtStreamCopy(stream, x, at, other, 0, n); }},
      {"stream copy from", [&](auto at, auto n) { return qdrtStreamCopy(stream, x, 0, other, at, n); }},
      {"graph upload", [&](auto at, auto n) { return qdrtGraphAddUpload(graph, x, at, memory, n); }},
      {"graph download", [&](auto at, auto n) { return qdrtGraphAddDownload(graph, x, at, memory, n); }},
      {"graph fill", [&](auto at, auto n) { return qdrtGraphAddFill(graph, x, at, 0, n); }},
      {"graph copy to", [&](auto at, auto n) { return qdrtGraphAddCopy(graph, x, at, other, 0, n); }},
      {"graph copy from", [&](auto at, auto n) { return qdrtGraphAddCopy(graph, x, 0, other, at, n); }},
  };
  constexpr uint64_t end = count * 4;
  const std::pair<uint64_t, uint64_t> bad[] = {{0, end + 1}, {end, 1},          {end + 1, 0}, {4, end},
                                               {UINT64_MAX, 1}, {UINT64_MAX, 2}, {1, UINT64_MAX}, {4, UINT64_MAX - 3}};
  for (auto &[what, call] : calls) {
    for (auto [offset, bytes] : bad)
      EXPECT_EQ(call(offset, bytes), QDRT_INVALID) << what << " of " << bytes << " bytes at " << offset;
    for (auto [offset, bytes] : {std::pair<uint64_t, uint64_t>{0, end}, {end, 0}, {0, 0}, {end - 4, 4}})
      EXPECT_EQ(call(offset, bytes), QDRT_OK)
          << what << " of " << bytes << " bytes at " << offset << ": " << qdrtErrorText();
  }
  // Ranges of one buffer that overlap.
  for (qdrtStatus status : {qdrtBufferCopy(x, 4, x, 0, 8), qdrtStreamCopy(stream, x, 4, x, 0, 8),
                            qdrtGraphAddCopy(graph, x, 4, x, 0, 8)})
    EXPECT_EQ(status, QDRT_INVALID);
}

/// Calls in a state that does not allow them, and grids and options out of their bounds.
TEST_P(StatusTest, States) {
  Objects own(GetParam().device, makeProgram());
  auto dev = as<qdrtDevice>(own.of[Dev]);
  auto stream = as<qdrtStream>(own.of[Str]);
  auto graph = as<qdrtGraph>(own.of[Gr]);
  auto prepared = as<qdrtPrepared>(own.of[Prep]);
  auto x = as<qdrtBuffer>(own.of[Buf]);
  qdrtEvent never;
  ASSERT_EQ(qdrtEventCreate(dev, &never), QDRT_OK);
  auto recorded = as<qdrtEvent>(own.of[Ev]);
  for (qdrtStatus status :
       {qdrtEventSynchronize(never), qdrtEventQuery(never, &flag), qdrtStreamWaitEvent(stream, never),
        qdrtEventElapsed(never, recorded, &seconds), qdrtEventElapsed(recorded, never, &seconds)}) {
    EXPECT_EQ(status, QDRT_INVALID);
    EXPECT_STREQ(qdrtErrorText(), "the event was never recorded");
  }
  qdrtEventFree(never);

  ASSERT_EQ(qdrtGraphAddLaunch(graph, prepared), QDRT_OK) << qdrtErrorText();
  qdrtArgument argument = qdrtArray(x, QDRT_F32, count);
  EXPECT_EQ(qdrtPreparedSetArgument(prepared, 0, &argument), QDRT_INVALID);
  EXPECT_EQ(qdrtPreparedSetGrid(prepared, twoBlocks), QDRT_INVALID);
  ASSERT_EQ(qdrtGraphLaunch(graph, stream), QDRT_OK) << qdrtErrorText();
  for (qdrtStatus status : {qdrtGraphAddLaunch(graph, prepared), qdrtGraphAddFill(graph, x, 0, 0, 4),
                            qdrtGraphAddUpload(graph, x, 0, memory, 4), qdrtGraphAddDownload(graph, x, 0, memory, 4),
                            qdrtGraphAddCopy(graph, x, 0, as<qdrtBuffer>(own.other), 0, 4)}) {
    EXPECT_EQ(status, QDRT_INVALID);
    EXPECT_STREQ(qdrtErrorText(), "the graph was launched: nothing can be added to it");
  }

  std::vector<qdrtArgument> arguments = Objects::argumentsOf(x, own.other);
  qdrtPrepared none;
  std::vector<std::array<uint32_t, 3>> grids = {{0, 1, 1}, {1, 0, 1}, {1, 1, 0}};
  qdrtDeviceProperties properties;
  properties.structSize = sizeof properties;
  ASSERT_EQ(qdrtDeviceGetProperties(dev, &properties), QDRT_OK);
  for (unsigned dim = 0; dim < 3; ++dim)
    if (properties.maxGrid[dim] < UINT32_MAX) {
      grids.push_back({1, 1, 1});
      grids.back()[dim] = static_cast<uint32_t>(properties.maxGrid[dim] + 1);
    }
  for (auto [gx, gy, gz] : grids) {
    const uint32_t grid[3] = {gx, gy, gz};
    EXPECT_EQ(qdrtLaunch(as<qdrtKernel>(own.of[Kern]), grid, arguments.data(), arguments.size(), nullptr),
              QDRT_INVALID);
    EXPECT_EQ(qdrtPrepare(as<qdrtKernel>(own.of[Kern]), grid, arguments.data(), arguments.size(), &none), QDRT_INVALID);
  }
  bool takesPointers = GetParam().device != std::string("vulkan");
  qdrtBuffer wrapped;
  EXPECT_EQ(qdrtBufferWrap(dev, nullptr, 4, &wrapped), QDRT_INVALID);
  EXPECT_EQ(qdrtBufferWrap(dev, memory, 4, &wrapped), takesPointers ? QDRT_OK : QDRT_INVALID) << qdrtErrorText();
  qdrtBufferFree(wrapped);
  EXPECT_EQ(qdrtBufferAllocate(dev, UINT64_MAX, &wrapped), QDRT_FAILED);
  qdrtStream native;
  bool hasStreams = takesPointers && !isHost();
  EXPECT_EQ(qdrtStreamWrap(dev, nullptr, &native), hasStreams ? QDRT_OK : QDRT_INVALID);
  qdrtStreamFree(native);

  qdrtDevice device;
  for (const char *name : {"", "gpu", "cpu:1", "interp:0", "sim", "sim:", "cuda:", "cuda:x", "cuda:1x", "cuda:-1",
                           "hip:99999999999", "vulkan:0:0", "best:0"})
    EXPECT_EQ(qdrtDeviceOpen(name, nullptr, &device), QDRT_INVALID) << name;
  for (const char *name : {"cuda:9", "hip:9", "vulkan:9"})
    EXPECT_EQ(qdrtDeviceOpen(name, nullptr, &device), QDRT_FAILED) << name;
}

/// What the driver says is QDRT_FAILED, and each call survives it.
TEST_P(StatusTest, DriverFails) {
  if (!GetParam().library)
    return;
  Objects own(GetParam().device, makeProgram());
  constexpr const char *launchFailed = "719";
  for (const Function &function : listFunctions()) {
    ASSERT_EQ(setenv("FAKE_STATUS", launchFailed, 1), 0);
    EXPECT_EQ(function.call(handlesOf(function, own)), function.asksDriver ? QDRT_FAILED : QDRT_OK) << function.name;
    unsetenv("FAKE_STATUS");
  }
}

TEST(StatusTableTest, EveryFunctionIsTested) {
  std::set<std::string> tested = freeing;
  tested.insert(withoutErrors.begin(), withoutErrors.end());
  for (const Function &function : listFunctions())
    tested.insert(function.name);
  for (const Question &question : questions)
    tested.insert(question.name);
  // Those that take no handle, or which devices refuse.
  tested.insert({"qdrtListDevices", "qdrtDeviceOpen", "qdrtBufferWrap", "qdrtStreamWrap"});
  std::ifstream file(QDRT_HEADER);
  std::string header((std::istreambuf_iterator<char>(file)), {});
  ASSERT_FALSE(header.empty());
  std::set<std::string> declared;
  const std::regex declaration(R"(\nQDRT_API [\w *]*\b(qdrt\w+)\()");
  for (std::sregex_iterator it(header.begin(), header.end(), declaration), end; it != end; ++it)
    declared.insert((*it)[1]);
  EXPECT_EQ(declared, tested);
}

INSTANTIATE_TEST_SUITE_P(Devices, StatusTest, everyDevice(), nameOf);

} // namespace
