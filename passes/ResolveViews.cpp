//===- ResolveViews.cpp - accesses of views as accesses of arguments --------------------===//
//
// Purpose: every access names the kernel's argument that it touches, by one subscript that counts scalars. Views,
// dimensions and elements of several scalars become arithmetic:
//
//   %line = qd.view %m[%row, 0], %n : !qd.buffer<?x?xf32> to !qd.buffer<f32>
//   %v = qd.load %line[%i] : !qd.buffer<f32>
// becomes
//   %flat = qd.reinterpret %m : !qd.buffer<?x?xf32> to !qd.buffer<f32>
//   %columns = qd.size %m, 1 : !qd.buffer<?x?xf32> -> i64
//   %begin = arith.muli %row', %columns : i64
//   %at = arith.addi %begin, %i' : i64
//   %v = qd.load %flat[%at : i64] : !qd.buffer<f32>
//
// What is known of a vector's alignment from argument and subscripts is written to its access.
//
// Input invariant: a verified module without calls.
//
// Output invariant: no qd.view is left. Arrays of accesses are arguments of one dimension with scalars as elements,
// reinterpretations of an argument as such, or static arrays of scalars; qd.size is of arguments.
//
//===----------------------------------------------------------------------===//

#include "ir/Arrays.h"
#include "ir/ops/Subscripts.h"
#include "passes/Passes.h"
#include "passes/Subscript.h"
#include "passes/TargetPass.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

namespace {
class ResolveViewsPass : public TargetPass<ResolveViewsPass> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ResolveViewsPass)

  using TargetPass::TargetPass;

  StringRef getArgument() const override { return "resolve-views"; }
  StringRef getDescription() const override { return "Access arguments where views of them are accessed"; }
  /// The context loads only what the file uses, which may hold vectors by accesses alone.
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<vector::VectorDialect>(); }

  void runOnModule();
};

/// A buffer as a part of an argument. Offset and strides count scalars of the element.
struct Part {
  BlockArgument root;
  Type element;
  Number offset;
  SmallVector<Number, 3> extents, strides;

  /// Whether the elements stand side by side, as far as that shows.
  bool isDense = false;
  bool isPlain() const {
    auto type = cast<BufferType>(root.getType());
    return offset.is(0) && element == type.getElementType() && isScalarType(element) && type.getRank() == 1 &&
           strides.size() == 1 && strides[0].is(1);
  }
};

class Resolver {
public:
  Resolver(KernelOp kernel, Type index) : kernel(kernel), b(kernel.getContext(), index) {}

  LogicalResult run();

private:
  LogicalResult visit(Operation *op);
  Part describe(BlockArgument argument);
  LogicalResult resolve(ViewOp op);
  LogicalResult resolve(ReinterpretOp op);
  LogicalResult refuse(Operation *op);
  void replace(SizeOp op);
  template <typename Op>
  void access(Op op, MutableOperandRange array, MutableOperandRange indices, StringAttr literals);
  void splitLoad(LoadOp op, const Part &part);
  void splitStore(StoreOp op, const Part &part);
  Value flatten(BlockArgument root, Type scalar);
  Number at(const Part &part, ValueRange operands, ArrayRef<int64_t> literals, unsigned element = 0);
  SmallVector<Number, 3> read(ValueRange operands, ArrayRef<int64_t> literals);
  template <typename AllocOp> void flattenAlloc(AllocOp alloc);
  template <typename Op> void setAlignment(Op op, Type value);

  KernelOp kernel;
  NumberBuilder b;
  llvm::DenseMap<Value, Part> parts;
  llvm::DenseMap<std::pair<Value, Type>, Value> flats;
  SmallVector<Operation *> done; ///< views and reinterpretations, in their order
};
} // namespace

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

SmallVector<Number, 3> Resolver::read(ValueRange operands, ArrayRef<int64_t> literals) {
  SmallVector<Number, 3> numbers;
  for (int64_t literal : literals) {
    if (!ShapedType::isDynamic(literal)) {
      numbers.push_back(Number(literal));
      continue;
    }
    numbers.push_back(b.cast(operands.front()));
    operands = operands.drop_front();
  }
  return numbers;
}

