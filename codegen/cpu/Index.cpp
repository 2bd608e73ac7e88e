//===- Index.cpp - where a subgroup's threads stand ---------------------------------------------===//

#include "codegen/cpu/KernelEmitter.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace qd {

/// thread_id, and global_thread_id in the result's type. The position is a division of the thread's number by
/// constants: of the subgroup's first thread alone where all subgroups look alike along this dimension.
void KernelEmitter::emitThreadId(Value result, Dim dim, bool global) {
  unsigned d = unsigned(dim);
  const ThreadPositions &position = analysis.getPositions(d);
  bool varies = analysis.getShape(result).isVarying();
  llvm::Value *thread = frame.firstThread;
  if (varies)
    thread =
        b.CreateAdd(splat(thread), lanesVector([](unsigned lane) { return lane; }, b.getInt32Ty()), "", true, true);
  auto constant = [&](int64_t value) { return llvm::ConstantInt::get(thread->getType(), value); };
  llvm::Value *id = b.CreateUDiv(thread, constant(position.divisor));
  if (position.divisor * position.modulus < kernel.getNumThreads())
    id = b.CreateURem(id, constant(position.modulus));

  llvm::Type *element = scalarType(result.getType());
  // A launch is refused where an i32 does not number all threads. A scalar is computed in 64 bits, as a subscript needs
  // it.
  llvm::Type *computed = global && !varies ? b.getInt64Ty() : element;
  id = b.CreateZExt(id, varies ? vectorOf(computed) : computed);
  if (global) {
    llvm::Value *start = b.CreateMul(b.CreateZExt(frame.block[d], computed),
                                     llvm::ConstantInt::get(computed, kernel.getBlockDim(d)), "", true, true);
    id = b.CreateAdd(varies ? splat(start) : start, id, "", true, true);
  }
  if (computed != element)
    id = b.CreateTrunc(id, element, "", true, true);
  define(result, id);
}

LogicalResult KernelEmitter::emitIndexOp(Operation &op, bool &handled) {
  handled = true;
  auto integer = [&](llvm::Value *value) {
    define(op.getResult(0), b.CreateZExtOrTrunc(value, scalarType(op.getResult(0).getType())));
  };
  llvm::TypeSwitch<Operation *>(&op)
      .Case([&](ThreadIdOp id) { emitThreadId(id, id.getDim(), /*global=*/false); })
      .Case([&](GlobalThreadIdOp id) { emitThreadId(id, id.getDim(), /*global=*/true); })
      .Case([&](ThreadIndexOp) { integer(frame.firstThread); })
      .Case([&](BlockIdOp id) { integer(frame.block[unsigned(id.getDim())]); })
      .Case([&](BlockDimOp dim) { integer(b.getInt32(kernel.getBlockDim(unsigned(dim.getDim())))); })
      .Case([&](GridDimOp dim) { integer(frame.grid[unsigned(dim.getDim())]); })
      .Case([&](LaneIdOp) { integer(b.getInt32(0)); })
      .Case([&](SubgroupSizeOp) { integer(b.getInt32(lanes)); })
      .Case([&](SizeOp size) {
        unsigned number = cast<BlockArgument>(size.getBuffer()).getArgNumber();
        integer(frame.extents.lookup({number, size.getDim().value_or(0)}));
      })
      .Default([&](Operation *) { handled = false; });
  return success();
}

} // namespace qd
