//===- PrintText.h - qd.print and qd.assert as text ------------------------------------===//
//
// Purpose: what all who carry out a print share. A print is a text and values in memory, as CUDA's vprintf takes them:
// integers of up to 32 bits as i32, i64 as it is, floats as f64, each aligned to its size.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_PRINTTEXT_H
#define QD_CODEGEN_PRINTTEXT_H

#include "codegen/PrintLog.h"
#include "ir/Dialect.h"

namespace llvm {
class GlobalVariable;
class IRBuilderBase;
class Module;
class Value;
} // namespace llvm

namespace qd {

/// The text for printf, its line's end included.
std::string getPrintfText(PrintOp op);

/// Where each value lies, and all bytes together.
struct PrintLayout {
  llvm::SmallVector<unsigned> offsets;
  unsigned bytes = 0;
};
PrintLayout layOutPrint(mlir::TypeRange types);

/// Stores values, of emitted code, at `memory`; a bf16 may be its bits.
void storePrintValues(llvm::IRBuilderBase &b, mlir::TypeRange types, llvm::ArrayRef<llvm::Value *> values,
                      llvm::Value *memory);
/// A constant of the module that ends with a zero.
llvm::GlobalVariable *createText(llvm::Module &module, llvm::StringRef text, unsigned addressSpace);

/// "kernel.qir:3:5", for messages.
std::string printLocation(mlir::Location loc);

} // namespace qd

#endif