Part Resolver::describe(BlockArgument argument) {
  auto type = cast<BufferType>(argument.getType());
  Part part{argument, type.getElementType(), Number(0), {}, {}, /*isDense=*/true};
  b.setToStart(kernel);
  for (unsigned dim = 0; dim < type.getRank(); ++dim)
    part.extents.push_back(b.getExtent(argument, dim, type.getRank()));
  part.strides.assign(type.getRank(), Number(getNumScalars(part.element)));
  for (int dim = int(type.getRank()) - 2; dim >= 0; --dim)
    part.strides[dim] = b.mul(part.strides[dim + 1], part.extents[dim + 1]);
  return part;
}

LogicalResult Resolver::resolve(ViewOp op) {
  b.setBefore(op);
  const Part &source = parts.find(op.getSource())->second;
  unsigned rank = op.getType().getRank(), sourceRank = source.strides.size();
  Part part{source.root, source.element, source.offset, read(op.getSizes(), op.getStaticSizes()), {}};
  for (auto [subscript, stride] : llvm::zip_equal(read(op.getIndices(), op.getStaticIndices()), source.strides))
    part.offset = b.add(part.offset, b.mul(subscript, stride));
  if (!op.getStaticStrides().empty()) {
    for (Number stride : read(op.getStrides(), op.getStaticStrides()))
      part.strides.push_back(b.mul(stride, source.strides[0]));
  } else if (rank <= sourceRank) {
    part.strides.assign(source.strides.end() - rank, source.strides.end());
  } else {
    part.strides.assign(rank, source.strides[0]);
    for (int dim = int(rank) - 2; dim >= 0; --dim)
      part.strides[dim] = b.mul(part.strides[dim + 1], part.extents[dim + 1]);
    part.isDense = source.isDense;
  }
  if (rank == 1)
    part.isDense = part.strides[0].is(getNumScalars(part.element));
  parts[op.getResult()] = part;
  done.push_back(op);
  return success();
}

LogicalResult Resolver::resolve(ReinterpretOp op) {
  b.setBefore(op);
  const Part &source = parts.find(op.getSource())->second;
  if (!source.isDense)
    return op.emitOpError() << "takes a view whose elements need not stand side by side, expected one of whole rows or "
                               "of one dimension without strides";
  Type element = op.getType().getElementType();
  unsigned from = getStorageBytes(getScalarOf(source.element)), to = getStorageBytes(getScalarOf(element));
  Part part{source.root, element, source.offset, {}, {Number(getNumScalars(element))}, /*isDense=*/true};
  part.offset = from >= to ? b.mul(source.offset, Number(from / to)) : b.divide(source.offset, to / from);
  Number count(1);
  for (Number extent : source.extents)
    count = b.mul(count, extent);
  count = b.mul(count, Number(getStorageBytes(source.element)));
  part.extents = {b.divide(count, getStorageBytes(element))};
  parts[op.getResult()] = part;
  done.push_back(op);
  return success();
}

