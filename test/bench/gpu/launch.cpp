// What a launch costs the host: prepared launches and graphs of the runtime against cuLaunchKernel and cuGraphLaunch of
// the same code, in turns within one run.
//
//   ninja bench-launch
//   qdc test/bench/gpu/launch.qir -target=nvptx:sm_90,spirv:vulkan1.3 -o launch.qdb
//   qdc test/bench/gpu/launch.qir -target=nvptx:sm_90 --emit=ptx -o launch.ptx
//   bench-launch launch.qdb launch.ptx          and on other devices: bench-launch launch.qdb vulkan
//
// The program, the bundle and the PTX are all that the machine with the GPU needs. "call" is the host's time in the
// calls, "whole" includes the wait for the last one; both a launch, medians of the rounds. A ratio below 1 says that
// ours is faster. Exits with 1 where CUDA's goals are missed: 1.05 for launches and 1.02 for graphs.
#include "runtime/File.h"
#include "runtime/Stream.h"
#include "runtime/qdrt.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr int launches = 500, graphLaunches = 50, rounds = 101, elements = 32;

[[noreturn]] void stop(const std::string &why) {
  std::fprintf(stderr, "bench-launch: error: %s\n", why.c_str());
  std::exit(2);
}

void check(qdrtStatus status) {
  if (status != QDRT_OK)
    stop(qdrtErrorText());
}

/// CUDA's driver as a program without this library would call it.
struct Raw {
  template <typename Function> void get(Function *&function, const char *symbol) {
    function = reinterpret_cast<Function *>(dlsym(library, symbol));
    if (!function)
      stop(std::string("the driver has no ") + symbol);
  }
  void check(int status, const char *what) {
    if (status)
      stop(std::string(what) + ": status " + std::to_string(status));
  }

  explicit Raw(void *context) {
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
      stop(dlerror());
    get(setCurrent, "cuCtxSetCurrent");
    get(moduleLoad, "cuModuleLoadData");
    get(getFunction, "cuModuleGetFunction");
    get(memAlloc, "cuMemAlloc_v2");
    get(streamCreate, "cuStreamCreate");
    get(streamSynchronize, "cuStreamSynchronize");
    get(launch, "cuLaunchKernel");
    get(beginCapture, "cuStreamBeginCapture_v2");
    get(endCapture, "cuStreamEndCapture");
    get(instantiate, "cuGraphInstantiateWithFlags");
    get(graphLaunch, "cuGraphLaunch");
    check(setCurrent(context), "cuCtxSetCurrent");
  }

  void *library;
  int (*setCurrent)(void *);
  int (*moduleLoad)(void **, const void *);
  int (*getFunction)(void **, void *, const char *);
  int (*memAlloc)(uint64_t *, size_t);
  int (*streamCreate)(void **, unsigned);
  int (*streamSynchronize)(void *);
  int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
  int (*beginCapture)(void *, int);
  int (*endCapture)(void *, void **);
  int (*instantiate)(void **, void *, unsigned long long);
  int (*graphLaunch)(void *, void *);
};

struct Row {
  std::string name;
  std::function<void()> give, wait;
  int perRound = 1;
  /// The row that it is compared with, and the most that it may be of it; -1 for none.
  int base = -1;
  double goal = 0;
  std::vector<double> call = {}, whole = {};
};

