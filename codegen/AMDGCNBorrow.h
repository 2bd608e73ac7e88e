//===- AMDGCNBorrow.h - comparisons of several words by subtraction ---------------------------===//

#ifndef QD_CODEGEN_AMDGCNBORROW_H
#define QD_CODEGEN_AMDGCNBORROW_H

#include "llvm/IR/Function.h"

namespace qd {

/// Comparisons without a sign of numbers of more than two words, and of two where a DPP move gives the first, become
/// subtractions of the words. `comparesLower`: of more than two, a comparison of the two lowest in front, which costs
/// less where waves wait for each borrow. `comparesPairs`: of two, every other comparison stays as it is, which is an
/// instruction more with its moves, but faster.
void compareByBorrow(llvm::Function &kernel, bool comparesLower, bool comparesPairs);

} // namespace qd

#endif
