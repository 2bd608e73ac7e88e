// Reading AMD code objects: what the loader and a launch need of them.
//
// readCodeObject takes an ELF file whose header is whole, as the driver does. What it returns is consistent: target,
// metadata, kernel descriptors and symbols say the same.
#ifndef QD_TEST_HIP_CODEOBJECT_H
#define QD_TEST_HIP_CODEOBJECT_H

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace hipdouble {

struct KernelArgument {
  std::string name, kind, access;
  uint64_t offset = 0, size = 0;
};

struct KernelCode {
  std::string name;
  uint64_t segmentBytes = 0, ldsBytes = 0, maxThreads = 0, lanes = 0;
  /// What the launch hands over, and what the driver adds.
  std::vector<KernelArgument> arguments, hidden;
};

struct CodeObject {
  std::string bytes, chip;
  /// '+', '-' or ' ' for code that runs either way.
  char xnack = ' ', sramecc = ' ';
  std::vector<KernelCode> kernels;

  const KernelCode *find(const std::string &name) const;
};

llvm::Expected<CodeObject> readCodeObject(const void *image);

} // namespace hipdouble

#endif // QD_TEST_HIP_CODEOBJECT_H
