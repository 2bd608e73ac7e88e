//===----------------------------------------------------------------------===//
// Compiles one LLVM function to FunctionCode: every scalar of every value gets
// a word, vector operations become one operation an element, and moves that
// only rename words (extractvalue, shufflevector, equal bitcasts) become none.
//===----------------------------------------------------------------------===//
#ifndef QD_CODEGEN_SIM_COMPILE_H
#define QD_CODEGEN_SIM_COMPILE_H

#include "codegen/sim/Code.h"
#include "codegen/sim/Handlers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ModuleSlotTracker.h"
#include <map>
#include <optional>

namespace qd::sim {

using Refs = llvm::SmallVector<Ref, 4>;

/// A scalar inside a type.
struct Leaf {
  llvm::Type *type;
  unsigned bits;
  unsigned words;
  uint64_t offset; // in memory
};

/// What is known of the module as a whole: addresses, constants, texts.
class ModuleCompiler {
public:
  ModuleCompiler(const llvm::Module &module, Image &image)
      : module(module), layout(module.getDataLayout()), image(image), slots(&module) {}

  llvm::Error run();

  const llvm::Module &module;
  const llvm::DataLayout &layout;
  Image &image;
  llvm::ModuleSlotTracker slots;
  llvm::DenseMap<const llvm::Function *, unsigned> functionNumbers;

  /// The scalars of a type in order; fails where one is no integer of at most
  /// 128 bits, no pointer and no half, bfloat, float or double.
  llvm::Error leaves(llvm::Type *type, llvm::SmallVectorImpl<Leaf> &out, uint64_t offset = 0) const;
  llvm::Expected<Refs> constant(const llvm::Constant &value);
  Ref word(uint64_t value, bool poison = false);
  uint32_t text(const llvm::Value &value);

private:
  std::map<std::pair<uint64_t, bool>, Ref> pool;
  llvm::DenseMap<const llvm::GlobalVariable *, uint64_t> addresses;

  llvm::Error placeGlobals();
  llvm::Error initialise(const llvm::Constant &value, std::vector<uint8_t> &bytes, uint64_t offset);
  llvm::Error appendConstant(const llvm::Constant &value,
                             llvm::SmallVectorImpl<std::pair<uint64_t, bool>> &out);
  llvm::Expected<uint64_t> address(const llvm::Constant &value);
};

class FunctionCompiler {
public:
  FunctionCompiler(ModuleCompiler &parent, const llvm::Function &function, FunctionCode &code);

  llvm::Error run();

  ModuleCompiler &parent;
  const llvm::Function &function;
  FunctionCode &code;
  const llvm::DataLayout &layout;
  const ChipRules &chip;

  llvm::Error unsupported(const llvm::Value &value, const llvm::Twine &why) const;

  /// All words of an operand; only after `checkOperands`.
  llvm::ArrayRef<Ref> refs(const llvm::Value *value);
  Ref ref(const llvm::Value *value, unsigned element = 0) { return refs(value)[element]; }
  Ref temp(unsigned words = 1);
  /// Gives `instruction` fresh words, in one run.
  Ref define(const llvm::Instruction &instruction);
  void alias(const llvm::Instruction &instruction, Refs words) { values[&instruction] = std::move(words); }

  Op &emit(Handler handler, Ref dst, Ref a = 0, Ref b = 0, Ref c = 0);
  void setArgs(Op &op, llvm::ArrayRef<Ref> args);
  Ref word(uint64_t value) { return parent.word(value); }

  // Shapes of values.
  static unsigned elements(const llvm::Type *type);
  unsigned scalarBits(const llvm::Type *type) const;
  static std::optional<Format> format(const llvm::Type *type);
  unsigned wordsOf(const llvm::Type *type);
  /// The operand as an immediate, if it is one.
  static std::optional<uint64_t> immediate(const llvm::Value *value);

  // By concept, each in a file of its own. The intrinsic compilers answer
  // false where the intrinsic is not theirs.
  llvm::Error compileValue(const llvm::Instruction &instruction);
  llvm::Error compileMemory(const llvm::Instruction &instruction);
  llvm::Error compileCall(const llvm::CallBase &call);
  llvm::Expected<bool> compileGeneric(const llvm::CallBase &call);
  llvm::Expected<bool> compileNVPTX(const llvm::CallBase &call);
  llvm::Expected<bool> compileWarp(const llvm::CallBase &call); // of NVPTX
  llvm::Expected<bool> compileAsyncCopy(const llvm::CallBase &call); // of NVPTX
  bool compileSystemCall(const llvm::CallBase &call);                // of NVPTX
  llvm::Expected<bool> compileAMDGCN(const llvm::CallBase &call);
  llvm::Expected<bool> compileLaneMove(const llvm::CallBase &call); // of AMDGCN

  void addressPlus(Ref dst, Ref base, Ref index, unsigned indexBits, int64_t scale, unsigned addressBits);

private:
  llvm::DenseMap<const llvm::Value *, Refs> values;
  llvm::DenseMap<const llvm::BasicBlock *, uint32_t> blockStart;
  struct Patch {
    uint32_t edge;
    const llvm::BasicBlock *from, *to;
  };
  std::vector<Patch> patches;
  std::vector<std::pair<uint32_t, uint32_t>> groups; // of words that stay together: first, number
  uint32_t currentText = 0;

  // Control flow.
  /// Blocks in the order of execution; a null after a loop's blocks stands for
  /// its latch.
  struct Item {
    const llvm::BasicBlock *block;
    const llvm::BasicBlock *latchOf;
  };
  std::vector<Item> order;
  llvm::DenseMap<const llvm::BasicBlock *, unsigned> position;
  llvm::DenseMap<const llvm::BasicBlock *, uint32_t> latchStart;

  void orderBlocks();
  void orderRegion(llvm::ArrayRef<const llvm::BasicBlock *> region, const llvm::BasicBlock *entry,
                   const llvm::BasicBlock *cut);
  llvm::Error checkOperands(const llvm::Instruction &instruction);
  llvm::Error compileTerminator(const llvm::Instruction &instruction);
  uint32_t edgeTo(const llvm::BasicBlock *from, const llvm::BasicBlock *to);
  void definePhis();
  llvm::Error compileParameters();
  void readBlockAttributes();
  void assignWords();

  llvm::Error compileBinary(const llvm::Instruction &instruction);
  llvm::Error compileCast(const llvm::CastInst &cast);
  llvm::Error compileBitcast(const llvm::Instruction &instruction, const llvm::Value *source);
  llvm::Error compileAggregate(const llvm::Instruction &instruction);
  llvm::Error compileGEP(const llvm::GetElementPtrInst &gep);
  llvm::Error compileLoadStore(const llvm::Instruction &instruction);
};

} // namespace qd::sim

#endif
