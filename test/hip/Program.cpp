// What stands behind a code object: the QIR of the bundle that holds it, which sim carries out for the same chip.
#include "Compiler.h"
#include "Double.h"
#include "runtime/Bundle.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/xxhash.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fstream>
#include <iterator>
#include <sys/stat.h>

namespace hipdouble {

struct Program {
  uint64_t hash;
  qd::rt::Variant variant;
  std::vector<uint8_t> qir;
  unsigned optLevel;
  /// Null until the first launch.
  qdcHostModule sim = nullptr;
};

namespace {

void addFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  addBundle(bytes.data(), bytes.size(), /*optLevel=*/2);
}

void addPath(const std::string &path) {
  struct stat what;
  if (stat(path.c_str(), &what))
    return;
  if (!S_ISDIR(what.st_mode))
    return addFile(path);
  DIR *folder = opendir(path.c_str());
  while (const dirent *entry = folder ? readdir(folder) : nullptr)
    if (llvm::StringRef(entry->d_name).ends_with(".qdb"))
      addFile(path + "/" + entry->d_name);
  if (folder)
    closedir(folder);
}

/// Once a process: what QD_HIP_BUNDLES names.
void addNamed() {
  static bool isDone = false;
  const char *paths = std::getenv("QD_HIP_BUNDLES");
  if (std::exchange(isDone, true) || !paths)
    return;
  llvm::StringRef rest = paths;
  while (!rest.empty()) {
    auto [path, others] = rest.split(':');
    addPath(path.str());
    rest = others;
  }
}

/// What a launch hands over, one after the other: arguments, and behind a buffer its extents where the kernel takes
/// them.
struct Expected {
  std::string name, kind;
  uint64_t bytes;
};
std::vector<Expected> expectedArguments(const qd::rt::Kernel &kernel) {
  std::vector<Expected> rows;
  for (const qd::rt::Parameter &parameter : kernel.parameters) {
    if (!parameter.isBuffer()) {
      rows.push_back({parameter.name, "by_value", parameter.type.bytes()});
      continue;
    }
    rows.push_back({parameter.name, "global_buffer", 8});
    for (unsigned dim = 0; parameter.hasSize && dim < parameter.rank; ++dim)
      rows.push_back({"", "by_value", 8});
  }
  return rows;
}

template <typename T = uint64_t> T read(const std::string &segment, const KernelArgument &argument) {
  T value = 0;
  std::memcpy(&value, segment.data() + argument.offset, std::min<size_t>(argument.size, sizeof value));
  return value;
}

/// The arguments for sim, by the metadata's places.
int decode(const qd::rt::Kernel &kernel, const KernelCode &code, const std::string &segment,
           std::vector<qdcHostArg> &args) {
  size_t at = 0;
  for (const qd::rt::Parameter &parameter : kernel.parameters) {
    qdcHostArg arg = {};
    if (!parameter.isBuffer()) {
      arg.kind = QDC_ARG_SCALAR;
      arg.bits = read(segment, code.arguments[at++]);
      args.push_back(arg);
      continue;
    }
    arg.kind = QDC_ARG_BUFFER;
    uint64_t address = read(segment, code.arguments[at++]), bytes = parameter.type.bytes();
    arg.data = reinterpret_cast<void *>(address);
    arg.count = int64_t(bytesFrom(address) / bytes);
    if (parameter.hasSize) {
      int64_t count = 1;
      for (unsigned dim = 0; dim < parameter.rank; ++dim)
        count *= arg.extents[dim] = read<int64_t>(segment, code.arguments[at++]);
      if (count < 0 || count > arg.count)
        return misuse(illegalAddress, "'" + parameter.name + "' of kernel '" + kernel.name + "' is given as " +
                                          std::to_string(count) + " elements, its memory holds " +
                                          std::to_string(arg.count));
      arg.count = count;
    }
    args.push_back(arg);
  }
  return success;
}

qdcHostModule compile(const Program &program, const Chip &chip) {
  std::string device = "sim:" + chip.name;
  qdcHostOptions options = {};
  compiler().initHostOptions(&options, sizeof options);
  options.device = device.c_str();
  options.subgroupSize = program.variant.subgroupSize;
  options.optLevel = program.optLevel;
  char *diagnostics = nullptr;
  qdcHostModule module =
      compiler().hostLoad(program.qir.data(), program.qir.size(), "bundle", &options, &diagnostics);
  if (!module)
    misuse(launchFailure, "sim does not take what was compiled: " + std::string(diagnostics ? diagnostics : ""));
  compiler().freeString(diagnostics);
  return module;
}

} // namespace

