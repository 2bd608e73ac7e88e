//===- WorkerTest.cpp - isolated compiles: results, crashes, limits, and who outlives whom ------------------------===//

#include "Kernels.h"

#include "compiler/BuildId.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace qd;

namespace {
class Worker : public testing::Test {
protected:
  void SetUp() override {
    folder = testing::TempDir() + "qdc-worker-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    options.targets = {"nvptx:sm_90"};
    options.emit = "ptx";
    options.isolate = true;
    options.cache = CachePolicy::Off;
  }
  void TearDown() override {
    unsetenv("QDC_WORKER");
    std::string command = "rm -rf " + folder;
    ASSERT_EQ(system(command.c_str()), 0);
  }

  /// A compile by a program of the test's own. Threads that wait hold workers, so it is a new one.
  CompileResult compileBy(const std::string &script) {
    std::string path = folder + "/worker" + std::to_string(number++);
    {
      std::ofstream file(path);
      file << "#!/bin/sh\n" << script << "\n";
    }
    chmod(path.c_str(), 0700);
    endWorkers();
    setenv("QDC_WORKER", path.c_str(), 1);
    CompileResult result = compile(sumKernel, "test.qir", options);
    unsetenv("QDC_WORKER");
    EXPECT_FALSE(result.ok);
    EXPECT_EQ(result.data, "");
    EXPECT_EQ(result.messages.size(), 1u);
    // The program's name differs from run to run.
    size_t at = result.diagnostics.find(path);
    if (at != std::string::npos)
      result.diagnostics.replace(at, path.size(), "PROGRAM");
    return result;
  }

  static std::vector<pid_t> listWorkers() {
    std::vector<pid_t> children;
    std::string command = "cat /proc/" + std::to_string(getpid()) + "/task/*/children";
    if (FILE *pipe = popen(command.c_str(), "r")) {
      for (int child; fscanf(pipe, "%d", &child) == 1;)
        if (isWorker(child))
          children.push_back(child);
      pclose(pipe);
    }
    return children;
  }

  static bool isWorker(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/cmdline");
    std::string line{std::istreambuf_iterator<char>(file), {}};
    return line.find("--worker") != std::string::npos;
  }

  static bool hasEnded(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string line;
    std::getline(file, line);
    size_t name = line.rfind(')');
    if (name == std::string::npos)
      return true;
    // The other threads may outlive the first one.
    std::error_code code;
    std::filesystem::directory_iterator threads("/proc/" + std::to_string(process) + "/task", code);
    return line.compare(name, 3, ") Z") == 0 && std::distance(begin(threads), end(threads)) <= 1;
  }

  static void endWorkers() {
    std::vector<pid_t> workers = listWorkers();
    for (pid_t worker : workers)
      kill(worker, SIGKILL);
    // Their sockets are closed once nobody but us is to hear of their end.
    for (pid_t worker : workers)
      while (!hasEnded(worker))
        usleep(1000);
  }

  CompileOptions options;
  std::string folder;
  unsigned number = 0;
};
} // namespace

/// Takes seconds to compile at level 3.
static std::string makeLargeKernel() {
  std::string text = "qd.kernel @large(%x: !qd.buffer<f32>) block(64) {\n  %i = qd.thread_id x : i32\n"
                     "  %v0 = qd.load %x[%i] : !qd.buffer<f32>\n";
  unsigned count = 6000;
  for (unsigned i = 0; i < count; ++i) {
    std::string from = "%v" + std::to_string(i), to = "%v" + std::to_string(i + 1);
    text += "  " + to + " = qd.subgroup.reduce_all add " + from + " : f32\n";
  }
  return text + "  qd.store %v" + std::to_string(count) + ", %x[%i] : !qd.buffer<f32>\n  qd.return\n}\n";
}

