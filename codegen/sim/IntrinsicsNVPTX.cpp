//===----------------------------------------------------------------------===//
// Intrinsics of NVPTX other than warp collectives: special registers, barriers
// of the block, and single-lane arithmetic.
//===----------------------------------------------------------------------===//
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "codegen/sim/Compile.h"
#include "codegen/sim/Wave.h"
#include "llvm/ADT/bit.h"

using namespace llvm;

namespace qd::sim {

namespace {

//===----------------------------------------------------------------------===//
// Special registers
//===----------------------------------------------------------------------===//

enum Register : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NWarpId,
  WarpSize,
  MaskEq,
  MaskLe,
  MaskLt,
  MaskGe,
  MaskGt,
  Clock,
  ActiveMask
};

void readRegister(Wave &w, const Op &op) {
  uint64_t *out = w.out(op.dst);
  const Launch &launch = w.launch;
  w.each([&](unsigned l) {
    uint64_t bit = uint64_t(1) << l;
    switch (Register(op.sub)) {
    case TidX:
    case TidY:
    case TidZ:
      out[l] = w.tid[op.sub - TidX][l];
      break;
    case NtidX:
    case NtidY:
    case NtidZ:
      out[l] = launch.blockSize[op.sub - NtidX];
      break;
    case CtaidX:
    case CtaidY:
    case CtaidZ:
      out[l] = w.block.id[op.sub - CtaidX];
      break;
    case NctaidX:
    case NctaidY:
    case NctaidZ:
      out[l] = launch.grid[op.sub - NctaidX];
      break;
    case LaneId:
      out[l] = l;
      break;
    case WarpId:
      out[l] = w.index;
      break;
    case NWarpId:
      out[l] = w.block.waves.size();
      break;
    case WarpSize:
      out[l] = w.width;
      break;
    case MaskEq:
      out[l] = bit;
      break;
    case MaskLe:
      out[l] = bit | (bit - 1);
      break;
    case MaskLt:
      out[l] = bit - 1;
      break;
    case MaskGe:
      out[l] = w.full & ~(bit - 1);
      break;
    case MaskGt:
      out[l] = w.full & ~(bit | (bit - 1));
      break;
    case Clock:
      out[l] = launch.executed & lowBits(op.bits);
      break;
    case ActiveMask:
      out[l] = w.mask;
      break;
    }
  });
  w.setPoison(op.dst, 0);
}

std::optional<Register> specialRegister(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::nvvm_read_ptx_sreg_tid_x:
    return TidX;
  case Intrinsic::nvvm_read_ptx_sreg_tid_y:
    return TidY;
  case Intrinsic::nvvm_read_ptx_sreg_tid_z:
    return TidZ;
  case Intrinsic::nvvm_read_ptx_sreg_ntid_x:
    return NtidX;
  case Intrinsic::nvvm_read_ptx_sreg_ntid_y:
    return NtidY;
  case Intrinsic::nvvm_read_ptx_sreg_ntid_z:
    return NtidZ;
  case Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
    return CtaidX;
  case Intrinsic::nvvm_read_ptx_sreg_ctaid_y:
    return CtaidY;
  case Intrinsic::nvvm_read_ptx_sreg_ctaid_z:
    return CtaidZ;
  case Intrinsic::nvvm_read_ptx_sreg_nctaid_x:
    return NctaidX;
  case Intrinsic::nvvm_read_ptx_sreg_nctaid_y:
    return NctaidY;
  case Intrinsic::nvvm_read_ptx_sreg_nctaid_z:
    return NctaidZ;
  case Intrinsic::nvvm_read_ptx_sreg_laneid:
    return LaneId;
  case Intrinsic::nvvm_read_ptx_sreg_warpid:
    return WarpId;
  case Intrinsic::nvvm_read_ptx_sreg_nwarpid:
    return NWarpId;
  case Intrinsic::nvvm_read_ptx_sreg_warpsize:
    return WarpSize;
  case Intrinsic::nvvm_read_ptx_sreg_lanemask_eq:
    return MaskEq;
  case Intrinsic::nvvm_read_ptx_sreg_lanemask_le:
    return MaskLe;
  case Intrinsic::nvvm_read_ptx_sreg_lanemask_lt:
    return MaskLt;
  case Intrinsic::nvvm_read_ptx_sreg_lanemask_ge:
    return MaskGe;
  case Intrinsic::nvvm_read_ptx_sreg_lanemask_gt:
    return MaskGt;
  case Intrinsic::nvvm_read_ptx_sreg_clock:
  case Intrinsic::nvvm_read_ptx_sreg_clock64:
  case Intrinsic::nvvm_read_ptx_sreg_globaltimer:
    return Clock;
  case Intrinsic::nvvm_activemask:
    return ActiveMask;
  default:
    return std::nullopt;
  }
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

/// a: barrier, b: count (0 for all), c: predicate; sub: 0 none, 1 popc, 2 and,
/// 3 or.
void barrier(Wave &w, const Op &op) {
  if (!w.rendezvousAll(op) || !w.needsValue(op, op.a, "a barrier number") ||
      !w.needsValue(op, op.b, "a thread count"))
    return;
  unsigned lane = countr_zero(w.mask);
  w.barrierId = w.val(op.a)[lane];
  w.barrierCount = w.val(op.b)[lane];
  if (w.barrierId >= w.block.arrivedOnly.size())
    return w.fail(op, lane, "barrier " + Twine(w.barrierId) + " does not exist, expected 0 to 15");
  if (w.barrierCount % w.width)
    return w.fail(op, lane,
                  "barrier of " + Twine(w.barrierCount) + " threads, expected a multiple of the warp");
  w.barrierOp = &op;
  w.barrierVotes = 0;
  if (op.sub) {
    if (!w.needsValue(op, op.c, "a barrier's predicate"))
      return;
    w.each([&](unsigned l) { w.barrierVotes |= (w.val(op.c)[l] & 1) << l; });
  }
  w.state = Wave::AtBarrier;
  w.stop = true;
}

void barrierArrive(Wave &w, const Op &op) {
  if (!w.rendezvousAll(op) || !w.needsValue(op, op.a, "a barrier number"))
    return;
  unsigned lane = countr_zero(w.mask), id = w.val(op.a)[lane];
  if (id >= w.block.arrivedOnly.size())
    return w.fail(op, lane, "barrier " + Twine(id) + " does not exist, expected 0 to 15");
  w.block.arrivedOnly[id] += w.width;
}

struct BarrierForm {
  uint8_t vote; // as barrier's sub
  bool counts;
};

std::optional<BarrierForm> barrierForm(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::nvvm_barrier_cta_sync_aligned_all:
  case Intrinsic::nvvm_barrier_cta_sync_all:
    return BarrierForm{0, false};
  case Intrinsic::nvvm_barrier_cta_sync_aligned_count:
  case Intrinsic::nvvm_barrier_cta_sync_count:
    return BarrierForm{0, true};
  case Intrinsic::nvvm_barrier_cta_red_popc_aligned_all:
  case Intrinsic::nvvm_barrier_cta_red_popc_all:
    return BarrierForm{1, false};
  case Intrinsic::nvvm_barrier_cta_red_popc_aligned_count:
  case Intrinsic::nvvm_barrier_cta_red_popc_count:
    return BarrierForm{1, true};
  case Intrinsic::nvvm_barrier_cta_red_and_aligned_all:
  case Intrinsic::nvvm_barrier_cta_red_and_all:
    return BarrierForm{2, false};
  case Intrinsic::nvvm_barrier_cta_red_and_aligned_count:
  case Intrinsic::nvvm_barrier_cta_red_and_count:
    return BarrierForm{2, true};
  case Intrinsic::nvvm_barrier_cta_red_or_aligned_all:
  case Intrinsic::nvvm_barrier_cta_red_or_all:
    return BarrierForm{3, false};
  case Intrinsic::nvvm_barrier_cta_red_or_aligned_count:
  case Intrinsic::nvvm_barrier_cta_red_or_count:
    return BarrierForm{3, true};
  default:
    return std::nullopt;
  }
}

