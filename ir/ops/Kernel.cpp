//===- Kernel.cpp - assembly and checks of kernels ---------------------------===//

#include "ir/ops/Subscripts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace qd {

static constexpr int64_t maxThreads = 1024;
static constexpr int32_t maxAlignment = 256;

StringRef KernelOp::getArgName(unsigned i) { return cast<StringAttr>(getArgNames()[i]).getValue(); }

unsigned KernelOp::getAlignment(unsigned i) {
  Type element = getElementType(getArg(i).getType());
  unsigned bytes = getStorageBytes(element);
  if (!llvm::isPowerOf2_32(bytes))
    bytes = getStorageBytes(getScalarOf(element));
  return std::max<unsigned>(bytes, getArgAlign() ? (*getArgAlign())[i] : 1);
}

void KernelOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  for (auto [argument, name] : llvm::zip_equal(region.getArguments(), getArgNames().getAsValueRange<StringAttr>()))
    setName(argument, name);
}

//===----------------------------------------------------------------------===//
// Assembly: qd.kernel @name(%x: type readonly, ...) block(x, y, z) resizable min_blocks(n) max_registers(n) { ... }
//===----------------------------------------------------------------------===//

static ParseResult parseArgument(OpAsmParser &parser, OpAsmParser::Argument &argument, int32_t &access,
                                 int32_t &align) {
  if (parser.parseArgument(argument) || parser.parseColonType(argument.type))
    return failure();
  access = 0;
  align = 1;
  while (true) {
    SMLoc location = parser.getCurrentLocation();
    if (IntegerAttr bytes; align == 1) {
      if (parseAlign(parser, bytes))
        return failure();
      if (bytes) {
        align = bytes.getInt();
        continue;
      }
    }
    int32_t flag = 0;
    if (succeeded(parser.parseOptionalKeyword("readonly")))
      flag = KernelOp::ReadOnly;
    else if (succeeded(parser.parseOptionalKeyword("writeonly")))
      flag = KernelOp::WriteOnly;
    else if (succeeded(parser.parseOptionalKeyword("noalias")))
      flag = KernelOp::NoAlias;
    else
      return success();
    if (access & flag)
      return parser.emitError(location, "the same qualifier stands here twice");
    access |= flag;
  }
}

