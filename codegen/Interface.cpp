//===- Interface.cpp - argument layout and its JSON ---------------------------------===//

#include "codegen/Interface.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace qd {

/// Push constants that every Vulkan device has.
static constexpr unsigned pushConstantBytes = 128;

static void layOutParameters(KernelInterface &interface) {
  unsigned bindings = 0, bytes = 0;
  auto place = [&](unsigned size) {
    unsigned offset = llvm::alignTo(bytes, size);
    bytes = offset + size;
    return offset;
  };
  for (ArgInterface &arg : interface.args) {
    if (arg.isBuffer) {
      arg.binding = bindings++;
      if (arg.passesSize) {
        arg.offset = place(8);
        for (unsigned dim = 1; dim < arg.rank; ++dim)
          place(8);
      }
    } else {
      arg.offset = place(arg.type.getIntOrFloatBitWidth() == 64 ? 8 : 4);
    }
  }
  interface.paramsBytes = bytes;
  interface.paramsInBuffer = bytes > pushConstantBytes;
  interface.paramsBinding = bindings;
}

/// The feature that values of a type need; SPIR-V computes bf16 in 16-bit integers.
static StringRef getFeature(Type type, const Target &target) {
  if (type.isInteger(64))
    return "int64";
  if (type.isInteger(16))
    return "int16";
  if (type.isInteger(8))
    return "int8";
  if (type.isF64())
    return "float64";
  if (type.isF16())
    return "float16";
  if (type.isBF16())
    return target.getBackend() == Backend::SPIRV ? "int16" : "bfloat16";
  return "";
}

/// The subgroup operations of a Vulkan device that an op is carried out by, one of the features that devices list.
static StringRef getSubgroupFeature(Operation *op) {
  auto shuffle = [](auto shuffle, StringRef ofConstant) {
    return shuffle.getConstantLane() && !shuffle.getTile() ? ofConstant : "subgroup_shuffle";
  };
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([&](ShuffleOp op) { return shuffle(op, "subgroup_ballot"); })
      .Case([&](BroadcastOp op) { return shuffle(op, "subgroup_ballot"); })
      .Case<ShuffleUpOp, ShuffleDownOp>(
          [](auto op) { return op.getConstantLane() ? "subgroup_shuffle_relative" : "subgroup_shuffle"; })
      .Case<ShuffleXorOp>([](Operation *) { return "subgroup_shuffle"; })
      .Case<BallotOp, ActiveMaskOp>([](Operation *) { return "subgroup_ballot"; })
      .Case<AllOp, AnyOp>([](Operation *) { return "subgroup_vote"; })
      .Case<ReduceAllOp, InclusiveScanOp, ExclusiveScanOp>([](Operation *) { return "subgroup_arithmetic"; })
      .Default([](Operation *) { return ""; });
}

