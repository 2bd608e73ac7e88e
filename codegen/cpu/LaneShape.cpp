//===- LaneShape.cpp - the analysis ------------------------------------------------------===//

#include "codegen/cpu/LaneShape.h"

#include "ir/Arrays.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

LaneAnalysis::LaneAnalysis(KernelOp kernel, unsigned lanes) : kernel(kernel), lanes(lanes) {
  computePositions();
  for (BlockArgument argument : kernel.getBodyBlock().getArguments())
    raise(argument, makeKnown({}, true));
  // Shapes only rise (unreached, known, varying), so this ends; a round is linear in the kernel.
  do {
    changed = false;
    visit(kernel.getBodyBlock());
  } while (changed);
}

const LaneOffsets *LaneAnalysis::intern(LaneOffsets offsets) {
  if (llvm::all_of(offsets, [](int64_t offset) { return offset == 0; }))
    return nullptr;
  return &*pool.insert(std::move(offsets)).first;
}

LaneShape LaneAnalysis::makeKnown(LaneOffsets offsets, bool steady) {
  return {LaneShape::Known, steady, /*natural=*/false, /*aligned=*/0, intern(std::move(offsets))};
}

LaneShape LaneAnalysis::makeNatural(LaneOffsets offsets, uint8_t aligned) {
  return {LaneShape::Known, /*steady=*/true, /*natural=*/true, aligned, intern(std::move(offsets))};
}

/// What 0 is aligned to: more than any shift.
static constexpr uint8_t fullyAligned = 64;

static uint8_t getAlignment(uint64_t value) { return value ? llvm::countr_zero(value) : fullyAligned; }

LaneShape LaneAnalysis::join(LaneShape a, LaneShape b) const {
  if (a.kind == LaneShape::Unreached)
    return b;
  if (b.kind == LaneShape::Unreached)
    return a;
  if (a.kind == LaneShape::Varying || b.kind == LaneShape::Varying || a.offsets != b.offsets)
    return {LaneShape::Varying};
  return {LaneShape::Known, a.steady && b.steady, a.natural && b.natural, std::min(a.aligned, b.aligned), a.offsets};
}

void LaneAnalysis::raise(Value value, LaneShape shape) {
  LaneShape &slot = shapes[value];
  LaneShape joined = join(slot, shape);
  changed |= !(joined == slot);
  slot = joined;
}

/// A dimension's positions have one shape where all subgroups show the same differences between their lanes.
void LaneAnalysis::computePositions() {
  unsigned threads = kernel.getNumThreads();
  unsigned divisor = 1;
  for (unsigned dim = 0; dim < 3; ++dim) {
    ThreadPositions &position = positions[dim];
    position.divisor = divisor;
    position.modulus = kernel.getBlockDim(dim);
    divisor *= position.modulus;
    auto locate = [&](unsigned thread) { return int64_t((thread / position.divisor) % position.modulus); };
    LaneOffsets offsets(lanes);
    // Lanes that a lone partial subgroup lacks go on as the last present ones do, which keeps a unit stride one.
    for (unsigned lane = 0; lane < lanes; ++lane)
      offsets[lane] = lane < threads ? locate(lane)
                      : lane < 2     ? 0
                                     : 2 * offsets[lane - 1] - offsets[lane - 2];
    bool same = true;
    uint8_t aligned = fullyAligned;
    for (unsigned thread = 0; thread < threads && same; ++thread) {
      unsigned first = thread / lanes * lanes;
      same = locate(thread) - locate(first) == offsets[thread - first];
      aligned = std::min(aligned, getAlignment(locate(first)));
    }
    position.shape = same ? makeNatural(std::move(offsets), aligned) : LaneShape{LaneShape::Varying};
  }
}

bool LaneAnalysis::isUnitStride(Value value) const {
  const LaneOffsets *offsets = getShape(value).offsets;
  return offsets && llvm::all_of(llvm::enumerate(*offsets), [](auto at) { return at.value() == int64_t(at.index()); });
}

bool LaneAnalysis::isDivergent(scf::ForOp op) const {
  return !isUniform(op.getLowerBound()) || !isUniform(op.getUpperBound()) || !isUniform(op.getStep());
}

