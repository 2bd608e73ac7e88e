//===- Atomic.cpp - atomic accesses and fences ------------------------------------------------===//
//
// A thread carries out one instruction at a time, so each access is atomic by itself; orders and scopes matter to the
// search for races alone.
//
//===----------------------------------------------------------------------===//

#include "codegen/interp/Memory.h"
#include "ir/Kind.h"

using namespace mlir;

namespace qd::interp {

namespace {
/// The element that an access touches.
struct Place {
  Array *array;
  int64_t element;

  LaneValue read(Thread &thread) const { return readValue(thread, *array, element); }
  void write(Thread &thread, uint64_t bits) const { writeElement(thread.block().launch, *array, element, bits); }
};
} // namespace

/// Finds the place, `firstOperand` being the array, and checks that the access may be. `reads` and `writes` are those
/// that the op is for: a failed swap writes nothing, and counts as a write all the same.
template <typename Op>
static std::optional<Place> access(Thread &thread, Op op, unsigned firstOperand, bool reads, bool writes) {
  Array *array = findArray(thread, firstOperand);
  if (!array)
    return std::nullopt;
  if (writes && (array->access & KernelOp::ReadOnly)) {
    thread.fail("writes " + array->name + ", which is readonly");
    return std::nullopt;
  }
  if (reads && (array->access & KernelOp::WriteOnly)) {
    thread.fail("reads " + array->name + ", which is writeonly");
    return std::nullopt;
  }
  std::optional<int64_t> element = findElement(thread, *array, firstOperand + 1, op.getStaticIndices());
  unsigned end = firstOperand + 1 + op.getIndices().size();
  if (!element || (reads && !checkWritten(thread, *array, *element, firstOperand + 1, end)))
    return std::nullopt;
  Launch &launch = thread.block().launch;
  for (unsigned i = 0; i < firstOperand; ++i)
    if (thread.in[i].poison && launch.checks.poison) {
      thread.fail("takes poison to element " + llvm::Twine(*element) + " of " + array->name, i);
      return std::nullopt;
    }
  if (launch.checks.races) {
    AtomicAccess atomic{op.getOrder(), op.getEffectiveScope(), reads, writes};
    if (!launch.races.checkAtomic(thread, *array, *element, atomic))
      return std::nullopt;
  }
  return Place{array, *element};
}

static void runRMW(Thread &thread) {
  auto op = thread.op<AtomicRMWOp>();
  if (!isEnabled(thread, op.getPredicate(), 2 + op.getIndices().size()))
    return;
  std::optional<Place> place = access(thread, op, 1, /*reads=*/true, /*writes=*/true);
  if (!place)
    return;
  LaneValue old = place->read(thread), value = thread.in[0];
  if (op.getKind() != AtomicKind::exchange)
    value = applyBinary(getAtomicKindOpName(op.getKind(), op.getType()), op.getType(), old, value);
  place->write(thread, value.bits);
  thread.out[0] = old;
}

static void runCAS(Thread &thread) {
  auto op = thread.op<AtomicCASOp>();
  if (!isEnabled(thread, op.getPredicate(), 3 + op.getIndices().size()))
    return;
  std::optional<Place> place = access(thread, op, 2, /*reads=*/true, /*writes=*/true);
  if (!place)
    return;
  LaneValue old = place->read(thread);
  bool isExpected = old.bits == thread.in[0].bits;
  if (isExpected)
    place->write(thread, thread.in[1].bits);
  thread.out[0] = old;
  thread.out[1] = LaneValue::of(isExpected);
}

static void runAtomicLoad(Thread &thread) {
  auto op = thread.op<AtomicLoadOp>();
  unsigned predicate = 1 + op.getIndices().size();
  if (!isEnabled(thread, op.getPredicate(), predicate)) {
    thread.out[0] = thread.in[predicate + 1];
    return;
  }
  if (std::optional<Place> place = access(thread, op, 0, /*reads=*/true, /*writes=*/false))
    thread.out[0] = place->read(thread);
}

static void runAtomicStore(Thread &thread) {
  auto op = thread.op<AtomicStoreOp>();
  if (!isEnabled(thread, op.getPredicate(), 2 + op.getIndices().size()))
    return;
  if (std::optional<Place> place = access(thread, op, 1, /*reads=*/false, /*writes=*/true))
    place->write(thread, thread.in[0].bits);
}

template <Scope scope> static void runFence(Thread &thread) {
  Launch &launch = thread.block().launch;
  if (launch.checks.races)
    launch.races.fence(thread, scope);
}

void addAtomicRules(RuleTable &table) {
  table.addThread<AtomicRMWOp>(runRMW);
  table.addThread<AtomicCASOp>(runCAS);
  table.addThread<AtomicLoadOp>(runAtomicLoad);
  table.addThread<AtomicStoreOp>(runAtomicStore);
  table.addThread<SubgroupMemFenceOp>(runFence<Scope::subgroup>);
  table.addThread<BlockMemFenceOp>(runFence<Scope::block>);
  table.addThread<GridMemFenceOp>(runFence<Scope::device>);
}

} // namespace qd::interp
