//===- LoopHint.cpp - how often a loop is to be unrolled, as LLVM reads it -----------------===//

#include "codegen/LoopHint.h"

#include "ir/Dialect.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Metadata.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

namespace qd {

static constexpr llvm::StringLiteral countName = "llvm.loop.unroll.count";

void setLoopHint(llvm::Instruction *branch, mlir::Operation *loop) {
  std::optional<UnrollHint> hint = getUnrollHint(loop);
  if (!hint)
    return;
  llvm::LLVMContext &context = branch->getContext();
  auto word = [&](llvm::StringRef text) { return llvm::MDString::get(context, text); };
  llvm::MDNode *wish;
  if (hint->isFull)
    wish = llvm::MDNode::get(context, word("llvm.loop.unroll.full"));
  else if (hint->count == 1)
    wish = llvm::MDNode::get(context, word("llvm.loop.unroll.disable"));
  else
    wish = llvm::MDNode::get(context, {word(countName), llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(
                                                            llvm::Type::getInt32Ty(context), hint->count))});
  llvm::MDNode *options = llvm::MDNode::getDistinct(context, {nullptr, wish});
  options->replaceOperandWith(0, options);
  branch->setMetadata(llvm::LLVMContext::MD_loop, options);
}

static bool isMarked(const llvm::BasicBlock &block) {
  const llvm::Instruction *branch = block.getTerminator();
  llvm::MDNode *options = branch ? branch->getMetadata(llvm::LLVMContext::MD_loop) : nullptr;
  if (!options)
    return false;
  return llvm::any_of(llvm::drop_begin(options->operands()), [](const llvm::MDOperand &operand) {
    auto *wish = llvm::dyn_cast<llvm::MDNode>(operand);
    auto *name = wish ? llvm::dyn_cast<llvm::MDString>(wish->getOperand(0)) : nullptr;
    return name && name->getString() == countName;
  });
}

void unrollMarkedLoops(llvm::Function &function, llvm::FunctionAnalysisManager &analyses, unsigned optLevel) {
  if (!llvm::any_of(function, isMarked))
    return;
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(optLevel, /*OnlyWhenForced=*/true)));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.run(function, analyses);
}

} // namespace qd
