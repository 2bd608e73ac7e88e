//===- ExpandCollectives.cpp - subgroup and block ops to what targets have ----------------===//
//
// Purpose: turns the subgroup and block ops of a kernel into the few that every backend lowers, and its conveniences
// among the index ops into their definitions.
//
// Input invariant: a verified module; helper functions are inlined; collective ops stand in uniform control flow.
//
// Output invariant:
// - gone: subgroup.reduce, reduce_all, scans and segmented ops, but for those of i32 that the target has (reduce_all,
//   inclusive_scan, exclusive_scan of a whole subgroup), and, where lanes stand in rows (amdgcn), reduce, reduce_all
//   and inclusive_scan by a kind of tiles that are whole, of scans those of a row or more; broadcast_first, elect,
//   size, log2_size, subgroup_id, num_subgroups, rotate, ballot_first_n, bitonic_sort, bitonic_sort_kv;
//   global_thread_id, block_dim;
// - match_any and match_all of an i32 or i64, all_equal of an i1 and the own lane's lanemask as an i32 remain on chips
//   that have them, else are gone;
// - thread_id remains only along dimensions of more than one thread;
// - no tile is as wide as the subgroup or wider (no clause: the whole subgroup), none has one lane; all, any, ballot,
//   what remains of the matches, and shuffle_xor of a constant mask have no tile;
// - constant lanes, offsets and masks are literals below the tile's or subgroup's size, offsets and masks above 0;
//   shuffle has a varying lane (of a constant lane, without members, it is broadcast);
// - a wider tile is shared.alloc, store, block.sync and load;
// - gone: block.elect, broadcast, reduce, reduce_all and scans; block.sync_all, sync_any and sync_count, but in blocks
//   of several subgroups on chips that have them;
// - a tile never straddles the block's end; shared arrays fit the chip.
//
//===----------------------------------------------------------------------===//

#include "passes/BlockOps.h"
#include "passes/BlockVote.h"
#include "passes/ExpansionRemark.h"
#include "passes/LaneMasks.h"
#include "passes/LaneTree.h"
#include "passes/Passes.h"
#include "passes/Scan.h"
#include "passes/Sort.h"
#include "passes/TargetPass.h"
#include "passes/Uniformity.h"
#include "passes/WideTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace qd {

namespace {

/// AMD waves of 64 lanes without an instruction that swaps their halves: there the last shuffles of a reduction go
/// through shared memory, and reading a lane is one scalar instruction.
int32_t getReadLanes(const Target &target) {
  if (target.has(WaveShift))
    return 16;
  return target.subgroupSize == 64 && target.has(PermLane16) && !target.has(PermLane64) ? 32 : 0;
}

/// AMD waves move values by an offset within rows only; reading one lane is one scalar instruction.
int32_t getRowLanes(const Target &target) { return target.has(WaveShift) || target.has(RowShare) ? 16 : 0; }

/// gfx90a and later of gfx9 have a unit for doubles as fast as that for floats.
bool comparesPairs(const Target &target) { return target.has(WaveShift) && target.has(RowShare); }

/// gfx9 swaps halves of 8 lanes in two moves, unless it mirrors them. Waves of 64 with `permlane64` mirror rows as part
/// of what follows, and swap them by another move.
llvm::ArrayRef<Turn> getTurns(const Target &target) {
  static constexpr Turn ofHalfRows[] = {{/*turned=*/3, /*by=*/4, /*firstRun=*/8, /*lastRun=*/32}, {7, 8, 8, 8}};
  static constexpr Turn ofHalves[] = {{16, 32, 32, 32}};
  if (target.has(WaveShift))
    return ofHalfRows;
  if (target.has(PermLane64) && target.subgroupSize == 64)
    return ofHalves;
  return {};
}

/// Found by a search backwards from the order of numbers: each step takes one move, as with the turns, and all steps
/// together compare by 10 sums of bits, of which the last merge needs 6 anyhow. No fewer do.
llvm::ArrayRef<int32_t> getSums(const Target &target) {
  static constexpr int32_t sums[] = {2, 1, 4, 8, 16, 32, // at first
                                     2,                  // merges to 2 lanes
                                     1, 2,               // 4
                                     4, 13, 11,          // 8
                                     8, 4, 6, 3,         // 16
                                     16, 8, 4, 6, 3,     // 32
                                     32, 16, 8, 4, 2, 1};
  return target.has(WaveShift) ? llvm::ArrayRef(sums) : llvm::ArrayRef<int32_t>();
}

/// Expands the ops of one kernel.
class Expander {
public:
  Expander(KernelOp kernel, const Target &target, bool remarks)
      : kernel(kernel), target(target), remarks(remarks),
        shape{int32_t(kernel.getNumThreads()), int32_t(target.subgroupSize), getReadLanes(target),
              getRowLanes(target), comparesPairs(target), target.has(DppCarry),
              target.has(ReduxSync) && target.subgroupSize == 32,
              target.has(GroupArithmetic), target.getBackend() == Backend::CPU,
              target.getBackend() == Backend::NVPTX, getTurns(target), getSums(target)},
        builder(kernel.getContext()), staging(kernel, target) {}

