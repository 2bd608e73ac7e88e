//===- KernelLowering.h - one kernel's ops to SPIR-V ---------------------------------===//
//
// Purpose: what the lowerings of all op families share: the id and SPIR-V type of each value, the kernel's
// buffers, parameters and built-in inputs, and the table row that says how an op is lowered.
// Input: a verified kernel after the expansions for its target. Output: a function, its entry point and its
// global variables in the Builder.
//
// In registers i1 is a Boolean, the other integers are unsigned of their width, and a bf16 is the 16-bit integer of
// its bits. In memory an i1 is a byte; in shared arrays it and all elements that are accessed
// atomically take 32 or 64 bits.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_SPIRV_KERNELLOWERING_H
#define QD_CODEGEN_SPIRV_KERNELLOWERING_H

#include "codegen/Interface.h"
#include "codegen/spirv/Builder.h"
#include "ir/Dialect.h"
#include "ir/Targets.h"
#include "passes/Uniformity.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace qd::spirv {

class KernelLowering;

/// Numbers of specialization constants: what a device's driver is right about, false unless the loader says so. 32 and
/// 64 ask whether Fma of that width rounds once.
enum class Trust : uint32_t {
  zeros = 1,   ///< zeros in code (Zeros.cpp)
  halves = 16, ///< that a number which becomes an f16 and an f32 again is rounded
};

/// How one op is lowered: by `lower`, which reads what it needs to know from `code` and `boolCode` (opcodes on
/// numbers and on i1, 0 for none, or whatever the family's rows hold).
struct OpRow {
  using Lower = mlir::LogicalResult (*)(KernelLowering &lowering, mlir::Operation *op, const OpRow &row);

  mlir::TypeID op;
  Lower lower;
  uint32_t code = 0;
  uint32_t boolCode = 0;
};

template <typename Op> OpRow makeRow(OpRow::Lower lower, uint32_t code = 0, uint32_t boolCode = 0) {
  return {mlir::TypeID::get<Op>(), lower, code, boolCode};
}
template <typename Op> OpRow makeRow(OpRow::Lower lower, spv::Op code, spv::Op boolCode = spv::Op::OpNop) {
  return {mlir::TypeID::get<Op>(), lower, uint32_t(code), uint32_t(boolCode)};
}

/// Whether `value` is a mask of lanes of which only the low half is used. It is a u32 then: no device needs i64 for it.
bool isNarrowMask(mlir::Value value);

/// The rows of each family. An op without a row is not supported.
llvm::ArrayRef<OpRow> getIntegerRows();
llvm::ArrayRef<OpRow> getFloatRows();
llvm::ArrayRef<OpRow> getCastRows();
llvm::ArrayRef<OpRow> getMathRows();
llvm::ArrayRef<OpRow> getControlFlowRows();
llvm::ArrayRef<OpRow> getIndexRows();
llvm::ArrayRef<OpRow> getMemoryRows();
llvm::ArrayRef<OpRow> getAtomicRows();
llvm::ArrayRef<OpRow> getSubgroupRows();

class KernelLowering {
public:
  /// `debug`: with the source's lines.
  KernelLowering(Builder &builder, KernelOp kernel, const Target &target, bool debug)
      : b(builder), kernel(kernel), target(target), debug(debug) {}

  mlir::LogicalResult run();

  Builder &b;
  KernelOp kernel;
  const Target &target;

  //===--------------------------------------------------------------------===//
  // Values and types
  //===--------------------------------------------------------------------===//

  Id get(mlir::Value value) const { return ids.lookup(value); }
  void set(mlir::Value value, Id id) { ids[value] = id; }
  /// Sets the only result of `op`.
  mlir::LogicalResult setResult(mlir::Operation *op, Id id);

  /// The type of a scalar in registers.
  Id getType(mlir::Type scalar);
  Id getFloatType(unsigned width);
  /// Zeros of floats are hidden.
  Id getConstant(mlir::TypedAttr value);
  Id getU32(uint32_t value) { return b.getInt(32, value); }
  Id getU32Type() { return b.getIntType(32); }

  mlir::LogicalResult lowerBlock(mlir::Block &block);

  UniformityAnalysis &getUniformity();
  /// Whether the kernel has an op that lanes carry out together.
  bool hasConvergentOps();

  /// Reports `op` as not supported on the target.
  mlir::LogicalResult unsupported(mlir::Operation *op);
  /// Reports that `op` is not supported with values of `type`.
  mlir::LogicalResult unsupported(mlir::Operation *op, mlir::Type type);

  //===--------------------------------------------------------------------===//
  // Code that several families need
  //===--------------------------------------------------------------------===//

