//===----------------------------------------------------------------------===//
// Addresses of globals, and constants as words.
//===----------------------------------------------------------------------===//
#include "codegen/sim/Compile.h"
#include "codegen/sim/Wave.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace llvm;

namespace qd::sim {

namespace {
constexpr uint64_t guardBytes = 64; // between shared variables
constexpr unsigned mostLeaves = 4096;
constexpr uint64_t mostSharedBytes = 1 << 20;

std::string printed(const Value &value) {
  std::string text;
  raw_string_ostream(text) << value;
  return text;
}
} // namespace

Error ModuleCompiler::leaves(Type *type, SmallVectorImpl<Leaf> &out, uint64_t offset) const {
  auto unsupported = [&]() {
    std::string text;
    raw_string_ostream(text) << *type;
    return createStringError("values of type '" + text + "' are not supported");
  };
  if (out.size() > mostLeaves)
    return unsupported();
  if (type->isVoidTy())
    return Error::success();
  if (auto *structType = dyn_cast<StructType>(type)) {
    if (!type->isSized())
      return unsupported();
    const StructLayout *memory = layout.getStructLayout(structType);
    for (unsigned i = 0; i < structType->getNumElements(); ++i)
      if (Error error = leaves(structType->getElementType(i), out, offset + memory->getElementOffset(i)))
        return error;
    return Error::success();
  }
  if (isa<ArrayType, FixedVectorType>(type)) {
    bool isArray = isa<ArrayType>(type);
    uint64_t count = isArray ? type->getArrayNumElements() : cast<FixedVectorType>(type)->getNumElements();
    Type *element = type->getContainedType(0);
    uint64_t step = isArray ? layout.getTypeAllocSize(element).getFixedValue()
                            : divideCeil(layout.getTypeSizeInBits(element).getFixedValue(), 8);
    if (count > mostLeaves)
      return unsupported();
    for (uint64_t i = 0; i < count; ++i)
      if (Error error = leaves(element, out, offset + i * step))
        return error;
    return Error::success();
  }
  bool isFloat = type->isHalfTy() || type->isBFloatTy() || type->isFloatTy() || type->isDoubleTy();
  if (!type->isIntegerTy() && !type->isPointerTy() && !isFloat)
    return unsupported();
  if (type->isPointerTy() && !is_contained({0u, 1u, 3u, 4u, 5u, 101u}, type->getPointerAddressSpace()))
    return unsupported();
  unsigned bits = layout.getTypeSizeInBits(type).getFixedValue();
  if (bits > 128 || (type->isPointerTy() && bits > 64))
    return unsupported();
  out.push_back({type, bits, bits > 64 ? 2u : 1u, offset});
  return Error::success();
}

Ref ModuleCompiler::word(uint64_t value, bool poison) {
  auto [it, fresh] = pool.try_emplace({value, poison}, ~Ref(image.constantPoison.size()));
  if (fresh) {
    image.constants.insert(image.constants.end(), image.wave, value);
    image.constantPoison.push_back(poison ? ~uint64_t(0) : 0);
  }
  return it->second;
}

Expected<uint64_t> ModuleCompiler::address(const Constant &value) {
  if (value.isNullValue())
    return 0;
  if (auto *number = dyn_cast<ConstantInt>(&value))
    if (number->getBitWidth() <= 64)
      return number->getZExtValue();
  if (auto *global = dyn_cast<GlobalVariable>(&value)) {
    auto found = addresses.find(global);
    if (found != addresses.end())
      return found->second;
  }
  if (auto *alias = dyn_cast<GlobalAlias>(&value))
    return address(*alias->getAliasee());
  auto *expression = dyn_cast<ConstantExpr>(&value);
  if (!expression || expression->getType()->isVectorTy())
    return createStringError("constant '" + printed(value) + "' is not supported");
  auto first = address(*expression->getOperand(0));
  if (!first)
    return first;
  unsigned bits = layout.getTypeSizeInBits(expression->getType()).getFixedValue();
  switch (expression->getOpcode()) {
  case Instruction::GetElementPtr: {
    APInt offset(layout.getIndexTypeSizeInBits(expression->getType()), 0);
    if (!cast<GEPOperator>(expression)->accumulateConstantOffset(layout, offset))
      break;
    return (*first + offset.getSExtValue()) & lowBits(bits);
  }
  case Instruction::PtrToInt:
  case Instruction::PtrToAddr:
  case Instruction::IntToPtr:
  case Instruction::BitCast:
  case Instruction::Trunc:
    return *first & lowBits(bits);
  case Instruction::AddrSpaceCast: {
    unsigned from = expression->getOperand(0)->getType()->getPointerAddressSpace();
    unsigned to = expression->getType()->getPointerAddressSpace();
    auto aperture = [](unsigned space) {
      return space == SharedSpace    ? SharedAperture << allocationShift
             : space == PrivateSpace ? PrivateAperture << allocationShift
                                     : uint64_t(0);
    };
    return (aperture(to) ? *first & offsetMask : *first | aperture(from)) & lowBits(bits);
  }
  case Instruction::Add:
  case Instruction::Sub: {
    auto second = address(*expression->getOperand(1));
    if (!second)
      return second;
    return (expression->getOpcode() == Instruction::Add ? *first + *second : *first - *second) &
           lowBits(bits);
  }
  default:
    break;
  }
  return createStringError("constant '" + printed(value) + "' is not supported");
}

Error ModuleCompiler::appendConstant(const Constant &value, SmallVectorImpl<std::pair<uint64_t, bool>> &out) {
  Type *type = value.getType();
  if (isa<UndefValue>(value) || value.isNullValue()) {
    SmallVector<Leaf> all;
    if (Error error = leaves(type, all))
      return error;
    for (const Leaf &leaf : all)
      out.append(leaf.words, {0, isa<UndefValue>(value)});
    return Error::success();
  }
  if (type->isAggregateType() || type->isVectorTy()) {
    if (isa<ScalableVectorType>(type))
      return createStringError("constant '" + printed(value) + "' is not supported");
    uint64_t count = type->isStructTy()  ? type->getStructNumElements()
                     : type->isArrayTy() ? type->getArrayNumElements()
                                         : cast<FixedVectorType>(type)->getNumElements();
    for (uint64_t i = 0; i < count; ++i) {
      const Constant *element = value.getAggregateElement(i);
      if (!element)
        return createStringError("constant '" + printed(value) + "' is not supported");
      if (Error error = appendConstant(*element, out))
        return error;
    }
    return Error::success();
  }
  APInt bits;
  if (auto *number = dyn_cast<ConstantInt>(&value))
    bits = number->getValue();
  else if (auto *number = dyn_cast<ConstantFP>(&value))
    bits = number->getValueAPF().bitcastToAPInt();
  else {
    auto pointer = address(value);
    if (!pointer)
      return pointer.takeError();
    out.push_back({*pointer, false});
    return Error::success();
  }
  if (bits.getBitWidth() > 128)
    return createStringError("constant '" + printed(value) + "' is not supported");
  out.push_back({bits.getRawData()[0], false});
  if (bits.getBitWidth() > 64)
    out.push_back({bits.getRawData()[1], false});
  return Error::success();
}

Expected<Refs> ModuleCompiler::constant(const Constant &value) {
  // LLVM leaves casts between vectors of constants as expressions where no pass folds them.
  Constant *folded = ConstantFoldConstant(&value, layout);
  SmallVector<std::pair<uint64_t, bool>> words;
  if (Error error = appendConstant(*folded, words))
    return error;
  Refs result;
  for (auto [bits, poison] : words)
    result.push_back(word(bits, poison));
  return result;
}

Error ModuleCompiler::initialise(const Constant &value, std::vector<uint8_t> &bytes, uint64_t offset) {
  if (isa<UndefValue>(value) || value.isNullValue())
    return Error::success();
  Type *type = value.getType();
  if (auto *data = dyn_cast<ConstantDataSequential>(&value)) {
    StringRef raw = data->getRawDataValues();
    std::memcpy(bytes.data() + offset, raw.data(), raw.size());
    return Error::success();
  }
  if (type->isStructTy() || type->isArrayTy() || type->isVectorTy()) {
    uint64_t count = type->isStructTy()  ? type->getStructNumElements()
                     : type->isArrayTy() ? type->getArrayNumElements()
                                         : cast<FixedVectorType>(type)->getNumElements();
    for (uint64_t i = 0; i < count; ++i) {
      const Constant *element = value.getAggregateElement(i);
      if (!element)
        return createStringError("initialiser '" + printed(value) + "' is not supported");
      uint64_t at = type->isStructTy()
                        ? layout.getStructLayout(cast<StructType>(type))->getElementOffset(i).getFixedValue()
                        : i * layout.getTypeAllocSize(type->getContainedType(0)).getFixedValue();
      if (Error error = initialise(*element, bytes, offset + at))
        return error;
    }
    return Error::success();
  }
  // LLVM leaves casts between vectors of constants as expressions where no pass folds them.
  Constant *folded = ConstantFoldConstant(&value, layout);
  SmallVector<std::pair<uint64_t, bool>> words;
  if (Error error = appendConstant(*folded, words))
    return error;
  uint64_t size = layout.getTypeStoreSize(type).getFixedValue();
  for (uint64_t i = 0; i < size; ++i)
    bytes[offset + i] = uint8_t(words[i / 8].first >> (i % 8 * 8));
  return Error::success();
}

Error ModuleCompiler::placeGlobals() {
  SmallVector<const GlobalVariable *> memory, dynamic;
  uint64_t offset = 0;
  for (const GlobalVariable &global : module.globals()) {
    if (global.getName().starts_with("llvm."))
      continue;
    uint64_t size = layout.getTypeAllocSize(global.getValueType()).getFixedValue();
    unsigned space = global.getAddressSpace();
    if (space == SharedSpace) {
      if (!size) {
        dynamic.push_back(&global);
        continue;
      }
      offset = alignTo(offset, std::max<uint64_t>(16, layout.getPreferredAlign(&global).value()));
      addresses[&global] = offset;
      image.shared.push_back({offset, size});
      offset += size + guardBytes;
      if (offset > mostSharedBytes)
        return createStringError("the module's shared variables need more than " + Twine(mostSharedBytes) +
                                 " bytes");
      continue;
    }
    if (space != GenericSpace && space != GlobalSpace && space != ConstantSpace)
      return createStringError("global variable '" + global.getName() + "' lies in address space " +
                               Twine(space) + ", which is not supported");
    if (!global.hasInitializer())
      return createStringError("global variable '" + global.getName() + "' is not defined in the module");
    if (size > uint64_t(1) << 30)
      return createStringError("global variable '" + global.getName() + "' is larger than 1 GiB");
    addresses[&global] = (FirstAllocation + image.globals.size()) << allocationShift;
    image.globals.push_back({global.getName().str(), global.isConstant(), std::vector<uint8_t>(size)});
    memory.push_back(&global);
  }
  if (!dynamic.empty()) {
    offset = alignTo(offset, 128);
    for (const GlobalVariable *global : dynamic)
      addresses[global] = offset;
    image.shared.push_back({offset, image.options.dynamicSharedBytes});
    offset += image.options.dynamicSharedBytes;
  }
  image.sharedBytes = offset;
  for (auto [index, global] : enumerate(memory))
    if (Error error = initialise(*global->getInitializer(), image.globals[index].bytes, 0))
      return error;
  return Error::success();
}

uint32_t ModuleCompiler::text(const Value &value) {
  std::string text;
  raw_string_ostream stream(text);
  value.print(stream, slots);
  image.texts.push_back("`" + StringRef(text).trim().str() + "`");
  return image.texts.size() - 1;
}

Error ModuleCompiler::run() {
  word(0); // ~0 is the word 0
  if (Error error = placeGlobals())
    return error;
  for (const Function &function : module) {
    if (function.isDeclaration())
      continue;
    functionNumbers[&function] = image.functions.size();
    image.functions.emplace_back();
  }
  for (const Function &function : module) {
    if (function.isDeclaration())
      continue;
    slots.incorporateFunction(function);
    FunctionCode &code = image.functions[functionNumbers[&function]];
    code.name = function.getName().str();
    code.kernel = function.getCallingConv() == CallingConv::PTX_Kernel ||
                  function.getCallingConv() == CallingConv::AMDGPU_KERNEL;
    if (Error error = FunctionCompiler(*this, function, code).run())
      return error;
    if (code.kernel)
      image.kernels[code.name] = functionNumbers[&function];
  }
  return Error::success();
}

} // namespace qd::sim
