//===- Main.cpp - the qdc command -------------------------------------------------------------===//
//
// Purpose: compiles a .qir file for one or several targets. Exit status 0; 1 where the input does not compile or a
// file cannot be read or written; 2 where the command line is wrong.
//
//===----------------------------------------------------------------------===//

#include "compiler/Compiler.h"
#include "compiler/Worker.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>
#include <string>
#include <vector>

using namespace llvm;

static constexpr const char *overview = R"(qdc compiles GPU kernels written in QIR.

EXAMPLES
  qdc sum.qir -target=nvptx -mcpu=sm_90              PTX for an H100, to standard output
  qdc sum.qir -target=amdgcn -mcpu=gfx942 -o s.hsaco a code object for an MI300
  qdc sum.qir -target=spirv -subgroup-size=32        sum.spv for Vulkan
  qdc sum.qir -target=nvptx:sm_80,amdgcn:gfx942,spirv -o sum.qdb
                                                     one bundle for all three
  qdc sum.qir -target=nvptx --emit=expanded          QIR after the expansions
  qdc sum.qir -target=nvptx -block=sum=128           a resizable kernel with blocks of 128 threads
  qdc sum.qir -target=nvptx -bind=n=1024             the argument n is a constant
  qdc - < sum.qir --emit=qir                         check and format

A target is BACKEND, BACKEND:CHIP or either with @LANES behind it (amdgcn:gfx1100@64).
`qdc --list-targets` lists them all; `qdc-run` runs a kernel.)";

static std::string describeEmitKinds() {
  std::string text = "Output:";
  for (const qd::EmitKind &kind : qd::getEmitKinds())
    text += "\n    " + std::string(kind.name) + std::string(12 - std::string(kind.name).size(), ' ') + kind.summary;
  return text;
}

namespace {
struct Options {
  cl::OptionCategory category{"qdc options"};
  std::string emitHelp = describeEmitKinds();
  cl::opt<std::string> input{cl::Positional, cl::desc("FILE"), cl::cat(category)};
  cl::list<std::string> targets{"target", cl::CommaSeparated, cl::value_desc("TARGET[,TARGET...]"),
                                cl::desc("What to compile for"), cl::cat(category)};
  cl::opt<std::string> chip{"mcpu", cl::value_desc("CHIP"), cl::desc("Chip of the one target"), cl::cat(category)};
  cl::opt<unsigned> subgroupSize{"subgroup-size", cl::value_desc("N"),
                                 cl::desc("Lanes of a subgroup, where the target has a choice"), cl::cat(category)};
  cl::opt<std::string> emit{"emit", cl::value_desc("KIND"), cl::desc(emitHelp), cl::cat(category)};
  cl::list<std::string> outputs{"o", cl::value_desc("FILE"), cl::desc("Output file; - is standard output"),
                                cl::cat(category)};
  cl::opt<bool> dependencies{"MD", cl::desc("Also write a dependency file beside the output (.d)"),
                             cl::cat(category)};
  cl::opt<std::string> level{"O", cl::Prefix, cl::ValueOptional, cl::value_desc("LEVEL"), cl::init("2"),
                             cl::desc("Optimisation level, -O0 to -O3 (default -O2)"), cl::cat(category)};
  cl::opt<bool> debug{"g", cl::desc("Add the source's lines, for debuggers and profilers; the code stays the same"),
                      cl::cat(category)};
  cl::opt<bool> stripQir{"strip-qir", cl::desc("Leave the QIR out of a bundle"), cl::cat(category)};
  cl::opt<std::string> divergent{"divergent", cl::value_desc("error|warn|allow"), cl::init("error"),
                                 cl::desc("Collective ops in divergent control flow"), cl::cat(category)};
  cl::list<std::string> blocks{"block", cl::CommaSeparated, cl::value_desc("NAME=X[xY[xZ]],..."),
                               cl::desc("Block sizes of resizable kernels"), cl::cat(category)};
  cl::list<std::string> bindings{"bind", cl::CommaSeparated, cl::value_desc("[KERNEL.]ARGUMENT=VALUE,..."),
                                 cl::desc("Scalar arguments that are constants; they leave the interface"),
                                 cl::cat(category)};
  cl::opt<std::string> remarks{"Rpass", cl::value_desc("expand"), cl::desc("Report how ops are carried out"),
                               cl::cat(category)};
  cl::opt<bool> cache{"cache",
                      cl::desc("Keep results in a folder, and take them from it (QDC_CACHE_DIR, else ~/.cache/qdc)"),
                      cl::cat(category)};
  cl::opt<bool> cacheStats{"cache-stats", cl::desc("Show the cache folder, its size and its hits"), cl::cat(category)};
  cl::opt<bool> isolate{"isolate", cl::desc("Compile in a child process: what would end this one is an error"),
                        cl::cat(category)};
  cl::opt<unsigned> timeLimit{"time-limit", cl::value_desc("MS"),
                              cl::desc("Milliseconds that the compile may take, in a child process"),
                              cl::cat(category)};
  cl::opt<unsigned> memoryLimit{"memory-limit", cl::value_desc("MIB"),
                                cl::desc("Memory that the compile may take, in a child process"), cl::cat(category)};
  cl::opt<bool> listTargets{"list-targets", cl::desc("List targets, chips and subgroup sizes"), cl::cat(category)};
  std::vector<cl::Option *> all{&input,        std::addressof(targets), &chip,   &subgroupSize, &emit,
                                &dependencies, std::addressof(outputs), &level,  &stripQir,     &divergent,
                                &remarks,      &listTargets,            &cache,  &cacheStats,   std::addressof(blocks),
                                std::addressof(bindings), &isolate, &timeLimit, &memoryLimit, &debug};
};
} // namespace

