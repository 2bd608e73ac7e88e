//===- Report.cpp - checks of prints and asserts ---------------------------------===//

#include "ir/Dialect.h"
#include "ir/PrintFormat.h"

using namespace mlir;

namespace qd {

LogicalResult PrintOp::verify() {
  llvm::Expected<std::vector<std::string>> pieces = splitPrintFormat(getFormat());
  if (!pieces)
    return emitOpError() << llvm::toString(pieces.takeError());
  if (pieces->size() - 1 != getValues().size())
    return emitOpError() << "text has " << pieces->size() - 1 << " placeholders '{}' for " << getValues().size()
                         << " values";
  unsigned scalars = 0;
  for (Type type : getValues().getTypes())
    scalars += getNumScalars(type);
  // CUDA's printf writes no more ("Formatted Output", CUDA C++ Programming Guide).
  constexpr unsigned maxScalars = 32;
  if (scalars > maxScalars)
    return emitOpError() << "has " << scalars << " scalars in a line, expected at most " << maxScalars;
  return success();
}

LogicalResult AssertOp::verify() {
  if (getMessage().contains('\0'))
    return emitOpError() << "message has a zero character";
  return success();
}

} // namespace qd