  /// Diagnoses what this kernel cannot have on the target; changes nothing.
  LogicalResult check();
  LogicalResult expand() {
    if (failed(expandBlock(kernel.getBodyBlock())))
      return failure();
    staging.finish();
    return success();
  }

private:
  LogicalResult checkTile(Operation *op, int32_t tile);
  LogicalResult checkWideTile(Operation *op, int32_t tile);

  LogicalResult expandBlock(Block &block);
  LogicalResult expandRegions(Operation *op);
  LogicalResult expandWide(Operation *op, int32_t lanes);
  LogicalResult expandOfBlock(Operation *op);
  Values expandOp(Operation *op);

  Value expandShuffle(ShuffleOp op);
  Value expandBroadcast(BroadcastOp op);
  Value expandXor(ShuffleXorOp op);
  template <typename Op> Value expandShift(Op op);
  Value expandRotate(RotateOp op);
  Value expandElect(ElectOp op);
  Value expandGlobalThreadId(GlobalThreadIdOp op);
  Value expandThreadId(Location loc, Dim dim, Type type);

  int32_t getLanes(std::optional<int32_t> tile) { return tile ? *tile : shape.subgroupSize; }
  std::optional<int32_t> getClause(int32_t lanes) { return shape.getTileClause(lanes); }
  LaneBuilder lanesAt(Location loc) { return LaneBuilder(builder, loc, shape); }
  Value constant(Location loc, Type type, int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
  }
  Value laneId(Location loc) { return LaneIdOp::create(builder, loc, builder.getI32Type()); }

  KernelOp kernel;
  const Target &target;
  bool remarks;
  BlockShape shape;
  OpBuilder builder;
  Staging staging;
  std::optional<UniformityAnalysis> uniformity; ///< for the checks; most kernels need none
};

} // namespace

