//===- Collective.cpp - ops that lanes carry out together ---------------------------------------===//
//
// Purpose: gathers the lanes of a scope for an op's rule, and checks that they are those that the op expects.
// Input: a subgroup at a collective op. Output: the op is done, failed, or waits for the block's other subgroups.
//
//===----------------------------------------------------------------------===//

#include "codegen/interp/Explain.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace qd::interp {

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Subgroup &Tile::subgroupOf(unsigned lane) const {
  return block.subgroups[(firstThread + lane) / block.subgroups[0].size];
}

LaneValue &Tile::at(unsigned slot, unsigned lane) const {
  Subgroup &subgroup = subgroupOf(lane);
  return subgroup.at(slot, firstThread + lane - subgroup.firstThread);
}

bool Tile::has(unsigned lane) const {
  if (firstThread + lane >= block.numThreads() || (members && !(*members >> lane & 1)))
    return false;
  Subgroup &subgroup = subgroupOf(lane);
  return isPast || subgroup.frame().active >> (firstThread + lane - subgroup.firstThread) & 1;
}

SmallVector<unsigned, 64> Tile::lanes() const {
  SmallVector<unsigned, 64> present;
  for (unsigned lane = 0; lane < size; ++lane)
    if (has(lane))
      present.push_back(lane);
  return present;
}

LaneValue Tile::get(unsigned lane, unsigned operand) const {
  return has(lane) ? at(instruction.operands[operand], lane) : LaneValue();
}

void Tile::set(unsigned lane, LaneValue value, unsigned result) {
  if (has(lane))
    at(instruction.results[result], lane) = value;
}

SmallVector<LaneValue, 4> Tile::evaluate(unsigned lane, ArrayRef<LaneValue> arguments) const {
  Subgroup &subgroup = subgroupOf(lane);
  return subgroup.evaluate(instruction, firstThread + lane - subgroup.firstThread, arguments);
}

bool Tile::checkCaptures() const {
  if (!block.launch.checks.promises)
    return true;
  SmallVector<unsigned, 64> present = lanes();
  for (unsigned slot : instruction.captures)
    for (unsigned lane : present)
      if (!(at(slot, lane) == at(slot, present.front()))) {
        Cause here = {slot, firstThread + lane}, there = {slot, firstThread + present.front()};
        Type type = block.launch.code.definitions[slot].type;
        fail(lane,
             "uses a value from around its 'combine' region, expected the same on all lanes, found " +
                 printValue(block.at(here), type) + " here and " + printValue(block.at(there), type) + " on " +
                 block.launch.printThread(there.thread),
             {here, there});
        return false;
      }
  return true;
}

void Tile::fail(unsigned lane, const llvm::Twine &message, ArrayRef<Cause> causes) const {
  block.fail(instruction.op, firstThread + lane, message, causes);
}

//===----------------------------------------------------------------------===//
// Who is here
//===----------------------------------------------------------------------===//

bool Subgroup::checkConvergence(const Instruction &instruction) {
  uint64_t missing = lanes & ~frame().active;
  if (!missing || !block.launch.checks.divergence)
    return true;
  fail(instruction, llvm::countr_zero(missing),
       "is reached by " + llvm::Twine(llvm::popcount(frame().active)) + " of the " +
           llvm::Twine(llvm::popcount(lanes)) +
           " lanes of the subgroup, expected all of them: this thread is elsewhere");
  Explainer explainer(block, firstThread + llvm::countr_zero(missing));
  explainer.explainAbsence(*this, llvm::countr_zero(missing));
  explainer.report();
  return false;
}

bool Subgroup::checkMembers(const Instruction &instruction, LaneValue members, uint64_t group) {
  const Checks &checks = block.launch.checks;
  unsigned first = llvm::countr_zero(group);
  if (members.poison) {
    if (checks.poison)
      fail(instruction, first, "uses poison as a mask of members", {{*instruction.members, firstThread + first}});
    return !checks.poison;
  }
  if (!checks.divergence)
    return true;
  std::string mask = "0x" + llvm::utohexstr(members.bits, /*LowerCase=*/true);
  if (uint64_t outsiders = group & ~members.bits) {
    unsigned lane = llvm::countr_zero(outsiders);
    fail(instruction, lane,
         "is reached by lane " + llvm::Twine(lane) + " with members " + mask + ", expected a mask with the own lane",
         {{*instruction.members, firstThread + lane}});
    return false;
  }
  if (uint64_t strangers = members.bits & ~lanes) {
    fail(instruction, first, "has members " + mask + ", but lane " + llvm::Twine(llvm::countr_zero(strangers)) +
                                 " does not exist: the subgroup has " + llvm::Twine(llvm::popcount(lanes)) + " lanes",
         {{*instruction.members, firstThread + first}});
    return false;
  }
  if (uint64_t absent = members.bits & ~frame().active) {
    fail(instruction, first, "has members " + mask + ", but lane " + llvm::Twine(llvm::countr_zero(absent)) +
                                 " is elsewhere, expected all members together",
         {{*instruction.members, firstThread + first}});
    Explainer explainer(block, firstThread + first);
    explainer.explainAbsence(*this, llvm::countr_zero(absent));
    explainer.report();
    return false;
  }
  if (uint64_t others = members.bits & ~group) {
    unsigned lane = llvm::countr_zero(others);
    LaneValue theirs = at(*instruction.members, lane);
    fail(instruction, first, "has members " + mask + ", but lane " + llvm::Twine(lane) + " has " +
                                 (theirs.poison ? std::string("poison")
                                                : "0x" + llvm::utohexstr(theirs.bits, /*LowerCase=*/true)) +
                                 ", expected the same mask on all members",
         {{*instruction.members, firstThread + first}, {*instruction.members, firstThread + lane}});
    return false;
  }
  return true;
}

