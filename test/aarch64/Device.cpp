// A stand-in for the compiler library whose cpu device is a 64-bit Arm processor: a module's LLVM IR for it goes
// through LLVM's own code generator, and qemu runs the program that the linker makes of it and Launcher.c. All else is
// handed on to the library that was built with it.
//
// QD_AARCH64_CPU names the processor, as LLVM and qemu both do: cortex-a53 has the first version of the architecture,
// neoverse-n1 atomic instructions and arithmetic of f16.
#include "Protocol.h"

#include "compiler/qdc.h"
#include "runtime/Interface.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace qd::rt;

namespace {

template <typename F> F find(const char *name) {
  static void *library = dlopen(COMPILER_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
  void *function = library ? dlsym(library, name) : nullptr;
  if (!function) {
    std::fprintf(stderr, "64-bit Arm device: %s\n", dlerror());
    std::exit(98);
  }
  return reinterpret_cast<F>(function);
}

/// A function of the library that all is handed on to.
#define REAL(function) find<decltype(&function)>(#function)

std::string getProcessor() {
  const char *name = std::getenv("QD_AARCH64_CPU");
  return name && *name ? name : "cortex-a53";
}

/// A folder that goes with its owner.
class Folder {
public:
  Folder() {
    path = (std::filesystem::temp_directory_path() / "qd-aarch64-XXXXXX").string(); // mkdtemp's form
    if (!mkdtemp(path.data()))
      path.clear();
  }
  ~Folder() {
    for (const char *name : {"kernels.ll", "kernels.o", "kernels", "log"})
      unlink((path + "/" + name).c_str());
    rmdir(path.c_str());
  }
  std::string operator/(const char *name) const { return path + "/" + name; }

private:
  std::string path;
};

/// Runs a tool to its end; what it says goes to `log`.
Error runTool(const std::vector<std::string> &words, const std::string &log) {
  std::vector<char *> argv;
  for (const std::string &word : words)
    argv.push_back(const_cast<char *>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = fork();
  if (child == 0) {
    if (std::freopen(log.c_str(), "w", stderr))
      execv(argv[0], argv.data());
    _exit(97);
  }
  int status = 0;
  if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
    return Error::success();
  std::ostringstream said;
  said << std::ifstream(log).rdbuf();
  return fail(words[0], " ends with status ", status, ": ", said.str());
}

/// A running program with the kernels of a module. Requests go in, replies come out.
class Program {
public:
  explicit Program(const std::string &path) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
      return;
    std::string processor = getProcessor();
    child = fork();
    if (child == 0) {
      dup2(ends[0], 0);
      dup2(ends[0], 1);
      execl(QEMU, QEMU, "-cpu", processor.c_str(), path.c_str(), nullptr);
      _exit(97);
    }
    close(ends[0]);
    connection = ends[1];
  }
  ~Program() {
    close(connection);
    if (child > 0)
      waitpid(child, nullptr, 0);
  }
  Program(const Program &) = delete;

  void put(const void *data, size_t bytes) {
    for (auto *at = static_cast<const char *>(data); bytes && isRunning;) {
      ssize_t done = send(connection, at, bytes, MSG_NOSIGNAL);
      isRunning = done > 0;
      at += done;
      bytes -= static_cast<size_t>(done);
    }
  }
  void get(void *data, size_t bytes) {
    for (auto *at = static_cast<char *>(data); bytes && isRunning;) {
      ssize_t done = recv(connection, at, bytes, 0);
      isRunning = done > 0;
      at += done;
      bytes -= static_cast<size_t>(done);
    }
  }
  /// Cleared when it has ended; what was got last holds anything then.
  bool isRunning = true;

private:
  pid_t child = -1;
  int connection = -1;
};

struct Module {
  /// Which knows the interface, and runs the kernels of other devices.
  qdcHostModule real = nullptr;
  bool isArm = false;
  std::string code; ///< LLVM IR
  Interface interface;
  uint32_t workers = 2;
  std::mutex mutex;
  std::unique_ptr<Program> program; ///< from the first launch on

  ~Module() { REAL(qdcHostUnload)(real); }
};

Error startProgram(Module &module) {
  Folder folder;
  {
    std::ofstream file(folder / "kernels.ll", std::ios::binary);
    file << module.code << "\n@kernels = constant [" << module.interface.kernels.size() << " x { ptr, ptr }] [";
    const char *comma = "";
    for (const Kernel &kernel : module.interface.kernels) {
      file << comma << "{ ptr, ptr } { ptr @\"kernel." << kernel.name << "\", ptr @\"facts." << kernel.name << "\" }";
      comma = ", ";
    }
    file << "]\n";
  }
  std::string log = folder / "log";
  if (Error error =
          runTool({LLC, "-mcpu=" + getProcessor(), "-O2", "-filetype=obj", "-relocation-model=pic", "-code-model=small",
                   "-fp-contract=off", folder / "kernels.ll", "-o", folder / "kernels.o"},
                  log))
    return error;
  if (Error error =
          runTool({LLD, "-static", "--fatal-warnings", folder / "kernels.o", LAUNCHER, "-o", folder / "kernels"}, log))
    return error;
  module.program = std::make_unique<Program>(folder / "kernels");
  // The first reply comes when the program has been loaded; only then may its file go.
  Request nothing = {0, {0, 0, 0}, 0, 0};
  Reply reply;
  module.program->put(&nothing, sizeof nothing);
  module.program->get(&reply, sizeof reply);
  return module.program->isRunning ? Error::success() : fail(QEMU, " does not run");
}

std::string place(uint64_t number, uint64_t x, uint64_t y) {
  return text("(", number % x, ", ", number / x % y, ", ", number / x / y, ")");
}

/// Finds the memory that each buffer lies in, and returns where on the host what belongs to an argument is.
std::vector<char *> findMemory(std::vector<::Argument> &arguments, const qdcHostArg *args) {
  std::vector<char *> begins(arguments.size());
  auto end = [&](size_t i) { return begins[i] + arguments[i].bytes; };
  for (size_t i = 0; i < arguments.size(); ++i) {
    begins[i] = static_cast<char *>(arguments[i].isBuffer ? args[i].data : nullptr);
    arguments[i].owner = i;
  }
  auto owns = [&](size_t i) { return arguments[i].isBuffer && arguments[i].bytes && arguments[i].owner == i; };
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (size_t i = 0; i < arguments.size(); ++i)
      for (size_t k = i + 1; k < arguments.size(); ++k) {
        if (!owns(i) || !owns(k) || begins[i] >= end(k) || begins[k] >= end(i))
          continue;
        char *last = std::max(end(i), end(k));
        begins[i] = std::min(begins[i], begins[k]);
        arguments[i].bytes = static_cast<uint64_t>(last - begins[i]);
        for (::Argument &argument : arguments)
          if (argument.owner == k)
            argument.owner = i;
        isChanged = true;
      }
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].isBuffer)
      arguments[i].offset = static_cast<uint64_t>(static_cast<char *>(args[i].data) - begins[arguments[i].owner]);
  return begins;
}