TEST_F(Worker, GivesWhatThisProcessGives) {
  for (auto [target, emit, remarks] :
       {std::tuple("nvptx:sm_90", "ptx", "expand"), std::tuple("amdgcn:gfx942", "hsaco", ""),
        std::tuple("spirv", "qdb", ""), std::tuple("cpu", "asm", ""), std::tuple("nvptx", "hsaco", ""),
        std::tuple("", "qir", "")}) {
    options.targets.clear();
    if (*target)
      options.targets = {target};
    options.emit = emit;
    options.remarks = remarks;
    CompileResult isolated = compile(sumKernel, "test.qir", options);
    CompileOptions plain = options;
    plain.isolate = false;
    CompileResult here = compile(sumKernel, "test.qir", plain);
    EXPECT_EQ(isolated.ok, here.ok);
    EXPECT_EQ(isolated.data, here.data);
    EXPECT_EQ(isolated.diagnostics, here.diagnostics);
    EXPECT_EQ(isolated.messages.size(), here.messages.size());
    EXPECT_EQ(isolated.variants.size(), here.variants.size());
  }
  EXPECT_EQ(listWorkers().size(), 1u) << "compiles that follow each other share a worker";
}

TEST_F(Worker, CrashesAreErrors) {
  EXPECT_EQ(compileBy("echo 'LLVM ERROR: no such luck' >&2; exit 3").diagnostics,
            "error: test.qir: the worker process 'PROGRAM' ended with exit status 3: LLVM ERROR: no such luck\n");
  EXPECT_EQ(compileBy("kill -SEGV $$").diagnostics,
            "error: test.qir: the worker process 'PROGRAM' was ended by signal 11 (Segmentation fault)\n");
  EXPECT_EQ(compileBy("exit 0").diagnostics,
            "error: test.qir: the worker process 'PROGRAM' ended with exit status 0\n");
  EXPECT_EQ(compileBy("printf garbage >&0").diagnostics,
            "error: test.qir: the worker process 'PROGRAM' ended with exit status 0\n");
  EXPECT_EQ(compileBy("printf '\\003\\000\\000\\000\\000\\000\\000\\000abc' >&0; exec sleep 100").diagnostics,
            "error: test.qir: 'PROGRAM' is no worker process of this compiler\n");

  // A worker of this build that aborts in the middle of a compile, and one that answers nonsense.
  auto number = [](size_t value) {
    char text[8];
    snprintf(text, sizeof text, "\\%03zo", value);
    return std::string(text) + "\\000\\000\\000\\000\\000\\000\\000";
  };
  std::string name = "qdc-worker 1", id = buildId;
  std::string greeting = "printf '" + number(16 + name.size() + id.size()) + number(name.size()) + name +
                         number(id.size()) + id + "' >&0; ";
  EXPECT_EQ(compileBy(greeting + "head -c 100 >/dev/null; echo terminate called >&2; kill -ABRT $$").diagnostics,
            "error: test.qir: the worker process 'PROGRAM' was ended by signal 6 (Aborted): terminate called\n");
  EXPECT_EQ(compileBy(greeting + "printf '" + number(3) + "abc' >&0; exec sleep 100").diagnostics,
            "error: test.qir: the worker process 'PROGRAM' gave an answer that is no result\n");
  // Another build.
  std::string other = greeting;
  other.replace(other.find(id), 4, "zzzz");
  EXPECT_NE(compileBy(other).diagnostics.find("is of build zzzz"), std::string::npos);

  setenv("QDC_WORKER", "/no/such/program", 1);
  EXPECT_EQ(compile(sumKernel, "test.qir", options).diagnostics,
            "error: test.qir: cannot start the worker process '/no/such/program': No such file or directory\n");
  unsetenv("QDC_WORKER");
  EXPECT_TRUE(compile(sumKernel, "test.qir", options).ok);
}