/// Reports a buffer where the text does not show which one it is.
LogicalResult Resolver::refuse(Operation *op) {
  for (Value operand : op->getOperands())
    if (isa<BufferType>(operand.getType()))
      return op->emitOpError() << "hands on a buffer, expected each use of one to show which argument or view it is";
  return success();
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

Value Resolver::flatten(BlockArgument root, Type scalar) {
  auto type = cast<BufferType>(root.getType());
  if (type.getRank() == 1 && type.getElementType() == scalar)
    return root;
  Value &flat = flats[{root, scalar}];
  if (!flat) {
    OpBuilder builder(&kernel.getBodyBlock(), kernel.getBodyBlock().begin());
    flat = ReinterpretOp::create(builder, root.getLoc(), BufferType::get(scalar), root);
  }
  return flat;
}

/// The scalar at the subscripts of a part, `element` elements further in the last dimension.
Number Resolver::at(const Part &part, ValueRange operands, ArrayRef<int64_t> literals, unsigned element) {
  SmallVector<Number, 3> subscripts = read(operands, literals);
  subscripts.back() = b.add(subscripts.back(), Number(element));
  Number sum = part.offset;
  for (auto [subscript, stride] : llvm::zip_equal(subscripts, part.strides))
    sum = b.add(sum, b.mul(subscript, stride));
  return sum;
}

template <typename Op> void Resolver::setAlignment(Op op, Type value) {
  constexpr unsigned most = 16;
  if (!isVectorType(value))
    return op.removeAlignAttr(), void();
  unsigned scalar = getStorageBytes(getScalarOf(value));
  uint64_t known = most;
  if (auto root = dyn_cast<BlockArgument>(getRootArray(op.getArray())))
    known = kernel.getAlignment(root.getArgNumber());
  uint64_t step = scalar;
  // A static array begins at a multiple of 16 bytes.
  ArrayRef<int64_t> shape = getStaticShape(op.getArray().getType());
  unsigned operand = op.getIndices().size();
  for (int dim = int(op.getStaticIndices().size()) - 1; dim >= 0; --dim) {
    int64_t literal = op.getStaticIndices()[dim];
    uint64_t factor = ShapedType::isDynamic(literal) ? getKnownFactor(op.getIndices()[--operand])
                      : literal                      ? literal & -literal
                                                     : most;
    known = std::min(known, std::min<uint64_t>(factor, most) * step);
    if (dim > 0)
      step *= shape[dim] & -shape[dim];
  }
  known = std::max<uint64_t>({std::min<uint64_t>(known, most), scalar, op.getAlign().value_or(1)});
  op.setAlign(uint32_t(known));
}

/// A load of scalars that do not stand side by side.
void Resolver::splitLoad(LoadOp op, const Part &part) {
  SmallVector<Value> scalars;
  for (unsigned i = 0; i < getNumScalars(op.getType()); ++i) {
    Number index = at(part, op.getIndices(), op.getStaticIndices(), i);
    Value otherwise = op.getOtherwise() ? b.extract(op.getOtherwise(), i) : Value();
    scalars.push_back(LoadOp::create(b.builder, op.getLoc(), part.element, flatten(part.root, part.element),
                                     index.asOperands(), b.builder.getDenseI64ArrayAttr(index.getLiteral()),
                                     op.getPredicate(), otherwise, op.getIsVolatileAttr(), /*align=*/nullptr));
  }
  op.replaceAllUsesWith(b.combine(op.getType(), scalars));
  op.erase();
}

void Resolver::splitStore(StoreOp op, const Part &part) {
  for (unsigned i = 0; i < getNumScalars(op.getValue().getType()); ++i) {
    Number index = at(part, op.getIndices(), op.getStaticIndices(), i);
    StoreOp::create(b.builder, op.getLoc(), b.extract(op.getValue(), i), flatten(part.root, part.element),
                    index.asOperands(), b.builder.getDenseI64ArrayAttr(index.getLiteral()), op.getPredicate(),
                    op.getIsVolatileAttr(), /*align=*/nullptr);
  }
  op.erase();
}

template <typename Op>
void Resolver::access(Op op, MutableOperandRange array, MutableOperandRange indices, StringAttr literalsName) {
  Value accessed = OperandRange(array).front();
  if (!isa<BufferType>(accessed.getType()))
    return;
  const Part &part = parts.find(accessed)->second;
  if (part.isPlain())
    return array.assign(part.root);
  b.setBefore(op);
  auto literals = op->template getAttrOfType<DenseI64ArrayAttr>(literalsName);
  if constexpr (std::is_same_v<Op, LoadOp>) {
    if (op.getType() != part.element && !part.strides.back().is(1))
      return splitLoad(op, part);
  } else if constexpr (std::is_same_v<Op, StoreOp>) {
    if (op.getValue().getType() != part.element && !part.strides.back().is(1))
      return splitStore(op, part);
  }
  Number index = at(part, OperandRange(indices), literals);
  op->setAttr(literalsName, b.builder.getDenseI64ArrayAttr(index.getLiteral()));
  array.assign(flatten(part.root, getScalarOf(part.element)));
  indices.assign(index.asOperands());
}

void Resolver::replace(SizeOp op) {
  const Part &part = parts.find(op.getBuffer())->second;
  auto argument = dyn_cast<BlockArgument>(op.getBuffer());
  std::optional<uint32_t> dim = op.getDim();
  unsigned rank = part.extents.size();
  if (argument && (dim || rank == 1)) {
    if (rank == 1)
      op.removeDimAttr();
    return;
  }
  b.setBefore(op);
  Number size = dim ? part.extents[*dim] : Number(1);
  for (unsigned i = 0; !dim && i < rank; ++i)
    size = b.mul(size, part.extents[i]);
  op.replaceAllUsesWith(b.toValue(size, op.getType()));
  op.erase();
}

/// Elements of several scalars become a last dimension.
template <typename AllocOp> void Resolver::flattenAlloc(AllocOp alloc) {
  auto type = alloc.getType();
  if (isScalarType(type.getElementType()))
    return;
  SmallVector<int64_t> shape(type.getShape());
  shape.push_back(getNumScalars(type.getElementType()));
  alloc.getResult().setType(decltype(type)::get(kernel.getContext(), shape, getScalarOf(type.getElementType())));
  auto extend = [&](auto op) {
    SmallVector<int64_t> literals(op.getStaticIndices());
    literals.push_back(0);
    op.setStaticIndices(literals);
  };
  for (Operation *user : alloc->getUsers())
    llvm::TypeSwitch<Operation *>(user).Case<LoadOp, StoreOp>(extend).Case([&](AsyncCopyOp copy) {
      SmallVector<int64_t> literals(copy.getStaticTarget());
      literals.push_back(0);
      copy.setStaticTarget(literals);
    });
}

LogicalResult Resolver::visit(Operation *op) {
  auto atomic = [&](auto access) {
    this->access(access, access.getArrayMutable(), access.getIndicesMutable(), access.getStaticIndicesAttrName());
    return success();
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<ViewOp, ReinterpretOp>([&](auto op) { return resolve(op); })
      .Case([&](SizeOp size) { return replace(size), success(); })
      .Case<SharedAllocOp, PrivateAllocOp>([&](auto alloc) { return flattenAlloc(alloc), success(); })
      .Case<LoadOp, StoreOp, AtomicRMWOp, AtomicCASOp, AtomicLoadOp, AtomicStoreOp>(atomic)
      .Case([&](AsyncCopyOp copy) -> LogicalResult {
        const Part &part = parts.find(copy.getSource())->second;
        unsigned scalars = getNumScalars(part.element);
        if (copy.getElements() > 1 && !part.strides.back().is(scalars))
          return copy.emitOpError() << "copies neighbours of a view with strides, expected them side by side";
        copy.setElements(copy.getElements() * scalars);
        access(copy, copy.getSourceMutable(), copy.getSourceIndicesMutable(), copy.getStaticSourceAttrName());
        return success();
      })
      .Default([&](Operation *other) { return refuse(other); });
}

LogicalResult Resolver::run() {
  for (BlockArgument argument : kernel.getBodyBlock().getArguments())
    if (isa<BufferType>(argument.getType()))
      parts[argument] = describe(argument);
  SmallVector<Operation *> ops;
  kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!b.isOwn(op))
      ops.push_back(op);
  });
  for (Operation *op : ops)
    if (failed(visit(op)))
      return failure();
  for (Operation *op : llvm::reverse(done))
    op->erase();
  b.eraseUnused();
  kernel.getBody().walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op))
      setAlignment(load, load.getType());
    else if (auto store = dyn_cast<StoreOp>(op))
      setAlignment(store, store.getValue().getType());
  });
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

