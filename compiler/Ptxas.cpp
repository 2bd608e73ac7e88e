//===- Ptxas.cpp - NVIDIA's assembler as a child process -----------------------------------------===//

#include "compiler/Ptxas.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace qd {

std::optional<std::string> findPtxas() {
  if (std::optional<std::string> named = sys::Process::GetEnv("QDC_PTXAS"); named && !named->empty())
    return named;
  if (ErrorOr<std::string> found = sys::findProgramByName("ptxas"))
    return *found;
  for (StringRef variable : {"CUDA_HOME", "CUDA_PATH", ""}) {
    std::optional<std::string> root = variable.empty() ? "/usr/local/cuda" : sys::Process::GetEnv(variable);
    if (!root || root->empty())
      continue;
    SmallString<128> path(*root);
    sys::path::append(path, "bin", "ptxas");
    if (sys::fs::can_execute(path))
      return path.str().str();
  }
  return std::nullopt;
}

namespace {
/// A file that is gone when its user is.
class TemporaryFile {
public:
  explicit TemporaryFile(StringRef extension) : error(sys::fs::createTemporaryFile("qdc", extension, path)) {}
  ~TemporaryFile() {
    if (!error)
      sys::fs::remove(path);
  }
  TemporaryFile(const TemporaryFile &) = delete;

  Error write(StringRef bytes) {
    raw_fd_ostream stream(path, error);
    if (error)
      return describe();
    stream << bytes;
    stream.close();
    error = stream.error();
    stream.clear_error();
    return error ? describe() : Error::success();
  }
  /// Empty where the file cannot be read.
  std::string read() const {
    auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }
  Error describe() const {
    return createStringError("cannot write a temporary file for ptxas: " + error.message());
  }

  SmallString<128> path;
  std::error_code error;
};
} // namespace

static Error describeFailure(StringRef program, const Target &target, StringRef said) {
  StringRef chip = target.chip->name;
  // CUDA 13 dropped the chips before sm_75.
  if (said.contains("is not defined for option 'gpu-name'"))
    return createStringError(formatv("'{0}' does not know {1}: CUDA 13's ptxas assembles for sm_75 and later, an older "
                                     "one may lack the newest chips; QDC_PTXAS names another",
                                     program, chip));
  said = said.rtrim();
  return createStringError(
      formatv("'{0}' failed on the PTX for {1}{2}{3}", program, chip, said.empty() ? "" : ":\n", said));
}

Expected<Assembled> assemblePTX(StringRef ptx, const Target &target, unsigned optLevel, bool debug) {
  std::optional<std::string> program = findPtxas();
  if (!program)
    return createStringError("output 'cubin' needs NVIDIA's ptxas, which is neither on PATH nor in CUDA_HOME or "
                             "/usr/local/cuda; a driver also takes PTX");
  TemporaryFile input("ptx"), output("cubin"), log("log");
  for (TemporaryFile *file : {&input, &output, &log})
    if (file->error)
      return file->describe();
  if (Error error = input.write(ptx))
    return error;

  std::string chip = ("-arch=" + target.chip->name).str();
  // ptxas' own default is 3; below that only -O0 means anything to someone who debugs.
  StringRef level = optLevel ? "-O3" : "-O0";
  SmallVector<StringRef> arguments = {*program, "-v", chip, level, input.path, "-o", output.path};
  if (debug)
    arguments.push_back("-lineinfo");
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log.path), StringRef(log.path)};
  std::string message;
  int status = sys::ExecuteAndWait(*program, arguments, std::nullopt, redirects, 0, 0, &message);
  if (status < 0)
    return createStringError("cannot run '" + *program + "': " + message);
  std::string said = log.read();
  if (status != 0)
    return describeFailure(*program, target, said);
  Assembled assembled{output.read(), std::move(said)};
  if (assembled.cubin.empty())
    return createStringError("'" + *program + "' wrote no cubin");
  return assembled;
}

} // namespace qd
