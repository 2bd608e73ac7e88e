//===- KernelLowering.cpp - one kernel's ops to SPIR-V --------------------------------===//

#include "codegen/spirv/KernelLowering.h"

#include "ir/Arrays.h"
#include "ir/Place.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace spv;

namespace qd::spirv {

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::run() {
  interface = describeKernel(kernel, target);
  if (failed(checkParameters(kernel, interface, target)))
    return failure();
  b.require(Capability::Shader);
  function = b.beginFunction();
  b.setName(function, interface.name);
  declareSharedArrays();
  declarePrivateArrays();
  declareBuffers();
  declareParameters();

  b.setLine(getLine(kernel));
  // Vulkan has full subgroups only where the workgroup is a multiple of their size. The invocations that fill up
  // the last one leave here, so that ballots and votes do not see them. They share their subgroup with real
  // threads: every subgroup still reaches every barrier.
  Id end = 0;
  if (interface.localSize != kernel.getNumThreads()) {
    Id exists = emitBool(Op::OpULessThan, {getThreadIndex(), getU32(kernel.getNumThreads())});
    Id start = b.createId();
    end = b.createId();
    b.emitVoid(Op::OpSelectionMerge, {end, uint32_t(SelectionControlMask::MaskNone)});
    b.emitVoid(Op::OpBranchConditional, {exists, start, end});
    b.startBlock(start);
  }
  if (failed(lowerBlock(kernel.getBodyBlock())))
    return failure();
  b.setLine(getLine(kernel.getBodyBlock().getTerminator()));
  if (end) {
    b.emitVoid(Op::OpBranch, end);
    b.startBlock(end);
  }
  b.emitVoid(Op::OpReturn);
  b.endFunction();
  for (auto [helper, width, toOdd] : fmaHelpers)
    if (failed(lowerFmaHelper(helper, width, toOdd)))
      return failure();
  addModes();
  return success();
}

UniformityAnalysis &KernelLowering::getUniformity() {
  if (!uniformity)
    uniformity.emplace(kernel, target.subgroupSize);
  return *uniformity;
}

bool KernelLowering::hasConvergentOps() {
  if (!isConvergent)
    isConvergent = kernel.getBody()
                       .walk([](Operation *op) {
                         return op->hasTrait<Convergent>() ? WalkResult::interrupt() : WalkResult::advance();
                       })
                       .wasInterrupted();
  return *isConvergent;
}

void KernelLowering::addModes() {
  // Before SPIR-V 1.4 only inputs and outputs belong to an entry point's interface.
  SmallVector<Id> variables = interfaceVariables;
  if (b.getMinorVersion() >= 4)
    variables.append(sharedVariables);
  b.addEntryPoint(function, interface.name, variables);
  b.addExecutionMode(function, ExecutionMode::LocalSize, {interface.localSize, 1, 1});
  // Subnormals: DenormPreserve is left to the runtime, which asks for it where the device offers it. lavapipe keeps
  // all of them and offers nothing, NVIDIA offers it for f16.
  for (unsigned width : {16u, 32u, 64u}) {
    if (!(floatWidths & width))
      continue;
    b.requireExtension("SPV_KHR_float_controls", /*coreSince=*/4);
    b.require(Capability::SignedZeroInfNanPreserve);
    b.require(Capability::RoundingModeRTE);
    b.addExecutionMode(function, ExecutionMode::SignedZeroInfNanPreserve, width);
    b.addExecutionMode(function, ExecutionMode::RoundingModeRTE, width);
  }
}

//===----------------------------------------------------------------------===//
// Arguments and shared arrays
//===----------------------------------------------------------------------===//

void KernelLowering::declareSharedArrays() {
  SharedStorage storage(kernel, target);
  for (const SharedStorage::Piece &piece : storage.getPieces()) {
    SharedAllocOp first = piece.arrays.front();
    Type element = first.getType().getElementType();
    bool is64Bit = element.getIntOrFloatBitWidth() == 64;
    bool isWords = qd::isArrayOfWords(first, target);
    Id type = isWords ? b.getIntType(is64Bit ? 64 : 32) : getType(element);
    int64_t elements = 0;
    for (SharedAllocOp alloc : piece.arrays)
      elements = std::max(elements, alloc.getType().getNumElements());
    Id variable = b.createVariable(StorageClass::Workgroup, b.getArrayType(type, elements));
    sharedVariables.push_back(variable);
    for (SharedAllocOp alloc : piece.arrays) {
      set(alloc, variable);
      if (isWords)
        arraysOfWords.insert(alloc);
    }
  }
}

/// An i1 takes a word: narrower integers are a feature of the device.
void KernelLowering::declarePrivateArrays() {
  kernel.getBody().walk([&](PrivateAllocOp alloc) {
    Type element = alloc.getType().getElementType();
    Id type = element.isInteger(1) ? getU32Type() : getType(element);
    set(alloc, b.createLocalVariable(b.getArrayType(type, alloc.getType().getNumElements())));
  });
}

Id KernelLowering::getTable(ConstantOp table) {
  Id &variable = tables[table];
  if (variable)
    return variable;
  Type element = table.getArrayType().getElementType();
  unsigned width = element.isInteger(1) ? 32 : element.getIntOrFloatBitWidth(), bytes = getStorageBytes(element);
  bool isFloat = isa<FloatType>(element) && !element.isBF16();
  Id type = element.isInteger(1) ? getU32Type() : getType(element);
  std::vector<uint8_t> data = table.getBytes();
  SmallVector<Id> elements;
  for (size_t at = 0; at < data.size(); at += bytes) {
    uint64_t bits = 0;
    memcpy(&bits, data.data() + at, bytes);
    elements.push_back(isFloat ? b.getFloat(width, bits) : b.getInt(width, bits));
  }
  Id array = b.getArrayType(type, elements.size());
  variable = b.createVariable(StorageClass::Private, array, b.getComposite(array, elements));
  sharedVariables.push_back(variable);
  return variable;
}

namespace {
/// What a kernel does to a buffer argument.
struct BufferUse {
  bool reads = false, writes = false, noAlias = false;
};
} // namespace

static BufferUse getUse(KernelOp kernel, unsigned arg) {
  BufferUse use;
  use.noAlias = kernel.getAccess(arg) & KernelOp::NoAlias;
  walkArrayUsers(kernel.getArg(arg), [&](Value, Operation *user) {
    if (isa<SizeOp>(user))
      return;
    use.reads |= !isa<StoreOp>(user);
    use.writes |= !isa<LoadOp, AtomicLoadOp>(user);
  });
  return use;
}

void KernelLowering::declareBuffers() {
  SmallVector<BufferUse> uses(kernel.getNumArgs());
  for (unsigned arg = 0; arg < kernel.getNumArgs(); ++arg)
    if (interface.args[arg].isBuffer)
      uses[arg] = getUse(kernel, arg);
  auto mayAlias = [&](const BufferUse &x, const BufferUse &y) {
    return &x != &y && !x.noAlias && !y.noAlias && ((x.writes && (y.reads || y.writes)) || (x.reads && y.writes));
  };
  bool hasBarrier = kernel.getBody()
                        .walk([](Operation *op) {
                          auto order = op->getAttrOfType<OrderAttr>("order");
                          bool orders = isa<BlockSyncOp, SubgroupSyncOp, SubgroupMemFenceOp, BlockMemFenceOp,
                                            GridMemFenceOp>(op) ||
                                        (order && order.getValue() != Order::relaxed);
                          return orders ? WalkResult::interrupt() : WalkResult::advance();
                        })
                        .wasInterrupted();

  for (unsigned arg = 0; arg < kernel.getNumArgs(); ++arg) {
    const BufferUse &use = uses[arg];
    if (!use.reads && !use.writes)
      continue;
    SmallVector<Id> variables;
    SmallVector<Value> parts = {kernel.getArg(arg)};
    for (Operation *user : kernel.getArg(arg).getUsers())
      if (isa<ReinterpretOp>(user))
        parts.push_back(user->getResult(0));
    for (Value part : parts)
      if (llvm::any_of(part.getUsers(), [](Operation *user) { return !isa<SizeOp, ReinterpretOp>(user); }))
        declarePart(arg, part, variables);
    bool isCoherent = use.reads && use.writes && hasBarrier;
    // SPIR-V takes variables not to overlap unless they say so.
    bool aliased =
        variables.size() > 1 || llvm::any_of(uses, [&](const BufferUse &other) { return mayAlias(use, other); });
    for (Id variable : variables) {
      b.decorate(variable, aliased ? Decoration::Aliased : Decoration::Restrict);
      if (!use.writes)
        b.decorate(variable, Decoration::NonWritable);
      else if (!use.reads)
        b.decorate(variable, Decoration::NonReadable);
      // Coherent accesses pass by a compute unit's own cache (on NVIDIA each becomes an access to L2), so only
      // buffers through which threads can exchange values carry it.
      if (isCoherent)
        b.decorate(variable, Decoration::Coherent);
    }
  }
}

/// The variables of an argument, or of its bytes as other elements: pointers are no values that could be cast.
void KernelLowering::declarePart(unsigned arg, Value part, SmallVectorImpl<Id> &variables) {
  Type element = cast<BufferType>(part.getType()).getElementType();
  unsigned bytes = getStorageBytes(element);
  Id variable = declareBuffer(arg, element.isInteger(1) ? b.getIntType(8) : getType(element), bytes);
  if (variables.empty())
    b.setName(variable, interface.args[arg].name);
  variables.push_back(variable);
  set(part, variable);
  if (!hasAtomicAccesses(part))
    return;
  unsigned wordBytes = bytes == 8 ? 8 : 4;
  if (!element.isInteger(32) && !element.isInteger(64))
    variables.push_back(declareBuffer(arg, b.getIntType(8 * wordBytes), wordBytes));
  words[part] = variables.back();
}

/// A variable of the argument's binding.
Id KernelLowering::declareBuffer(unsigned arg, Id element, unsigned bytes) {
  if (bytes == 1) {
    b.require(Capability::StorageBuffer8BitAccess);
    b.requireExtension("SPV_KHR_8bit_storage", /*coreSince=*/5);
  } else if (bytes == 2) {
    b.require(Capability::StorageBuffer16BitAccess);
  }
  Id variable = b.createVariable(StorageClass::StorageBuffer, b.createBufferType(element, bytes));
  b.decorate(variable, Decoration::DescriptorSet, 0u);
  b.decorate(variable, Decoration::Binding, interface.args[arg].binding);
  sharedVariables.push_back(variable);
  return variable;
}

void KernelLowering::declareParameters() {
  SmallVector<Id> members;
  SmallVector<uint32_t> offsets;
  parameters.resize(kernel.getNumArgs());
  for (unsigned arg = 0; arg < kernel.getNumArgs(); ++arg) {
    const ArgInterface &argument = interface.args[arg];
    if (argument.isBuffer && !argument.passesSize)
      continue;
    Id type = argument.isBuffer ? b.getVectorType(getU32Type(), 2)
              : argument.type.getIntOrFloatBitWidth() >= 32 ? getType(argument.type)
                                                            : getU32Type();
    parameters[arg] = {type, unsigned(members.size())};
    for (unsigned dim = 0; dim < argument.rank; ++dim) {
      members.push_back(type);
      offsets.push_back(argument.offset + 8 * dim);
    }
  }
  if (members.empty())
    return;
  if (interface.paramsInBuffer)
    parameterStorage = StorageClass::StorageBuffer;
  parameterBlock = b.createVariable(parameterStorage, b.getBlockType(members, offsets));
  b.setName(parameterBlock, "params");
  sharedVariables.push_back(parameterBlock);
  if (interface.paramsInBuffer) {
    b.decorate(parameterBlock, Decoration::DescriptorSet, 0u);
    b.decorate(parameterBlock, Decoration::Binding, interface.paramsBinding);
    b.decorate(parameterBlock, Decoration::NonWritable);
    b.decorate(parameterBlock, Decoration::Restrict);
  }
  for (unsigned arg = 0; arg < kernel.getNumArgs(); ++arg)
    if (!interface.args[arg].isBuffer && !kernel.getArg(arg).use_empty())
      set(kernel.getArg(arg), b.emitInPrologue([&] { return loadParameter(arg, interface.args[arg].type); }));
}

Id KernelLowering::loadParameter(unsigned arg, Type type) {
  auto [memberType, member] = parameters[arg];
  Id pointer = emit(Op::OpAccessChain, b.getPointerType(parameterStorage, memberType),
                    {parameterBlock, getU32(member)});
  Id value = emit(Op::OpLoad, memberType, pointer);
  if (type.getIntOrFloatBitWidth() >= 32)
    return value;
  if (type.isInteger(1))
    return emitBool(Op::OpINotEqual, {value, getU32(0)});
  if (!type.isF16())
    return emit(Op::OpUConvert, getType(type), value);
  // A cast to a vector needs no 16-bit integers of the device.
  Id half = getType(type);
  Id pair = emit(Op::OpBitcast, b.getVectorType(half, 2), value);
  return emit(Op::OpCompositeExtract, half, {pair, 0});
}

Id KernelLowering::getSizeHalves(BlockArgument buffer, unsigned dim) {
  auto [type, member] = parameters[buffer.getArgNumber()];
  Id pointer =
      emit(Op::OpAccessChain, b.getPointerType(parameterStorage, type), {parameterBlock, getU32(member + dim)});
  return emit(Op::OpLoad, type, pointer);
}

//===----------------------------------------------------------------------===//
// Built-in inputs
//===----------------------------------------------------------------------===//

Id KernelLowering::cached(Id &slot, llvm::function_ref<Id()> generate) {
  if (!slot) {
    Id id = b.emitInPrologue(generate);
    slot = id;
  }
  return slot;
}

Id KernelLowering::getInput(BuiltIn builtIn, Id type) {
  if (Id known = inputs.lookup(unsigned(builtIn)))
    return known;
  Id variable = b.createVariable(StorageClass::Input, type);
  b.decorate(variable, Decoration::BuiltIn, unsigned(builtIn));
  interfaceVariables.push_back(variable);
  Id value = b.emitInPrologue([&] { return emit(Op::OpLoad, type, variable); });
  inputs[unsigned(builtIn)] = value;
  return value;
}

Id KernelLowering::getInputComponent(BuiltIn builtIn, unsigned dim) {
  unsigned key = unsigned(builtIn) | (dim + 1) << 16;
  if (Id known = inputs.lookup(key))
    return known;
  Id vector = getInput(builtIn, b.getVectorType(getU32Type(), 3));
  Id value = b.emitInPrologue([&] { return emitU32(Op::OpCompositeExtract, {vector, dim}); });
  inputs[key] = value;
  return value;
}

Id KernelLowering::getBlockId(unsigned dim) { return getInputComponent(BuiltIn::WorkgroupId, dim); }
Id KernelLowering::getGridDim(unsigned dim) { return getInputComponent(BuiltIn::NumWorkgroups, dim); }

Id KernelLowering::getLane() {
  b.require(Capability::GroupNonUniform);
  return getInput(BuiltIn::SubgroupLocalInvocationId, getU32Type());
}

bool KernelLowering::hasSubgroupOps() {
  return kernel.getBody()
      .walk([](Operation *op) {
        return op->getName().getStringRef().starts_with("qd.subgroup.") ? WalkResult::interrupt()
                                                                         : WalkResult::advance();
      })
      .wasInterrupted();
}

Id KernelLowering::getThreadIndex() {
  return cached(threadIndex, [&]() -> Id {
    if (!hasSubgroupOps())
      return getInput(BuiltIn::LocalInvocationIndex, getU32Type());
    // Vulkan does not say which invocations make up a subgroup. Where it matters, threads are numbered by their
    // subgroup and lane: then lane = thread index mod subgroup size holds on every device.
    Id lane = getLane();
    Id subgroup = getInput(BuiltIn::SubgroupId, getU32Type());
    Id first = emitU32(Op::OpIMul, {subgroup, getU32(target.subgroupSize)});
    return emitU32(Op::OpIAdd, {first, lane});
  });
}

Id KernelLowering::getThreadId(unsigned dim) {
  unsigned extent = kernel.getBlockDim(dim), below = 1, above = 1;
  for (unsigned d = 0; d < dim; ++d)
    below *= kernel.getBlockDim(d);
  for (unsigned d = dim + 1; d < 3; ++d)
    above *= kernel.getBlockDim(d);
  if (extent == 1)
    return getU32(0);
  return cached(threadIds[dim], [&] {
    Id id = getThreadIndex();
    if (below > 1)
      id = emitU32(Op::OpUDiv, {id, getU32(below)});
    if (above > 1)
      id = emitU32(Op::OpUMod, {id, getU32(extent)});
    return id;
  });
}

//===----------------------------------------------------------------------===//
// Types and constants
//===----------------------------------------------------------------------===//

Id KernelLowering::getFloatType(unsigned width) {
  floatWidths |= width;
  if (width == 16)
    b.require(Capability::Float16);
  else if (width == 64)
    b.require(Capability::Float64);
  return b.getFloatType(width);
}

Id KernelLowering::getType(Type scalar) {
  unsigned width = scalar.getIntOrFloatBitWidth();
  if (isa<FloatType>(scalar) && !scalar.isBF16())
    return getFloatType(width);
  if (width == 1)
    return b.getBoolType();
  if (width == 8)
    b.require(Capability::Int8);
  else if (width == 16)
    b.require(Capability::Int16);
  else if (width == 64)
    b.require(Capability::Int64);
  return b.getIntType(width);
}

Id KernelLowering::getConstant(TypedAttr value) {
  Type type = value.getType();
  getType(type);
  unsigned width = type.getIntOrFloatBitWidth();
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return width == 1 ? b.getBool(!integer.getValue().isZero()) : b.getInt(width, integer.getValue().getZExtValue());
  APFloat number = cast<FloatAttr>(value).getValue();
  uint64_t bits = number.bitcastToAPInt().getZExtValue();
  Id constant = type.isBF16() ? b.getInt(16, bits) : b.getFloat(width, bits);
  return number.isZero() ? cached(hiddenZeros[value], [&] { return hide(constant, type); }) : constant;
}

//===----------------------------------------------------------------------===//
// Conversions that several families need
//===----------------------------------------------------------------------===//

Id KernelLowering::resize(Id value, unsigned fromWidth, unsigned width) {
  if (fromWidth == width)
    return value;
  if (width == 64)
    b.require(Capability::Int64);
  return emit(Op::OpUConvert, b.getIntType(width), value);
}

Id KernelLowering::toHalves(Id value) { return emit(Op::OpBitcast, b.getVectorType(getU32Type(), 2), value); }
Id KernelLowering::getHalf(Id halves, unsigned index) { return emitU32(Op::OpCompositeExtract, {halves, index}); }
Id KernelLowering::fromHalves(Id halves, Type type) { return emit(Op::OpBitcast, getType(type), halves); }

LogicalResult KernelLowering::setResult(Operation *op, Id id) {
  Value result = op->getResult(0);
  bool isOnlyStored = llvm::all_of(result.getUsers(), [](Operation *user) { return isa<StoreOp>(user); });
  if (roundedHalves.contains(id) && !isOnlyStored)
    id = hide(id, result.getType(), Trust::halves);
  set(result, id);
  return success();
}

Id KernelLowering::toF32(Id value, Type type) {
  if (type.isF32())
    return value;
  Id f32 = getFloatType(32);
  if (!type.isBF16())
    return emit(Op::OpFConvert, f32, value);
  Id bits = emitU32(Op::OpShiftLeftLogical, {resize(value, 16, 32), getU32(16)});
  return emit(Op::OpBitcast, f32, bits);
}

Id KernelLowering::fromF32(Id value, Type type) {
  if (type.isF32())
    return value;
  if (!type.isBF16()) {
    Id half = emit(Op::OpFConvert, getType(type), value);
    roundedHalves.insert(half);
    return half;
  }
  // To nearest, ties to even; a NaN stays one whose quiet bit is set.
  Id bits = emitU32(Op::OpBitcast, value);
  Id high = emitU32(Op::OpShiftRightLogical, {bits, getU32(16)});
  Id odd = emitU32(Op::OpBitwiseAnd, {high, getU32(1)});
  Id biased = emitU32(Op::OpIAdd, {emitU32(Op::OpIAdd, {bits, getU32(0x7fff)}), odd});
  Id rounded = emitU32(Op::OpShiftRightLogical, {biased, getU32(16)});
  Id quiet = emitU32(Op::OpBitwiseOr, {high, getU32(0x40)});
  Id result = select(getU32Type(), emitBool(Op::OpIsNan, value), quiet, rounded);
  return emit(Op::OpUConvert, getType(type), result);
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::unsupported(Operation *op) {
  return op->emitError() << "'" << op->getName() << "' is not supported on " << target.str();
}

LogicalResult KernelLowering::unsupported(Operation *op, Type type) {
  return op->emitError() << "'" << op->getName() << "' on " << type << " is not supported on " << target.str();
}

static const OpRow *findRow(Operation *op) {
  static const llvm::DenseMap<TypeID, OpRow> rows = [] {
    llvm::DenseMap<TypeID, OpRow> rows;
    for (ArrayRef<OpRow> family : {getIntegerRows(), getFloatRows(), getCastRows(), getMathRows(),
                                   getControlFlowRows(), getIndexRows(), getMemoryRows(), getAtomicRows(),
                                   getSubgroupRows()})
      for (const OpRow &row : family)
        rows.try_emplace(row.op, row);
    return rows;
  }();
  auto it = rows.find(op->getName().getTypeID());
  return it == rows.end() ? nullptr : &it->second;
}

LogicalResult KernelLowering::lowerOp(Operation *op) {
  const OpRow *row = findRow(op);
  if (!row)
    return unsupported(op);
  // Arrays are named where they are used: they are no values that code could choose between.
  bool isMemoryOp = isa<LoadOp, StoreOp, SizeOp, SharedAllocOp, PrivateAllocOp, ConstantGetOp, ReinterpretOp,
                        AtomicRMWOp, AtomicCASOp, AtomicLoadOp, AtomicStoreOp>(op);
  for (Value operand : op->getOperands())
    if (!isScalarType(operand.getType()) && !(isMemoryOp && isArrayType(operand.getType())))
      return unsupported(op, operand.getType());
  for (Value result : op->getResults())
    if (!isScalarType(result.getType()) && !isa<SharedAllocOp, PrivateAllocOp, ConstantGetOp, ReinterpretOp>(op))
      return unsupported(op, result.getType());
  return row->lower(*this, op, *row);
}

Line KernelLowering::getLine(Operation *op) {
  FileLineColRange place = debug ? findPlace(op->getLoc()) : FileLineColRange();
  return place ? Line{b.getFile(place.getFilename()), place.getStartLine(), place.getStartColumn()} : Line();
}

LogicalResult KernelLowering::lowerBlock(Block &block) {
  Line around = b.getLine();
  for (Operation &op : block) {
    b.setLine(getLine(&op));
    if (failed(lowerOp(&op)))
      return failure();
  }
  b.setLine(around);
  return success();
}

} // namespace qd::spirv