static bool isNeeded(KernelOp kernel) {
  auto isPlain = [](Type type) {
    auto buffer = dyn_cast<BufferType>(type);
    return !isVectorType(type) && !(buffer && buffer.getRank() > 1) &&
           !(isArrayType(type) && isVectorType(getElementType(type)));
  };
  if (!llvm::all_of(kernel.getBodyBlock().getArgumentTypes(), isPlain))
    return true;
  return kernel.getBody()
      .walk([&](Operation *op) {
        bool isAligned = op->hasAttr("align");
        bool isOther = isa<ViewOp, ReinterpretOp>(op) || isAligned || !llvm::all_of(op->getResultTypes(), isPlain) ||
                       !llvm::all_of(op->getOperandTypes(), isPlain);
        return isOther ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Buffers of SPIR-V are smaller than 4 GiB, and 64-bit integers a feature of its devices: 32 bits do, but for bytes
/// that a kernel subscripts by 64 bits.
static unsigned getIndexBits(KernelOp kernel, const Target &target) {
  if (target.getBackend() != Backend::SPIRV)
    return 64;
  bool isLong = false;
  kernel.getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      auto buffer = dyn_cast<BufferType>(operand.getType());
      if (buffer && getStorageBytes(getScalarOf(buffer.getElementType())) == 1)
        isLong |= llvm::any_of(op->getOperandTypes(), [](Type type) { return type.isInteger(64); });
    }
  });
  return isLong ? 64 : 32;
}

void ResolveViewsPass::runOnModule() {
  for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
    if (!isNeeded(kernel))
      continue;
    Type index = IntegerType::get(&getContext(), getIndexBits(kernel, target));
    if (failed(Resolver(kernel, index).run()))
      return signalPassFailure();
  }
}

std::unique_ptr<Pass> createResolveViewsPass(const Target &target) {
  return std::make_unique<ResolveViewsPass>(target);
}

} // namespace qd
