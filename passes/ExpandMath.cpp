//===- ExpandMath.cpp - functions as arithmetic that every target has ---------------------===//
//
// Purpose: writes functions of the math dialect, and remainders and rounding modes of floats, as sums, products, in f32
// both in one step, quotients, square roots and integer arithmetic. All targets then compute the same bits, and none
// needs a library.
// passes/Math*.cpp hold the functions, docs/math.md their errors.
//
//   %y = math.exp2 %x : f32
// becomes
//   %sum = arith.addf %x, %magic : f32
//   %n = arith.subf %sum, %magic : f32
//   %r = arith.subf %x, %n : f32
//   ...
//
// f16 and bf16 are computed as f32 and rounded. An op on f32 with the flag afn becomes GPUs' own approximations where
// the target is a GPU's processor. For NVIDIA's, exp and exp2 of f32 are a select marked `qd.rare` between a form that
// is right always and a shorter one (codegen/RareBranch.h); short loops of them that have no hint are unrolled.
//
// Input invariant: a verified module.
//
// Output invariant: of math there are left what is exact everywhere (rounding, classification, absf, copysign, sqrt,
// fma, counting of bits), approximations (exp2, log2, sin, cos and rsqrt with afn), and what has no expansion; of arith
// there is no remf, and no truncf that names a rounding mode.
//
//===----------------------------------------------------------------------===//

#include "passes/ExpandMath.h"

#include "ir/Dialect.h"
#include "ir/RowIndex.h"
#include "passes/FastMath.h"
#include "passes/MathFunctions.h"
#include "passes/Passes.h"
#include "passes/TargetPass.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace qd {

namespace {
using math::Place;
using math::Real;

/// A function by op: of one operand or of two.
struct Row {
  const char *name;
  Real<32> (*unary32)(Real<32>) = nullptr;
  Real<64> (*unary64)(Real<64>) = nullptr;
  Real<32> (*binary32)(Real<32>, Real<32>) = nullptr;
  Real<64> (*binary64)(Real<64>, Real<64>) = nullptr;
};

/// What an expansion may leave.
struct Kept {
  bool exact = false;          ///< what has one right result
  bool approximations = false; ///< by instructions of the target
  bool branches = false;       ///< shorter ways for most operands, which code generation makes branches of
};

void addDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, mlir::math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
}

class ExpandMathPass : public TargetPass<ExpandMathPass> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandMathPass)

  using TargetPass::TargetPass;

  StringRef getArgument() const override { return "expand-math"; }
  StringRef getDescription() const override { return "Expand functions to arithmetic that every target has"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    addDialects(registry);
  }
  void runOnModule();
};
} // namespace

#define QD_MATH_UNARY(name, build)                                                                                     \
  { name, math::build<32>, math::build<64> }
#define QD_MATH_BINARY(name, build)                                                                                    \
  { name, nullptr, nullptr, math::build<32>, math::build<64> }
static constexpr Row rows[] = {
    QD_MATH_UNARY("math.exp", buildExp),     QD_MATH_UNARY("math.exp2", buildExp2),
    QD_MATH_UNARY("math.expm1", buildExpM1), QD_MATH_UNARY("math.log", buildLog),
    QD_MATH_UNARY("math.log2", buildLog2),   QD_MATH_UNARY("math.log10", buildLog10),
    QD_MATH_UNARY("math.log1p", buildLog1p), QD_MATH_UNARY("math.sin", buildSin),
    QD_MATH_UNARY("math.cos", buildCos),     QD_MATH_UNARY("math.tan", buildTan),
    QD_MATH_UNARY("math.asin", buildAsin),   QD_MATH_UNARY("math.acos", buildAcos),
    QD_MATH_UNARY("math.atan", buildAtan),   QD_MATH_UNARY("math.sinh", buildSinh),
    QD_MATH_UNARY("math.cosh", buildCosh),   QD_MATH_UNARY("math.tanh", buildTanh),
    QD_MATH_UNARY("math.cbrt", buildCbrt),   QD_MATH_UNARY("math.rsqrt", buildRsqrt),
    QD_MATH_UNARY("math.erf", buildErf),     QD_MATH_UNARY("math.erfc", buildErfc),
    QD_MATH_UNARY("math.asinh", buildAsinh), QD_MATH_UNARY("math.acosh", buildAcosh),
    QD_MATH_UNARY("math.atanh", buildAtanh), QD_MATH_BINARY("math.atan2", buildAtan2),
    QD_MATH_BINARY("math.powf", buildPow),   QD_MATH_BINARY("arith.remf", buildRemainder),
};
#undef QD_MATH_UNARY
#undef QD_MATH_BINARY