//===----------------------------------------------------------------------===//
// Elementwise ops
//===----------------------------------------------------------------------===//

LaneShape LaneAnalysis::allUniform(ValueRange operands) const {
  bool reached = true, uniform = true;
  for (Value operand : operands) {
    LaneShape shape = getShape(operand);
    reached &= shape.kind != LaneShape::Unreached;
    uniform &= shape.isUniform();
  }
  if (!reached)
    return {};
  return LaneShape{uniform ? LaneShape::Known : LaneShape::Varying, /*steady=*/uniform};
}

LaneShape LaneAnalysis::combine(LaneShape a, LaneShape b, int64_t sign, unsigned width, bool steady) {
  uint8_t aligned = std::min(a.aligned, b.aligned);
  bool natural = steady && sign > 0 && a.natural && b.natural;
  if (!a.offsets && !b.offsets)
    return {LaneShape::Known, true, natural, aligned};
  LaneOffsets offsets(lanes);
  for (unsigned lane = 0; lane < lanes; ++lane) {
    uint64_t sum = uint64_t(a.offsets ? (*a.offsets)[lane] : 0) +
                   uint64_t(sign) * uint64_t(b.offsets ? (*b.offsets)[lane] : 0);
    offsets[lane] = llvm::SignExtend64(sum, width);
  }
  return {LaneShape::Known, steady, natural, aligned, intern(std::move(offsets))};
}

LaneShape LaneAnalysis::scale(LaneShape a, int64_t factor, unsigned width) {
  uint8_t aligned = std::min<unsigned>(a.aligned + getAlignment(factor), fullyAligned);
  auto times = [&](int64_t offset) { return llvm::SignExtend64(uint64_t(offset) * uint64_t(factor), width); };
  LaneShape scaled = mapOffsets(a, times, aligned);
  scaled.steady = !scaled.offsets;
  scaled.natural = false;
  return scaled;
}

LaneShape LaneAnalysis::mapOffsets(LaneShape a, llvm::function_ref<int64_t(int64_t)> map, uint8_t aligned) {
  a.aligned = aligned;
  if (!a.offsets)
    return a;
  LaneOffsets offsets;
  for (int64_t offset : *a.offsets)
    offsets.push_back(map(offset));
  a.offsets = intern(std::move(offsets));
  return a;
}

/// Quotients and remainders by 2^k, shifts right and low bits. From a multiple of 2^k on, the low bits are the
/// offsets' and the others go their own way: (b + c) >> k = (b >> k) + (c >> k).
LaneShape LaneAnalysis::divide(Operation &op, LaneShape a, const APInt &operand) {
  LaneShape varying{LaneShape::Varying};
  bool isShift = isa<arith::ShRUIOp, arith::ShRSIOp>(op), isMask = isa<arith::AndIOp>(op);
  APInt divisor = isMask ? operand + 1 : operand;
  if (isShift ? operand.uge(operand.getBitWidth()) : !divisor.isPowerOf2() || divisor.isNegative())
    return varying;
  unsigned k = isShift ? operand.getZExtValue() : divisor.logBase2();
  if (a.aligned < k)
    return varying;
  if (isMask || isa<arith::RemUIOp, arith::RemSIOp>(op)) {
    if (isa<arith::RemSIOp>(op) && !a.natural)
      return varying;
    LaneShape rest = mapOffsets(a, [&](int64_t offset) { return offset & ((int64_t(1) << k) - 1); }, fullyAligned);
    rest.steady = rest.natural = true;
    return rest;
  }
  // Rounding down: an arithmetic shift does, the others where nothing is negative.
  if (isa<arith::ShRSIOp>(op) ? !a.steady : !a.natural)
    return varying;
  uint8_t aligned = a.aligned == fullyAligned ? fullyAligned : a.aligned - k;
  return mapOffsets(a, [&](int64_t offset) { return offset >> k; }, aligned);
}

