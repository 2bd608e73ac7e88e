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

std::string spreadPrintFormat(StringRef format, mlir::TypeRange types) {
  std::string text;
  while (!format.empty()) {
    StringRef next = format.take_front(format.front() == '{' || format.front() == '}' ? 2 : 1);
    format = format.drop_front(next.size());
    auto vector = next == "{}" ? dyn_cast<mlir::VectorType>(types.front()) : mlir::VectorType();
    if (next == "{}")
      types = types.drop_front();
    if (!vector) {
      text += next;
      continue;
    }
    text += '[';
    for (int64_t i = 0; i < vector.getNumElements(); ++i)
      text += i ? ", {}" : "{}";
    text += ']';
  }
  return text;
}

unsigned getPrintDigits(mlir::Type floatType) {
  if (floatType.isF64())
    return 17;
  if (floatType.isF32())
    return 9;
  return floatType.isF16() ? 5 : 4;
}

} // namespace qd