double median(std::vector<double> &values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3)
    stop("usage: bench-launch LAUNCH.qdb LAUNCH.ptx|DEVICE");
  bool isCuda = std::strstr(argv[2], ".ptx");
  auto program = qd::rt::readFile(argv[1]);
  if (!program)
    stop(program.message());

  qdrtDevice device;
  check(qdrtDeviceOpen(isCuda ? "cuda" : argv[2], nullptr, &device));
  qdrtModule module;
  qdrtKernel touch;
  check(qdrtModuleLoad(device, program->data(), program->size(), argv[1], &module));
  check(qdrtModuleGetKernel(module, "touch", &touch));
  qdrtBuffer x, y;
  check(qdrtBufferAllocate(device, elements * sizeof(float), &x));
  check(qdrtBufferAllocate(device, elements * sizeof(float), &y));
  check(qdrtBufferFill(x, 0, 0, elements * sizeof(float)));
  qdrtArgument arguments[] = {qdrtScalarI32(elements), qdrtScalarF32(2), qdrtArray(x, QDRT_F32, elements),
                              qdrtArray(y, QDRT_F32, elements)};
  const uint32_t grid[3] = {1, 1, 1};
  qdrtPrepared prepared;
  qdrtStream stream;
  qdrtGraph graph;
  check(qdrtPrepare(touch, grid, arguments, 4, &prepared));
  check(qdrtStreamCreate(device, &stream));
  check(qdrtGraphCreate(device, &graph));
  for (int i = 0; i < graphLaunches; ++i)
    check(qdrtGraphAddLaunch(graph, prepared));

  std::vector<Row> rows;
  auto wait = [&] { check(qdrtStreamSynchronize(stream)); };
  // All that these point at lives to the end of main.
  void *rawStream = nullptr, *rawFunction = nullptr, *rawGraph = nullptr;
  std::vector<uint64_t> slots;
  std::vector<void *> parameters;
  if (isCuda) {
    auto ptx = qd::rt::readFile(argv[2]);
    if (!ptx)
      stop(ptx.message());
    ptx->push_back(0);
    static Raw raw(qdrtDeviceContext(device));
    void *rawModule = nullptr;
    raw.check(raw.moduleLoad(&rawModule, ptx->data()), "cuModuleLoadData");
    raw.check(raw.getFunction(&rawFunction, rawModule, "touch"), "cuModuleGetFunction");
    raw.check(raw.streamCreate(&rawStream, 0), "cuStreamCreate");
    uint32_t a;
    float two = 2;
    std::memcpy(&a, &two, sizeof a);
    slots = {elements, a, qdrtBufferAddress(x), qdrtBufferAddress(y)};
    for (uint64_t &slot : slots)
      parameters.push_back(&slot);
    auto launch = [&] {
      raw.check(raw.launch(rawFunction, 1, 1, 1, 32, 1, 1, 0, rawStream, parameters.data(), nullptr), "cuLaunchKernel");
    };
    void *captured = nullptr;
    raw.check(raw.beginCapture(rawStream, 2), "cuStreamBeginCapture");
    for (int i = 0; i < graphLaunches; ++i)
      launch();
    raw.check(raw.endCapture(rawStream, &captured), "cuStreamEndCapture");
    raw.check(raw.instantiate(&rawGraph, captured, 0), "cuGraphInstantiate");
    auto rawWait = [&] { raw.check(raw.streamSynchronize(rawStream), "cuStreamSynchronize"); };
    rows.push_back({"cuLaunchKernel", launch, rawWait, launches});
    rows.push_back({"cuGraphLaunch", [&] { raw.check(raw.graphLaunch(rawGraph, rawStream), "cuGraphLaunch"); }, rawWait,
                    launches / graphLaunches});
  }
  rows.push_back({"qdrtPreparedLaunch", [&] { check(qdrtPreparedLaunch(prepared, stream)); }, wait, launches,
                  isCuda ? 0 : -1, 1.05});
  rows.push_back({"qdrtGraphLaunch", [&] { check(qdrtGraphLaunch(graph, stream)); }, wait, launches / graphLaunches,
                  isCuda ? 1 : -1, 1.02});

  using Clock = std::chrono::steady_clock;
  auto microseconds = [](Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); };
  // The first round warms up.
  for (int round = 0; round <= rounds; ++round)
    for (Row &row : rows) {
      row.wait();
      auto start = Clock::now();
      for (int i = 0; i < row.perRound; ++i)
        row.give();
      auto given = Clock::now();
      row.wait();
      auto end = Clock::now();
      if (round) {
        row.call.push_back(microseconds(given - start) / row.perRound);
        row.whole.push_back(microseconds(end - start) / row.perRound);
      }
    }

  bool missed = false;
  std::printf("%-20s %12s %12s   ratio of calls, of the whole\n", "", "call (us)", "whole (us)");
  std::vector<std::pair<double, double>> medians;
  for (Row &row : rows) {
    medians.push_back({median(row.call), median(row.whole)});
    auto [call, whole] = medians.back();
    std::printf("%-20s %12.3f %12.3f", row.name.c_str(), call, whole);
    if (row.base >= 0) {
      double ofCalls = call / medians[row.base].first, ofWhole = whole / medians[row.base].second;
      std::printf("   %.3f %.3f  (goal %.2f)", ofCalls, ofWhole, row.goal);
      missed |= ofCalls > row.goal;
    }
    std::printf("\n");
  }
  std::printf("a graph has %d launches\n", graphLaunches);
  return missed;
}
