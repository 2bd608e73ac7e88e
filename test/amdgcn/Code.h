// The machine code of a code object, read by LLVM's disassembler.
#ifndef QD_TEST_AMDGCN_CODE_H
#define QD_TEST_AMDGCN_CODE_H

#include "Wave.h"

#include "llvm/ADT/ArrayRef.h"

#include <memory>
#include <string>
#include <unordered_map>

namespace amdgcn {

/// Reads instructions as they are reached.
class Code {
public:
  Code(const std::string &chip, unsigned lanes);
  ~Code();
  /// The instruction at a place of the bytes, or null, with the problem.
  const Issue *at(llvm::ArrayRef<uint8_t> bytes, uint64_t base, uint64_t address, std::string &problem);

private:
  struct Reader;
  std::unique_ptr<Reader> reader;
  std::unordered_map<uint64_t, Issue> issues;
};

} // namespace amdgcn

#endif // QD_TEST_AMDGCN_CODE_H
