// Times distinct kernels compiled by one thread and by several:  bench-threads TARGET [KERNELS] [THREADS]
// Prints kernels a second of both, their ratio, and the memory that the process holds after each. Where a machine is
// busy with something else, the processor time of a kernel and how often a thread waited for another tell more.

#include "compiler/Compiler.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

/// A warp's reduction, of a different expression each.
static std::string makeKernel(unsigned number) {
  std::string text = "qd.kernel @k" + std::to_string(number) +
                     "(%x: !qd.buffer<f32> readonly, %y: !qd.buffer<f32>, %n: i32) block(128) {\n"
                     "  %i = qd.global_thread_id x : i32\n"
                     "  %in = arith.cmpi slt, %i, %n : i32\n"
                     "  %c = arith.constant " +
                     std::to_string(number) + ".5 : f32\n  %z = arith.constant 0.0 : f32\n"
                     "  %v = scf.if %in -> f32 {\n"
                     "    %l = qd.load %x[%i] : !qd.buffer<f32>\n"
                     "    %s = arith.mulf %l, %c : f32\n"
                     "    scf.yield %s : f32\n"
                     "  } else {\n    scf.yield %z : f32\n  }\n"
                     "  %r = qd.subgroup.reduce_all add %v : f32\n"
                     "  scf.if %in {\n    qd.store %r, %y[%i] : !qd.buffer<f32>\n  }\n"
                     "  qd.return\n}\n";
  return text;
}

namespace {
struct Times {
  double perSecond, processorMs, waits;
};
} // namespace

static rusage measureUse() {
  rusage use;
  getrusage(RUSAGE_SELF, &use);
  return use;
}

static double getMs(const rusage &use) {
  return 1e3 * double(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-3 * double(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static Times compileAll(const char *target, unsigned first, unsigned count, unsigned numThreads) {
  std::atomic<unsigned> next{0};
  auto work = [&] {
    qd::CompileOptions options;
    options.targets = {target};
    options.cache = qd::CachePolicy::Off;
    for (unsigned i; (i = next++) < count;) {
      qd::CompileResult result = qd::compile(makeKernel(first + i), "bench.qir", options);
      if (!result.ok) {
        std::fprintf(stderr, "%s", result.diagnostics.c_str());
        std::exit(1);
      }
    }
  };
  rusage before = measureUse();
  auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < numThreads; ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rusage after = measureUse();
  return {count / seconds, (getMs(after) - getMs(before)) / count, double(after.ru_nvcsw - before.ru_nvcsw) / count};
}

static double measureMiB() {
  long long pages = 0;
  if (FILE *file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*d %lld", &pages) != 1)
      pages = 0;
    std::fclose(file);
  }
  return double(pages) * sysconf(_SC_PAGESIZE) / (1 << 20);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench-threads TARGET [KERNELS] [THREADS]\n");
    return 2;
  }
  unsigned count = argc > 2 ? std::atoi(argv[2]) : 1000, threads = argc > 3 ? std::atoi(argv[3]) : 2;
  compileAll(argv[1], 0, 20, threads);
  Times one = compileAll(argv[1], 100, count, 1);
  double memory = measureMiB();
  Times several = compileAll(argv[1], 100 + count, count, threads);
  std::printf(
      "%s: one thread %.1f a second, %u threads %.1f, ratio %.2f; processor %.2f and %.2f ms a kernel, %.2f and %.2f "
      "waits; %.0f MiB after, %.0f MiB after both\n",
      argv[1], one.perSecond, threads, several.perSecond, several.perSecond / one.perSecond, one.processorMs,
      several.processorMs, one.waits, several.waits, memory, measureMiB());
}
