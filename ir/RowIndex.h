//===- RowIndex.h - tables of ops, by name --------------------------------------------------===//
//
// Purpose: finds the row of an op in a table whose rows begin with its name.
//
//===----------------------------------------------------------------------===//

#ifndef QD_IR_ROWINDEX_H
#define QD_IR_ROWINDEX_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"

namespace qd {

/// The rows, which must outlive the index, by their `name`.
template <typename Row> llvm::StringMap<const Row *> indexByName(llvm::ArrayRef<Row> rows) {
  llvm::StringMap<const Row *> index;
  for (const Row &row : rows)
    index[row.name] = &row;
  return index;
}

} // namespace qd

#endif
