//===- AMDGCNFuseSums.h - DPP moves as part of sums of two words -------------------------------===//

#ifndef QD_CODEGEN_AMDGCNFUSESUMS_H
#define QD_CODEGEN_AMDGCNFUSESUMS_H

namespace qd {

/// Registers the pass; its identity for what adds it.
char &registerFuseSums();

} // namespace qd

#endif
