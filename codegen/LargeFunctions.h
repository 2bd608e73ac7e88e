//===- LargeFunctions.h - bounds on the time of LLVM's passes ---------------------------------------===//
//
// Purpose: some of LLVM's passes take time by the square of a function's or a block's size. They are left out of large
// functions, or see large blocks in pieces. Other functions are as without.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_LARGEFUNCTIONS_H
#define QD_CODEGEN_LARGEFUNCTIONS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/OptBisect.h"

namespace llvm {
class Function;
class LLVMContext;
class Module;
class Pass;
class TargetPassConfig;
} // namespace llvm

namespace qd {

/// Whether what LLVM does for each loop takes too long in this function: it looks at all code around the loop.
bool hasTooMuchForLoops(const llvm::Function &function);

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

/// While it lives, the freezes of functions with many are calls that nothing is known of. InstCombine moves freezes in
/// front of what they are made of, step by step, and numbers the block's instructions anew after each.
class HiddenFreezes {
public:
  explicit HiddenFreezes(llvm::Module &module);
  ~HiddenFreezes();

private:
  llvm::SmallVector<llvm::Function *> callees; ///< one for each type
};

/// Lets the schedulers of machine code see large blocks in pieces: they compare each access of memory with all others.
void cutLargeBlocks(llvm::TargetPassConfig &config);

/// Lets instruction selection see large blocks in pieces: it looks at all users of a constant where one of them changes.
/// For processors, whose instructions are on wide vectors; machine code's blocks are joined again.
void splitLargeBlocks(llvm::TargetPassConfig &config);

/// Bounds how often the register allocator looks for a value that could make room for another one.
llvm::Pass *createBoundedEviction(llvm::LLVMContext &context);

} // namespace qd

#endif
