//===- LargeFunctions.h - bounds on the time of LLVM's passes ---------------------------------------===//
//
// Purpose: some of LLVM's passes take time by the square of a function's or a block's size. They are left out of large
// functions, or see large blocks in pieces. Other functions are as without.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_LARGEFUNCTIONS_H
#define QD_CODEGEN_LARGEFUNCTIONS_H

#include "llvm/ADT/StringSet.h"
#include "llvm/IR/OptBisect.h"

namespace llvm {
class LLVMContext;
class Module;
class Pass;
class TargetPassConfig;
} // namespace llvm

namespace qd {

/// While it lives, passes over the module's LLVM IR that compare each expression with all others, or look for each loop
/// at all code in front of it, leave large functions as they are.
class LargeFunctions : public llvm::OptPassGate {
public:
  explicit LargeFunctions(llvm::Module &module);
  ~LargeFunctions() override;

  bool isEnabled() const override { return !large.empty(); }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef description) const override;

private:
  llvm::LLVMContext &context;
  llvm::OptPassGate &previous;
  llvm::StringSet<> large; ///< as LLVM describes them
  bool leavesLoops = false;
};

/// Lets the schedulers of machine code see large blocks in pieces: they compare each access of memory with all others.
void cutLargeBlocks(llvm::TargetPassConfig &config);

/// Bounds how often the register allocator looks for a value that could make room for another one.
llvm::Pass *createBoundedEviction(llvm::LLVMContext &context);

} // namespace qd

#endif
