//===- RareBranch.h - one branch around what few operands need ---------------------------------===//
//
// Purpose: of values that are right always and values that take less time and are right nearly always (`qd.rare`),
// several that stand together are chosen by one branch:
//
//   y0 = rare(c0) ? slow0 : fast0             any = c0 | c1 | c2 | c3
//   ...                                ->     branch any, slow, rest
//   y3 = rare(c3) ? slow3 : fast3           slow: slow0, ... slow3
//                                           rest: y0 = phi(fast0, slow0) ...
//
// A branch costs a GPU three instructions, so where fewer stand together each slow value takes its result's place. This
// comes after the unrolling of loops.
//
// Input: LLVM IR with calls by markRare. Output: the same without them.
//
//===----------------------------------------------------------------------===//

#ifndef QD_CODEGEN_RAREBRANCH_H
#define QD_CODEGEN_RAREBRANCH_H

namespace llvm {
class IRBuilderBase;
class Module;
class Value;
} // namespace llvm

namespace qd {

/// The condition of a select between a value that is right always and a faster one, so that no pass of LLVM changes it.
llvm::Value *markRare(llvm::IRBuilderBase &builder, llvm::Value *condition);

void branchWhereRare(llvm::Module &module);

} // namespace qd

#endif