/// Whether natural numbers that start at a multiple of 2^k and differ by less all lie on one side of a multiple.
bool LaneAnalysis::comparesWhole(arith::CmpIPredicate predicate, LaneShape a, LaneShape b) const {
  using Predicate = arith::CmpIPredicate;
  if (predicate != Predicate::ult && predicate != Predicate::slt && predicate != Predicate::uge &&
      predicate != Predicate::sge)
    return false;
  if (!a.offsets || b.offsets || !a.natural || !a.steady || !b.natural)
    return false;
  uint64_t aligned = uint64_t(1) << std::min<uint8_t>({a.aligned, b.aligned, 62});
  return llvm::all_of(*a.offsets, [&](int64_t offset) { return offset >= 0 && uint64_t(offset) < aligned; });
}

/// Finds block_id * block_dim + thread_id, and the dimension.
std::optional<unsigned> LaneAnalysis::matchGlobalThreadId(arith::AddIOp op) {
  for (auto [start, thread] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
    auto id = thread.getDefiningOp<ThreadIdOp>();
    auto product = start.getDefiningOp<arith::MulIOp>();
    if (!id || !product)
      continue;
    for (auto [factor, extent] :
         {std::pair(product.getLhs(), product.getRhs()), std::pair(product.getRhs(), product.getLhs())}) {
      auto block = factor.getDefiningOp<BlockIdOp>();
      if (!block || block.getDim() != id.getDim())
        continue;
      APInt constant;
      auto size = extent.getDefiningOp<BlockDimOp>();
      if ((size && size.getDim() == id.getDim()) ||
          (matchPattern(extent, m_ConstantInt(&constant)) && constant == kernel.getBlockDim(unsigned(id.getDim()))))
        return unsigned(id.getDim());
    }
  }
  return std::nullopt;
}

LaneShape LaneAnalysis::getGlobalThreadId(unsigned dim, Type type) {
  narrow[dim] |= type.isInteger(32);
  LaneShape shape = positions[dim].shape;
  shape.aligned = std::min(shape.aligned, getAlignment(kernel.getBlockDim(dim)));
  return shape;
}

/// The shape of an op that treats each lane by itself.
LaneShape LaneAnalysis::getElementwise(Operation &op) {
  APInt factor;
  if (matchPattern(&op, m_ConstantInt(&factor)))
    return {LaneShape::Known, true, factor.isNonNegative(), getAlignment(factor.getZExtValue())};
  LaneShape uniform = allUniform(op.getOperands());
  if (uniform.kind == LaneShape::Unreached || op.getNumOperands() == 0 || op.getNumResults() != 1 ||
      !op.getResult(0).getType().isInteger())
    return uniform;
  unsigned width = op.getResult(0).getType().getIntOrFloatBitWidth();
  LaneShape a = getShape(op.getOperand(0));
  LaneShape b = op.getNumOperands() > 1 ? getShape(op.getOperand(1)) : LaneShape();
  if (a.kind != LaneShape::Known || (op.getNumOperands() > 1 && b.kind != LaneShape::Known))
    return uniform;
  auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
  bool steady = flags && flags.hasNoSignedWrap() && a.steady && b.steady;

  if (auto add = dyn_cast<arith::AddIOp>(op)) {
    if (std::optional<unsigned> dim = matchGlobalThreadId(add))
      return getGlobalThreadId(*dim, add.getType());
    return combine(a, b, 1, width, steady);
  }
  if (isa<arith::SubIOp>(op))
    return combine(a, b, -1, width, steady);
  if (isa<arith::TruncIOp>(op))
    return combine(a, {LaneShape::Known, true, false, fullyAligned}, 1, width, false);
  if (isa<arith::ExtSIOp>(op) && a.steady)
    return a;
  if (isa<arith::ExtUIOp>(op) && a.natural)
    return a;
  // What wraps is no subscript: lanes that touch memory are where lane 0 says.
  if (isa<arith::ExtSIOp>(op) && op.hasAttr(subscriptAttribute))
    return {LaneShape::Known, /*steady=*/false, /*natural=*/false, a.aligned, a.offsets};
  if (auto compare = dyn_cast<arith::CmpIOp>(op); compare && comparesWhole(compare.getPredicate(), a, b))
    return {LaneShape::Known, /*steady=*/true};
  if (isa<arith::SelectOp>(op) && a.isUniform())
    return join(b, getShape(op.getOperand(2)));
  if (isa<arith::MulIOp>(op) && matchPattern(op.getOperand(0), m_ConstantInt(&factor)))
    return scale(b, factor.getSExtValue(), width);
  if (op.getNumOperands() != 2 || !matchPattern(op.getOperand(1), m_ConstantInt(&factor)))
    return uniform;
  if (isa<arith::MulIOp>(op))
    return scale(a, factor.getSExtValue(), width);
  if (isa<arith::ShLIOp>(op) && factor.ult(width))
    return scale(a, int64_t(uint64_t(1) << factor.getZExtValue()), width);
  if (isa<arith::ShRUIOp, arith::ShRSIOp, arith::DivUIOp, arith::DivSIOp, arith::RemUIOp, arith::RemSIOp,
          arith::AndIOp>(op)) {
    LaneShape divided = divide(op, a, factor);
    return divided.isVarying() ? uniform : divided;
  }
  return uniform;
}

