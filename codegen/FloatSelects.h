//===- FloatSelects.h - selects of floats that selection takes for something else -------------===//

#ifndef QD_CODEGEN_FLOATSELECTS_H
#define QD_CODEGEN_FLOATSELECTS_H

namespace llvm {
class Function;
}

namespace qd {

/// Selects that instruction selection would get wrong choose between bits. Not for x86, which has such selects as
/// instructions.
void keepSelects(llvm::Function &function);

} // namespace qd

#endif
