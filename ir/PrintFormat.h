//===- PrintFormat.h - the text of qd.print, cut at its placeholders ------------===//
//
// Purpose: what stands between the values of a print, for the verifier and for all that carry prints out, and how many
// digits a float's text has.
//
//===----------------------------------------------------------------------===//

#ifndef QD_IR_PRINTFORMAT_H
#define QD_IR_PRINTFORMAT_H

#include "mlir/IR/TypeRange.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace qd {

/// The pieces before, between and behind the placeholders: one more than there are values. Doubled braces are single
/// ones in them. The error names what is wrong with the text.
llvm::Expected<std::vector<std::string>> splitPrintFormat(llvm::StringRef format);

/// The same text with a placeholder for each scalar: those of a vector stand in brackets, "[{}, {}]". It is one that
/// can be split, with a placeholder for each type.
std::string spreadPrintFormat(llvm::StringRef format, mlir::TypeRange types);

/// Decimal digits that tell neighbours of the type apart.
unsigned getPrintDigits(mlir::Type floatType);

} // namespace qd

#endif