//===----------------------------------------------------------------------===//
// Ops in order
//===----------------------------------------------------------------------===//

void LaneAnalysis::visit(Block &block) {
  for (Operation &op : block)
    visit(op);
}

void LaneAnalysis::visit(Operation &op) {
  LaneShape uniform{LaneShape::Known, true}, varying{LaneShape::Varying};
  auto lanesInOrder = [&] {
    LaneOffsets offsets(lanes);
    for (unsigned lane = 0; lane < lanes; ++lane)
      offsets[lane] = lane;
    return offsets;
  };
  auto coversSubgroup = [&](std::optional<int32_t> tile) { return !tile || unsigned(*tile) >= lanes; };
  // Lanes of a tile read each other's equal values, or by a lane number that all share.
  auto shuffleLike = [&](auto shuffle) {
    LaneShape value = getShape(shuffle.getValue());
    if (value.isUniform() || value.kind == LaneShape::Unreached)
      return value;
    bool sameLane = isa<BroadcastOp, ShuffleOp>(shuffle.getOperation()) && coversSubgroup(shuffle.getTile()) &&
                    (!shuffle.getLane() || isUniform(shuffle.getLane()));
    return sameLane ? uniform : varying;
  };
  auto vote = [&](Value predicate, std::optional<int32_t> tile) {
    return isUniform(predicate) || coversSubgroup(tile) ? uniform : varying;
  };

  llvm::TypeSwitch<Operation *>(&op)
      .Case([&](scf::IfOp ifOp) { visitIf(ifOp); })
      .Case([&](scf::ForOp forOp) { visitFor(forOp); })
      .Case([&](scf::WhileOp whileOp) { visitWhile(whileOp); })
      .Case([&](ThreadIdOp id) { raise(id, positions[unsigned(id.getDim())].shape); })
      .Case([&](GlobalThreadIdOp id) { raise(id, getGlobalThreadId(unsigned(id.getDim()), id.getType())); })
      .Case([&](ThreadIndexOp id) {
        bool alone = kernel.getNumThreads() <= int64_t(lanes);
        raise(id, makeNatural(lanesInOrder(), alone ? fullyAligned : getAlignment(lanes)));
      })
      .Case([&](LaneIdOp id) { raise(id, makeNatural(lanesInOrder(), fullyAligned)); })
      .Case([&](ElectOp elect) { raise(elect, varying); })
      .Case([&](BlockDimOp dim) {
        raise(dim, makeNatural({}, getAlignment(kernel.getBlockDim(unsigned(dim.getDim())))));
      })
      .Case([&](SubgroupSizeOp size) { raise(size, makeNatural({}, getAlignment(lanes))); })
      .Case<BlockIdOp, GridDimOp>([&](Operation *natural) { raise(natural->getResult(0), makeNatural({}, 0)); })
      .Case<SizeOp, SharedAllocOp, PrivateAllocOp, ConstantGetOp, ActiveMaskOp>(
          [&](Operation *known) { raise(known->getResult(0), uniform); })
      // Lanes whose masks differ may stand at one ballot: each sees its own group.
      .Case([&](BallotOp ballot) {
        raise(ballot, !ballot.getMembers() ? uniform : allUniform(ballot.getMembers()));
      })
      .Case([&](AssumeUniformOp assumed) {
        LaneShape value = getShape(assumed.getValue());
        raise(assumed, value.isUniform() || value.kind == LaneShape::Unreached ? value : uniform);
      })
      .Case([&](LoadOp load) {
        bool mayDiffer = load.getIsVolatile() || isa<PrivateType>(load.getArray().getType());
        raise(load, mayDiffer ? varying : allUniform(op.getOperands()));
      })
      .Case<AtomicRMWOp, AtomicLoadOp>([&](auto access) { raise(access.getResult(), varying); })
      .Case([&](AtomicCASOp swap) {
        raise(swap.getOld(), varying);
        raise(swap.getSuccess(), varying);
      })
      .Case<ShuffleOp, ShuffleUpOp, ShuffleDownOp, ShuffleXorOp, BroadcastOp>(
          [&](auto shuffle) { raise(shuffle.getResult(), shuffleLike(shuffle)); })
      .Case([&](BroadcastFirstOp first) {
        bool same = isUniform(first.getValue()) || coversSubgroup(first.getTile());
        raise(first, same ? uniform : varying);
      })
      .Case<AllOp, AnyOp>([&](auto op) { raise(op.getResult(), vote(op.getPredicate(), op.getTile())); })
      .Default([&](Operation *other) {
        if (other->getNumResults() == 0)
          return;
        LaneShape shape = getElementwise(*other);
        for (Value result : other->getResults())
          raise(result, shape);
      });
}

