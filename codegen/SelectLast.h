//===- SelectLast.h - guarded operations as ptxas wants them -----------------------------===//
//
// Purpose: undoes, before NVPTX's instruction selection, what InstCombine does to a guarded operation:
//
//   x + (guard ? y : 0)   ->   guard ? x + y : x
//
// ptxas makes one predicated instruction of the second, a selection and an addition of the first. A scan has one in
// each step.
//
// Input: optimised LLVM IR. Output: the same with the selects behind integer operations.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_SELECTLAST_H
#define QD_CODEGEN_SELECTLAST_H

namespace llvm {
class Function;
}

namespace qd {

void selectLast(llvm::Function &function);

} // namespace qd

#endif
