//===----------------------------------------------------------------------===//
// Warp collectives of NVPTX as the PTX ISA defines them: shfl.sync, vote.sync,
// match.sync, redux.sync, elect.sync and bar.warp.sync. Each waits until all
// lanes that its member mask names have arrived.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Compile.h"
#include "codegen/sim/Wave.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;

namespace qd::sim {

namespace {

//===----------------------------------------------------------------------===//
// Collectives. `c` (or the first arg) is the member mask.
//===----------------------------------------------------------------------===//

enum Shuffle : uint8_t { Up, Down, Bfly, Idx };

/// args: mask, value, b (lane or distance), c (clamp and segment). dst, and in
/// its second word the predicate where flags is set.
void shuffle(Wave &w, const Op &op) {
  Ref maskRef = w.arg(op, 0), valueRef = w.arg(op, 1), bRef = w.arg(op, 2), cRef = w.arg(op, 3);
  if (!w.rendezvous(op, maskRef))
    return;
  const uint64_t *members = w.val(maskRef), *value = w.val(valueRef), *b = w.val(bRef), *c = w.val(cRef);
  std::vector<uint64_t> result(w.width), inRange(w.width);
  uint64_t poison = 0, controlPoison = w.poisonOf(bRef) | w.poisonOf(cRef);
  w.each([&](unsigned l) {
    int lane = l, bval = b[l] & 0x1f, cval = c[l] & 0x1f, segment = c[l] >> 8 & 0x1f;
    int maxLane = (lane & segment) | (cval & ~segment), minLane = lane & segment, j = 0;
    bool in = false;
    switch (Shuffle(op.sub)) {
    case Up:
      j = lane - bval;
      in = j >= maxLane;
      break;
    case Down:
      j = lane + bval;
      in = j <= maxLane;
      break;
    case Bfly:
      j = lane ^ bval;
      in = j <= maxLane;
      break;
    case Idx:
      j = minLane | (bval & ~segment);
      in = j <= maxLane;
      break;
    }
    if (!in)
      j = lane;
    result[l] = value[j];
    inRange[l] = in;
    // A lane that is not among the members delivers nothing defined.
    bool defined = (members[l] & w.mask) >> j & 1;
    poison |= uint64_t(!defined || (w.poisonOf(valueRef) >> j & 1)) << l;
  });
  uint64_t *out = w.out(op.dst);
  w.each([&](unsigned l) { out[l] = result[l]; });
  w.setPoison(op.dst, poison | controlPoison);
  if (op.flags) {
    uint64_t *predicate = w.out(op.dst + 1);
    w.each([&](unsigned l) { predicate[l] = inRange[l]; });
    w.setPoison(op.dst + 1, controlPoison);
  }
}

/// Calls f(lanes of the mask that take part, one of them) once for each set of
/// lanes that name the same mask.
template <typename F> void eachGroup(Wave &w, Ref maskRef, F f) {
  const uint64_t *members = w.val(maskRef);
  for (uint64_t rest = w.mask; rest;) {
    unsigned first = countr_zero(rest);
    uint64_t group = members[first] & w.mask;
    f(group);
    rest &= ~group;
  }
}

enum Vote : uint8_t { VoteAll, VoteAny, VoteUni, VoteBallot };

/// a: mask, b: predicate.
void vote(Wave &w, const Op &op) {
  if (!w.rendezvous(op, op.a))
    return;
  const uint64_t *predicate = w.val(op.b);
  uint64_t *out = w.out(op.dst), poison = 0;
  uint64_t trueLanes = 0;
  w.each([&](unsigned l) { trueLanes |= (predicate[l] & 1) << l; });
  eachGroup(w, op.a, [&](uint64_t group) {
    uint64_t yes = trueLanes & group, result = 0;
    switch (Vote(op.sub)) {
    case VoteAll:
      result = yes == group;
      break;
    case VoteAny:
      result = yes != 0;
      break;
    case VoteUni:
      result = !yes || yes == group;
      break;
    case VoteBallot:
      result = yes;
      break;
    }
    if (w.poisonOf(op.b) & group)
      poison |= group;
    w.eachOf(group, [&](unsigned l) { out[l] = result; });
  });
  w.setPoison(op.dst, poison);
}

/// a: mask, b: value. sub 1: all, with the predicate in the second word.
void match(Wave &w, const Op &op) {
  if (!w.rendezvous(op, op.a))
    return;
  const uint64_t *value = w.val(op.b);
  uint64_t *out = w.out(op.dst), poison = 0;
  eachGroup(w, op.a, [&](uint64_t group) {
    if (w.poisonOf(op.b) & group)
      poison |= group;
    std::vector<uint64_t> same(w.width);
    w.eachOf(group, [&](unsigned l) {
      w.eachOf(group, [&](unsigned other) { same[l] |= uint64_t(value[other] == value[l]) << other; });
    });
    w.eachOf(group, [&](unsigned l) {
      out[l] = op.sub ? (same[l] == group ? group : 0) : same[l];
      if (op.sub)
        w.out(op.dst + 1)[l] = same[l] == group;
    });
  });
  w.setPoison(op.dst, poison);
  if (op.sub)
    w.setPoison(op.dst + 1, poison);
}

enum Redux : uint8_t {
  ReduxAdd,
  ReduxMin,
  ReduxMax,
  ReduxUMin,
  ReduxUMax,
  ReduxAnd,
  ReduxOr,
  ReduxXor,
  ReduxFMin,
  ReduxFMax
};
enum : uint32_t { ReduxAbs = 1, ReduxNaN = 2 };

/// a: mask, b: value.
void redux(Wave &w, const Op &op) {
  if (!w.rendezvous(op, op.a))
    return;
  const uint64_t *value = w.val(op.b);
  uint64_t *out = w.out(op.dst), poison = 0;
  auto combine = [&](uint64_t a, uint64_t b) -> uint64_t {
    int32_t sa = int32_t(a), sb = int32_t(b);
    switch (Redux(op.sub)) {
    case ReduxAdd:
      return (a + b) & 0xffffffff;
    case ReduxMin:
      return sa < sb ? a : b;
    case ReduxMax:
      return sa > sb ? a : b;
    case ReduxUMin:
      return std::min(a, b);
    case ReduxUMax:
      return std::max(a, b);
    case ReduxAnd:
      return a & b;
    case ReduxOr:
      return a | b;
    case ReduxXor:
      return a ^ b;
    case ReduxFMin:
      return floatBinary(Format::Float, op.flags & ReduxNaN ? FloatOp::Minimum : FloatOp::MinNum, a, b);
    case ReduxFMax:
      return floatBinary(Format::Float, op.flags & ReduxNaN ? FloatOp::Maximum : FloatOp::MaxNum, a, b);
    }
    return a;
  };
  eachGroup(w, op.a, [&](uint64_t group) {
    if (w.poisonOf(op.b) & group)
      poison |= group;
    uint64_t keep = op.flags & ReduxAbs ? 0x7fffffff : ~uint64_t(0);
    uint64_t result = value[countr_zero(group)] & keep;
    w.eachOf(group & (group - 1), [&](unsigned l) { result = combine(result, value[l] & keep); });
    w.eachOf(group, [&](unsigned l) { out[l] = result; });
  });
  w.setPoison(op.dst, poison);
}

/// a: mask. The leader, and whether the lane is it.
void elect(Wave &w, const Op &op) {
  if (!w.rendezvous(op, op.a))
    return;
  eachGroup(w, op.a, [&](uint64_t group) {
    unsigned leader = countr_zero(group);
    w.eachOf(group, [&](unsigned l) {
      w.out(op.dst)[l] = leader;
      w.out(op.dst + 1)[l] = l == leader;
    });
  });
  w.setPoison(op.dst, 0);
  w.setPoison(op.dst + 1, 0);
}

void syncWarp(Wave &w, const Op &op) { w.rendezvous(op, op.a); }

struct ShuffleForm {
  Shuffle mode;
  bool predicate;
};

std::optional<ShuffleForm> shuffleForm(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::nvvm_shfl_sync_up_i32:
  case Intrinsic::nvvm_shfl_sync_up_f32:
    return ShuffleForm{Up, false};
  case Intrinsic::nvvm_shfl_sync_down_i32:
  case Intrinsic::nvvm_shfl_sync_down_f32:
    return ShuffleForm{Down, false};
  case Intrinsic::nvvm_shfl_sync_bfly_i32:
  case Intrinsic::nvvm_shfl_sync_bfly_f32:
    return ShuffleForm{Bfly, false};
  case Intrinsic::nvvm_shfl_sync_idx_i32:
  case Intrinsic::nvvm_shfl_sync_idx_f32:
    return ShuffleForm{Idx, false};
  case Intrinsic::nvvm_shfl_sync_up_i32p:
  case Intrinsic::nvvm_shfl_sync_up_f32p:
    return ShuffleForm{Up, true};
  case Intrinsic::nvvm_shfl_sync_down_i32p:
  case Intrinsic::nvvm_shfl_sync_down_f32p:
    return ShuffleForm{Down, true};
  case Intrinsic::nvvm_shfl_sync_bfly_i32p:
  case Intrinsic::nvvm_shfl_sync_bfly_f32p:
    return ShuffleForm{Bfly, true};
  case Intrinsic::nvvm_shfl_sync_idx_i32p:
  case Intrinsic::nvvm_shfl_sync_idx_f32p:
    return ShuffleForm{Idx, true};
  default:
    return std::nullopt;
  }
}

struct ReduxForm {
  Redux op;
  uint32_t flags = 0;
};

std::optional<ReduxForm> reduxForm(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::nvvm_redux_sync_add:
    return ReduxForm{ReduxAdd};
  case Intrinsic::nvvm_redux_sync_min:
    return ReduxForm{ReduxMin};
  case Intrinsic::nvvm_redux_sync_max:
    return ReduxForm{ReduxMax};
  case Intrinsic::nvvm_redux_sync_umin:
    return ReduxForm{ReduxUMin};
  case Intrinsic::nvvm_redux_sync_umax:
    return ReduxForm{ReduxUMax};
  case Intrinsic::nvvm_redux_sync_and:
    return ReduxForm{ReduxAnd};
  case Intrinsic::nvvm_redux_sync_or:
    return ReduxForm{ReduxOr};
  case Intrinsic::nvvm_redux_sync_xor:
    return ReduxForm{ReduxXor};
  case Intrinsic::nvvm_redux_sync_fmin:
    return ReduxForm{ReduxFMin};
  case Intrinsic::nvvm_redux_sync_fmin_abs:
    return ReduxForm{ReduxFMin, ReduxAbs};
  case Intrinsic::nvvm_redux_sync_fmin_NaN:
    return ReduxForm{ReduxFMin, ReduxNaN};
  case Intrinsic::nvvm_redux_sync_fmin_abs_NaN:
    return ReduxForm{ReduxFMin, ReduxAbs | ReduxNaN};
  case Intrinsic::nvvm_redux_sync_fmax:
    return ReduxForm{ReduxFMax};
  case Intrinsic::nvvm_redux_sync_fmax_abs:
    return ReduxForm{ReduxFMax, ReduxAbs};
  case Intrinsic::nvvm_redux_sync_fmax_NaN:
    return ReduxForm{ReduxFMax, ReduxNaN};
  case Intrinsic::nvvm_redux_sync_fmax_abs_NaN:
    return ReduxForm{ReduxFMax, ReduxAbs | ReduxNaN};
  default:
    return std::nullopt;
  }
}

} // namespace