TEST_F(Worker, KilledInTheMiddle) {
  std::string large = makeLargeKernel();
  options.optLevel = 3;
  endWorkers();
  CompileResult result;
  std::thread thread([&] { result = compile(large, "test.qir", options); });
  std::vector<pid_t> workers;
  while ((workers = listWorkers()).empty())
    usleep(1000);
  usleep(100000);
  kill(workers[0], SIGBUS);
  thread.join();
  EXPECT_FALSE(result.ok);
  EXPECT_NE(result.diagnostics.find("was ended by signal 7 (Bus error)"), std::string::npos) << result.diagnostics;
  // An idle one that somebody ends is not missed.
  EXPECT_TRUE(compile(sumKernel, "test.qir", options).ok);
  endWorkers();
  EXPECT_TRUE(compile(sumKernel, "test.qir", options).ok);
}

TEST_F(Worker, TimeLimit) {
  options.isolate = false;
  options.timeLimit = 1;
  auto start = std::chrono::steady_clock::now();
  CompileResult result = compile(makeLargeKernel(), "test.qir", options);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  EXPECT_EQ(result.diagnostics, "error: test.qir: the compile takes longer than its limit of 1 ms\n");
  options.timeLimit = 60000;
  EXPECT_TRUE(compile(sumKernel, "test.qir", options).ok);
}

TEST_F(Worker, MemoryLimit) {
  options.isolate = false;
  std::string large = makeLargeKernel();
  for (unsigned limit : {1u, 3u, 8u}) {
    options.memoryLimit = limit;
    CompileResult result = compile(large, "test.qir", options);
    EXPECT_EQ(result.diagnostics,
              "error: test.qir: the compile needs more memory than its limit of " + std::to_string(limit) + " MiB\n");
  }
  options.memoryLimit = 1000;
  EXPECT_TRUE(compile(sumKernel, "test.qir", options).ok);
  // The limit is of one compile, not of the worker.
  options.memoryLimit = 0;
  options.isolate = true;
  EXPECT_TRUE(compile(sumKernel, "test.qir", options).ok);
}

TEST_F(Worker, SixteenThreadsAtOnce) {
  CompileOptions plain = options;
  plain.isolate = false;
  std::string data = compile(sumKernel, "test.qir", plain).data;
  std::atomic<unsigned> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&, i] {
      CompileOptions mine = options;
      for (int round = 0; round < 4; ++round) {
        mine.timeLimit = i % 4 == 3 ? 1 : 0;
        CompileResult result = compile(sumKernel, "test.qir", mine);
        wrong += mine.timeLimit ? result.ok && result.data != data : result.data != data;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0u);
}

/// However the host ends, a worker in the middle of a compile goes too.
TEST_F(Worker, EndsWithItsHost) {
  std::string path = folder + "/pid";
  pid_t host = fork();
  if (host == 0) {
    std::thread([&] { compile(makeLargeKernel(), "test.qir", options); }).detach();
    std::vector<pid_t> workers;
    while ((workers = listWorkers()).empty())
      usleep(1000);
    std::ofstream(path) << workers[0];
    usleep(50000);
    kill(getpid(), SIGKILL);
  }
  waitpid(host, nullptr, 0);
  pid_t worker = 0;
  std::ifstream(path) >> worker;
  ASSERT_GT(worker, 0);
  for (int i = 0; i < 500 && isWorker(worker); ++i)
    usleep(10000);
  EXPECT_FALSE(isWorker(worker));
}

TEST_F(Worker, AfterAFork) {
  EXPECT_TRUE(compile(sumKernel, "test.qir", options).ok);
  std::vector<pid_t> before = listWorkers();
  pid_t child = fork();
  if (child == 0)
    _exit(compile(sumKernel, "test.qir", options).ok ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(listWorkers(), before);
  EXPECT_TRUE(compile(sumKernel, "test.qir", options).ok);
}

TEST_F(Worker, HostsWithoutStandardStreamsOrChildren) {
  endWorkers();
  pid_t child = fork();
  if (child == 0) {
    for (int stream : {0, 1, 2})
      close(stream);
    signal(SIGCHLD, SIG_IGN);
    _exit(compile(sumKernel, "test.qir", options).ok ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}
