//===- PrintText.cpp - qd.print and qd.assert as text ----------------------------------===//

#include "codegen/PrintText.h"

#include "ir/PrintFormat.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace qd {

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

static std::string getConversion(Type type) {
  if (isa<FloatType>(type))
    return "%." + std::to_string(getPrintDigits(type)) + "g";
  return type.isInteger(64) ? "%lld" : "%d";
}

std::string getPrintfText(PrintOp op) {
  std::vector<std::string> pieces = llvm::cantFail(splitPrintFormat(op.getFormat()));
  std::string text;
  for (auto [i, piece] : llvm::enumerate(pieces)) {
    if (i)
      text += getConversion(op.getValues()[i - 1].getType());
    for (char c : piece)
      text += c == '%' ? "%%" : std::string(1, c);
  }
  return text + "\n";
}

std::string printLocation(Location loc) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (auto place = loc->findInstanceOf<FileLineColLoc>())
    stream << place.getFilename().getValue() << ':' << place.getLine() << ':' << place.getColumn();
  else
    stream << "unknown location";
  return text;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

PrintLayout layOutPrint(TypeRange types) {
  PrintLayout layout;
  for (Type type : types) {
    unsigned bytes = isa<FloatType>(type) || type.isInteger(64) ? 8 : 4;
    layout.offsets.push_back(llvm::alignTo(layout.bytes, bytes));
    layout.bytes = layout.offsets.back() + bytes;
  }
  return layout;
}

static llvm::Value *widen(llvm::IRBuilderBase &b, Type type, llvm::Value *value) {
  if (type.isInteger(1))
    return b.CreateZExt(value, b.getInt32Ty());
  if (isa<IntegerType>(type))
    return b.CreateSExt(value, type.isInteger(64) ? b.getInt64Ty() : b.getInt32Ty());
  if (type.isBF16()) {
    llvm::Value *bits = b.CreateZExt(b.CreateBitCast(value, b.getInt16Ty()), b.getInt32Ty());
    value = b.CreateBitCast(b.CreateShl(bits, 16), b.getFloatTy());
  } else if (type.isF16()) {
    value = b.CreateFPExt(value, b.getFloatTy());
  }
  value = b.CreateFPExt(value, b.getDoubleTy());
  return b.CreateSelect(b.CreateFCmpUNO(value, value), llvm::ConstantFP::getNaN(b.getDoubleTy()), value);
}

void storePrintValues(llvm::IRBuilderBase &b, TypeRange types, ArrayRef<llvm::Value *> values, llvm::Value *memory) {
  PrintLayout layout = layOutPrint(types);
  for (auto [type, value, offset] : llvm::zip_equal(types, values, layout.offsets)) {
    llvm::Value *wide = widen(b, type, value);
    b.CreateAlignedStore(wide, b.CreateConstGEP1_64(b.getInt8Ty(), memory, offset),
                         llvm::Align(wide->getType()->getScalarSizeInBits() / 8));
  }
}

llvm::GlobalVariable *createText(llvm::Module &module, llvm::StringRef text, unsigned addressSpace) {
  llvm::Constant *bytes = llvm::ConstantDataArray::getString(module.getContext(), text, /*AddNull=*/true);
  // Equal texts are one constant: their names are alike.
  std::string name = "text" + llvm::utohexstr(llvm::xxh3_64bits(text));
  llvm::GlobalVariable *known = module.getGlobalVariable(name, /*AllowInternal=*/true);
  if (known && known->getInitializer() == bytes)
    return known;
  return new llvm::GlobalVariable(module, bytes->getType(), /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage,
                                  bytes, name, /*InsertBefore=*/nullptr, llvm::GlobalValue::NotThreadLocal,
                                  addressSpace);
}

} // namespace qd
