//===- Arrays.h - which array an access is of --------------------------------------===//

#ifndef QD_IR_ARRAYS_H
#define QD_IR_ARRAYS_H

#include "ir/Dialect.h"

namespace qd {

/// On an extension of a subscript: it is not negative where memory is touched.
constexpr llvm::StringLiteral subscriptAttribute = "qd.subscript";

/// The array that a chain of views and reinterpretations begins at.
inline mlir::Value getRootArray(mlir::Value array) {
  while (mlir::Operation *op = array.getDefiningOp()) {
    if (!llvm::isa<ViewOp, ReinterpretOp>(op))
      break;
    array = op->getOperand(0);
  }
  return array;
}

/// All ops that use an array, also by views and reinterpretations of it, but for these themselves.
inline void walkArrayUsers(mlir::Value array, llvm::function_ref<void(mlir::Value part, mlir::Operation *user)> visit) {
  for (mlir::Operation *user : array.getUsers()) {
    if (llvm::isa<ViewOp, ReinterpretOp>(user))
      walkArrayUsers(user->getResult(0), visit);
    else
      visit(array, user);
  }
}

} // namespace qd

#endif
