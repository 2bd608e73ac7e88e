//===- PrintFormat.cpp - the text of qd.print, cut at its placeholders ----------===//

#include "ir/PrintFormat.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace llvm;

namespace qd {

Expected<std::vector<std::string>> splitPrintFormat(StringRef format) {
  // Texts of C end at a zero, and some executors pass them to C.
  if (format.contains('\0'))
    return createStringError("text has a zero character");
  std::vector<std::string> pieces(1);
  while (!format.empty()) {
    if (format.consume_front("{}"))
      pieces.emplace_back();
    else if (format.consume_front("{{"))
      pieces.back() += '{';
    else if (format.consume_front("}}"))
      pieces.back() += '}';
    else if (format.front() == '{' || format.front() == '}')
      return createStringError("text has '%s', expected '{}', '{{' or '}}'", format.take_front(2).str().c_str());
    else {
      pieces.back() += format.front();
      format = format.drop_front();
    }
  }
  return pieces;
}

unsigned getPrintDigits(mlir::Type floatType) {
  if (floatType.isF64())
    return 17;
  if (floatType.isF32())
    return 9;
  return floatType.isF16() ? 5 : 4;
}

} // namespace qd
