//===- CacheTest.cpp - results from memory and from a folder; threads, processes and faults -----------------------===//

#include "Kernels.h"

#include "compiler/DiskCache.h"
#include "compiler/qdc.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace qd;

namespace {
/// A folder of its own for each test, and an environment without a user's cache.
class Cache : public testing::Test {
protected:
  void SetUp() override {
    unsetenv("QDC_CACHE");
    unsetenv("QDC_CACHE_DIR");
    unsetenv("QDC_CACHE_SIZE");
    root = testing::TempDir() + "qdc-cache-test-XXXXXX";
    ASSERT_NE(mkdtemp(root.data()), nullptr);
    folder = root + "/cache";
  }
  void TearDown() override {
    setenv("QDC_CACHE", "off", 1);
    unsetenv("QDC_CACHE_DIR");
    std::string command = "chmod -R u+w " + root + "; rm -rf " + root;
    ASSERT_EQ(system(command.c_str()), 0);
  }

  /// A result by way of the folder alone: the process's memory knows no such input.
  CompileResult compileOnce(const std::string &qir, CachePolicy policy = CachePolicy::Disk) {
    CompileOptions options;
    options.targets = {"nvptx:sm_90"};
    options.emit = "ptx";
    options.cache = policy;
    options.cacheFolder = folder;
    return compile(qir, "test.qir", options);
  }

  std::vector<std::string> listFiles(const std::string &suffix) {
    std::vector<std::string> names;
    if (DIR *directory = opendir(folder.c_str())) {
      while (const dirent *item = readdir(directory))
        if (std::string name = item->d_name; name.size() > suffix.size() &&
                                             name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0)
          names.push_back(folder + "/" + name);
      closedir(directory);
    }
    return names;
  }

  uint64_t countBytes() {
    uint64_t bytes = 0;
    struct stat status;
    for (const std::string &path : listFiles(".qdc"))
      if (!stat(path.c_str(), &status))
        bytes += status.st_size;
    return bytes;
  }

  std::string root, folder;
};
} // namespace

/// A kernel that no other test has compiled in this process.
static std::string makeFresh() {
  static std::atomic<unsigned> number{0};
  return "// " + std::to_string(getpid()) + " " + std::to_string(number++) + "\n" + sumKernel;
}

static CacheKey makeKey(unsigned number) {
  CacheKey key = {};
  memcpy(key.data(), &number, sizeof number);
  return key;
}

TEST_F(Cache, MemoryGivesTheSame) {
  std::string qir = makeFresh();
  CompileResult first = compileOnce(qir, CachePolicy::Memory), second = compileOnce(qir, CachePolicy::Memory);
  EXPECT_FALSE(first.isCached);
  EXPECT_TRUE(second.isCached);
  EXPECT_EQ(first.data, second.data);
  EXPECT_EQ(second.variants.at(0).interface, first.variants.at(0).interface);
  EXPECT_TRUE(listFiles(".qdc").empty());
  EXPECT_FALSE(compileOnce(qir, CachePolicy::Off).isCached);
  EXPECT_FALSE(compileOnce(makeFresh(), CachePolicy::Memory).isCached);
}

TEST_F(Cache, EnvironmentDecides) {
  std::string qir = makeFresh();
  EXPECT_FALSE(compileOnce(qir, CachePolicy::Environment).isCached);
  EXPECT_FALSE(compileOnce(qir, CachePolicy::Environment).isCached);
  setenv("QDC_CACHE_DIR", folder.c_str(), 1);
  EXPECT_FALSE(compileOnce(qir, CachePolicy::Environment).isCached);
  EXPECT_TRUE(compileOnce(qir, CachePolicy::Environment).isCached);
  EXPECT_EQ(listFiles(".qdc").size(), 1u);
  setenv("QDC_CACHE", "off", 1);
  EXPECT_FALSE(compileOnce(qir, CachePolicy::Environment).isCached);
  EXPECT_FALSE(compileOnce(qir, CachePolicy::Disk).isCached);
}

