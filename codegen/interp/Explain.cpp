//===- Explain.cpp - follows poison and other values back to where they came from -------------===//

#include "codegen/interp/Explain.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace qd::interp {

void Explainer::note(Operation *op, unsigned thread, const llvm::Twine &message) {
  notes.push_back({op, thread, message.str()});
}

void Explainer::report() {
  llvm::raw_string_ostream stream(block.launch.error);
  for (const Note &note : notes) {
    stream << '\n' << printLocation(note.op->getLoc()) << ": note: " << note.message;
    if (note.thread != here)
      stream << ", on " << block.launch.printThread(note.thread);
  }
  notes.clear();
}

/// The lanes that carried out a collective op with the thread, at an earlier time.
Tile Explainer::findTile(const Instruction &instruction, unsigned thread) {
  unsigned scope = instruction.scope ? instruction.scope : block.numThreads();
  std::optional<uint64_t> members;
  if (instruction.members)
    members = block.at({*instruction.members, thread}).bits;
  return Tile(block, instruction, thread / scope * scope, scope, members, /*isPast=*/true);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

bool Explainer::isInFirstIteration(const Instruction &loop, unsigned thread) {
  Subgroup &subgroup = block.subgroups[thread / block.launch.code.subgroupSize];
  for (const Frame &frame : subgroup.stack())
    // Both regions of a scf.while count.
    if (frame.owner == &loop && frame.active >> (thread - subgroup.firstThread) & 1)
      return frame.iteration < loop.regions.size();
  return false;
}

/// Whether the thread carries out the body of a scf.for at all.
bool Explainer::isEntered(const Instruction &loop, unsigned thread) {
  auto op = cast<scf::ForOp>(loop.op);
  Type type = op.getInductionVar().getType();
  APInt lower = toInt(block.at({loop.operands[0], thread}).bits, type);
  APInt upper = toInt(block.at({loop.operands[1], thread}).bits, type);
  return op.getUnsignedCmp() ? lower.ult(upper) : lower.slt(upper);
}

/// Where a region's value or an op's result may have been copied from.
SmallVector<Cause, 2> Explainer::findOriginals(const Cause &cause) {
  Definition definition = define(cause.slot);
  if (!definition.by)
    return {};
  const Instruction &owner = *definition.by;
  unsigned index = definition.index, thread = cause.thread;
  auto terminator = [&](unsigned region) -> const Instruction & { return owner.regions[region].instructions.back(); };

  if (isa<scf::IfOp>(owner.op)) {
    unsigned region = block.at({owner.operands[0], thread}).bits ? 0 : 1;
    return {{terminator(region).operands[index], thread}};
  }
  if (isa<func::CallOp>(owner.op))
    return {definition.region ? Cause{owner.operands[index], thread} : Cause{terminator(0).operands[index], thread}};
  if (isa<scf::ForOp>(owner.op)) {
    // The region's first argument is the loop's variable.
    if (definition.region && index == 0)
      return {};
    unsigned carried = index - (definition.region ? 1 : 0);
    Cause initial = {owner.operands[3 + carried], thread}, last = {terminator(0).operands[carried], thread};
    if (!definition.region)
      return {isEntered(owner, thread) ? last : initial};
    return isInFirstIteration(owner, thread) ? SmallVector<Cause, 2>{initial} : SmallVector<Cause, 2>{initial, last};
  }
  if (isa<scf::WhileOp>(owner.op)) {
    if (!definition.region || *definition.region == 1)
      return {{terminator(0).operands[1 + index], thread}};
    Cause initial = {owner.operands[index], thread}, last = {terminator(1).operands[index], thread};
    return isInFirstIteration(owner, thread) ? SmallVector<Cause, 2>{initial} : SmallVector<Cause, 2>{initial, last};
  }
  return {};
}

/// Back through copies that are beyond doubt: there is one place to come from, which holds the value.
Cause Explainer::followCopies(Cause cause) {
  while (seen.insert({cause.slot, cause.thread}).second) {
    SmallVector<Cause, 2> originals = findOriginals(cause);
    if (originals.size() != 1 || !isSame(originals[0], cause))
      return cause;
    seen.erase({cause.slot, cause.thread});
    cause = originals[0];
  }
  return cause;
}

//===----------------------------------------------------------------------===//
// Poison
//===----------------------------------------------------------------------===//

void Explainer::explain(Cause cause, unsigned most) {
  budget = most;
  seen.clear();
  if (block.at(cause).poison)
    explainPoison(cause);
  else
    explainValue(cause);
}

void Explainer::explainPoison(Cause cause) {
  SmallVector<std::pair<const Instruction *, unsigned>> passed;
  seen.clear();
  while (seen.insert({cause.slot, cause.thread}).second) {
    Definition definition = define(cause.slot);
    std::optional<Cause> before = findPoisonBefore(cause);
    bool isOperation = !definition.region && findOriginals(cause).empty();
    if (!before) {
      auto carried = block.carriedPoison.find({cause.slot, cause.thread});
      if (carried != block.carriedPoison.end()) {
        llvm::append_range(notes, carried->second);
        note(definition.by->op, cause.thread, "carried round by '" + definition.by->op->getName().getStringRef() + "'");
        break;
      }
      if (isOperation)
        note(definition.by->op, cause.thread, "poison from " + describeOrigin(*definition.by, cause.thread));
      else if (definition.by)
        note(definition.by->op, cause.thread, "poison from an earlier iteration");
      break;
    }
    if (isOperation)
      passed.push_back({definition.by, cause.thread});
    cause = *before;
  }
  // The ends of a long chain tell the most.
  size_t shown = mostNotes - 2;
  for (auto [i, step] : llvm::enumerate(llvm::reverse(passed))) {
    if (passed.size() > shown && i == shown / 2)
      note(step.first->op, step.second, "through " + llvm::Twine(passed.size() - shown) + " ops from here on");
    if (passed.size() <= shown || i < shown / 2 || i >= passed.size() - shown / 2)
      note(step.first->op, step.second, "through '" + step.first->op->getName().getStringRef() + "'");
  }
}

/// The poison that made this one so.
std::optional<Cause> Explainer::findPoisonBefore(const Cause &cause) {
  SmallVector<Cause, 2> originals = findOriginals(cause);
  // Of a loop's argument in later iterations only the initial value is as it was.
  if (!originals.empty() && block.at(originals[0]).poison)
    return originals[0];
  Definition definition = define(cause.slot);
  if (!definition.by || isa<scf::IfOp, scf::ForOp, scf::WhileOp, func::CallOp>(definition.by->op))
    return std::nullopt;
  const Instruction &instruction = *definition.by;
  if (instruction.rule->tile)
    return findPoisonedLane(instruction, cause.thread, /*withRegion=*/!definition.region);
  auto operand = [&](unsigned i) -> Cause { return {instruction.operands[i], cause.thread}; };
  if (isa<arith::SelectOp>(instruction.op) && !block.at(operand(0)).poison) {
    Cause chosen = operand(block.at(operand(0)).bits ? 1 : 2);
    return block.at(chosen).poison ? std::optional(chosen) : std::nullopt;
  }
  for (unsigned i = 0; i < instruction.operands.size(); ++i)
    if (block.at(operand(i)).poison)
      return operand(i);
  return std::nullopt;
}

/// The poisoned operand of a collective op, on some lane, that the thread's result comes from.
std::optional<Cause> Explainer::findPoisonedLane(const Instruction &instruction, unsigned thread, bool withRegion) {
  Tile tile = findTile(instruction, thread);
  unsigned lane = thread - tile.firstThread;
  auto find = [&](unsigned from) -> std::optional<Cause> {
    for (unsigned slot : instruction.operands)
      if (tile.has(from) && block.at({slot, tile.firstThread + from}).poison)
        return Cause{slot, tile.firstThread + from};
    return std::nullopt;
  };
  if (SourceRule rule = instruction.rule->source) {
    std::optional<unsigned> source = rule(tile, lane);
    return find(source.value_or(lane));
  }
  if (isa<ReduceOp, BlockReduceOp>(instruction.op) && lane != 0)
    return std::nullopt;
  // The first lane whose evaluation of a `combine` region gave it.
  if (withRegion && !instruction.regions.empty() && !instruction.regions[0].instructions.empty())
    for (unsigned each : tile.lanes())
      for (unsigned slot : instruction.regions[0].instructions.back().operands)
        if (unsigned at = tile.firstThread + each; each != tile.lanes().front() && block.at({slot, at}).poison)
          return Cause{slot, at};
  // Scans get it from the nearest lane below.
  bool isExclusive = isa<ExclusiveScanOp, BlockExclusiveScanOp>(instruction.op) || instruction.op->hasAttr("exclusive");
  for (unsigned below = isExclusive ? lane : lane + 1; below-- > 0;)
    if (std::optional<Cause> cause = find(below))
      return cause;
  for (unsigned above = lane; above < tile.size; ++above)
    if (std::optional<Cause> cause = find(above))
      return cause;
  return std::nullopt;
}

/// What is wrong with an op's operands, none of which is poison.
static std::string describeBreach(Operation *op, LaneValue lhs, LaneValue rhs) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  Type type = op->getOperand(0).getType();
  if (isa<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(op) && rhs.bits >= type.getIntOrFloatBitWidth())
    stream << ", which shifts " << type << " by more than " << type.getIntOrFloatBitWidth() - 1;
  else if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::CeilDivSIOp, arith::CeilDivUIOp,
               arith::FloorDivSIOp>(op) &&
           rhs.bits == 0)
    stream << ", which divides by zero";
  else if (isa<arith::DivSIOp, arith::RemSIOp, arith::CeilDivSIOp, arith::FloorDivSIOp>(op) &&
           toInt(lhs.bits, type).isMinSignedValue() && toInt(rhs.bits, type).isAllOnes())
    stream << ", whose quotient is too large for " << type;
  else if (isa<arith::FPToSIOp, arith::FPToUIOp>(op))
    stream << ", which " << op->getResult(0).getType() << " cannot hold";
  else if (isa<arith::ArithDialect>(op->getDialect()) || isa<arith::ArithFastMathInterface>(op))
    stream << ", which breaks what its flags promise";
  return text;
}

