//===- ExpandedKernel.h - kernels after the expansions, run and counted ------------------------===//
//
// Purpose: expands a kernel for a target, counts what it is made of, and runs it in the interpreter, so that tests
// compare what they compute themselves.
//
//===----------------------------------------------------------------------===//

#ifndef QD_TEST_UNIT_PASSES_EXPANDEDKERNEL_H
#define QD_TEST_UNIT_PASSES_EXPANDEDKERNEL_H

#include "codegen/HostProgram.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace qd::test {

/// A kernel's buffer of any QIR scalar. An element is held as its bits, zero-extended.
struct Buffer {
  std::string type;
  std::vector<uint64_t> elements;
};

unsigned getBits(llvm::StringRef type);

/// A kernel @k of `threads` threads in one block, over buffers in the order in which `arguments` names their types.
/// `body` may use %i, the thread's index, and defines what `stores` names: values for the buffers behind the inputs.
std::string makeKernel(unsigned threads, const std::vector<Buffer> &inputs, const std::string &body,
                       const std::vector<std::pair<std::string, std::string>> &stores);

class ExpandedKernel {
public:
  /// Expands `text` for a target; an error that is not expected fails the test.
  ExpandedKernel(const std::string &text, const std::string &target);
  ~ExpandedKernel();

  bool isLegal() const { return legal; }
  /// How many ops of a name stand in the kernel.
  unsigned count(llvm::StringRef op) const;
  /// Moves between lanes, counted in 32-bit words, as targets carry them out.
  unsigned countShuffles() const;
  /// Whether the kernel is straight and uses neither shared memory nor barriers.
  bool isPlain() const;

  /// Runs one block on the interpreter (or the cpu device) and returns the outputs, of which `outputs` has the types.
  std::vector<Buffer> run(const std::vector<Buffer> &inputs, const std::vector<std::string> &outputs,
                          Backend device = Backend::Interp);

  std::string str();

private:
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Target target;
  unsigned threads = 0;
  bool legal = false;
};

} // namespace qd::test

#endif