static const Row *findRow(OperationName name) {
  static const llvm::StringMap<const Row *> index = indexByName<Row>(rows);
  return index.lookup(name.getStringRef());
}

/// A function's value for operands of f32 or f64.
static Value build(const Place &at, const Row &row, ArrayRef<Value> in) {
  if (in[0].getType().isF64())
    return row.unary64 ? row.unary64({&at, in[0]}).v : row.binary64({&at, in[0]}, {&at, in[1]}).v;
  return row.unary32 ? row.unary32({&at, in[0]}).v : row.binary32({&at, in[0]}, {&at, in[1]}).v;
}

/// The same for narrower floats, by f32.
static Value buildWidened(const Place &at, const Row &row, ValueRange operands) {
  Type type = operands[0].getType();
  bool isNarrow = type.getIntOrFloatBitWidth() < 32;
  SmallVector<Value> in;
  for (Value operand : operands)
    in.push_back(isNarrow ? at.make<arith::ExtFOp>(at.b.getF32Type(), operand) : operand);
  Value result = build(at, row, in);
  return isNarrow ? at.make<arith::TruncFOp>(type, result) : result;
}

/// x^n is x^y with the number y nearest to n, which for |n| beyond the format's digits may have lost whether n is odd.
static Value buildPowerOfInteger(const Place &at, mlir::math::FPowIOp op) {
  Value base = op.getLhs(), n = op.getRhs();
  Type type = base.getType(), wide = type.isF64() ? type : at.b.getF32Type();
  if (type != wide)
    base = at.make<arith::ExtFOp>(wide, base);
  Value magnitude = at.make<mlir::math::AbsFOp>(base), y = at.make<arith::SIToFPOp>(wide, n);
  Value power = build(at, *findRow(OperationName("math.powf", op.getContext())), {magnitude, y});
  Value one = arith::ConstantOp::create(at.b, at.loc, at.b.getIntegerAttr(n.getType(), 1));
  Value isOdd = at.make<arith::CmpIOp>(arith::CmpIPredicate::eq, at.make<arith::AndIOp>(n, one), one);
  power = at.make<arith::SelectOp>(isOdd, at.make<mlir::math::CopySignOp>(power, base), power);
  return type == wide ? power : at.make<arith::TruncFOp>(type, power);
}

static bool isScalarFloat(Type type) { return type.isF16() || type.isBF16() || type.isF32() || type.isF64(); }

/// What takes the op's place, or nothing where it stays.
static Value expand(const Place &at, Operation *op, Kept kept) {
  if (kept.approximations && math::isApproximated(op)) {
    if (math::isApproximationOfHardware(op))
      return {};
    if (Value result = math::buildApproximation(at, op))
      return result;
  }
  if (auto power = dyn_cast<mlir::math::IPowIOp>(op); power && power.getType().isInteger())
    return math::buildIntegerPower(at, power.getLhs(), power.getRhs());
  if (op->getNumResults() != 1 || !isScalarFloat(op->getResult(0).getType()))
    return {};
  if (auto power = dyn_cast<mlir::math::FPowIOp>(op))
    return buildPowerOfInteger(at, power);
  if (auto truncation = dyn_cast<arith::TruncFOp>(op))
    return math::buildTruncation(at, truncation.getIn(), truncation.getType(), *truncation.getRoundingmode());
  const Row *row = findRow(op->getName());
  return row ? buildWidened(at, *row, op->getOperands()) : Value();
}

static bool isExact(Operation *op) { return isa<arith::RemFOp, arith::TruncFOp, mlir::math::IPowIOp>(op); }

/// Whether it names how it rounds.
static bool isRounding(Operation *op) {
  auto truncation = dyn_cast<arith::TruncFOp>(op);
  return truncation && truncation.getRoundingmode();
}

/// One op on vectors as one for each of their scalars, which are added to `scalars`.
static void unroll(Operation *op, SmallVectorImpl<Operation *> &scalars) {
  OpBuilder b(op);
  SmallVector<SmallVector<Value>> operands; // by operand, then by element
  for (Value operand : op->getOperands())
    operands.push_back(llvm::to_vector_of<Value>(vector::ToElementsOp::create(b, op->getLoc(), operand).getElements()));
  auto type = cast<VectorType>(op->getResult(0).getType());
  SmallVector<Value> results;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    OperationState state(op->getLoc(), op->getName());
    for (ArrayRef<Value> elements : operands)
      state.addOperands(elements[i]);
    state.addTypes(type.getElementType());
    state.addAttributes(op->getAttrs());
    scalars.push_back(b.create(state));
    results.push_back(scalars.back()->getResult(0));
  }
  op->getResult(0).replaceAllUsesWith(vector::FromElementsOp::create(b, op->getLoc(), type, results).getResult());
  op->erase();
}

