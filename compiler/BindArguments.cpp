//===- BindArguments.cpp - kernel arguments that are constants ---------------------------------------===//

#include "compiler/BindArguments.h"

#include "ir/Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"

using namespace mlir;

namespace qd {

/// An integer that the type holds as a signed or as an unsigned number; i1 also takes true and false.
static TypedAttr parseInteger(IntegerType type, StringRef text) {
  if (type.getWidth() == 1 && (text == "true" || text == "false"))
    return IntegerAttr::get(type, APInt(1, text == "true"));
  StringRef digits = text;
  bool isNegative = digits.consume_front("-");
  uint64_t magnitude = 0;
  if (digits.empty() || !llvm::isDigit(digits.front()) ||
      digits.getAsInteger(digits.starts_with_insensitive("0x") ? 0 : 10, magnitude))
    return {};
  unsigned width = type.getWidth();
  if (isNegative ? magnitude > uint64_t(1) << (width - 1) : !llvm::isUIntN(width, magnitude))
    return {};
  uint64_t bits = isNegative ? 0 - magnitude : magnitude;
  return IntegerAttr::get(type, APInt(width, bits & llvm::maskTrailingOnes<uint64_t>(width)));
}

/// The nearest number that the type holds; none for numbers beyond the largest.
static TypedAttr parseFloat(FloatType type, StringRef text) {
  llvm::APFloat value(type.getFloatSemantics());
  if (text.empty())
    return {};
  llvm::Expected<llvm::APFloat::opStatus> status = value.convertFromString(text, llvm::APFloat::rmNearestTiesToEven);
  if (!status) {
    llvm::consumeError(status.takeError());
    return {};
  }
  return *status & llvm::APFloat::opOverflow ? TypedAttr() : TypedAttr(FloatAttr::get(type, value));
}

static std::string describeValues(Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  if (auto format = dyn_cast<FloatType>(type)) {
    SmallString<32> largest;
    llvm::APFloat::getLargest(format.getFloatSemantics()).toString(largest);
    return ("a number of at most " + largest + ", inf or nan").str();
  }
  if (width == 1)
    return "true, false, 0 or 1";
  return "an integer from " + llvm::toString(APInt::getSignedMinValue(width), 10, true) + " to " +
         llvm::toString(APInt::getMaxValue(width), 10, false);
}

static std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static std::optional<unsigned> findArgument(KernelOp kernel, StringRef name) {
  for (unsigned i = 0; i < kernel.getNumArgs(); ++i)
    if (kernel.getArgName(i) == name)
      return i;
  return std::nullopt;
}

namespace {
/// One argument of one kernel, and its constant.
struct Bound {
  KernelOp kernel;
  unsigned index;
  TypedAttr value;
};
} // namespace

static bool check(Session &session, StringRef binding, StringRef text, KernelOp kernel, unsigned index,
                  SmallVectorImpl<Bound> &all) {
  StringRef name = kernel.getArgName(index);
  Type type = kernel.getArg(index).getType();
  std::string place = ("argument '" + name + "' of kernel '" + kernel.getSymName() + "'").str();
  if (isa<BufferType>(type)) {
    session.error("binding '" + binding + "': " + place + " is a buffer, expected a scalar");
    return false;
  }
  if (llvm::any_of(all, [&](const Bound &other) { return other.kernel == kernel && other.index == index; })) {
    session.error("binding '" + binding + "': " + place + " is bound twice");
    return false;
  }
  auto integer = dyn_cast<IntegerType>(type);
  TypedAttr value = integer ? parseInteger(integer, text) : parseFloat(cast<FloatType>(type), text);
  if (!value) {
    session.error("binding '" + binding + "': " + place + " has type " + print(type) + ", expected " +
                  describeValues(type) + ", found '" + text + "'");
    return false;
  }
  all.push_back({kernel, index, value});
  return true;
}

static bool resolve(Session &session, ModuleOp module, StringRef binding, SmallVectorImpl<Bound> &all) {
  auto [path, text] = binding.split('=');
  auto [first, second] = path.split('.');
  bool namesKernel = path.contains('.');
  StringRef name = namesKernel ? second : first;
  if (!binding.contains('=') || name.empty() || text.empty() || (namesKernel && first.empty())) {
    session.error("binding '" + binding + "' is not of the form ARGUMENT=VALUE or KERNEL.ARGUMENT=VALUE");
    return false;
  }
  bool isFound = false;
  for (KernelOp kernel : module.getOps<KernelOp>()) {
    if (namesKernel && kernel.getSymName() != first)
      continue;
    std::optional<unsigned> index = findArgument(kernel, name);
    if (!index && namesKernel) {
      session.error("binding '" + binding + "': kernel '" + first + "' has no argument '" + name + "'");
      return false;
    }
    if (!index)
      continue;
    isFound = true;
    if (!check(session, binding, text, kernel, *index, all))
      return false;
  }
  if (!isFound)
    session.error(
        "binding '" + binding + "': " +
        (namesKernel ? "the module has no kernel '" + first + "'" : "no kernel has an argument '" + name + "'"));
  return isFound;
}

/// Replaces the bound arguments of one kernel, and takes them from its interface.
static void bind(KernelOp kernel, ArrayRef<Bound> all) {
  llvm::BitVector gone(kernel.getNumArgs());
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBodyBlock());
  for (const Bound &bound : all) {
    if (bound.kernel != kernel)
      continue;
    BlockArgument argument = kernel.getArg(bound.index);
    argument.replaceAllUsesWith(arith::ConstantOp::create(builder, argument.getLoc(), bound.value));
    gone.set(bound.index);
  }
  SmallVector<Attribute> names;
  SmallVector<int32_t> access, align;
  for (unsigned i = 0; i < kernel.getNumArgs(); ++i) {
    if (gone[i])
      continue;
    names.push_back(kernel.getArgNames()[i]);
    access.push_back(kernel.getAccess(i));
    if (kernel.getArgAlign())
      align.push_back((*kernel.getArgAlign())[i]);
  }
  if (kernel.getArgAlign())
    kernel.setArgAlign(align);
  kernel.setArgAccess(access);
  kernel.setArgNamesAttr(builder.getArrayAttr(names));
  kernel.getBodyBlock().eraseArguments(gone);
}

bool bindArguments(Session &session, ModuleOp module, StringRef bindings) {
  SmallVector<Bound> all;
  for (StringRef binding : llvm::split(bindings, ','))
    if (!binding.empty() && !resolve(session, module, binding, all))
      return false;
  if (all.empty())
    return true;
  session.getContext().loadDialect<arith::ArithDialect>();
  for (KernelOp kernel : module.getOps<KernelOp>())
    bind(kernel, all);
  // Some ops ask for more of a constant than of a value.
  return succeeded(verify(module));
}

} // namespace qd
