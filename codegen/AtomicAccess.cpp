//===- AtomicAccess.cpp - atomic accesses in LLVM's terms ------------------------------------===//

#include "codegen/AtomicAccess.h"

using llvm::AtomicOrdering;
using llvm::AtomicRMWInst;

namespace qd {

AtomicOrdering getOrdering(Order order) {
  switch (order) {
  case Order::relaxed:
    return AtomicOrdering::Monotonic;
  case Order::acquire:
    return AtomicOrdering::Acquire;
  case Order::release:
    return AtomicOrdering::Release;
  case Order::acq_rel:
    return AtomicOrdering::AcquireRelease;
  }
  return AtomicOrdering::AcquireRelease;
}

AtomicRMWInst::BinOp getAtomicOperation(AtomicKind kind, bool isFloat) {
  switch (kind) {
  case AtomicKind::add:
    return isFloat ? AtomicRMWInst::FAdd : AtomicRMWInst::Add;
  case AtomicKind::sub:
    return isFloat ? AtomicRMWInst::FSub : AtomicRMWInst::Sub;
  case AtomicKind::minsi:
    return AtomicRMWInst::Min;
  case AtomicKind::minui:
    return AtomicRMWInst::UMin;
  case AtomicKind::maxsi:
    return AtomicRMWInst::Max;
  case AtomicKind::maxui:
    return AtomicRMWInst::UMax;
  case AtomicKind::minnumf:
    return AtomicRMWInst::FMin;
  case AtomicKind::maxnumf:
    return AtomicRMWInst::FMax;
  case AtomicKind::andi:
    return AtomicRMWInst::And;
  case AtomicKind::ori:
    return AtomicRMWInst::Or;
  case AtomicKind::xori:
    return AtomicRMWInst::Xor;
  case AtomicKind::exchange:
    return AtomicRMWInst::Xchg;
  case AtomicKind::mul:
  case AtomicKind::minimumf:
  case AtomicKind::maximumf:
    break;
  }
  return AtomicRMWInst::BAD_BINOP;
}

} // namespace qd