static std::optional<int32_t> getTile(Operation *op) {
  auto tile = op->getAttrOfType<IntegerAttr>("tile");
  return tile ? std::optional<int32_t>(tile.getInt()) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

LogicalResult Expander::checkTile(Operation *op, int32_t tile) {
  if (tile > shape.threads)
    return op->emitOpError() << "tile of " << tile << " lanes exceeds the block of " << shape.threads << " threads";
  if (shape.threads % tile)
    return op->emitOpError() << "tile of " << tile << " lanes does not divide the block of " << shape.threads
                             << " threads";
  return tile > shape.subgroupSize ? checkWideTile(op, tile) : success();
}

/// Shared memory carries a wide tile where all threads of the block pass its barriers.
LogicalResult Expander::checkWideTile(Operation *op, int32_t tile) {
  if (isa<ElectOp>(op) || isLaneMask(op))
    return success();
  UniformityAnalysis::Control control;
  if (op->getParentOp() != kernel) {
    if (!uniformity)
      uniformity.emplace(kernel, shape.subgroupSize);
    control = uniformity->getControl(op, Scope::block);
  }
  if (hasWideTileExpansion(op) && control.divergence == Divergence::Uniform)
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError();
  diagnostic << "tile of " << tile << " lanes exceeds the subgroup of " << shape.subgroupSize << " on "
             << target.str();
  if (control.branch)
    diagnostic.attachNote(control.condition ? control.condition.getLoc() : control.branch->getLoc())
        << "shared memory could carry it if the whole block took '" << control.branch->getName()
        << "' alike, but this may differ between its threads";
  return diagnostic;
}

LogicalResult Expander::check() {
  bool isLegal = true;
  kernel.walk([&](Operation *op) {
    std::optional<int32_t> tile = getTile(op);
    if (tile && failed(checkTile(op, *tile)))
      isLegal = false;
    auto shuffle = dyn_cast<ShuffleXorOp>(op);
    if (!shuffle || tile)
      return;
    if (std::optional<int32_t> mask = shuffle.getConstantLane(); mask && *mask >= shape.subgroupSize) {
      op->emitOpError() << "mask " << *mask << " leaves the subgroup of " << shape.subgroupSize << " lanes on "
                        << target.str();
      isLegal = false;
    }
  });
  return success(isLegal);
}

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

Value Expander::expandBroadcast(BroadcastOp op) {
  int32_t lanes = getLanes(op.getTile());
  if (lanes == 1)
    return op.getValue();
  if (std::optional<int32_t> lane = op.getConstantLane())
    return BroadcastOp::create(builder, op.getLoc(), op.getValue(), *lane & (lanes - 1), getClause(lanes));
  return BroadcastOp::create(builder, op.getLoc(), op.getValue(), op.getLane(), getClause(lanes));
}

Value Expander::expandShuffle(ShuffleOp op) {
  if (op.getMembers())
    return {};
  int32_t lanes = getLanes(op.getTile());
  if (op.getMembers()) {
    if (op.getLane())
      return {};
    Value lane = constant(op.getLoc(), builder.getI32Type(), *op.getStaticLane() & (lanes - 1));
    return ShuffleOp::create(builder, op.getLoc(), op.getType(), op.getValue(), lane, op.getMembers(), IntegerAttr(),
                             IntegerAttr());
  }
  if (lanes == 1)
    return op.getValue();
  if (std::optional<int32_t> lane = op.getConstantLane())
    return BroadcastOp::create(builder, op.getLoc(), op.getValue(), *lane & (lanes - 1), getClause(lanes));
  return ShuffleOp::create(builder, op.getLoc(), op.getValue(), op.getLane(), getClause(lanes));
}

Value Expander::expandXor(ShuffleXorOp op) {
  int32_t lanes = getLanes(op.getTile());
  std::optional<int32_t> mask = op.getConstantLane();
  if (lanes == 1 || mask == 0)
    return op.getValue();
  if (mask)
    return ShuffleXorOp::create(builder, op.getLoc(), op.getValue(), *mask, std::nullopt);
  return ShuffleXorOp::create(builder, op.getLoc(), op.getValue(), op.getLane(), getClause(lanes));
}

/// shuffle_up and shuffle_down: past the edge, where poison is allowed, a lane's own value serves as well.
template <typename Op> Value Expander::expandShift(Op op) {
  int32_t lanes = getLanes(op.getTile());
  std::optional<int32_t> offset = op.getConstantLane();
  if (lanes == 1 || offset == 0 || offset >= lanes)
    return op.getValue();
  if (offset)
    return Op::create(builder, op.getLoc(), op.getValue(), *offset, getClause(lanes), op.getPoisonEdge());
  return Op::create(builder, op.getLoc(), op.getValue(), op.getLane(), getClause(lanes), op.getPoisonEdge());
}

/// A rotation by half the lanes is an exchange.
Value Expander::expandRotate(RotateOp op) {
  Location loc = op.getLoc();
  int32_t lanes = getLanes(op.getTile());
  std::optional<int32_t> offset = op.getConstantLane();
  if (offset)
    offset = *offset & (lanes - 1);
  if (lanes == 1 || offset == 0)
    return op.getValue();
  if (offset == lanes / 2)
    return ShuffleXorOp::create(builder, loc, op.getValue(), *offset, std::nullopt);
  Value distance = offset ? constant(loc, builder.getI32Type(), *offset) : op.getLane();
  Value source = arith::AddIOp::create(builder, loc, laneId(loc), distance);
  return ShuffleOp::create(builder, loc, op.getValue(), source, getClause(lanes));
}

//===----------------------------------------------------------------------===//
// Index ops
//===----------------------------------------------------------------------===//

Value Expander::expandElect(ElectOp op) {
  Location loc = op.getLoc();
  int32_t lanes = getLanes(op.getTile());
  if (lanes == 1)
    return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
  Type i32 = builder.getI32Type();
  Value lane = lanes > shape.subgroupSize ? ThreadIndexOp::create(builder, loc, i32).getResult() : laneId(loc);
  if (lanes != shape.subgroupSize)
    lane = arith::AndIOp::create(builder, loc, lane, constant(loc, i32, lanes - 1));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, lane, constant(loc, i32, 0));
}