Error launch(Module &module, const std::string &name, const uint32_t grid[3], const qdcHostArg *args) {
  std::lock_guard<std::mutex> lock(module.mutex);
  if (!module.program || !module.program->isRunning)
    if (Error error = startProgram(module))
      return error;
  Program &program = *module.program;
  const Kernel &kernel = *module.interface.find(name);
  Request request = {static_cast<uint32_t>(&kernel - module.interface.kernels.data()), {grid[0], grid[1], grid[2]},
                     static_cast<uint32_t>(kernel.parameters.size()), module.workers};
  std::vector<::Argument> arguments;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const Parameter &parameter = kernel.parameters[i];
    ::Argument argument = {};
    argument.isBuffer = parameter.isBuffer();
    argument.slots[0] = args[i].bits;
    if (parameter.isBuffer()) {
      argument.bytes = static_cast<uint64_t>(args[i].count) * parameter.type.bytes();
      for (unsigned dim = 0; dim < parameter.rank; ++dim)
        argument.slots[1 + dim] = static_cast<uint64_t>(parameter.rank == 1 ? args[i].count : args[i].extents[dim]);
    }
    arguments.push_back(argument);
  }
  std::vector<char *> memory = findMemory(arguments, args);
  auto ownsMemory = [&](size_t i) { return arguments[i].isBuffer && arguments[i].owner == i; };
  program.put(&request, sizeof request);
  program.put(arguments.data(), arguments.size() * sizeof(::Argument));
  for (size_t i = 0; i < arguments.size(); ++i)
    if (ownsMemory(i))
      program.put(memory[i], arguments[i].bytes);

  Reply reply = {};
  program.get(&reply, sizeof reply);
  std::string message(program.isRunning ? reply.messageBytes : 0, ' ');
  program.get(message.data(), message.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (ownsMemory(i))
      program.get(memory[i], arguments[i].bytes);
  if (!program.isRunning)
    return fail("the launcher has ended");
  switch (reply.outcome) {
  case AssertFailed:
    return fail(message, "block ", place(reply.block, grid[0], grid[1]), ", thread ",
                place(reply.thread, kernel.block[0], kernel.block[1]), ")");
  case SomeBlocksEnded:
    return fail("'qd.grid.sync' is not reached by all blocks");
  case Died:
    return fail("a process ends with status ", reply.thread);
  }
  return Error::success();
}

