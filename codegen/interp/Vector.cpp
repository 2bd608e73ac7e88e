//===- Vector.cpp - taking vectors apart and putting them together ----------------------------===//
//
// A thread's operands and results are scalars: a vector is its scalars, in their order.
//
//===----------------------------------------------------------------------===//

#include "codegen/interp/Machine.h"
#include "ir/Kind.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace qd::interp {

static void copyAll(Thread &thread) { llvm::copy(thread.in, thread.out.begin()); }

/// From a scalar to all, or from a vector to its like.
static void runBroadcast(Thread &thread) {
  for (size_t i = 0; i < thread.out.size(); ++i)
    thread.out[i] = thread.in[thread.in.size() > 1 ? i : 0];
}

/// Positions are literals: kernels have no values of type index. -1 stands for poison, no position for the whole.
static void runExtract(Thread &thread) {
  auto op = thread.op<vector::ExtractOp>();
  if (op.getStaticPosition().empty())
    return copyAll(thread);
  if (int64_t position = op.getStaticPosition().front(); position >= 0)
    thread.out[0] = thread.in[position];
}

static void runInsert(Thread &thread) {
  auto op = thread.op<vector::InsertOp>();
  if (op.getStaticPosition().empty())
    return void(llvm::copy(thread.in.take_front(thread.out.size()), thread.out.begin()));
  int64_t position = op.getStaticPosition().front();
  if (position < 0)
    return;
  llvm::copy(thread.in.drop_front(), thread.out.begin());
  thread.out[position] = thread.in[0];
}

static Kind getKind(vector::CombiningKind kind) {
  switch (kind) {
  case vector::CombiningKind::ADD:
    return Kind::add;
  case vector::CombiningKind::MUL:
    return Kind::mul;
  case vector::CombiningKind::MINUI:
    return Kind::minui;
  case vector::CombiningKind::MINSI:
    return Kind::minsi;
  case vector::CombiningKind::MINNUMF:
    return Kind::minnumf;
  case vector::CombiningKind::MAXUI:
    return Kind::maxui;
  case vector::CombiningKind::MAXSI:
    return Kind::maxsi;
  case vector::CombiningKind::MAXNUMF:
    return Kind::maxnumf;
  case vector::CombiningKind::AND:
    return Kind::andi;
  case vector::CombiningKind::OR:
    return Kind::ori;
  case vector::CombiningKind::XOR:
    return Kind::xori;
  case vector::CombiningKind::MINIMUMF:
    return Kind::minimumf;
  case vector::CombiningKind::MAXIMUMF:
    return Kind::maximumf;
  }
  llvm_unreachable("all kinds are handled");
}

/// From the first scalar to the last; what it starts from, where that is given, is the last operand.
static void runReduction(Thread &thread) {
  auto op = thread.op<vector::ReductionOp>();
  StringRef name = getKindOpName(getKind(op.getKind()), thread.outType());
  LaneValue total = op.getAcc() ? thread.in.back() : thread.in.front();
  ArrayRef<LaneValue> rest = op.getAcc() ? thread.in.drop_back() : thread.in.drop_front();
  for (LaneValue next : rest)
    total = applyBinary(name, thread.outType(), total, next);
  thread.out[0] = total;
}

void addVectorRules(RuleTable &table) {
  table.addThread<vector::FromElementsOp>(copyAll);
  table.addThread<vector::ToElementsOp>(copyAll);
  table.addThread<vector::BroadcastOp>(runBroadcast);
  table.addThread<vector::ExtractOp>(runExtract);
  table.addThread<vector::InsertOp>(runInsert);
  table.addThread<vector::ReductionOp>(runReduction);
}

} // namespace qd::interp
