// Carrying out the machine code of a code object, without a GPU.
//
// A launch ends as on a chip that has one memory without caches and takes the waves' instructions in turn, some of one
// and some of the next. It fails at an instruction that is not known here, and where a program depends on registers,
// shared or private memory that nothing has written.
#ifndef QD_TEST_AMDGCN_LAUNCH_H
#define QD_TEST_AMDGCN_LAUNCH_H

#include "Wave.h"

#include <array>
#include <memory>
#include <string>

namespace amdgcn {

struct LaunchShape {
  std::array<uint32_t, 3> grid, block;
  uint32_t dynamicSharedBytes = 0;
  /// All blocks run at once.
  bool isCooperative = false;
};

class Program {
public:
  /// Of an ELF file that is consistent, for the chip that it is compiled for. Null, with the problem, where it has
  /// none.
  static std::unique_ptr<Program> load(const std::string &elf, const std::string &chip, std::string &problem);
  virtual ~Program() = default;
  /// What went wrong, or an empty text.
  virtual std::string launch(const std::string &kernel, const LaunchShape &shape, const std::string &arguments,
                             const Memory &memory) = 0;
};

} // namespace amdgcn

#endif // QD_TEST_AMDGCN_LAUNCH_H