TEST_F(Cache, KeysTellOptionsApart) {
  std::string qir = makeFresh();
  CompileOptions options;
  options.targets = {"nvptx:sm_90"};
  options.cache = CachePolicy::Memory;
  std::vector<CompileOptions> all(10, options);
  all[1].targets = {"nvptx:sm_80"};
  all[2].emit = "expanded";
  all[3].optLevel = 0;
  all[4].emit = "qdb";
  all[5].emit = "qdb";
  all[5].stripQir = true;
  all[6].remarks = "expand";
  all[7].divergent = "allow";
  all[8].statistics = true;
  all[9].debug = true;
  for (const CompileOptions &each : all)
    EXPECT_FALSE(compile(qir, "test.qir", each).isCached);
  EXPECT_FALSE(compile(qir, "other.qir", options).isCached);
  for (const CompileOptions &each : all)
    EXPECT_TRUE(compile(qir, "test.qir", each).isCached);
}

/// Runs `body` in a child process; its exit status.
template <typename Body>
static int inChild(Body body) {
  pid_t child = fork();
  if (child == 0)
    _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Cache, AnotherProcessHitsWithAllDiagnostics) {
  CompileOptions options;
  options.targets = {"nvptx:sm_90"};
  options.emit = "ptx";
  options.cache = CachePolicy::Disk;
  options.cacheFolder = folder;
  options.remarks = "expand";
  std::string qir = makeFresh();
  // The parent never compiles it: what it gets is the child's.
  ASSERT_EQ(inChild([&] {
              CompileResult result = compile(qir, "test.qir", options);
              return result.ok && !result.isCached && !result.messages.empty() ? 0 : 1;
            }),
            0);
  CompileResult hit = compile(qir, "test.qir", options);
  options.cache = CachePolicy::Off;
  CompileResult fresh = compile(qir, "test.qir", options);
  EXPECT_TRUE(hit.isCached);
  EXPECT_EQ(hit.data, fresh.data);
  EXPECT_EQ(hit.diagnostics, fresh.diagnostics);
  ASSERT_EQ(hit.messages.size(), fresh.messages.size());
  ASSERT_FALSE(hit.messages.empty());
  EXPECT_EQ(hit.messages[0].severity, Severity::Remark);
  EXPECT_EQ(hit.messages[0].text, fresh.messages[0].text);
  EXPECT_EQ(hit.messages[0].line, fresh.messages[0].line);
  EXPECT_EQ(hit.messages[0].excerpt, fresh.messages[0].excerpt);
  ASSERT_EQ(hit.variants.size(), 1u);
  EXPECT_EQ(hit.getCode(hit.variants[0]), fresh.data);
}

TEST_F(Cache, FailuresAreNotKept) {
  std::string qir = makeFresh() + "nonsense";
  for (int i = 0; i < 2; ++i) {
    CompileResult result = compileOnce(qir);
    EXPECT_FALSE(result.ok);
    EXPECT_FALSE(result.isCached);
  }
  EXPECT_TRUE(listFiles(".qdc").empty());
}

