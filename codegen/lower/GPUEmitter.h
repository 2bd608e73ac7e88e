//===- GPUEmitter.h - from expanded QIR to LLVM IR, one thread at a time -----------===//
//
// Purpose: walks a kernel and emits scalar LLVM IR for NVPTX or AMDGCN. Arith and math go through
// Elementwise.h; the ops of qd through the tables of their families, a column a backend.
// Input: a verified module after the expansions. Output: one LLVM kernel function a QIR kernel, unoptimised.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_LOWER_GPUEMITTER_H
#define QD_CODEGEN_LOWER_GPUEMITTER_H

#include "codegen/DebugInfo.h"
#include "codegen/Interface.h"
#include "ir/Dialect.h"
#include "ir/Targets.h"
#include "passes/Uniformity.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace qd {

class GPUEmitter;

/// Emits one op; sets the values of its results.
using Lowering = void (*)(GPUEmitter &, mlir::Operation *);

/// A row of a family's table.
struct LoweringRow {
  const char *name; ///< the op
  Lowering nvptx, amdgcn;
  uint32_t needs = 0; ///< Capability bits without which a chip of NVIDIA's does not have the op
};

llvm::ArrayRef<LoweringRow> getIndexLowerings();
llvm::ArrayRef<LoweringRow> getMemoryLowerings();
llvm::ArrayRef<LoweringRow> getAtomicLowerings();
llvm::ArrayRef<LoweringRow> getBlockLowerings();
llvm::ArrayRef<LoweringRow> getGridLowerings();
llvm::ArrayRef<LoweringRow> getSubgroupLowerings();
llvm::ArrayRef<LoweringRow> getThreadLowerings();
llvm::ArrayRef<LoweringRow> getApproximationLowerings();

/// What `qd.block.sync` becomes.
void emitBlockSync(GPUEmitter &e);

class GPUEmitter {
public:
  /// `debug` is null where nobody asks for the source's lines.
  GPUEmitter(llvm::Module &module, const Target &target, DebugInfo *debug)
      : module(module), target(target), b(module.getContext()), debug(debug) {}

  /// Emits a kernel; diagnoses an op that has no lowering.
  mlir::LogicalResult emitKernel(KernelOp kernel, const KernelInterface &interface);

  //===--- for the lowerings of the families ---------------------------------===//

  llvm::Module &module;
  const Target &target;
  llvm::IRBuilder<> b; ///< stands where the next instruction goes

  llvm::Value *get(mlir::Value value) const { return values.lookup(value); }
  void set(mlir::Value value, llvm::Value *lowered) { values[value] = lowered; }
  /// Gives a later op's operand another value; the first that is given counts.
  void setOperand(mlir::OpOperand &operand, llvm::Value *lowered) { operands.try_emplace(&operand, lowered); }
  KernelOp getKernel() const { return kernel; }
  llvm::Function *getFunction() const { return function; }

  bool isNVPTX() const { return target.getBackend() == Backend::NVPTX; }
  /// Whether the block's last subgroup lacks lanes.
  bool hasPartialSubgroup() { return kernel.getNumThreads() % target.subgroupSize != 0; }
  /// Whether it is proven that all lanes that exist reach `op` together.
  bool isReachedByAll(mlir::Operation *op);
  /// Whether every lane of a whole subgroup reaches `op` with the others, as far as its conditions tell.
  bool hasAllLanes(mlir::Operation *op);
  /// Whether all lanes of a subgroup that compute `value` together compute the same.
  bool isUniform(mlir::Value value);
  /// Where a shared array starts.
  llvm::Value *getSharedArray(SharedAllocOp alloc);
  /// The passed extent of a buffer argument (i64).
  llvm::Value *getExtent(mlir::Value buffer, unsigned dim) const { return extents.lookup({buffer, dim}); }

  /// thread_id and block_id along a dimension, as i32 with their known range.
  llvm::Value *getThreadId(unsigned dim);
  llvm::Value *getBlockId(unsigned dim);
  llvm::Value *getGridDim(unsigned dim);
  /// The thread's number in its block, and its lane, as i32.
  llvm::Value *getThreadIndex();
  llvm::Value *getLaneId();

  /// `value` in the integer type `type` (i32 or i64): index values are not negative.
  llvm::Value *widen(llvm::Value *value, mlir::Type type);
  /// Splits the block here: `then` is emitted where `condition` holds, and both ways meet again. A phi joins the
  /// value that `then` returns with `otherwise` (both may be null).
  llvm::Value *emitIf(llvm::Value *condition, llvm::function_ref<llvm::Value *()> then, llvm::Value *otherwise);
  /// Emits a loop that goes round as often as `count`, an unsigned i32, says.
  void emitRounds(llvm::Value *count, llvm::function_ref<void()> body);

private:
  UniformityAnalysis &getUniformity();
  mlir::LogicalResult emitRegion(mlir::Region &region);
  mlir::LogicalResult emitOp(mlir::Operation *op);
  mlir::LogicalResult emitScfIf(mlir::Operation *op);
  mlir::LogicalResult emitScfFor(mlir::Operation *op);
  mlir::LogicalResult emitScfWhile(mlir::Operation *op);
  void meet(mlir::scf::WhileOp loop, mlir::Region &region);
  llvm::BasicBlock *createBlock(const char *name);
  void createFunction(const KernelInterface &interface);
  void declareSharedMemory(const KernelInterface &interface);

  DebugInfo *debug;
  KernelOp kernel;
  llvm::Function *function = nullptr;
  std::optional<UniformityAnalysis> uniformity; ///< made when first asked for
  std::optional<SharedStorage> storage;
  llvm::SmallVector<llvm::Constant *> sharedPieces; ///< where each piece of the shared memory starts
  llvm::DenseMap<mlir::Value, llvm::Value *> values;
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, llvm::Value *> extents;
  llvm::DenseMap<mlir::OpOperand *, llvm::Value *> operands; ///< those of elementwise ops that differ from `values`
  /// Index values that were asked for, in the entry block.
  llvm::Value *threadIds[3] = {}, *blockIds[3] = {}, *gridDims[3] = {}, *threadIndex = nullptr, *laneId = nullptr;
};

} // namespace qd

#endif
