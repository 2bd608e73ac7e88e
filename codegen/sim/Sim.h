//===----------------------------------------------------------------------===//
// Executes the optimised LLVM IR that the `nvptx` and `amdgcn` backends hand to
// instruction selection, lane by lane, under the rules of one chip.
//
// Input: a verified module for nvptx64 or amdgcn with its data layout set;
// kernels carry the ptx_kernel or amdgpu_kernel calling convention.
// Output: the buffers as the chip would leave them, or one sentence that says
// which rule which instruction broke, and in which block and thread.
//
// Reported: accesses out of bounds or misaligned; poison that is stored to
// buffers or shared memory, branched on or used as an address (what lanes that
// are not active deliver, shared memory that nobody wrote and what another wave
// writes in a race are poison); member masks and barriers that lanes miss;
// deadlocks and endless waits; instructions that the chip lacks.
//
// Left open: lanes that leave a loop run the code behind it together. Arithmetic
// is exact IEEE and keeps subnormals; NaN bits and transcendental functions (by
// the host's libm) may differ from the chip's.
// A read that a chip carries out by memory (lanes of a wave of 64 on gfx10) finds
// what a lane that is not active now has written earlier.
//===----------------------------------------------------------------------===//
#ifndef QD_CODEGEN_SIM_SIM_H
#define QD_CODEGEN_SIM_SIM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace llvm {
class Module;
}

namespace qd {

/// One parameter of the IR function. A pointer is a buffer: host memory whose
/// every access is checked against `bytes`. Anything else is `bits`, or, where
/// the parameter is wider than 64 bits, the `bytes` bytes at `data`.
struct SimArg {
  bool isBuffer = false;
  void *data = nullptr;
  int64_t bytes = 0;
  uint64_t bits = 0;

  static SimArg buffer(void *data, int64_t bytes) { return {true, data, bytes, 0}; }
  static SimArg scalar(uint64_t bits) { return {false, nullptr, 0, bits}; }
};

/// Takes what a thread of a block gives vprintf: the text, and its values by how many bytes they are (null where they
/// cannot be read).
using SimPrinter = std::function<void(uint64_t block, llvm::StringRef text,
                                      llvm::function_ref<const uint8_t *(unsigned bytes)> values)>;

struct SimOptions {
  /// A chip's name as LLVM spells it, such as sm_80 or gfx1100.
  std::string chip;
  /// 0 takes the chip's usual wave: 32 on sm_* and gfx10+, 64 on gfx9.
  unsigned waveSize = 0;
  /// Size of the external shared array, if the kernel declares one.
  uint64_t dynamicSharedBytes = 0;
  /// Blocks that run interleaved from the start. More join while none ends, so
  /// that blocks which wait for later blocks get on.
  unsigned blocksInFlight = 8;
  /// Reading shared memory that no lane has written yields poison.
  bool sharedStartsPoison = true;
  /// Storing poison to shared memory is an error at the store; otherwise the
  /// bytes become poison and only their use is an error.
  bool checkSharedStores = true;
  /// A lane that leaves the kernel before an NVPTX collective that names it, or that never existed, is an error; the
  /// hardware goes on without it.
  bool membersMustArrive = false;
  /// Instructions of waves that access memory, without any changing or any wave
  /// ending, after which the kernel counts as waiting for ever.
  uint64_t idleLimit = 50'000'000;
  /// Where prints go; nowhere without it.
  SimPrinter print;
  /// Wave instructions of a whole launch.
  uint64_t instructionLimit = 50'000'000'000;
};

struct SimStats {
  uint64_t waveInstructions = 0;
};

/// The kernels of one module, compiled for execution. Independent of the module
/// once created. Global variables live as long as the program; runs of one
/// program must not overlap.
class SimProgram {
public:
  /// Fails, naming the instruction, where the module uses something that the
  /// chip or the executor does not have.
  static llvm::Expected<std::unique_ptr<SimProgram>> create(const llvm::Module &module,
                                                            const SimOptions &options);
  ~SimProgram();

  /// `findEnd` is asked between slices of at most a few thousand wave instructions: an error of it ends the run.
  llvm::Error run(llvm::StringRef kernel, std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                  llvm::ArrayRef<SimArg> args, llvm::function_ref<llvm::Error()> findEnd = nullptr);

  /// Of the last run.
  const SimStats &stats() const;

private:
  struct Impl;
  explicit SimProgram(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace qd

#endif