/// Every byte of an entry counts, and its length and its name.
TEST_F(Cache, CorruptEntriesAreMisses) {
  DiskCache cache(folder, 1 << 20);
  std::string bytes = "some bytes of an entry";
  cache.store(makeKey(1), bytes);
  ASSERT_EQ(cache.load(makeKey(1)), bytes);
  std::string path = listFiles(".qdc").at(0);
  std::ifstream file(path, std::ios::binary);
  std::string whole{std::istreambuf_iterator<char>(file), {}};
  auto write = [&](const std::string &content) { std::ofstream(path, std::ios::binary) << content; };
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bad = whole;
    bad[i] ^= 1;
    write(bad);
    EXPECT_FALSE(cache.load(makeKey(1))) << i;
  }
  for (size_t size : {size_t(0), size_t(1), size_t(63), whole.size() - 1}) {
    write(whole.substr(0, size));
    EXPECT_FALSE(cache.load(makeKey(1))) << size;
  }
  write(whole + "x");
  EXPECT_FALSE(cache.load(makeKey(1)));
  write(whole);
  EXPECT_TRUE(cache.load(makeKey(1)));
  // Another key's entry under this name.
  cache.store(makeKey(2), "others");
  for (const std::string &other : listFiles(".qdc")) {
    if (other != path) {
      ASSERT_EQ(rename(other.c_str(), path.c_str()), 0);
    }
  }
  EXPECT_FALSE(cache.load(makeKey(1)));
  cache.store(makeKey(1), bytes);
  EXPECT_EQ(cache.load(makeKey(1)), bytes);
  // No file at all.
  unlink(path.c_str());
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  EXPECT_FALSE(cache.load(makeKey(1)));
  cache.store(makeKey(1), bytes);
  EXPECT_FALSE(cache.load(makeKey(1)));
}

/// A whole entry that holds something else than a result.
TEST_F(Cache, ForeignBytesAreMisses) {
  std::string qir = makeFresh();
  inChild([&] { return compileOnce(qir).ok; });
  std::string path = listFiles(".qdc").at(0), name = path.substr(path.rfind('/') + 1);
  CacheKey key;
  for (size_t i = 0; i < key.size(); ++i)
    key[i] = uint8_t(std::stoul(name.substr(2 * i, 2), nullptr, 16));
  DiskCache(folder, 1 << 20).store(key, "no result");
  CompileResult result = compileOnce(qir);
  EXPECT_TRUE(result.ok);
  EXPECT_FALSE(result.isCached);
}

TEST_F(Cache, BoundedAndLeastRecentlyUsedGoFirst) {
  constexpr uint64_t limit = 100 * 1000;
  DiskCache cache(folder, limit);
  std::string bytes(1000, 'x');
  for (unsigned i = 0; i < 500; ++i) {
    cache.store(makeKey(i), bytes);
    // In use all the time.
    EXPECT_TRUE(cache.load(makeKey(0))) << i;
    ASSERT_LE(countBytes(), limit) << i;
    usleep(100);
  }
  EXPECT_TRUE(cache.load(makeKey(499)));
  EXPECT_FALSE(cache.load(makeKey(1)));
  EXPECT_GT(countBytes(), limit / 2);
  CacheUsage usage;
  uint64_t entries = cache.countEntries(usage);
  EXPECT_EQ(usage.stores, 500u);
  EXPECT_EQ(entries, usage.stores - usage.evictions);
  EXPECT_GE(usage.hits, 500u);
  // What does not fit at all is not kept.
  cache.store(makeKey(1000), std::string(limit, 'x'));
  EXPECT_FALSE(cache.load(makeKey(1000)));
}

TEST_F(Cache, LostOrForeignCountsAreCountedAnew) {
  DiskCache cache(folder, 10 * 1000);
  for (unsigned i = 0; i < 50; ++i) {
    std::ofstream(folder + "/usage") << (i % 2 ? ""
                                               : "garbage garbage garbage garbage garbage garbage garbage garbage ");
    cache.store(makeKey(i), std::string(1000, 'x'));
    ASSERT_LE(countBytes(), 10 * 1000u);
  }
  EXPECT_TRUE(cache.load(makeKey(49)));
}