/// What plain float intrinsics of NVVM do, on one or two operands.
std::optional<FloatFunction> nvFunction(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::nvvm_ex2_approx:
  case Intrinsic::nvvm_ex2_approx_ftz:
    return FloatFunction::Exp2;
  case Intrinsic::nvvm_lg2_approx_f:
  case Intrinsic::nvvm_lg2_approx_ftz_f:
    return FloatFunction::Log2;
  case Intrinsic::nvvm_sin_approx_f:
  case Intrinsic::nvvm_sin_approx_ftz_f:
    return FloatFunction::Sin;
  case Intrinsic::nvvm_cos_approx_f:
  case Intrinsic::nvvm_cos_approx_ftz_f:
    return FloatFunction::Cos;
  case Intrinsic::nvvm_sqrt_approx_f:
  case Intrinsic::nvvm_sqrt_approx_ftz_f:
  case Intrinsic::nvvm_sqrt_f:
  case Intrinsic::nvvm_sqrt_rn_f:
  case Intrinsic::nvvm_sqrt_rn_d:
    return FloatFunction::Sqrt;
  case Intrinsic::nvvm_rsqrt_approx_f:
  case Intrinsic::nvvm_rsqrt_approx_ftz_f:
  case Intrinsic::nvvm_rsqrt_approx_d:
    return FloatFunction::ReciprocalSqrt;
  case Intrinsic::nvvm_rcp_rn_f:
  case Intrinsic::nvvm_rcp_rn_d:
  case Intrinsic::nvvm_rcp_approx_ftz_f:
    return FloatFunction::Reciprocal;
  default:
    return std::nullopt;
  }
}

} // namespace

