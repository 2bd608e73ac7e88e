//===- Loader.cpp - translates kernels to instructions -----------------------------------===//

#include "codegen/interp/Code.h"
#include "codegen/Interface.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace qd::interp {

namespace {
class Loader {
public:
  Loader(Code &code) : code(code) {}

  LogicalResult loadBody(Region &region, Body &body);

private:
  LogicalResult loadOp(Operation *op, Body &body);
  LogicalResult loadElementwise(Operation *op, const Rule &rule, Body &body);
  LogicalResult loadCall(func::CallOp call, Instruction &instruction);
  LogicalResult checkTile(Operation *op);
  LogicalResult setScope(Operation *op, Instruction &instruction);
  void setMembers(Operation *op, Instruction &instruction);
  void setCaptures(Operation *op, Instruction &instruction);
  LogicalResult checkTypes(Operation *op, TypeRange types);
  void makeSlots(Value value, std::vector<unsigned> &made);
  void addSlots(Value value, std::vector<unsigned> &to) const;

  Code &code;
  DenseMap<Value, unsigned> slots;
};
} // namespace

LogicalResult Loader::checkTypes(Operation *op, TypeRange types) {
  for (Type type : types)
    if (!isScalarType(type) && !isVectorType(type) && !isArrayType(type))
      return op->emitOpError() << "has a value of type " << type << ", expected a scalar, a vector or an array";
  return success();
}

void Loader::makeSlots(Value value, std::vector<unsigned> &made) {
  slots[value] = code.numSlots;
  for (unsigned i = 0; i < getNumScalars(value.getType()); ++i) {
    made.push_back(code.numSlots++);
    code.definitions.push_back({nullptr, std::nullopt, 0, getScalarOf(value.getType())});
  }
}

void Loader::addSlots(Value value, std::vector<unsigned> &to) const {
  for (unsigned i = 0; i < getNumScalars(value.getType()); ++i)
    to.push_back(slots.lookup(value) + i);
}

LogicalResult Loader::loadBody(Region &region, Body &body) {
  if (region.empty())
    return success();
  if (!region.hasOneBlock())
    return region.getParentOp()->emitOpError("has a region of several blocks, expected structured control flow");
  if (failed(checkTypes(region.getParentOp(), region.getArgumentTypes())))
    return failure();
  for (BlockArgument argument : region.getArguments())
    makeSlots(argument, body.arguments);
  for (Operation &op : region.front())
    if (failed(loadOp(&op, body)))
      return failure();
  return success();
}

/// An op on vectors is one op on each of their scalars.
LogicalResult Loader::loadElementwise(Operation *op, const Rule &rule, Body &body) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointToEnd(&code.scalarOps);
  auto constant = dyn_cast<arith::ConstantOp>(op);
  if (constant && !isa<DenseElementsAttr>(constant.getValue()))
    return op->emitOpError("of vectors is expected to be dense");
  SmallVector<std::vector<unsigned>> results(op->getNumResults());
  for (auto [result, slots] : llvm::zip_equal(op->getResults(), results))
    makeSlots(result, slots);
  for (unsigned i = 0; i < cast<VectorType>(op->getResult(0).getType()).getNumElements(); ++i) {
    Instruction &instruction = body.instructions.emplace_back();
    OperationState state(op->getLoc(), op->getName());
    for (Value operand : op->getOperands()) {
      bool isVector = isVectorType(operand.getType());
      instruction.operands.push_back(slots.lookup(operand) + (isVector ? i : 0));
      instruction.operandTypes.push_back(getScalarOf(operand.getType()));
      state.operands.push_back(code.scalarOps.addArgument(getScalarOf(operand.getType()), op->getLoc()));
    }
    if (constant) {
      auto value = cast<DenseElementsAttr>(constant.getValue()).getValues<Attribute>()[i];
      instruction.op = arith::ConstantOp::create(builder, op->getLoc(), cast<TypedAttr>(value));
    } else {
      for (Type type : op->getResultTypes())
        state.addTypes(getScalarOf(type));
      state.addAttributes(op->getDiscardableAttrDictionary().getValue());
      state.propertiesAttr = op->getPropertiesAsAttribute();
      instruction.op = builder.create(state);
    }
    instruction.rule = &rule;
    for (ArrayRef<unsigned> slots : results)
      instruction.results.push_back(slots[i]);
  }
  return success();
}