bool isCooperative(KernelOp kernel) {
  return kernel.getBody().walk([](GridSyncOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// The feature that 64-bit atomic accesses of the array need; on SPIR-V alone are they one.
static StringRef getAtomicFeature(Value array, Type element, const Target &target) {
  if (target.getBackend() != Backend::SPIRV || getScalarOf(element).getIntOrFloatBitWidth() != 64 ||
      !hasAtomicAccesses(array))
    return "";
  return isa<SharedType>(array.getType()) ? "shared_int64_atomics" : "int64_atomics";
}

static std::vector<std::string> collectFeatures(KernelOp kernel, const Target &target) {
  llvm::SetVector<StringRef> features;
  auto note = [&](Type type) {
    if (auto buffer = dyn_cast<BufferType>(type))
      type = buffer.getElementType();
    else if (auto shared = dyn_cast<SharedType>(type))
      type = shared.getElementType();
    type = getScalarOf(type);
    if (StringRef feature = getFeature(type, target); !feature.empty())
      features.insert(feature);
  };
  auto noteAtomics = [&](Value array, Type element) {
    if (StringRef feature = getAtomicFeature(array, element, target); !feature.empty())
      features.insert(feature);
  };
  for (BlockArgument argument : kernel.getBodyBlock().getArguments()) {
    note(argument.getType());
    if (auto buffer = dyn_cast<BufferType>(argument.getType()))
      noteAtomics(argument, buffer.getElementType());
  }
  kernel.getBody().walk([&](ReinterpretOp part) { noteAtomics(part, part.getType().getElementType()); });
  kernel.getBody().walk([&](SharedAllocOp alloc) { noteAtomics(alloc, alloc.getType().getElementType()); });
  kernel.getBody().walk([&](Operation *op) {
    if (target.getBackend() == Backend::SPIRV && op->getName().getStringRef().starts_with("qd.subgroup.")) {
      features.insert("subgroup_basic");
      if (StringRef feature = getSubgroupFeature(op); !feature.empty())
        features.insert(feature);
    }
    llvm::for_each(op->getResultTypes(), note);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArgumentTypes(), note);
  });
  SmallVector<StringRef> sorted(features.begin(), features.end());
  llvm::sort(sorted);
  return {sorted.begin(), sorted.end()};
}

KernelInterface describeKernel(KernelOp kernel, const Target &target) {
  KernelInterface interface;
  interface.name = kernel.getSymName().str();
  for (unsigned dim = 0; dim < 3; ++dim)
    interface.block[dim] = kernel.getBlockDim(dim);
  interface.subgroupSize = target.subgroupSize;
  bool isSPIRV = target.getBackend() == Backend::SPIRV;
  interface.localSize = kernel.getNumThreads();
  if (isSPIRV)
    interface.localSize = llvm::alignTo(interface.localSize, target.subgroupSize);
  interface.sharedBytes = SharedStorage(kernel, target).getBytes();
  if (interface.sharedBytes > target.getStaticSharedBytes())
    interface.dynamicSharedBytes = interface.sharedBytes;
  for (unsigned i = 0; i < kernel.getNumArgs(); ++i) {
    ArgInterface arg;
    arg.name = kernel.getArgName(i).str();
    arg.type = kernel.getArg(i).getType();
    arg.access = kernel.getAccess(i);
    if (auto buffer = dyn_cast<BufferType>(arg.type)) {
      arg.isBuffer = true;
      arg.type = buffer.getElementType();
      arg.rank = buffer.getRank();
      arg.align = kernel.getAlignment(i);
      arg.passesSize = llvm::any_of(kernel.getArg(i).getUsers(), llvm::IsaPred<SizeOp>);
    }
    interface.args.push_back(std::move(arg));
  }
  layOutParameters(interface);
  interface.isResizable = kernel.getResizable();
  interface.isCooperative = isCooperative(kernel);
  interface.features = collectFeatures(kernel, target);
  return interface;
}

/// Bytes of the arguments where buffers are passed as addresses.
static unsigned countDirectBytes(const KernelInterface &interface) {
  unsigned bytes = 0;
  auto place = [&](unsigned size) { bytes = llvm::alignTo(bytes, size) + size; };
  for (const ArgInterface &arg : interface.args) {
    place(arg.isBuffer ? 8 : getStorageBytes(arg.type));
    for (unsigned dim = 0; arg.isBuffer && arg.passesSize && dim < arg.rank; ++dim)
      place(8);
  }
  return bytes;
}

LogicalResult checkParameters(KernelOp kernel, const KernelInterface &interface, const Target &target) {
  constexpr unsigned limit = 4096;
  unsigned bytes = target.getBackend() == Backend::SPIRV ? interface.paramsBytes : countDirectBytes(interface);
  if (bytes <= limit)
    return success();
  return kernel.emitOpError() << "arguments take " << bytes << " bytes, the limit is " << limit << " on "
                              << target.str();
}

static std::string printType(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::string printInterface(llvm::ArrayRef<KernelInterface> kernels) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  json.object([&] {
    json.attribute("version", 1);
    json.attributeArray("kernels", [&] {
      for (const KernelInterface &kernel : kernels)
        json.object([&] {
          json.attribute("name", kernel.name);
          json.attributeArray("block", [&] {
            for (unsigned extent : kernel.block)
              json.value(extent);
          });
          json.attribute("subgroup_size", kernel.subgroupSize);
          if (kernel.localSize != kernel.block[0] * kernel.block[1] * kernel.block[2])
            json.attribute("local_size", kernel.localSize);
          json.attribute("shared_bytes", kernel.sharedBytes);
          if (kernel.dynamicSharedBytes)
            json.attribute("dynamic_shared_bytes", kernel.dynamicSharedBytes);
          if (kernel.isResizable)
            json.attribute("resizable", true);
          if (kernel.isCooperative)
            json.attribute("cooperative", true);
          json.attributeArray("args", [&] {
            for (const ArgInterface &arg : kernel.args)
              json.object([&] {
                json.attribute("name", arg.name);
                json.attribute("kind", arg.isBuffer ? "buffer" : "scalar");
                json.attribute("type", printType(arg.type));
                if (!arg.isBuffer) {
                  json.attribute("offset", arg.offset);
                  return;
                }
                json.attribute("access", arg.access & KernelOp::ReadOnly    ? "readonly"
                                         : arg.access & KernelOp::WriteOnly ? "writeonly"
                                                                            : "readwrite");
                if (arg.access & KernelOp::NoAlias)
                  json.attribute("noalias", true);
                if (arg.rank > 1)
                  json.attribute("rank", arg.rank);
                if (arg.align > getStorageBytes(getScalarOf(arg.type)))
                  json.attribute("align", arg.align);
                json.attribute("binding", arg.binding);
                json.attribute("size", arg.passesSize);
                if (arg.passesSize)
                  json.attribute("size_offset", arg.offset);
              });
          });
          json.attribute("params_bytes", kernel.paramsBytes);
          json.attribute("params", kernel.paramsInBuffer ? "buffer" : "push");
          json.attribute("params_binding", kernel.paramsBinding);
          json.attributeArray("features", [&] {
            for (const std::string &feature : kernel.features)
              json.value(feature);
          });
        });
    });
  });
  return text;
}

} // namespace qd
