//===- Memory.h - what plain and atomic accesses share --------------------------------------===//

#ifndef QD_CODEGEN_INTERP_MEMORY_H
#define QD_CODEGEN_INTERP_MEMORY_H

#include "codegen/interp/Machine.h"

namespace qd::interp {

/// Whether the op's `if` lets this thread take part.
bool isEnabled(Thread &thread, mlir::Value predicate, unsigned operand);

/// The array that a thread's operand is; null, and a report, where it is poison.
Array *findArray(Thread &thread, unsigned operand);

/// The number of the element that the subscripts name; nothing, and a report, where there is none.
std::optional<int64_t> findElement(Thread &thread, const Array &array, unsigned firstSubscript,
                                   llvm::ArrayRef<int64_t> literals);

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