/// keyword(n), where it stands.
static ParseResult parseHint(OpAsmParser &parser, StringRef keyword, StringAttr name, NamedAttrList &attributes) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  int32_t value = 0;
  if (parser.parseLParen() || parser.parseInteger(value) || parser.parseRParen())
    return failure();
  attributes.set(name, parser.getBuilder().getI32IntegerAttr(value));
  return success();
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &state) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<int32_t> access, align;
  if (parser.parseSymbolName(name, getSymNameAttrName(state.name), state.attributes) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&] {
        return parseArgument(parser, arguments.emplace_back(), access.emplace_back(), align.emplace_back());
      }))
    return failure();

  SmallVector<int32_t> blockSize;
  if (parser.parseKeyword("block") || parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&] {
        return parser.parseInteger(blockSize.emplace_back());
      }))
    return failure();

  SmallVector<StringRef> names;
  for (OpAsmParser::Argument &argument : arguments)
    names.push_back(argument.ssaName.name.drop_front());
  state.addAttribute(getArgNamesAttrName(state.name), builder.getStrArrayAttr(names));
  state.addAttribute(getArgAccessAttrName(state.name), builder.getDenseI32ArrayAttr(access));
  if (llvm::any_of(align, [](int32_t bytes) { return bytes != 1; }))
    state.addAttribute(getArgAlignAttrName(state.name), builder.getDenseI32ArrayAttr(align));
  state.addAttribute(getBlockSizeAttrName(state.name), builder.getDenseI32ArrayAttr(blockSize));
  if (succeeded(parser.parseOptionalKeyword("resizable")))
    state.addAttribute(getResizableAttrName(state.name), builder.getUnitAttr());
  if (parseHint(parser, "min_blocks", getMinBlocksAttrName(state.name), state.attributes) ||
      parseHint(parser, "max_registers", getMaxRegistersAttrName(state.name), state.attributes) ||
      parser.parseOptionalAttrDictWithKeyword(state.attributes))
    return failure();

  Region *body = state.addRegion();
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseRegion(*body, arguments, /*enableNameShadowing=*/false))
    return failure();
  if (body->empty())
    return parser.emitError(location, "expected a kernel's body to hold at least 'qd.return'");
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(llvm::seq(getNumArgs()), printer, [&](unsigned i) {
    printer.printRegionArgument(getArg(i));
    if (getAccess(i) & ReadOnly)
      printer << " readonly";
    if (getAccess(i) & WriteOnly)
      printer << " writeonly";
    if (getAccess(i) & NoAlias)
      printer << " noalias";
    if (getArgAlign() && (*getArgAlign())[i] != 1)
      printer << " align(" << (*getArgAlign())[i] << ')';
  });
  printer << ") block(";
  llvm::interleaveComma(getBlockSize(), printer);
  printer << ')';
  if (getResizable())
    printer << " resizable";
  if (std::optional<uint32_t> blocks = getMinBlocks())
    printer << " min_blocks(" << *blocks << ')';
  if (std::optional<uint32_t> registers = getMaxRegisters())
    printer << " max_registers(" << *registers << ')';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {getSymNameAttrName(), getArgNamesAttrName(), getArgAccessAttrName(),
                                            getBlockSizeAttrName(), getResizableAttrName(), getMinBlocksAttrName(),
                                            getMaxRegistersAttrName(), getArgAlignAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// A name that every target's assembly takes as it stands.
static bool isKernelName(StringRef name) {
  auto isLegal = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  return !name.empty() && !llvm::isDigit(name.front()) && llvm::all_of(name, isLegal);
}

static LogicalResult checkHint(KernelOp kernel, StringRef name, std::optional<uint32_t> value, int32_t least,
                               int32_t most) {
  if (!value || (int32_t(*value) >= least && int32_t(*value) <= most))
    return success();
  return kernel.emitOpError() << "expected " << name << " from " << least << " to " << most << ", found "
                              << int32_t(*value);
}

LogicalResult KernelOp::verify() {
  if (!isKernelName(getSymName()))
    return emitOpError() << "has the name '" << getSymName()
                         << "', expected letters, digits and '_' that begin with no digit";
  if (getSymName() == "_" || getSymName() == "WARP_SZ")
    return emitOpError() << "has the name '" << getSymName() << "', which PTX reserves";
  ArrayRef<int32_t> block = getBlockSize();
  if (block.empty() || block.size() > 3)
    return emitOpError() << "expected a block of 1 to 3 dimensions, found " << block.size();
  int64_t threads = 1;
  for (int32_t extent : block) {
    if (extent < 1 || extent > maxThreads)
      return emitOpError() << "expected block dimensions from 1 to " << maxThreads << ", found " << extent;
    threads *= extent;
  }
  if (threads > maxThreads)
    return emitOpError() << "block of " << threads << " threads exceeds the limit of " << maxThreads;
  if (failed(checkHint(*this, "min_blocks", getMinBlocks(), 1, 32)) ||
      failed(checkHint(*this, "max_registers", getMaxRegisters(), 16, 512)))
    return failure();

  if (getBodyBlock().getNumArguments() != getNumArgs() || getArgAccess().size() != getNumArgs() ||
      (getArgAlign() && getArgAlign()->size() != getNumArgs()))
    return emitOpError() << "expected one name, access entry and alignment for each of its "
                         << getBodyBlock().getNumArguments() << " arguments";
  llvm::StringSet<> seen;
  for (unsigned i = 0; i < getNumArgs(); ++i) {
    Type type = getArg(i).getType();
    bool isBuffer = isa<BufferType>(type);
    if (!isBuffer && !isScalarType(type))
      return emitOpError() << "argument '" << getArgName(i) << "' has type " << type
                           << ", expected a scalar or !qd.buffer";
    if (getArgName(i).empty())
      return emitOpError() << "argument " << i << " has no name";
    if (llvm::isDigit(getArgName(i).front()))
      return emitOpError() << "argument '" << getArgName(i) << "' is a number; launches pass values by name, as in %x";
    if (!seen.insert(getArgName(i)).second)
      return emitOpError() << "has two arguments named '" << getArgName(i) << "'";
    int32_t access = getAccess(i);
    if (access && !isBuffer)
      return emitOpError() << "argument '" << getArgName(i)
                           << "' is a scalar; only buffers take readonly, writeonly and noalias";
    int32_t align = getArgAlign() ? (*getArgAlign())[i] : 1;
    if (align != 1 && !isBuffer)
      return emitOpError() << "argument '" << getArgName(i) << "' is a scalar; only buffers take align";
    if (align < 1 || align > maxAlignment || !llvm::isPowerOf2_32(align))
      return emitOpError() << "argument '" << getArgName(i) << "' has an alignment of " << align
                           << ", expected a power of two from 1 to " << maxAlignment;
    if (access & ~(ReadOnly | WriteOnly | NoAlias))
      return emitOpError() << "argument '" << getArgName(i) << "' has unknown access bits " << access;
    if ((access & ReadOnly) && (access & WriteOnly))
      return emitOpError() << "argument '" << getArgName(i) << "' is both readonly and writeonly";
  }
  if (getBodyBlock().empty() || !isa<ReturnOp>(getBodyBlock().back()))
    return emitOpError() << "expected 'qd.return' at the end of the body";
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  auto isLegal = [](Type type) {
    return isScalarType(type) || isVectorType(type) || isa<BufferType, SharedType>(type);
  };
  // Arrays of a thread and tables are named where they are used, and handed on nowhere.
  constexpr int64_t maxPrivateBytes = 65536;
  int64_t privateBytes = 0;
  WalkResult result = getBody().walk([&](Operation *op) {
    if (auto alloc = dyn_cast<PrivateAllocOp>(op))
      privateBytes += alloc.getType().getNumElements() * getStorageBytes(alloc.getType().getElementType());
    // Which array an access touches shows in the text.
    bool isPicking = isa_and_present<arith::ArithDialect, scf::SCFDialect>(op->getDialect());
    auto check = [&](TypeRange types, StringRef what) -> LogicalResult {
      for (Type type : types)
        if (isPicking && isa<BufferType, SharedType>(type))
          return op->emitOpError() << "has a " << what << " of type " << type
                                   << ", expected each use of an array to show which argument, view or qd.shared.alloc "
                                      "it is";
        else if (!isLegal(type))
          return op->emitOpError() << "has a " << what << " of type " << type
                                   << ", expected i1, i8, i16, i32, i64, f16, bf16, f32, f64 or a vector of 2, 3, 4, 8 "
                                      "or 16 of them in a kernel";
      return success();
    };
    if (!isa<PrivateAllocOp, ConstantGetOp>(op) && failed(check(op->getResultTypes(), "result")))
      return WalkResult::interrupt();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (failed(check(block.getArgumentTypes(), "region argument")))
          return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (!result.wasInterrupted() && privateBytes > maxPrivateBytes)
    return emitOpError() << "has private arrays of " << privateBytes << " bytes a thread, expected at most "
                         << maxPrivateBytes;
  return failure(result.wasInterrupted());
}

} // namespace qd
