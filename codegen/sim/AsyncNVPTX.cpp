//===----------------------------------------------------------------------===//
// cp.async of NVPTX. The source is read when a copy starts and the target is
// written when it is waited for; in between the target holds poison.
//===----------------------------------------------------------------------===//
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "codegen/sim/Compile.h"
#include "codegen/sim/Wave.h"
#include <cstring>

using namespace llvm;

namespace qd::sim {

namespace {

/// a: target, b: source, c: bytes to read, the rest is zeros.
void startCopy(Wave &w, const Op &op) {
  if (!w.needsValue(op, op.a, "an address") || !w.needsValue(op, op.b, "an address") ||
      !w.needsValue(op, op.c, "a size"))
    return;
  w.async.resize(w.width);
  const uint64_t *to = w.val(op.a), *from = w.val(op.b), *size = w.val(op.c);
  w.each([&](unsigned l) {
    Wave::Place source, target;
    if (w.stop || !w.access(op, l, to[l], SharedSpace, op.bytes, op.bytes, true, "copy", target))
      return;
    uint64_t bytes = std::min<uint64_t>(size[l], op.bytes);
    if (bytes && !w.access(op, l, from[l], GlobalSpace, bytes, op.bytes, false, "copy", source))
      return;
    Wave::AsyncCopy copy = {&op, to[l], {}};
    if (bytes)
      std::memcpy(copy.bytes.data(), source.data, bytes);
    std::memset(target.shadow, 1, op.bytes);
    w.async[l].open.push_back(copy);
  });
}

void commitCopies(Wave &w, const Op &) {
  w.async.resize(w.width);
  w.each([&](unsigned l) {
    w.async[l].groups.push_back(std::move(w.async[l].open));
    w.async[l].open.clear();
  });
}

void finishCopy(Wave &w, unsigned lane, const Wave::AsyncCopy &copy) {
  unsigned bytes = copy.op->bytes;
  Wave::Place target;
  if (!w.access(*copy.op, lane, copy.target, SharedSpace, bytes, bytes, true, "copy", target))
    return;
  bool changes = std::memcmp(target.data, copy.bytes.data(), bytes) != 0;
  std::memcpy(target.data, copy.bytes.data(), bytes);
  std::memset(target.shadow, w.writeRaces<0>(*copy.op, copy.target, changes, bytes), bytes);
}

/// imm: groups that may be under way; negative: none, and no open one.
void waitForCopies(Wave &w, const Op &op) {
  w.async.resize(w.width);
  w.each([&](unsigned l) {
    Wave::AsyncQueue &queue = w.async[l];
    if (op.imm < 0) {
      queue.groups.push_back(std::move(queue.open));
      queue.open.clear();
    }
    for (; int64_t(queue.groups.size()) > std::max<int64_t>(op.imm, 0); queue.groups.pop_front())
      for (const Wave::AsyncCopy &copy : queue.groups.front())
        finishCopy(w, l, copy);
  });
  w.launch.progress();
}

/// The bytes of a copy, or 0.
unsigned copiedBytes(Intrinsic::ID id) {
  switch (id) {
  case Intrinsic::nvvm_cp_async_ca_shared_global_4:
  case Intrinsic::nvvm_cp_async_ca_shared_global_4_s:
    return 4;
  case Intrinsic::nvvm_cp_async_ca_shared_global_8:
  case Intrinsic::nvvm_cp_async_ca_shared_global_8_s:
    return 8;
  case Intrinsic::nvvm_cp_async_ca_shared_global_16:
  case Intrinsic::nvvm_cp_async_ca_shared_global_16_s:
  case Intrinsic::nvvm_cp_async_cg_shared_global_16:
  case Intrinsic::nvvm_cp_async_cg_shared_global_16_s:
    return 16;
  default:
    return 0;
  }
}

} // namespace

Expected<bool> FunctionCompiler::compileAsyncCopy(const CallBase &call) {
  Intrinsic::ID id = call.getIntrinsicID();
  unsigned bytes = copiedBytes(id);
  bool isWait = id == Intrinsic::nvvm_cp_async_wait_group || id == Intrinsic::nvvm_cp_async_wait_all;
  if (!bytes && !isWait && id != Intrinsic::nvvm_cp_async_commit_group)
    return false;
  if (!chip.redux)
    return unsupported(call, Twine("cp.async does not exist on ") + chip.name);
  if (bytes) {
    Ref size = call.arg_size() > 2 ? ref(call.getArgOperand(2)) : word(bytes);
    emit(startCopy, 0, ref(call.getArgOperand(0)), ref(call.getArgOperand(1)), size).bytes = bytes;
  } else if (isWait) {
    emit(waitForCopies, 0).imm =
        id == Intrinsic::nvvm_cp_async_wait_all ? -1 : int64_t(*immediate(call.getArgOperand(0)));
  } else {
    emit(commitCopies, 0);
  }
  return true;
}

} // namespace qd::sim
