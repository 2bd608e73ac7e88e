//===- AMDGCNFuseExchange.h - DPP moves as part of compare and exchange -----------------------===//

#ifndef QD_CODEGEN_AMDGCNFUSEEXCHANGE_H
#define QD_CODEGEN_AMDGCNFUSEEXCHANGE_H

namespace qd {

/// Registers the pass; its identity for what adds it.
char &registerFuseExchange();

} // namespace qd

#endif