Expected<bool> FunctionCompiler::compileWarp(const CallBase &call) {
  Intrinsic::ID id = call.getIntrinsicID();
  auto operand = [&](unsigned i) { return ref(call.getArgOperand(i)); };
  auto missing = [&](const Twine &what) {
    return unsupported(call, what + " does not exist on " + chip.name);
  };
  if (auto form = shuffleForm(id)) {
    Refs args = {operand(0), operand(1), operand(2), operand(3)};
    Op &op = emit(shuffle, define(call));
    op.sub = form->mode;
    op.flags = form->predicate;
    setArgs(op, args);
    return true;
  }
  if (auto form = reduxForm(id)) {
    bool isFloat = form->op >= ReduxFMin;
    if (isFloat ? !chip.reduxFloat : !chip.redux)
      return missing(isFloat ? "redux.sync on floats" : "redux.sync");
    // The value comes first here.
    Op &op = emit(redux, define(call), operand(1), operand(0));
    op.sub = form->op;
    op.flags = form->flags;
    return true;
  }
  auto voteAs = [&](Vote kind) {
    emit(vote, define(call), operand(0), operand(1)).sub = kind;
    return true;
  };
  switch (id) {
  case Intrinsic::nvvm_vote_all_sync:
    return voteAs(VoteAll);
  case Intrinsic::nvvm_vote_any_sync:
    return voteAs(VoteAny);
  case Intrinsic::nvvm_vote_uni_sync:
    return voteAs(VoteUni);
  case Intrinsic::nvvm_vote_ballot_sync:
    return voteAs(VoteBallot);
  case Intrinsic::nvvm_match_any_sync_i32:
  case Intrinsic::nvvm_match_any_sync_i64:
    emit(match, define(call), operand(0), operand(1));
    return true;
  case Intrinsic::nvvm_match_all_sync_i32p:
  case Intrinsic::nvvm_match_all_sync_i64p:
    emit(match, define(call), operand(0), operand(1)).sub = 1;
    return true;
  case Intrinsic::nvvm_elect_sync:
    if (!chip.elect)
      return missing("elect.sync");
    emit(elect, define(call), operand(0));
    return true;
  case Intrinsic::nvvm_bar_warp_sync:
    emit(syncWarp, 0, operand(0));
    return true;
  default:
    return false;
  }
}

} // namespace qd::sim
