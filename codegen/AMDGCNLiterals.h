//===- AMDGCNLiterals.h - literals as the assembler writes them --------------------------------===//

#ifndef QD_CODEGEN_AMDGCNLITERALS_H
#define QD_CODEGEN_AMDGCNLITERALS_H

namespace llvm {
class MachineFunctionPass;
}

namespace qd {

/// For the end of AMDGCN's code generation.
llvm::MachineFunctionPass *createTrimLiteralsPass();

} // namespace qd

#endif
