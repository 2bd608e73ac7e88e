// Launches carried out by the code object's machine code.
#include "Double.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hipdouble {

bool executesCode() {
  static const bool wanted = [] {
    const char *what = std::getenv("QD_HIP_EXECUTE");
    return what && !std::strcmp(what, "code");
  }();
  return wanted;
}

int runCode(ModuleObject &module, const KernelCode &kernel, const Geometry &geometry, const std::string &segment,
            bool isCooperative) {
  std::string problem;
  if (!module.machine)
    module.machine = amdgcn::Program::load(module.code.bytes, module.code.chip, problem);
  if (!module.machine)
    return misuse(launchFailure, "the code object " + problem);
  Access access;
  // A word of which one byte is the program's is the device's: allocations are of whole words.
  amdgcn::Memory memory = [](uint64_t address, size_t bytes, bool) {
    bool isThere = findMemory(address, address % 4 || bytes > 4 ? bytes : 1);
    return isThere ? reinterpret_cast<uint8_t *>(address) : nullptr;
  };
  problem = module.machine->launch(kernel.name, {geometry.grid, geometry.block, geometry.sharedBytes, isCooperative},
                                   segment, memory);
  if (problem.empty())
    return success;
  std::fprintf(stderr, "stand-in for HIP: kernel '%s': %s\n", kernel.name.c_str(), problem.c_str());
  return launchFailure;
}

} // namespace hipdouble
