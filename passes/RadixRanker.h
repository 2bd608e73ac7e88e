//===- RadixRanker.h - how the ranks of one op are built -------------------------------------===//
//
// Purpose: what RadixRank.cpp, which counts digits, and RadixColumns.cpp, which sums up the counters, share.
//
//===----------------------------------------------------------------------===//

#ifndef QD_PASSES_RADIXRANKER_H
#define QD_PASSES_RADIXRANKER_H

#include "passes/IntegerBuilder.h"
#include "passes/RadixRank.h"

#include "llvm/Support/MathExtras.h"

namespace qd {

/// Builds the ranks of one op.
class Ranker {
public:
  Ranker(const LaneBuilder &at, mlir::Operation *op, const RadixDigits &digits, Staging &staging)
      : at(at), i(at), op(op), digits(digits), staging(staging), threads(at.shape.threads),
        size(at.shape.subgroupSize), subgroups(llvm::divideCeil(threads, size)), numKeys(digits.keys.size()),
        numDigits(1 << digits.numBits), element(i.i32) {}

  Values rank();

  static constexpr int32_t mostHalves = 8; ///< of words, that are one access

private:
  /// Where a digit is counted.
  struct Counter {
    mlir::Value word;  ///< its subscript
    mlir::Value shift; ///< its lowest bit in the word; null where it has all of them
  };

  bool allocate();
  bool allocateInOrder();
  void findPlace();
  Values getDigits();

  Values toRounds(mlir::ValueRange values);
  Values fromRounds(mlir::ValueRange values);
  void clear();
  void matchDigits(mlir::ValueRange digits);
  Values count(mlir::Value isOnTurn, Values locals);
  Values countInTurns();
  void sumColumns();
  Values countInOrder();
  void sumInOrder();
  void sumFewColumns(mlir::Value lane, mlir::Value isActive);
  void sumManyColumns(mlir::Value lane, mlir::Value isActive);
  mlir::Value scanLanes(mlir::Value total, bool isPair);
  void sumHalves(mlir::Value lane, mlir::Value isActive);
  void tell(mlir::Value word, mlir::Value start, mlir::Value total, mlir::Value isActive);
  void tellBeyond();

  void barrier() {
    if (subgroups == 1)
      SubgroupSyncOp::create(i.b, i.loc);
    else
      staging.sync(at);
  }
  /// The barrier among those who share a row.
  void rowBarrier() {
    if (hasOwnRows)
      SubgroupSyncOp::create(i.b, i.loc);
    else
      barrier();
  }

  mlir::Value plus(mlir::Value index, mlir::Value other) { return index ? i.add(index, other) : other; }
  mlir::Value load(mlir::Value index, mlir::Value predicate = {});
  void store(mlir::Value value, mlir::Value index, mlir::Value predicate = {}) {
    stage.store(at, isHalf ? i.cast(value, element) : value, index, predicate);
  }
  /// Neighbours from an index on that is a multiple of their number, or of the power of two in it.
  Values loadRun(mlir::Value index, int32_t count, mlir::Value predicate = {});
  void storeRun(mlir::ValueRange values, mlir::Value index, mlir::Value predicate = {});
  /// Neighbouring halves, two a word.
  Values loadWords(mlir::Value index, int32_t count, mlir::Value predicate);
  void storeWords(mlir::ValueRange words, mlir::Value index, mlir::Value predicate);
  mlir::Value get(const Counter &counter, mlir::Value isOnTurn = {});
  void addTo(const Counter &counter, mlir::Value old, mlir::Value number, mlir::Value predicate);
  mlir::Value both(mlir::Value a, mlir::Value b) { return !a ? b : !b ? a : i.bitAnd(a, b); }
  /// `body` with each number below `end`.
  void repeat(int32_t end, llvm::function_ref<void(mlir::Value)> body);

  const LaneBuilder &at;
  IntegerBuilder i;
  mlir::Operation *op;
  const RadixDigits &digits;
  Staging &staging;

  int32_t threads, size, subgroups, numKeys, numDigits;
  bool isInOrder = false;    ///< threads count one after the other
  bool countsFit16 = false;  ///< those of the block
  bool isPackedPair = false; ///< a word holds two counters
  bool isHalf = false;       ///< the memory's elements are of 16 bits
  mlir::Type element;        ///< of the memory
  int32_t words = 0;         ///< elements that hold a subgroup's counters
  bool hasOwnRows = true;
  int32_t rows = 0, stride = 0, turns = 1;
  int32_t sumLanes = 1; ///< lanes that sum up columns, as many words each
  Stage stage;

  mlir::Value thread, lane;
  mlir::Value subgroup;           ///< null where there is one
  mlir::Value row;                ///< where the subgroup's row begins; null for 0
  mlir::Value start;              ///< where the subgroup's keys begin in memory that they pass through; null for 0
  mlir::Value width;              ///< lanes that the subgroup has
  llvm::SmallVector<Counter> counters;
  Values below;             ///< lanes below with the same digit, in the round
  Values isHighest;         ///< whether there are none above
};

} // namespace qd

#endif
