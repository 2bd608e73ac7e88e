//===- Interp.cpp - the reference interpreter -----------------------------------------------------===//
//
// Purpose: runs QIR as written, with checks; what it computes is what QIR means. Functions that have no exact results
// mean what their expansion computes.
// Input: a verified module, before any other expansion. Output: a HostProgram. It keeps a copy of the module, whose
// context must outlive it.
//
//===----------------------------------------------------------------------===//

#include "codegen/HostProgram.h"
#include "codegen/interp/Machine.h"
#include "passes/ExpandMath.h"
#include "passes/InlineCalls.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace qd {
namespace interp {

const RuleTable &getRules() {
  static const RuleTable table = [] {
    RuleTable rules;
    addIntegerRules(rules);
    addFloatRules(rules);
    addConversionRules(rules);
    addMathRules(rules);
    addIndexRules(rules);
    addMemoryRules(rules);
    addViewRules(rules);
    addVectorRules(rules);
    addAtomicRules(rules);
    addSubgroupRules(rules);
    addCombineRules(rules);
    addSortRules(rules);
    addBlockRules(rules);
    addControlRules(rules);
    addThreadRules(rules);
    addAsyncRules(rules);
    return rules;
  }();
  return table;
}

LaneValue applyBinary(StringRef op, Type type, LaneValue lhs, LaneValue rhs) {
  if (lhs.poison || rhs.poison)
    return {};
  const Rule &rule = *getRules().find(op);
  if (rule.ints) {
    MaybeInt result = rule.ints(nullptr, {toInt(lhs.bits, type), toInt(rhs.bits, type)});
    return result ? LaneValue::of(*result) : LaneValue();
  }
  MaybeFloat result = rule.floats(nullptr, {toFloat(lhs.bits, type), toFloat(rhs.bits, type)});
  return result ? LaneValue::of(*result) : LaneValue();
}

/// Reads the list of checks: "" for the default set, which is all but the slow ones.
static LogicalResult parseChecks(StringRef text, Location loc, Checks &checks) {
  if (text.empty())
    return success();
  auto setAll = [&](bool to) {
    checks.poison = checks.divergence = checks.uninitialized = checks.promises = checks.races = to;
  };
  setAll(false);
  for (StringRef name : llvm::split(text, ',')) {
    StringRef steps = name;
    if (name == "all")
      setAll(true);
    else if (name == "poison")
      checks.poison = true;
    else if (name == "divergence")
      checks.divergence = true;
    else if (name == "uninitialized")
      checks.uninitialized = true;
    else if (name == "promises")
      checks.promises = true;
    else if (name == "races")
      checks.races = true;
    else if (steps.consume_front("steps=") && !steps.getAsInteger(10, checks.steps))
      continue;
    else if (name != "none")
      return emitError(loc) << "unknown check '" << name
                            << "', expected all, none, poison, divergence, uninitialized, promises, races or steps=N";
  }
  return success();
}

namespace {
class InterpProgram : public HostProgram {
public:
  InterpProgram(ModuleOp module, const Checks &checks, const HostOptions &options)
      : module(module.clone()), checks(checks), options(options) {}

  LogicalResult load(const Target &target) {
    if (failed(checkCalls(*module)))
      return failure();
    keepExactAndExpandMath(*module);
    for (KernelOp kernel : module->getOps<KernelOp>()) {
      FailureOr<std::unique_ptr<Code>> code = loadKernel(kernel, target);
      if (failed(code))
        return failure();
      kernels[kernel.getSymName()] = std::move(*code);
    }
    return success();
  }

