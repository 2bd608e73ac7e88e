//===- UniformityOps.cpp - how single ops spread divergence ----------------------------===//
//
// Purpose: the transfer functions of the uniformity analysis.
//
//===----------------------------------------------------------------------===//

#include "ir/Arrays.h"
#include "passes/Uniformity.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace qd {

static std::optional<int64_t> getConstant(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

static bool isMultipleOf(int64_t value, int64_t factor) { return value % factor == 0; }

//===----------------------------------------------------------------------===//
// Indices that count lanes
//===----------------------------------------------------------------------===//

/// The largest value of an op that counts threads from 0, or none.
static std::optional<int64_t> getLargestIndex(Operation *op, const int64_t (&dims)[3], int64_t threads,
                                              int64_t subgroupSize) {
  if (isa<ThreadIndexOp>(op))
    return threads - 1;
  if (auto id = dyn_cast<ThreadIdOp>(op))
    return dims[unsigned(id.getDim())] - 1;
  if (isa<LaneIdOp>(op))
    return std::min(threads, subgroupSize) - 1;
  return std::nullopt;
}

static Value stripExtensions(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtSIOp, arith::ExtUIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Uniform whatever the analysis finds, and a multiple of `factor`.
static bool isUniformMultiple(Value value, int64_t factor) {
  if (std::optional<int64_t> constant = getConstant(value))
    return isMultipleOf(*constant, factor);
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::MulIOp, arith::ShLIOp>(op))
    return false;
  std::optional<int64_t> by = getConstant(op->getOperand(1));
  if (by && isa<arith::ShLIOp>(op))
    by = *by >= 0 && *by < 32 ? std::optional<int64_t>(int64_t(1) << *by) : std::nullopt;
  if (!by || !isMultipleOf(*by, factor))
    return false;
  Value scaled = op->getOperand(0);
  if (auto argument = dyn_cast<BlockArgument>(scaled))
    return isa<KernelOp>(argument.getOwner()->getParentOp());
  return isa_and_nonnull<BlockIdOp, GridDimOp, BlockDimOp, SizeOp>(scaled.getDefiningOp());
}

/// Whether `value` is, for some q that the subgroup shares, q * (subgroup size) + lane: then whole multiples of the
/// size split it uniformly.
bool UniformityAnalysis::isLanePattern(Value value, unsigned depth) const {
  constexpr unsigned maxDepth = 8;
  Operation *op = value.getDefiningOp();
  if (!op || depth == maxDepth)
    return false;
  bool rowsAreWhole = blockDims[0] == blockThreads || isMultipleOf(blockDims[0], getAlignment());
  return TypeSwitch<Operation *, bool>(op)
      .Case([](ThreadIndexOp) { return true; })
      .Case([&](LaneIdOp) { return !groupsSpanSubgroups(); })
      .Case([&](ThreadIdOp id) { return id.getDim() == Dim::x && rowsAreWhole; })
      .Case([&](GlobalThreadIdOp id) {
        return id.getDim() == Dim::x && rowsAreWhole && isMultipleOf(blockDims[0], getAlignment());
      })
      .Case<arith::ExtSIOp, arith::ExtUIOp>([&](auto extension) {
        return isLanePattern(extension.getIn(), depth + 1);
      })
      .Case([&](arith::AddIOp sum) {
        return (isLanePattern(sum.getLhs(), depth + 1) && isUniformMultiple(sum.getRhs(), getAlignment())) ||
               (isLanePattern(sum.getRhs(), depth + 1) && isUniformMultiple(sum.getLhs(), getAlignment()));
      })
      .Default([](Operation *) { return false; });
}

UniformityAnalysis::State UniformityAnalysis::getIndexState(Operation *op) const {
  if (getLargestIndex(op, blockDims, blockThreads, getLargestSubgroup()) == 0)
    return {};
  auto dim = op->getAttrOfType<DimAttr>("dim");
  if (!dim)
    return varying;
  if (blockDims[unsigned(dim.getValue())] == 1)
    return {};
  // Threads of one subgroup lie in one row or plane where those are whole subgroups.
  int64_t inner = 1;
  for (unsigned i = 0; i < unsigned(dim.getValue()); ++i)
    inner *= blockDims[i];
  if (isMultipleOf(inner, getAlignment()))
    return {Divergence::Uniform, Divergence::Varying};
  return varying;
}

/// The predicate for exchanged operands.
static arith::CmpIPredicate mirror(arith::CmpIPredicate predicate) {
  using Predicate = arith::CmpIPredicate;
  switch (predicate) {
  case Predicate::slt: return Predicate::sgt;
  case Predicate::sle: return Predicate::sge;
  case Predicate::sgt: return Predicate::slt;
  case Predicate::sge: return Predicate::sle;
  case Predicate::ult: return Predicate::ugt;
  case Predicate::ule: return Predicate::uge;
  case Predicate::ugt: return Predicate::ult;
  case Predicate::uge: return Predicate::ule;
  case Predicate::eq:
  case Predicate::ne: return predicate;
  }
  return predicate;
}

/// Whether the predicate first changes at its bound or just behind it; equalities do neither.
enum class Step { None, AtBound, PastBound };
static Step getStep(arith::CmpIPredicate predicate) {
  using Predicate = arith::CmpIPredicate;
  if (llvm::is_contained({Predicate::slt, Predicate::ult, Predicate::sge, Predicate::uge}, predicate))
    return Step::AtBound;
  if (llvm::is_contained({Predicate::sle, Predicate::ule, Predicate::sgt, Predicate::ugt}, predicate))
    return Step::PastBound;
  return Step::None;
}

/// Comparisons that all lanes decide alike: with a bound that no thread reaches, or of an index that counts lanes
/// with a bound that falls between subgroups.
UniformityAnalysis::State UniformityAnalysis::getCompareState(Operation *op) const {
  using Predicate = arith::CmpIPredicate;
  auto compare = cast<arith::CmpIOp>(op);
  State joined = joinOperands(op);
  Value index = compare.getLhs(), bound = compare.getRhs();
  Predicate predicate = compare.getPredicate();
  if (getConstant(index) || isUniformMultiple(index, getAlignment())) {
    std::swap(index, bound);
    predicate = mirror(predicate);
  }
  std::optional<int64_t> constant = getConstant(bound);
  if (!constant && !isUniformMultiple(bound, getAlignment()))
    return joined;

  Operation *source = stripExtensions(index).getDefiningOp();
  std::optional<int64_t> largest =
      source ? getLargestIndex(source, blockDims, blockThreads, getLargestSubgroup()) : std::nullopt;
  Step step = getStep(predicate);
  if (constant && largest && *constant >= 0 &&
      (*constant > *largest || (step == Step::AtBound && *constant == 0) ||
       (step == Step::PastBound && *constant == *largest)))
    return {};

  bool fallsBetween = (step == Step::AtBound && (!constant || isMultipleOf(*constant, getAlignment()))) ||
                      (step == Step::PastBound && constant && isMultipleOf(*constant + 1, getAlignment()));
  if (fallsBetween && isLanePattern(index))
    joined.subgroup = Divergence::Uniform;
  return joined;
}

//===----------------------------------------------------------------------===//
// Memory and collectives
//===----------------------------------------------------------------------===//

/// What memory holds is the author's knowledge, but for one element of a buffer that nothing writes.
UniformityAnalysis::State UniformityAnalysis::getLoadState(Operation *op) const {
  auto load = cast<LoadOp>(op);
  if (isa<ConstantType>(load.getArray().getType()))
    return joinOperands(op);
  auto argument = dyn_cast<BlockArgument>(getRootArray(load.getArray()));
  auto kernel = argument ? dyn_cast<KernelOp>(argument.getOwner()->getParentOp()) : KernelOp();
  if (!kernel || !(kernel.getAccess(argument.getArgNumber()) & KernelOp::ReadOnly))
    return undecided;
  State operands = joinOperands(op), state;
  for (Scope scope : {Scope::subgroup, Scope::block})
    if (operands[scope] != Divergence::Uniform)
      state[scope] = Divergence::Undecided;
  return state;
}

static std::optional<int64_t> getTile(Operation *op) {
  auto tile = op->getAttrOfType<IntegerAttr>("tile");
  return tile ? std::optional<int64_t>(tile.getInt()) : std::nullopt;
}

/// Whether the lanes that a collective op works on together are all lanes of `scope`.
bool UniformityAnalysis::coversScope(Operation *op, Scope scope) const {
  std::optional<int64_t> tile = getTile(op);
  if (scope == Scope::subgroup)
    return tile ? *tile >= getAlignment() : !groupsSpanSubgroups();
  int64_t lanes = tile ? *tile : getSmallestSubgroup();
  return blockThreads <= lanes;
}

/// Whether lanes of one group of `scope` may hear lanes of another.
bool UniformityAnalysis::crossesScope(Operation *op, Scope scope) const {
  std::optional<int64_t> tile = getTile(op);
  if (scope == Scope::block)
    return false;
  if (tile)
    return *tile > (groupLanes ? groupLanes : getSmallestSubgroup());
  return groupLanes && groupLanes < getLargestSubgroup();
}

bool UniformityAnalysis::groupsAreWhole(Operation *op) const {
  std::optional<int64_t> tile = getTile(op);
  return isMultipleOf(blockThreads, tile ? *tile : getLargestSubgroup());
}

/// An op whose results' differences come from elsewhere than its operands gives Varying: lanes of a scan hold
/// different results whatever the values.
Divergence UniformityAnalysis::getCollectiveDivergence(OpResult result, Scope scope) const {
  Operation *op = result.getOwner();
  auto at = [&](Value value) { return value ? get(value)[scope] : Divergence::Uniform; };
  auto join = [&](auto &&values) {
    Divergence worst = Divergence::Uniform;
    for (Value value : values)
      worst = std::max(worst, at(value));
    return worst;
  };
  bool covers = coversScope(op, scope);
  // Equal operands give a partial group another result than whole ones.
  Divergence groups = covers || groupsAreWhole(op) ? Divergence::Uniform : Divergence::Varying;
  auto vote = [&](Value value) { return covers ? Divergence::Uniform : std::max(at(value), groups); };
  // Members meet with the same mask, and nobody else is heard.
  auto votesOfMembers = [&](Value value, Value members) {
    return scope == Scope::subgroup && !groupsSpanSubgroups() ? at(members) : std::max(at(value), at(members));
  };
  // Each lane gets some lane's value.
  auto move = [&](Value value) { return crossesScope(op, scope) ? get(value)[Scope::block] : at(value); };
  auto readLane = [&](auto read) {
    return covers ? std::min(move(read.getValue()), at(read.getLane())) : move(read.getValue());
  };
  return TypeSwitch<Operation *, Divergence>(op)
      .Case<AllOp, AnyOp, AllEqualOp, BroadcastFirstOp>(
          [&](auto) { return covers ? Divergence::Uniform : at(op->getOperand(0)); })
      .Case([&](BallotFirstNOp ballot) { return vote(ballot.getPredicate()); })
      .Case([&](BallotOp ballot) {
        return ballot.getMembers() ? votesOfMembers(ballot.getPredicate(), ballot.getMembers())
                                   : vote(ballot.getPredicate());
      })
      .Case([&](MatchAllOp match) {
        return match.getMembers() ? votesOfMembers(match.getValue(), match.getMembers()) : vote(match.getValue());
      })
      .Case([&](MatchAnyOp match) {
        return match.getMembers() ? std::max(at(match.getValue()), at(match.getMembers()))
                                  : std::max(at(match.getValue()), groups);
      })
      .Case([&](ReduceAllOp reduce) {
        Divergence operation = std::max(join(getCaptured(op)), join(reduce.getIdentity()));
        return std::max(operation, covers ? Divergence::Uniform : std::max(join(reduce.getValues()), groups));
      })
      .Case([&](BroadcastOp broadcast) { return readLane(broadcast); })
      .Case([&](ShuffleOp shuffle) { return readLane(shuffle); })
      .Case<ShuffleXorOp, RotateOp>([&](auto shuffle) { return move(shuffle.getValue()); })
      // What stands in for poison differs between targets and lanes.
      .Case<ShuffleUpOp, ShuffleDownOp>(
          [&](auto shuffle) { return shuffle.getPoisonEdge() ? Divergence::Varying : move(shuffle.getValue()); })
      .Case<BitonicSortOp, BitonicSortKVOp>([&](auto) { return move(op->getOperand(result.getResultNumber())); })
      // The lanes that are here are those that compute it together.
      .Case([&](ActiveMaskOp) {
        return scope == Scope::subgroup && !groupsSpanSubgroups() ? Divergence::Uniform : Divergence::Varying;
      })
      .Default([](Operation *) { return Divergence::Varying; });
}

//===----------------------------------------------------------------------===//
// All ops
//===----------------------------------------------------------------------===//

UniformityAnalysis::State UniformityAnalysis::joinOperands(Operation *op) const {
  State joined;
  for (Value operand : op->getOperands())
    joined = joined | get(operand);
  return joined;
}

/// Quotients and masks that drop the lane from an index that counts lanes.
static bool dropsLane(Operation *op, int64_t alignment) {
  std::optional<int64_t> by = getConstant(op->getOperand(1));
  if (!by)
    return false;
  if (isa<arith::ShRUIOp, arith::ShRSIOp>(op))
    return *by >= 0 && *by < 32 && (int64_t(1) << *by) >= alignment;
  if (isa<arith::AndIOp>(op))
    return isMultipleOf(*by, alignment);
  return *by > 0 && isMultipleOf(*by, alignment);
}

UniformityAnalysis::State UniformityAnalysis::getResultState(OpResult result) const {
  Operation *op = result.getOwner();
  if (isa<QDDialect>(op->getDialect()))
    return TypeSwitch<Operation *, State>(op)
        .Case<BlockIdOp, BlockDimOp, GridDimOp, SubgroupSizeOp, Log2SizeOp, NumSubgroupsOp, SharedAllocOp,
              PrivateAllocOp, ConstantGetOp>([](auto) { return State(); })
        .Case<ThreadIdOp, ThreadIndexOp, GlobalThreadIdOp, LaneIdOp>([&](auto) { return getIndexState(op); })
        .Case([&](SubgroupIdOp) {
          return groupsSpanSubgroups() ? varying : State{Divergence::Uniform, Divergence::Varying};
        })
        .Case<SizeOp, ViewOp, ReinterpretOp, PackBitsOp, UnpackBitsOp>([&](auto) { return joinOperands(op); })
        .Case([&](LoadOp) { return getLoadState(op); })
        .Case<AtomicRMWOp, AtomicCASOp, AtomicLoadOp>([](auto) { return undecided; })
        .Case([&](BlockElectOp) { return blockThreads == 1 ? State() : varying; })
        .Case<BlockBroadcastOp, BlockSyncAllOp, BlockSyncAnyOp, BlockSyncCountOp>([](auto) { return State(); })
        .Case([&](BlockReduceAllOp reduce) {
          State operation;
          for (Value value : getCaptured(op))
            operation = operation | get(value);
          return operation;
        })
        .Case([&](ElectOp elect) { return elect.getTile() == 1u ? State() : varying; })
        .Case<LaneMaskLtOp, LaneMaskLeOp, LaneMaskEqOp, LaneMaskGeOp, LaneMaskGtOp>(
            [&](auto mask) { return mask.getLane() ? get(mask.getLane()) : varying; })
        .Case([&](AssumeUniformOp promise) {
          State promised;
          if (promise.getScope() == Scope::subgroup)
            promised.block = get(promise.getValue()).block;
          return promised;
        })
        .Default([&](Operation *) {
          if (!op->hasTrait<Convergent>())
            return varying;
          return State{getCollectiveDivergence(result, Scope::subgroup), getCollectiveDivergence(result, Scope::block)};
        });

  State joined = joinOperands(op);
  if (isa<arith::CmpIOp>(op))
    return getCompareState(op);
  // A division rounds towards zero: only where the index cannot be negative does it round like a shift.
  bool isFloor = isa<arith::ShRUIOp, arith::ShRSIOp, arith::AndIOp, arith::DivUIOp>(op) ||
                 (isa<arith::DivSIOp>(op) && isa_and_nonnull<ThreadIndexOp, ThreadIdOp, LaneIdOp>(
                                                 stripExtensions(op->getOperand(0)).getDefiningOp()));
  if (isFloor && isLanePattern(op->getOperand(0)) && dropsLane(op, getAlignment()))
    joined.subgroup = Divergence::Uniform;
  // Neither pure nor known: a call, or memory.
  if (!isMemoryEffectFree(op))
    joined = joined | undecided;
  return joined;
}

Scope UniformityAnalysis::getRequiredScope(Operation *op) const {
  StringRef name = op->getName().getStringRef();
  if (!name.starts_with("qd.subgroup."))
    return Scope::block;
  std::optional<int64_t> tile = getTile(op);
  return tile && subgroupSize && *tile > subgroupSize ? Scope::block : Scope::subgroup;
}

} // namespace qd
