//===- Explain.h - says where the values behind a failure came from ------------------------===//
//
// Purpose: adds notes to a report: the op that made a poison and those that it passed through, the operands that a
// subscript was computed from, the branch that kept lanes from a collective op.
// Input: the machine as a failure leaves it: slots hold what each op last gave, so nothing is recorded beforehand.
// Output: lines behind the launch's error. What later iterations have overwritten is not guessed at: a value is
// followed only to others that still account for it. Poison that a loop begins to carry round is explained then.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_INTERP_EXPLAIN_H
#define QD_CODEGEN_INTERP_EXPLAIN_H

#include "codegen/interp/Machine.h"

#include "llvm/ADT/DenseSet.h"

namespace qd::interp {

class Explainer {
public:
  /// The report is of this thread: notes name others.
  Explainer(Block &block, unsigned thread) : block(block), here(thread) {}

  /// Puts the notes behind the launch's error.
  void report();
  std::vector<Note> take() { return std::move(notes); }

  /// How a value came to be, or the poison that it is, in a number of notes at most.
  void explain(Cause cause, unsigned most = mostNotes);
  /// Why a lane of the subgroup is not at the op where others are.
  void explainAbsence(Subgroup &subgroup, unsigned lane);
  /// Why the thread's subgroup passes by an op that another one of the block is at.
  void explainDetour(const Instruction &meeting, Subgroup &other);

private:
  static constexpr unsigned mostNotes = 8;

  const Definition &define(unsigned slot) const { return block.launch.code.definitions[slot]; }
  bool isSame(const Cause &a, const Cause &b) { return block.at(a) == block.at(b); }
  std::string print(const Cause &cause) { return printValue(block.at(cause), define(cause.slot).type); }

  // Through structured control flow, which only passes values on.
  llvm::SmallVector<Cause, 2> findOriginals(const Cause &cause);
  Cause followCopies(Cause cause);
  bool isEntered(const Instruction &loop, unsigned thread);
  bool isInFirstIteration(const Instruction &loop, unsigned thread);

  void explainPoison(Cause cause);
  std::optional<Cause> findPoisonBefore(const Cause &cause);
  std::optional<Cause> findPoisonedLane(const Instruction &instruction, unsigned thread, bool withRegion);
  std::string describeOrigin(const Instruction &instruction, unsigned thread);

  void explainValue(Cause cause);
  void explainOperation(const Cause &cause, const Instruction &instruction);
  void explainBranch(const Instruction &branch, unsigned thread, unsigned other);

  Tile findTile(const Instruction &instruction, unsigned thread);
  void note(mlir::Operation *op, unsigned thread, const llvm::Twine &message);

  Block &block;
  const unsigned here;
  std::vector<Note> notes;
  llvm::DenseSet<std::pair<unsigned, unsigned>> seen;
  unsigned budget = 0; ///< notes about values that may still follow
};

} // namespace qd::interp

#endif
