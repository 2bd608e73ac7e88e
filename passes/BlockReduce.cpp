//===- BlockReduce.cpp - reductions of a whole block -------------------------------------===//
//
// Purpose: the reduction of a block of several subgroups. Where shuffles are no cheaper than shared memory and the
// order does not matter, the first subgroup combines all values lane by lane before it reduces its own:
//
//   %r = qd.block.reduce add %v
//     ->
//   qd.store %v, %all[%thread] if NOT IN FIRST SUBGROUP   qd.block.sync
//   %r = scf.if FIRST SUBGROUP { %s = %v + all[%lane] + all[%lane + 32] ...   %u = qd.subgroup.reduce add %s }
//
// Else each subgroup reduces first:
//
//   %s = qd.subgroup.reduce add %v
//   qd.store %s, %sums[%subgroup] if LANE 0   qd.block.sync
//   %r = scf.if FIRST SUBGROUP { %t = qd.load %sums[%lane]   %u = qd.subgroup.reduce add %t }
//
// A subgroup of fewer lanes than there are subgroups gives each lane a run of neighbouring results. Few results are
// loaded by each thread. For all threads, and on AMD's chips, all subgroups do the same for themselves where their
// lanes suffice; otherwise thread 0 tells them its result.
//
//===----------------------------------------------------------------------===//

#include "passes/BlockReduce.h"

#include "ir/Kind.h"
#include "passes/LaneTree.h"
#include "passes/Redux.h"
#include "passes/Runs.h"

using namespace mlir;

