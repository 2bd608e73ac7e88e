//===- Turns.cpp - whose turn it is, carried through control flow -------------------------===//
//
// Purpose: a turn that changes each time that a placeholder is reached:
//
//   scf.for %i = ... { %start = PLACEHOLDER ... }
//     ->
//   %r = scf.for %i = ... iter_args(%turn = false) -> i1 {
//     %start = arith.select %turn, COUNT, 0   %next = arith.xori %turn, true   ...   scf.yield %next }
//
// What reaches placeholders an even number of times whichever way it goes, and branches that do so alike, carry
// nothing.
//
//===----------------------------------------------------------------------===//

#include "passes/Turns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace qd {

namespace {
class TurnCarrier {
public:
  TurnCarrier(KernelOp kernel, ArrayRef<Operation *> starts, int64_t count)
      : kernel(kernel), count(count), builder(kernel.getContext()), starts(starts.begin(), starts.end()) {
    for (Operation *start : starts)
      for (Operation *op = start->getParentOp(); op != kernel; op = op->getParentOp())
        holders.insert(op);
  }

  void run() { walk(kernel.getBodyBlock(), Turn()); }

private:
  /// Which side comes next: `value`, or where that is null a constant.
  struct Turn {
    Value value;
    bool isSecond = false;
  };

  Turn walk(Block &block, Turn turn);
  Turn walkIf(scf::IfOp op, Turn turn);
  Turn walkLoop(Operation *loop, Turn turn);
  void place(Operation *start, Turn turn);
  Turn flip(Turn turn);
  Value materialize(Turn turn);
  void yield(Block &block, Turn turn);
  Operation *addResult(Operation *op, Value initial);

  /// Whether the side changes from the block's or op's begin to its end; none where that depends on the way.
  std::optional<bool> getChange(Block &block);
  std::optional<bool> getChange(Operation *op);
  std::optional<bool> computeChange(Operation *op);

  KernelOp kernel;
  int64_t count;
  OpBuilder builder;
  llvm::DenseSet<Operation *> starts, holders;
  llvm::DenseMap<Operation *, std::optional<bool>> changes;
};
} // namespace

std::optional<bool> TurnCarrier::getChange(Block &block) {
  bool changes = false;
  for (Operation &op : block) {
    if (starts.contains(&op)) {
      changes = !changes;
    } else if (holders.contains(&op)) {
      std::optional<bool> inside = getChange(&op);
      if (!inside)
        return std::nullopt;
      changes ^= *inside;
    }
  }
  return changes;
}

std::optional<bool> TurnCarrier::getChange(Operation *op) {
  auto known = changes.find(op);
  if (known != changes.end())
    return known->second;
  std::optional<bool> change = computeChange(op);
  changes[op] = change;
  return change;
}

std::optional<bool> TurnCarrier::computeChange(Operation *op) {
  if (auto ifOp = dyn_cast<scf::IfOp>(op)) {
    std::optional<bool> inThen = getChange(*ifOp.thenBlock());
    std::optional<bool> inElse = ifOp.elseBlock() ? getChange(*ifOp.elseBlock()) : std::optional(false);
    return inThen == inElse ? inThen : std::nullopt;
  }
  for (Region &region : op->getRegions())
    if (getChange(region.front()) != false)
      return std::nullopt;
  return false;
}

Value TurnCarrier::materialize(Turn turn) {
  if (turn.value)
    return turn.value;
  return arith::ConstantOp::create(builder, kernel.getLoc(), builder.getBoolAttr(turn.isSecond));
}

TurnCarrier::Turn TurnCarrier::flip(Turn turn) {
  if (!turn.value)
    return {Value(), !turn.isSecond};
  Value one = arith::ConstantOp::create(builder, kernel.getLoc(), builder.getBoolAttr(true));
  return {arith::XOrIOp::create(builder, kernel.getLoc(), turn.value, one), false};
}

