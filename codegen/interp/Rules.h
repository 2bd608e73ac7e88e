//===- Rules.h - the table of ops ------------------------------------------------------===//
//
// Purpose: an op's rule is the function that carries it out. A rule sees one lane, the lanes of one scope, or
// a subgroup's control flow; everything around it (masks, poison, convergence) is the machine's business.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_INTERP_RULES_H
#define QD_CODEGEN_INTERP_RULES_H

#include "codegen/interp/Values.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace qd::interp {

class Subgroup;
class Tile;
struct Instruction;
struct Thread;

using Ints = llvm::ArrayRef<llvm::APInt>;
using Floats = llvm::ArrayRef<llvm::APFloat>;
using MaybeInt = std::optional<llvm::APInt>;     ///< nothing stands for poison
using MaybeFloat = std::optional<llvm::APFloat>; ///< nothing stands for poison

/// Integers in, an integer out; poison in, poison out.
using IntRule = MaybeInt (*)(mlir::Operation *, Ints);
/// Floats in, a float out; poison in, poison out.
using FloatRule = MaybeFloat (*)(mlir::Operation *, Floats);
/// Any values in and out, of one thread. `Rule::strict`: poison in, poison out.
using ThreadRule = void (*)(Thread &);
/// The lanes of one scope together.
using TileRule = void (*)(Tile &);
/// The lane whose value a lane gets; nothing where it gets poison.
using SourceRule = std::optional<unsigned> (*)(Tile &, unsigned lane);
/// The active lanes of a subgroup, whether or not all are here: decides which of them run what next.
using ControlRule = void (*)(Subgroup &, const Instruction &);

struct Rule {
  IntRule ints = nullptr;
  FloatRule floats = nullptr;
  ThreadRule thread = nullptr;
  bool strict = false; ///< of a thread rule
  TileRule tile = nullptr;
  SourceRule source = nullptr; ///< of a tile rule that moves values of operand 0
  ControlRule control = nullptr;
  bool isCollective = false;
  bool isBlockWide = false; ///< of a collective: its scope is the block
  bool isBarrier = false;   ///< of a block-wide op: orders memory
  bool isGridWide = false;  ///< of a block-wide one: it then waits for all blocks
};

/// The tile rule of all ops with a source rule.
void moveValues(Tile &tile);

class RuleTable {
public:
  const Rule *find(llvm::StringRef op) const {
    auto row = rules.find(op);
    return row == rules.end() ? nullptr : &row->second;
  }
  template <typename Op> Rule &add() { return rules[Op::getOperationName()]; }

  template <typename Op> void addInts(IntRule rule) { add<Op>().ints = rule; }
  template <typename Op> void addFloats(FloatRule rule) { add<Op>().floats = rule; }
  /// A pure op: a poisoned operand poisons its results.
  template <typename Op> void addStrict(ThreadRule rule) {
    add<Op>().thread = rule;
    add<Op>().strict = true;
  }
  template <typename Op> void addThread(ThreadRule rule) { add<Op>().thread = rule; }
  template <typename Op> void addControl(ControlRule rule) { add<Op>().control = rule; }
  /// The scope is the subgroup, or what the op's `tile` says.
  template <typename Op> void addTile(TileRule rule) {
    add<Op>().tile = rule;
    add<Op>().isCollective = true;
  }
  /// Each lane gets operand 0 of another one.
  template <typename Op> void addMove(SourceRule rule) {
    addTile<Op>(moveValues);
    add<Op>().source = rule;
  }
  /// The scope is the block.
  template <typename Op> void addBlock(TileRule rule) {
    addTile<Op>(rule);
    add<Op>().isBlockWide = true;
  }
  /// The scope is the block, and memory is in order behind the op; `rule` may be null.
  template <typename Op> void addBarrier(TileRule rule) {
    addBlock<Op>(rule);
    add<Op>().isBarrier = true;
  }
  /// The scope is the grid.
  template <typename Op> void addGrid() {
    addBarrier<Op>(nullptr);
    add<Op>().isGridWide = true;
  }

private:
  llvm::StringMap<Rule> rules;
};

// One function a family of ops.
void addIntegerRules(RuleTable &table);
void addFloatRules(RuleTable &table);
void addConversionRules(RuleTable &table);
void addMathRules(RuleTable &table);
void addIndexRules(RuleTable &table);
void addMemoryRules(RuleTable &table);
void addViewRules(RuleTable &table);
void addVectorRules(RuleTable &table);
void addAtomicRules(RuleTable &table);
void addSubgroupRules(RuleTable &table);
void addCombineRules(RuleTable &table);
void addSortRules(RuleTable &table);
void addBlockRules(RuleTable &table);
void addControlRules(RuleTable &table);
void addThreadRules(RuleTable &table);
void addAsyncRules(RuleTable &table);

const RuleTable &getRules();

/// `lhs op rhs` for the scalar op of that name, which has an int or float rule.
LaneValue applyBinary(llvm::StringRef op, mlir::Type type, LaneValue lhs, LaneValue rhs);

} // namespace qd::interp

#endif