/// Lanes with the same mask of members carry out the op together.
void Subgroup::runAmongMembers(const Instruction &instruction) {
  for (uint64_t left = frame().active; left;) {
    LaneValue members = at(*instruction.members, llvm::countr_zero(left));
    uint64_t group = 0;
    for (uint64_t mask = left; mask; mask &= mask - 1) {
      unsigned lane = llvm::countr_zero(mask);
      if (at(*instruction.members, lane) == members)
        group |= uint64_t(1) << lane;
    }
    left &= ~group;
    if (!checkMembers(instruction, members, group))
      return;
    for (unsigned slot : instruction.results)
      for (uint64_t mask = group; mask; mask &= mask - 1)
        at(slot, llvm::countr_zero(mask)) = {};
    Tile tile(block, instruction, firstThread, size, members.poison ? 0 : members.bits & group);
    instruction.rule->tile(tile);
  }
  ++frame().next;
}

void Subgroup::runCollective(const Instruction &instruction) {
  if (instruction.members)
    return runAmongMembers(instruction);
  if (!checkConvergence(instruction))
    return;
  if (instruction.scope == 0 || instruction.scope > size) {
    state = State::Waiting;
    return;
  }
  for (unsigned lane = 0; lane < size && !block.launch.failed(); lane += instruction.scope) {
    Tile tile(block, instruction, firstThread + lane, instruction.scope);
    instruction.rule->tile(tile);
  }
  ++frame().next;
}

SmallVector<LaneValue, 4> Subgroup::evaluate(const Instruction &owner, unsigned lane, ArrayRef<LaneValue> arguments) {
  const Body &body = owner.regions[0];
  for (auto [slot, value] : llvm::zip_equal(body.arguments, arguments))
    at(slot, lane) = value;
  size_t depth = frames.size();
  enter(owner, 0, uint64_t(1) << lane);
  while (frames.size() > depth && !block.launch.failed())
    step();
  while (frames.size() > depth)
    leave();
  SmallVector<LaneValue, 4> results;
  for (unsigned slot : body.instructions.back().operands)
    results.push_back(at(slot, lane));
  return results;
}

//===----------------------------------------------------------------------===//
// Promises of uniform values
//===----------------------------------------------------------------------===//

void Subgroup::checkUniform(const Instruction &instruction, bool isBlockWide) {
  uint64_t active = frame().active;
  // Lanes come to a `combine` region one by one.
  if (!block.launch.checks.promises ||
      llvm::any_of(frames, [](const Frame &frame) { return frame.owner && frame.owner->rule->isCollective; }))
    return;
  UniformPromise promise = {at(instruction.operands[0], llvm::countr_zero(active)),
                            firstThread + llvm::countr_zero(active)};
  if (isBlockWide) {
    std::vector<uint64_t> iterations;
    for (const Frame &frame : frames)
      iterations.push_back(frame.iteration);
    promise = block.promises.try_emplace({&instruction, iterations}, promise).first->second;
  }
  Type type = instruction.op->getOperand(0).getType();
  for (uint64_t mask = active; mask; mask &= mask - 1) {
    unsigned lane = llvm::countr_zero(mask);
    LaneValue value = at(instruction.operands[0], lane);
    if (!(value == promise.value))
      return fail(instruction, lane,
                  "is promised one value on all threads of the " + llvm::Twine(isBlockWide ? "block" : "subgroup") +
                      ", found " + printValue(value, type) + " here and " + printValue(promise.value, type) + " on " +
                      block.launch.printThread(promise.thread),
                  {{instruction.operands[0], firstThread + lane}, {instruction.operands[0], promise.thread}});
  }
}

} // namespace qd::interp
