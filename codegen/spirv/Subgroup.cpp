//===- Subgroup.cpp - lanes, shuffles and votes, on SPIR-V ---------------------------===//
//
// Only the operations of Vulkan 1.1's mandatory forms are used: values travel as 32 bits or as vectors of two, so
// that no device needs extended types, and a lane number that an op takes is a constant or goes through
// OpGroupNonUniformShuffle, which alone allows it to vary. Group arithmetic needs the chip to have it.
//
// Ops with members stand in divergent control flow. SPIR-V's instructions are carried out by the invocations that are
// there, which is what members ask for; that lanes are together after each scf op, its structured constructs say.
//
//===----------------------------------------------------------------------===//

#include "codegen/spirv/KernelLowering.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace spv;

namespace qd::spirv {

//===----------------------------------------------------------------------===//
// Scopes and lanes
//===----------------------------------------------------------------------===//

/// The lanes of the op's scope, or an error where its tile is larger than a subgroup.
template <typename SubgroupOp> static FailureOr<unsigned> getScope(KernelLowering &l, SubgroupOp op) {
  unsigned size = l.target.subgroupSize, lanes = op.getTile().value_or(size);
  if (lanes <= size)
    return lanes;
  return op.emitOpError() << "tile of " << lanes << " lanes exceeds the subgroup of " << size << " on "
                          << l.target.str();
}

static LogicalResult reportTile(KernelLowering &l, Operation *op, int32_t tile) {
  return op->emitOpError() << "tile of " << tile << " lanes is left, expected the subgroup of "
                           << l.target.subgroupSize << " on " << l.target.str();
}

static Id getScopeId(KernelLowering &l) { return l.getU32(unsigned(spv::Scope::Subgroup)); }

static Id maskBits(KernelLowering &l, Id value, uint32_t mask) {
  return l.emitU32(Op::OpBitwiseAnd, {value, l.getU32(mask)});
}

/// The lane's number in its scope of `lanes`.
static Id getLaneInScope(KernelLowering &l, unsigned lanes) {
  return lanes == l.target.subgroupSize ? l.getLane() : maskBits(l, l.getLane(), lanes - 1);
}

/// The first lane of the lane's scope.
static Id getFirstLane(KernelLowering &l, unsigned lanes) { return maskBits(l, l.getLane(), ~(lanes - 1)); }

static LogicalResult lowerLaneId(KernelLowering &l, Operation *op, const OpRow &) {
  return l.setResult(op, l.getLane());
}

static LogicalResult lowerSize(KernelLowering &l, Operation *op, const OpRow &) {
  return l.setResult(op, l.getU32(l.target.subgroupSize));
}

static LogicalResult lowerElect(KernelLowering &l, Operation *op, const OpRow &) {
  FailureOr<unsigned> lanes = getScope(l, cast<ElectOp>(op));
  if (failed(lanes))
    return failure();
  return l.setResult(op, l.emitBool(Op::OpIEqual, {getLaneInScope(l, *lanes), l.getU32(0)}));
}

//===----------------------------------------------------------------------===//
// Moving a value as 32-bit words
//===----------------------------------------------------------------------===//

/// `value` as a u32, an f32 or a vector of two u32.
static Id pack(KernelLowering &l, Id value, Type type) {
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return l.select(l.getU32Type(), value, l.getU32(1), l.getU32(0));
  case 32:
    return value;
  case 64:
    return l.toHalves(value);
  default:
    if (!type.isF16())
      return l.emitU32(Op::OpUConvert, value);
    Id half = l.getType(type);
    Id pair = l.emit(Op::OpCompositeConstruct, l.b.getVectorType(half, 2), {value, l.b.getFloat(16, 0)});
    return l.emitU32(Op::OpBitcast, pair);
  }
}

static Id getPackedType(KernelLowering &l, Type type) {
  if (type.getIntOrFloatBitWidth() == 64)
    return l.b.getVectorType(l.getU32Type(), 2);
  return type.isF32() ? l.getType(type) : l.getU32Type();
}

static Id unpack(KernelLowering &l, Id packed, Type type) {
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return l.emitBool(Op::OpINotEqual, {packed, l.getU32(0)});
  case 32:
    return packed;
  case 64:
    return l.fromHalves(packed, type);
  default:
    if (!type.isF16())
      return l.emit(Op::OpUConvert, l.getType(type), packed);
    Id half = l.getType(type);
    Id pair = l.emit(Op::OpBitcast, l.b.getVectorType(half, 2), packed);
    return l.emit(Op::OpCompositeExtract, half, {pair, 0});
  }
}

