//===- Memory.h - what plain and atomic accesses share --------------------------------------===//

#ifndef QD_CODEGEN_INTERP_MEMORY_H
#define QD_CODEGEN_INTERP_MEMORY_H

#include "codegen/interp/Machine.h"

namespace qd::interp {

/// Whether the op's `if` lets this thread take part.
bool isEnabled(Thread &thread, mlir::Value predicate, unsigned operand);

/// The array that a thread's operand is; null, and a report, where it is poison.
Array *findArray(Thread &thread, unsigned operand);

/// One of an op's numbers, a literal or the next operand; nothing, and a report, where it is poison.
std::optional<int64_t> readNumber(Thread &thread, int64_t literal, unsigned &nextOperand, llvm::StringRef what);

/// The number of the element's first scalar that the subscripts name, with `scalars` in all from there on; nothing, and
/// a report, where there is none.
std::optional<int64_t> findElement(Thread &thread, const Array &array, unsigned firstSubscript,
                                   llvm::ArrayRef<int64_t> literals, unsigned scalars = 1);

/// Whether no asynchronous copy has yet to write the element; if one has, that is reported.
bool checkArrived(Thread &thread, const Array &array, int64_t element);

/// Whether the element holds a value; if not, that is reported where it is looked for. Its subscripts are the operands
/// from `firstSubscript` to `end`.
bool checkWritten(Thread &thread, const Array &array, int64_t element, unsigned firstSubscript, unsigned end);

/// The element's value; an i1 that is neither 0 nor 1 is reported.
LaneValue readValue(Thread &thread, const Array &array, int64_t element);

uint64_t readElement(const Array &array, int64_t element);
void writeElement(Launch &launch, Array &array, int64_t element, uint64_t bits);

} // namespace qd::interp

#endif
