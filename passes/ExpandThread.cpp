//===- ExpandThread.cpp - ops of single threads that a target lacks ---------------------===//
//
// Purpose: writes a thread's own ops with what every target has. Packed predicates become selects and bit tests. Where
// the target has no asynchronous copies, a copy becomes loads and stores in the place where it starts; commits and
// waits have nothing left to do. What a target documents to do nothing (prints and asserts on AMD's chips and on
// Vulkan, pauses on Vulkan) is left out.
//
//   %w = qd.pack_bits %a, %b : i32
// becomes
//   %x = arith.select %a, %one, %zero : i32
//   %y = arith.select %b, %two, %zero : i32
//   %w = arith.ori %x, %y : i32
//
// Input invariant: a verified module.
//
// Output invariant: no packed bits are left; what else is left of these ops the target carries out.
//
//===----------------------------------------------------------------------===//

#include "ir/Dialect.h"
#include "passes/Passes.h"
#include "passes/TargetPass.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace qd {

namespace {
class ExpandThreadPass : public TargetPass<ExpandThreadPass> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandThreadPass)

  using TargetPass::TargetPass;

  StringRef getArgument() const override { return "expand-thread"; }
  StringRef getDescription() const override { return "Write ops of single threads that the target lacks with others"; }

  void runOnModule();
};
} // namespace

//===----------------------------------------------------------------------===//
// Packed bits
//===----------------------------------------------------------------------===//

static Value createBit(OpBuilder &b, Location loc, Type word, unsigned bit) {
  APInt value = APInt::getOneBitSet(word.getIntOrFloatBitWidth(), bit);
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(word, value));
}

/// A balanced tree of ors: its depth is the logarithm of the number of bits.
static void expand(PackBitsOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Type word = op.getType();
  Value zero = arith::ConstantOp::create(b, loc, b.getIntegerAttr(word, 0));
  SmallVector<Value> parts;
  for (auto [i, bit] : llvm::enumerate(op.getBits()))
    parts.push_back(arith::SelectOp::create(b, loc, bit, createBit(b, loc, word, i), zero));
  while (parts.size() > 1) {
    SmallVector<Value> joined;
    for (size_t i = 0; i + 1 < parts.size(); i += 2)
      joined.push_back(arith::OrIOp::create(b, loc, parts[i], parts[i + 1]));
    if (parts.size() % 2)
      joined.push_back(parts.back());
    parts = std::move(joined);
  }
  op.getResult().replaceAllUsesWith(parts.front());
  op.erase();
}

static void expand(UnpackBitsOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Type word = op.getWord().getType();
  Value zero = arith::ConstantOp::create(b, loc, b.getIntegerAttr(word, 0));
  for (auto [i, bit] : llvm::enumerate(op.getBits())) {
    Value alone = arith::AndIOp::create(b, loc, op.getWord(), createBit(b, loc, word, i));
    bit.replaceAllUsesWith(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, alone, zero));
  }
  op.erase();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

namespace {
/// The subscripts of an element, and of those behind it.
class Place {
public:
  Place(OpBuilder &b, Location loc, OperandRange indices, ArrayRef<int64_t> literals, ArrayRef<int64_t> shape,
        int64_t elements)
      : b(b), loc(loc), indices(indices), literals(literals), shape(shape) {
    // Aligned elements cross the end of no row whose length they divide.
    if (elements > 1 && shape.size() > 1 && shape.back() % elements != 0)
      number = createNumber();
  }

