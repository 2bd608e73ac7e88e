//===- Worker.cpp - the host's half of compiles in a child process -----------------------------------===//

#include "compiler/Worker.h"

#include "compiler/BuildId.h"
#include "compiler/Bytes.h"
#include "compiler/WorkerProtocol.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace llvm;

namespace qd {

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

/// QDC_WORKER, or qdc beside the library or the executable, in bin beside the library's folder, or on PATH.
static Expected<std::string> findProgram() {
  if (std::optional<std::string> named = sys::Process::GetEnv("QDC_WORKER"); named && !named->empty())
    return *named;
  SmallVector<std::string> files;
  Dl_info self;
  if (dladdr(reinterpret_cast<void *>(&findProgram), &self) && self.dli_fname)
    files.push_back(self.dli_fname);
  files.push_back(sys::fs::getMainExecutable(nullptr, nullptr));
  for (const std::string &file : files)
    for (StringRef folder : {".", "../bin"}) {
      SmallString<128> real, path;
      if (sys::fs::real_path(file, real))
        continue;
      path = sys::path::parent_path(real);
      sys::path::append(path, folder, "qdc");
      if (sys::fs::can_execute(path))
        return path.str().str();
    }
  if (ErrorOr<std::string> found = sys::findProgramByName("qdc"))
    return *found;
  return createStringError(
      "an isolated compile needs the program qdc, which is neither beside the library nor on PATH; "
      "QDC_WORKER can name its file");
}

//===----------------------------------------------------------------------===//
// A worker
//===----------------------------------------------------------------------===//

namespace {
class Descriptor {
public:
  Descriptor() = default;
  /// Of a number that no standard stream has, so that a child's can be put in their places.
  explicit Descriptor(int raw) : number(raw < 0 ? -1 : fcntl(raw, F_DUPFD_CLOEXEC, 3)) {
    if (raw >= 0)
      close(raw);
  }
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor &) = delete;
  void reset() {
    if (number >= 0)
      close(number);
    number = -1;
  }
  int get() const { return number; }

private:
  int number = -1;
};

class Worker {
public:
  static Expected<std::unique_ptr<Worker>> start();
  /// Ends the process if it has not ended.
  ~Worker();

  /// An error is what became of the process, which is gone then.
  Expected<CompileResult> run(std::string request, const CompileOptions &options);
  /// Whether it waits for a request; an idle worker may have been killed.
  bool isAlive() const;
  bool mayGoOn() const { return goesOn; }
  /// Leaves the process to another owner.
  void disown() { process = -1; }

private:
  Worker(std::string program, int socket, int log)
      : program(std::move(program)), socket(socket), log(log) {}
  Error spawn(int theirs);
  Error greet();
  Error describeEnd(const CompileOptions &options);
  void kill();
  std::string readLog();

  const std::string program;
  const Descriptor socket, log;
  pid_t process = -1;
  off_t logStart = 0; ///< of the compile under way
  bool goesOn = true;
};
} // namespace

Expected<std::unique_ptr<Worker>> Worker::start() {
  Expected<std::string> program = findProgram();
  if (!program)
    return program.takeError();
  int pair[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
    return createStringError(formatv("cannot start a worker process: {0}", strerror(errno)));
  Descriptor theirs(pair[1]);
  std::unique_ptr<Worker> worker(new Worker(*program, pair[0], memfd_create("qdc-worker", MFD_CLOEXEC)));
  if (theirs.get() < 0 || worker->socket.get() < 0 || worker->log.get() < 0)
    return createStringError(formatv("cannot start a worker process: {0}", strerror(errno)));
  if (Error error = worker->spawn(theirs.get()))
    return std::move(error);
  theirs.reset();
  if (Error error = worker->greet())
    return std::move(error);
  return worker;
}

Error Worker::spawn(int theirs) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, log.get(), 2);
  posix_spawnattr_init(&attributes);
  // The host's signal handling is its own; a group of its own is what a time limit ends, the assembler included.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  char flag[] = "--worker";
  char *arguments[] = {const_cast<char *>(program.c_str()), flag, nullptr};
  int code = posix_spawn(&process, program.c_str(), &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (!code)
    return Error::success();
  process = -1;
  return createStringError(formatv("cannot start the worker process '{0}': {1}", program, strerror(code)));
}

Error Worker::greet() {
  constexpr std::chrono::seconds patience(60);
  std::string greeting;
  Transfer received = receiveMessage(socket.get(), greeting, std::chrono::steady_clock::now() + patience);
  if (received == Transfer::Closed)
    return describeEnd({});
  ByteReader reader(greeting);
  if (received == Transfer::TimedOut || reader.text() != workerGreeting)
    return createStringError(formatv("'{0}' is no worker process of this compiler", program));
  if (std::string found = reader.text(); found != buildId)
    return createStringError(
        formatv("the worker process '{0}' is of build {1}, expected {2}; QDC_WORKER can name another", program,
                StringRef(found).take_front(12), StringRef(buildId).take_front(12)));
  return Error::success();
}

Worker::~Worker() { kill(); }

void Worker::kill() {
  if (process < 0)
    return;
  ::kill(-process, SIGKILL);
  // Before it has a group of its own.
  ::kill(process, SIGKILL);
  while (waitpid(process, nullptr, 0) < 0 && errno == EINTR)
    ;
  process = -1;
}

bool Worker::isAlive() const {
  pollfd poller = {socket.get(), POLLIN | POLLRDHUP, 0};
  return poll(&poller, 1, 0) == 0;
}

