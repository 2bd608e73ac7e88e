// Bench.cpp - the cpu device beside C++ on the same machine:  bench-cpu [-filter=TEXT] [-mib=N] [-kernels=FOLDER]
//
// Each kernel of this folder runs through the compiler's C interface, and beside it the same work in C++ (Rows.cpp),
// for 1 MiB and 256 MiB (or N) in all arrays together, on one worker and on two. Samples take turns, so that what else
// the machine does meets all alike; each begins with calls that are not timed, so that workers are awake and on
// processors of their own, and the arrays in their caches. Prints, in Markdown, the median speed in GB/s read and written
// of the best C++ row and of the kernel, and the ratio of the two; results are compared with plain loops first.
#include "Rows.h"
#include "compiler/qdc.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
double seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

[[noreturn]] void die(const std::string &message) {
  std::fprintf(stderr, "bench-cpu: %s\n", message.c_str());
  std::exit(1);
}

/// Workers that wait for their shares without sleeping, which is the best that a C++ program can do; while others are
/// measured they sleep.
class Team {
public:
  explicit Team(unsigned size) : size(size) {
    for (unsigned worker = 1; worker < size; ++worker)
      threads.emplace_back([this, worker] { serve(worker); });
  }
  ~Team() {
    stopping = true;
    setAwake(true);
    for (std::thread &thread : threads)
      thread.join();
  }

  void setAwake(bool is) {
    std::lock_guard<std::mutex> lock(mutex);
    awake = is;
    caller = sched_getcpu();
    wake.notify_all();
  }

  /// `row` over `count` elements, each worker's share a multiple of `unit`.
  void run(Row row, const Arrays &arrays, int64_t count, int64_t unit) {
    task = {row, &arrays, count, unit};
    left.store(size - 1, std::memory_order_relaxed);
    generation.fetch_add(1, std::memory_order_release);
    work(0);
    while (left.load(std::memory_order_acquire))
      pause();
  }

private:
  struct Task {
    Row row;
    const Arrays *arrays;
    int64_t count, unit;
  };
  void serve(unsigned worker) {
    for (unsigned seen = 0; !stopping;) {
      if (generation.load(std::memory_order_acquire) != seen) {
        ++seen;
        work(worker);
        left.fetch_sub(1, std::memory_order_release);
      } else if (!awake) {
        std::unique_lock<std::mutex> lock(mutex);
        wake.wait(lock, [this] { return awake.load(); });
        leaveProcessor(caller);
      } else {
        pause();
      }
    }
  }
  /// Linux may wake a thread on its waker's processor, where it would spin against its caller.
  static void leaveProcessor(int processor) {
    cpu_set_t allowed, others;
    if (sched_getcpu() != processor || sched_getaffinity(0, sizeof allowed, &allowed))
      return;
    others = allowed;
    CPU_CLR(processor, &others);
    if (CPU_COUNT(&others) && !sched_setaffinity(0, sizeof others, &others))
      sched_setaffinity(0, sizeof allowed, &allowed);
  }
  static void pause() {
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
  }
  void work(unsigned worker) {
    int64_t units = task.count / task.unit;
    task.row(*task.arrays, units * worker / size * task.unit, units * (worker + 1) / size * task.unit);
  }

  unsigned size;
  Task task = {};
  std::atomic<unsigned> generation{0}, left{0};
  std::atomic<bool> stopping{false}, awake{false};
  std::mutex mutex;
  std::condition_variable wake;
  int caller = -1; ///< its processor; guarded by the mutex
  std::vector<std::thread> threads;
};

struct Memory {
  explicit Memory(size_t bytes) {
    constexpr size_t page = size_t(2) << 20;
    bytes = (bytes + page - 1) / page * page;
    data = std::aligned_alloc(page, bytes);
    if (!data)
      die("no memory");
    madvise(data, bytes, MADV_HUGEPAGE);
    std::memset(data, 1, bytes);
  }
  Memory(const Memory &) = delete;
  ~Memory() { std::free(data); }
  template <typename T> T *as() { return static_cast<T *>(data); }
  void *data;
};

uint32_t hash(uint64_t i) {
  uint64_t x = i * 0x9E3779B97F4A7C15ull + 77;
  x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9ull;
  return uint32_t(x ^ x >> 32);
}

/// One size of one benchmark.
struct Run {
  int64_t count;
  Memory &a, &b, &c, &d;
};