Expected<bool> FunctionCompiler::compileNVPTX(const CallBase &call) {
  auto collective = compileWarp(call);
  if (!collective || *collective)
    return collective;
  auto copy = compileAsyncCopy(call);
  if (!copy || *copy)
    return copy;
  Intrinsic::ID id = call.getIntrinsicID();
  auto operand = [&](unsigned i) { return ref(call.getArgOperand(i)); };
  if (auto reg = specialRegister(id)) {
    Op &op = emit(readRegister, define(call));
    op.sub = *reg;
    op.bits = scalarBits(call.getType());
    return true;
  }
  if (auto form = barrierForm(id)) {
    Ref count = form->counts ? operand(1) : word(0);
    Ref predicate = form->vote ? operand(form->counts ? 2 : 1) : word(0);
    emit(barrier, form->vote ? define(call) : 0, operand(0), count, predicate).sub = form->vote;
    return true;
  }
  if (auto function = nvFunction(id)) {
    auto kind = format(call.getType());
    if (!kind)
      return false;
    Ref dst = define(call);
    for (unsigned e = 0, count = elements(call.getType()); e < count; ++e) {
      Op &op = emit(floatUnaryHandler(), dst + e, ref(call.getArgOperand(0), e));
      op.sub = unsigned(*function);
      op.bits2 = unsigned(*kind);
    }
    return true;
  }
  switch (id) {
  case Intrinsic::nvvm_barrier_cta_arrive_aligned_count:
  case Intrinsic::nvvm_barrier_cta_arrive_count:
    emit(barrierArrive, 0, operand(0));
    return true;
  case Intrinsic::nvvm_membar_cta:
  case Intrinsic::nvvm_membar_gl:
  case Intrinsic::nvvm_membar_sys:
  case Intrinsic::nvvm_nanosleep:
    return true;
  case Intrinsic::nvvm_exit:
    emit(
        +[](Wave &w, const Op &) { w.exitLanes(); }, 0);
    return true;
  default:
    return false;
  }
}

} // namespace qd::sim
