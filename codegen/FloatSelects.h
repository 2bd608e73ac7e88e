//===- FloatSelects.h - selects of floats that selection takes for something else -------------===//

#ifndef QD_CODEGEN_FLOATSELECTS_H
#define QD_CODEGEN_FLOATSELECTS_H

namespace llvm {
class Function;
class Module;
} // namespace llvm

namespace qd {

/// While it lives, passes over the module's LLVM IR see no choice between floats that are compared as an operand of
/// another. LLVM 22's InstCombine takes the outer one of min(min(x, h), h) for superfluous, though the inner one may give
/// a NaN that the outer one replaces: `x >= h ? h : x`, and `h < x ? h : x` by an unordered comparison.
class PartedSelects {
public:
  explicit PartedSelects(llvm::Module &module);
  ~PartedSelects();

private:
  llvm::Module &module;
};

/// Selects that instruction selection would get wrong choose between bits. Not for x86, which has such selects as
/// instructions.
void keepSelects(llvm::Function &function);

} // namespace qd

#endif
