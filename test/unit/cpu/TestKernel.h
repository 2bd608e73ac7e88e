//===- TestKernel.h - runs QIR text on a host device ------------------------------------===//

#ifndef QD_TEST_UNIT_CPU_TESTKERNEL_H
#define QD_TEST_UNIT_CPU_TESTKERNEL_H

#include "codegen/HostProgram.h"
#include "codegen/cpu/CPU.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace qd::test {

/// A buffer argument over any vector of numbers; tests keep the vector.
template <typename T> HostArg buffer(std::vector<T> &data) {
  return {true, data.data(), int64_t(data.size()), 0};
}

template <typename T> HostArg scalar(T value) {
  HostArg arg;
  static_assert(sizeof(T) <= 8);
  std::memcpy(&arg.bits, &value, sizeof(T));
  return arg;
}

/// A module parsed and verified; a failure to do so fails the test.
class Module {
public:
  explicit Module(llvm::StringRef text);

  std::unique_ptr<HostProgram> createProgram(Backend backend, unsigned lanes, unsigned threads = 2,
                                             unsigned optLevel = 2, llvm::StringRef cpu = "");
  std::string emitText(unsigned lanes, CPUText form, unsigned optLevel = 2, llvm::StringRef cpu = "");
  /// All diagnostics since the last call.
  std::string takeDiagnostics();

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string diagnostics;
};

inline Target getTarget(Backend backend, unsigned lanes) { return {&getDefaultChip(backend), lanes}; }

/// Runs the only kernel of `text`, named @k, on the cpu device.
void run(llvm::StringRef text, unsigned lanes, std::array<uint32_t, 3> grid, llvm::ArrayRef<HostArg> args,
         unsigned threads = 2, llvm::StringRef cpu = "");

/// Processors whose code differs in kind and that this machine can stand in for: "" for itself, and one with 256-bit
/// vectors and no mask registers.
std::vector<std::string> getProcessors();

/// Replaces each `{name}` of a kernel's text.
std::string fill(llvm::StringRef text, llvm::ArrayRef<std::pair<llvm::StringRef, std::string>> values);

constexpr unsigned allLanes[] = {4, 8, 16, 32, 64};

} // namespace qd::test

#endif
