//===- Atomic.cpp - atomic accesses and fences, on SPIR-V ------------------------------------===//
//
// Input: accesses that have instructions (ir/Atomics.h). All are on words; an element of fewer bits in a buffer is a
// part of one.
//
//===----------------------------------------------------------------------===//

#include "codegen/spirv/Memory.h"

using namespace mlir;
using namespace spv;

namespace qd::spirv {

//===----------------------------------------------------------------------===//
// Scopes and orders
//===----------------------------------------------------------------------===//

static Id getScopeId(KernelLowering &l, qd::Scope scope) {
  static constexpr spv::Scope scopes[] = {spv::Scope::Subgroup, spv::Scope::Workgroup, spv::Scope::Device};
  return l.getU32(unsigned(scopes[unsigned(scope)]));
}

/// Of accesses to shared arrays and to buffers.
static Id getSemantics(KernelLowering &l, MemorySemanticsMask order) {
  if (order == MemorySemanticsMask::MaskNone)
    return l.getU32(0);
  return l.getU32(unsigned(order | MemorySemanticsMask::UniformMemory | MemorySemanticsMask::WorkgroupMemory));
}

static Id getSemantics(KernelLowering &l, Order order) {
  static constexpr MemorySemanticsMask masks[] = {MemorySemanticsMask::MaskNone, MemorySemanticsMask::Acquire,
                                                  MemorySemanticsMask::Release, MemorySemanticsMask::AcquireRelease};
  return getSemantics(l, masks[unsigned(order)]);
}

template <qd::Scope scope> static LogicalResult lowerFence(KernelLowering &l, Operation *, const OpRow &) {
  l.b.emitVoid(Op::OpMemoryBarrier, {getScopeId(l, scope), getSemantics(l, MemorySemanticsMask::AcquireRelease)});
  return success();
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

namespace {
/// The word that an access is on.
struct Word {
  Id pointer, type;
  Type element;
  Id scope, order;
  Id shift = 0; ///< of the element in the word, or 0 where it is all there is
};
} // namespace

/// The element's own bits, at the word's low end.
static Id getMask(KernelLowering &l, const Word &word) {
  return l.getU32(llvm::maskTrailingOnes<uint32_t>(8 * getStorageBytes(word.element)));
}

template <typename AtomicOp> static Word getWord(KernelLowering &l, AtomicOp op) {
  ArrayInfo array(l, op.getArray());
  unsigned bits = array.getWordBits(), bytes = getStorageBytes(array.element);
  if (bits == 64) {
    l.b.require(Capability::Int64);
    l.b.require(Capability::Int64Atomics);
  }
  Word word;
  word.type = l.b.getIntType(bits);
  word.element = array.element;
  word.scope = getScopeId(l, op.getEffectiveScope());
  word.order = getSemantics(l, op.getOrder());
  Id pointer = l.b.getPointerType(array.storage, word.type);
  Subscript at = getSubscript(l, array, op.getIndices(), op.getStaticIndices());
  if (array.isShared()) {
    word.pointer = l.emit(Op::OpAccessChain, pointer, {array.variable, at.id});
    return word;
  }
  Id index = at.id;
  if (bytes < 4) {
    unsigned perWord = 4 / bytes;
    Id type = l.b.getIntType(at.bits);
    Id inWord = l.emit(Op::OpBitwiseAnd, type, {at.id, l.b.getInt(at.bits, perWord - 1)});
    word.shift = l.emitU32(Op::OpIMul, {l.resize(inWord, at.bits, 32), l.getU32(8 * bytes)});
    Id words = l.emit(Op::OpShiftRightLogical, type, {at.id, l.getU32(llvm::Log2_32(perWord))});
    index = l.resize(words, at.bits, 32);
  }
  word.pointer = l.emit(Op::OpAccessChain, pointer, {l.getWords(op.getArray()), l.getU32(0), index});
  return word;
}

/// The element's bits out of the word.
static Id extract(KernelLowering &l, const Word &word, Id bits) {
  if (!word.shift)
    return bits;
  return l.emitU32(Op::OpBitwiseAnd, {l.emitU32(Op::OpShiftRightLogical, {bits, word.shift}), getMask(l, word)});
}

static Id shiftIn(KernelLowering &l, const Word &word, Id value) {
  return word.shift ? l.emitU32(Op::OpShiftLeftLogical, {value, word.shift}) : value;
}

/// All bits of the word but the element's.
static Id getOthers(KernelLowering &l, const Word &word) {
  return l.emitU32(Op::OpNot, shiftIn(l, word, getMask(l, word)));
}

//===----------------------------------------------------------------------===//
// Compare and swap
//===----------------------------------------------------------------------===//

static Id emitSwap(KernelLowering &l, const Word &word, Id expected, Id desired, Order order) {
  bool acquires = order == Order::acquire || order == Order::acq_rel;
  Id failed = getSemantics(l, acquires ? MemorySemanticsMask::Acquire : MemorySemanticsMask::MaskNone);
  return l.emit(Op::OpAtomicCompareExchange, word.type,
                {word.pointer, word.scope, word.order, failed, desired, expected});
}

/// Swaps an element that is a part of its word: again where another part has changed. Without `expected` whatever is
/// there. Returns the old element's bits.
static Id emitPartSwap(KernelLowering &l, const Word &word, Id expected, Id desired, Order order) {
  Builder &b = l.b;
  // Order is kept around the loop: lavapipe takes what orders memory for a barrier, and loses subgroups where they go
  // round a loop with one differently often.
  Id fence = getSemantics(l, MemorySemanticsMask::AcquireRelease);
  if (order == Order::release || order == Order::acq_rel)
    b.emitVoid(Op::OpMemoryBarrier, {word.scope, fence});
  Id others = getOthers(l, word), placed = shiftIn(l, word, desired);
  Id first = l.emit(Op::OpAtomicLoad, word.type, {word.pointer, word.scope, l.getU32(0)});
  // What the loop gives goes through phis of its header: lavapipe computes other values on lanes that have left it too.
  Id before = b.getBlock(), header = b.createId(), entry = b.createId(), body = b.createId(), latch = b.createId(),
     merge = b.createId();
  b.emitVoid(Op::OpBranch, header);
  b.startBlock(header);
  LoopPhi seen = b.emitLoopPhi(word.type, first, before, latch);
  LoopPhi result = b.emitLoopPhi(word.type, first, before, latch);
  LoopPhi goesOn = b.emitLoopPhi(b.getBoolType(), b.getBool(true), before, latch);
  b.emitVoid(Op::OpLoopMerge, {merge, latch, 0});
  b.emitVoid(Op::OpBranch, entry);
  b.startBlock(entry);
  b.emitVoid(Op::OpBranchConditional, {goesOn.id, body, merge});

  // A failed comparison of the element leaves memory as it is: the word is swapped for itself.
  b.startBlock(body);
  Id old = extract(l, word, seen.id);
  Id changed = l.emitU32(Op::OpBitwiseOr, {l.emitU32(Op::OpBitwiseAnd, {seen.id, others}), placed});
  if (expected)
    changed = l.select(word.type, l.emitBool(Op::OpIEqual, {old, expected}), changed, seen.id);
  Id found = l.emit(Op::OpAtomicCompareExchange, word.type,
                    {word.pointer, word.scope, l.getU32(0), l.getU32(0), changed, seen.id});
  Id again = l.emitBool(Op::OpINotEqual, {found, seen.id});
  b.emitVoid(Op::OpBranch, latch);

  b.startBlock(latch);
  b.setBackValue(seen, found);
  b.setBackValue(result, old);
  b.setBackValue(goesOn, again);
  b.emitVoid(Op::OpBranch, header);
  b.startBlock(merge);
  if (order == Order::acquire || order == Order::acq_rel)
    b.emitVoid(Op::OpMemoryBarrier, {word.scope, fence});
  return result.id;
}

static LogicalResult lowerCAS(KernelLowering &l, Operation *op, const OpRow &) {
  auto cas = cast<AtomicCASOp>(op);
  Type element = cas.getExpected().getType();
  Id old = 0, isExpected = 0;
  auto generate = [&] {
    Word word = getWord(l, cas);
    Id expected = toWord(l, l.get(cas.getExpected()), element), desired = toWord(l, l.get(cas.getDesired()), element);
    Id bits = word.shift ? emitPartSwap(l, word, expected, desired, cas.getOrder())
                         : emitSwap(l, word, expected, desired, cas.getOrder());
    isExpected = l.emitBool(Op::OpIEqual, {bits, expected});
    old = fromWord(l, bits, element);
  };
  if (!cas.getPredicate()) {
    generate();
  } else {
    auto [from, last] = emitIf(l, l.get(cas.getPredicate()), generate);
    Id none = l.b.getNull(l.getType(element)), no = l.b.getBool(false);
    old = l.b.emitPhi(l.getType(element), {{none, from}, {old, last}});
    isExpected = l.b.emitPhi(l.b.getBoolType(), {{no, from}, {isExpected, last}});
  }
  l.set(cas.getOld(), old);
  l.set(cas.getSuccess(), isExpected);
  return success();
}

//===----------------------------------------------------------------------===//
// Changes
//===----------------------------------------------------------------------===//

static Op getInstruction(AtomicKind kind) {
  switch (kind) {
  case AtomicKind::add:
    return Op::OpAtomicIAdd;
  case AtomicKind::sub:
    return Op::OpAtomicISub;
  case AtomicKind::minsi:
    return Op::OpAtomicSMin;
  case AtomicKind::minui:
    return Op::OpAtomicUMin;
  case AtomicKind::maxsi:
    return Op::OpAtomicSMax;
  case AtomicKind::maxui:
    return Op::OpAtomicUMax;
  case AtomicKind::andi:
    return Op::OpAtomicAnd;
  case AtomicKind::ori:
    return Op::OpAtomicOr;
  case AtomicKind::xori:
    return Op::OpAtomicXor;
  case AtomicKind::exchange:
    return Op::OpAtomicExchange;
  default:
    return Op::OpNop; // expanded on all chips
  }
}

static LogicalResult lowerRMW(KernelLowering &l, Operation *op, const OpRow &) {
  auto rmw = cast<AtomicRMWOp>(op);
  Type element = rmw.getType();
  Id old = 0;
  auto generate = [&] {
    Word word = getWord(l, rmw);
    Id value = shiftIn(l, word, toWord(l, l.get(rmw.getValue()), element));
    if (word.shift && rmw.getKind() == AtomicKind::andi)
      value = l.emitU32(Op::OpBitwiseOr, {value, getOthers(l, word)});
    Id bits = l.emit(getInstruction(rmw.getKind()), word.type, {word.pointer, word.scope, word.order, value});
    if (!rmw.use_empty())
      old = fromWord(l, extract(l, word, bits), element);
  };
  if (!rmw.getPredicate()) {
    generate();
  } else {
    auto [from, last] = emitIf(l, l.get(rmw.getPredicate()), generate);
    if (old)
      old = l.b.emitPhi(l.getType(element), {{l.b.getNull(l.getType(element)), from}, {old, last}});
  }
  return l.setResult(op, old);
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

static LogicalResult lowerAtomicLoad(KernelLowering &l, Operation *op, const OpRow &) {
  auto load = cast<AtomicLoadOp>(op);
  Id value = 0;
  auto generate = [&] {
    Word word = getWord(l, load);
    Id bits = l.emit(Op::OpAtomicLoad, word.type, {word.pointer, word.scope, word.order});
    value = fromWord(l, extract(l, word, bits), load.getType());
  };
  if (!load.getPredicate()) {
    generate();
    return l.setResult(op, value);
  }
  auto [from, last] = emitIf(l, l.get(load.getPredicate()), generate);
  return l.setResult(op, l.b.emitPhi(l.getType(load.getType()), {{l.get(load.getOtherwise()), from}, {value, last}}));
}

static LogicalResult lowerAtomicStore(KernelLowering &l, Operation *op, const OpRow &) {
  auto store = cast<AtomicStoreOp>(op);
  auto generate = [&] {
    Word word = getWord(l, store);
    Id value = toWord(l, l.get(store.getValue()), word.element);
    if (word.shift)
      emitPartSwap(l, word, /*expected=*/0, value, store.getOrder());
    else
      l.b.emitVoid(Op::OpAtomicStore, {word.pointer, word.scope, word.order, value});
  };
  if (store.getPredicate())
    emitIf(l, l.get(store.getPredicate()), generate);
  else
    generate();
  return success();
}

ArrayRef<OpRow> getAtomicRows() {
  static const OpRow rows[] = {
      makeRow<AtomicRMWOp>(lowerRMW),
      makeRow<AtomicCASOp>(lowerCAS),
      makeRow<AtomicLoadOp>(lowerAtomicLoad),
      makeRow<AtomicStoreOp>(lowerAtomicStore),
      makeRow<BlockMemFenceOp>(lowerFence<qd::Scope::block>),
      makeRow<GridMemFenceOp>(lowerFence<qd::Scope::device>),
  };
  return rows;
}

} // namespace qd::spirv
