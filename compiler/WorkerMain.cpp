//===- WorkerMain.cpp - the worker's half of compiles in a child process -----------------------------===//

#include "compiler/BuildId.h"
#include "compiler/Bytes.h"
#include "compiler/Compilation.h"
#include "compiler/Worker.h"
#include "compiler/WorkerProtocol.h"

#include "llvm/Support/ErrorHandling.h"
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <malloc.h>
#include <new>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace qd {

/// Pages of the process by /proc: all that are mapped, and those in memory.
static std::pair<uint64_t, uint64_t> measurePages() {
  unsigned long long mapped = 0, resident = 0;
  if (FILE *file = fopen("/proc/self/statm", "re")) {
    if (fscanf(file, "%llu %llu", &mapped, &resident) != 2)
      mapped = resident = 0;
    fclose(file);
  }
  return {mapped, resident};
}

/// Bounds what the process may map beside what it has; 0 lifts the bound.
static void limitMemory(uint64_t bytes) {
  rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = limit.rlim_max;
  if (bytes) {
    // What an earlier compile has freed should not count in this one's favour.
    malloc_trim(0);
    uint64_t used = measurePages().first * sysconf(_SC_PAGESIZE);
    limit.rlim_cur = std::min<uint64_t>(limit.rlim_max, bytes > UINT64_MAX - used ? RLIM_INFINITY : used + bytes);
  }
  setrlimit(RLIMIT_AS, &limit);
}

/// Has the kernel map the stack in full: where it grew under a limit on memory, that would be a crash.
static void reserveStack() {
  constexpr size_t usual = size_t(8) << 20, margin = size_t(512) << 10;
  rlimit limit;
  getrlimit(RLIMIT_STACK, &limit);
  size_t size = std::min<size_t>(limit.rlim_cur, usual) - margin;
  if (limit.rlim_cur > 2 * margin)
    *static_cast<volatile char *>(__builtin_alloca(size)) = 0;
}

/// Some of MLIR takes memory without looking whether it got any: an access near null while there is none left means so.
static void onBadAccess(int, siginfo_t *info, void *) {
  constexpr uintptr_t nearNull = 1 << 16;
  constexpr size_t probe = size_t(1) << 20;
  rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  if (reinterpret_cast<uintptr_t>(info->si_addr) < nearNull && limit.rlim_cur != limit.rlim_max &&
      mmap(nullptr, probe, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
    _exit(outOfMemoryStatus);
  // The access is repeated, and ends the process.
  signal(SIGSEGV, SIG_DFL);
}

static void answer(int socket, const std::string &request) {
  constexpr uint64_t mostResident = uint64_t(512) << 20;
  ByteReader reader(request);
  auto task = WorkerTask(reader.number());
  std::string name = reader.text();
  HostRequest host;
  CompileOptions &options = host.options;
  readOptions(reader, options);
  uint64_t memoryLimit = reader.number();
  std::string qir = reader.text();
  if (task == WorkerTask::PrepareHostModule) {
    host.device = reader.text();
    host.checks = reader.text();
    options.cache = CachePolicy(reader.number());
    options.cacheFolder = reader.text();
    options.cacheBytes = reader.number();
  }
  limitMemory(memoryLimit);
  CompileResult result =
      task == WorkerTask::PrepareHostModule ? prepareHostModule(qir, name, host) : compileInProcess(qir, name, options);
  limitMemory(0);
  ByteWriter writer;
  // A worker that has grown makes room for a fresh one.
  bool goesOn = measurePages().second * sysconf(_SC_PAGESIZE) < mostResident;
  writer.number(goesOn);
  writeResult(result, writer);
  if (sendMessage(socket, writer.take(), {}) != Transfer::Done || !goesOn)
    _exit(0);
}

int runWorker() {
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(0, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_STREAM) {
    fprintf(stderr, "qdc: --worker is how libqdcompiler starts this program\n");
    return 2;
  }
  // Nothing of the host's stays open, and neither the assembler nor a read of standard input gets the socket.
  close_range(3, ~0u, 0);
  int socket = fcntl(0, F_DUPFD_CLOEXEC, 3), null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (socket < 0 || null < 0 || dup2(null, 0) < 0)
    return 1;
  reserveStack();
  rlimit noCore = {0, 0};
  setrlimit(RLIMIT_CORE, &noCore);
  struct sigaction action = {};
  action.sa_sigaction = onBadAccess;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  std::set_new_handler([] { _exit(outOfMemoryStatus); });
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { _exit(outOfMemoryStatus); });
  // A host that ends while a compile is under way takes the worker along.
  std::thread([socket] {
    pollfd poller = {socket, POLLRDHUP, 0};
    while (poll(&poller, 1, -1) <= 0)
      ;
    _exit(0);
  }).detach();

  ByteWriter greeting;
  greeting.text(workerGreeting);
  greeting.text(buildId);
  if (sendMessage(socket, greeting.take(), {}) != Transfer::Done)
    return 1;
  for (std::string request; receiveMessage(socket, request, {}) == Transfer::Done;)
    answer(socket, request);
  return 0;
}

} // namespace qd