struct Bench {
  const char *name, *file, *kernel;
  int64_t unit;     ///< elements that belong together
  int64_t perBlock; ///< elements of a block
  int64_t held;     ///< bytes of an element in all arrays, sums left out
  double bytes;     ///< read and written for an element
  std::vector<char> args;
  std::function<void(Run &)> fill;
  std::function<bool(Run &)> isRight;
};

void fillFloats(Run &run) {
  for (int64_t i = 0; i < run.count; ++i)
    run.a.as<float>()[i] = float(hash(i) % 101) * 0.25f;
}
void fillIntegers(Run &run) {
  for (int64_t i = 0; i < run.count; ++i)
    run.a.as<int32_t>()[i] = int32_t(hash(i));
}
void fillDoubles(Run &run) {
  for (int64_t i = 0; i < run.count; ++i)
    run.a.as<double>()[i] = double(hash(i) % 1001) * 0.25;
}
void fillPairs(Run &run) {
  for (int64_t i = 0; i < run.count; ++i) {
    run.a.as<float>()[i] = float(hash(i)) * 0x1p-32f - 0.5f;
    run.b.as<int32_t>()[i] = i & 31;
  }
}
void fillTwo(Run &run) {
  fillFloats(run);
  for (int64_t i = 0; i < run.count; ++i)
    run.b.as<float>()[i] = float(hash(i + 5) % 64);
}

template <typename T, int width> bool areSums(Run &run) {
  for (int64_t row = 0; row < run.count / width; ++row) {
    T sum = 0;
    for (int k = 0; k < width; ++k)
      sum = T(sum + run.a.as<T>()[row * width + k]);
    if (std::memcmp(&sum, run.c.as<T>() + row, sizeof sum))
      return false;
  }
  return true;
}
template <int width> bool areQuotients(Run &run) {
  for (int64_t row = 0; row < run.count; row += width) {
    const float *x = run.a.as<float>() + row, *o = run.c.as<float>() + row;
    float sum = 0;
    for (int k = 0; k < width; ++k)
      sum += x[k];
    for (int k = 0; k < width; ++k)
      if (!(std::fabs(o[k] - x[k] / sum) <= 1e-6f))
        return false;
  }
  return true;
}
bool areScans(Run &run) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < run.count; ++i) {
    sum = (i % 32 ? sum : 0) + run.a.as<uint32_t>()[i];
    if (run.c.as<uint32_t>()[i] != sum)
      return false;
  }
  return true;
}
bool areSorted(Run &run) {
  for (int64_t row = 0; row < run.count; row += 32) {
    const float *in = run.a.as<float>() + row, *keys = run.c.as<float>() + row;
    const int32_t *values = run.d.as<int32_t>() + row;
    uint32_t seen = 0;
    for (int k = 0; k < 32; ++k) {
      if (values[k] < 0 || values[k] > 31 || in[values[k]] != keys[k] || (k && keys[k] < keys[k - 1]))
        return false;
      seen |= 1u << values[k];
    }
    if (~seen)
      return false;
  }
  return true;
}
bool areCounts(Run &run) {
  int32_t bins[256] = {};
  for (int64_t i = 0; i < run.count; ++i)
    ++bins[run.a.as<int32_t>()[i] & 255];
  return !std::memcmp(bins, run.c.data, sizeof bins);
}
bool areRanks(Run &run) {
  for (int64_t row = 0; row < run.count; row += 256) {
    const int32_t *x = run.a.as<int32_t>() + row, *o = run.c.as<int32_t>() + row;
    int32_t next[257] = {};
    for (int i = 0; i < 256; ++i)
      ++next[(x[i] & 255) + 1];
    for (int bin = 0; bin < 256; ++bin)
      next[bin + 1] += next[bin];
    for (int i = 0; i < 256; ++i)
      if (o[i] != next[x[i] & 255]++)
        return false;
  }
  return true;
}
bool areBranches(Run &run) {
  for (int64_t i = 0; i < run.count; ++i) {
    float x = run.a.as<float>()[i];
    if (run.c.as<float>()[i] != (x > 12.f ? 2.f * x + 1.f : x - 2.f))
      return false;
  }
  return true;
}
bool areTurns(Run &run) {
  for (int64_t i = 0; i < run.count; ++i) {
    float x = run.a.as<float>()[i], v = run.b.as<float>()[i];
    int turns = x > 12.f ? 0 : int(x) & 7;
    if (x > 12.f)
      v = 2.f * x + v;
    for (int k = 0; k < turns; ++k)
      v = v * 0.5f + x;
    if (!(std::fabs(run.c.as<float>()[i] - v) <= 1e-4f))
      return false;
  }
  return true;
}