  llvm::Error launch(StringRef name, std::array<uint32_t, 3> grid, ArrayRef<HostArg> args) override;

private:
  OwningOpRef<ModuleOp> module;
  Checks checks;
  HostOptions options;
  llvm::StringMap<std::unique_ptr<Code>> kernels;
};
} // namespace

/// Gives a launch its arguments, in their order.
static void bindArguments(Launch &launch, KernelOp kernel, ArrayRef<HostArg> args) {
  for (auto [i, arg] : llvm::enumerate(args)) {
    Array &buffer = launch.buffers.emplace_back();
    Type type = kernel.getArg(i).getType();
    if (!arg.isBuffer) {
      launch.arguments.push_back(LaneValue::of(toInt(arg.bits, type)));
      continue;
    }
    buffer.data = static_cast<uint8_t *>(arg.data);
    auto bufferType = cast<BufferType>(type);
    SmallVector<int64_t, 3> extents;
    for (unsigned dim = 0; dim < bufferType.getRank(); ++dim)
      extents.push_back(arg.getExtent(dim, bufferType.getRank()));
    buffer.setShape(bufferType.getElementType(), extents);
    buffer.access = kernel.getAccess(i);
    buffer.name = ("%" + kernel.getArgName(i)).str();
    launch.arguments.push_back(LaneValue::of(i));
  }
}

/// An argument that is noalias and shares bytes with another one.
static llvm::Error checkAliases(const Launch &launch, KernelOp kernel) {
  for (auto [i, buffer] : llvm::enumerate(launch.buffers))
    for (auto [j, other] : llvm::enumerate(launch.buffers)) {
      if (i == j || !other.scalar || !(buffer.access & KernelOp::NoAlias) || !buffer.count() || !other.count())
        continue;
      auto getEnd = [](const Array &array) {
        return array.data + array.count() * array.perElement * getStorageBytes(array.scalar);
      };
      uint8_t *end = getEnd(buffer), *otherEnd = getEnd(other);
      if (buffer.data < otherEnd && other.data < end)
        return llvm::createStringError(
            llvm::formatv("argument '{0}' of kernel '{1}' is noalias, but shares memory with argument '{2}'",
                          kernel.getArgName(i), kernel.getSymName(), kernel.getArgName(j)));
    }
  return llvm::Error::success();
}

/// An argument whose address is not aligned as its kernel says.
static llvm::Error checkAlignment(const Launch &launch, KernelOp kernel) {
  for (auto [i, buffer] : llvm::enumerate(launch.buffers)) {
    if (!isa<BufferType>(kernel.getArg(i).getType()))
      continue;
    unsigned align = kernel.getAlignment(i);
    if (reinterpret_cast<uintptr_t>(buffer.data) % align)
      return llvm::createStringError(
          llvm::formatv("argument '{0}' of kernel '{1}' begins at an address that is no multiple of {2} bytes",
                        kernel.getArgName(i), kernel.getSymName(), align));
  }
  return llvm::Error::success();
}

llvm::Error InterpProgram::launch(StringRef name, std::array<uint32_t, 3> grid, ArrayRef<HostArg> args) {
  auto entry = kernels.find(name);
  if (entry == kernels.end())
    return llvm::createStringError(llvm::formatv("the module has no kernel '{0}'", name));
  Code &code = *entry->second;
  if (args.size() != code.kernel.getNumArgs())
    return llvm::createStringError(llvm::formatv("kernel '{0}' takes {1} arguments, found {2}", name,
                                                 code.kernel.getNumArgs(), args.size()));
  for (auto [i, arg] : llvm::enumerate(args))
    if (arg.isBuffer != isa<BufferType>(code.kernel.getArg(i).getType()))
      return llvm::createStringError(llvm::formatv("argument '{0}' of kernel '{1}' is a {2}, found a {3}",
                                                   code.kernel.getArgName(i), name,
                                                   arg.isBuffer ? "scalar" : "buffer",
                                                   arg.isBuffer ? "buffer" : "scalar"));
  if (llvm::Error error = countBlocks(grid).takeError())
    return error;
  LaunchWatch watch(options);
  Launch launch(code, grid, checks, watch);
  bindArguments(launch, code.kernel, args);
  if (checks.promises)
    if (llvm::Error error = checkAliases(launch, code.kernel))
      return error;
  if (llvm::Error error = checkAlignment(launch, code.kernel))
    return error;
  launch.run();
  launch.prints.flush();
  if (launch.failed())
    return llvm::createStringError(launch.error);
  return llvm::Error::success();
}

} // namespace interp

std::unique_ptr<HostProgram> createInterpProgram(ModuleOp module, const Target &target, const HostOptions &options) {
  interp::Checks checks;
  if (failed(interp::parseChecks(options.checks, module.getLoc(), checks)))
    return nullptr;
  auto program = std::make_unique<interp::InterpProgram>(module, checks, options);
  if (failed(program->load(target)))
    return nullptr;
  return program;
}

} // namespace qd