Value Expander::expandThreadId(Location loc, Dim dim, Type type) {
  if (kernel.getBlockDim(unsigned(dim)) == 1)
    return constant(loc, type, 0);
  return ThreadIdOp::create(builder, loc, type, dim);
}

Value Expander::expandGlobalThreadId(GlobalThreadIdOp op) {
  Location loc = op.getLoc();
  Type type = op.getType();
  Value block = BlockIdOp::create(builder, loc, type, op.getDim());
  int64_t extent = kernel.getBlockDim(unsigned(op.getDim()));
  if (extent == 1)
    return block;
  Value start = arith::MulIOp::create(builder, loc, block, constant(loc, type, extent));
  return arith::AddIOp::create(builder, loc, start, expandThreadId(loc, op.getDim(), type));
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

/// The values that take the place of `op`'s results, or none where the op stays as it is.
Values Expander::expandOp(Operation *op) {
  Location loc = op->getLoc();
  return TypeSwitch<Operation *, Values>(op)
      .Case([&](ReduceOp reduce) {
        return buildReduce(lanesAt(loc), Combiner(reduce), reduce.getValues(), getLanes(reduce.getTile()));
      })
      .Case([&](ReduceAllOp reduce) {
        return buildReduceAll(lanesAt(loc), Combiner(reduce), reduce.getValues(), getLanes(reduce.getTile()));
      })
      .Case([&](InclusiveScanOp scan) {
        return buildInclusiveScan(lanesAt(loc), Combiner(scan), scan.getValues(), getLanes(scan.getTile()));
      })
      .Case([&](ExclusiveScanOp scan) {
        return buildExclusiveScan(lanesAt(loc), Combiner(scan), scan.getValues(), getLanes(scan.getTile()));
      })
      .Case([&](SegmentedScanOp scan) {
        return buildSegmentedScan(lanesAt(loc), Combiner(scan), scan.getValues(), scan.getHead(), scan.getExclusive(),
                                  getLanes(scan.getTile()));
      })
      .Case([&](SegmentedReduceAllOp reduce) {
        return buildSegmentedReduceAll(lanesAt(loc), Combiner(reduce), reduce.getValues(), reduce.getHead(),
                                       getLanes(reduce.getTile()));
      })
      .Case([&](BroadcastFirstOp broadcast) -> Value {
        int32_t lanes = getLanes(broadcast.getTile());
        if (lanes == 1)
          return broadcast.getValue();
        return BroadcastOp::create(builder, loc, broadcast.getValue(), int32_t(0), getClause(lanes));
      })
      .Case([&](BroadcastOp broadcast) { return expandBroadcast(broadcast); })
      .Case([&](ShuffleOp shuffle) { return expandShuffle(shuffle); })
      .Case([&](ShuffleXorOp shuffle) { return expandXor(shuffle); })
      .Case<ShuffleUpOp, ShuffleDownOp>([&](auto shuffle) { return expandShift(shuffle); })
      .Case([&](AllOp vote) {
        return buildVote(lanesAt(loc), /*isAll=*/true, vote.getPredicate(), getLanes(vote.getTile()));
      })
      .Case([&](AnyOp vote) {
        return buildVote(lanesAt(loc), /*isAll=*/false, vote.getPredicate(), getLanes(vote.getTile()));
      })
      .Case([&](RotateOp rotate) { return expandRotate(rotate); })
      .Case([&](BallotOp ballot) -> Value {
        if (!ballot.getTile())
          return {};
        return buildBallot(lanesAt(loc), ballot.getPredicate(), *ballot.getTile());
      })
      .Case([&](BallotFirstNOp ballot) { return buildBallotFirstN(lanesAt(loc), ballot); })
      .Case([&](AllEqualOp equal) { return buildAllEqual(lanesAt(loc), target, equal, getLanes(equal.getTile())); })
      .Case([&](MatchAnyOp match) { return buildMatchAny(lanesAt(loc), target, match, getLanes(match.getTile())); })
      .Case([&](MatchAllOp match) { return buildMatchAll(lanesAt(loc), target, match, getLanes(match.getTile())); })
      .Case<BitonicSortOp, BitonicSortKVOp>([&](auto sort) {
        return buildSort(lanesAt(loc), SortOrder(sort), getLanes(sort.getTile()));
      })
      .Case<LaneMaskLtOp, LaneMaskLeOp, LaneMaskEqOp, LaneMaskGeOp, LaneMaskGtOp>(
          [&](auto mask) { return buildLaneMask(lanesAt(loc), target, mask, getLanes(mask.getTile())); })
      .Case([&](SubgroupIdOp id) -> Value {
        Value thread = ThreadIndexOp::create(builder, loc, id.getType());
        Value bits = constant(loc, id.getType(), llvm::Log2_32(shape.subgroupSize));
        return arith::ShRUIOp::create(builder, loc, thread, bits);
      })
      .Case([&](NumSubgroupsOp num) {
        return constant(loc, num.getType(), llvm::divideCeil(shape.threads, shape.subgroupSize));
      })
      .Case([&](Log2SizeOp size) { return constant(loc, size.getType(), llvm::Log2_32(shape.subgroupSize)); })
      .Case([&](ElectOp elect) { return expandElect(elect); })
      .Case([&](SubgroupSizeOp size) { return constant(loc, size.getType(), shape.subgroupSize); })
      .Case([&](BlockDimOp dim) {
        return constant(loc, dim.getType(), kernel.getBlockDim(unsigned(dim.getDim())));
      })
      .Case([&](GlobalThreadIdOp id) { return expandGlobalThreadId(id); })
      .Case([&](ThreadIdOp id) {
        return kernel.getBlockDim(unsigned(id.getDim())) == 1 ? constant(loc, id.getType(), 0) : Value();
      })
      .Default([](Operation *) { return Values(); });
}

LogicalResult Expander::expandWide(Operation *op, int32_t lanes) {
  int64_t bytesBefore = staging.bytes;
  unsigned syncsBefore = staging.numSyncs;
  Values values = expandWideTile(op, lanes, builder, shape, staging);
  if (values.empty())
    return failure();
  if (remarks)
    op->emitRemark() << "'" << op->getName() << "' op tile of " << lanes << " lanes exceeds the subgroup of "
                     << shape.subgroupSize << " on " << target.str()
                     << ": carried out through shared memory, barriers: " << staging.numSyncs - syncsBefore
                     << ", further bytes: " << staging.bytes - bytesBefore;
  op->replaceAllUsesWith(values);
  op->erase();
  return success();
}

LogicalResult Expander::expandOfBlock(Operation *op) {
  int64_t bytesBefore = staging.bytes;
  unsigned syncsBefore = staging.numSyncs;
  Operation *before = op->getPrevNode();
  Values values = expandBlockOp(op, lanesAt(op->getLoc()), staging);
  if (values.empty())
    return failure();
  if (remarks && deservesRemark(op)) {
    Operation *first = before ? before->getNextNode() : &op->getBlock()->front();
    op->emitRemark() << "'" << op->getName() << "' op carried out by " << describeExpansion(first, op, shape)
                     << ", barriers: " << staging.numSyncs - syncsBefore
                     << ", further bytes: " << staging.bytes - bytesBefore;
  }
  op->replaceAllUsesWith(values);
  op->erase();
  return success();
}

/// Expands what `op` holds, keeping track of which staging arrays may be unread when control leaves it.
LogicalResult Expander::expandRegions(Operation *op) {
  Staging::State before = staging.state;
  size_t usesBefore = staging.getNumUses();
  if (auto ifOp = dyn_cast<scf::IfOp>(op)) {
    if (failed(expandBlock(*ifOp.thenBlock())))
      return failure();
    std::swap(before, staging.state);
    if (ifOp.elseBlock() && failed(expandBlock(*ifOp.elseBlock())))
      return failure();
    staging.merge(before);
    return success();
  }
  // The next round of a loop meets the arrays as the last one left them.
  SmallVector<Staging::State> behind;
  for (Region &region : op->getRegions())
    for (Block &block : region) {
      staging.enterLoop();
      if (failed(expandBlock(block)))
        return failure();
      behind.push_back(staging.getStateBehind(usesBefore));
    }
  staging.state = before;
  if (staging.getNumUses() != usesBefore)
    for (const Staging::State &state : behind)
      staging.merge(state);
  return success();
}

LogicalResult Expander::expandBlock(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (op.getNumRegions() && !isa<QDDialect>(op.getDialect())) {
      if (failed(expandRegions(&op)))
        return failure();
      continue;
    }
    if (!isa<QDDialect>(op.getDialect()))
      continue;
    // A `combine` region holds no collective op.
    for (Region &region : op.getRegions())
      for (Block &combiner : region)
        if (failed(expandBlock(combiner)))
          return failure();
    if (isa<BlockSyncOp, BlockSyncSharedOp>(op) || keepsBlockVote(&op, shape, target))
      staging.noteSync();
    builder.setInsertionPoint(&op);
    std::optional<int32_t> tile = getTile(&op);
    if (tile && *tile > shape.subgroupSize && hasWideTileExpansion(&op)) {
      if (failed(expandWide(&op, *tile)))
        return failure();
      continue;
    }
    if (hasBlockExpansion(&op, shape, target)) {
      if (failed(expandOfBlock(&op)))
        return failure();
      continue;
    }
    Operation *before = op.getPrevNode();
    Values values = expandOp(&op);
    if (values.empty())
      continue;
    if (remarks && deservesRemark(&op)) {
      Operation *first = before ? before->getNextNode() : &block.front();
      op.emitRemark() << "'" << op.getName() << "' op carried out by " << describeExpansion(first, &op, shape);
    }
    op.replaceAllUsesWith(values);
    op.erase();
  }
  return success();
}

namespace {
class ExpandCollectivesPass : public TargetPass<ExpandCollectivesPass> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandCollectivesPass)

  ExpandCollectivesPass(const Target &target, bool wantsRemarks) : TargetPass(target) { remarks = wantsRemarks; }
  ExpandCollectivesPass(const ExpandCollectivesPass &other) : TargetPass(other) {}

  StringRef getArgument() const override { return "expand-collectives"; }
  StringRef getDescription() const override { return "Expand subgroup and block ops to those that every target has"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
  }

  void runOnModule() {
    for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
      Expander expander(kernel, target, remarks);
      if (failed(expander.check()) || failed(expander.expand()))
        signalPassFailure();
    }
  }

private:
  Option<bool> remarks{*this, "remarks", llvm::cl::desc("Say how ops are carried out")};
};
} // namespace

std::unique_ptr<Pass> createExpandCollectivesPass(const Target &target, bool remarks) {
  return std::make_unique<ExpandCollectivesPass>(target, remarks);
}

} // namespace qd