/// The op that made a poison, and why it did.
std::string Explainer::describeOrigin(const Instruction &instruction, unsigned thread) {
  Operation *op = instruction.op;
  std::string text = ("'" + op->getName().getStringRef() + "'").str();
  if (instruction.rule->tile) {
    Tile tile = findTile(instruction, thread);
    unsigned lane = thread - tile.firstThread;
    if (SourceRule rule = instruction.rule->source) {
      std::optional<unsigned> source = rule(tile, lane);
      if (!source && isa<BlockBroadcastOp>(op))
        return text + ": the block has no such thread";
      if (!source)
        return text + ": the lane that lane " + llvm::utostr(lane) + " reads lies past the edge";
      bool exists = tile.firstThread + *source < block.numThreads();
      return text + ": lane " + llvm::utostr(lane) + " reads lane " + llvm::utostr(*source) +
             (exists ? ", which takes no part" : ", which does not exist");
    }
    if (isa<BlockReduceOp>(op))
      return text + ": thread 0 alone holds the result, this is thread " + llvm::utostr(lane) + " of " +
             llvm::utostr(tile.size);
    if (isa<ReduceOp>(op))
      return text + ": lane 0 alone holds the result, this is lane " + llvm::utostr(lane) + " of " +
             llvm::utostr(tile.size);
    return text;
  }
  if (isa<LoadOp, AtomicLoadOp>(op))
    return text + ": the element is not written";
  if (isa<AtomicRMWOp, AtomicCASOp>(op))
    return text + ": its predicate leaves this thread out, or the element is not written";
  if (isa<LaneMaskLtOp, LaneMaskLeOp, LaneMaskEqOp, LaneMaskGeOp, LaneMaskGtOp>(op)) {
    llvm::raw_string_ostream(text) << ": the lane is no bit of " << op->getResult(0).getType();
    return text;
  }
  if (instruction.operands.empty())
    return text;
  for (auto [i, slot] : llvm::enumerate(instruction.operands))
    text += (i == 0 ? " of " : i + 1 == instruction.operands.size() ? " and " : ", ") + print({slot, thread});
  return text + describeBreach(op, block.at({instruction.operands.front(), thread}),
                               block.at({instruction.operands.back(), thread}));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void Explainer::explainValue(Cause cause) {
  cause = followCopies(cause);
  if (budget == 0)
    return;
  Definition definition = define(cause.slot);
  if (isArrayType(definition.type))
    return;
  --budget;
  std::string value = print(cause);
  if (!definition.by) {
    KernelOp kernel = block.launch.code.kernel;
    return note(kernel, cause.thread, value + " is the argument %" + kernel.getArgName(definition.index));
  }
  const Instruction &instruction = *definition.by;
  StringRef name = instruction.op->getName().getStringRef();
  if (definition.region && instruction.rule->tile)
    return note(instruction.op, cause.thread, value + " is an argument of the region of '" + name + "'");
  if (definition.region && isa<scf::ForOp>(instruction.op) && definition.index == 0)
    return note(instruction.op, cause.thread,
                value + " is the variable of '" + name + "' from " + print({instruction.operands[0], cause.thread}) +
                    " to " + print({instruction.operands[1], cause.thread}) + " step " +
                    print({instruction.operands[2], cause.thread}));
  if (definition.region || isa<scf::IfOp, scf::ForOp, scf::WhileOp, func::CallOp>(instruction.op))
    return note(instruction.op, cause.thread, value + " comes from an earlier iteration of '" + name + "'");
  explainOperation(cause, instruction);
}

void Explainer::explainOperation(const Cause &cause, const Instruction &instruction) {
  Operation *op = instruction.op;
  std::string text = print(cause) + " is '" + op->getName().getStringRef().str() + "'";
  auto operand = [&](unsigned i) -> Cause { return {instruction.operands[i], cause.thread}; };
  auto follow = [&](const Cause &next) {
    Definition definition = define(next.slot);
    bool isConstant =
        definition.by && !definition.region && definition.by->op->hasTrait<OpTrait::ConstantLike>();
    if (!isConstant && !block.at(next).poison && !seen.count({next.slot, next.thread}))
      explainValue(next);
  };

  if (auto load = dyn_cast<LoadOp>(op)) {
    if (load.getPredicate() && !block.at(operand(1 + load.getIndices().size())).bits) {
      note(op, cause.thread, text + ", which its predicate leaves out");
      return follow(operand(2 + load.getIndices().size()));
    }
    text += " of " + block.arrays[block.at(operand(0)).bits].name + "[";
    unsigned next = 1;
    for (auto [i, literal] : llvm::enumerate(load.getStaticIndices())) {
      text += i ? ", " : "";
      text += ShapedType::isDynamic(literal) ? print(operand(next++)) : llvm::itostr(literal);
    }
    note(op, cause.thread, text + "]");
    for (unsigned i = 1; i < next; ++i)
      follow(operand(i));
    return;
  }
  if (instruction.rule->tile) {
    Tile tile = findTile(instruction, cause.thread);
    SourceRule rule = instruction.rule->source;
    std::optional<unsigned> source = rule ? rule(tile, cause.thread - tile.firstThread) : std::nullopt;
    if (!source || !isSame({instruction.operands[0], tile.firstThread + *source}, cause))
      return note(op, cause.thread, text);
    note(op, cause.thread, text + " of lane " + llvm::utostr(*source));
    return follow({instruction.operands[0], tile.firstThread + *source});
  }

  const Rule &rule = *instruction.rule;
  Subgroup &subgroup = block.subgroups[cause.thread / block.launch.code.subgroupSize];
  unsigned result = define(cause.slot).index;
  if ((rule.ints || rule.floats || rule.strict) &&
      !(subgroup.compute(instruction, cause.thread - subgroup.firstThread)[result] == block.at(cause)))
    return note(op, cause.thread, text + " of earlier values");
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    text.insert(text.size() - 1, (" " + stringifyEnum(compare.getPredicate())).str());
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    text.insert(text.size() - 1, (" " + stringifyEnum(compare.getPredicate())).str());
  for (unsigned i = 0; i < instruction.operands.size(); ++i)
    text += (i == 0 ? " of " : i + 1 == instruction.operands.size() ? " and " : ", ") +
            (isArrayType(instruction.operandTypes[i]) ? block.arrays[block.at(operand(i)).bits].name
                                                                      : print(operand(i)));
  note(op, cause.thread, text);
  for (unsigned i = 0; i < instruction.operands.size(); ++i)
    follow(operand(i));
}

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

/// The values that say what a thread does at an op of control flow.
static SmallVector<unsigned, 3> getDecision(const Instruction &branch) {
  if (isa<scf::ForOp>(branch.op))
    return {branch.operands[0], branch.operands[1], branch.operands[2]};
  if (isa<scf::WhileOp>(branch.op))
    return {branch.regions[0].instructions.back().operands[0]};
  return {branch.operands[0]};
}

/// What made a thread go its way at a branch, and another one a different way.
void Explainer::explainBranch(const Instruction &branch, unsigned thread, unsigned other) {
  SmallVector<unsigned, 3> slots = getDecision(branch);
  auto list = [&](unsigned of) {
    std::string text;
    for (auto [i, slot] : llvm::enumerate(slots))
      text += (i ? ", " : "") + print({slot, of});
    return text;
  };
  note(branch.op, here, "threads part at this '" + branch.op->getName().getStringRef() + "': the " +
                            (isa<scf::ForOp>(branch.op) ? "bounds and step are " : "condition is ") + list(thread) +
                            " here and " + list(other) + " on " + block.launch.printThread(other));
  for (unsigned slot : slots)
    if (!isSame({slot, thread}, {slot, other})) {
      explain({slot, thread});
      explain({slot, other}, 1);
    }
}

void Explainer::explainAbsence(Subgroup &subgroup, unsigned lane) {
  ArrayRef<Frame> stack = subgroup.stack();
  for (size_t i = 1; i < stack.size(); ++i)
    if (!(stack[i].active >> lane & 1) && stack[i - 1].active >> lane & 1)
      return explainBranch(*stack[i].owner, subgroup.firstThread + lane,
                           subgroup.firstThread + llvm::countr_zero(stack[i].active));
}

/// The ops around an op, from the outermost, and their regions that it is in.
static bool findPath(const Body &body, const Instruction &to,
                     SmallVectorImpl<std::pair<const Instruction *, unsigned>> &path) {
  for (const Instruction &instruction : body.instructions) {
    if (&instruction == &to)
      return true;
    for (auto [i, region] : llvm::enumerate(instruction.regions)) {
      path.push_back({&instruction, unsigned(i)});
      if (findPath(region, to, path))
        return true;
      path.pop_back();
    }
  }
  return false;
}

void Explainer::explainDetour(const Instruction &meeting, Subgroup &other) {
  SmallVector<std::pair<const Instruction *, unsigned>> path;
  findPath(block.launch.code.body, meeting, path);
  for (auto [owner, region] : path) {
    if (isa<func::CallOp>(owner->op))
      continue;
    for (unsigned slot : getDecision(*owner))
      if (!isSame({slot, here}, {slot, other.firstThread}))
        return explainBranch(*owner, here, other.firstThread);
  }
}

} // namespace qd::interp