/// `value` moved by `instruction`, whose last operand is `operand`.
static Id move(KernelLowering &l, Op instruction, Value value, Id operand) {
  switch (instruction) {
  case Op::OpGroupNonUniformBroadcast:
    l.b.require(Capability::GroupNonUniformBallot);
    break;
  case Op::OpGroupNonUniformShuffleUp:
  case Op::OpGroupNonUniformShuffleDown:
    l.b.require(Capability::GroupNonUniformShuffleRelative);
    break;
  default:
    l.b.require(Capability::GroupNonUniformShuffle);
    break;
  }
  Type type = value.getType();
  Id packed = pack(l, l.get(value), type);
  Id moved = l.emit(instruction, getPackedType(l, type), {getScopeId(l), packed, operand});
  return unpack(l, moved, type);
}

//===----------------------------------------------------------------------===//
// Shuffles and broadcasts
//===----------------------------------------------------------------------===//

/// Reads lane `lane` (a constant where `constant` is set) of the scope.
static Id readLane(KernelLowering &l, Value value, unsigned lanes, Id lane, std::optional<uint32_t> constant) {
  if (lanes == 1)
    return l.get(value);
  bool isWhole = lanes == l.target.subgroupSize;
  if (constant && isWhole)
    return move(l, Op::OpGroupNonUniformBroadcast, value, l.getU32(*constant % lanes));
  Id source = constant ? l.getU32(*constant % lanes) : maskBits(l, lane, lanes - 1);
  if (!isWhole)
    source = l.emitU32(Op::OpBitwiseOr, {getFirstLane(l, lanes), source});
  return move(l, Op::OpGroupNonUniformShuffle, value, source);
}

template <typename ShuffleLikeOp> static LogicalResult lowerReadLane(KernelLowering &l, Operation *op, const OpRow &) {
  auto shuffle = cast<ShuffleLikeOp>(op);
  FailureOr<unsigned> lanes = getScope(l, shuffle);
  if (failed(lanes))
    return failure();
  Id lane = shuffle.getLane() ? l.get(shuffle.getLane()) : 0;
  return l.setResult(op, readLane(l, shuffle.getValue(), *lanes, lane, shuffle.getConstantLane()));
}

static LogicalResult lowerBroadcastFirst(KernelLowering &l, Operation *op, const OpRow &) {
  auto broadcast = cast<BroadcastFirstOp>(op);
  FailureOr<unsigned> lanes = getScope(l, broadcast);
  if (failed(lanes))
    return failure();
  return l.setResult(op, readLane(l, broadcast.getValue(), *lanes, 0, 0));
}

static LogicalResult lowerShuffleXor(KernelLowering &l, Operation *op, const OpRow &) {
  auto shuffle = cast<ShuffleXorOp>(op);
  FailureOr<unsigned> lanes = getScope(l, shuffle);
  if (failed(lanes))
    return failure();
  if (std::optional<int32_t> mask = shuffle.getConstantLane()) {
    if (unsigned(*mask) >= *lanes)
      return op->emitOpError() << "mask " << *mask << " leaves the subgroup of " << *lanes << " lanes on "
                               << l.target.str();
    if (*mask == 0)
      return l.setResult(op, l.get(shuffle.getValue()));
    return l.setResult(op, move(l, Op::OpGroupNonUniformShuffleXor, shuffle.getValue(), l.getU32(*mask)));
  }
  Id mask = maskBits(l, l.get(shuffle.getLane()), *lanes - 1);
  Id source = l.emitU32(Op::OpBitwiseXor, {l.getLane(), mask});
  return l.setResult(op, move(l, Op::OpGroupNonUniformShuffle, shuffle.getValue(), source));
}