const std::vector<Bench> benches = {
    {"sum32 f32", "sum32_f32", "sum32_f32", 32, 256, 4, 4 + 4 / 32., {'a', 'c'}, fillFloats, areSums<float, 32>},
    {"sum32 i32", "sum32_i32", "sum32_i32", 32, 256, 4, 4 + 4 / 32., {'a', 'c'}, fillIntegers, areSums<uint32_t, 32>},
    {"sum32 f64", "sum32_f64", "sum32_f64", 32, 256, 8, 8 + 8 / 32., {'a', 'c'}, fillDoubles, areSums<double, 32>},
    {"norm32", "norm32", "norm32", 32, 256, 8, 8, {'a', 'c'}, fillFloats, areQuotients<32>},
    {"norm256", "norm256", "norm256", 256, 256, 8, 8, {'a', 'c'}, fillFloats, areQuotients<256>},
    {"scan32", "scan32", "scan32", 32, 256, 8, 8, {'a', 'c'}, fillIntegers, areScans},
    {"sort32 kv", "sort32", "sort32", 512, 256, 16, 16, {'a', 'b', 'c', 'd'}, fillPairs, areSorted},
    {"reduce256", "reduce256", "reduce256", 256, 256, 4, 4 + 4 / 256., {'a', 'c'}, fillFloats, areSums<float, 256>},
    {"reduce256 tree", "reduce256_tree", "reduce256_tree", 256, 256, 4, 4 + 4 / 256., {'a', 'c'}, fillFloats,
     areSums<float, 256>},
    {"hist256", "hist256", "hist256", 4, 16384, 4, 4, {'a', 'h'}, fillIntegers, areCounts},
    {"rank256", "rank256", "rank256", 256, 256, 8, 8, {'a', 'c'}, fillIntegers, areRanks},
    {"saxpy if", "saxpy_if", "saxpy_if", 1024, 256, 8, 8, {'a', 'c', '2'}, fillFloats, areBranches},
    {"saxpy loop", "saxpy_loop", "saxpy_loop", 1024, 256, 12, 12, {'a', 'b', 'c', '2'}, fillTwo, areTurns},
};