char *copy(const std::string &text) { return strdup(text.c_str()); }

} // namespace

extern "C" {

QDC_API uint32_t qdcApiVersion(void) { return REAL(qdcApiVersion)(); }
QDC_API void qdcInitCompileOptionsSized(qdcCompileOptions *options, uint32_t bytes) {
  REAL(qdcInitCompileOptionsSized)(options, bytes);
}
QDC_API qdcResult qdcCompile(const void *qir, size_t size, const char *name, const qdcCompileOptions *options) {
  return REAL(qdcCompile)(qir, size, name, options);
}
QDC_API int qdcResultOk(qdcResult result) { return REAL(qdcResultOk)(result); }
QDC_API const void *qdcResultData(qdcResult result, size_t *size) { return REAL(qdcResultData)(result, size); }
QDC_API const char *qdcResultDiagnostics(qdcResult result) { return REAL(qdcResultDiagnostics)(result); }
QDC_API void qdcResultFree(qdcResult result) { REAL(qdcResultFree)(result); }
QDC_API void qdcInitHostOptionsSized(qdcHostOptions *options, uint32_t bytes) {
  REAL(qdcInitHostOptionsSized)(options, bytes);
}
QDC_API void qdcFreeString(char *string) { REAL(qdcFreeString)(string); }

QDC_API qdcHostModule qdcHostLoad(const void *qir, size_t size, const char *name, const qdcHostOptions *options,
                                  char **diagnostics) {
  auto module = std::make_unique<Module>();
  module->isArm = !std::strcmp(options->device, "cpu");
  qdcHostOptions host = *options;
  // No code is made for this machine.
  if (module->isArm)
    host.device = "interp";
  module->real = REAL(qdcHostLoad)(qir, size, name, &host, diagnostics);
  if (!module->real)
    return nullptr;
  if (module->isArm) {
    module->interface = *parseInterface(REAL(qdcHostInterface)(module->real));
    module->workers = options->threads ? options->threads : 2;
    qdcCompileOptions compile;
    REAL(qdcInitCompileOptionsSized)(&compile, sizeof compile);
    compile.targets = "cpu:aarch64";
    compile.emit = "llvm";
    compile.subgroupSize = options->subgroupSize;
    compile.optLevel = options->optLevel;
    compile.blocks = options->blocks;
    compile.bind = options->bind;
    qdcResult result = REAL(qdcCompile)(qir, size, name, &compile);
    size_t bytes = 0;
    const void *data = REAL(qdcResultData)(result, &bytes);
    module->code.assign(static_cast<const char *>(data), bytes);
    bool isOk = REAL(qdcResultOk)(result);
    if (!isOk && diagnostics)
      *diagnostics = copy(REAL(qdcResultDiagnostics)(result));
    REAL(qdcResultFree)(result);
    if (!isOk)
      return nullptr;
  }
  return reinterpret_cast<qdcHostModule>(module.release());
}

QDC_API const char *qdcHostInterface(qdcHostModule handle) {
  return REAL(qdcHostInterface)(reinterpret_cast<Module *>(handle)->real);
}

QDC_API int qdcHostLaunch(qdcHostModule handle, const char *kernel, const uint32_t grid[3], const qdcHostArg *args,
                          size_t numArgs, char **diagnostics) {
  auto &module = *reinterpret_cast<Module *>(handle);
  if (!module.isArm)
    return REAL(qdcHostLaunch)(module.real, kernel, grid, args, numArgs, diagnostics);
  if (diagnostics)
    *diagnostics = nullptr;
  Error error = launch(module, kernel, grid, args);
  if (error && diagnostics)
    *diagnostics = copy(error.message());
  return bool(error);
}

QDC_API void qdcHostUnload(qdcHostModule handle) { delete reinterpret_cast<Module *>(handle); }

} // extern "C"