/// shuffle_up and shuffle_down: the row's code is the instruction for constant offsets.
template <typename EdgeOp> static LogicalResult lowerShuffleEdge(KernelLowering &l, Operation *op, const OpRow &row) {
  auto shuffle = cast<EdgeOp>(op);
  constexpr bool isUp = std::is_same_v<EdgeOp, ShuffleUpOp>;
  FailureOr<unsigned> lanes = getScope(l, shuffle);
  if (failed(lanes))
    return failure();
  Id value = l.get(shuffle.getValue());
  std::optional<int32_t> constant = shuffle.getConstantLane();
  if (constant && (*constant == 0 || unsigned(*constant) >= *lanes))
    return l.setResult(op, value);

  // Up reads past the edge on lanes below n, down on lanes from lanes - n up. An offset of `lanes` or more is past
  // the edge on every lane, and lanes - n must not wrap around then.
  Id offset = constant ? l.getU32(*constant) : l.get(shuffle.getLane());
  auto isInside = [&] {
    Id lane = getLaneInScope(l, *lanes);
    if (isUp)
      return l.emitBool(Op::OpUGreaterThanEqual, {lane, offset});
    if (constant)
      return l.emitBool(Op::OpULessThan, {lane, l.getU32(*lanes - *constant)});
    Id above = l.emitU32(Op::OpISub, {l.getU32(*lanes - 1), lane});
    return l.emitBool(Op::OpUGreaterThanEqual, {above, offset});
  };
  if (constant) {
    Id moved = move(l, Op(row.code), shuffle.getValue(), offset);
    if (!shuffle.getPoisonEdge())
      moved = l.select(l.getType(shuffle.getType()), isInside(), moved, value);
    return l.setResult(op, moved);
  }
  Id source = l.emitU32(isUp ? Op::OpISub : Op::OpIAdd, {l.getLane(), offset});
  source = l.select(l.getU32Type(), isInside(), source, l.getLane());
  return l.setResult(op, move(l, Op::OpGroupNonUniformShuffle, shuffle.getValue(), source));
}

//===----------------------------------------------------------------------===//
// Votes
//===----------------------------------------------------------------------===//

/// The ballot of the lanes that are here, as a mask of lanes stands in for `result`.
static Id emitBallot(KernelLowering &l, Value result, Id predicate) {
  l.b.require(Capability::GroupNonUniformBallot);
  Id bits = l.emit(Op::OpGroupNonUniformBallot, l.b.getVectorType(l.getU32Type(), 4), {getScopeId(l), predicate});
  if (isNarrowMask(result))
    return l.getHalf(bits, 0);
  Id halves = l.emit(Op::OpVectorShuffle, l.b.getVectorType(l.getU32Type(), 2), {bits, bits, 0, 1});
  return l.fromHalves(halves, result.getType());
}

static LogicalResult lowerBallot(KernelLowering &l, Operation *op, const OpRow &) {
  auto ballot = cast<BallotOp>(op);
  Id set = emitBallot(l, ballot, l.get(ballot.getPredicate()));
  Value members = ballot.getMembers();
  if (!members)
    return l.setResult(op, set);
  bool isNarrow = isNarrowMask(ballot);
  Id mask = l.get(members);
  if (isNarrow && !isNarrowMask(members))
    mask = l.emitU32(Op::OpUConvert, mask);
  Id type = isNarrow ? l.getU32Type() : l.getType(ballot.getType());
  return l.setResult(op, l.emit(Op::OpBitwiseAnd, type, {set, mask}));
}

static LogicalResult lowerActiveMask(KernelLowering &l, Operation *op, const OpRow &) {
  return l.setResult(op, emitBallot(l, op->getResult(0), l.b.getBool(true)));
}

/// all and any: the row's code is the instruction.
template <typename VoteOp> static LogicalResult lowerVote(KernelLowering &l, Operation *op, const OpRow &row) {
  auto vote = cast<VoteOp>(op);
  if (vote.getTile().value_or(l.target.subgroupSize) != l.target.subgroupSize)
    return reportTile(l, op, *vote.getTile());
  l.b.require(Capability::GroupNonUniformVote);
  return l.setResult(op, l.emitBool(Op(row.code), {getScopeId(l), l.get(vote.getPredicate())}));
}

//===----------------------------------------------------------------------===//
// Group arithmetic
//===----------------------------------------------------------------------===//

/// OpNop for kinds that are not of integers.
static Op getGroupInstruction(Kind kind) {
  switch (kind) {
  case Kind::add: return Op::OpGroupNonUniformIAdd;
  case Kind::mul: return Op::OpGroupNonUniformIMul;
  case Kind::minsi: return Op::OpGroupNonUniformSMin;
  case Kind::minui: return Op::OpGroupNonUniformUMin;
  case Kind::maxsi: return Op::OpGroupNonUniformSMax;
  case Kind::maxui: return Op::OpGroupNonUniformUMax;
  case Kind::andi: return Op::OpGroupNonUniformBitwiseAnd;
  case Kind::ori: return Op::OpGroupNonUniformBitwiseOr;
  case Kind::xori: return Op::OpGroupNonUniformBitwiseXor;
  default: return Op::OpNop;
  }
}

