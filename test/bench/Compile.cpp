// Times compiles inside one process:  bench-compile FILE.qir TARGET [RUNS]
// Prints the first compile of the process and the median of the further ones, in milliseconds.

#include "compiler/Compiler.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench-compile FILE.qir TARGET [RUNS]\n");
    return 2;
  }
  std::ifstream file(argv[1]);
  std::string source((std::istreambuf_iterator<char>(file)), {});
  qd::CompileOptions options;
  options.targets = {argv[2]};
  int runs = argc > 3 ? std::atoi(argv[3]) : 101;
  std::vector<double> times;
  for (int i = 0; i <= runs; ++i) {
    auto start = std::chrono::steady_clock::now();
    qd::CompileResult result = qd::compile(source, argv[1], options);
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    if (!result.ok) {
      std::fprintf(stderr, "%s", result.diagnostics.c_str());
      return 1;
    }
  }
  double first = times.front();
  times.erase(times.begin());
  std::sort(times.begin(), times.end());
  std::printf("first %.2f ms, warm median %.2f ms (%d runs)\n", first, times[times.size() / 2], runs);
}