LogicalResult Loader::loadOp(Operation *op, Body &body) {
  const Rule *rule = getRules().find(op->getName().getStringRef());
  if (!rule)
    return op->emitOpError("is not one that the interpreter runs");
  if (failed(checkTypes(op, op->getResultTypes())))
    return failure();
  bool isOnVectors = op->getNumResults() && isVectorType(op->getResult(0).getType());
  if (isOnVectors && (OpTrait::hasElementwiseMappableTraits(op) || isa<arith::ConstantOp>(op)))
    return loadElementwise(op, *rule, body);

  Instruction &instruction = body.instructions.emplace_back();
  instruction.op = op;
  instruction.rule = rule;
  for (Value operand : op->getOperands()) {
    addSlots(operand, instruction.operands);
    instruction.operandTypes.resize(instruction.operands.size(), getScalarOf(operand.getType()));
  }
  for (Value result : op->getResults())
    makeSlots(result, instruction.results);
  if (auto alloc = dyn_cast<SharedAllocOp>(op))
    code.shared.push_back(alloc);
  if (auto get = dyn_cast<ConstantGetOp>(op))
    code.tables.push_back(get);
  if (auto alloc = dyn_cast<PrivateAllocOp>(op))
    code.privates.push_back(alloc);
  if (auto call = dyn_cast<func::CallOp>(op))
    return loadCall(call, instruction);
  if (failed(checkTile(op)))
    return failure();
  code.isCooperative |= instruction.rule->isGridWide;
  if (instruction.rule->isCollective) {
    if (failed(setScope(op, instruction)))
      return failure();
    setMembers(op, instruction);
    setCaptures(op, instruction);
  }
  for (Region &region : op->getRegions())
    if (failed(loadBody(region, instruction.regions.emplace_back())))
      return failure();
  return success();
}

/// The callee's ops become the call's region, with slots of their own. That it has some, and is not recursive, is
/// known.
LogicalResult Loader::loadCall(func::CallOp call, Instruction &instruction) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  return loadBody(callee.getBody(), instruction.regions.emplace_back());
}

LogicalResult Loader::checkTile(Operation *op) {
  auto tile = op->getAttrOfType<IntegerAttr>("tile");
  int64_t threads = code.kernel.getNumThreads();
  // What reads no lane past the tile's edge reads none past the block's end either, but for poison.
  if (tile && threads % tile.getInt() && !op->hasAttr("poison_edge"))
    return op->emitOpError() << "tile of " << tile.getInt() << " lanes does not divide the block of " << threads
                             << " threads";
  return success();
}

LogicalResult Loader::setScope(Operation *op, Instruction &instruction) {
  if (instruction.rule->isBlockWide)
    return success();
  instruction.scope = code.subgroupSize;
  if (auto shuffle = dyn_cast<ShuffleXorOp>(op); shuffle && !shuffle.getTile())
    if (std::optional<int32_t> mask = shuffle.getConstantLane(); mask && *mask >= int64_t(code.subgroupSize))
      return op->emitOpError() << "mask " << *mask << " leaves the subgroup of " << code.subgroupSize << " lanes";
  if (auto tile = op->getAttrOfType<IntegerAttr>("tile"))
    instruction.scope = tile.getInt();
  return success();
}

void Loader::setMembers(Operation *op, Instruction &instruction) {
  Value members = TypeSwitch<Operation *, Value>(op)
                      .Case<BallotOp, ShuffleOp, MatchAnyOp, MatchAllOp>([](auto op) { return op.getMembers(); })
                      .Default(Value());
  if (members)
    instruction.members = slots.lookup(members);
}

void Loader::setCaptures(Operation *op, Instruction &instruction) {
  SetVector<Value> captures;
  for (Region &region : op->getRegions())
    getUsedValuesDefinedAbove(region, captures);
  for (Value value : captures)
    addSlots(value, instruction.captures);
}

/// Instructions have their final places once all are loaded.
static void define(Code &code, const Body &body, const Instruction *owner, unsigned region) {
  auto set = [&](unsigned slot, const Instruction *by, std::optional<unsigned> region, unsigned index) {
    code.definitions[slot] = {by, region, index, code.definitions[slot].type};
  };
  for (auto [i, slot] : llvm::enumerate(body.arguments))
    set(slot, owner, region, i);
  for (const Instruction &instruction : body.instructions) {
    for (auto [i, slot] : llvm::enumerate(instruction.results))
      set(slot, &instruction, std::nullopt, i);
    for (auto [i, inner] : llvm::enumerate(instruction.regions))
      define(code, inner, &instruction, i);
  }
}

FailureOr<std::unique_ptr<Code>> loadKernel(KernelOp kernel, const Target &target) {
  auto code = std::make_unique<Code>();
  code->kernel = kernel;
  code->subgroupSize = target.subgroupSize;
  KernelInterface interface = describeKernel(kernel, target);
  if (failed(checkParameters(kernel, interface, target)))
    return failure();
  uint64_t shared = interface.sharedBytes;
  if (shared > target.chip->sharedBytes)
    return kernel.emitOpError() << "needs " << shared << " bytes of shared memory a block, the limit is "
                                << target.chip->sharedBytes << " on " << target.str();
  if (failed(Loader(*code).loadBody(kernel.getBody(), code->body)))
    return failure();
  define(*code, code->body, nullptr, 0);
  return code;
}

} // namespace qd::interp