void LaneAnalysis::visitIf(scf::IfOp op) {
  visit(*op.thenBlock());
  if (op.elseBlock())
    visit(*op.elseBlock());
  bool uniform = isUniform(op.getCondition());
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    Value thenValue = op.thenYield().getOperand(i), elseValue = op.elseYield().getOperand(i);
    if (uniform || thenValue == elseValue)
      raise(result, join(getShape(thenValue), getShape(elseValue)));
    else
      raise(result, {LaneShape::Varying});
  }
}

void LaneAnalysis::visitFor(scf::ForOp op) {
  for (auto [argument, init] : llvm::zip_equal(op.getRegionIterArgs(), op.getInits()))
    raise(argument, getShape(init));
  // All lanes that are still in the loop are in the same iteration.
  LaneShape lower = getShape(op.getLowerBound());
  lower = {lower.kind, lower.isUniform(), /*natural=*/false, /*aligned=*/0, lower.offsets};
  raise(op.getInductionVar(), isUniform(op.getStep()) ? lower : LaneShape{LaneShape::Varying});
  visit(*op.getBody());
  auto yield = cast<scf::YieldOp>(op.getBody()->getTerminator());
  for (auto [argument, next] : llvm::zip_equal(op.getRegionIterArgs(), yield.getOperands()))
    raise(argument, getShape(next));
  bool divergent = isDivergent(op);
  for (auto [result, argument] : llvm::zip_equal(op.getResults(), op.getRegionIterArgs()))
    raise(result, divergent ? LaneShape{LaneShape::Varying} : getShape(argument));
}

void LaneAnalysis::visitWhile(scf::WhileOp op) {
  for (auto [argument, init] : llvm::zip_equal(op.getBeforeArguments(), op.getInits()))
    raise(argument, getShape(init));
  visit(*op.getBeforeBody());
  scf::ConditionOp condition = op.getConditionOp();
  for (auto [argument, value] : llvm::zip_equal(op.getAfterArguments(), condition.getArgs()))
    raise(argument, getShape(value));
  visit(*op.getAfterBody());
  for (auto [argument, next] : llvm::zip_equal(op.getBeforeArguments(), op.getYieldOp().getOperands()))
    raise(argument, getShape(next));
  bool uniform = isUniform(condition.getCondition());
  for (auto [result, value] : llvm::zip_equal(op.getResults(), condition.getArgs()))
    raise(result, uniform ? getShape(value) : LaneShape{LaneShape::Varying});
}

} // namespace qd