namespace qd {

using Predicate = arith::CmpIPredicate;

/// What threads load themselves and combine without a move between lanes.
static constexpr int32_t fewValues = 4;

/// Combines the values of the first `count` lanes of the own subgroup, which has at least as many.
static Values buildReduceLanes(const LaneBuilder &at, const Combiner &combiner, Values values, int32_t count,
                               bool toAll) {
  int32_t size = at.shape.subgroupSize;
  if (count > 1 && hasNativeReduce(at.shape, combiner, values, size)) {
    // All lanes take part.
    Value counts = at.compare(Predicate::ult, LaneIdOp::create(at.b, at.loc, at.i32), count);
    Values neutral = combiner.getNeutral(at.b, at.loc, values.front().getType());
    return buildNativeReduce(at, combiner, count == size ? values : at.select(counts, values, neutral), size);
  }
  // To the tree, other lanes look as if the block did not have them.
  BlockShape shape = at.shape;
  shape.threads = count;
  Values reduced = buildReduce(LaneBuilder(at.b, at.loc, shape), combiner, values, size);
  return toAll ? at.broadcast(reduced, int32_t(0), size) : reduced;
}

/// Combines the staged values, which `run` shares out, in the first lane or all lanes of each subgroup that gets here.
static Values buildReduceStaged(const LaneBuilder &at, const Combiner &combiner, const Stage &stage, const Runs &runs,
                                bool toAll) {
  if (runs.count <= fewValues) {
    SmallVector<Values> values;
    for (int32_t i = 0; i < runs.count; ++i)
      values.push_back(stage.load(at, at.constant(i)));
    return combineRow(at, combiner, std::move(values));
  }
  Value start = runs.getStart(at);
  Values own = runs.walk(at, start, stage.load(at, start), [&](Value place, Values values) -> Values {
    Values next = stage.load(at, place);
    if (runs.getElements() == runs.count)
      return combiner.combine(at.b, at.loc, values, next);
    auto exists = [&] { return at.compare(Predicate::ult, place, runs.count); };
    if (!combiner.takesPoison())
      next = at.select(exists(), next, values);
    Values combined = combiner.combineWhere(at.b, at.loc, exists, values, next);
    return at.select(exists(), combined, values);
  });
  return buildReduceLanes(at, combiner, own, runs.lanes, toAll);
}

/// What `build` makes on the first subgroup; anything elsewhere.
static Values buildInFirst(const LaneBuilder &at, Value thread, ValueRange elsewhere,
                           llvm::function_ref<Values()> build) {
  auto inFirst = scf::IfOp::create(
      at.b, at.loc, at.compare(Predicate::ult, thread, at.shape.subgroupSize),
      [&](OpBuilder &, Location) { scf::YieldOp::create(at.b, at.loc, build()); },
      [&](OpBuilder &, Location) { scf::YieldOp::create(at.b, at.loc, elsewhere); });
  return inFirst.getResults();
}

/// Thread 0's values in all threads.
static Values tellAll(const LaneBuilder &at, Operation *user, Value thread, ValueRange values, Staging &staging) {
  Stage result = staging.acquire(at, user, values.getTypes(), 1);
  if (!result)
    return {};
  result.store(at, values, at.constant(0), at.compare(Predicate::eq, thread, int64_t(0)));
  staging.publish(at, result);
  return result.load(at, at.constant(0));
}

Values buildReduceSubgroups(const LaneBuilder &at, Operation *user, const Combiner &combiner, Values partial,
                            bool inAllLanes, bool toAll, Staging &staging) {
  const BlockShape &shape = at.shape;
  Runs runs(shape.getNumSubgroups(), shape.subgroupSize);
  Stage stage = staging.acquire(at, user, ValueRange(partial).getTypes(), runs.getElements());
  if (!stage)
    return {};
  Value thread = ThreadIndexOp::create(at.b, at.loc, at.i32);
  // On AMD's chips a mask of lanes costs more than a store of all of them to the same place.
  Value isWriter;
  if (!inAllLanes || !shape.rowLanes)
    isWriter = at.compare(Predicate::eq, LaneIdOp::create(at.b, at.loc, at.i32), int64_t(0));
  stage.store(at, partial, at.subgroup(thread), isWriter);
  staging.publish(at, stage);
  // AMD's waves would pay more for a branch around it than for what others than the first do for nothing.
  if ((toAll || shape.rowLanes) && (runs.count <= fewValues || runs.count <= shape.getLeastLanes()))
    return buildReduceStaged(at, combiner, stage, runs, toAll);
  Values reduced = buildInFirst(at, thread, partial, [&] {
    return buildReduceStaged(at, combiner, stage, runs, /*toAll=*/false);
  });
  return toAll ? tellAll(at, user, thread, reduced, staging) : reduced;
}

/// The first subgroup combines the others' values with its own before any move between lanes.
static Values buildReduceByRows(const LaneBuilder &at, Operation *user, const Combiner &combiner, Values values,
                                bool toAll, Staging &staging) {
  const BlockShape &shape = at.shape;
  int32_t size = shape.subgroupSize;
  Stage stage = staging.acquire(at, user, ValueRange(values).getTypes(), shape.threads - size);
  if (!stage)
    return {};
  Value thread = ThreadIndexOp::create(at.b, at.loc, at.i32);
  Value place = at.create<arith::SubIOp>(thread, int64_t(size));
  stage.store(at, values, place, at.compare(Predicate::uge, thread, size));
  staging.publish(at, stage);
  Values reduced = buildInFirst(at, thread, values, [&] {
    SmallVector<Values> rows = {values};
    for (int32_t start = size; start < shape.threads; start += size) {
      Value index = at.create<arith::AddIOp>(thread, int64_t(start - size));
      if (shape.threads - start >= size) {
        rows.push_back(stage.load(at, index));
        continue;
      }
      Value exists = at.compare(Predicate::ult, thread, shape.threads - start);
      Values neutral = combiner.getNeutral(at.b, at.loc, values.front().getType());
      rows.push_back(stage.loadWhere(at, index, exists, neutral));
    }
    BlockShape first = shape;
    first.threads = size;
    return buildReduce(LaneBuilder(at.b, at.loc, first), combiner, combineRow(at, combiner, std::move(rows)), size);
  });
  return toAll ? tellAll(at, user, thread, reduced, staging) : reduced;
}

Values buildBlockReduce(const LaneBuilder &at, Operation *user, const Combiner &combiner, Values values, bool toAll,
                        Staging &staging) {
  int32_t mostRows = at.shape.isVector ? 32 : 8;
  const BlockShape &shape = at.shape;
  int32_t size = shape.subgroupSize;
  if (shape.threads <= size)
    return toAll ? buildReduceAll(at, combiner, values, size) : buildReduce(at, combiner, values, size);
  // Predicates vote, and rows of AMD waves reduce without shared memory's help.
  if ((!toAll || shape.isVector) && combiner.getKind() && !values.front().getType().isInteger(1) && !shape.rowLanes &&
      shape.getNumSubgroups() <= mostRows)
    return buildReduceByRows(at, user, combiner, values, toAll, staging);
  // A row's chain gives all lanes the result.
  bool inAllLanes = hasRowKind(shape, combiner, values, size);
  Values partial = inAllLanes ? buildReduceAll(at, combiner, values, size) : buildReduce(at, combiner, values, size);
  return buildReduceSubgroups(at, user, combiner, partial, inAllLanes, toAll, staging);
}

} // namespace qd