  /// Subscripts, and their literals, of the element `distance` behind.
  std::pair<SmallVector<Value>, SmallVector<int64_t>> get(int64_t distance) {
    SmallVector<Value> moved(indices);
    SmallVector<int64_t> movedLiterals(literals);
    if (distance == 0)
      return {moved, movedLiterals};
    if (number) {
      Value rest = add(number, distance);
      moved.assign(shape.size(), Value());
      for (size_t dim = shape.size(); dim-- > 0;) {
        Value extent = constant(shape[dim]);
        moved[dim] = dim ? arith::RemUIOp::create(b, loc, rest, extent).getResult() : rest;
        rest = dim ? arith::DivUIOp::create(b, loc, rest, extent).getResult() : rest;
      }
      movedLiterals.assign(shape.size(), ShapedType::kDynamic);
    } else if (ShapedType::isDynamic(movedLiterals.back())) {
      moved.back() = add(moved.back(), distance);
    } else {
      movedLiterals.back() += distance;
    }
    return {moved, movedLiterals};
  }

private:
  Type getType() { return indices.empty() ? b.getI32Type() : indices.front().getType(); }
  Value constant(int64_t value) { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(getType(), value)); }
  Value add(Value value, int64_t distance) {
    return arith::AddIOp::create(b, loc, value,
                                 arith::ConstantOp::create(b, loc, b.getIntegerAttr(value.getType(), distance)));
  }
  Value createNumber() {
    Value sum;
    auto next = indices.begin();
    for (auto [dim, literal] : llvm::enumerate(literals)) {
      Value index = ShapedType::isDynamic(literal) ? *next++ : constant(literal);
      sum = sum ? arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, sum, constant(shape[dim])), index)
                      .getResult()
                : index;
    }
    return sum;
  }

  OpBuilder &b;
  Location loc;
  OperandRange indices;
  ArrayRef<int64_t> literals, shape;
  Value number; ///< counted row by row, where rows may end between the elements
};
} // namespace

/// Several elements that are loaded under one predicate stand under one branch where `branches`, which leaves loads
/// that a backend can join.
static SmallVector<Value> createLoads(OpBuilder &b, AsyncCopyOp op, bool branches) {
  Location loc = op.getLoc();
  Type element = op.getTarget().getType().getElementType();
  unsigned count = op.getElements();
  auto load = [&](OpBuilder &b, Value predicate, Value otherwise) {
    Place from(b, loc, op.getSourceIndices(), op.getStaticSource(), {}, count);
    SmallVector<Value> values;
    for (unsigned i = 0; i < count; ++i) {
      auto [indices, literals] = from.get(i);
      values.push_back(LoadOp::create(b, loc, element, op.getSource(), indices, b.getDenseI64ArrayAttr(literals),
                                      predicate, otherwise, /*is_volatile=*/nullptr, /*align=*/nullptr));
    }
    return values;
  };
  if (!op.getPredicate())
    return load(b, Value(), Value());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  if (!branches || count == 1)
    return load(b, op.getPredicate(), zero);
  auto then = [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, load(b, Value(), Value())); };
  auto otherwise = [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, SmallVector<Value>(count, zero)); };
  return llvm::to_vector_of<Value>(scf::IfOp::create(b, loc, op.getPredicate(), then, otherwise).getResults());
}

static void expand(AsyncCopyOp op, bool branches) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  SmallVector<Value> values = createLoads(b, op, branches);
  Place to(b, loc, op.getTargetIndices(), op.getStaticTarget(), op.getTarget().getType().getShape(), op.getElements());
  for (auto [i, value] : llvm::enumerate(values)) {
    auto [indices, literals] = to.get(i);
    StoreOp::create(b, loc, value, op.getTarget(), indices, b.getDenseI64ArrayAttr(literals), Value(),
                    /*is_volatile=*/nullptr, /*align=*/nullptr);
  }
  op.erase();
}

//===----------------------------------------------------------------------===//
// All ops
//===----------------------------------------------------------------------===//

void ExpandThreadPass::runOnModule() {
  bool reports = target.getBackend() != Backend::AMDGCN && target.getBackend() != Backend::SPIRV;
  // On the CPU a predicate is a mask, and a load under one costs no more than another.
  bool branches = target.getBackend() != Backend::CPU;
  bool pauses = target.getBackend() != Backend::SPIRV;
  getOperation().walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case<PackBitsOp, UnpackBitsOp>([](auto bits) { expand(bits); })
        .Case([&](AsyncCopyOp copy) {
          if (!target.has(AsyncCopy))
            expand(copy, branches);
        })
        .Case<AsyncCommitOp, AsyncWaitOp>([&](auto order) {
          if (!target.has(AsyncCopy))
            order.erase();
        })
        .Case<PrintOp, AssertOp>([&](auto report) {
          if (!reports)
            report.erase();
        })
        .Case([&](SleepOp sleep) {
          if (!pauses)
            sleep.erase();
        });
  });
}

std::unique_ptr<Pass> createExpandThreadPass(const Target &target) {
  return std::make_unique<ExpandThreadPass>(target);
}

} // namespace qd
