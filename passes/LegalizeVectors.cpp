//===- LegalizeVectors.cpp - vectors as their scalars -----------------------------------===//
//
// Purpose: every value is a scalar. What computes on vectors computes on each of their scalars, also through control
// flow. Loads and stores of vectors stay whole on targets that have such accesses, right before and behind what takes
// the vector apart and puts it together:
//
//   %v = qd.load %x[%i] align(16) : !qd.buffer<f32> -> vector<4xf32>
//   %w = arith.mulf %v, %v : vector<4xf32>
// becomes, on nvptx and amdgcn,
//   %v = qd.load %x[%i] align(16) : !qd.buffer<f32> -> vector<4xf32>
//   %e:4 = vector.to_elements %v : vector<4xf32>
//   %w0 = arith.mulf %e#0, %e#0 : f32
//   ...
//
// Input invariant: a verified module behind resolve-views.
//
// Output invariant: the only vectors are those of loads and stores on nvptx and amdgcn, with vector.to_elements and
// vector.from_elements.
//
//===----------------------------------------------------------------------===//

#include "ir/Dialect.h"
#include "ir/PrintFormat.h"
#include "passes/Passes.h"
#include "passes/TargetPass.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace qd {

namespace {
class LegalizeVectorsPass : public TargetPass<LegalizeVectorsPass> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LegalizeVectorsPass)

  using TargetPass::TargetPass;

  StringRef getArgument() const override { return "legalize-vectors"; }
  StringRef getDescription() const override { return "Compute on the scalars of vectors"; }
  /// The context loads only what the file uses, which may hold vectors by accesses alone.
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<vector::VectorDialect>(); }

  void runOnModule();
};

using Scalars = SmallVector<Value, 4>;

class Legalizer {
public:
  Legalizer(KernelOp kernel, Backend backend)
      : kernel(kernel), keepsAccesses(backend == Backend::NVPTX || backend == Backend::AMDGCN),
        branches(backend == Backend::SPIRV), b(kernel.getContext()) {}

  LogicalResult run();

private:
  LogicalResult visitBlock(Block &block);
  LogicalResult visit(Operation *op);
  LogicalResult visitElementwise(Operation *op);
  void visitControl(Operation *op);
  void expandOperands(Operation *op);
  void splitLoad(LoadOp op);
  void splitStore(StoreOp op);
  void visitPrint(PrintOp op);
  LogicalResult visitConstant(arith::ConstantOp op);
  void visitExtract(vector::ExtractOp op);
  void visitInsert(vector::InsertOp op);
  void visitReduction(vector::ReductionOp op);
  std::pair<SmallVector<Value>, SmallVector<int64_t>> getNext(OperandRange indices, ArrayRef<int64_t> literals,
                                                              unsigned distance);

  /// A value's scalars; of a scalar, itself.
  Scalars get(Value value) { return isa<VectorType>(value.getType()) ? values.lookup(value) : Scalars{value}; }
  SmallVector<Value> expand(ValueRange range);

  KernelOp kernel;
  bool keepsAccesses; ///< of whole vectors
  bool branches;      ///< for a predicated access
  OpBuilder b;
  llvm::DenseMap<Value, Scalars> values;
  SmallVector<Operation *> dead; ///< in their order
  SmallVector<Block *> changed;  ///< whose arguments of vectors go
};
} // namespace

static bool isVector(Type type) { return isa<VectorType>(type); }
static bool hasVectors(TypeRange types) { return llvm::any_of(types, isVector); }

SmallVector<Value> Legalizer::expand(ValueRange range) {
  SmallVector<Value> all;
  for (Value value : range)
    llvm::append_range(all, get(value));
  return all;
}

//===----------------------------------------------------------------------===//
// Ops on each scalar
//===----------------------------------------------------------------------===//

