//===- InlineCalls.cpp - helper functions become part of their callers -----------------===//
//
// Purpose: replaces each call by the callee's body. GPU kernels have no stack to speak of, collective ops must be
// judged where they are reached from, and no backend has to know of functions.
//
// Input invariant: a verified module.
//
// Output invariant: the module has kernels only, without calls. An op that came from a helper function has the
// locations of the op, fused with the function's name, and of the calls that led to it.
//
//===----------------------------------------------------------------------===//

#include "passes/InlineCalls.h"
#include "ir/Dialect.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace qd {

/// Calls multiply: bounds that no kernel reaches by itself keep a small file from running a compile out of memory or
/// stack.
static constexpr int64_t maxOps = 1 << 18;
static constexpr unsigned maxNesting = 256;

namespace {
/// Functions by what they are once all calls in them are unfolded.
class CallGraph {
public:
  explicit CallGraph(ModuleOp module) : symbols(module) {}

  LogicalResult check(KernelOp kernel) { return measure(kernel); }

private:
  struct Extent {
    int64_t ops = 0;
    unsigned nesting = 0;
  };
  FailureOr<Extent> measure(Operation *function);
  FailureOr<Extent> measureCallee(func::CallOp call);

  SymbolTable symbols;
  llvm::DenseMap<Operation *, Extent> extents;
  llvm::SmallVector<Operation *> callers; ///< whose measuring is under way
};
} // namespace

static unsigned getNesting(Operation *op, Operation *function) {
  unsigned nesting = 0;
  for (; op != function; op = op->getParentOp())
    ++nesting;
  return nesting;
}

FailureOr<CallGraph::Extent> CallGraph::measureCallee(func::CallOp call) {
  auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!callee || callee.isExternal())
    return call.emitOpError() << "calls '" << call.getCallee() << "', which has no body";
  if (!callee.getBody().hasOneBlock())
    return call.emitOpError() << "calls '" << call.getCallee()
                              << "', which has several blocks; expected structured control flow (scf)";
  if (llvm::is_contained(callers, callee))
    return call.emitOpError() << "calls '" << call.getCallee() << "' recursively";
  if (callers.size() >= maxNesting)
    return call.emitOpError() << "is nested more than " << maxNesting << " calls deep";
  if (auto known = extents.find(callee); known != extents.end())
    return known->second;
  FailureOr<Extent> extent = measure(callee);
  if (succeeded(extent))
    extents[callee] = *extent;
  return extent;
}

FailureOr<CallGraph::Extent> CallGraph::measure(Operation *function) {
  callers.push_back(function);
  Extent extent;
  WalkResult result = function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    ++extent.ops;
    auto call = dyn_cast<func::CallOp>(op);
    if (!call && !op->getNumRegions())
      return WalkResult::advance();
    unsigned nesting = getNesting(op, function);
    if (call) {
      FailureOr<Extent> callee = measureCallee(call);
      if (failed(callee))
        return WalkResult::interrupt();
      extent.ops += callee->ops;
      nesting += callee->nesting;
      if (extent.ops > maxOps || nesting > maxNesting) {
        call.emitOpError() << "calls '" << call.getCallee() << "', which brings its caller to more than "
                           << (nesting > maxNesting ? maxNesting : maxOps)
                           << (nesting > maxNesting ? " levels of nesting" : " operations");
        return WalkResult::interrupt();
      }
    }
    extent.nesting = std::max(extent.nesting, nesting);
    return WalkResult::advance();
  });
  callers.pop_back();
  if (result.wasInterrupted())
    return failure();
  return extent;
}

static bool hasFunctions(ModuleOp module) { return !module.getOps<func::FuncOp>().empty(); }

LogicalResult checkCalls(ModuleOp module) {
  // A call names a function, or the verifier has refused it.
  if (!hasFunctions(module))
    return success();
  CallGraph calls(module);
  for (KernelOp kernel : module.getOps<KernelOp>())
    if (failed(calls.check(kernel)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Unfolding
//===----------------------------------------------------------------------===//

namespace {
class InlineCallsPass : public PassWrapper<InlineCallsPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InlineCallsPass)

  StringRef getArgument() const override { return "inline-calls"; }
  StringRef getDescription() const override { return "Inline helper functions"; }
  void runOnOperation() override;

private:
  void inlineCallsOf(Operation *function, const SymbolTable &symbols);

  llvm::SmallPtrSet<Operation *, 8> done; ///< helpers that hold no more calls
};
} // namespace

/// A location in the function `name`, or in what that calls, as reached by `call`.
static Location addCall(Location location, StringAttr name, Location call) {
  if (auto stack = dyn_cast<CallSiteLoc>(location))
    return CallSiteLoc::get(stack.getCallee(), addCall(stack.getCaller(), name, call));
  return CallSiteLoc::get(FusedLoc::get({location}, name, name.getContext()), call);
}

/// Replaces a call by a copy of a body that holds no calls.
static void inlineCall(func::CallOp call, func::FuncOp callee) {
  Block &body = callee.getBody().front();
  IRMapping mapping;
  mapping.map(body.getArguments(), call.getOperands());
  llvm::DenseMap<Location, Location> locations;
  auto move = [&](Location location) {
    auto found = locations.find(location);
    if (found == locations.end())
      found = locations.try_emplace(location, addCall(location, callee.getSymNameAttr(), call.getLoc())).first;
    return found->second;
  };
  OpBuilder builder(call);
  for (Operation &op : body.without_terminator()) {
    Operation *copy = builder.clone(op, mapping);
    copy->walk([&](Operation *inner) {
      inner->setLoc(move(inner->getLoc()));
      for (Region &region : inner->getRegions())
        for (BlockArgument argument : region.getArguments())
          argument.setLoc(move(argument.getLoc()));
    });
  }
  SmallVector<Value> results;
  for (Value result : body.getTerminator()->getOperands())
    results.push_back(mapping.lookup(result));
  call.replaceAllUsesWith(results);
  call.erase();
}

void InlineCallsPass::inlineCallsOf(Operation *function, const SymbolTable &symbols) {
  SmallVector<func::CallOp> calls;
  function->walk([&](func::CallOp call) { calls.push_back(call); });
  for (func::CallOp call : calls) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (done.insert(callee).second)
      inlineCallsOf(callee, symbols);
    inlineCall(call, callee);
  }
}

void InlineCallsPass::runOnOperation() {
  ModuleOp module = getOperation();
  if (!hasFunctions(module))
    return markAllAnalysesPreserved();
  if (failed(checkCalls(module)))
    return signalPassFailure();
  SymbolTable symbols(module);
  done.clear();
  for (KernelOp kernel : module.getOps<KernelOp>())
    inlineCallsOf(kernel, symbols);
  for (func::FuncOp function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    function.erase();
}

std::unique_ptr<Pass> createInlineCallsPass() { return std::make_unique<InlineCallsPass>(); }

} // namespace qd