static int fail(int status, const Twine &message) {
  errs() << "qdc: " << message << "\n";
  return status;
}

/// The whole of a file or of standard input, which may be a device without an end.
static Expected<std::string> readInput(StringRef path) {
  constexpr size_t maxBytes = size_t(64) << 20, chunk = size_t(64) << 10;
  Expected<sys::fs::file_t> file = path == "-" ? Expected<sys::fs::file_t>(sys::fs::getStdinHandle())
                                               : sys::fs::openNativeFileForRead(path);
  if (!file)
    return file.takeError();
  std::string text;
  Error error = Error::success();
  while (text.size() <= maxBytes) {
    size_t size = text.size();
    text.resize(size + chunk);
    Expected<size_t> got = sys::fs::readNativeFile(*file, {text.data() + size, chunk});
    text.resize(size + (got ? *got : 0));
    if (!got)
      error = joinErrors(std::move(error), got.takeError());
    if (text.size() == size)
      break;
  }
  if (path != "-")
    sys::fs::closeFile(*file);
  if (error)
    return std::move(error);
  if (text.size() > maxBytes)
    return createStringError("it holds more than " + Twine(maxBytes >> 20) + " MiB");
  return text;
}

/// Extension of a kind's file, and whether it is binary.
static std::pair<StringRef, bool> describeFile(StringRef kind) {
  if (kind == "hsaco" || kind == "cubin" || kind == "qdb")
    return {kind, true};
  if (kind == "spirv")
    return {"spv", true};
  if (kind == "bytecode")
    return {"qbc", true};
  return {kind, false};
}

/// The kind that an empty --emit stands for: as Compiler.h describes it.
static StringRef resolveKind(const qd::CompileOptions &options) {
  if (!options.emit.empty())
    return options.emit;
  if (options.targets.size() > 1)
    return "qdb";
  StringRef target = options.targets.empty() ? StringRef() : StringRef(options.targets.front());
  return target.starts_with("amdgcn") ? "hsaco" : target.starts_with("spirv") ? "spirv" : "asm";
}

/// A file name as make reads it.
static std::string escapeForMake(StringRef name) {
  std::string escaped;
  for (char c : name) {
    if (c == ' ' || c == '#' || c == '\\')
      escaped += '\\';
    if (c == '$')
      escaped += '$';
    escaped += c;
  }
  return escaped;
}