LogicalResult Legalizer::visitElementwise(Operation *op) {
  // The vector dialect's own, as vector.fma, would not take scalars.
  if (!OpTrait::hasElementwiseMappableTraits(op) || op->getNumRegions() || isa<vector::VectorDialect>(op->getDialect()))
    return op->emitOpError("on vectors is not supported");
  for (unsigned i = 0; i < cast<VectorType>(op->getResult(0).getType()).getNumElements(); ++i) {
    OperationState state(op->getLoc(), op->getName());
    for (Value operand : op->getOperands())
      state.operands.push_back(isVector(operand.getType()) ? values.lookup(operand)[i] : operand);
    for (Type type : op->getResultTypes())
      state.addTypes(cast<VectorType>(type).getElementType());
    state.addAttributes(op->getDiscardableAttrDictionary().getValue());
    state.propertiesAttr = op->getPropertiesAsAttribute();
    for (auto [whole, scalar] : llvm::zip_equal(op->getResults(), b.create(state)->getResults()))
      values[whole].push_back(scalar);
  }
  return success();
}

LogicalResult Legalizer::visitConstant(arith::ConstantOp op) {
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements)
    return op.emitOpError("of vectors is expected to be dense");
  Scalars &scalars = values[op.getResult()];
  for (Attribute element : elements.getValues<Attribute>())
    scalars.push_back(arith::ConstantOp::create(b, op.getLoc(), cast<TypedAttr>(element)));
  return success();
}

//===----------------------------------------------------------------------===//
// Ops of the vector dialect
//===----------------------------------------------------------------------===//

/// The position is a literal: kernels have no values of type index. -1 stands for poison, for which any value does; no
/// position, for the whole.
void Legalizer::visitExtract(vector::ExtractOp op) {
  Scalars from = get(op.getSource());
  if (op.getStaticPosition().empty())
    values[op.getResult()] = from;
  else
    op.getResult().replaceAllUsesWith(from[std::max<int64_t>(op.getStaticPosition().front(), 0)]);
}

void Legalizer::visitInsert(vector::InsertOp op) {
  Scalars scalars = get(op.getDest());
  if (op.getStaticPosition().empty())
    scalars = get(op.getValueToStore());
  else if (int64_t position = op.getStaticPosition().front(); position >= 0)
    scalars[position] = op.getValueToStore();
  values[op.getResult()] = scalars;
}

/// From the first scalar to the last, behind what it starts from.
void Legalizer::visitReduction(vector::ReductionOp op) {
  Scalars scalars = get(op.getVector());
  if (op.getAcc())
    scalars.insert(scalars.begin(), op.getAcc());
  Value total = scalars.front();
  for (Value next : llvm::drop_begin(scalars))
    total = vector::makeArithReduction(b, op.getLoc(), op.getKind(), total, next, op.getFastmathAttr());
  op.getDest().replaceAllUsesWith(total);
}

//===----------------------------------------------------------------------===//
// Prints
//===----------------------------------------------------------------------===//