TEST_F(Cache, FoldersThatCannotBeWritten) {
  std::string qir = makeFresh();
  inChild([&] { return compileOnce(qir).ok; });
  ASSERT_EQ(listFiles(".qdc").size(), 1u);
  // A file where the folder should be.
  std::ofstream(root + "/file") << "x";
  folder = root + "/file";
  EXPECT_TRUE(compileOnce(makeFresh()).ok);
  folder = "/proc/no/such/folder";
  EXPECT_TRUE(compileOnce(makeFresh()).ok);
  // No space left: files are limited to nothing.
  folder = root + "/cache";
  std::string another = makeFresh();
  EXPECT_EQ(inChild([&] {
              signal(SIGXFSZ, SIG_IGN);
              rlimit none = {0, 0};
              setrlimit(RLIMIT_FSIZE, &none);
              return compileOnce(another).ok && compileOnce(qir).isCached ? 0 : 1;
            }),
            0);
  EXPECT_EQ(listFiles(".qdc").size(), 1u);
  // Read-only, for other users than root.
  chmod(folder.c_str(), 0500);
  EXPECT_TRUE(compileOnce(makeFresh()).ok);
  EXPECT_TRUE(compileOnce(qir).isCached);
}

TEST_F(Cache, ManyThreadsCompileOnce) {
  std::string qir = makeFresh();
  std::atomic<unsigned> compiled{0}, wrong{0};
  std::string data = compileOnce(qir, CachePolicy::Off).data;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      CompileResult result = compileOnce(qir);
      compiled += !result.isCached;
      wrong += !result.ok || result.data != data;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(compiled, 1u);
  EXPECT_EQ(wrong, 0u);
}

/// Processes that store, load and evict at once; one after the other is killed on the way.
TEST_F(Cache, ProcessesThatDieAtAnyPoint) {
  constexpr uint64_t limit = 300 * 1000;
  auto content = [](unsigned number) { return std::string(5000 + number % 7 * 1000, char('a' + number % 26)); };
  auto work = [&](unsigned seed) {
    DiskCache cache(folder, limit);
    for (unsigned i = seed;; i += 7) {
      unsigned number = i % 100;
      std::optional<std::string> found = cache.load(makeKey(number));
      if (found && *found != content(number))
        return 1;
      if (!found)
        cache.store(makeKey(number), content(number));
    }
  };
  unsigned killed = 0;
  for (unsigned round = 0; round < 12; ++round) {
    std::vector<pid_t> children;
    for (unsigned i = 0; i < 4; ++i) {
      pid_t child = fork();
      if (child == 0)
        _exit(work(round * 13 + i * 31));
      children.push_back(child);
    }
    usleep(10000 + round * 777);
    for (pid_t child : children)
      kill(child, SIGKILL);
    for (pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      killed += WIFSIGNALED(status);
    }
    // The count is of what there is or more.
    ASSERT_LE(countBytes(), limit);
  }
  EXPECT_EQ(killed, 48u) << "a process read a wrong entry";
  DiskCache cache(folder, limit);
  for (unsigned number = 0; number < 100; ++number)
    if (std::optional<std::string> found = cache.load(makeKey(number))) {
      EXPECT_EQ(*found, content(number));
    }
  cache.store(makeKey(1000), "still at work");
  EXPECT_EQ(cache.load(makeKey(1000)), "still at work");
  // What the dead left behind goes with the next tidying up.
  std::string left = folder + "/.writing-old";
  std::ofstream(left) << "x";
  unlink((folder + "/usage").c_str());
  cache.store(makeKey(1001), "x");
  EXPECT_NE(access(left.c_str(), F_OK), 0);
}

