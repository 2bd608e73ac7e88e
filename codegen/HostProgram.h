//===- HostProgram.h - kernels that run on this machine -------------------------===//
//
// Purpose: the one interface of the executors inside the compiler: interp, cpu and sim.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_HOSTPROGRAM_H
#define QD_CODEGEN_HOSTPROGRAM_H

#include "ir/Dialect.h"
#include "ir/Targets.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace qd {

/// A launch's value for one kernel argument.
struct HostArg {
  bool isBuffer = false;
  void *data = nullptr;  ///< buffer: its first element
  int64_t count = 0;     ///< buffer: its elements
  uint64_t bits = 0;     ///< scalar: its bits, zero-extended
  std::array<int64_t, 3> extents = {}; ///< buffer of several dimensions: its elements along each, rows first

  int64_t getExtent(unsigned dim, unsigned rank) const { return rank == 1 ? count : extents[dim]; }
};

/// Keeps machine code for other processes; thread-safe. A key is all that the code depends on but the compiler's build.
class CodeStore {
public:
  virtual ~CodeStore() = default;
  virtual std::optional<std::string> load(llvm::StringRef key) = 0;
  virtual void store(llvm::StringRef key, llvm::StringRef code) = 0;
};

struct HostOptions {
  unsigned optLevel = 2;
  unsigned threads = 0;      ///< cpu: worker threads; 0 for one a processor
  std::string cpu = {};      ///< cpu: as in CodegenOptions; this machine must run its code
  std::string checks;        ///< interp: comma-separated names, "all", or "" for the default set
  std::shared_ptr<CodeStore> store = nullptr; ///< cpu: null for none
  unsigned launchTimeLimit = 0;               ///< milliseconds that a launch may take; 0 for no limit
  /// Asked some twenty times a second by the thread that launches: whether the launch shall end. Null for never.
  std::function<bool()> isInterrupted = nullptr;
};

/// A module made ready for one executor. `launch` runs all blocks of a grid to their end; an error is the
/// sentence a user reads (what went wrong, where in the source, which block and thread). A launch that is ended early
/// leaves its buffers in between, inside blocks as well.
class HostProgram {
public:
  virtual ~HostProgram() = default;
  /// Makes the machine code that the first launch of each kernel would.
  virtual llvm::Error makeCode() { return llvm::Error::success(); }
  /// `args` has one entry for each of the kernel's arguments, checked by the caller against its interface.
  virtual llvm::Error launch(llvm::StringRef kernel, std::array<uint32_t, 3> grid, llvm::ArrayRef<HostArg> args) = 0;
};

/// Each takes a verified module; what it cannot run it diagnoses on the module's context and returns null. The
/// interpreter takes QIR as written; the others take the module after the expansions for `target`.
std::unique_ptr<HostProgram> createInterpProgram(mlir::ModuleOp module, const Target &target,
                                                 const HostOptions &options);
std::unique_ptr<HostProgram> createCPUProgram(mlir::ModuleOp module, const Target &target,
                                              const HostOptions &options);
std::unique_ptr<HostProgram> createSimProgram(mlir::ModuleOp module, const Target &target,
                                              const HostOptions &options);

} // namespace qd

#endif