void Legalizer::visitPrint(PrintOp op) {
  std::string format = spreadPrintFormat(op.getFormat(), op.getValues().getTypes());
  PrintOp::create(b, op.getLoc(), format, expand(op.getValues()), op.getPredicate());
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// The subscripts of the scalar `distance` further in the last dimension.
std::pair<SmallVector<Value>, SmallVector<int64_t>>
Legalizer::getNext(OperandRange indices, ArrayRef<int64_t> literals, unsigned distance) {
  std::pair<SmallVector<Value>, SmallVector<int64_t>> next(indices, literals);
  if (distance == 0)
    return next;
  if (!ShapedType::isDynamic(literals.back())) {
    next.second.back() += distance;
    return next;
  }
  Value &last = next.first.back();
  Value step = arith::ConstantIntOp::create(b, last.getLoc(), last.getType(), distance);
  // The scalar exists, so its subscript does not overflow where memory is touched.
  last = arith::AddIOp::create(b, last.getLoc(), last, step);
  return next;
}

void Legalizer::splitLoad(LoadOp op) {
  Scalars &scalars = values[op.getResult()];
  if (keepsAccesses) {
    if (op.getOtherwise()) {
      Value otherwise =
          vector::FromElementsOp::create(b, op.getLoc(), op.getType(), get(op.getOtherwise()));
      op.getOtherwiseMutable().assign(otherwise);
    }
    b.setInsertionPointAfter(op);
    auto elements = vector::ToElementsOp::create(b, op.getLoc(), op.getResult());
    scalars.append(elements.result_begin(), elements.result_end());
    return;
  }
  // One branch around all scalars where each predicated access is one.
  Value predicate = op.getPredicate();
  auto branch = branches && predicate
                    ? scf::IfOp::create(b, op.getLoc(), SmallVector<Type>(getNumScalars(op.getType()),
                                                                          getScalarOf(op.getType())),
                                        predicate, /*withElseRegion=*/true)
                    : scf::IfOp();
  if (branch) {
    b.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(b, op.getLoc(), get(op.getOtherwise()));
    b.setInsertionPointToEnd(branch.thenBlock());
    predicate = Value();
  }
  for (unsigned i = 0; i < getNumScalars(op.getType()); ++i) {
    auto [indices, literals] = getNext(op.getIndices(), op.getStaticIndices(), i);
    Value otherwise = predicate ? get(op.getOtherwise())[i] : Value();
    scalars.push_back(LoadOp::create(b, op.getLoc(), getScalarOf(op.getType()), op.getArray(), indices,
                                     b.getDenseI64ArrayAttr(literals), predicate, otherwise,
                                     op.getIsVolatileAttr(), /*align=*/nullptr));
  }
  if (branch) {
    scf::YieldOp::create(b, op.getLoc(), scalars);
    scalars = Scalars(branch.getResults());
  }
  dead.push_back(op);
}

void Legalizer::splitStore(StoreOp op) {
  Scalars scalars = get(op.getValue());
  if (keepsAccesses) {
    Value whole = vector::FromElementsOp::create(b, op.getLoc(), op.getValue().getType(), scalars);
    op.getValueMutable().assign(whole);
    return;
  }
  Value predicate = op.getPredicate();
  if (branches && predicate) {
    auto branch = scf::IfOp::create(b, op.getLoc(), predicate, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    predicate = Value();
  }
  for (auto [i, scalar] : llvm::enumerate(scalars)) {
    auto [indices, literals] = getNext(op.getIndices(), op.getStaticIndices(), i);
    StoreOp::create(b, op.getLoc(), scalar, op.getArray(), indices, b.getDenseI64ArrayAttr(literals), predicate,
                    op.getIsVolatileAttr(), /*align=*/nullptr);
  }
  op.erase();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void Legalizer::expandOperands(Operation *op) {
  if (hasVectors(op->getOperandTypes()))
    op->setOperands(expand(op->getOperands()));
}

/// An op with the same regions, whose results are scalars.
void Legalizer::visitControl(Operation *op) {
  expandOperands(op);
  if (!hasVectors(op->getResultTypes()))
    return;
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  for (Type type : op->getResultTypes())
    state.types.append(getNumScalars(type), getScalarOf(type));
  state.addAttributes(op->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  for (unsigned i = 0; i < op->getNumRegions(); ++i)
    state.addRegion();
  Operation *scalar = b.create(state);
  for (auto [from, to] : llvm::zip_equal(op->getRegions(), scalar->getRegions()))
    to.takeBody(from);
  auto next = scalar->result_begin();
  for (Value result : op->getResults()) {
    unsigned count = getNumScalars(result.getType());
    if (isVector(result.getType()))
      values[result] = Scalars(next, next + count);
    else
      result.replaceAllUsesWith(*next);
    next += count;
  }
  dead.push_back(op);
}

LogicalResult Legalizer::visit(Operation *op) {
  if (!hasVectors(op->getOperandTypes()) && !hasVectors(op->getResultTypes()))
    return success();
  b.setInsertionPoint(op);
  if (isa<scf::YieldOp, scf::ConditionOp>(op)) {
    expandOperands(op);
    return success();
  }
  if (isa<scf::IfOp, scf::ForOp, scf::WhileOp>(op)) {
    visitControl(op);
    return success();
  }
  if (auto load = dyn_cast<LoadOp>(op))
    return splitLoad(load), success();
  if (auto store = dyn_cast<StoreOp>(op))
    return splitStore(store), success();
  dead.push_back(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](arith::ConstantOp constant) { return visitConstant(constant); })
      .Case([&](PrintOp print) { return visitPrint(print), success(); })
      .Case([&](vector::BroadcastOp broadcast) {
        Scalars source = get(broadcast.getSource());
        if (!isVector(broadcast.getSource().getType()))
          source.assign(broadcast.getType().getNumElements(), source.front());
        values[broadcast.getResult()] = source;
        return success();
      })
      .Case([&](vector::FromElementsOp from) {
        values[from.getResult()] = Scalars(from.getElements());
        return success();
      })
      .Case([&](vector::ToElementsOp to) { return to->replaceAllUsesWith(get(to.getSource())), success(); })
      .Case([&](vector::ExtractOp extract) { return visitExtract(extract), success(); })
      .Case([&](vector::InsertOp insert) { return visitInsert(insert), success(); })
      .Case([&](vector::ReductionOp reduction) { return visitReduction(reduction), success(); })
      .Default([&](Operation *other) -> LogicalResult {
        if (other->getNumResults() && llvm::all_of(other->getResultTypes(), isVector))
          return visitElementwise(other);
        return other->emitOpError("on vectors is not supported");
      });
}

LogicalResult Legalizer::visitBlock(Block &block) {
  if (hasVectors(block.getArgumentTypes())) {
    changed.push_back(&block);
    for (unsigned i = 0; i < block.getNumArguments(); ++i) {
      BlockArgument argument = block.getArgument(i);
      auto type = dyn_cast<VectorType>(argument.getType());
      for (unsigned k = 0; type && k < type.getNumElements(); ++k)
        values[argument].push_back(block.insertArgument(++i, type.getElementType(), argument.getLoc()));
    }
  }
  for (Operation &op : llvm::make_early_inc_range(block)) {
    // Regions are looked at where the op that takes them over stands.
    if (failed(visit(&op)))
      return failure();
  }
  return success();
}

LogicalResult Legalizer::run() {
  // An op with regions may be replaced by one that takes them over, behind it in its block.
  SmallVector<Block *> blocks = {&kernel.getBodyBlock()};
  while (!blocks.empty()) {
    Block *block = blocks.pop_back_val();
    if (failed(visitBlock(*block)))
      return failure();
    for (Operation &op : llvm::reverse(*block))
      for (Region &region : llvm::reverse(op.getRegions()))
        for (Block &inner : region)
          blocks.push_back(&inner);
  }
  for (Operation *op : llvm::reverse(dead))
    op->erase();
  for (Block *block : changed)
    block->eraseArguments([](BlockArgument argument) { return isVector(argument.getType()); });
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

static bool isNeeded(KernelOp kernel) {
  return kernel.getBody()
      .walk([](Operation *op) {
        bool has = hasVectors(op->getOperandTypes()) || hasVectors(op->getResultTypes());
        return has ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

void LegalizeVectorsPass::runOnModule() {
  for (KernelOp kernel : getOperation().getOps<KernelOp>())
    if (isNeeded(kernel) && failed(Legalizer(kernel, target.getBackend()).run()))
      return signalPassFailure();
}

std::unique_ptr<Pass> createLegalizeVectorsPass(const Target &target) {
  return std::make_unique<LegalizeVectorsPass>(target);
}

} // namespace qd