/// What the worker wrote to its standard error during this compile, in one line.
std::string Worker::readLog() {
  constexpr size_t most = 1000;
  std::string text(most, 0);
  ssize_t size = pread(log.get(), text.data(), text.size(), logStart);
  text.resize(std::max<ssize_t>(size, 0));
  StringRef said = StringRef(text).trim();
  std::string line;
  for (char c : said)
    line += c == '\n' ? ' ' : c;
  return line;
}

/// The socket is closed, so the process has ended or is about to.
Error Worker::describeEnd(const CompileOptions &options) {
  int status = 0;
  pid_t waited;
  while ((waited = waitpid(process, &status, 0)) < 0 && errno == EINTR)
    ;
  process = -1;
  std::string said = readLog();
  std::string tail = said.empty() ? "" : ": " + said;
  // The host may have waited for it, or may have asked the kernel not to tell.
  if (waited < 0)
    return createStringError(formatv("the worker process '{0}' has ended{1}", program, tail));
  if (options.memoryLimit)
    tail = formatv(" under its memory limit of {0} MiB{1}", options.memoryLimit, tail);
  if (WIFSIGNALED(status))
    return createStringError(formatv("the worker process '{0}' was ended by signal {1} ({2}){3}", program,
                                     WTERMSIG(status), strsignal(WTERMSIG(status)), tail));
  if (WEXITSTATUS(status) == outOfMemoryStatus && options.memoryLimit)
    return createStringError(formatv("the compile needs more memory than its limit of {0} MiB", options.memoryLimit));
  return createStringError(
      formatv("the worker process '{0}' ended with exit status {1}{2}", program, WEXITSTATUS(status), tail));
}

/// The part that all requests have.
static ByteWriter beginRequest(WorkerTask task, StringRef qir, StringRef name, const CompileOptions &options) {
  ByteWriter request;
  request.number(uint64_t(task));
  request.text(name);
  writeOptions(options, request);
  request.number(uint64_t(options.memoryLimit) << 20);
  request.text(qir);
  return request;
}

Expected<CompileResult> Worker::run(std::string request, const CompileOptions &options) {
  logStart = std::max<off_t>(lseek(log.get(), 0, SEEK_END), 0);
  Deadline deadline;
  if (options.timeLimit)
    deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(options.timeLimit);
  Transfer moved = sendMessage(socket.get(), request, deadline);
  std::string bytes;
  if (moved == Transfer::Done)
    moved = receiveMessage(socket.get(), bytes, deadline);
  if (moved == Transfer::TimedOut) {
    kill();
    return createStringError(formatv("the compile takes longer than its limit of {0} ms", options.timeLimit));
  }
  if (moved == Transfer::Closed)
    return describeEnd(options);
  ByteReader reader(bytes);
  goesOn = reader.number();
  std::optional<CompileResult> result = readResult(reader);
  if (result)
    return std::move(*result);
  kill();
  return createStringError(formatv("the worker process '{0}' gave an answer that is no result", program));
}

//===----------------------------------------------------------------------===//
// The workers that wait
//===----------------------------------------------------------------------===//

namespace {
struct Idle {
  std::mutex mutex;
  std::vector<std::unique_ptr<Worker>> workers;
  pid_t owner = getpid();
};
} // namespace

/// Never destroyed: at the host's end the sockets close and the workers go.
static Idle &getIdle() {
  static auto &idle = *new Idle;
  return idle;
}

static Expected<std::unique_ptr<Worker>> acquire() {
  Idle &idle = getIdle();
  {
    std::lock_guard<std::mutex> lock(idle.mutex);
    if (idle.owner != getpid()) {
      // After a fork they are the parent's.
      for (std::unique_ptr<Worker> &worker : idle.workers)
        worker->disown();
      idle.workers.clear();
      idle.owner = getpid();
    }
    while (!idle.workers.empty()) {
      std::unique_ptr<Worker> worker = std::move(idle.workers.back());
      idle.workers.pop_back();
      if (worker->isAlive())
        return worker;
    }
  }
  return Worker::start();
}

static void release(std::unique_ptr<Worker> worker) {
  Idle &idle = getIdle();
  std::lock_guard<std::mutex> lock(idle.mutex);
  if (worker->mayGoOn() && idle.workers.size() < std::max(1u, std::thread::hardware_concurrency()))
    idle.workers.push_back(std::move(worker));
}

static CompileResult makeFailure(StringRef name, Error error) {
  CompileResult result;
  Message message;
  message.text = (name + ": " + toString(std::move(error))).str();
  result.diagnostics = "error: " + message.text + "\n";
  result.messages.push_back(std::move(message));
  return result;
}

static CompileResult runInWorker(ByteWriter request, StringRef name, const CompileOptions &options) {
  Expected<std::unique_ptr<Worker>> worker = acquire();
  if (!worker)
    return makeFailure(name, worker.takeError());
  Expected<CompileResult> result = (*worker)->run(request.take(), options);
  if (!result)
    return makeFailure(name, result.takeError());
  release(std::move(*worker));
  return std::move(*result);
}

CompileResult compileInWorker(std::string_view qir, std::string_view name, const CompileOptions &options) {
  return runInWorker(beginRequest(WorkerTask::Compile, {qir.data(), qir.size()}, {name.data(), name.size()}, options),
                     {name.data(), name.size()}, options);
}

CompileResult prepareInWorker(StringRef qir, StringRef name, const HostRequest &request) {
  ByteWriter writer = beginRequest(WorkerTask::PrepareHostModule, qir, name, request.options);
  writer.text(request.device);
  writer.text(request.checks);
  writer.number(uint64_t(request.options.cache));
  writer.text(request.options.cacheFolder);
  writer.number(request.options.cacheBytes);
  return runInWorker(std::move(writer), name, request.options);
}

} // namespace qd
