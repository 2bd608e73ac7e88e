//===- AMDGCNFuseExchange.h - DPP moves as part of compare and exchange -----------------------===//

#ifndef QD_CODEGEN_AMDGCNFUSEEXCHANGE_H
#define QD_CODEGEN_AMDGCNFUSEEXCHANGE_H

#include "llvm/CodeGen/TargetInstrInfo.h"

namespace qd {

/// The number of an AMDGCN instruction by LLVM's name for it, of which its public headers have none; 0 for none.
unsigned findAMDGCNOpcode(const llvm::TargetInstrInfo &instructions, llvm::StringRef name);

/// Registers the pass; its identity for what adds it.
char &registerFuseExchange();

} // namespace qd

#endif