/// reduce_all and the scans of an i32 over the whole subgroup: the row's code is the group operation. An exclusive
/// scan's first lane holds the same identity there as here.
template <typename FoldOp> static LogicalResult lowerFold(KernelLowering &l, Operation *op, const OpRow &row) {
  auto fold = cast<FoldOp>(op);
  if (!l.target.has(qd::Capability::GroupArithmetic) || fold.getValues().size() != 1 || !fold.getKind())
    return l.unsupported(op);
  Type type = fold.getValues()[0].getType();
  Op instruction = getGroupInstruction(*fold.getKind());
  if (instruction == Op::OpNop || !type.isInteger(32))
    return l.unsupported(op, type);
  if (fold.getTile().value_or(l.target.subgroupSize) != l.target.subgroupSize)
    return reportTile(l, op, *fold.getTile());
  l.b.require(Capability::GroupNonUniformArithmetic);
  return l.setResult(op, l.emitU32(instruction, {getScopeId(l), row.code, l.get(fold.getValues()[0])}));
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Of what lanes wrote to shared arrays and buffers. The scope needs no more than a subgroup's.
static Id getOrder(KernelLowering &l) {
  l.b.require(Capability::GroupNonUniform);
  return l.getU32(unsigned(MemorySemanticsMask::AcquireRelease | MemorySemanticsMask::UniformMemory |
                           MemorySemanticsMask::WorkgroupMemory));
}

static LogicalResult lowerSync(KernelLowering &l, Operation *, const OpRow &) {
  l.b.emitVoid(Op::OpControlBarrier, {getScopeId(l), getScopeId(l), getOrder(l)});
  return success();
}

static LogicalResult lowerMemFence(KernelLowering &l, Operation *, const OpRow &) {
  l.b.emitVoid(Op::OpMemoryBarrier, {getScopeId(l), getOrder(l)});
  return success();
}

static LogicalResult lowerAssumeUniform(KernelLowering &l, Operation *op, const OpRow &) {
  return l.setResult(op, l.get(op->getOperand(0)));
}

ArrayRef<OpRow> getSubgroupRows() {
  static const OpRow rows[] = {
      makeRow<LaneIdOp>(lowerLaneId),
      makeRow<SubgroupSizeOp>(lowerSize),
      makeRow<ElectOp>(lowerElect),
      makeRow<ShuffleOp>(lowerReadLane<ShuffleOp>),
      makeRow<BroadcastOp>(lowerReadLane<BroadcastOp>),
      makeRow<BroadcastFirstOp>(lowerBroadcastFirst),
      makeRow<ShuffleXorOp>(lowerShuffleXor),
      makeRow<ShuffleUpOp>(lowerShuffleEdge<ShuffleUpOp>, Op::OpGroupNonUniformShuffleUp),
      makeRow<ShuffleDownOp>(lowerShuffleEdge<ShuffleDownOp>, Op::OpGroupNonUniformShuffleDown),
      makeRow<BallotOp>(lowerBallot),
      makeRow<ActiveMaskOp>(lowerActiveMask),
      makeRow<AllOp>(lowerVote<AllOp>, Op::OpGroupNonUniformAll),
      makeRow<AnyOp>(lowerVote<AnyOp>, Op::OpGroupNonUniformAny),
      makeRow<ReduceAllOp>(lowerFold<ReduceAllOp>, uint32_t(GroupOperation::Reduce)),
      makeRow<InclusiveScanOp>(lowerFold<InclusiveScanOp>, uint32_t(GroupOperation::InclusiveScan)),
      makeRow<ExclusiveScanOp>(lowerFold<ExclusiveScanOp>, uint32_t(GroupOperation::ExclusiveScan)),
      makeRow<SubgroupSyncOp>(lowerSync),
      makeRow<SubgroupMemFenceOp>(lowerMemFence),
      makeRow<AssumeUniformOp>(lowerAssumeUniform),
  };
  return rows;
}

} // namespace qd::spirv