std::string readFile(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    die("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A kernel that is loaded for a number of workers.
class Loaded {
public:
  Loaded(const Bench &bench, const std::string &folder, unsigned threads) : bench(bench) {
    std::string path = folder + "/" + bench.file + ".qir", text = readFile(path);
    qdcHostOptions options = {};
    options.structSize = sizeof options;
    qdcInitHostOptions(&options);
    options.device = "cpu";
    options.threads = threads;
    char *diagnostics = nullptr;
    module = qdcHostLoad(text.data(), text.size(), path.c_str(), &options, &diagnostics);
    if (!module)
      die(diagnostics ? diagnostics : "no module");
  }
  Loaded(const Loaded &) = delete;
  ~Loaded() { qdcHostUnload(module); }

  void bind(Run &run) {
    args.clear();
    for (char which : bench.args) {
      qdcHostArg arg = {};
      if (which == '2') {
        float two = 2;
        std::memcpy(&arg.bits, &two, sizeof two);
      } else {
        arg.kind = QDC_ARG_BUFFER;
        arg.data = which == 'a' ? run.a.data : which == 'b' ? run.b.data : which == 'd' ? run.d.data : run.c.data;
        arg.count = which == 'h' ? 256 : run.count;
      }
      args.push_back(arg);
    }
    grid[0] = uint32_t(run.count / bench.perBlock);
  }
  void launch() {
    char *diagnostics = nullptr;
    if (qdcHostLaunch(module, bench.kernel, grid, args.data(), args.size(), &diagnostics))
      die(diagnostics ? diagnostics : "a launch fails");
  }

private:
  const Bench &bench;
  qdcHostModule module;
  std::vector<qdcHostArg> args;
  uint32_t grid[3] = {1, 1, 1};
};

/// Seconds a call, from as many calls as last two milliseconds.
struct Sampled {
  std::string name;
  std::function<void()> call;
  std::vector<double> times = {};

  /// Calls until `duration` is over, which is looked at every `batch` calls; seconds a call.
  double repeat(double duration, int batch) {
    auto start = Clock::now();
    int calls = 0;
    do {
      for (int i = 0; i < batch; ++i)
        call();
      calls += batch;
    } while (seconds(start) < duration);
    return seconds(start) / calls;
  }
  void sample() {
    double each = repeat(0.0005, 1);
    times.push_back(repeat(0.002, std::max(1, int(0.0002 / each))));
  }
  double median() {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }
};

/// The best C++ row and the kernel; false where a result is wrong.
bool measure(const Bench &bench, const std::string &folder, size_t bytes, unsigned threads, Memory *memory,
             std::string &cell) {
  constexpr int64_t grain = 16384;
  Run run{int64_t(bytes) / bench.held / grain * grain, memory[0], memory[1], memory[2], memory[3]};
  bench.fill(run);
  Arrays arrays{run.a.data, run.b.data, run.c.data, run.d.data};
  Team team(threads);
  Loaded kernel(bench, folder, threads);

  std::vector<Sampled> samples;
  for (unsigned i = 0; i < numRows; ++i)
    if (!std::strcmp(rows[i].bench, bench.name))
      samples.push_back({rows[i].name, [&, row = rows[i].run] { team.run(row, arrays, run.count, bench.unit); }});
  team.setAwake(true);
  for (Sampled &row : samples) {
    std::memset(run.c.data, 0, bytes);
    row.call();
    if (!bench.isRight(run))
      return std::fprintf(stderr, "%s: C++ row '%s' is wrong\n", bench.name, row.name.c_str()), false;
  }
  team.setAwake(false);
  kernel.bind(run);
  samples.push_back({"qdc", [&] { kernel.launch(); }});
  std::memset(run.c.data, 0, bytes);
  samples.back().call();
  if (!bench.isRight(run))
    return std::fprintf(stderr, "%s: the kernel is wrong\n", bench.name), false;

  auto withTeam = [&](const Sampled &row, auto what) {
    team.setAwake(&row != &samples.back());
    what();
    team.setAwake(false);
  };
  constexpr int rounds = 15;
  constexpr double enough = 0.7;
  auto start = Clock::now();
  for (int round = 0; round < rounds && (round < 5 || seconds(start) < enough); ++round)
    for (Sampled &row : samples)
      withTeam(row, [&] { row.sample(); });
  double kernelTime = samples.back().median();
  samples.pop_back();
  Sampled *best = &samples.front();
  for (Sampled &row : samples)
    if (row.median() < best->median())
      best = &row;
  double moved = double(run.count) * bench.bytes * 1e-9;
  char text[128];
  std::snprintf(text, sizeof text, "%.1f %s / %.1f / **%.2f**", moved / best->median(), best->name.c_str(),
                moved / kernelTime, best->median() / kernelTime);
  cell = text;
  return true;
}

} // namespace

int main(int argc, char **argv) {
  std::string filter, folder = QD_BENCH_FOLDER;
  std::vector<size_t> sizes = {1, 256};
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg.rfind("-filter=", 0) == 0)
      filter = arg.substr(8);
    else if (arg.rfind("-mib=", 0) == 0)
      sizes = {std::max<size_t>(1, std::strtoul(arg.c_str() + 5, nullptr, 10))};
    else if (arg.rfind("-kernels=", 0) == 0)
      folder = arg.substr(9);
    else
      die("usage: bench-cpu [-filter=TEXT] [-mib=N] [-kernels=FOLDER]");
  }
  std::vector<const Bench *> wanted;
  for (const Bench &bench : benches)
    if (std::string(bench.name).find(filter) != std::string::npos)
      wanted.push_back(&bench);
  std::string head = "| best C++ / kernel, GB/s / ratio |", line = "|---|";
  std::vector<std::string> lines(wanted.size());
  bool right = true;
  for (size_t size : sizes) {
    size_t bytes = size << 20;
    Memory memory[4]{Memory(bytes), Memory(bytes), Memory(bytes), Memory(bytes)};
    for (unsigned threads : {1u, 2u}) {
      head += " " + std::to_string(size) + " MiB, " + std::to_string(threads) + (threads == 1 ? " worker |" : " workers |");
      line += "---|";
      for (size_t i = 0; i < wanted.size(); ++i) {
        std::string cell = "wrong";
        right &= measure(*wanted[i], folder, bytes, threads, memory, cell);
        lines[i] += " " + cell + " |";
      }
    }
  }
  std::printf("%s\n%s\n", head.c_str(), line.c_str());
  for (size_t i = 0; i < wanted.size(); ++i)
    std::printf("| %s |%s\n", wanted[i]->name, lines[i].c_str());
  return right ? 0 : 1;
}
