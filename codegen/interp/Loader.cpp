//===- Loader.cpp - translates kernels to instructions -----------------------------------===//

#include "codegen/interp/Code.h"
#include "codegen/Interface.h"

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
  LogicalResult loadOp(Operation *op, Instruction &instruction);
  LogicalResult loadCall(func::CallOp call, Instruction &instruction);
  LogicalResult setScope(Operation *op, Instruction &instruction);
  void setMembers(Operation *op, Instruction &instruction);
  void setCaptures(Operation *op, Instruction &instruction);
  LogicalResult checkTypes(Operation *op, TypeRange types);
  unsigned makeSlot(Value value) { return slots[value] = code.numSlots++; }

  Code &code;
  DenseMap<Value, unsigned> slots;
};
} // namespace

LogicalResult Loader::checkTypes(Operation *op, TypeRange types) {
  for (Type type : types)
    if (!isScalarType(type) && !isArrayType(type))
      return op->emitOpError() << "has a value of type " << type << ", expected a scalar or an array";
  return success();
}

LogicalResult Loader::loadBody(Region &region, Body &body) {
  if (region.empty())
    return success();
  if (!region.hasOneBlock())
    return region.getParentOp()->emitOpError("has a region of several blocks, expected structured control flow");
  if (failed(checkTypes(region.getParentOp(), region.getArgumentTypes())))
    return failure();
  for (BlockArgument argument : region.getArguments())
    body.arguments.push_back(makeSlot(argument));
  for (Operation &op : region.front())
    if (failed(loadOp(&op, body.instructions.emplace_back())))
      return failure();
  return success();
}

LogicalResult Loader::loadOp(Operation *op, Instruction &instruction) {
  instruction.op = op;
  instruction.rule = getRules().find(op->getName().getStringRef());
  if (!instruction.rule)
    return op->emitOpError("is not one that the interpreter runs");
  if (failed(checkTypes(op, op->getResultTypes())))
    return failure();
  for (Value operand : op->getOperands())
    instruction.operands.push_back(slots.lookup(operand));
  for (Value result : op->getResults())
    instruction.results.push_back(makeSlot(result));
  if (auto alloc = dyn_cast<SharedAllocOp>(op))
    code.shared.push_back(alloc);
  if (auto get = dyn_cast<ConstantGetOp>(op))
    code.tables.push_back(get);
  if (auto alloc = dyn_cast<PrivateAllocOp>(op))
    code.privates.push_back(alloc);
  if (auto call = dyn_cast<func::CallOp>(op))
    return loadCall(call, instruction);
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

LogicalResult Loader::setScope(Operation *op, Instruction &instruction) {
  if (instruction.rule->isBlockWide)
    return success();
  instruction.scope = code.subgroupSize;
  if (auto shuffle = dyn_cast<ShuffleXorOp>(op); shuffle && !shuffle.getTile())
    if (std::optional<int32_t> mask = shuffle.getConstantLane(); mask && *mask >= int64_t(code.subgroupSize))
      return op->emitOpError() << "mask " << *mask << " leaves the subgroup of " << code.subgroupSize << " lanes";
  auto tile = op->getAttrOfType<IntegerAttr>("tile");
  if (!tile)
    return success();
  instruction.scope = tile.getInt();
  int64_t threads = code.kernel.getNumThreads();
  if (threads % instruction.scope)
    return op->emitOpError() << "tile of " << instruction.scope << " lanes straddles the end of a block of " << threads
                             << " threads";
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
    instruction.captures.push_back(slots.lookup(value));
}

/// Instructions have their final places once all are loaded.
static void define(Code &code, const Body &body, const Instruction *owner, unsigned region) {
  // The argument's type is that of a call's operand too, whose region is its callee's.
  for (auto [i, slot] : llvm::enumerate(body.arguments)) {
    Type type = !owner                         ? code.kernel.getArg(i).getType()
                : isa<func::CallOp>(owner->op) ? owner->op->getOperand(i).getType()
                                               : owner->op->getRegion(region).getArgument(i).getType();
    code.definitions[slot] = {owner, region, unsigned(i), type};
  }
  for (const Instruction &instruction : body.instructions) {
    for (auto [i, slot] : llvm::enumerate(instruction.results))
      code.definitions[slot] = {&instruction, std::nullopt, unsigned(i), instruction.op->getResult(i).getType()};
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
  unsigned shared = interface.sharedBytes;
  if (shared > target.chip->sharedBytes)
    return kernel.emitOpError() << "needs " << shared << " bytes of shared memory a block, the limit is "
                                << target.chip->sharedBytes << " on " << target.str();
  if (failed(Loader(*code).loadBody(kernel.getBody(), code->body)))
    return failure();
  code->definitions.resize(code->numSlots);
  define(*code, code->body, nullptr, 0);
  return code;
}

} // namespace qd::interp