void TurnCarrier::place(Operation *start, Turn turn) {
  starts.erase(start);
  if (!turn.value)
    return replaceStart(start, turn.isSecond ? count : 0);
  auto number = [&](int64_t value) {
    return arith::ConstantOp::create(builder, start->getLoc(), builder.getI32IntegerAttr(value));
  };
  Value place = arith::SelectOp::create(builder, start->getLoc(), turn.value, number(count), number(0));
  start->getResult(0).replaceAllUsesWith(place);
  start->erase();
}

void TurnCarrier::yield(Block &block, Turn turn) {
  Operation *terminator = block.getTerminator();
  builder.setInsertionPoint(terminator);
  terminator->insertOperands(terminator->getNumOperands(), materialize(turn));
}

/// The op with one more result and, for loops, one more value that goes round.
Operation *TurnCarrier::addResult(Operation *op, Value initial) {
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  if (initial)
    state.addOperands(initial);
  state.addTypes(op->getResultTypes());
  state.addTypes(builder.getI1Type());
  state.addAttributes(op->getAttrs());
  for (Region &region : op->getRegions())
    state.addRegion()->takeBody(region);
  builder.setInsertionPoint(op);
  Operation *extended = builder.create(state);
  op->replaceAllUsesWith(extended->getResults().drop_back());
  holders.erase(op);
  changes.erase(op);
  op->erase();
  return extended;
}

TurnCarrier::Turn TurnCarrier::walkIf(scf::IfOp op, Turn turn) {
  builder.setInsertionPoint(op);
  // Either side may need it.
  Operation *extended = addResult(op, Value());
  for (Region &region : extended->getRegions()) {
    if (region.empty()) {
      builder.createBlock(&region);
      scf::YieldOp::create(builder, extended->getLoc());
    }
    Turn last = walk(region.front(), turn);
    yield(region.front(), last);
  }
  return {extended->getResults().back(), false};
}

TurnCarrier::Turn TurnCarrier::walkLoop(Operation *loop, Turn turn) {
  builder.setInsertionPoint(loop);
  Operation *extended = addResult(loop, materialize(turn));
  for (Region &region : extended->getRegions()) {
    Block &block = region.front();
    Value carried = block.addArgument(builder.getI1Type(), extended->getLoc());
    Turn last = walk(block, {carried, false});
    yield(block, last);
  }
  return {extended->getResults().back(), false};
}

TurnCarrier::Turn TurnCarrier::walk(Block &block, Turn turn) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (starts.contains(&op)) {
      builder.setInsertionPoint(&op);
      Turn next = flip(turn);
      place(&op, turn);
      turn = next;
      continue;
    }
    if (!holders.contains(&op))
      continue;
    if (std::optional<bool> change = getChange(&op)) {
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          walk(inner, turn);
      builder.setInsertionPointAfter(&op);
      if (*change)
        turn = flip(turn);
    } else if (auto ifOp = dyn_cast<scf::IfOp>(op)) {
      turn = walkIf(ifOp, turn);
    } else {
      turn = walkLoop(&op, turn);
    }
  }
  return turn;
}

void replaceStart(Operation *start, int64_t constant) {
  Value result = start->getResult(0);
  if (constant == 0)
    for (Operation *user : llvm::make_early_inc_range(result.getUsers()))
      if (auto sum = dyn_cast<arith::AddIOp>(user)) {
        sum.replaceAllUsesWith(sum.getLhs() == result ? sum.getRhs() : sum.getLhs());
        sum.erase();
      }
  if (!result.use_empty()) {
    OpBuilder builder(start);
    result.replaceAllUsesWith(
        arith::ConstantOp::create(builder, start->getLoc(), builder.getI32IntegerAttr(constant)));
  }
  start->erase();
}

void takeTurns(KernelOp kernel, ArrayRef<Operation *> starts, int64_t count) {
  TurnCarrier(kernel, starts, count).run();
}

} // namespace qd
