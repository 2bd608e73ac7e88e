// Times compiles inside one process:  bench-compile FILE.qir TARGET [RUNS [LEVEL]]
// Prints the first compile of the process, and the medians of further ones, of hits of the disk cache and of hits in
// memory, in milliseconds. The input gets a name a run, so that a hit is one of the cache that is meant.

#include "compiler/Compiler.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

static std::string source;
static qd::CompileOptions options;

/// One compile a name, in milliseconds each.
static std::vector<double> time(int runs, bool isCached) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    std::string name = "run" + std::to_string(i);
    auto start = std::chrono::steady_clock::now();
    qd::CompileResult result = qd::compile(source, name, options);
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    if (!result.ok || result.isCached != isCached) {
      std::fprintf(stderr, "%s%s\n", result.diagnostics.c_str(), result.ok ? "not from where it should be" : "");
      std::exit(1);
    }
  }
  return times;
}

static double findMedian(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench-compile FILE.qir TARGET [RUNS [LEVEL]]\n");
    return 2;
  }
  std::ifstream file(argv[1]);
  source.assign(std::istreambuf_iterator<char>(file), {});
  options.targets = {argv[2]};
  int runs = argc > 3 ? std::atoi(argv[3]) : 101;
  options.optLevel = argc > 4 ? std::atoi(argv[4]) : 2;
  std::string folder = std::filesystem::temp_directory_path() / "qdc-bench-XXXXXX";
  if (runs < 1 || !mkdtemp(folder.data()))
    return 2;
  options.cacheFolder = folder;
  unsetenv("QDC_CACHE");

  // Another process fills the folder.
  pid_t child = fork();
  if (child == 0) {
    options.cache = qd::CachePolicy::Disk;
    time(runs, false);
    std::_Exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);

  options.cache = qd::CachePolicy::Off;
  double first = time(1, false).front();
  double warm = findMedian(time(runs, false));
  options.cache = qd::CachePolicy::Disk;
  double disk = status == 0 ? findMedian(time(runs, true)) : -1, memory = findMedian(time(runs, true));
  std::printf("first %.2f ms, warm median %.2f ms, disk hit %.3f ms (%.1f %% of warm), memory hit %.3f ms (%d runs)\n",
              first, warm, disk, 100 * disk / warm, memory, runs);
  std::string remove = "rm -rf " + options.cacheFolder;
  return status != 0 || std::system(remove.c_str()) != 0;
}