static int writeOutput(StringRef path, StringRef data, bool isBinary) {
  std::error_code error;
  ToolOutputFile file(path, error, isBinary ? sys::fs::OF_None : sys::fs::OF_Text);
  if (error)
    return fail(1, "cannot write '" + path + "': " + error.message());
  file.os() << data;
  file.os().flush();
  if (file.os().has_error()) {
    error = file.os().error();
    file.os().clear_error();
    return fail(1, "cannot write '" + path + "': " + error.message());
  }
  file.keep();
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 2 && StringRef(argv[1]) == "--worker")
    return qd::runWorker();
  Options flags;
  cl::HideUnrelatedOptions(flags.category);
  cl::SetVersionPrinter([](raw_ostream &os) { os << qd::getVersionText() << "\n"; });
  std::string usageErrors;
  raw_string_ostream usageStream(usageErrors);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &usageStream)) {
    errs() << usageErrors;
    return 2;
  }
  // lld registers options of the same names for each link.
  for (cl::Option *option : flags.all)
    option->removeArgument();
  for (const cl::opt<bool> *question : {&flags.listTargets, &flags.cacheStats}) {
    if (!*question)
      continue;
    if (!flags.input.empty())
      return fail(2, "--" + question->ArgStr + " takes no input, found '" + flags.input + "'");
    for (const cl::Option *option : flags.all)
      if (option->getNumOccurrences() && option != question)
        return fail(2, "--" + question->ArgStr + " takes no other option, found '-" + option->ArgStr + "'");
  }
  if (flags.listTargets) {
    outs() << qd::describeTargets();
    return 0;
  }
  if (flags.cacheStats) {
    outs() << qd::describeCache({});
    return 0;
  }
  if (flags.input.empty())
    return fail(2, "no input file; `qdc --help` shows examples");
  if (flags.outputs.size() > 1)
    return fail(2, "-o is given twice, '" + flags.outputs[0] + "' and '" + flags.outputs[1] + "', expected one output");

  qd::CompileOptions options;
  options.targets.assign(flags.targets.begin(), flags.targets.end());
  options.emit = flags.emit;
  options.subgroupSize = flags.subgroupSize;
  options.debug = flags.debug;
  options.stripQir = flags.stripQir;
  options.divergent = flags.divergent;
  options.remarks = flags.remarks;
  options.blocks = join(flags.blocks, ",");
  options.bind = join(flags.bindings, ",");
  options.isolate = flags.isolate;
  options.timeLimit = flags.timeLimit;
  options.memoryLimit = flags.memoryLimit;
  if (flags.cache)
    options.cache = qd::CachePolicy::Disk;
  if (flags.level.size() != 1 || flags.level[0] < '0' || flags.level[0] > '3')
    return fail(2, "unknown optimisation level -O" + flags.level + ", expected -O0 to -O3");
  options.optLevel = flags.level[0] - '0';
  if (!flags.chip.empty()) {
    if (options.targets.size() != 1 || StringRef(options.targets[0]).contains(':'))
      return fail(2, "-mcpu names the chip of one -target=BACKEND; write -target=BACKEND:CHIP for several");
    auto [backend, size] = StringRef(options.targets[0]).split('@');
    options.targets[0] = (backend + ":" + flags.chip + (size.empty() ? "" : "@" + size)).str();
  }
  if (flags.subgroupSize.getNumOccurrences() && options.targets.size() == 1 &&
      StringRef(options.targets[0]).contains('@'))
    return fail(2, "target '" + options.targets[0] + "' names its lanes; leave out -subgroup-size");
  if (flags.subgroupSize.getNumOccurrences() && !flags.subgroupSize)
    return fail(2, "-subgroup-size=0: expected 4, 8, 16, 32 or 64");

  Expected<std::string> input = readInput(flags.input);
  if (!input)
    return fail(1, "cannot read '" + flags.input + "': " + toString(input.takeError()));
  StringRef output = flags.outputs.empty() ? StringRef() : StringRef(flags.outputs.front());
  if (options.emit.empty() && output.ends_with(".qdb"))
    options.emit = "qdb";
  StringRef kind = resolveKind(options);
  auto [extension, isBinary] = describeFile(kind);
  SmallString<128> path = output;
  if (path.empty() && isBinary) {
    if (flags.input == "-")
      return fail(2, "'" + kind + "' is binary; name a file with -o, or -o - for standard output");
    path = sys::path::stem(flags.input);
    path += "." + extension.str();
  } else if (path.empty()) {
    path = "-";
  }
  if (flags.dependencies && path == "-")
    return fail(2, "-MD needs an output file; name one with -o");
  SmallString<128> dependencyPath = path;
  sys::path::replace_extension(dependencyPath, "d");
  for (StringRef written : {StringRef(path), StringRef(dependencyPath)})
    if ((written == path || flags.dependencies) && sys::fs::equivalent(flags.input, written))
      return fail(2, "output '" + written + "' is the input itself; name another file with -o");
  if (flags.dependencies && (path == dependencyPath || sys::fs::equivalent(path, dependencyPath)))
    return fail(2, "output '" + path + "' and the dependency file '" + dependencyPath +
                       "' of -MD are one file; name another output with -o");

  StringRef name = flags.input == "-" ? StringRef("<stdin>") : StringRef(flags.input);
  qd::CompileResult result = qd::compile(*input, {name.data(), name.size()}, options);
  errs() << result.diagnostics;
  if (!result.ok)
    return 1;
  if (int status = writeOutput(path, result.data, isBinary))
    return status;
  if (!flags.dependencies)
    return 0;
  std::string rule = escapeForMake(path) + ":";
  if (flags.input != "-")
    rule += " " + escapeForMake(flags.input);
  return writeOutput(dependencyPath, rule + "\n", false);
}