/// The cpu device's object files, by way of another process and of this one.
TEST_F(Cache, MachineCode) {
  auto run = [&] {
    qdcHostOptions options;
    qdcInitHostOptions(&options);
    options.device = "cpu";
    options.threads = 1;
    options.cache = QDC_CACHE_DISK;
    options.cacheFolder = folder.c_str();
    qdcHostModule module = qdcHostLoad(sumKernel, strlen(sumKernel), "test.qir", &options, nullptr);
    float x[64], y[64] = {};
    for (unsigned i = 0; i < 64; ++i)
      x[i] = float(i);
    qdcHostArg args[] = {{QDC_ARG_BUFFER, x, 64, 0, {}}, {QDC_ARG_BUFFER, y, 64, 0, {}}};
    uint32_t grid[3] = {1, 1, 1};
    bool ok = module && !qdcHostLaunch(module, "sum", grid, args, 2, nullptr) && y[5] == 22;
    qdcHostUnload(module);
    return ok ? 0 : 1;
  };
  EXPECT_EQ(inChild(run), 0);
  ASSERT_EQ(listFiles(".qdc").size(), 1u);
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(listFiles(".qdc").size(), 1u);
  CompileOptions options;
  options.cacheFolder = folder;
  EXPECT_NE(describeCache(options).find("hits       1\n"), std::string::npos) << describeCache(options);
  // What is no entry is compiled anew.
  std::ofstream(listFiles(".qdc").at(0)) << "nonsense";
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(run(), 0);
  EXPECT_NE(describeCache(options).find("hits       2\n"), std::string::npos) << describeCache(options);
}

TEST_F(Cache, Description) {
  CompileOptions options;
  options.cacheFolder = folder;
  EXPECT_NE(describeCache(options).find("entries    0\n"), std::string::npos);
  inChild([&] { return compileOnce(makeFresh()).ok; });
  options.cacheBytes = 12345678;
  std::string text = describeCache(options);
  EXPECT_NE(text.find("folder     " + folder + "\nentries    1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("of 12345678\n"), std::string::npos) << text;
  EXPECT_NE(text.find("misses     1\nstores     1\n"), std::string::npos) << text;
  options.cacheBytes = 0;
  for (auto [size, bytes] :
       {std::pair("5K", "5120"), std::pair("7", "7"), std::pair("2M", "2097152"), std::pair("1G", "1073741824"),
        std::pair("x", "1073741824"), std::pair("5KB", "1073741824"), std::pair("99999999999999999G", "1073741824"),
        std::pair("0", "1073741824")}) {
    setenv("QDC_CACHE_SIZE", size, 1);
    EXPECT_NE(describeCache(options).find(std::string(" of ") + bytes + "\n"), std::string::npos) << size;
    bool isRight = bytes != std::string("1073741824") || size == std::string("1G");
    EXPECT_EQ(describeCache(options).find(std::string("QDC_CACHE_SIZE is '") + size + "', which has no effect") == 0,
              !isRight);
  }
  unsetenv("QDC_CACHE_SIZE");
  setenv("QDC_CACHE", "0", 1);
  EXPECT_EQ(describeCache(options).find("QDC_CACHE is '0', which has no effect"), 0u);
  setenv("QDC_CACHE", "off", 1);
  EXPECT_EQ(describeCache(options).find("QDC_CACHE is 'off': nothing is looked up or kept\n"), 0u);
  unsetenv("QDC_CACHE");
  // A relative base folder is none.
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", root.c_str(), 1);
  EXPECT_NE(describeCache({}).find("folder     " + root + "/.cache/qdc\n"), std::string::npos) << describeCache({});
  unsetenv("XDG_CACHE_HOME");
}

/// The lock of a process that is stopped, and a pipe in the place of the counts.
TEST_F(Cache, NothingWaitsForOthersForEver) {
  ASSERT_TRUE(compileOnce(makeFresh()).ok);
  int file = open((folder + "/usage").c_str(), O_RDWR);
  ASSERT_EQ(flock(file, LOCK_EX), 0);
  alarm(60);
  std::string qir = makeFresh();
  EXPECT_TRUE(compileOnce(qir).ok);
  EXPECT_EQ(listFiles(".qdc").size(), 1u);
  close(file);
  ASSERT_EQ(unlink((folder + "/usage").c_str()), 0);
  ASSERT_EQ(mkfifo((folder + "/usage").c_str(), 0600), 0);
  CompileOptions options;
  options.cacheFolder = folder;
  EXPECT_NE(describeCache(options).find("entries    1\n"), std::string::npos);
  EXPECT_TRUE(compileOnce(makeFresh()).ok);
  alarm(0);
}