/// One function each for the two results.
static void splitSineAndCosine(mlir::math::SincosOp op) {
  OpBuilder b(op);
  op.getSin().replaceAllUsesWith(
      mlir::math::SinOp::create(b, op.getLoc(), op.getOperand(), op.getFastmath()).getResult());
  op.getCos().replaceAllUsesWith(
      mlir::math::CosOp::create(b, op.getLoc(), op.getOperand(), op.getFastmath()).getResult());
  op.erase();
}

/// NaN where the value or a bound is.
static void splitClamp(mlir::math::ClampFOp op) {
  OpBuilder b(op);
  Value raised = arith::MaximumFOp::create(b, op.getLoc(), op.getValue(), op.getMin(), op.getFastmath());
  Value clamped = arith::MinimumFOp::create(b, op.getLoc(), raised, op.getMax(), op.getFastmath());
  op.replaceAllUsesWith(clamped);
  op.erase();
}

/// Whether a function has a shorter way for most operands.
static bool hasBranch(Operation *op) {
  return isa<mlir::math::ExpOp, mlir::math::Exp2Op>(op) && op->getResult(0).getType().isF32() &&
         !math::isApproximated(op);
}

/// Whether a turn is short and changes no memory.
static bool isShort(scf::ForOp loop) {
  constexpr size_t mostOps = 24;
  Block &body = *loop.getBody();
  return body.getOperations().size() <= mostOps && llvm::all_of(body, [](Operation &op) {
           return op.getNumRegions() == 0 && (isMemoryEffectFree(&op) || isa<LoadOp>(op)) &&
                  (hasBranch(&op) || !findRow(op.getName()));
         });
}

/// Has short loops unrolled that say nothing of it, so that a branch is shared by functions of several turns.
static void unrollForBranches(ArrayRef<Operation *> functions) {
  constexpr int64_t together = 16;
  llvm::MapVector<scf::ForOp, int64_t> loops; // with how many functions each
  for (Operation *op : functions)
    if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp()); loop && hasBranch(op))
      ++loops[loop];
  for (auto [loop, count] : loops)
    if (count <= together / 2 && !getUnrollHint(loop) && isShort(loop))
      loop->setAttr(unrollAttribute, Builder(loop.getContext()).getI32IntegerAttr(together / count));
}

static void expandMath(ModuleOp module, Kept kept) {
  module.walk(splitSineAndCosine);
  module.walk(splitClamp);
  SmallVector<Operation *> found, scalars;
  module.walk([&](Operation *op) {
    bool isKnown = findRow(op->getName()) || isa<mlir::math::FPowIOp, mlir::math::IPowIOp>(op) || isRounding(op);
    if (isKnown && !(kept.exact && isExact(op)))
      found.push_back(op);
  });
  for (Operation *op : found) {
    if (isa<VectorType>(op->getResult(0).getType()))
      unroll(op, scalars);
    else
      scalars.push_back(op);
  }
  if (kept.branches)
    unrollForBranches(scalars);
  for (Operation *op : scalars) {
    OpBuilder b(op);
    Place at{b, op->getLoc(), kept.branches};
    if (Value result = expand(at, op, kept)) {
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
    }
  }
}

void keepExactAndExpandMath(ModuleOp module) {
  MLIRContext *context = module.getContext();
  DialectRegistry registry;
  addDialects(registry);
  context->appendDialectRegistry(registry);
  for (StringRef name : registry.getDialectNames())
    context->getOrLoadDialect(name);
  expandMath(module, {/*exact=*/true, /*approximations=*/false, /*branches=*/false});
}

void ExpandMathPass::runOnModule() {
  Backend backend = target.getBackend();
  expandMath(getOperation(), {/*exact=*/false, backend == Backend::NVPTX || backend == Backend::AMDGCN,
                              /*branches=*/backend == Backend::NVPTX});
}

std::unique_ptr<Pass> createExpandMathPass(const Target &target) { return std::make_unique<ExpandMathPass>(target); }

} // namespace qd