void addBundle(const void *bytes, size_t size, unsigned optLevel) {
  auto bundle = qd::rt::parseBundle(static_cast<const uint8_t *>(bytes), size);
  if (!bundle || bundle->qir.empty())
    return;
  for (qd::rt::Variant &variant : bundle->variants)
    if (variant.triple == qd::rt::amdgcnTriple) {
      uint64_t hash = llvm::xxh3_64bits(variant.image);
      machine().programs.push_front(
          std::make_shared<Program>(Program{hash, std::move(variant), bundle->qir, optLevel}));
    }
}

std::shared_ptr<Program> findProgram(const std::string &code) {
  addNamed();
  uint64_t hash = llvm::xxh3_64bits(llvm::StringRef(code));
  for (auto &program : machine().programs) {
    const std::vector<uint8_t> &image = program->variant.image;
    if (program->hash == hash && image.size() == code.size() && !std::memcmp(image.data(), code.data(), code.size()))
      return program;
  }
  return nullptr;
}

bool checkLayout(const Program &program, const CodeObject &code) {
  if (program.variant.interface.kernels.size() != code.kernels.size())
    return misuse(invalidImage, "the code object has another number of kernels than its bundle says"), false;
  for (const qd::rt::Kernel &kernel : program.variant.interface.kernels) {
    const KernelCode *found = code.find(kernel.name);
    std::vector<Expected> expected = expectedArguments(kernel);
    // LLVM leaves out arrays that nothing reads.
    if (!found || found->lanes != kernel.subgroupSize || found->maxThreads != kernel.blockThreads() ||
        found->ldsBytes + kernel.dynamicSharedBytes > kernel.sharedBytes)
      return misuse(invalidImage, "kernel '" + kernel.name + "' is not in the code object as its bundle says"), false;
    bool fits = found->arguments.size() == expected.size();
    uint64_t end = 0;
    for (size_t i = 0; fits && i < expected.size(); ++i) {
      const KernelArgument &argument = found->arguments[i];
      uint64_t offset = (end + expected[i].bytes - 1) / expected[i].bytes * expected[i].bytes;
      end = offset + expected[i].bytes;
      fits = argument.offset == offset && argument.size == expected[i].bytes && argument.kind == expected[i].kind &&
             (expected[i].name.empty() || argument.name == expected[i].name);
    }
    if (!fits)
      return misuse(invalidImage,
                    "the arguments of kernel '" + kernel.name + "' lie elsewhere than the launch puts them"),
             false;
  }
  return true;
}

int checkAddresses(const KernelCode &kernel, const std::string &segment, int device) {
  for (const KernelArgument &argument : kernel.arguments) {
    uint64_t address = argument.kind == "global_buffer" ? read(segment, argument) : 0;
    const Allocation *memory = findMemory(address, 0);
    if (address && (!memory || memory->device != device)) {
      std::fprintf(stderr, "stand-in for HIP: '%s' of kernel '%s' is at %#llx, which is no memory of device %d\n",
                   argument.name.c_str(), kernel.name.c_str(), static_cast<unsigned long long>(address), device);
      return illegalAddress;
    }
  }
  return success;
}

int runKernel(Program &program, const KernelCode &code, const Geometry &geometry, const std::string &segment,
              int device) {
  const qd::rt::Kernel *kernel = program.variant.interface.find(code.name);
  for (size_t dim = 0; dim < 3; ++dim)
    if (geometry.block[dim] != kernel->block[dim])
      return misuse(launchFailure, "kernel '" + code.name + "' is launched with blocks that it was not compiled for");
  if (geometry.sharedBytes != kernel->dynamicSharedBytes)
    return misuse(launchFailure, "kernel '" + code.name + "' is launched with other shared memory than it takes");
  std::vector<qdcHostArg> args;
  if (int status = decode(*kernel, code, segment, args))
    return status;
  if (!program.sim)
    program.sim = compile(program, machine().chips[size_t(device)]);
  if (!program.sim)
    return launchFailure;
  Access access;
  char *diagnostics = nullptr;
  int failed = compiler().hostLaunch(program.sim, code.name.c_str(), geometry.grid.data(), args.data(), args.size(),
                                     &diagnostics);
  if (diagnostics)
    std::fprintf(stderr, "stand-in for HIP: kernel '%s': %s\n", code.name.c_str(), diagnostics);
  compiler().freeString(diagnostics);
  return failed ? launchFailure : success;
}

} // namespace hipdouble