  Id emit(spv::Op op, Id type, llvm::ArrayRef<uint32_t> operands) { return b.emit(op, type, operands); }
  Id emitBool(spv::Op op, llvm::ArrayRef<uint32_t> operands) { return b.emit(op, b.getBoolType(), operands); }
  Id emitU32(spv::Op op, llvm::ArrayRef<uint32_t> operands) { return b.emit(op, getU32Type(), operands); }
  Id select(Id type, Id condition, Id ifTrue, Id ifFalse) {
    return b.emit(spv::Op::OpSelect, type, {condition, ifTrue, ifFalse});
  }
  /// An unsigned integer as an i32 or i64 of `width` bits; truncated or zero-extended from `fromWidth`.
  Id resize(Id value, unsigned fromWidth, unsigned width);
  /// The halves of a 64-bit value as a vector of two 32-bit integers, low one first, and back.
  Id toHalves(Id value);
  Id getHalf(Id halves, unsigned index);
  Id fromHalves(Id halves, mlir::Type type);
  /// A float of any type as f32 (a f64 is rounded), and an f32 rounded to a float of any type. NVIDIA's driver (580)
  /// takes an f16 that is widened for the f32 it was rounded from: setResult hides such an f16 from it, but not from
  /// stores.
  Id toF32(Id value, mlir::Type type);
  Id fromF32(Id value, mlir::Type type);

  //===--------------------------------------------------------------------===//
  // Zeros that drivers do not see (Zeros.cpp)
  //===--------------------------------------------------------------------===//

  /// The value, which no driver knows while it compiles unless the device is known to be right about `trust`.
  Id hide(Id value, mlir::Type type, Trust trust = Trust::zeros);
  /// A value as an operand of arithmetic: hidden where a driver may find out while it compiles that it is a zero.
  Id getOperand(mlir::Value value);

  //===--------------------------------------------------------------------===//
  // Inputs, read once at the kernel's start
  //===--------------------------------------------------------------------===//

  Id getThreadIndex();
  Id getThreadId(unsigned dim);
  Id getBlockId(unsigned dim);
  Id getGridDim(unsigned dim);
  Id getLane();

  /// The variable of a buffer argument, or of a shared array.
  Id getArray(mlir::Value array) const { return get(array); }
  /// Whether each element of a shared array takes a word.
  bool isArrayOfWords(mlir::Value array) const { return arraysOfWords.contains(array); }
  /// The variable that shows a buffer with atomic accesses as words.
  Id getWords(mlir::Value buffer) const { return words.lookup(buffer); }
  /// The variable of a table.
  Id getTable(ConstantOp table);
  /// An element count, as the halves of an i64.
  Id getSizeHalves(mlir::BlockArgument buffer, unsigned dim);

  /// a*b + c of f32 or f64, rounded once: to nearest, or to odd, by integers on every device.
  Id emitFma(unsigned width, llvm::ArrayRef<Id> operands, bool toOdd = false);

private:
  mlir::LogicalResult lowerFmaHelper(Id helper, unsigned width, bool toOdd);
  Id getUnknownZero(Trust trust);
  bool isFoldable(mlir::Value value, unsigned depth = 0);
  Id getInput(spv::BuiltIn builtIn, Id type);
  Id getInputComponent(spv::BuiltIn builtIn, unsigned dim);
  Id cached(Id &slot, llvm::function_ref<Id()> generate);
  bool hasSubgroupOps();

  void declareSharedArrays();
  void declarePrivateArrays();
  void declareBuffers();
  void declarePart(unsigned arg, mlir::Value part, llvm::SmallVectorImpl<Id> &variables);
  Id declareBuffer(unsigned arg, Id element, unsigned bytes);
  void declareParameters();
  Id loadParameter(unsigned arg, mlir::Type type);
  void addModes();
  mlir::LogicalResult lowerOp(mlir::Operation *op);
  Line getLine(mlir::Operation *op);

  bool debug;
  KernelInterface interface;
  Id function = 0;
  llvm::DenseMap<mlir::Value, Id> ids, words;
  llvm::DenseSet<mlir::Value> arraysOfWords;
  llvm::DenseMap<mlir::Operation *, Id> tables;
  llvm::SmallVector<Id> interfaceVariables, sharedVariables;
  llvm::DenseMap<unsigned, Id> inputs; ///< by BuiltIn, and by BuiltIn and dimension
  Id threadIndex = 0, threadIds[3] = {}, unknownZero = 0;
  llvm::DenseMap<uint32_t, Id> unknownZeros; ///< by Trust
  llvm::DenseSet<Id> roundedHalves;          ///< f16 that were made of f32
  llvm::DenseMap<mlir::Attribute, Id> hiddenZeros;
  llvm::DenseMap<mlir::Value, bool> foldable;
  std::optional<UniformityAnalysis> uniformity; ///< made when first asked for
  std::optional<bool> isConvergent;             ///< likewise
  Id parameterBlock = 0;
  spv::StorageClass parameterStorage = spv::StorageClass::PushConstant;
  llvm::SmallVector<std::pair<Id, unsigned>> parameters; ///< an argument's type in the block, and its member
  unsigned floatWidths = 0; ///< or-ed: 16, 32, 64

  /// A function that is to be lowered behind the kernel.
  struct FmaHelper {
    Id id;
    unsigned width;
    bool toOdd;
  };
  llvm::SmallVector<FmaHelper> fmaHelpers;
};

} // namespace qd::spirv

#endif
